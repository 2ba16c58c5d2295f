/* Receives one file by SET and writes it to standard output as it comes: receive ADDRESS:PORT [GATEWAY:PORT]...
 *
 * A stand-in for a small node: POSIX sockets are its TCP stack, everything else is static. Says on standard error where it
 * listens, and at the end what it took. IPv4, to be short. */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "anabranch_node.h"

enum { CONNECTIONS = 4, READ = 256, MEMORY = 11760, GATEWAYS = 3, SECOND = 1000 };

/* A minute, in nanoseconds. */
#define SILENCE UINT64_C(60000000000)

/* All that the node has: its memory, one buffer to read into, and its connections. */
static unsigned char memory[MEMORY];
static unsigned char scratch[READ];
static anabranch_node_gateway gateways[GATEWAYS];
static struct connection {
    int socket; /* -1: none */
    uint32_t stream;
    uint64_t heard; /* when something last came */
} connections[CONNECTIONS];
static int listener = -1;

void anabranch_node_panicked(void) { abort(); }

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

/* Standard output may be slow, and the sender waits for it. */
static int put(const uint8_t *octets, size_t n)
{
    while (n > 0) {
        ssize_t written = write(STDOUT_FILENO, octets, n);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0) {
            octets += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

/* Does what the node wants. */
static int carry_out(anabranch_node *node)
{
    anabranch_node_effect effect;
    uint32_t unheard[CONNECTIONS];
    int count = 0;
    while (anabranch_node_poll(node, &effect)) {
        struct connection *c = effect.kind == ANABRANCH_NODE_DELIVER ? NULL : find(effect.stream);
        switch (effect.kind) {
        case ANABRANCH_NODE_DELIVER:
            if (put(effect.octets, effect.n) != 0)
                return -1;
            break;
        case ANABRANCH_NODE_WRITE:
            /* Acknowledgements are short and rare. Whoever leaves them unread until the socket is full is not served. */
            if (c != NULL && send(c->socket, effect.octets, effect.n, MSG_NOSIGNAL) != (ssize_t)effect.n) {
                unheard[count++] = c->stream;
                drop(c, 1);
            }
            break;
        case ANABRANCH_NODE_SHUTDOWN:
            if (c != NULL)
                shutdown(c->socket, SHUT_WR);
            break;
        case ANABRANCH_NODE_ABORT:
            if (c != NULL)
                drop(c, 1);
            break;
        case ANABRANCH_NODE_LIMIT:
            /* A small stack would bound its receive window. Here the kernel has room for whatever is on its way. */
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

static int read_one(anabranch_node *node, struct connection *c)
{
    uint32_t stream = c->stream;
    ssize_t n = recv(c->socket, scratch, sizeof scratch, 0);
    if (n > 0) {
        c->heard = now();
        anabranch_node_data(node, now(), stream, scratch, (size_t)n);
    } else if (n == 0) {
        /* Our own direction is closed in answer, and that is the end of both. */
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

/* Whoever connects and then says nothing shall not keep the place of one who would. */
static int drop_silent(anabranch_node *node)
{
    uint64_t t = now();
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *c = &connections[i];
        if (c->socket >= 0 && t - c->heard > SILENCE) {
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

/* Until a file is complete and everybody has closed. */
static int receive(anabranch_node *node)
{
    while (!anabranch_node_complete(node) || busy()) {
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

/* How deep the stack has been: what lies below is painted before, and looked at after. */
enum { PAINTED = 64 * 1024, PAINT = 0xa5 };
static uintptr_t painted;

__attribute__((noinline)) static void paint(void)
{
    volatile unsigned char here[PAINTED];
    for (size_t i = 0; i < sizeof here; i++)
        here[i] = PAINT;
    painted = (uintptr_t)here;
}

static size_t stack_used(void)
{
    const volatile unsigned char *octets = (const volatile unsigned char *)painted;
    size_t clean = 0;
    while (clean < PAINTED && octets[clean] == PAINT)
        clean++;
    return PAINTED - clean;
}

/* Four octets and a port. */
static int address_of(const char *text, uint8_t octets[4], uint16_t *port)
{
    unsigned a, b, c, d, p;
    if (sscanf(text, "%u.%u.%u.%u:%u", &a, &b, &c, &d, &p) != 5)
        return -1;
    octets[0] = (uint8_t)a, octets[1] = (uint8_t)b, octets[2] = (uint8_t)c, octets[3] = (uint8_t)d;
    *port = (uint16_t)p;
    return 0;
}

static int listen_on(const char *text)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    uint16_t port;
    uint8_t octets[4];
    int yes = 1;
    if (address_of(text, octets, &port) != 0)
        return -1;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    memcpy(&address.sin_addr, octets, sizeof octets);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, CONNECTIONS) != 0)
        return -1;
    getsockname(listener, (struct sockaddr *)&address, &length);
    fprintf(stderr, "listening on %u.%u.%u.%u:%u\n", octets[0], octets[1], octets[2], octets[3],
            ntohs(address.sin_port));
    return 0;
}

int main(int argc, char **argv)
{
    anabranch_node_config config;
    anabranch_node_counters counters;
    anabranch_node *node;
    int failed;

    if (argc < 2 || argc > 2 + GATEWAYS) {
        fprintf(stderr, "usage: receive ADDRESS:PORT [GATEWAY:PORT]...\n");
        return 2;
    }
    anabranch_node_defaults(&config);
    config.connections = CONNECTIONS;
    config.read = READ;
    config.gateways = gateways;
    for (int i = 2; i < argc; i++) {
        anabranch_node_gateway *gateway = &gateways[config.gateway_count++];
        gateway->id = (uint16_t)i;
        gateway->hops = 1;
        if (address_of(argv[i], gateway->address, &gateway->port) != 0)
            return 2;
    }
    for (int i = 0; i < CONNECTIONS; i++)
        connections[i].socket = -1;
    if (anabranch_node_version() != ANABRANCH_NODE_VERSION || listen_on(argv[1]) != 0)
        return 1;
    if (anabranch_node_init(&node, memory, sizeof memory, &config) != ANABRANCH_NODE_OK) {
        fprintf(stderr, "the node wants %zu octets of memory\n", anabranch_node_memory(&config));
        return 1;
    }
    paint();
    failed = receive(node);
    anabranch_node_counters_of(node, &counters);
    fprintf(stderr, "octets %llu\nmemory %zu of %zu\nheap_peak %zu\nstack %zu\n",
            (unsigned long long)anabranch_node_delivered(node), anabranch_node_memory(&config), sizeof memory,
            anabranch_node_peak(node), stack_used());
    fprintf(stderr, "held_peak %llu\nrejected %llu\nrestarts %llu\n", (unsigned long long)counters.held_peak,
            (unsigned long long)counters.rejected, (unsigned long long)counters.restarts);
    return failed != 0;
}
