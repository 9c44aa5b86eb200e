/* What the engine and the client share: time, and a buffer that grows. */
#ifndef WIRE_H
#define WIRE_H
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *bytes;
    size_t size, room;
} buffer;

static inline int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline void die(const char *what) {
    perror(what);
    exit(3);
}

static inline void reserve(buffer *b, size_t more) {
    if (b->size + more <= b->room) return;
    while (b->size + more > b->room) b->room = b->room ? b->room * 2 : 4096;
    if (!(b->bytes = realloc(b->bytes, b->room))) die("realloc");
}

static inline void append(buffer *b, const char *bytes, size_t size) {
    reserve(b, size);
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static inline void drop(buffer *b, size_t size) {
    b->size -= size;
    if (b->size) memmove(b->bytes, b->bytes + size, b->size);
}

/* The value of a header line in a head, case-insensitive; NULL = it has none. */
static inline const char *header(const char *head, size_t size, const char *name) {
    size_t length = strlen(name);
    for (const char *line = memchr(head, '\n', size); line; line = memchr(line, '\n', head + size - line)) {
        line++;
        if ((size_t)(head + size - line) > length && line[length] == ':' && !strncasecmp(line, name, length)) {
            line += length + 1;
            while (*line == ' ') line++;
            return line;
        }
    }
    return NULL;
}

static inline int compare_int32(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Many small numbers, of which quantiles are wanted. */
typedef struct {
    int32_t *values;
    size_t size, room;
} sample;

static inline void observe(sample *s, int64_t value) {
    if (s->size == s->room) {
        s->room = s->room ? s->room * 2 : 1 << 16;
        if (!(s->values = realloc(s->values, s->room * sizeof(int32_t)))) die("realloc");
    }
    s->values[s->size++] = value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

/* As JSON; null where nothing was seen. Sorts. */
static inline void print_sample(FILE *out, const char *name, sample *s, double unit) {
    if (!s->size) {
        fprintf(out, "\"%s\":null", name);
        return;
    }
    qsort(s->values, s->size, sizeof(int32_t), compare_int32);
    fprintf(out, "\"%s\":{\"count\":%zu,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f}", name, s->size,
            s->values[s->size / 2] * unit, s->values[s->size * 99 / 100] * unit, s->values[s->size - 1] * unit);
}
#endif
