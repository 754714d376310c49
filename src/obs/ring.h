/*
 * A bounded queue of byte records, many writers, one reader, no locks.
 *
 *        tail                              head
 *   ......|head word|bytes....|head word|...|......      (wraps; all of the free part is zero)
 *
 * A writer takes its place by moving `head`, copies, and last of all stores the length in the
 * head word: until then the reader stops there.  The reader zeroes what it has read before it
 * moves `tail`, so that no old byte is ever taken for a length.
 */
#ifndef SZ_OBS_RING_H
#define SZ_OBS_RING_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "subzero/base.h"

#define SZ_RING_SIZE ((size_t)4 << 20)

struct sz_ring {
    char *bytes; /* mapped by sz_ring_map, for the life of the process */
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t head;
    _Atomic uint64_t tail_seen; /* by writers: they look at the reader's own only when this one says full */
    _Alignas(SZ_CACHE_LINE) _Atomic uint64_t tail; /* written by the reader */
};

/* Any thread.  False: full.  s.n is at least 1 and at most a quarter of the ring. */
bool sz_ring_push(struct sz_ring *ring, struct sz_slice s);
/* Any thread; a guess as soon as it is given. */
static inline size_t sz_ring_used(struct sz_ring *ring)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    return (size_t)(atomic_load_explicit(&ring->head, memory_order_relaxed) - tail);
}

int sz_ring_map(struct sz_ring *ring) SZ_MUST_CHECK; /* no-op when mapped; negative errno */
void sz_ring_unmap(struct sz_ring *ring);            /* nobody uses it any more */

/* The reader: a place to read on from; zero at first. */
struct sz_ring_view {
    uint64_t end;    /* behind the last record seen */
    unsigned pieces; /* of iov */
    size_t records, bytes;
};
/* A view of nothing yet, from where the last release ended. */
struct sz_ring_view sz_ring_view(struct sz_ring *ring);
/* One more finished record, in one piece or, when it wraps, two: added to the view.  The pieces, 0: none yet. */
unsigned sz_ring_next(struct sz_ring *ring, struct sz_ring_view *view, struct iovec iov[2]);
/* Collects finished records, at most `max` (>= 2) pieces: two for one that wraps. */
struct sz_ring_view sz_ring_peek(struct sz_ring *ring, struct iovec *iov, unsigned max);
/* Gives back everything up to view.end.  Rarely is better: what the reader writes here is far from the writers. */
void sz_ring_release(struct sz_ring *ring, const struct sz_ring_view *view);

#endif
