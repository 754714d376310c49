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

/* Room for so many bytes behind `at`. */
static bool has_room(struct sz_ring *ring, uint64_t at, uint64_t size)
{
    /* Acquire, of both: what the reader zeroed before it moved the tail is done. */
    if (at + size - atomic_load_explicit(&ring->tail_seen, memory_order_acquire) <= SZ_RING_SIZE)
        return true;
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    atomic_store_explicit(&ring->tail_seen, tail, memory_order_release);
    return at + size - tail <= SZ_RING_SIZE;
}

bool sz_ring_push(struct sz_ring *ring, struct sz_slice s)
{
    SZ_ASSERT(s.n >= 1 && s.n <= SZ_RING_SIZE / 4);
    uint64_t size = record_size(s.n);
    uint64_t at = atomic_load_explicit(&ring->head, memory_order_relaxed), again;
    do {
        for (; !has_room(ring, at, size); at = again) {
            again = atomic_load_explicit(&ring->head, memory_order_relaxed);
            if (again == at)
                return false; /* else the reader had overtaken a head that was out of date */
        }
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

struct sz_ring_view sz_ring_view(struct sz_ring *ring)
{
    return (struct sz_ring_view){.end = atomic_load_explicit(&ring->tail, memory_order_relaxed)};
}

unsigned sz_ring_next(struct sz_ring *ring, struct sz_ring_view *view, struct iovec iov[2])
{
    if (view->end - atomic_load_explicit(&ring->tail, memory_order_relaxed) >= SZ_RING_SIZE)
        return 0;
    uint64_t n = atomic_load(head_word(ring, view->end));
    if (n == 0)
        return 0;
    size_t from = (view->end + HEAD) % SZ_RING_SIZE;
    size_t first = SZ_RING_SIZE - from < n ? SZ_RING_SIZE - from : n;
    unsigned pieces = first < n ? 2 : 1;
    iov[0] = (struct iovec){ring->bytes + from, first};
    iov[1] = (struct iovec){ring->bytes, n - first};
    view->end += record_size(n);
    view->pieces += pieces;
    view->records++;
    view->bytes += n;
    return pieces;
}

struct sz_ring_view sz_ring_peek(struct sz_ring *ring, struct iovec *iov, unsigned max)
{
    struct sz_ring_view view = sz_ring_view(ring);
    struct iovec pair[2];
    while (view.pieces + 2 <= max) {
        unsigned before = view.pieces, n = sz_ring_next(ring, &view, pair);
        if (n == 0)
            break;
        memcpy(iov + before, pair, n * sizeof(*iov));
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
