/* The queue between the threads that log and the one that writes: see ring.h. */
#include "obs/ring.h"

#include <errno.h>
#include <sys/mman.h>

enum { HEAD = 8 };

static _Atomic uint64_t *head_word(struct sz_ring *ring, uint64_t at)
{
    return (_Atomic uint64_t *)(void *)(ring->bytes + at % SZ_RING_SIZE); /* records start on multiples of 8 */
}

static uint64_t record_size(uint64_t n)
{
    return HEAD + (n + 7) / 8 * 8;
}

int sz_ring_map(struct sz_ring *ring)
{
    if (ring->bytes != NULL)
        return 0;
    void *p = mmap(NULL, SZ_RING_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -errno;
    ring->bytes = p;
    return 0;
}

void sz_ring_unmap(struct sz_ring *ring)
{
    if (ring->bytes != NULL)
        munmap(ring->bytes, SZ_RING_SIZE);
    ring->bytes = NULL;
}

bool sz_ring_push(struct sz_ring *ring, struct sz_slice s)
{
    SZ_ASSERT(s.n >= 1 && s.n <= SZ_RING_SIZE / 4);
    uint64_t size = record_size(s.n);
    uint64_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);
    do {
        /* Acquire: what the reader zeroed before it moved the tail is done. */
        if (at + size - atomic_load_explicit(&ring->tail, memory_order_acquire) > SZ_RING_SIZE)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&ring->head, &at, at + size, memory_order_relaxed,
                                                    memory_order_relaxed));
    size_t from = (at + HEAD) % SZ_RING_SIZE;
    size_t first = SZ_RING_SIZE - from < s.n ? SZ_RING_SIZE - from : s.n;
    memcpy(ring->bytes + from, s.p, first);
    memcpy(ring->bytes, s.p + first, s.n - first);
    /* Sequentially consistent, against the reader that says it sleeps and then looks once more. */
    atomic_store(head_word(ring, at), s.n);
    return true;
}

struct sz_ring_view sz_ring_peek(struct sz_ring *ring, struct iovec *iov, unsigned max)
{
    struct sz_ring_view view = {.end = atomic_load_explicit(&ring->tail, memory_order_relaxed)};
    uint64_t start = view.end;
    while (view.pieces + 2 <= max && view.end - start < SZ_RING_SIZE) {
        uint64_t n = atomic_load(head_word(ring, view.end));
        if (n == 0)
            break;
        size_t from = (view.end + HEAD) % SZ_RING_SIZE;
        size_t first = SZ_RING_SIZE - from < n ? SZ_RING_SIZE - from : n;
        iov[view.pieces++] = (struct iovec){ring->bytes + from, first};
        if (first < n)
            iov[view.pieces++] = (struct iovec){ring->bytes, n - first};
        view.end += record_size(n);
        view.records++;
        view.bytes += n;
    }
    return view;
}

void sz_ring_release(struct sz_ring *ring, const struct sz_ring_view *view)
{
    uint64_t start = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t n = (size_t)(view->end - start);
    size_t from = start % SZ_RING_SIZE;
    size_t first = SZ_RING_SIZE - from < n ? SZ_RING_SIZE - from : n;
    memset(ring->bytes + from, 0, first);
    memset(ring->bytes, 0, n - first);
    atomic_store_explicit(&ring->tail, view->end, memory_order_release);
}
