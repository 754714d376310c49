/*
 * Work that a loop has done by a thread: long checks and lists on the pool, everything that changes a store on the
 * writer.  The queues are bounded, the threads start with the first errand.
 *
 *   loop: sz_errand_start ─▶ queue ─▶ a thread: run ─▶ (writer: held until it is durable) ─▶ post ─▶ loop: done, free
 *                 │                    └─ SZ_ERRAND_LONG ─▶ queue of long ones ─▶ another thread: run once more
 *                 └── sz_errand_cancel: done never runs; what has not begun never runs; the errand frees itself
 *
 * Nobody can tell beforehand how long an errand takes.  Where there are threads for long ones, an errand that has had
 * its time on the first gives way (SZ_ERRAND_LONG) and begins anew on those: short ones never wait for long ones.  Of
 * long ones as many are under way as there are threads; the kernel lets these take turns, on what everything else
 * leaves of the processors (SCHED_IDLE), so that a loop which wakes up runs at once.  Where nothing is left, long
 * errands meet their deadlines.
 */
#ifndef SZ_FGA_API_ERRAND_H
#define SZ_FGA_API_ERRAND_H

#include <stdatomic.h>

#include "subzero/loop.h"

struct sz_errands;

enum sz_errand_end {
    SZ_ERRAND_DONE,
    SZ_ERRAND_HELD, /* whoever runs it keeps it and calls sz_errand_finish later */
    SZ_ERRAND_LONG, /* to the long ones; not from those (is_long) */
};

struct sz_errand { /* zeroed, then the functions set; heap, embedded in whatever it is about */
    enum sz_errand_end (*run)(struct sz_errand *e); /* on a thread */
    void (*crowded)(struct sz_errand *e);           /* on a thread: it is long, and too many of those wait; then done */
    void (*done)(struct sz_errand *e);              /* on the loop that started it */
    void (*free)(struct sz_errand *e);              /* after done, or without it: on any thread */
    struct sz_errands *on;
    struct sz_loop *loop; /* NULL: nobody waits */
    struct sz_errand *next;
    struct sz_errand *after, *before; /* among those that a loop waits for; under the queue's lock */
    struct sz_msg msg;
    bool posted;           /* under the queue's lock */
    atomic_bool hurried;   /* written under it: its loop ends */
    atomic_bool cancelled; /* written under it */
    bool is_long;          /* its thread's */
};

struct sz_errands_conf {
    const char *name;                 /* of the threads */
    unsigned threads, most;           /* most: that wait */
    int nice;                         /* of the threads: how far behind the loops, which are at 0 */
    unsigned long_threads, long_most; /* 0: no errand gives way */
    void (*after)(void *arg); /* on the thread when all that was queued has run, or enough of it; NULL: nothing */
    void *arg;
};
struct sz_errands *sz_errands_new(const struct sz_errands_conf *conf);
/* Runs what is queued, ends the threads.  No loop that waits for an errand may be gone. */
void sz_errands_free(struct sz_errands **errands);

/* False: the queue is full, or there is no thread to be had; nothing was taken. */
bool sz_errand_start(struct sz_errands *errands, struct sz_errand *e) SZ_MUST_CHECK;
/* The same whatever waits already: for work that must not be refused and comes by itself in small numbers. */
void sz_errand_push(struct sz_errands *errands, struct sz_errand *e);
/* The loop that started it, before done ran; the errand is not the caller's any more. */
void sz_errand_cancel(struct sz_errand *e);
/*
 * The loop ends: what it started and did not cancel stops being wanted, and is waited for.  Then all its messages are
 * in the loop's inbox.  True: something had to be waited for.
 */
bool sz_errands_settle(struct sz_errands *errands, struct sz_loop *loop) SZ_MUST_CHECK;
/* Asked on the thread: whether somebody still waits. */
bool sz_errand_wanted(struct sz_errand *e);
/* After SZ_ERRAND_HELD: the thread that runs the errands. */
void sz_errand_finish(struct sz_errand *e);

#endif
