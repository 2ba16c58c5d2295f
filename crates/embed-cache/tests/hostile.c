/* A forwarder among enemies: valid, changed and random packets, straight into the library, with memory of exactly the size that
 * anabranch_cache_memory says: hostile ROUNDS SEED. Each packet is a block of its own, so that a sanitizer sees every byte that is
 * read behind it. Repeated packets must be such that were forwarded before, with right checksums. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anabranch_cache.h"

enum { GUARD = 64, LONGEST = 300, CONNECTIONS = 12 };

static uint64_t seed, now;
/* True once a packet with wrong data and a right checksum was forwarded: then repeated data may be wrong. */
static int forged;
static unsigned long repeats, acks, holds;

void anabranch_cache_panicked(void)
{
    puts("panicked");
    exit(3);
}

static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

static void fail(const char *why)
{
    puts(why);
    exit(1);
}

static void put16(unsigned char *at, uint32_t n)
{
    at[0] = (unsigned char)(n >> 8), at[1] = (unsigned char)n;
}

static void put32(unsigned char *at, uint32_t n)
{
    put16(at, n >> 16), put16(at + 2, n & 0xffff);
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t add(uint32_t sum, const unsigned char *octets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum += i % 2 == 0 ? (uint32_t)octets[i] << 8 : octets[i];
    return sum;
}

static uint32_t fold(uint32_t sum)
{
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

static size_t header(const unsigned char *packet)
{
    return packet[0] >> 4 == 4 ? 20 : 40;
}

/* The checksum over pseudo-header and segment, 0xffff if the stored one is right. */
static uint32_t tcp_sum(const unsigned char *packet, size_t n)
{
    size_t ip = header(packet);
    uint32_t sum = ip == 20 ? add(6, packet + 12, 8) : add(6, packet + 8, 32);
    return fold(add(sum + (uint32_t)(n - ip), packet + ip, n - ip));
}

static void checksums(unsigned char *packet, size_t n)
{
    size_t ip = header(packet);
    if (ip == 20) {
        put16(packet + 10, 0);
        put16(packet + 10, ~fold(add(0, packet, 20)) & 0xffff);
    }
    put16(packet + ip + 16, 0);
    put16(packet + ip + 16, ~tcp_sum(packet, n) & 0xffff);
}

/* The data of all connections: a function of the sequence number. */
static unsigned char content(uint32_t seq)
{
    return (unsigned char)(seq * 2654435761u >> 13);
}

/* A packet of one of the connections, with numbers near those of its others. */
static size_t compose(unsigned char *out, uint32_t longest)
{
    uint32_t connection = draw(CONNECTIONS), back = draw(5) < 2, seq = draw(4000), length = draw(5) < 3 ? draw(longest + 3) : 0;
    static const unsigned char flags[8] = {0x10, 0x10, 0x10, 0x18, 0x02, 0x12, 0x11, 0x04};
    int version = connection % 2 == 0 ? 4 : 6;
    size_t ip = version == 4 ? 20 : 40, options = draw(2) * 12, n;
    if (draw(8) == 0)
        options = 4 * draw(11);
    n = ip + 20 + options + length;
    memset(out, 0, n - length);
    out[0] = (unsigned char)(version << 4 | (version == 4 ? 5 : 0));
    if (version == 4) {
        put16(out + 2, (uint32_t)n);
        out[8] = 64, out[9] = 6;
        put32(out + 12, 0x0a000001 + back), put32(out + 16, 0x0a000002 - back);
    } else {
        put16(out + 4, (uint32_t)(n - 40));
        out[6] = 6, out[7] = 64;
        out[8] = out[24] = 0xfd;
        out[23] = (unsigned char)(1 + back), out[39] = (unsigned char)(2 - back);
    }
    put16(out + ip, back ? 80 : 1000 + connection), put16(out + ip + 2, back ? 1000 + connection : 80);
    put32(out + ip + 4, seq), put32(out + ip + 8, draw(4000));
    out[ip + 12] = (unsigned char)((20 + options) / 4 << 4);
    out[ip + 13] = flags[draw(8)];
    put16(out + ip + 14, 1000);
    if (options == 12) {
        out[ip + 20] = out[ip + 21] = 1, out[ip + 22] = 8, out[ip + 23] = 10;
        put32(out + ip + 24, draw(4000));
    } else {
        for (size_t i = 0; i < options; i++)
            out[ip + 20 + i] = (unsigned char)draw(draw(2) == 0 ? 12 : 256);
    }
    for (uint32_t i = 0; i < length; i++)
        out[ip + 20 + options + i] = content(seq + i);
    if (draw(64) == 0 && length > 0) {
        out[n - 1] ^= 1;
        forged = 1;
    }
    checksums(out, n);
    if (draw(16) == 0)
        out[draw((uint32_t)n)] ^= (unsigned char)(1 << draw(8));
    if (draw(64) == 0) {
        for (size_t i = 0; i < n; i++)
            out[i] = (unsigned char)draw(256);
    }
    return draw(32) == 0 ? 1 + draw((uint32_t)n) : n;
}

static void check(const unsigned char *packet, size_t n)
{
    size_t ip = header(packet), tcp = ip + (packet[ip + 12] >> 4) * 4u;
    if (tcp_sum(packet, n) != 0xffff || (ip == 20 && fold(add(0, packet, 20)) != 0xffff))
        fail("a wrong checksum");
    if (tcp > n)
        fail("a wrong length");
    if (tcp == n)
        acks++;
    else
        repeats++;
    for (size_t i = tcp; i < n && !forged; i++)
        if (packet[i] != content(get32(packet + ip + 4) + (uint32_t)(i - tcp)))
            fail("data that no endpoint has sent");
}

static void poll(anabranch_cache *cache, const anabranch_cache_config *config)
{
    size_t size = anabranch_cache_longest(cache);
    unsigned char *out = malloc(size);
    int n, turns = 0;
    if (anabranch_cache_poll(cache, now, out, size - 1) != ANABRANCH_CACHE_ARGUMENT)
        fail("a short buffer");
    while ((n = anabranch_cache_poll(cache, now, out, size)) != 0) {
        if (n < 0 || (size_t)n > size || ++turns > config->segments + 2 * config->connections)
            fail("no end of packets");
        check(out, (size_t)n);
    }
    free(out);
}

static void one_cache(void)
{
    anabranch_cache_config config;
    anabranch_cache_counters counters;
    anabranch_cache *cache;
    unsigned char scratch[LONGEST + 150], *memory, *last = malloc(1);
    size_t needed, skew = draw(8), length = 1;
    uint64_t due;

    last[0] = 0x45;
    forged = 0;
    anabranch_cache_defaults(&config);
    if (draw(3) != 0) {
        config.segment = (uint16_t)(16 + draw(LONGEST - 16));
        config.segments = (uint8_t)(1 + draw(8));
        config.connections = (uint8_t)(1 + draw(8));
    }
    needed = anabranch_cache_memory(&config);
    memory = malloc(skew + needed + GUARD);
    memset(memory, 0x5a, skew + needed + GUARD);
    if (needed == 0 || anabranch_cache_init(&cache, memory + skew, needed - 1, &config) != ANABRANCH_CACHE_MEMORY)
        fail("too little memory");
    if (anabranch_cache_init(&cache, memory + skew, needed, &config) != ANABRANCH_CACHE_OK)
        fail("no cache");
    for (int i = 0; i < 3000; i++) {
        size_t n = compose(scratch, config.segment);
        unsigned char *packet = malloc(n);
        int answer = ANABRANCH_CACHE_OK;
        memcpy(packet, scratch, n);
        switch (draw(8)) {
        case 0:
            answer = anabranch_cache_lost(cache, now, last, length);
            break;
        case 1:
            answer = anabranch_cache_delivered(cache, now, last, length);
            break;
        case 2:
            answer = anabranch_cache_timeout(cache, now);
            break;
        default:
            answer = anabranch_cache_packet(cache, now, packet, n);
            holds += answer == ANABRANCH_CACHE_HOLD;
            if (answer != ANABRANCH_CACHE_FORWARD && answer != ANABRANCH_CACHE_HOLD)
                fail("no answer");
            answer = ANABRANCH_CACHE_OK;
        }
        if (answer != ANABRANCH_CACHE_OK || memcmp(packet, scratch, n) != 0)
            fail("an error, or a changed packet");
        poll(cache, &config);
        /* An answered time-out is no longer due. */
        if (anabranch_cache_next_timeout(cache, &due) == 1 && due <= now) {
            anabranch_cache_timeout(cache, now);
            poll(cache, &config);
            if (anabranch_cache_next_timeout(cache, &due) == 1 && due <= now)
                fail("a time-out that stays");
        }
        free(last);
        last = packet, length = n;
        now += (uint64_t)draw(3) * (draw(4) == 0 ? 700000000u : draw(20000000));
    }
    anabranch_cache_counters_of(cache, &counters);
    if (counters.connections > config.connections || counters.segments == 0 || counters.unread == 0)
        fail("wrong counters");
    for (size_t i = 0; i < skew + needed + GUARD; i++)
        if ((i < skew || i >= skew + needed) && memory[i] != 0x5a)
            fail("written outside of the memory");
    free(last);
    free(memory);
}

int main(int argc, char **argv)
{
    anabranch_cache_config config, wrong;
    anabranch_cache *cache;
    unsigned char memory[64];
    long rounds = argc > 1 ? atol(argv[1]) : 10;
    seed = argc > 2 ? (uint64_t)atol(argv[2]) * 0x9e3779b97f4a7c15u + 1 : 1;
    anabranch_cache_defaults(&config);
    if (anabranch_cache_version() != ANABRANCH_CACHE_VERSION || anabranch_cache_memory(NULL) != 0)
        fail("another version");
    if (anabranch_cache_packet(NULL, 0, memory, 1) != ANABRANCH_CACHE_ARGUMENT ||
        anabranch_cache_init(&cache, NULL, 9999, &config) != ANABRANCH_CACHE_ARGUMENT ||
        anabranch_cache_init(NULL, memory, 9999, &config) != ANABRANCH_CACHE_ARGUMENT)
        fail("a null pointer");
    for (int i = 0; i < 6; i++) {
        wrong = config;
        switch (i) {
        case 0: wrong.segment = 15; break;
        case 1: wrong.segments = 65; break;
        case 2: wrong.connections = 9; break;
        case 3: wrong.idle_ms = 999; break;
        case 4: wrong.least_wait_ms = 0; break;
        default: wrong.repeats = 0;
        }
        if (anabranch_cache_memory(&wrong) != 0 ||
            anabranch_cache_init(&cache, memory, sizeof memory, &wrong) != ANABRANCH_CACHE_ARGUMENT)
            fail("a wrong configuration");
    }
    while (rounds-- > 0)
        one_cache();
    if (repeats == 0 || acks == 0 || holds == 0)
        fail("the packets do not reach the cache");
    printf("memory %zu, %lu segments repeated, %lu acknowledgements, %lu packets held\n", anabranch_cache_memory(&config), repeats,
           acks, holds);
    return 0;
}
