/* Sends the lines of standard input as records to `anabranch sink`:
 *
 *     send (-p FILE | -i 1) [-n NAME] ADDRESS:PORT
 *
 * -p names a file with a pre-shared key (`anabranch key`), -i 1 sends without encryption, -n sets the name of the sender. A record is
 * a line without its end, of at most 100 bytes. The exit code is 0 when the sink has stored all records. Then the program prints what
 * it has done, and its use of memory. IPv4 only, to keep the example short. */
#include "../../embed/examples/common.h"

#include "anabranch_sense.h"

enum { LINE = 100, MEMORY = 5400, LONGEST = 256 };

/* All memory of the sender: its own, a line, and a datagram from the sink. */
static unsigned char memory[MEMORY];
static unsigned char line[LINE + 1];
static size_t filled;
static unsigned char scratch[LONGEST];
static anabranch_sense *sense;
static int udp;
/* The input has ended; the line is complete; it has found no room; the stream has ended, and how. */
static int at_end, waiting, full, ended, complete;

void anabranch_sense_panicked(void) { abort(); }

int anabranch_sense_entropy(void *octets, size_t n) { return random_octets(octets, n); }

static uint64_t unix_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Sends what is to be sent, and handles events. */
static void settle(void)
{
    anabranch_sense_event event;
    const uint8_t *octets;
    int n;
    while ((n = anabranch_sense_poll(sense, now(), &octets)) > 0)
        if (send(udp, octets, (size_t)n, 0) < 0 && (errno == ENETUNREACH || errno == EHOSTUNREACH))
            anabranch_sense_path_lost(sense, now());
    while (anabranch_sense_event_of(sense, &event) == 1) {
        if (event.kind == ANABRANCH_SENSE_WRITABLE)
            full = 0;
        if (event.kind == ANABRANCH_SENSE_ENDED) {
            ended = 1;
            complete = event.complete == 1;
        }
    }
}

/* Reads a byte of the input. Returns 0, or -1 if the line is too long. */
static int read_line(void)
{
    unsigned char octet;
    ssize_t n = read(STDIN_FILENO, &octet, 1);
    if (n < 0 && errno == EINTR)
        return 0;
    at_end = n <= 0;
    if (at_end)
        waiting = filled > 0;
    else if (octet == '\n')
        waiting = 1;
    else if (filled == LINE)
        return -1;
    else
        line[filled++] = octet;
    return 0;
}

/* Writes the line that waits, if there is room, and closes the stream after the last. */
static void write_line(void)
{
    if (waiting && !full) {
        full = anabranch_sense_write(sense, now(), unix_ms(), line, filled, NULL) == ANABRANCH_SENSE_FULL;
        if (!full)
            filled = 0, waiting = 0;
    }
    if (at_end && !waiting)
        anabranch_sense_close(sense, now());
}

/* Milliseconds until the sender needs a call; -1 if it needs none. */
static int wait_for(void)
{
    uint64_t due, present = now();
    if (anabranch_sense_next_timeout(sense, &due) != 1)
        return -1;
    return due <= present ? 0 : (int)((due - present) / 1000000) + 1;
}

/* Returns 0, or -1 if a line is too long. */
static int run(void)
{
    for (settle(); !ended; settle()) {
        struct pollfd fds[2] = {{.fd = udp, .events = POLLIN},
                                {.fd = at_end || waiting ? -1 : STDIN_FILENO, .events = POLLIN}};
        if (poll(fds, 2, wait_for()) < 0 && errno != EINTR)
            return -1;
        if (fds[0].revents != 0) {
            ssize_t n = recv(udp, scratch, sizeof scratch, 0);
            if (n > 0)
                anabranch_sense_datagram(sense, now(), scratch, (size_t)n);
        }
        if (wait_for() == 0)
            anabranch_sense_timeout(sense, now());
        settle();
        if (fds[1].revents != 0 && read_line() != 0)
            return -1;
        write_line();
    }
    return 0;
}

int main(int argc, char **argv)
{
    anabranch_sense_config config;
    anabranch_sense_counters counters;
    struct sockaddr_in to;
    uint8_t octets[4], key[32];
    uint16_t port;
    size_t stack;
    int failed;

    anabranch_sense_defaults(&config);
    config.name = "example";
    config.payload = LINE;
    while (argc > 2 && argv[1][0] == '-') {
        const char *value = argv[2];
        switch (argv[1][1] == '\0' || argv[1][2] != '\0' ? '\0' : argv[1][1]) {
        case 'p':
            if (key_of('p', value, "psk", key) != 0)
                return 2;
            config.shared = key;
            break;
        case 'i':
            config.insecure = strcmp(value, "1") == 0;
            break;
        case 'n':
            config.name = value;
            break;
        default:
            fprintf(stderr, "%s: no such option\n", argv[1]);
            return 2;
        }
        argc -= 2, argv += 2;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: (-p FILE | -i 1) [-n NAME] ADDRESS:PORT\n");
        return 2;
    }
    if (config.shared == NULL && !config.insecure) {
        fprintf(stderr, "this program sends only encrypted records: name a pre-shared key with -p, or allow others with -i 1\n");
        return 2;
    }
    if (address_of(argv[1], 1, octets, &port) != 0)
        return 2;
    if (anabranch_sense_version() != ANABRANCH_SENSE_VERSION) {
        fprintf(stderr, "the library has version %d of its interface, and the header %d\n",
                (int)anabranch_sense_version(), (int)ANABRANCH_SENSE_VERSION);
        return 1;
    }
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    memcpy(&to.sin_addr, octets, 4);
    udp = socket(AF_INET, SOCK_DGRAM, 0);
    /* Datagrams from other addresses are dropped by the kernel. */
    if (udp < 0 || connect(udp, (struct sockaddr *)&to, sizeof to) != 0) {
        fprintf(stderr, "cannot send to %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    paint();
    failed = anabranch_sense_init(&sense, now(), memory, sizeof memory, &config);
    if (failed == ANABRANCH_SENSE_ARGUMENT) {
        fprintf(stderr, "-n %s: not a name of 1 to 32 letters, digits, '.', '_' and '-'\n", config.name);
        return 2;
    }
    if (failed != ANABRANCH_SENSE_OK) {
        fprintf(stderr, "no sender: error %d; it needs %zu bytes of memory, and has %zu\n", failed,
                anabranch_sense_memory(&config), sizeof memory);
        return 1;
    }
    failed = run();
    /* fprintf needs more stack than all the rest. */
    stack = stack_used();
    if (failed != 0)
        fprintf(stderr, "a line has more than %d bytes, or the input cannot be read\n", LINE);
    anabranch_sense_counters_of(sense, &counters);
    fprintf(stderr, "records %u\nrepeated %u\ncontrol %u\nrejected %u\nhandshakes %u\nmemory %zu\nstack %zu\n",
            (unsigned)counters.records, (unsigned)counters.repeated, (unsigned)counters.control,
            (unsigned)counters.rejected, (unsigned)counters.handshakes, anabranch_sense_memory(&config), stack);
    return failed == 0 && complete ? 0 : 1;
}
