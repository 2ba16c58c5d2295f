/* Receives one file by SET into flash memory and resumes after a reboot:
 *
 *     flash [OPTION]... IMAGE ADDRESS:PORT [GATEWAY:PORT]...
 *
 * docs/reference/embedded.md, "Options of the examples", lists the options.
 *
 * IMAGE is a file that behaves like NOR flash with erase blocks: an erased block is all 0xFF,
 * writing only clears bits, and an operation that is under way when the program is killed is
 * incomplete. The first block is a journal, followed by the blocks of the file, and with keys by
 * two blocks of sequence numbers. The exit code is 0 when all bytes are in the flash, have the
 * announced SHA-256, and the journal says so.
 *
 *     journal: magic | length | digest of the file | valid | done | one byte for each block
 *
 * Fields are written in this order and are 0xFF before. A block is valid once all of it is written.
 * It is erased before it is written again, because a kill may have left any part of it. */
#include "posix.h"

enum { BLOCK = 4096, PAGE = 256, BLOCKS = 2048 };

/* First bytes of the journal. */
struct journal {
    uint8_t magic[8];
    uint64_t length;
    uint8_t digest[32];
    /* 0 once the fields before it are written. */
    uint8_t valid;
    /* 0 once the file is complete and has its digest. */
    uint8_t done;
    /* 0 for each block that is written. */
    uint8_t written[BLOCKS];
};

static const uint8_t magic[8] = "SETfla1";
static int flash = -1;
static struct journal journal;
/* Position of the next byte of the file, if a transfer is under way. */
static uint64_t next;

static int flash_read(uint64_t at, void *octets, size_t n)
{
    ssize_t got = pread(flash, octets, n, (off_t)at);
    if (got >= 0 && got != (ssize_t)n)
        errno = EIO; /* the image was truncated meanwhile */
    return got == (ssize_t)n ? 0 : -1;
}

static int flash_erase(uint64_t block)
{
    uint8_t erased[PAGE];
    memset(erased, 0xff, sizeof erased);
    for (uint64_t at = block * BLOCK; at < (block + 1) * BLOCK; at += PAGE)
        if (pwrite(flash, erased, PAGE, (off_t)at) != PAGE)
            return -1;
    return 0;
}

/* Clears bits: a bit that is 0 stays 0, whatever is written. At most one page. */
static int flash_program(uint64_t at, const void *octets, size_t n)
{
    const uint8_t *wanted = octets;
    uint8_t is[PAGE];
    if (n > PAGE || flash_read(at, is, n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        is[i] &= wanted[i];
    return pwrite(flash, is, n, (off_t)at) == (ssize_t)n ? 0 : -1;
}

/* Writes a field of the journal, in memory and in the flash. */
static int note(void *field, const void *octets, size_t n)
{
    memcpy(field, octets, n);
    return flash_program((uint64_t)((uint8_t *)field - (uint8_t *)&journal), octets, n);
}

static int is_valid(void) { return journal.valid == 0 && memcmp(journal.magic, magic, sizeof magic) == 0; }

/* Returns the number of bytes in valid blocks. */
static uint64_t whole(void)
{
    uint64_t at = 0;
    if (journal.done == 0)
        return journal.length;
    while (at < journal.length && journal.written[at / BLOCK] == 0)
        at += BLOCK;
    return at < journal.length ? at : journal.length;
}

/* Begins the journal of another file, of which no bytes are stored. */
static int journal_begin(const anabranch_node_offer *offer)
{
    static const uint8_t zero;
    memset(&journal, 0xff, sizeof journal);
    if (flash_erase(0) != 0 || note(journal.magic, magic, sizeof magic) != 0 ||
        note(&journal.length, &offer->length, sizeof offer->length) != 0 ||
        note(journal.digest, offer->digest, sizeof offer->digest) != 0)
        return -1;
    return note(&journal.valid, &zero, 1);
}

static int store_open(const char *path)
{
    flash = open(path, O_RDWR | O_CREAT, 0644);
    /* Bytes that are not the beginning of a journal, such as the zeros of a new image, are
     * ignored. */
    if (flash < 0 || ftruncate(flash, (3 + BLOCKS) * BLOCK) != 0)
        return -1;
    return flash_read(0, &journal, sizeof journal);
}

static int store_begin(anabranch_node *node, const anabranch_node_offer *offer)
{
    uint8_t octets[128];
    uint64_t have;
    if (offer->length > (uint64_t)BLOCKS * BLOCK)
        return 1;
    if (offer->discard || !is_valid() || journal.length != offer->length ||
        memcmp(journal.digest, offer->digest, sizeof journal.digest) != 0)
        if (journal_begin(offer) != 0)
            return -1;
    have = whole();
    for (next = 0; next < have;) {
        size_t n = have - next < sizeof octets ? (size_t)(have - next) : sizeof octets;
        if (flash_read(BLOCK + next, octets, n) != 0)
            return -1;
        if (anabranch_node_have(node, octets, n) != ANABRANCH_NODE_OK)
            return -1;
        next += n;
    }
    return 0;
}

static int store_write(uint64_t offset, const uint8_t *octets, size_t n)
{
    static const uint8_t zero;
    if (offset != next)
        return -1;
    while (n > 0) {
        size_t some = PAGE - next % PAGE < n ? (size_t)(PAGE - next % PAGE) : n;
        if (next % BLOCK == 0 && flash_erase(1 + next / BLOCK) != 0)
            return -1;
        if (flash_program(BLOCK + next, octets, some) != 0)
            return -1;
        next += some, octets += some, n -= some;
        if (next % BLOCK == 0 || next == journal.length)
            if (note(&journal.written[(next - 1) / BLOCK], &zero, 1) != 0)
                return -1;
    }
    return 0;
}

static int store_end(uint64_t length)
{
    static const uint8_t zero;
    return length != next ? -1 : note(&journal.done, &zero, 1);
}

#ifdef NOISE
/* Sequence numbers are appended to one of two blocks. When it is full, the other is erased and
 * used. Therefore the highest number is always in a block that is not being erased. An entry is
 * valid once valid is 0, which is written last. */
struct entry {
    uint64_t sequence;
    uint8_t digest[32];
    uint8_t valid;
    uint8_t magic[7];
};

static const uint8_t number_magic[7] = {'S', 'E', 'T', 'n', 'u', 'm', '1'};

enum { NUMBERS = (1 + BLOCKS) * BLOCK, ENTRIES = BLOCK / sizeof(struct entry) };

/* Position of the next entry. */
static uint64_t next_entry;

static uint64_t place(unsigned block, unsigned i) { return NUMBERS + block * BLOCK + i * sizeof(struct entry); }

static int store_highest(anabranch_node_highest *highest)
{
    struct entry entry, erased;
    unsigned last = 0, used[2] = {0, 0};
    memset(highest, 0, sizeof *highest);
    memset(&erased, 0xff, sizeof erased);
    for (unsigned i = 0; i < 2 * ENTRIES; i++) {
        if (flash_read(place(i / ENTRIES, i % ENTRIES), &entry, sizeof entry) != 0)
            return -1;
        if (memcmp(&entry, &erased, sizeof entry) != 0)
            used[i / ENTRIES] = i % ENTRIES + 1;
        if (entry.valid == 0 && memcmp(entry.magic, number_magic, sizeof number_magic) == 0 &&
            (!highest->known || entry.sequence >= highest->sequence)) {
            highest->sequence = entry.sequence;
            memcpy(highest->digest, entry.digest, sizeof entry.digest);
            highest->known = 1;
            last = i / ENTRIES;
        }
    }
    /* After the last entry in the block with the highest number. A full block is followed by the
     * other, which is erased first. */
    next_entry = used[last] < ENTRIES ? place(last, used[last]) : place(!last, 0);
    return 0;
}

static int store_raise(const anabranch_node_highest *highest)
{
    static const uint8_t zero;
    struct entry entry;
    unsigned block = (unsigned)((next_entry - NUMBERS) / BLOCK);
    memset(&entry, 0xff, sizeof entry);
    entry.sequence = highest->sequence;
    memcpy(entry.digest, highest->digest, sizeof entry.digest);
    memcpy(entry.magic, number_magic, sizeof number_magic);
    if (next_entry == place(block, 0) && flash_erase(1 + BLOCKS + block) != 0)
        return -1;
    if (flash_program(next_entry, &entry, sizeof entry) != 0 ||
        flash_program(next_entry + offsetof(struct entry, valid), &zero, 1) != 0)
        return -1;
    next_entry += sizeof entry;
    if (next_entry == place(block, ENTRIES))
        next_entry = place(!block, 0);
    return 0;
}
#endif

static int store_abort(uint32_t reason)
{
    /* Valid blocks are kept for the next try, unless they are known to be wrong. */
    if (reason != ANABRANCH_NODE_ABORT_DIGEST)
        return 0;
    memset(&journal, 0xff, sizeof journal);
    return flash_erase(0);
}
