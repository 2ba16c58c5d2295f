/* Receives one file by SET:
 *
 *     receive [OPTION]... FILE ADDRESS:PORT [GATEWAY:PORT]...
 *
 * docs/reference/embedded.md, "Options of the examples", lists the options.
 *
 * The bytes are written to FILE.part, which is renamed to FILE when all of them have arrived and
 * have the announced SHA-256. Only then is the exit code 0. An interrupted transfer continues if
 * the same file is offered again to the same process; flash.c also continues after a reboot. */
#include "posix.h"

static const char *path;
static char part[80];
static int file = -1;
/* Digest and length of the stored part. */
static uint8_t digest[32];
static uint64_t kept;

static int store_open(const char *name)
{
    path = name;
    if (snprintf(part, sizeof part, "%s.part", name) >= (int)sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    file = open(part, O_RDWR | O_CREAT | O_TRUNC, 0644);
    return file < 0 ? -1 : 0;
}

static int store_begin(anabranch_node *node, const anabranch_node_offer *offer)
{
    uint8_t octets[128];
    if (offer->discard || kept > offer->length || memcmp(digest, offer->digest, sizeof digest) != 0) {
        kept = 0;
        memcpy(digest, offer->digest, sizeof digest);
    }
    if (ftruncate(file, (off_t)kept) != 0 || lseek(file, 0, SEEK_SET) != 0)
        return -1;
    for (uint64_t at = 0; at < kept;) {
        ssize_t n = read(file, octets, sizeof octets);
        if (n <= 0)
            return -1;
        if (anabranch_node_have(node, octets, (size_t)n) != ANABRANCH_NODE_OK)
            return -1;
        at += (uint64_t)n;
    }
    return 0;
}

static int store_write(uint64_t offset, const uint8_t *octets, size_t n)
{
    if (offset != kept || put(file, octets, n) != 0)
        return -1;
    kept += n;
    return 0;
}

static int store_end(uint64_t length)
{
    return kept != length || fsync(file) != 0 || rename(part, path) != 0 ? -1 : 0;
}

#ifdef NOISE
/* The number is in a separate file beside FILE. */
static char number[80];

static int store_highest(anabranch_node_highest *highest)
{
    int in;
    ssize_t n;
    memset(highest, 0, sizeof *highest);
    if (snprintf(number, sizeof number, "%s.number", path) >= (int)sizeof number) {
        errno = ENAMETOOLONG;
        return -1;
    }
    in = open(number, O_RDONLY);
    if (in < 0)
        return errno == ENOENT ? 0 : -1;
    n = read(in, highest, sizeof *highest);
    if (n < 0) {
        int error = errno;
        close(in);
        errno = error;
        return -1;
    }
    close(in);
    /* A damaged number must not be treated as absent: older files would be accepted. */
    return n == (ssize_t)sizeof *highest && highest->known == 1 ? 0 : 1;
}

/* Forces the renames in the folder of FILE to the disk: the number must be durable before the file
 * has its name. */
static int sync_folder(void)
{
    char folder[80] = ".";
    const char *slash = strrchr(path, '/');
    int in, failed;
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);
    in = open(folder, O_RDONLY);
    if (in < 0)
        return -1;
    failed = fsync(in);
    close(in);
    return failed;
}

static int store_raise(const anabranch_node_highest *highest)
{
    char fresh[88];
    int out, failed;
    snprintf(fresh, sizeof fresh, "%s.new", number);
    out = open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0)
        return -1;
    failed = put(out, (const uint8_t *)highest, sizeof *highest) != 0 || fsync(out) != 0;
    close(out);
    if (failed || rename(fresh, number) != 0)
        return -1;
    return sync_folder();
}
#endif

static int store_abort(uint32_t reason)
{
    if (reason == ANABRANCH_NODE_ABORT_DIGEST) {
        kept = 0;
        return ftruncate(file, 0);
    }
    return 0;
}
