/* Forwards IP packets between two neighbours, with a cache of TCP segments:
 *
 *     forward [-l PERCENT] [-s SEED] [-c 0] ADDRESS:PORT RIGHT:PORT
 *
 * UDP stands in for a radio: a datagram contains one IP packet. The right neighbour is RIGHT, the left one is the sender of the
 * first datagram from elsewhere. Packets from one of them go to the other. With -l this share of the packets is lost on the way to
 * the next hop. The example then reports the loss to the cache, as the link layer of a radio does when it has no acknowledgement.
 * -s chooses which packets are lost; -c 0 forwards without a cache. The program ends when its standard input ends, and then prints
 * what the cache has done, and its use of memory. */
#include "../../embed/examples/common.h"

#include "anabranch_cache.h"

enum { MEMORY = 1500, LONGEST = 300, LEFT = 0, RIGHT = 1 };

static unsigned char memory[MEMORY];
static unsigned char packet[LONGEST];
static anabranch_cache *cache;
static int radio;
static struct sockaddr_in neighbours[2];
/* The address at the left end, from the first packet that comes from there. */
static unsigned char left_end[16];
static uint32_t loss;
static uint64_t seed = 1;

void anabranch_cache_panicked(void) { abort(); }

static int is_lost(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % 100 < loss;
}

/* Source or destination of a packet. Returns its length, 0 if there is none. */
static size_t address(const unsigned char *octets, size_t n, int destination, const unsigned char **at)
{
    size_t length = n > 0 && octets[0] >> 4 == 4 ? 4 : 16, first = length == 4 ? 12 : 8;
    *at = octets + first + (destination ? length : 0);
    return n >= first + 2 * length ? length : 0;
}

static void carry(const unsigned char *octets, size_t n, int to)
{
    int lost = is_lost();
    if (!lost)
        sendto(radio, octets, n, 0, (const struct sockaddr *)&neighbours[to], sizeof neighbours[to]);
    if (cache != NULL && lost)
        anabranch_cache_lost(cache, now(), octets, n);
    else if (cache != NULL)
        anabranch_cache_delivered(cache, now(), octets, n);
}

/* Sends what the cache repeats. */
static void repeat(void)
{
    const unsigned char *to;
    size_t length;
    int n;
    while (cache != NULL && (n = anabranch_cache_poll(cache, now(), packet, sizeof packet)) > 0) {
        length = address(packet, (size_t)n, 1, &to);
        carry(packet, (size_t)n, memcmp(to, left_end, length) == 0 ? LEFT : RIGHT);
    }
}

static int is_from(const struct sockaddr_in *from, int side)
{
    return from->sin_port == neighbours[side].sin_port && from->sin_addr.s_addr == neighbours[side].sin_addr.s_addr;
}

static void receive(void)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    const unsigned char *source;
    ssize_t n = recvfrom(radio, packet, sizeof packet, 0, (struct sockaddr *)&from, &size);
    size_t length = n > 0 ? address(packet, (size_t)n, 0, &source) : 0;
    if (length == 0)
        return;
    if (neighbours[LEFT].sin_port == 0 && !is_from(&from, RIGHT)) {
        neighbours[LEFT] = from;
        memcpy(left_end, source, length);
    }
    if (!is_from(&from, LEFT) && !is_from(&from, RIGHT))
        return;
    if (cache == NULL || anabranch_cache_packet(cache, now(), packet, (size_t)n) != ANABRANCH_CACHE_HOLD)
        carry(packet, (size_t)n, is_from(&from, LEFT) ? RIGHT : LEFT);
    repeat();
}

/* Milliseconds until the cache needs a call; -1 if it needs none. */
static int wait_for(void)
{
    uint64_t due, present = now();
    if (cache == NULL || anabranch_cache_next_timeout(cache, &due) != 1)
        return -1;
    if (due <= present)
        return 0;
    due = (due - present) / 1000000 + 1;
    return due > 1000 ? 1000 : (int)due;
}

static void forward(void)
{
    struct pollfd fds[2] = {{.fd = radio, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    char octet;
    for (;;) {
        if (poll(fds, 2, wait_for()) < 0 && errno != EINTR)
            return;
        if (fds[1].revents != 0 && read(STDIN_FILENO, &octet, 1) <= 0)
            return;
        if (fds[0].revents & POLLIN)
            receive();
        if (cache != NULL && wait_for() == 0) {
            anabranch_cache_timeout(cache, now());
            repeat();
        }
    }
}

static int socket_address(const char *text, uint16_t least, struct sockaddr_in *out)
{
    uint8_t octets[4];
    uint16_t port;
    if (address_of(text, least, octets, &port) != 0)
        return -1;
    memset(out, 0, sizeof *out);
    out->sin_family = AF_INET;
    out->sin_port = htons(port);
    memcpy(&out->sin_addr, octets, 4);
    return 0;
}

static int option(const char *name, const char *value, int *cached)
{
    const char *at = value;
    uint64_t number;
    uint64_t most = name[1] == 'l' ? 99 : name[1] == 'c' ? 1 : UINT32_MAX;
    if (name[1] == '\0' || name[2] != '\0' || strchr("lsc", name[1]) == NULL) {
        fprintf(stderr, "%s: no such option\n", name);
        return -1;
    }
    if (number_of(&at, most, &number) != 0 || *at != '\0') {
        fprintf(stderr, "%s %s: not a number from 0 to %llu\n", name, value, (unsigned long long)most);
        return -1;
    }
    if (name[1] == 'l')
        loss = (uint32_t)number;
    else if (name[1] == 's')
        seed = number * 0x9e3779b97f4a7c15u + 1;
    else
        *cached = number != 0;
    return 0;
}

int main(int argc, char **argv)
{
    anabranch_cache_config config;
    anabranch_cache_counters counters;
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    size_t stack;
    int cached = 1, failed;

    while (argc > 2 && argv[1][0] == '-') {
        if (option(argv[1], argv[2], &cached) != 0)
            return 2;
        argc -= 2, argv += 2;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: [-l PERCENT] [-s SEED] [-c 0] ADDRESS:PORT RIGHT:PORT\n");
        return 2;
    }
    if (socket_address(argv[1], 0, &own) != 0 || socket_address(argv[2], 1, &neighbours[RIGHT]) != 0)
        return 2;
    if (anabranch_cache_version() != ANABRANCH_CACHE_VERSION) {
        fprintf(stderr, "the library has version %d of its interface, and the header %d\n",
                (int)anabranch_cache_version(), (int)ANABRANCH_CACHE_VERSION);
        return 1;
    }
    /* One segment of 128 bytes, as in the paper. */
    anabranch_cache_defaults(&config);
    if (cached) {
        failed = anabranch_cache_init(&cache, memory, sizeof memory, &config);
        if (failed != ANABRANCH_CACHE_OK) {
            fprintf(stderr, "no cache: error %d; it needs %zu bytes of memory, and has %zu\n", failed,
                    anabranch_cache_memory(&config), sizeof memory);
            return 1;
        }
    }
    radio = socket(AF_INET, SOCK_DGRAM, 0);
    if (radio < 0 || bind(radio, (struct sockaddr *)&own, sizeof own) != 0) {
        fprintf(stderr, "cannot listen on %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    getsockname(radio, (struct sockaddr *)&own, &size);
    fprintf(stderr, "listening on port %u\n", ntohs(own.sin_port));
    paint();
    forward();
    /* fprintf needs more stack than all the rest. */
    stack = stack_used();
    if (cache != NULL) {
        anabranch_cache_counters_of(cache, &counters);
        fprintf(stderr, "segments %u\nunread %u\ncached %u\nrepeated %u\nacks_repeated %u\nheld %u\ngiven_up %u\n",
                (unsigned)counters.segments, (unsigned)counters.unread, (unsigned)counters.cached,
                (unsigned)counters.repeated, (unsigned)counters.acks_repeated, (unsigned)counters.held,
                (unsigned)counters.given_up);
    }
    fprintf(stderr, "memory %zu\nstack %zu\n", anabranch_cache_memory(&config), stack);
    return 0;
}
