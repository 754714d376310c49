/*
 * Many clients at once, each from an address of its own in 127.1.0.0/16, in one thread: each sends a request (a head
 * made by the test, then filler as its body), waits for the answer, and begins again or is done.  What came back is
 * counted.
 */
#ifndef FAKE_CROWD_H
#define FAKE_CROWD_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake/wire.h"

struct crowd {
    uint16_t port;
    unsigned clients; /* at most 10,000 */
    bool repeat;      /* another request after each answer, another connection after each end */
    uint64_t body;    /* bytes of filler behind the head */
    /* Appends a request's head; called in the crowd's thread. */
    void (*head)(struct crowd *crowd, struct sz_buf *out);
    void *arg;
    /* results */
    atomic_ulong answered, by_status[600];
    atomic_ulong cut;   /* connections that ended without an answer */
    atomic_ulong bytes; /* sent */
    /* its own */
    atomic_bool stop;
    pthread_t thread;
};

void crowd_start(struct crowd *crowd);
void crowd_end(struct crowd *crowd); /* hangs up and joins */
/* Until so many were answered or cut. */
bool crowd_wait(struct crowd *crowd, unsigned long n, struct sz_span limit);

#endif
