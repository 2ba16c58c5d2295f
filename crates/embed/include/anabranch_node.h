/* The receiver of SET (docs/reference/set-protocol.md) for programs with a TCP stack, a clock, and little memory.
 *
 * The library does no input and no output. The program listens on a TCP port, tells the node what its connections do, and
 * does what the node wants. The order of calls, for ever:
 *
 *     anabranch_node_accepted, _data, _ended, _closed or _timeout     what has happened: one of them
 *     anabranch_node_poll until it returns 0                          what to do about it
 *     anabranch_node_next_timeout                                     when to call _timeout
 *
 * A file begins with ANABRANCH_NODE_BEGIN, which the program answers with anabranch_node_accept or anabranch_node_refuse, and
 * ends with ANABRANCH_NODE_END or ANABRANCH_NODE_ABORT. Octets that were delivered are not a file before END: until then
 * they may be part of a file, of another file than announced, or forged.
 *
 * Times are nanoseconds since a beginning of the program's choice. All that a node keeps is in the memory that it was given;
 * nodes share nothing. One thread at a time may be in the library, whichever node it calls.
 *
 * Nothing that comes from outside makes the library fail: it is accepted, or its connection is reset and counted.
 */
#ifndef ANABRANCH_NODE_H
#define ANABRANCH_NODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What anabranch_node_version returns, if header and library belong together. */
#define ANABRANCH_NODE_VERSION 3

enum {
    /* Done. */
    ANABRANCH_NODE_OK = 0,
    /* A null pointer, or a configuration out of range. */
    ANABRANCH_NODE_ARGUMENT = -1,
    /* Too little memory. From anabranch_node_init: size is less than anabranch_node_memory says. From others: see
     * restarts in anabranch_node_counters; poll. */
    ANABRANCH_NODE_MEMORY = -2,
    /* There are effects that have not been polled: nothing was done. */
    ANABRANCH_NODE_POLL = -3,
    /* There is no such stream: it has been reset or closed. */
    ANABRANCH_NODE_STREAM = -4,
    /* There are as many connections as there may be: close the new one. */
    ANABRANCH_NODE_FULL = -5,
    /* No file is offered, or none is under way, or it has fewer octets. */
    ANABRANCH_NODE_OFFER = -6
};

/* One gateway, as senders are told of it. */
typedef struct anabranch_node_gateway {
    /* An IPv6 address, or an IPv4 address in the first four octets. */
    uint8_t address[16];
    /* In the machine's order of octets. */
    uint16_t port;
    /* Its number in the table. */
    uint16_t id;
    /* Hops from the node to it, at least 1. */
    uint8_t hops;
    /* 1 for IPv6, 0 for IPv4. */
    uint8_t ipv6;
} anabranch_node_gateway;

/* Who the node is and whom it takes files from. Read by anabranch_node_memory and anabranch_node_init. */
typedef struct anabranch_node_keys {
    /* The node's X25519 secret key, for senders that are known by theirs: 32 octets, or null. */
    const uint8_t *secret;
    /* A key that node and sender share, for NNpsk0: 32 octets, or null. */
    const uint8_t *shared;
    /* X25519 public keys of senders, 32 octets each. */
    const uint8_t *senders;
    uint8_t sender_count;
    /* X25519 public keys of the gateways, 32 octets each in the order of the table, which must stay where they are as long as
     * there is the node; or null: then senders have to know them. */
    const uint8_t *gateways;
} anabranch_node_keys;

/* What the device is, for files with a manifest (SUIT). Must stay where it is as long as there is the node. */
typedef struct anabranch_node_device {
    /* UUIDs of the device's maker and of the kind of device, as `anabranch manifest create --vendor --class` has them. */
    uint8_t vendor[16];
    uint8_t class_id[16];
    /* Name of the component that is received here: "firmware" unless `manifest create --component` says otherwise. */
    const uint8_t *component;
    /* Ed25519 public keys of signers, 32 octets each: one of them must have signed the manifest. */
    const uint8_t *signers;
    /* Returns seconds since 1970, or UINT64_MAX while the time is not known; a time before 2026 counts as not known. Null without a
     * clock. Without the time no manifest that expires is taken. The time is asked for at the request and at the end. */
    uint64_t (*unix_time)(void);
    /* The longest manifest that is taken, 256 to 1024 octets; a longer one is refused with that reason. The node has memory for
     * two. `anabranch manifest create` makes 270 to 400. */
    uint16_t envelope;
    /* 1 to 64. */
    uint8_t component_length;
    /* At least 1. */
    uint8_t signer_count;
} anabranch_node_device;

/* The highest sequence number of a file that the device has taken: the program keeps it in storage of its own. */
typedef struct anabranch_node_highest {
    uint64_t sequence;
    /* SHA-256 of that file: the number is good for this file again, and for no other. */
    uint8_t digest[32];
    /* 0 if no file was taken yet. */
    uint8_t known;
} anabranch_node_highest;

typedef struct anabranch_node_config {
    /* Octets that may wait for others before them: 256 to 2^20. The sender has no more than that on its way. */
    uint32_t buffer;
    /* A transfer without news for so many milliseconds makes way for another. */
    uint32_t idle_ms;
    /* Separate pieces that may wait, 1 to 1024: whoever sends one more is reset. */
    uint16_t pieces;
    /* Octets that anabranch_node_data takes at once, 16 to 4096. */
    uint16_t read;
    /* Connections at once, 1 to 8: one for each gateway and one for requests. */
    uint8_t connections;
    /* Entries of gateways, at most 15. */
    uint8_t gateway_count;
    /* Must stay where they are as long as there is the node. */
    const anabranch_node_gateway *gateways;
    /* With keys, nothing is taken that is not encrypted (docs/explanation/set-security.md); null without. A library that was built without
     * the feature noise has no node with keys. */
    const anabranch_node_keys *keys;
    /* With a device no file is taken without a manifest that a signer has signed for this device, and none with a lower sequence
     * number than the highest; null without. A library that was built without the feature manifest has no node with a device. */
    const anabranch_node_device *device;
    /* With a device, what was stored at the last END; not null. Read by anabranch_node_init, and not needed after that. */
    const anabranch_node_highest *highest;
} anabranch_node_config;

/* What the program is to do. */
enum {
    /* Send octets on the stream, after whatever was written before. They are gone with the next call. */
    ANABRANCH_NODE_WRITE = 1,
    /* Offer a receive window of at most n octets on the stream, and no less than a segment. */
    ANABRANCH_NODE_LIMIT = 2,
    /* Nothing more will be written on the stream: close that direction after what was. */
    ANABRANCH_NODE_SHUTDOWN = 3,
    /* Reset the stream. It is forgotten: anabranch_node_closed is not to be called. */
    ANABRANCH_NODE_RESET = 4,
    /* Octets of the file, each exactly once and in order: n of them, from offset on. They are gone with the next call. */
    ANABRANCH_NODE_DELIVER = 5,
    /* A sender offers a file: anabranch_node_offered says which. The last effect of a call. Answer before or after poll has
     * returned 0; until the answer all other senders are told that the node is busy, and a sender gives up after half a
     * minute. */
    ANABRANCH_NODE_BEGIN = 6,
    /* All octets of the file were delivered, or were there before, and have the SHA-256 that was announced: publish the
     * file. The sender learns that it is delivered by the effects after this one. offset is the length of the file.
     *
     * With a device, in this order, each step durable before the next begins:
     *
     *   1. the octets of the file are in storage;
     *   2. what anabranch_node_highest_of returns is in storage;
     *   3. the file is published: the boot loader may start it.
     *
     * If the power fails after step 2, the number admits the same file again. If step 3 came before step 2, an older file could
     * be taken after this one. If a step fails: anabranch_node_abort. */
    ANABRANCH_NODE_END = 7,
    /* The file that was accepted does not come, see reason. What was delivered of it is of use only if the same file is
     * offered again, and not at all after ANABRANCH_NODE_ABORT_DIGEST. */
    ANABRANCH_NODE_ABORT = 8
};

/* Why a file does not come. */
enum {
    /* The sender gave it up. */
    ANABRANCH_NODE_ABORT_CANCELLED = 1,
    /* No news for idle_ms, and no connection. */
    ANABRANCH_NODE_ABORT_LOST = 2,
    /* No news for idle_ms, and another sender asked. */
    ANABRANCH_NODE_ABORT_MADE_WAY = 3,
    /* The octets do not have the SHA-256 that was announced. */
    ANABRANCH_NODE_ABORT_DIGEST = 4,
    /* The program called anabranch_node_abort. */
    ANABRANCH_NODE_ABORT_PROGRAM = 5,
    /* Memory was short: see restarts in anabranch_node_counters. */
    ANABRANCH_NODE_ABORT_MEMORY = 6,
    /* All octets came, but the manifest has expired meanwhile, or the time is no longer known. */
    ANABRANCH_NODE_ABORT_EXPIRED = 7
};

/* Why the program refuses a file. All but the first end the push with this reason. */
enum {
    /* Deferred, because the device is busy or its battery is low: the sender asks again if its user has told it to wait. */
    ANABRANCH_NODE_REFUSE_BUSY = 1,
    /* Another file is unfinished here; delivered is the number of its octets. */
    ANABRANCH_NODE_REFUSE_UNFINISHED = 3,
    /* Not at all. */
    ANABRANCH_NODE_REFUSE_UNWANTED = 4,
    /* The file is longer than the program takes. */
    ANABRANCH_NODE_REFUSE_TOO_LARGE = 0x104,
    /* There is no space for the file. */
    ANABRANCH_NODE_REFUSE_NO_ROOM = 0x204,
    /* The file bears no signature that the program trusts. */
    ANABRANCH_NODE_REFUSE_SIGNATURE = 0x404,
    /* The storage failed. */
    ANABRANCH_NODE_REFUSE_FAILED = 0x504,
    /* The device has a later version. */
    ANABRANCH_NODE_REFUSE_ROLLBACK = 0x604,
    /* The file is for another device. */
    ANABRANCH_NODE_REFUSE_WRONG_DEVICE = 0x704,
    /* The manifest has expired. */
    ANABRANCH_NODE_REFUSE_EXPIRED = 0x804,
    /* The file is not an image for the boot loader. */
    ANABRANCH_NODE_REFUSE_IMAGE = 0x904
};

/* The file that a sender offers. */
typedef struct anabranch_node_offer {
    /* Number of the transfer, which the sender has drawn. */
    uint64_t transfer;
    /* Octets of the file. */
    uint64_t length;
    /* SHA-256 of the file. */
    uint8_t digest[32];
    /* Ed25519 over length and digest (docs/explanation/set-security.md), see anabranch_node_signed_by; zeros without one. */
    uint8_t signature[64];
    /* 1 if there is a signature. */
    uint8_t has_signature;
    /* 1 if the sender wants what the node has of any file thrown away. */
    uint8_t discard;
    /* 1 if the sender has shown its X25519 public key. */
    uint8_t has_sender;
    /* That key; zeros without one. */
    uint8_t sender[32];
    /* The manifest of the file, a SUIT envelope that was checked, until the offer is answered; null without a device. */
    const uint8_t *manifest;
    size_t manifest_length;
    /* The sequence number in the manifest; 0 without a device. */
    uint64_t sequence;
} anabranch_node_offer;

typedef struct anabranch_node_effect {
    /* One of the eight. */
    uint32_t kind;
    uint32_t stream;
    const uint8_t *octets;
    size_t n;
    uint64_t offset;
    uint32_t reason;
} anabranch_node_effect;

typedef struct anabranch_node_counters {
    /* Octets that came more than once. */
    uint64_t duplicate_octets;
    /* Octets held out of order, at most. */
    uint64_t held_peak;
    /* Streams that were reset because of what came on them. */
    uint64_t rejected;
    /* Connections that were refused because there were too many. */
    uint64_t refused;
    /* Times that memory was short, so that the node reset all streams, gave up its transfer, and began anew. The size that
     * anabranch_node_memory asks for leaves no room for that: please report it. */
    uint64_t restarts;
} anabranch_node_counters;

typedef struct anabranch_node anabranch_node;

/* The program's own: what to do when the library finds itself wrong. It must not return. */
void anabranch_node_panicked(void);

/* Defined by the program if the library was built with the feature noise. Fills n octets with unpredictable random numbers,
 * from hardware or a generator that was seeded from hardware, and returns 0. Any other value: no caller is answered. */
int anabranch_node_entropy(void *octets, size_t n);

uint32_t anabranch_node_version(void);

/* Fills in defaults: a buffer of 4096, 32 pieces, reads of 512, 4 connections, a minute, no gateway. */
void anabranch_node_defaults(anabranch_node_config *config);

/* Octets of memory that a node takes; 0 if it is not possible. Only the numbers of the configuration are read. */
size_t anabranch_node_memory(const anabranch_node_config *config);

/* Makes a node in size octets of memory, which are its own from then on; nothing needs to be aligned or cleared. When the
 * program does not need it any more, it may use the memory for something else. */
int anabranch_node_init(anabranch_node **node, void *memory, size_t size, const anabranch_node_config *config);

/* Somebody has connected: the connection's name is in *stream. */
int anabranch_node_accepted(anabranch_node *node, uint64_t now, uint32_t *stream);

/* Octets have come, in order. Returns how many were taken, or an error: poll, and hand in the rest. */
int anabranch_node_data(anabranch_node *node, uint64_t now, uint32_t stream, const void *octets, size_t n);

/* The other side will send no more. */
int anabranch_node_ended(anabranch_node *node, uint64_t now, uint32_t stream);

/* The connection is gone, whether both sides have closed it, it was reset, or the program did not want it any more. */
int anabranch_node_closed(anabranch_node *node, uint64_t now, uint32_t stream);

/* Time has passed. Too early does no harm. */
int anabranch_node_timeout(anabranch_node *node, uint64_t now);

/* 1, and *at is when anabranch_node_timeout wants to be called; 0 if it does not. */
int anabranch_node_next_timeout(anabranch_node *node, uint64_t *at);

/* 1, and *effect is what to do next; 0 if that is all. */
int anabranch_node_poll(anabranch_node *node, anabranch_node_effect *effect);

/* 1, and *offer is the file that a sender offers; 0 if none waits for an answer. */
int anabranch_node_offered(anabranch_node *node, anabranch_node_offer *offer);

/* 1 if the offered file bears a signature of this Ed25519 public key of 32 octets, 0 if not. With the feature noise only. */
int anabranch_node_signed_by(anabranch_node *node, const uint8_t *key);

/* 1, and *highest is the highest sequence number that the node has taken: to be stored at ANABRANCH_NODE_END, see there. 0 if it has
 * taken none. With the feature manifest only. */
int anabranch_node_highest_of(anabranch_node *node, anabranch_node_highest *highest);

/* The program has these octets of the offered file, behind those of the last call: to resume, hand in all that is there, from
 * the beginning on, then accept. They count for the SHA-256, so that END speaks for them too. */
int anabranch_node_have(anabranch_node *node, const void *octets, size_t n);

/* Takes the offered file, from the first octet on that anabranch_node_have did not get. */
int anabranch_node_accept(anabranch_node *node, uint64_t now);

/* Does not take the offered file. */
int anabranch_node_refuse(anabranch_node *node, uint64_t now, uint32_t reason, uint64_t delivered);

/* Gives up the present transfer, also before poll has returned 0: the program cannot keep the octets. All
 * connections are reset, so that the sender does not believe otherwise. */
int anabranch_node_abort(anabranch_node *node, uint64_t now);

/* Octets of the present transfer that have come in order. */
uint64_t anabranch_node_delivered(anabranch_node *node);

/* 1 if ANABRANCH_NODE_END of the present transfer was polled, and all about it; 0 otherwise. */
int anabranch_node_complete(anabranch_node *node);

/* Octets of the heap that were in use, at most so far. */
size_t anabranch_node_peak(anabranch_node *node);

void anabranch_node_counters_of(anabranch_node *node, anabranch_node_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
