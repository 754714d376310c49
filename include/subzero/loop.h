/*
 * The event loop as the rest of Subzero sees it.  One loop per thread; all
 * functions belong to the loop's own thread unless a line says "any thread".
 * Callbacks run on the loop's thread, never inside the call that armed them.
 * Implemented on h2o's evloop in src/loop; tests/fake/loop.h makes loops that work with the
 * same functions and whose time a test moves by hand.
 */
#ifndef SUBZERO_LOOP_H
#define SUBZERO_LOOP_H

#include "subzero/base.h"
#include "subzero/time.h"

struct sz_loop;

/* The time of this turn: read once, at the first question. */
struct sz_mono sz_loop_now(const struct sz_loop *loop);
struct sz_wall sz_loop_wall(const struct sz_loop *loop);
/* Reads the clock anew, for measuring inside a turn; the turn's time moves on with it. */
struct sz_mono sz_loop_tick(struct sz_loop *loop);
/* Number of this turn: grows by one each time the loop wakes.  For per-turn budgets. */
uint64_t sz_loop_turn(const struct sz_loop *loop);
/* Small dense index, 0..n-1 for workers, n for the service loop; for per-thread counters. */
unsigned sz_loop_index(const struct sz_loop *loop);
/* The loop this thread runs, NULL elsewhere. */
struct sz_loop *sz_loop_current(void);

/*
 * Timers: embedded in their owner's struct, zero-initialised, one shot.  Resolution
 * 1 ms, never early, on the monotonic clock.  Any number, O(log n): a binary heap whose top
 * bounds the loop's sleep.  `at` in the past means the next turn.
 */
struct sz_timer {
    void (*on_fire)(struct sz_timer *timer);
    struct sz_mono at;
    size_t slot; /* position in the heap + 1; 0 = not armed */
};
void sz_timer_start(struct sz_loop *loop, struct sz_timer *timer, struct sz_mono at); /* re-arms when armed */
void sz_timer_cancel(struct sz_loop *loop, struct sz_timer *timer);                   /* no-op when not armed */
static inline bool sz_timer_armed(const struct sz_timer *timer)
{
    return timer->slot != 0;
}

/*
 * Deferred calls: run after the events of this turn were handled, before the loop
 * sleeps again.  Embedded, one shot, cancellable.  This is the zero-timeout hop that keeps
 * work out of the callback of a request that has just arrived.
 */
struct sz_defer {
    void (*on_run)(struct sz_defer *defer);
    struct sz_defer *next, **prev; /* prev NULL = not queued */
};
void sz_defer_start(struct sz_loop *loop, struct sz_defer *defer); /* no-op when queued; first come, first run */
void sz_defer_cancel(struct sz_defer *defer);                      /* no-op when not queued */

/*
 * Messages: any thread -> this loop.  The sender owns the struct until it is posted,
 * the receiver from then on.  Delivered in order per sender.  Never fails, never blocks
 * (a lock-free list and an eventfd).
 */
struct sz_msg {
    void (*on_msg)(struct sz_msg *msg, struct sz_loop *loop);
    struct sz_msg *next;
};
void sz_loop_post(struct sz_loop *loop, struct sz_msg *msg); /* any thread */

/*
 * Watch a descriptor that the caller owns (level-triggered); free the watch before closing it.  One watch a
 * descriptor.  Changing or freeing any watch inside any callback is fine.  A hang-up or an error shows as
 * whatever is waited for.
 */
enum { SZ_READ = 1, SZ_WRITE = 2 };
struct sz_watch;
struct sz_watch *sz_watch_new(struct sz_loop *loop, int fd, void (*on_ready)(void *arg, int fd, unsigned events),
                              void *arg);
/* What to wait for from now on; 0 = nothing.  Where the kernel has no room for it, it is asked again every 20 ms. */
void sz_watch_set(struct sz_watch *watch, unsigned events);
void sz_watch_free(struct sz_watch **watch); /* does not close fd */

/*
 * Life: create on any thread, run and free on the thread that will be its own.  After a stop, what was posted
 * and deferred is still delivered before sz_loop_run returns; messages that come later are dropped by
 * sz_loop_free.  Everything of h2o's on this loop is disposed before sz_loop_free.
 */
struct sz_loop *sz_loop_new(unsigned index); /* NULL: errno */
void sz_loop_run(struct sz_loop *loop);      /* until sz_loop_stop */
void sz_loop_stop(struct sz_loop *loop);     /* any thread, also a signal handler; before the run it ends it at once */
void sz_loop_free(struct sz_loop **loop);
/* The h2o loop inside, for src/edge (which sees h2o); an h2o_evloop_t * behind void. */
void *sz_loop_native(struct sz_loop *loop);

#endif
