/* A sender whose sink is an enemy: hostile ROUNDS SEED. Without a key the sink knows the protocol and says what it likes; with a key
 * it can only repeat, change and invent datagrams. The memory has exactly the size that anabranch_sense_memory says. Each datagram is
 * a block of its own, so that a sanitizer sees every byte that is read behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anabranch_sense.h"

enum { GUARD = 64, LONGEST = 1300 };

static uint64_t seed, now;
static unsigned long confirmed, ended, sent;
/* What the sink knows of the sender: its session, and fields of its last messages. */
static unsigned char last[LONGEST], session[4], request[4], stamp[4];
static size_t last_length;
static uint32_t number, newest;

void anabranch_sense_panicked(void)
{
    puts("panicked");
    exit(3);
}

static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

int anabranch_sense_entropy(void *octets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)octets)[i] = (unsigned char)draw(256);
    return draw(50) == 0;
}

static void fail(const char *why)
{
    puts(why);
    exit(1);
}

static size_t put32(unsigned char *at, uint32_t n)
{
    at[0] = (unsigned char)(n >> 24), at[1] = (unsigned char)(n >> 16), at[2] = (unsigned char)(n >> 8), at[3] = (unsigned char)n;
    return 4;
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Learns from a datagram of the sender. */
static void learn(const uint8_t *octets, size_t n)
{
    memcpy(last, octets, n);
    last_length = n;
    sent++;
    if (octets[0] == 1)
        memcpy(session, octets + 4, 4);
    if (octets[0] == 5 && n >= 9 + 15) {
        unsigned kind = octets[9] >> 4;
        if (kind == 1) {
            memcpy(request, octets + 10, 4);
            memcpy(stamp, octets + 18, 4);
        } else if (kind == 3) {
            newest = get32(octets + 14);
            memcpy(stamp, octets + 18, 4);
        }
    }
}

/* A report: stream, next packet, echo, interval, round trip, share. */
static size_t report(unsigned char *out)
{
    size_t n = put32(out, 7);
    n += put32(out + n, newest + draw(3) - draw(4));
    memcpy(out + n, stamp, 4);
    n += 4;
    for (int i = 0; i < 3; i++)
        n += put32(out + n, draw(4) == 0 ? draw(0xffffffffu) : draw(100000));
    return n;
}

/* An answer of a sink that has no keys. */
static size_t answer(unsigned char *out)
{
    size_t n = 8;
    static const unsigned char kinds[8] = {2, 4, 4, 5, 6, 6, 9, 10};
    unsigned kind = kinds[draw(8)];
    memset(out, 0, 8);
    if (last[0] == 1 || draw(64) == 0) {
        out[0] = draw(4) == 0 ? 2 : 3;
        memcpy(out + 4, session, 4);
        if (out[0] == 2) {
            for (; n < 24; n++)
                out[n] = (unsigned char)draw(256);
            return n;
        }
        return n + put32(out + n, 5);
    }
    if (draw(32) == 0) {
        out[0] = 4;
        memcpy(out + 1, last + 1, 8);
        return 9;
    }
    out[0] = 5;
    memcpy(out + 1, session, 4);
    n = 5 + put32(out + 5, number++);
    if (draw(32) == 0) {
        out[n++] = 1;
        return n + put32(out + n, 1) + put32(out + n + 4, 2);
    }
    out[n++] = (unsigned char)(kind << 4);
    if (kind == 2) {
        memcpy(out + n, request, 4);
        n += 4 + put32(out + n + 4, 7);
        memcpy(out + n, stamp, 4);
        n += 4 + put32(out + n + 4, draw(1000000));
    } else if (kind == 4 || kind == 5 || kind == 6) {
        out[n - 1] |= (unsigned char)draw(4);
        n += report(out + n);
        if (kind == 4) {
            unsigned char ranges = (unsigned char)(1 + draw(16));
            out[n++] = ranges;
            n += put32(out + n, newest - draw(20));
            for (int i = 0; i < 2 * ranges - 1; i++)
                out[n++] = 0, out[n++] = (unsigned char)(1 + draw(3));
        }
    } else if (kind == 9) {
        out[n - 1] |= (unsigned char)draw(4);
        n += put32(out + n, draw(2) ? 7 : get32(request));
    } else if (draw(8) == 0)
        n += put32(out + n, 7);
    else
        n = 9;
    return n;
}

static size_t compose(unsigned char *out, int clear)
{
    size_t n = clear ? answer(out) : last_length;
    if (!clear)
        memcpy(out, last, n);
    if (n > 0 && draw(clear ? 8 : 2) == 0)
        out[draw((uint32_t)n)] ^= (unsigned char)(1 << draw(8));
    if (draw(32) == 0)
        for (n = 1 + draw(LONGEST); draw(200) != 0;)
            out[draw((uint32_t)n)] = (unsigned char)draw(256);
    return draw(32) == 0 ? draw((uint32_t)n + 1) : n;
}

static void settle(anabranch_sense *sense, const anabranch_sense_config *config, uint64_t written)
{
    static uint64_t before;
    anabranch_sense_event event;
    const uint8_t *octets;
    int n, turns = 0;
    while ((n = anabranch_sense_poll(sense, now, &octets)) != 0) {
        if (n < 0 || (size_t)n > anabranch_sense_longest(config) || ++turns > 200)
            fail("no end of datagrams");
        learn(octets, (size_t)n);
    }
    if (written == 0)
        before = 0;
    for (turns = 0; anabranch_sense_event_of(sense, &event) == 1; turns++) {
        if (turns > 4 || event.written != written || event.confirmed > written || event.confirmed < before)
            fail("a wrong event");
        before = event.confirmed;
        confirmed += event.kind == ANABRANCH_SENSE_CONFIRMED;
        ended += event.kind == ANABRANCH_SENSE_ENDED;
    }
}

static void one_sender(int clear)
{
    static const uint8_t key[32] = {1};
    anabranch_sense_config config;
    anabranch_sense *sense;
    anabranch_sense_counters counters;
    unsigned char scratch[LONGEST + 200], *memory;
    size_t needed, skew = draw(8);
    uint64_t due, written = 0, given;
    int result, closed = 0;

    last_length = 0, number = 0, newest = 0;
    anabranch_sense_defaults(&config);
    config.name = "enemy";
    config.shared = clear ? NULL : key;
    config.insecure = (uint8_t)clear;
    if (draw(3) != 0) {
        config.payload = (uint16_t)(1 + draw(400));
        config.packets = (uint8_t)(4 + draw(30));
    }
    needed = anabranch_sense_memory(&config);
    memory = malloc(skew + needed + GUARD);
    memset(memory, 0x5a, skew + needed + GUARD);
    if (needed == 0 || anabranch_sense_init(&sense, now, memory + skew, needed - 1, &config) != ANABRANCH_SENSE_MEMORY)
        fail("too little memory");
    do
        result = anabranch_sense_init(&sense, now, memory + skew, needed, &config);
    while (result == ANABRANCH_SENSE_ENTROPY);
    if (result != ANABRANCH_SENSE_OK)
        fail("no sender");
    settle(sense, &config, 0);
    for (int i = 0; i < 3000; i++) {
        unsigned char *octets;
        size_t n;
        switch (draw(6)) {
        case 0:
        case 1:
            n = draw(config.payload + 2u);
            memset(scratch, 7, n);
            octets = malloc(n + 1);
            memcpy(octets, scratch, n);
            result = anabranch_sense_write(sense, now, draw(2), octets, n, &given);
            if (result == ANABRANCH_SENSE_OK && given != written++)
                fail("a wrong number");
            if (result != ANABRANCH_SENSE_OK && result != ANABRANCH_SENSE_FULL && !closed && n <= config.payload && ended == 0)
                fail("not written");
            free(octets);
            break;
        case 2:
            anabranch_sense_timeout(sense, now);
            break;
        case 3:
            if (draw(400) == 0) {
                anabranch_sense_close(sense, now);
                closed = 1;
            }
            if (draw(50) == 0)
                anabranch_sense_path_lost(sense, now);
            break;
        default:
            n = compose(scratch, clear);
            octets = malloc(n + 1);
            memcpy(octets, scratch, n);
            result = anabranch_sense_datagram(sense, now, octets, n);
            if (result != (n == 0 ? ANABRANCH_SENSE_ARGUMENT : ANABRANCH_SENSE_OK))
                fail("no answer");
            free(octets);
        }
        settle(sense, &config, written);
        for (int turns = 0; anabranch_sense_next_timeout(sense, &due) == 1 && due <= now; turns++) {
            if (turns > 200)
                fail("a time-out that stays");
            anabranch_sense_timeout(sense, now);
            settle(sense, &config, written);
        }
        now += (uint64_t)draw(3) * (draw(8) == 0 ? 900000000u : draw(20000000));
    }
    anabranch_sense_counters_of(sense, &counters);
    if (counters.queued > config.packets)
        fail("more records than the queue has");
    if (!clear && (counters.records != 0 || counters.rejected + counters.strange == 0))
        fail("an enemy without the key has a session");
    for (size_t i = 0; i < skew + needed + GUARD; i++)
        if ((i < skew || i >= skew + needed) && memory[i] != 0x5a)
            fail("written outside of the memory");
    free(memory);
}

static void arguments(void)
{
    static const uint8_t key[32];
    anabranch_sense_config config, wrong;
    anabranch_sense *sense;
    unsigned char memory[16];
    anabranch_sense_defaults(&config);
    config.name = "a";
    config.shared = key;
    if (anabranch_sense_version() != ANABRANCH_SENSE_VERSION || anabranch_sense_memory(NULL) != 0 ||
        anabranch_sense_timeout(NULL, 0) != ANABRANCH_SENSE_ARGUMENT)
        fail("another version, or a null pointer");
    for (int i = 0; i < 6; i++) {
        wrong = config;
        switch (i) {
        case 0: wrong.payload = 0; break;
        case 1: wrong.payload = 1025; break;
        case 2: wrong.packets = 3; break;
        case 3: wrong.name = NULL; break;
        case 4: wrong.name = "not a name"; break;
        default: wrong.shared = NULL;
        }
        if (anabranch_sense_init(&sense, 0, memory, sizeof memory, &wrong) != ANABRANCH_SENSE_ARGUMENT)
            fail("a wrong configuration");
    }
}

int main(int argc, char **argv)
{
    anabranch_sense_config config;
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    seed = argc > 2 ? (uint64_t)atol(argv[2]) * 0x9e3779b97f4a7c15u + 1 : 1;
    arguments();
    for (long i = 0; i < rounds; i++)
        one_sender(i % 3 != 0);
    if (confirmed == 0 || ended == 0 || sent == 0)
        fail("the answers do not reach the sender");
    anabranch_sense_defaults(&config);
    printf("memory %zu, %lu datagrams, %lu confirmations, %lu ends\n", anabranch_sense_memory(&config), sent, confirmed, ended);
    return 0;
}
