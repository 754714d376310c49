/*
 * A loop for tests: the functions of subzero/loop.h work on it as on a real one (except
 * sz_loop_run, sz_loop_free and sz_loop_native), but it runs only when it is told to and its
 * time moves only by hand.  Messages, timers, deferred calls and watches on real descriptors
 * are the very code of the real loop.  One thread, sz_loop_post and sz_loop_stop excepted.
 */
#ifndef FAKE_LOOP_H
#define FAKE_LOOP_H

#include "subzero/loop.h"

/* Starts at monotonic second 1,000 and at 2026-01-01T00:00:00Z. */
struct sz_loop *fake_loop_new(unsigned index);
void fake_loop_free(struct sz_loop **loop);

/* Moves both clocks forward; runs nothing. */
void fake_loop_advance(struct sz_loop *loop, struct sz_span by);
/* A step of the system clock: wall time alone. */
void fake_loop_set_wall(struct sz_loop *loop, struct sz_wall wall);

/* One turn without waiting: messages, watches, timers that are due, deferred calls. */
void fake_loop_run_once(struct sz_loop *loop);
/* Turns without moving the time until nothing is queued and no timer is due; fails the test after 10,000. */
void fake_loop_settle(struct sz_loop *loop);
/* Moves from timer to timer until `by` has passed, settling at each. */
void fake_loop_run_for(struct sz_loop *loop, struct sz_span by);
/*
 * For peers on real descriptors and other threads: turns that wait in real time (the loop's own
 * stands still) until done(arg).  False: not within `real_ms`.
 */
bool fake_loop_run_until(struct sz_loop *loop, bool (*done)(void *arg), void *arg, int real_ms) SZ_MUST_CHECK;
/* When the next timer is due, SZ_NEVER without one: for tests of what was armed. */
struct sz_mono fake_loop_next_timer(const struct sz_loop *loop);

#endif
