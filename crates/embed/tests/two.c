/* Two nodes in one program with another Rust library, which has std and its own allocator: each node receives a file of its own,
 * octet by octet in turns, and the other library works between any two calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anabranch_node.h"

/* The other library's: allocates, panics, catches that, and returns the sum of the numbers below n. */
unsigned other_sum(unsigned n);

/* FIPS 180-2, appendices B.1 and B.2: the messages and their digests. */
static const char *const files[2] = {"abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
static const unsigned char digests[2][32] = {
    {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
     0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad},
    {0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8, 0xe5, 0xc0, 0x26, 0x93, 0x0c, 0x3e, 0x60, 0x39,
     0xa3, 0x3c, 0xe4, 0x59, 0x64, 0xff, 0x21, 0x67, 0xf6, 0xec, 0xed, 0xd4, 0x19, 0xdb, 0x06, 0xc1}};

static unsigned char memory[2][16 * 1024];
static anabranch_node *nodes[2];
static char got[2][64];
static int ends[2];

void anabranch_node_panicked(void) { abort(); }

static void fail(const char *why)
{
    puts(why);
    exit(1);
}

static void carry_out(int i)
{
    anabranch_node_effect effect;
    if (other_sum(100) != 4950)
        fail("the other library is wrong");
    while (anabranch_node_poll(nodes[i], &effect)) {
        if (other_sum(10) != 45)
            fail("the other library is wrong");
        if (effect.kind == ANABRANCH_NODE_BEGIN && anabranch_node_accept(nodes[i], 0) != ANABRANCH_NODE_OK)
            fail("not accepted");
        if (effect.kind == ANABRANCH_NODE_DELIVER)
            memcpy(got[i] + effect.offset, effect.octets, effect.n);
        if (effect.kind == ANABRANCH_NODE_END)
            ends[i]++;
    }
}

static uint32_t connect_to(int i)
{
    uint32_t stream;
    if (anabranch_node_accepted(nodes[i], 0, &stream) != ANABRANCH_NODE_OK)
        fail("not accepted");
    carry_out(i);
    return stream;
}

int main(void)
{
    static const unsigned char join[] = {0x50, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0x71, 0};
    anabranch_node_config config;
    unsigned char says[2][2][128];
    size_t n[2][2];
    uint32_t streams[2][2];

    anabranch_node_defaults(&config);
    for (int i = 0; i < 2; i++) {
        unsigned char length = (unsigned char)strlen(files[i]);
        unsigned char request[44] = {0x14, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0};
        request[10] = length;
        memcpy(request + 12, digests[i], 32);
        memcpy(says[i][0], request, n[i][0] = sizeof request);
        memcpy(says[i][1], join, sizeof join);
        says[i][1][sizeof join] = length;
        memcpy(says[i][1] + sizeof join + 1, files[i], length);
        n[i][1] = sizeof join + 1 + length;
        if (anabranch_node_init(&nodes[i], memory[i], sizeof memory[i], &config) != ANABRANCH_NODE_OK)
            fail("not made");
    }
    for (int what = 0; what < 2; what++) {
        for (int i = 0; i < 2; i++)
            streams[i][what] = connect_to(i);
        for (size_t at = 0; at < sizeof says[0][0]; at++)
            for (int i = 0; i < 2; i++)
                if (at < n[i][what]) {
                    if (anabranch_node_data(nodes[i], 0, streams[i][what], &says[i][what][at], 1) != 1)
                        fail("not taken");
                    carry_out(i);
                }
    }
    for (int i = 0; i < 2; i++)
        if (ends[i] != 1 || strcmp(got[i], files[i]) != 0)
            fail("not the file");
    return 0;
}
