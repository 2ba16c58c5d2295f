/* A node among enemies: random and not so random octets on many connections, straight into the library, in a heap that is no
 * larger than anabranch_node_memory says: hostile ROUNDS SEED. Nothing may be written outside of its memory, and the node may
 * never have to begin anew. With keys a third argument names a recording of what honest senders say (tests/it/noise.rs), which is
 * repeated, mixed, cut off and changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anabranch_node.h"

enum { GUARD = 64, READ = 512 };

static unsigned char memory[64 * 1024];
static uint64_t seed, now;
static uint32_t streams[16];
static int count;
static uint64_t delivered, taken, refused, begun, aborted;
/* Octets of the present file that the program has, if one is coming. */
static uint64_t has;
static int coming;
static anabranch_node_gateway gateways[3];
static uint64_t ended;
/* END was polled, and not all about it. */
static int ending;

#ifdef NOISE
/* The recording: the public keys of a sender and of a signer, and streams. */
enum { RECORDED = 8, LENGTH = 3000, SEQUENCE = 3, UNRECORDED = -1 };
static unsigned char recording[32 * 1024];
static const unsigned char *recorded[RECORDED];
static size_t lengths[RECORDED];
/* What is repeated on a stream, and how far it is. */
static struct {
    uint32_t stream;
    int what;
    size_t at;
} repeats[16];
/* The octets of the present file that the program claimed to have are right. */
static int honest;
static uint8_t secret[32], shared[32];
static anabranch_node_keys keys = {secret, shared, recording, 1, NULL};
/* The device that the recorded manifests are for; some nodes are one. */
static anabranch_node_device device = {.component = (const uint8_t *)"firmware", .signers = recording + 32, .envelope = 384,
                                       .component_length = 8, .signer_count = 1};
static anabranch_node_highest highest;
static int is_device;

/* Always the same, so that a recording fits. */
int anabranch_node_entropy(void *octets, size_t n)
{
    memset(octets, 77, n);
    return 0;
}
#endif

void anabranch_node_panicked(void)
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

#ifdef NOISE
static void load(const char *path)
{
    FILE *in = path == NULL ? NULL : fopen(path, "rb");
    const unsigned char *at = recording + 64;
    if (in == NULL || fread(recording, 1, sizeof recording, in) < 64)
        fail("no recording");
    fclose(in);
    for (int i = 0; i < RECORDED; i++) {
        lengths[i] = (size_t)at[0] << 8 | at[1];
        recorded[i] = at + 2;
        at += 2 + lengths[i];
    }
    memset(secret, 3, sizeof secret);
    memset(shared, 5, sizeof shared);
    memset(device.vendor, 1, sizeof device.vendor);
    memset(device.class_id, 2, sizeof device.class_id);
}

/* The next octets of what is repeated on the stream, now and then changed; 0 if nothing is. */
static size_t repeat(unsigned char *out, uint32_t stream)
{
    size_t n;
    int i = 0;
    while (i < 16 && (repeats[i].stream != stream || repeats[i].what == UNRECORDED))
        i++;
    if (i == 16)
        return 0;
    n = lengths[repeats[i].what] - repeats[i].at;
    if (n > READ)
        n = READ;
    if (draw(8) == 0 && n > 0)
        n = draw((uint32_t)n) + 1;
    memcpy(out, recorded[repeats[i].what] + repeats[i].at, n);
    repeats[i].at += n;
    if (n > 0 && draw(32) == 0)
        out[draw((uint32_t)n)] ^= (unsigned char)(1 << draw(8));
    return n;
}

/* Often a new stream repeats something. */
static void begin_repeating(uint32_t stream)
{
    static int next;
    repeats[next].stream = stream;
    repeats[next].at = 0;
    repeats[next].what = draw(4) == 0 ? UNRECORDED : (int)draw(RECORDED);
    next = (next + 1) % 16;
}
#endif

static void forget(uint32_t stream)
{
    for (int i = 0; i < count; i++)
        if (streams[i] == stream)
            streams[i] = streams[--count];
}

/* Takes what is offered, or refuses, or leaves it for later; with some octets of it, or none. */
static void answer(anabranch_node *node)
{
    static const unsigned char octets[64];
    anabranch_node_offer offer;
    size_t some = draw(2) * draw(sizeof octets);
    if (!anabranch_node_offered(node, &offer))
        return;
    if (draw(8) == 0)
        return;
    if (draw(8) == 0) {
        if (anabranch_node_refuse(node, now, 99, 0) != ANABRANCH_NODE_ARGUMENT ||
            anabranch_node_refuse(node, now, 0x6304, 0) != ANABRANCH_NODE_ARGUMENT)
            fail("a reason that is none");
        if (anabranch_node_refuse(node, now, ANABRANCH_NODE_REFUSE_UNWANTED, 0) != ANABRANCH_NODE_OK)
            fail("not refused");
        return;
    }
    has = 0;
#ifdef NOISE
    /* The first octet of the file is 0. */
    honest = some <= 1;
    if ((offer.manifest != NULL) != is_device || offer.sequence != (is_device ? SEQUENCE : 0))
        fail("no manifest of this device");
    if (is_device && (offer.length != LENGTH || offer.manifest_length > device.envelope || offer.manifest[0] != 0xd8))
        fail("not the manifest of the file");
    if (anabranch_node_signed_by(node, secret) != 0)
        fail("nobody has signed it");
#endif
    if (anabranch_node_have(node, octets, some) == ANABRANCH_NODE_OK)
        has = some;
    if (anabranch_node_accept(node, now) != ANABRANCH_NODE_OK)
        fail("not accepted");
    coming = 1, begun++;
}

static void carry_out(anabranch_node *node)
{
    anabranch_node_effect effect;
    while (anabranch_node_poll(node, &effect)) {
        switch (effect.kind) {
        case ANABRANCH_NODE_RESET:
            forget(effect.stream);
            break;
        case ANABRANCH_NODE_DELIVER:
            if (!coming || effect.offset != has)
                fail("octets out of place");
#ifdef NOISE
            for (size_t i = 0; i < effect.n; i++)
                if (effect.octets[i] != (unsigned char)((has + i) * 7))
                    fail("octets that no sender has sent");
#endif
            has += effect.n, delivered += effect.n;
            break;
        case ANABRANCH_NODE_BEGIN:
            answer(node);
            continue;
        case ANABRANCH_NODE_ABORT:
            if (!coming)
                fail("no file was coming");
            coming = 0, ending = 0, aborted++;
            break;
        case ANABRANCH_NODE_END:
#ifdef NOISE
            if (!coming || !honest || has != LENGTH)
                fail("a file that is none");
            /* Giving up is possible until all about the end was polled. */
            ended++, ending = 1;
            if (anabranch_node_highest_of(node, &highest) != is_device || (is_device && highest.sequence != SEQUENCE))
                fail("not the number of the file");
#else
            fail("a file that is none");
#endif
            break;
        default:
            if (effect.kind < ANABRANCH_NODE_WRITE || effect.kind > ANABRANCH_NODE_SHUTDOWN)
                fail("a strange effect");
        }
        /* Whatever is called now does nothing, but for giving up. */
        if (draw(16) == 0 && anabranch_node_timeout(node, now) != ANABRANCH_NODE_POLL)
            fail("a call between effects");
        if (draw(200) == 0 && anabranch_node_abort(node, now) != (coming ? ANABRANCH_NODE_OK : ANABRANCH_NODE_OFFER))
            fail("not given up");
    }
    coming &= !ending, ending = 0;
}

/* Octets of a stream: well-formed beginnings, and chunks of one octet here and there, garbage sometimes. */
static size_t compose(unsigned char *out, int style, uint64_t next)
{
    /* 65,536 octets whose digest no octets have. */
    static const unsigned char request[47] = {0x14, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0x80, 1, 0, 0};
    static const unsigned char join[] = {0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 3};
    size_t n = 0;
    switch (style) {
    case 0:
        memcpy(out, request, sizeof request);
        out[9] = (unsigned char)draw(3);
        /* Sometimes so few that they come. */
        if (draw(4) == 0)
            out[11] = 0, out[12] = (unsigned char)draw(3);
        return sizeof request;
    case 1:
        memcpy(out, join, sizeof join);
        out[8] = (unsigned char)draw(3);
        return sizeof join;
    case 2: /* Chunks of one octet, each apart from the others. */
        for (uint32_t at = (uint32_t)next + draw(64), i = 0; i < 80 && n + 8 < READ; i++, at += 2 + draw(100)) {
            out[n++] = 0x71, out[n++] = (unsigned char)(0x40 | (at >> 8 & 0x3f)), out[n++] = (unsigned char)at;
            out[n++] = 1, out[n++] = 0xee;
        }
        return n;
    case 3: /* The file's beginning, in chunks of its own. */
        out[n++] = 0x71, out[n++] = 0x80, out[n++] = 0;
        out[n++] = (unsigned char)(next >> 8), out[n++] = (unsigned char)next, out[n++] = 0x41, out[n++] = 0;
        while (n < 7 + 256)
            out[n++] = 0x55;
        return n;
    case 4: /* The table of a node, never to its end. */
        out[n++] = 0x2f, out[n++] = 1;
        while (n < 1 + draw(80))
            out[n++] = 1;
        return n;
    case 5:
        out[n++] = 0x90;
        return n;
    default:
        for (size_t length = 1 + draw(READ); n < length; n++)
            out[n] = (unsigned char)draw(256);
        return n;
    }
}

static void step(anabranch_node *node)
{
    unsigned char octets[READ + 400];
    uint32_t stream;
    now += draw(50) * UINT64_C(1000000);
    if (count == 0 || draw(8) == 0) {
        int said = anabranch_node_accepted(node, now, &stream);
        if (said == ANABRANCH_NODE_OK) {
            streams[count++] = stream;
#ifdef NOISE
            begin_repeating(stream);
#endif
        }
        else if (said == ANABRANCH_NODE_FULL)
            refused++;
        else
            fail("not accepted");
        return;
    }
    stream = draw(20) == 0 ? draw(1000) : streams[draw((uint32_t)count)];
    switch (draw(24)) {
    case 0:
        anabranch_node_ended(node, now, stream);
        return;
    case 1:
        if (anabranch_node_closed(node, now, stream) == ANABRANCH_NODE_OK)
            forget(stream);
        return;
    case 2:
        anabranch_node_timeout(node, now);
        return;
    case 3:
        answer(node);
        return;
    default: {
        /* Cancelling ends what is of interest: seldom. */
        int style = (int)draw(8), few = draw(4) == 0;
        size_t n = 0, at = 0;
#ifdef NOISE
        n = repeat(octets, stream);
#endif
        if (n == 0)
            n = compose(octets, style == 5 && draw(8) != 0 ? 2 : style, anabranch_node_delivered(node));
        while (at < n) {
            size_t some = few ? 1 + draw(3) : n - at;
            int said = anabranch_node_data(node, now, stream, octets + at, some < n - at ? some : n - at);
            carry_out(node);
            if (said < 0 && said != ANABRANCH_NODE_STREAM)
                fail("no room for octets");
            if (said <= 0)
                return;
            at += (size_t)said, taken += (uint64_t)said;
        }
    }
    }
}

static void one(unsigned connections, unsigned pieces)
{
    anabranch_node_config config;
    anabranch_node_counters counters;
    anabranch_node *node;
    unsigned char *begin = memory + GUARD + draw(16);
    size_t size;

    anabranch_node_defaults(&config);
    config.connections = (uint8_t)connections;
    config.pieces = (uint16_t)pieces;
    config.gateway_count = 3;
    config.gateways = gateways;
#ifdef NOISE
    config.keys = &keys;
    is_device = (int)draw(2);
    if (is_device) {
        config.device = &device;
        if (anabranch_node_init(&node, begin, sizeof memory / 2, &config) != ANABRANCH_NODE_ARGUMENT)
            fail("a device without a highest number");
        highest.known = 0;
        config.highest = &highest;
    }
    for (int i = 0; i < 16; i++)
        repeats[i].what = UNRECORDED;
#endif
    size = anabranch_node_memory(&config);
    if (size == 0 || size + 2 * GUARD + 16 > sizeof memory)
        fail("too large");
    memset(memory, 0xa5, sizeof memory);
    if (anabranch_node_init(&node, begin, size - 1, &config) != ANABRANCH_NODE_MEMORY)
        fail("made in too little memory");
    if (anabranch_node_init(&node, begin, size, &config) != ANABRANCH_NODE_OK)
        fail("not made");
    count = 0, now = 0, coming = 0;
    for (int i = 0; i < 3000; i++) {
        step(node);
        carry_out(node);
    }
    anabranch_node_counters_of(node, &counters);
    for (size_t i = 0; i < sizeof memory; i++)
        if ((memory + i < begin || memory + i >= begin + size) && memory[i] != 0xa5)
            fail("something outside was written");
    if (counters.restarts != 0)
        fail("memory was short");
    if (anabranch_node_peak(node) > size)
        fail("more than there is");
    printf("connections %u pieces %u memory %zu heap_peak %zu rejected %llu refused %llu\n", connections, pieces, size,
           anabranch_node_peak(node), (unsigned long long)counters.rejected, (unsigned long long)counters.refused);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
#ifdef NOISE
    load(argc > 3 ? argv[3] : NULL);
#endif
    for (int i = 0; i < 3; i++) {
        gateways[i].hops = 1;
        gateways[i].shared_channel = (uint8_t)(i % 2);
    }
    for (int i = 0; i < rounds; i++)
        one(1 + draw(8), 1 + draw(64));
    printf("octets taken %llu, delivered %llu, connections refused %llu, files begun %llu, ended %llu, aborted %llu\n",
           (unsigned long long)taken, (unsigned long long)delivered, (unsigned long long)refused,
           (unsigned long long)begun, (unsigned long long)ended, (unsigned long long)aborted);
    if (delivered == 0 || aborted == 0)
        fail("nothing was put to the test");
#ifdef NOISE
    if (ended == 0)
        fail("no honest sender was heard");
#endif
    return 0;
}
