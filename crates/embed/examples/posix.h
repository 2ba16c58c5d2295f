/* The part that the examples share: a small node on POSIX sockets, whose memory is otherwise
 * static. It receives one file and passes it to the functions store_*. On standard error it reports
 * its address, the state of each transfer, and at the end its use of memory. IPv4 only, to keep the
 * example short. */
#include "common.h"

#include "anabranch_node.h"

enum { CONNECTIONS = 4, GATEWAYS = 3, SECOND = 1000 };
#ifdef NOISE
enum { BUFFER = 2048, READ = 128, ENVELOPE = 384, MEMORY = 14480 };
#else
enum { BUFFER = 4096, READ = 216, MEMORY = 11992 };
#endif

/* Opens the place of the file. Returns 0, or -1 with errno. Nothing at this place may look like a
 * complete file before store_end. */
static int store_open(const char *path);
/* A file is offered: passes the stored bytes of it to anabranch_node_have. Returns 0, 1 if the file
 * is too large, or -1. */
static int store_begin(anabranch_node *node, const anabranch_node_offer *offer);
static int store_write(uint64_t offset, const uint8_t *octets, size_t n);
/* All bytes of the file are stored and verified. The sender is told after this call. */
static int store_end(uint64_t length);
/* The file will not be completed. */
static int store_abort(uint32_t reason);
#ifdef NOISE
/* Reads the highest sequence number of a device; known is 0 if none is stored. Returns 0, -1 with
 * errno if it cannot be read, or 1 if it is damaged. */
static int store_highest(anabranch_node_highest *highest);
/* Stores a number completely or not at all, so that it survives a power cut. Returns 0 or -1. */
static int store_raise(const anabranch_node_highest *highest);
#endif

/* All memory of the node: its own, one read buffer, and its connections. */
static unsigned char memory[MEMORY];
static unsigned char scratch[READ];
static anabranch_node_gateway gateways[GATEWAYS];
static uint8_t shared_channel;
static struct connection {
    int socket; /* -1: unused */
    uint32_t stream;
    uint64_t heard; /* time of the last input */
} connections[CONNECTIONS];
static int listener = -1;
/* A connection without input for this time is reset, and a transfer makes way for another. */
static uint32_t idle_ms = 60000;
static int ended;

void anabranch_node_panicked(void) { abort(); }

static struct connection *find(uint32_t stream)
{
    for (int i = 0; i < CONNECTIONS; i++)
        if (connections[i].socket >= 0 && connections[i].stream == stream)
            return &connections[i];
    return NULL;
}

static void drop(struct connection *c, int reset)
{
    if (reset) {
        struct linger at_once = {1, 0};
        setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close(c->socket);
    c->socket = -1;
}

#ifdef NOISE
/* Keys in the format of `anabranch key`. */
enum { SENDERS = 4 };
static uint8_t secret[32], shared[32], senders[SENDERS][32], signer[32], gateway_keys[GATEWAYS][32];
static anabranch_node_keys keys = {NULL, NULL, senders[0], 0, NULL};
static int has_signer, gateway_key_count;
/* The device of option -d; the signer of -v signs its manifests. */
static anabranch_node_device device;
static int is_device;

/* This machine has a clock; a device without one would return UINT64_MAX. */
static uint64_t unix_time(void) { return (uint64_t)time(NULL); }

/* Reads "VENDOR:CLASS": two UUIDs of 32 hexadecimal digits each. */
static int device_of(const char *text)
{
    if (strlen(text) != 65 || octets_of(text, device.vendor, 16) != 0 || text[32] != ':' ||
        octets_of(text + 33, device.class_id, 16) != 0) {
        fprintf(stderr, "-d %s: not VENDOR:CLASS, two UUIDs of 32 hexadecimal digits each\n", text);
        return -1;
    }
    device.component = (const uint8_t *)"firmware";
    device.component_length = 8;
    device.signers = signer;
    device.signer_count = 1;
    device.unix_time = unix_time;
    device.envelope = ENVELOPE;
    is_device = 1;
    return 0;
}

int anabranch_node_entropy(void *octets, size_t n) { return random_octets(octets, n); }

/* Returns 0, or -1 after a message. */
static int key_option(char option, const char *value)
{
    switch (option) {
    case 'k':
        keys.secret = secret;
        return key_of(option, value, "x25519-secret", secret);
    case 'p':
        keys.shared = shared;
        return key_of(option, value, "psk", shared);
    case 's':
        if (keys.sender_count == SENDERS)
            break;
        return key_of(option, value, "x25519", senders[keys.sender_count++]);
    case 'v':
        has_signer = 1;
        return key_of(option, value, "ed25519", signer);
    case 'g':
        if (gateway_key_count == GATEWAYS)
            break;
        keys.gateways = gateway_keys[0];
        return key_of(option, value, "x25519", gateway_keys[gateway_key_count++]);
    case 'd':
        return device_of(value);
    default:
        fprintf(stderr, "-%c: no such option\n", option);
        return -1;
    }
    fprintf(stderr, "-%c %s: at most %d of this option\n", option, value, option == 's' ? SENDERS : GATEWAYS);
    return -1;
}

/* Returns a message if the options admit no sender, else NULL. Gives the key of a single -g to all
 * gateways. */
static const char *missing(int gateway_count)
{
    if (keys.secret == NULL && keys.shared == NULL)
        return "this program takes only encrypted files: name its secret key with -k, or a pre-shared key with -p";
    if (keys.sender_count > 0 && keys.secret == NULL)
        return "-s needs the secret key of this node: name it with -k";
    if (keys.sender_count == 0 && keys.shared == NULL)
        return "-k needs the public key of a sender: name it with -s";
    if (is_device && !has_signer)
        return "-d needs the key that signs the manifests: name it with -v";
    if (gateway_key_count > 1 && gateway_key_count != gateway_count)
        return "-g has to be there once for all gateways, or once for each, in the same order";
    for (int i = 1; gateway_key_count == 1 && i < GATEWAYS; i++)
        memcpy(gateway_keys[i], gateway_keys[0], sizeof gateway_keys[0]);
    return NULL;
}

/* Whether the accepted signer has signed the offered file. For a device, the library has checked
 * the manifest. */
static int is_wanted(anabranch_node *node) { return is_device || !has_signer || anabranch_node_signed_by(node, signer) == 1; }
#else
static int key_option(char option, const char *value)
{
    (void)value;
    fprintf(stderr, "-%c: no such option%s\n", option,
            option != '\0' && strchr("kspgvd", option) != NULL ? " without keys: compile with -DNOISE" : "");
    return -1;
}

static const char *missing(int gateway_count)
{
    (void)gateway_count;
    return NULL;
}

static int is_wanted(anabranch_node *node)
{
    (void)node;
    return 1;
}
#endif

/* All bytes of the file are stored. The number is stored before the file is published: a power cut
 * between these steps admits the same file again, and no older one. */
static int finish(anabranch_node *node, uint64_t length)
{
#ifdef NOISE
    anabranch_node_highest highest;
    if (is_device && (!anabranch_node_highest_of(node, &highest) || store_raise(&highest) != 0))
        return -1;
#else
    (void)node;
#endif
    return store_end(length);
}

static int begin(anabranch_node *node)
{
    anabranch_node_offer offer;
    int wanted;
    if (!anabranch_node_offered(node, &offer))
        return 0;
    if (ended)
        return anabranch_node_refuse(node, now(), ANABRANCH_NODE_REFUSE_BUSY, 0);
    wanted = is_wanted(node) ? store_begin(node, &offer) : 2;
    if (wanted < 0)
        return -1;
    if (wanted > 0)
        return anabranch_node_refuse(node, now(), wanted > 1 ? ANABRANCH_NODE_REFUSE_SIGNATURE : ANABRANCH_NODE_REFUSE_TOO_LARGE, 0);
    if (anabranch_node_accept(node, now()) != ANABRANCH_NODE_OK)
        return -1;
    say("begin ", offer.length);
    say("from ", anabranch_node_delivered(node));
    return 0;
}

/* Carries out the effects that concern the file. Returns -1 if the file cannot be stored. */
static int keep(anabranch_node *node, const anabranch_node_effect *effect)
{
    switch (effect->kind) {
    case ANABRANCH_NODE_BEGIN:
        return begin(node);
    case ANABRANCH_NODE_DELIVER:
        return store_write(effect->offset, effect->octets, effect->n);
    case ANABRANCH_NODE_END:
        say("end ", effect->offset);
        if (finish(node, effect->offset) != 0)
            return -1;
        ended = 1;
        return 0;
    case ANABRANCH_NODE_ABORT:
        say("abort ", effect->reason);
        return store_abort(effect->reason);
    default:
        return 0;
    }
}

/* Carries out all effects of the node. */
static int carry_out(anabranch_node *node)
{
    anabranch_node_effect effect;
    uint32_t unheard[CONNECTIONS];
    int count = 0;
    while (anabranch_node_poll(node, &effect)) {
        struct connection *c = effect.kind >= ANABRANCH_NODE_DELIVER ? NULL : find(effect.stream);
        errno = 0;
        if (keep(node, &effect) != 0) {
            /* The connections are reset so that the sender does not assume delivery. */
            fprintf(stderr, "the file cannot be kept: %s\n",
                    errno != 0 ? strerror(errno) : "what is stored of it is not what was written");
            anabranch_node_abort(node, now());
            for (int i = 0; i < CONNECTIONS; i++)
                if (connections[i].socket >= 0)
                    drop(&connections[i], 1);
            return -1;
        }
        switch (effect.kind) {
        case ANABRANCH_NODE_WRITE:
            /* Acknowledgements are short and rare. A peer that does not read them until the socket
             * is full is reset. */
            if (c != NULL && send(c->socket, effect.octets, effect.n, MSG_NOSIGNAL) != (ssize_t)effect.n) {
                unheard[count++] = c->stream;
                drop(c, 1);
            }
            break;
        case ANABRANCH_NODE_SHUTDOWN:
            if (c != NULL)
                shutdown(c->socket, SHUT_WR);
            break;
        case ANABRANCH_NODE_RESET:
            if (c != NULL)
                drop(c, 1);
            break;
        case ANABRANCH_NODE_LIMIT:
            /* A small TCP stack would bound its receive window. Here the kernel has room for all
             * bytes in flight. */
            break;
        }
    }
    while (count > 0) {
        anabranch_node_closed(node, now(), unheard[--count]);
        if (carry_out(node) != 0)
            return -1;
    }
    return 0;
}

static int accept_one(anabranch_node *node)
{
    int socket = accept(listener, NULL, NULL);
    if (socket < 0)
        return 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &connections[i];
        if (c->socket >= 0)
            continue;
        if (anabranch_node_accepted(node, now(), &c->stream) != ANABRANCH_NODE_OK)
            break;
        fcntl(socket, F_SETFL, O_NONBLOCK);
        c->socket = socket;
        c->heard = now();
        return carry_out(node);
    }
    close(socket);
    return carry_out(node);
}

/* Passes all bytes to the node, unless the stream is reset meanwhile. */
static int hand_in(anabranch_node *node, uint32_t stream, const uint8_t *octets, size_t n)
{
    int taken = 1;
    while (n > 0 && taken > 0) {
        taken = anabranch_node_data(node, now(), stream, octets, n);
        if (carry_out(node) != 0)
            return -1;
        if (taken > 0)
            octets += taken, n -= (size_t)taken;
    }
    return 0;
}

static int read_one(anabranch_node *node, struct connection *c)
{
    uint32_t stream = c->stream;
    ssize_t n = recv(c->socket, scratch, sizeof scratch, 0);
    if (n > 0) {
        c->heard = now();
        return hand_in(node, stream, scratch, (size_t)n);
    } else if (n == 0) {
        /* The node closes its direction in response, and the connection has ended. */
        anabranch_node_ended(node, now(), stream);
        if (carry_out(node) != 0)
            return -1;
        if (c->socket >= 0)
            drop(c, 0);
        anabranch_node_closed(node, now(), stream);
    } else if (errno != EAGAIN && errno != EINTR) {
        drop(c, 0);
        anabranch_node_closed(node, now(), stream);
    }
    return carry_out(node);
}

/* A silent connection must not keep other senders from the few places. */
static int drop_silent(anabranch_node *node)
{
    uint64_t t = now();
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &connections[i];
        if (c->socket >= 0 && t - c->heard > idle_ms * UINT64_C(1000000)) {
            drop(c, 1);
            anabranch_node_closed(node, t, c->stream);
            if (carry_out(node) != 0)
                return -1;
        }
    }
    return 0;
}

static int busy(void)
{
    int n = 0;
    for (int i = 0; i < CONNECTIONS; i++)
        n += connections[i].socket >= 0;
    return n;
}

/* Runs until a file is complete and all connections are closed. */
static int receive(anabranch_node *node)
{
    while (!ended || busy()) {
        struct pollfd fds[CONNECTIONS + 1];
        uint64_t due, t = now();
        int wait = SECOND;
        for (int i = 0; i < CONNECTIONS; i++) {
            fds[i].fd = connections[i].socket;
            fds[i].events = POLLIN;
        }
        fds[CONNECTIONS].fd = listener;
        fds[CONNECTIONS].events = POLLIN;
        if (anabranch_node_next_timeout(node, &due) && due < t + SECOND * UINT64_C(1000000))
            wait = due > t ? (int)((due - t) / 1000000) + 1 : 0;
        if (poll(fds, CONNECTIONS + 1, wait) < 0 && errno != EINTR)
            return -1;
        anabranch_node_timeout(node, now());
        if (carry_out(node) != 0 || drop_silent(node) != 0)
            return -1;
        for (int i = 0; i < CONNECTIONS; i++)
            if (fds[i].revents != 0 && connections[i].socket == fds[i].fd && fds[i].fd >= 0)
                if (read_one(node, &connections[i]) != 0)
                    return -1;
        if (fds[CONNECTIONS].revents != 0 && accept_one(node) != 0)
            return -1;
    }
    return 0;
}

static int listen_on(const char *text, const uint8_t octets[4], uint16_t port)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    int yes = 1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    memcpy(&address.sin_addr, octets, 4);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, CONNECTIONS) != 0) {
        fprintf(stderr, "cannot listen on %s: %s\n", text, strerror(errno));
        return -1;
    }
    getsockname(listener, (struct sockaddr *)&address, &length);
    fprintf(stderr, "listening on %u.%u.%u.%u:%u\n", octets[0], octets[1], octets[2], octets[3],
            ntohs(address.sin_port));
    return 0;
}

/* Reads "-c", "-i" and the other options. Returns 0, or -1 after a message. */
static int option(const char *name, const char *value)
{
    uint64_t number;
    if (name[1] == '\0' || name[2] != '\0') {
        fprintf(stderr, "%s: no such option\n", name);
        return -1;
    }
    const char *at = value;
    if (name[1] == 'c') {
        if (number_of(&at, 1, &number) != 0 || *at != '\0') {
            fprintf(stderr, "-c %s: not 1 if the gateways share a radio channel, or 0\n", value);
            return -1;
        }
        shared_channel = (uint8_t)number;
        return 0;
    }
    if (name[1] != 'i')
        return key_option(name[1], value);
    if (number_of(&at, UINT32_MAX, &number) != 0 || *at != '\0' || number == 0) {
        fprintf(stderr, "-i %s: not a number of milliseconds from 1 to 4294967295\n", value);
        return -1;
    }
    idle_ms = (uint32_t)number;
    return 0;
}

int main(int argc, char **argv)
{
    anabranch_node_config config;
    anabranch_node_counters counters;
    anabranch_node *node;
    const char *lacks;
    uint8_t octets[4];
    uint16_t port;
    int failed;
#ifdef NOISE
    anabranch_node_highest highest;
#endif

    while (argc > 2 && argv[1][0] == '-') {
        if (option(argv[1], argv[2]) != 0)
            return 2;
        argc -= 2, argv += 2;
    }
    if (argc < 3 || argc > 3 + GATEWAYS) {
        fprintf(stderr, "usage: [OPTION VALUE]... FILE ADDRESS:PORT [GATEWAY:PORT]..., with at most %d gateways\n", GATEWAYS);
        return 2;
    }
    /* All arguments are read before the first file is created. */
    if (address_of(argv[2], 0, octets, &port) != 0)
        return 2;
    anabranch_node_defaults(&config);
    config.connections = CONNECTIONS;
    config.buffer = BUFFER;
    config.read = READ;
    config.idle_ms = idle_ms;
    config.gateways = gateways;
#ifdef NOISE
    config.keys = &keys;
    if (is_device) {
        config.device = &device;
        config.highest = &highest;
    }
#endif
    for (int i = 3; i < argc; i++) {
        anabranch_node_gateway *gateway = &gateways[config.gateway_count++];
        gateway->id = (uint16_t)i;
        gateway->hops = 1;
        gateway->shared_channel = shared_channel;
        if (address_of(argv[i], 1, gateway->address, &gateway->port) != 0)
            return 2;
    }
    lacks = missing(argc - 3);
    if (lacks != NULL) {
        fprintf(stderr, "%s\n", lacks);
        return 2;
    }
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].socket = -1;
    if (anabranch_node_version() != ANABRANCH_NODE_VERSION) {
        fprintf(stderr, "the library has version %d of its interface, and the header %d\n",
                (int)anabranch_node_version(), (int)ANABRANCH_NODE_VERSION);
        return 1;
    }
    if (store_open(argv[1]) != 0) {
        fprintf(stderr, "cannot store a file as %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
#ifdef NOISE
    failed = is_device ? store_highest(&highest) : 0;
    if (failed != 0) {
        fprintf(stderr, "cannot read the sequence number of %s: %s\n", argv[1],
                failed < 0 ? strerror(errno) : "it is damaged, and without it older files would be taken");
        return 1;
    }
#endif
    failed = anabranch_node_init(&node, memory, sizeof memory, &config);
    if (failed == ANABRANCH_NODE_MEMORY) {
        fprintf(stderr, "the node needs %zu bytes of memory, and has %zu\n", anabranch_node_memory(&config), sizeof memory);
        return 1;
    }
    if (failed != ANABRANCH_NODE_OK) {
        fprintf(stderr, "the library refuses the configuration: error %d\n", failed);
        return 1;
    }
    if (listen_on(argv[2], octets, port) != 0)
        return 1;
    paint();
    failed = receive(node);
    anabranch_node_counters_of(node, &counters);
    fprintf(stderr, "octets %llu\nmemory %zu of %zu\nheap_peak %zu\nstack %zu\n",
            (unsigned long long)anabranch_node_delivered(node), anabranch_node_memory(&config), sizeof memory,
            anabranch_node_peak(node), stack_used());
    fprintf(stderr, "held_peak %llu\nrejected %llu\nrestarts %llu\n", (unsigned long long)counters.held_peak,
            (unsigned long long)counters.rejected, (unsigned long long)counters.restarts);
    /* A transfer that was under way is lost, and the file does not exist. */
    return failed != 0 || !ended;
}
