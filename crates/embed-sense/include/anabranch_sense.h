/* anabranch_sense.h: a sender of RDCA over UDP (docs/reference/sense-protocol.md) for programs with
 * a UDP stack, a clock, random numbers and little memory.
 *
 * The program writes records; `anabranch sink` stores each of them once and in order. The library is
 * sans-IO. It has no clock, no threads and no files, and it does not allocate outside of the memory
 * that anabranch_sense_init gets.
 *
 *     1. Report what happens: anabranch_sense_write, anabranch_sense_datagram (one has arrived from
 *        the sink's address), anabranch_sense_timeout.
 *     2. After each call, send to the sink what anabranch_sense_poll returns until it returns 0,
 *        handle the events of anabranch_sense_event_of until it returns 0, and ask
 *        anabranch_sense_next_timeout when to call anabranch_sense_timeout.
 *
 * docs/reference/embedded-sense.md describes the use; examples/send.c is a program. Times are
 * nanoseconds of a clock that never goes back, from any start. Only one thread at a time may call
 * the library, for all senders together. */
#ifndef ANABRANCH_SENSE_H
#define ANABRANCH_SENSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compare with anabranch_sense_version. */
#define ANABRANCH_SENSE_VERSION 1

/* Results of calls. Errors are negative. */
enum {
    ANABRANCH_SENSE_OK = 0,
    /* A pointer is null, or a value is out of range. */
    ANABRANCH_SENSE_ARGUMENT = -1,
    /* Too little memory: see anabranch_sense_memory. */
    ANABRANCH_SENSE_MEMORY = -2,
    /* anabranch_sense_entropy has failed. */
    ANABRANCH_SENSE_ENTROPY = -3,
    /* The queue is full. ANABRANCH_SENSE_WRITABLE follows. */
    ANABRANCH_SENSE_FULL = -4,
    /* The stream is closed or closing. */
    ANABRANCH_SENSE_CLOSED = -5
};

typedef struct anabranch_sense_config {
    /* Name of the sender: 1 to 32 letters, digits, '.', '_' or '-', and a zero byte. A sink knows a
     * sender by its key and its name. */
    const char *name;
    /* A key of 32 random bytes that only this sender, or a group of senders, and the sink have; null
     * without encryption. */
    const uint8_t *shared;
    /* Longest payload of a record in bytes, 1 to 1024. One record is one datagram of at most 52
     * bytes more. */
    uint16_t payload;
    /* Number of records that are kept until the sink has stored them, 4 to 64. A quarter of them may
     * wait to be sent. */
    uint8_t packets;
    /* 1 if the sender may run without a key: then any host on the way can read, forge and suppress
     * records. */
    uint8_t insecure;
} anabranch_sense_config;

/* Kinds of events. Events of one kind are joined until they are polled. */
enum {
    /* A session with the sink has begun: the first one, or after a silence or a restart. */
    ANABRANCH_SENSE_CONNECTED = 1,
    /* The sink has stored all records before the number `confirmed`. */
    ANABRANCH_SENSE_CONFIRMED = 2,
    /* There is room for records again after ANABRANCH_SENSE_FULL. */
    ANABRANCH_SENSE_WRITABLE = 3,
    /* The stream has ended. The sink has stored all records if `complete` is 1; otherwise those from
     * `confirmed` to before `written` are not known to be stored. The last event. */
    ANABRANCH_SENSE_ENDED = 4
};

typedef struct anabranch_sense_event {
    /* One of the four kinds. */
    uint32_t kind;
    uint32_t complete;
    /* Number after the last record that the sink has stored. */
    uint64_t confirmed;
    /* Number after the last record that was written. */
    uint64_t written;
} anabranch_sense_event;

/* Counters wrap at 2^32; the last three are present values. */
typedef struct anabranch_sense_counters {
    /* Records sent for the first time. */
    uint32_t records;
    /* Records sent again. */
    uint32_t repeated;
    /* Control packets sent. */
    uint32_t control;
    /* Datagrams dropped because they are of no known type, session or stream. */
    uint32_t strange;
    /* Datagrams dropped because they are forged, repeated or too old. */
    uint32_t rejected;
    /* Handshakes begun. */
    uint32_t handshakes;
    /* Records in the queue. */
    uint32_t queued;
    /* Rate in bytes per second. */
    uint32_t rate;
    /* Round-trip time in microseconds. */
    uint32_t rtt_us;
} anabranch_sense_counters;

typedef struct anabranch_sense anabranch_sense;

/* Defined by the program: called if the library detects an internal error. Must not return. */
void anabranch_sense_panicked(void);

/* Defined by the program: fills n bytes with unpredictable random numbers, from hardware or from a
 * generator that was seeded from hardware, and returns 0; anything else if it cannot. The same bytes
 * must never come twice, also after a restart: otherwise keys and packet numbers may repeat. */
int anabranch_sense_entropy(void *octets, size_t n);

uint32_t anabranch_sense_version(void);

/* Sets defaults: 16 records of at most 100 bytes; no name, no key, not insecure. */
void anabranch_sense_defaults(anabranch_sense_config *config);

/* Returns the number of bytes of memory that a sender needs; 0 if payload or packets is out of
 * range. */
size_t anabranch_sense_memory(const anabranch_sense_config *config);

/* Returns the length of the longest datagram that the sender sends in bytes: 52 more than the
 * longest payload, and at least 105. 0 if payload or packets is out of range. */
size_t anabranch_sense_longest(const anabranch_sense_config *config);

/* Creates a sender in size bytes of memory, which belong to the sender until the program stops using
 * it, and begins a handshake. The memory need not be aligned or cleared. Name and key are copied. */
int anabranch_sense_init(anabranch_sense **sense, uint64_t now, void *memory, size_t size,
                         const anabranch_sense_config *config);

/* Queues a record of n bytes, which are copied. created is the time of its creation in milliseconds
 * since 1970-01-01 UTC, or 0 if that is unknown. Stores the number of the record in *number, unless
 * number is null: 0 for the first record, then one more for each. */
int anabranch_sense_write(anabranch_sense *sense, uint64_t now, uint64_t created, const void *octets, size_t n,
                          uint64_t *number);

/* No records follow. ANABRANCH_SENSE_ENDED comes when the sink has stored all; the program may also
 * stop earlier. */
int anabranch_sense_close(anabranch_sense *sense, uint64_t now);

/* A datagram of n bytes has arrived from the sink's address. */
int anabranch_sense_datagram(anabranch_sense *sense, uint64_t now, const void *octets, size_t n);

/* The network has no path to the sink: a route error, or a link that is down. Optional: with this
 * report the sender pauses at once and not after a silence. */
int anabranch_sense_path_lost(anabranch_sense *sense, uint64_t now);

/* Time has passed. A call that is too early does no harm. */
int anabranch_sense_timeout(anabranch_sense *sense, uint64_t now);

/* Returns 1 and sets *at to the time at which anabranch_sense_timeout is to be called; 0 if no call
 * is needed. */
int anabranch_sense_next_timeout(anabranch_sense *sense, uint64_t *at);

/* Returns the length of the next datagram to send and sets *octets to it; 0 if there is none. The
 * bytes are valid until the next call. */
int anabranch_sense_poll(anabranch_sense *sense, uint64_t now, const uint8_t **octets);

/* Returns 1 and sets *event to the next event; 0 if there is none. */
int anabranch_sense_event_of(anabranch_sense *sense, anabranch_sense_event *event);

void anabranch_sense_counters_of(anabranch_sense *sense, anabranch_sense_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
