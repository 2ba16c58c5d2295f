/* The receiver of SET (docs/reference/set-protocol.md) for programs with a TCP stack, a clock, and
 * little memory.
 *
 * The library does no input and no output. The program listens on a TCP port, reports the events of
 * its connections to the node, and carries out the node's effects. The order of calls, repeated
 * forever:
 *
 *     anabranch_node_accepted, _data, _ended, _closed or _timeout     reports one event
 *     anabranch_node_poll until it returns 0                          returns the effects
 *     anabranch_node_next_timeout                                     returns the time of _timeout
 *
 * A file begins with ANABRANCH_NODE_BEGIN, which the program answers with anabranch_node_accept or
 * anabranch_node_refuse, and ends with ANABRANCH_NODE_END or ANABRANCH_NODE_ABORT. Delivered bytes
 * must not be used before END: until then they may be part of a file, of another file than
 * announced, or forged.
 *
 * Times are nanoseconds since an origin that the program chooses. A node uses only the memory
 * passed to anabranch_node_init; nodes share nothing. Only one thread at a time may call the
 * library, even for different nodes.
 *
 * Input from the network cannot make the library fail: it is accepted, or its connection is reset
 * and counted. */
#ifndef ANABRANCH_NODE_H
#define ANABRANCH_NODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Value of anabranch_node_version if header and library match. */
#define ANABRANCH_NODE_VERSION 4

enum {
    /* Success. */
    ANABRANCH_NODE_OK = 0,
    /* A null pointer, or a configuration value out of range. */
    ANABRANCH_NODE_ARGUMENT = -1,
    /* Too little memory. From anabranch_node_init: size is less than anabranch_node_memory returns.
     * From other functions: see restarts in anabranch_node_counters; poll. */
    ANABRANCH_NODE_MEMORY = -2,
    /* Effects have not been polled; the call had no effect. */
    ANABRANCH_NODE_POLL = -3,
    /* Unknown stream: it was reset or closed. */
    ANABRANCH_NODE_STREAM = -4,
    /* All connections of the configuration are in use: close the new one. */
    ANABRANCH_NODE_FULL = -5,
    /* No file is offered, no transfer is under way, or the file has fewer bytes. */
    ANABRANCH_NODE_OFFER = -6
};

/* A gateway that the node announces to senders. */
typedef struct anabranch_node_gateway {
    /* An IPv6 address, or an IPv4 address in the first four bytes. */
    uint8_t address[16];
    /* In host byte order. */
    uint16_t port;
    /* Its number in the table. */
    uint16_t id;
    /* Hops from the node to the gateway, at least 1. */
    uint8_t hops;
    /* 1 for IPv6, 0 for IPv4. */
    uint8_t ipv6;
    /* 1 if the node reaches the gateway over a radio channel that it shares with all other gateways
     * with a 1 here, and the MAC gives a frame up after few tries, as with IEEE 802.15.4's default
     * macMaxFrameRetries of 3. Senders then send one packet after another, which is up to 1.8 times
     * as fast there. 0 otherwise, above all if the MAC repeats a frame 7 times or more. */
    uint8_t shared_channel;
} anabranch_node_gateway;

/* Keys of the node and of the senders that it accepts. Read by anabranch_node_memory and
 * anabranch_node_init. */
typedef struct anabranch_node_keys {
    /* The node's X25519 secret key, for senders with a public key: 32 bytes, or null. */
    const uint8_t *secret;
    /* A key that node and senders share, for NNpsk0: 32 bytes, or null. */
    const uint8_t *shared;
    /* X25519 public keys of senders, 32 bytes each. */
    const uint8_t *senders;
    uint8_t sender_count;
    /* X25519 public keys of the gateways, 32 bytes each, in the order of the table. The array must
     * remain valid while the node is used. Null: senders must know the keys. */
    const uint8_t *gateways;
} anabranch_node_keys;

/* The device, for files with a manifest (SUIT). Must remain valid while the node is used. */
typedef struct anabranch_node_device {
    /* UUIDs of the device's vendor and of its class, as in `anabranch manifest create --vendor
     * --class`. */
    uint8_t vendor[16];
    uint8_t class_id[16];
    /* Name of the component that the node receives: "firmware" unless `manifest create --component`
     * says otherwise. */
    const uint8_t *component;
    /* Ed25519 public keys of signers, 32 bytes each: one of them must have signed the manifest. */
    const uint8_t *signers;
    /* Returns seconds since 1970, or UINT64_MAX while the time is unknown. A time before 2026
     * counts as unknown. Null without a clock. While the time is unknown, the node accepts no
     * manifest that expires. Called at the request and at the end of the file. */
    uint64_t (*unix_time)(void);
    /* Longest accepted manifest in bytes, 256 to 1024; a longer one is refused with that reason.
     * The node has memory for two. `anabranch manifest create` makes manifests of 230 to 322
     * bytes. */
    uint16_t envelope;
    /* 1 to 64. */
    uint8_t component_length;
    /* At least 1. */
    uint8_t signer_count;
} anabranch_node_device;

/* The highest sequence number of an accepted file. The program stores it durably. */
typedef struct anabranch_node_highest {
    uint64_t sequence;
    /* SHA-256 of that file: the node accepts the number again only for this file. */
    uint8_t digest[32];
    /* 0 if no file was accepted yet. */
    uint8_t known;
} anabranch_node_highest;

typedef struct anabranch_node_config {
    /* Bytes that may wait out of order, 256 to 2^20. The sender has at most this number of bytes in
     * flight. */
    uint32_t buffer;
    /* A transfer without news for this number of milliseconds makes way for another. */
    uint32_t idle_ms;
    /* Separate pieces that may wait, 1 to 1024. One more resets the connection that brought it. */
    uint16_t pieces;
    /* Bytes that anabranch_node_data accepts in one call, 16 to 4096. */
    uint16_t read;
    /* Connections at a time, 1 to 8: one for each gateway and one for requests. */
    uint8_t connections;
    /* Number of gateways, at most 15. */
    uint8_t gateway_count;
    /* Must remain valid while the node is used. */
    const anabranch_node_gateway *gateways;
    /* With keys the node accepts only encrypted data (docs/explanation/set-security.md). Null
     * without keys. Must be null if the library was built without the feature noise. */
    const anabranch_node_keys *keys;
    /* With a device the node accepts only files with a manifest that a signer has signed for this
     * device, and no lower sequence number than the highest. Null without a device. Must be null if
     * the library was built without the feature manifest. */
    const anabranch_node_device *device;
    /* With a device: the number stored at the last END; not null. Only read by
     * anabranch_node_init. */
    const anabranch_node_highest *highest;
} anabranch_node_config;

/* Kinds of effects, which the program carries out. */
enum {
    /* Send the bytes on the stream, after those written before. They are valid until the next
     * call. */
    ANABRANCH_NODE_WRITE = 1,
    /* Offer a receive window of at most n bytes on the stream, but at least one segment. */
    ANABRANCH_NODE_LIMIT = 2,
    /* The node writes no more on the stream: close this direction after the bytes written
     * before. */
    ANABRANCH_NODE_SHUTDOWN = 3,
    /* Reset the stream. The node forgets it: do not call anabranch_node_closed. */
    ANABRANCH_NODE_RESET = 4,
    /* Bytes of the file: n of them at offset. Each byte is delivered exactly once, in order. They
     * are valid until the next call. */
    ANABRANCH_NODE_DELIVER = 5,
    /* A sender offers a file, which anabranch_node_offered returns. The last effect of a call.
     * Answer before or after poll has returned 0. Until the answer all other senders are told that
     * the node is busy. The sender gives up after half a minute. */
    ANABRANCH_NODE_BEGIN = 6,
    /* All bytes of the file were delivered, or were stored before, and have the announced SHA-256:
     * publish the file. The effects after this one tell the sender. offset is the length of the
     * file.
     *
     * With a device, in this order, each step durable before the next begins:
     *
     *     1. store the bytes of the file;
     *     2. store the number that anabranch_node_highest_of returns;
     *     3. publish the file: the boot loader may start it.
     *
     * If the power fails after step 2, the number admits the same file again. If step 3 came before
     * step 2, an older file could be accepted after this one. If a step fails, call
     * anabranch_node_abort. */
    ANABRANCH_NODE_END = 7,
    /* The accepted file will not be completed; see reason. The delivered bytes are useful only if
     * the same file is offered again, and useless after ANABRANCH_NODE_ABORT_DIGEST. */
    ANABRANCH_NODE_ABORT = 8
};

/* Reasons of ANABRANCH_NODE_ABORT. */
enum {
    /* The sender gave up. */
    ANABRANCH_NODE_ABORT_CANCELLED = 1,
    /* No news for idle_ms, and no connection. */
    ANABRANCH_NODE_ABORT_LOST = 2,
    /* No news for idle_ms, and another sender asked. */
    ANABRANCH_NODE_ABORT_MADE_WAY = 3,
    /* The bytes do not have the announced SHA-256. */
    ANABRANCH_NODE_ABORT_DIGEST = 4,
    /* The program called anabranch_node_abort. */
    ANABRANCH_NODE_ABORT_PROGRAM = 5,
    /* Memory was short: see restarts in anabranch_node_counters. */
    ANABRANCH_NODE_ABORT_MEMORY = 6,
    /* All bytes arrived, but the manifest has expired meanwhile, or the time is no longer known. */
    ANABRANCH_NODE_ABORT_EXPIRED = 7
};

/* Reasons of anabranch_node_refuse. All but the first end the push with this reason. */
enum {
    /* Deferred, because the device is busy or its battery is low: the sender asks again if its user
     * has given --wait. */
    ANABRANCH_NODE_REFUSE_BUSY = 1,
    /* Another file is unfinished here; delivered is the number of its bytes. */
    ANABRANCH_NODE_REFUSE_UNFINISHED = 3,
    /* Refused without another reason. */
    ANABRANCH_NODE_REFUSE_UNWANTED = 4,
    /* The file is longer than the program accepts. */
    ANABRANCH_NODE_REFUSE_TOO_LARGE = 0x104,
    /* There is no space for the file. */
    ANABRANCH_NODE_REFUSE_NO_ROOM = 0x204,
    /* The file has no signature that the program trusts. */
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
    /* Number of the transfer, drawn by the sender. */
    uint64_t transfer;
    /* Length of the file in bytes. */
    uint64_t length;
    /* SHA-256 of the file. */
    uint8_t digest[32];
    /* Ed25519 signature over length and digest (docs/explanation/set-security.md), see
     * anabranch_node_signed_by; zeros without a signature. */
    uint8_t signature[64];
    /* 1 if there is a signature. */
    uint8_t has_signature;
    /* 1 if the node should discard stored bytes of any file. */
    uint8_t discard;
    /* 1 if the sender has authenticated with its X25519 public key. */
    uint8_t has_sender;
    /* That key; zeros without one. */
    uint8_t sender[32];
    /* The manifest of the file, a verified SUIT envelope; valid until the offer is answered. Null
     * without a device. */
    const uint8_t *manifest;
    size_t manifest_length;
    /* The sequence number in the manifest; 0 without a device. */
    uint64_t sequence;
} anabranch_node_offer;

typedef struct anabranch_node_effect {
    /* One of the eight kinds. */
    uint32_t kind;
    uint32_t stream;
    const uint8_t *octets;
    size_t n;
    uint64_t offset;
    uint32_t reason;
} anabranch_node_effect;

typedef struct anabranch_node_counters {
    /* Bytes that arrived more than once. */
    uint64_t duplicate_octets;
    /* Largest number of bytes held out of order. */
    uint64_t held_peak;
    /* Streams that were reset because of their input. */
    uint64_t rejected;
    /* Connections that were refused because all were in use. */
    uint64_t refused;
    /* Times that memory was short, so that the node reset all streams, gave up its transfer, and
     * began anew. With the size that anabranch_node_memory returns this must not happen: please
     * report it. */
    uint64_t restarts;
} anabranch_node_counters;

typedef struct anabranch_node anabranch_node;

/* Defined by the program: called if the library detects an internal error. Must not return. */
void anabranch_node_panicked(void);

/* Defined by the program if the library was built with the feature noise. Fills n bytes with
 * unpredictable random numbers, from hardware or a generator that was seeded from hardware, and
 * returns 0. After any other value the node answers no caller. */
int anabranch_node_entropy(void *octets, size_t n);

uint32_t anabranch_node_version(void);

/* Sets defaults: a buffer of 4096 bytes, 32 pieces, reads of 512 bytes, 4 connections, idle time of
 * one minute, no gateways. */
void anabranch_node_defaults(anabranch_node_config *config);

/* Returns the number of bytes of memory that a node needs; 0 if the configuration is invalid. Reads
 * only the numbers of the configuration. */
size_t anabranch_node_memory(const anabranch_node_config *config);

/* Creates a node in size bytes of memory, which belong to the node until the program stops using
 * it. The memory need not be aligned or cleared. */
int anabranch_node_init(anabranch_node **node, void *memory, size_t size, const anabranch_node_config *config);

/* A peer has connected. Sets *stream to the identifier of the connection. */
int anabranch_node_accepted(anabranch_node *node, uint64_t now, uint32_t *stream);

/* Bytes have arrived, in order. Returns the number of accepted bytes, or an error: poll, and pass
 * the rest. */
int anabranch_node_data(anabranch_node *node, uint64_t now, uint32_t stream, const void *octets, size_t n);

/* The peer has closed its direction. */
int anabranch_node_ended(anabranch_node *node, uint64_t now, uint32_t stream);

/* The connection has ended: both sides closed it, it was reset, or the program dropped it. */
int anabranch_node_closed(anabranch_node *node, uint64_t now, uint32_t stream);

/* Time has passed. A call that is too early does no harm. */
int anabranch_node_timeout(anabranch_node *node, uint64_t now);

/* Returns 1 and sets *at to the time at which anabranch_node_timeout is to be called; 0 if no call
 * is needed. */
int anabranch_node_next_timeout(anabranch_node *node, uint64_t *at);

/* Returns 1 and sets *effect to the next effect; 0 if there is none. */
int anabranch_node_poll(anabranch_node *node, anabranch_node_effect *effect);

/* Returns 1 and sets *offer to the unanswered offer of a sender; 0 if there is none. */
int anabranch_node_offered(anabranch_node *node, anabranch_node_offer *offer);

/* Returns 1 if the offered file has a signature of this Ed25519 public key of 32 bytes, 0 if not.
 * Only with the feature noise. */
int anabranch_node_signed_by(anabranch_node *node, const uint8_t *key);

/* Returns 1 and sets *highest to the highest sequence number that the node has accepted, to be
 * stored at ANABRANCH_NODE_END; 0 if it has accepted none. Only with the feature manifest. */
int anabranch_node_highest_of(anabranch_node *node, anabranch_node_highest *highest);

/* Passes stored bytes of the offered file, behind those of the last call. To resume, pass all
 * stored bytes from the beginning of the file, then accept. They are part of the SHA-256, so that
 * END covers them too. */
int anabranch_node_have(anabranch_node *node, const void *octets, size_t n);

/* Accepts the offered file, from the first byte that was not passed to anabranch_node_have. */
int anabranch_node_accept(anabranch_node *node, uint64_t now);

/* Refuses the offered file. */
int anabranch_node_refuse(anabranch_node *node, uint64_t now, uint32_t reason, uint64_t delivered);

/* Gives up the current transfer because the program cannot store the bytes. Allowed before poll has
 * returned 0. Resets all connections, so that the sender does not assume delivery. */
int anabranch_node_abort(anabranch_node *node, uint64_t now);

/* Returns the number of bytes of the current transfer that have arrived in order. */
uint64_t anabranch_node_delivered(anabranch_node *node);

/* Returns 1 if ANABRANCH_NODE_END of the current transfer and all effects of it were polled; 0
 * otherwise. */
int anabranch_node_complete(anabranch_node *node);

/* Returns the largest number of heap bytes that were in use so far. */
size_t anabranch_node_peak(anabranch_node *node);

void anabranch_node_counters_of(anabranch_node *node, anabranch_node_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
