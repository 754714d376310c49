/*
 * The inside of a loop, shared by what makes it wait: h2o's event loop (loop_h2o.c) or a
 * test that moves the time by hand (tests/fake/loop.c).  A turn is
 *
 *   sz_loop_turn_begin   new turn number, the time becomes stale
 *   wait                 at most sz_loop_wait_ms; `epoll` turns readable for messages and watches
 *   sz_loop_dispatch     messages, then watches (when epoll was readable)
 *   sz_loop_turn_end     timers that are due, then deferred calls
 */
#ifndef SZ_LOOP_LOOP_H
#define SZ_LOOP_LOOP_H

#include <stdatomic.h>

#include "loop/heap.h"

struct sz_loop {
    /* Any thread. */
    _Atomic(struct sz_msg *) inbox; /* newest first */
    atomic_bool stop;
    atomic_uint pokes; /* threads that are about to touch `wake` */
    int wake;          /* eventfd, in `epoll` */

    /* The loop's thread. */
    _Alignas(SZ_CACHE_LINE) int epoll; /* wake and all watches */
    unsigned index;
    void (*read_clock)(struct sz_loop *loop); /* sets now and wall */
    bool fresh;                               /* now and wall were read in this turn */
    struct sz_mono now;
    struct sz_wall wall;
    uint64_t turn;
    struct sz_heap timers;
    struct sz_defer deferred; /* ring anchor: next = first, prev = &last->next */
    struct sz_watch *dead;    /* freed while their events may still be on the stack */
    bool dispatching;
    void *native;
};

/* Negative errno when the system has no descriptors left. */
int sz_loop_init(struct sz_loop *loop, unsigned index, void (*read_clock)(struct sz_loop *loop)) SZ_MUST_CHECK;
void sz_loop_fini(struct sz_loop *loop);  /* messages not delivered are dropped, timers and defers disarmed */
void sz_loop_enter(struct sz_loop *loop); /* sz_loop_current is this loop until left; NULL: leave */

void sz_loop_turn_begin(struct sz_loop *loop);
/* How long the loop may sleep from `now`, rounded up to whole milliseconds. */
int32_t sz_loop_wait_ms(const struct sz_loop *loop, struct sz_mono now);
void sz_loop_dispatch(struct sz_loop *loop);
void sz_loop_turn_end(struct sz_loop *loop);
bool sz_loop_is_busy(const struct sz_loop *loop); /* a message or a deferred call is waiting */

/* watch.c: hands over what epoll reports; true when the wake descriptor was among it. */
bool sz_watch_dispatch(struct sz_loop *loop);

#endif
