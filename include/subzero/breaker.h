/*
 * Circuit breaker: whether to call a dependency at all.  A pure calculator over one atomic word:
 * no I/O, no clock, no configuration of its own, no allocation.  Shared by all loops; every function: any
 * thread, no lock, never blocks.  What is not asked because of it "could not be asked" (Z2): never "no".
 *
 *   closed     calls pass; N failures in a row open it, one success starts the count anew
 *   open       calls are rejected until the open time is over
 *   half-open  one call is the probe, all others are rejected; its outcome closes the breaker or
 *              opens it again; a probe of which nothing is heard for the probe time is lost, and the next
 *              call takes its place
 *
 * An outcome counts only in the period in which its call was let through (the ticket knows): a call
 * that hung since before the breaker opened neither closes it nor keeps it open.
 */
#ifndef SUBZERO_BREAKER_H
#define SUBZERO_BREAKER_H

#include <stdatomic.h>

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_BREAKER_FAILURES_MAX 1000

enum sz_breaker_state {
    SZ_BREAKER_CLOSED,
    SZ_BREAKER_OPEN,
    SZ_BREAKER_HALF_OPEN
}; /* as subzero_breaker_state has it */

struct sz_breaker {
    _Atomic uint64_t word;                            /* see breaker.c */
    _Atomic uint64_t moved[SZ_BREAKER_HALF_OPEN + 1]; /* transitions to each state, for the metric */
    struct sz_mono base;
    struct sz_span open, probe;
    uint32_t failures;
};

/* Closed.  failures 1..SZ_BREAKER_FAILURES_MAX; open and probe at least 1 ms, kept in whole ms (rounded up). */
void sz_breaker_init(struct sz_breaker *b, uint32_t failures, struct sz_span open, struct sz_span probe,
                     struct sz_mono now);

enum sz_breaker_answer {
    SZ_BREAKER_PASS,
    SZ_BREAKER_PROBE, /* call; its outcome decides.  To be treated like any call otherwise */
    SZ_BREAKER_REJECT /* do not call, tell nothing */
};

struct sz_breaker_ticket { /* to be kept with the call until its outcome is told */
    enum sz_breaker_answer answer;
    uint32_t period;
};
struct sz_breaker_ticket sz_breaker_ask(struct sz_breaker *b, struct sz_mono now);

enum sz_breaker_outcome {
    SZ_BREAKER_SUCCESS, /* it answered, whatever it said: a "no" is an answer */
    SZ_BREAKER_FAILURE, /* timeout, no connection, 5xx, nonsense */
    SZ_BREAKER_UNKNOWN  /* the call was given up for reasons of ours; a probe hands its place on */
};
/* Once per ticket that is not REJECT; more often, late or never does no harm. */
void sz_breaker_tell(struct sz_breaker *b, struct sz_breaker_ticket ticket, enum sz_breaker_outcome outcome,
                     struct sz_mono now);

struct sz_breaker_look {         /* for metrics and Retry-After */
    enum sz_breaker_state state; /* open until a probe is under way, also when the open time is over */
    uint32_t failures;           /* in a row, while closed */
    struct sz_span retry;        /* until a call has a chance again; 0: now */
    uint64_t moved[SZ_BREAKER_HALF_OPEN + 1];
};
void sz_breaker_look(const struct sz_breaker *b, struct sz_mono now, struct sz_breaker_look *out);

#endif
