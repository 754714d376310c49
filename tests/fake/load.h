/*
 * Load for whole-process tests: threads of keep-alive clients that send requests back to back and count what came of
 * each.  Nothing is retried: a request that got no whole answer is lost.
 */
#ifndef FAKE_LOAD_H
#define FAKE_LOAD_H

#include <pthread.h>
#include <stdatomic.h>

#include "fake/process.h"

struct load {
    uint16_t port;
    const char *request;              /* one whole request */
    unsigned clients;                 /* threads */
    unsigned requests_per_connection; /* 0: as many as the server lets */
    unsigned pause_us;                /* a client's, between two requests */
    atomic_bool stop;                 /* finish the request in hand and end */
    /* results */
    atomic_ulong ok, refused, lost; /* 200; other statuses; no whole answer */
    atomic_ulong unconnected;       /* connections that were refused (the server is gone): nothing was sent */
    atomic_ulong status_503;
    pthread_t threads[256];
    uint32_t *latencies_us; /* of the 200s; up to latencies_max */
    atomic_ulong latencies_n;
    size_t latencies_max;
};

void load_start(struct load *load);
void load_end(struct load *load); /* stops and joins */
/* The p-th percentile of the 200s, in microseconds. */
uint32_t load_percentile(struct load *load, double p);

#endif
