/* The timers of a loop, earliest on top: an array that is a binary heap.  One thread. */
#ifndef SZ_LOOP_HEAP_H
#define SZ_LOOP_HEAP_H

#include "subzero/loop.h"

struct sz_heap_entry {
    struct sz_mono at; /* the timer's own `at`, here so that sifting touches no timer it does not move */
    struct sz_timer *timer;
};

struct sz_heap { /* zero-initialise */
    struct sz_heap_entry *entries;
    size_t n, cap;
};

/* Puts an unarmed timer in, or moves an armed one; its `at` is set. */
void sz_heap_put(struct sz_heap *heap, struct sz_timer *timer, struct sz_mono at);
void sz_heap_remove(struct sz_heap *heap, struct sz_timer *timer); /* no-op when not armed */
/* Takes the top off when it is due at `now`; NULL otherwise. */
struct sz_timer *sz_heap_due(struct sz_heap *heap, struct sz_mono now);
/* When the top is due; SZ_NEVER when empty. */
struct sz_mono sz_heap_next(const struct sz_heap *heap);
void sz_heap_fini(struct sz_heap *heap); /* timers still in it become unarmed */

#endif
