/* anabranch_cache.h: Distributed TCP Caching for forwarders that are not written in Rust.
 *
 * A cache in a forwarder stores TCP segments of other hosts and repeats lost ones itself, so that a
 * loss costs one more hop and not a transmission over the whole path. The endpoints need no change.
 * The library is sans-IO. It has no clock, no threads and no files, and it does not allocate outside
 * of the memory that anabranch_cache_init gets.
 *
 *     1. Pass each packet that the forwarder routes to anabranch_cache_packet, in both directions of
 *        a connection. Send it if the answer is ANABRANCH_CACHE_FORWARD; drop it if the answer is
 *        ANABRANCH_CACHE_HOLD.
 *     2. If the link layer knows whether the next hop has received a packet, report it with
 *        anabranch_cache_delivered or anabranch_cache_lost. Without reports the cache relies on
 *        time-outs.
 *     3. After each call, send what anabranch_cache_poll writes until it returns 0, and ask
 *        anabranch_cache_next_timeout when to call anabranch_cache_timeout.
 *
 * docs/reference/embedded-cache.md describes the use; examples/forward.c is a program. Times are
 * nanoseconds of a clock that never goes back, from any start. Only one thread at a time may call
 * the library, for all caches together. */
#ifndef ANABRANCH_CACHE_H
#define ANABRANCH_CACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compare with anabranch_cache_version. */
#define ANABRANCH_CACHE_VERSION 1

/* Results of calls. Errors are negative. */
enum {
    ANABRANCH_CACHE_OK = 0,
    /* Forward the packet unchanged. */
    ANABRANCH_CACHE_FORWARD = 1,
    /* Do not forward the packet: the cache has sent it recently, or its receiver has it. To the
     * previous hop the packet counts as received. */
    ANABRANCH_CACHE_HOLD = 2,
    /* A pointer is null, a packet is empty, a buffer is too short, or a configuration is out of
     * range. */
    ANABRANCH_CACHE_ARGUMENT = -1,
    /* Too little memory: see anabranch_cache_memory. */
    ANABRANCH_CACHE_MEMORY = -2
};

typedef struct anabranch_cache_config {
    /* A connection without packets for this number of milliseconds is forgotten; at least 1000. */
    uint32_t idle_ms;
    /* Least number of milliseconds after which a segment is repeated, at least 1. It must exceed
     * the time that the link layer takes to report, its own repetitions included. */
    uint32_t least_wait_ms;
    /* Longest payload of a cached segment in bytes, 16 to 1500. Longer segments pass unread. */
    uint16_t segment;
    /* Number of segments that can be cached, of all connections together: 1 to 64. */
    uint8_t segments;
    /* Number of connections with state, 1 to 8. Segments of further connections are cached and
     * repeated too, without a measured round-trip time. */
    uint8_t connections;
    /* Number of times that one segment is repeated without a sign of success, at least 1. After
     * that the endpoints have to repeat it. */
    uint8_t repeats;
} anabranch_cache_config;

/* Each number wraps at 2^32. */
typedef struct anabranch_cache_counters {
    /* Packets that were forwarded unread: see anabranch_cache_packet. */
    uint32_t unread;
    /* TCP segments that were read. */
    uint32_t segments;
    /* Segments that were stored. */
    uint32_t cached;
    /* Segments with data that were not stored, because all places were in use. */
    uint32_t not_cached;
    /* Segments that were repeated: losses that the endpoints need not repair. */
    uint32_t repeated;
    /* Acknowledgements that were repeated. */
    uint32_t acks_repeated;
    /* Packets that were held back. */
    uint32_t held;
    /* Segments that were left to the endpoints after so many repetitions as configured. */
    uint32_t given_up;
    /* Connections with state at this moment. */
    uint32_t connections;
} anabranch_cache_counters;

typedef struct anabranch_cache anabranch_cache;

/* Defined by the program: called if the library detects an internal error. Must not return. */
void anabranch_cache_panicked(void);

uint32_t anabranch_cache_version(void);

/* Sets defaults: one segment of 128 bytes, one connection with state, repetition after 100 ms or
 * more, 8 repetitions, idle time of 5 minutes. */
void anabranch_cache_defaults(anabranch_cache_config *config);

/* Returns the number of bytes of memory that a cache needs; 0 if the configuration is invalid. */
size_t anabranch_cache_memory(const anabranch_cache_config *config);

/* Creates a cache in size bytes of memory, which belong to the cache until the program stops using
 * it. The memory need not be aligned or cleared. */
int anabranch_cache_init(anabranch_cache **cache, void *memory, size_t size, const anabranch_cache_config *config);

/* Returns the size of the buffer that anabranch_cache_poll needs: the longest payload and 100
 * bytes. */
size_t anabranch_cache_longest(anabranch_cache *cache);

/* A packet of n bytes is about to be forwarded: IPv4 or IPv6, from its first byte. Returns
 * ANABRANCH_CACHE_FORWARD or ANABRANCH_CACHE_HOLD, or an error. The packet is not changed, and the
 * cache keeps no pointer to it.
 *
 * Packets that a repetition could not reproduce are forwarded unread: other protocols than TCP,
 * fragments, extension headers, IPv4 options, TCP options other than MSS, window scale, SACK and
 * timestamps, urgent data, payloads longer than configured, and wrong checksums. */
int anabranch_cache_packet(anabranch_cache *cache, uint64_t now, const void *packet, size_t n);

/* The next hop has received a packet that was forwarded or repeated. The packet is complete. */
int anabranch_cache_delivered(anabranch_cache *cache, uint64_t now, const void *packet, size_t n);

/* The next hop has probably not received a packet that was forwarded or repeated: the link layer
 * has given up. The packet is complete, because the cache may store it now. */
int anabranch_cache_lost(anabranch_cache *cache, uint64_t now, const void *packet, size_t n);

/* Time has passed. A call that is too early does no harm. */
int anabranch_cache_timeout(anabranch_cache *cache, uint64_t now);

/* Returns 1 and sets *at to the time at which anabranch_cache_timeout is to be called; 0 if no call
 * is needed. */
int anabranch_cache_next_timeout(anabranch_cache *cache, uint64_t *at);

/* Writes the next packet that the cache sends itself and returns its length; 0 if there is none.
 * size must be at least anabranch_cache_longest. Route the packet like any other, and report its
 * delivery, but do not pass it to anabranch_cache_packet of the same cache. */
int anabranch_cache_poll(anabranch_cache *cache, uint64_t now, void *packet, size_t size);

void anabranch_cache_counters_of(anabranch_cache *cache, anabranch_cache_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
