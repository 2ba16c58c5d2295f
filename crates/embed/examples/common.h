/* What the examples of all libraries share: the clock, numbers, addresses and keys on the command
 * line, and the depth of the stack. Include it first. */
#define _POSIX_C_SOURCE 200809L

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds of a clock that never goes back. */
__attribute__((unused)) static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Writes all bytes, also if signals interrupt the call. */
__attribute__((unused)) static int put(int to, const uint8_t *octets, size_t n)
{
    while (n > 0) {
        ssize_t written = write(to, octets, n);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0) {
            octets += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

/* Reads a decimal number of at most `most`, and advances *text past it. Returns 0 or -1. Unlike
 * strtoul and sscanf it accepts no sign, no space, and no number that is out of range. */
__attribute__((unused)) static int number_of(const char **text, uint64_t most, uint64_t *number)
{
    const char *first = *text;
    for (*number = 0; **text >= '0' && **text <= '9'; ++*text) {
        *number = *number * 10 + (uint64_t)(**text - '0');
        if (*number > most)
            return -1;
    }
    return *text == first ? -1 : 0;
}

/* Prints a word and a number on standard error. fprintf would need more stack than the rest of the
 * program; it is used only before the node runs and after it has ended. */
__attribute__((unused)) static void say(const char *word, uint64_t number)
{
    char line[32];
    size_t n = sizeof line;
    line[--n] = '\n';
    do
        line[--n] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    n -= strlen(word);
    memcpy(line + n, word, strlen(word));
    put(STDERR_FILENO, (const uint8_t *)line + n, sizeof line - n);
}

/* Reads n bytes from the 2n hexadecimal digits at the beginning of a text. Returns 0, or -1 if
 * there are fewer. */
__attribute__((unused)) static int octets_of(const char *text, uint8_t *octets, size_t n)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    for (size_t i = 0; i < 2 * n; i++) {
        const char *digit = text[i] == '\0' ? NULL : strchr(digits, text[i]);
        if (digit == NULL)
            return -1;
        octets[i / 2] = (uint8_t)(octets[i / 2] << 4 | ((digit - digits) & 15));
    }
    return 0;
}

/* Reads the key of this kind from a file that has no key of another kind. */
__attribute__((unused)) static int key_of(char option, const char *path, const char *kind, uint8_t key[32])
{
    char line[128];
    size_t word = strlen(kind);
    FILE *in = fopen(path, "r");
    int found = 0;
    if (in == NULL) {
        fprintf(stderr, "-%c %s: %s\n", option, path, strerror(errno));
        return -1;
    }
    while (!found && fgets(line, sizeof line, in) != NULL)
        if (strncmp(line, kind, word) == 0 && line[word] == ':')
            found = octets_of(line + word + 1, key, 32) == 0;
    fclose(in);
    if (!found)
        fprintf(stderr, "-%c %s: no line of %s: and 64 hexadecimal digits\n", option, path, kind);
    return found ? 0 : -1;
}

/* Fills n bytes with random numbers of the operating system. Returns 0 or -1. */
__attribute__((unused)) static int random_octets(void *octets, size_t n)
{
    int urandom = open("/dev/urandom", O_RDONLY);
    ssize_t got = urandom < 0 ? -1 : read(urandom, octets, n);
    close(urandom);
    return got == (ssize_t)n ? 0 : -1;
}

/* The depth of the stack: the memory below is painted before the node runs, and inspected
 * afterwards. */
enum { PAINTED = 64 * 1024, PAINT = 0xa5 };
static uintptr_t painted;

__attribute__((noinline, unused)) static void paint(void)
{
    volatile unsigned char here[PAINTED];
    for (size_t i = 0; i < sizeof here; i++)
        here[i] = PAINT;
    painted = (uintptr_t)here;
}

/* Not inlined, so that tests/valgrind.supp can name it. */
__attribute__((noinline, unused)) static size_t stack_used(void)
{
    const volatile unsigned char *octets = (const volatile unsigned char *)painted;
    size_t clean = 0;
    while (clean < PAINTED && octets[clean] == PAINT)
        clean++;
    return PAINTED - clean;
}

/* Reads an IPv4 address and a port of at least `least`. Returns 0, or -1 after a message. */
__attribute__((unused)) static int address_of(const char *text, uint16_t least, uint8_t octets[4], uint16_t *port)
{
    const char *at = text;
    uint64_t number;
    for (int i = 0; i < 4; i++) {
        if (number_of(&at, 255, &number) != 0 || *at++ != (i < 3 ? '.' : ':'))
            goto wrong;
        octets[i] = (uint8_t)number;
    }
    if (number_of(&at, 65535, &number) != 0 || *at != '\0' || number < least)
        goto wrong;
    *port = (uint16_t)number;
    return 0;
wrong:
    fprintf(stderr, "%s: not an IPv4 address with a port from %u to 65535, such as 192.0.2.1:47200\n", text, least);
    return -1;
}
