/*
 * Work that a loop has done by a thread: long checks and lists on the pool, everything that changes a store on the
 * writer.  The queue is bounded, the threads start with the first errand.
 *
 *   loop: sz_errand_start ─▶ queue ─▶ a thread: run ─▶ (writer: held until it is durable) ─▶ post ─▶ loop: done, free
 *                 └── sz_errand_cancel: done never runs; what has not begun never runs; the errand frees itself
 */
#ifndef SZ_FGA_API_ERRAND_H
#define SZ_FGA_API_ERRAND_H

#include "subzero/loop.h"

struct sz_errands;

struct sz_errand { /* zeroed, then the functions set; heap, embedded in whatever it is about */
    /* On a thread.  True: finished; false: whoever runs it keeps it and calls sz_errand_finish later. */
    bool (*run)(struct sz_errand *e);
    void (*done)(struct sz_errand *e); /* on the loop that started it */
    void (*free)(struct sz_errand *e); /* after done, or without it: on any thread */
    struct sz_errands *on;
    struct sz_loop *loop; /* NULL: nobody waits */
    struct sz_errand *next;
    struct sz_msg msg;
    bool posted, cancelled; /* under the queue's lock */
};

/* after: on the thread when all that was queued has run, or enough of it; NULL: nothing.  At most `most` wait at a
 * time. */
struct sz_errands *sz_errands_new(const char *name, unsigned threads, unsigned most, void (*after)(void *arg),
                                  void *arg);
/* Runs what is queued, ends the threads.  No loop that waits for an errand may be gone. */
void sz_errands_free(struct sz_errands **errands);

/* False: the queue is full, or there is no thread to be had; nothing was taken. */
bool sz_errand_start(struct sz_errands *errands, struct sz_errand *e) SZ_MUST_CHECK;
/* The same whatever waits already: for work that must not be refused and comes by itself in small numbers. */
void sz_errand_push(struct sz_errands *errands, struct sz_errand *e);
/* The loop that started it, before done ran; the errand is not the caller's any more. */
void sz_errand_cancel(struct sz_errand *e);
/* Asked on the thread: whether somebody still waits. */
bool sz_errand_wanted(struct sz_errand *e);
/* For a run that returned false: the thread that runs the errands. */
void sz_errand_finish(struct sz_errand *e);

#endif
