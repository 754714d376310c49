/*
 * An upstream that records every request as it came over the wire and answers as it is told: well, late, never, in part
 * or with a lie.  It reads bodies strictly, so a request that a gateway framed badly shows as another one.
 */
#ifndef FAKE_RECORDER_H
#define FAKE_RECORDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake/process.h"

#define RECORDER_MAX 4096

struct recorded {
    char method[40];
    char target[8192];
    char *head; /* raw, NUL-terminated */
    size_t head_n;
    size_t body_n;
    unsigned connection; /* which of the connections it came on, from 1 */
};

enum recorder_mode {
    RECORDER_OK,      /* 200, "ok", keep-alive */
    RECORDER_CLOSE,   /* 200, "ok", and closes */
    RECORDER_HANG,    /* reads, never answers */
    RECORDER_CUT,     /* closes after the request */
    RECORDER_SHORT,   /* Content-Length 100, ten bytes, closes */
    RECORDER_SLOW,    /* 200 after `delay_ms` */
    RECORDER_GARBAGE, /* not HTTP */
};

struct recorder {
    uint16_t port;
    int listener;
    pthread_mutex_t lock;
    struct recorded *v;
    size_t n;
    _Atomic int mode;
    _Atomic int delay_ms;
    atomic_uint connections; /* accepted so far */
    atomic_bool refuse_body; /* answers as soon as the head is in */
};

void recorder_start(struct recorder *r);
/* How many requests so far. */
size_t recorder_count(struct recorder *r);
/* Copy of request `at` (head malloc'ed), false when there is none. */
bool recorder_get(struct recorder *r, size_t at, struct recorded *out);
void recorder_clear(struct recorder *r);
/* The value of a field of a recorded head; false when absent. */
bool recorded_header(const struct recorded *rec, const char *name, char *out, size_t size);

#endif
