/*
 * Timers in a binary heap.  Every timer knows its position (slot), so that moving and
 * cancelling need no search: most timers are deadlines that are cancelled long before
 * they are due.
 *
 *            [0]                 parent of i: (i - 1) / 2
 *        [1]     [2]             children of i: 2i + 1, 2i + 2
 *      [3] [4] [5] [6]           entries[i].timer->slot == i + 1
 */
#include "loop/heap.h"

#include <stdlib.h>

enum { FIRST = 64 };

static void place(struct sz_heap *heap, size_t i, struct sz_heap_entry entry)
{
    heap->entries[i] = entry;
    entry.timer->slot = i + 1;
}

static void sift_up(struct sz_heap *heap, size_t i, struct sz_heap_entry entry)
{
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (heap->entries[parent].at.us <= entry.at.us)
            break;
        place(heap, i, heap->entries[parent]);
        i = parent;
    }
    place(heap, i, entry);
}

static void sift_down(struct sz_heap *heap, size_t i, struct sz_heap_entry entry)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap->n)
            break;
        if (child + 1 < heap->n && heap->entries[child + 1].at.us < heap->entries[child].at.us)
            child++;
        if (entry.at.us <= heap->entries[child].at.us)
            break;
        place(heap, i, heap->entries[child]);
        i = child;
    }
    place(heap, i, entry);
}

/* Puts an entry where the hole at i is, or wherever it belongs from there. */
static void settle(struct sz_heap *heap, size_t i, struct sz_heap_entry entry)
{
    if (i > 0 && entry.at.us < heap->entries[(i - 1) / 2].at.us)
        sift_up(heap, i, entry);
    else
        sift_down(heap, i, entry);
}

void sz_heap_put(struct sz_heap *heap, struct sz_timer *timer, struct sz_mono at)
{
    struct sz_heap_entry entry = {at, timer};
    timer->at = at;
    if (timer->slot != 0) {
        SZ_ASSERT(timer->slot <= heap->n && heap->entries[timer->slot - 1].timer == timer);
        settle(heap, timer->slot - 1, entry);
        return;
    }
    if (heap->n == heap->cap) {
        heap->cap = heap->cap == 0 ? FIRST : heap->cap * 2;
        heap->entries = sz_xrealloc(heap->entries, heap->cap * sizeof(*heap->entries));
    }
    heap->n++;
    sift_up(heap, heap->n - 1, entry);
}

void sz_heap_remove(struct sz_heap *heap, struct sz_timer *timer)
{
    if (timer->slot == 0)
        return;
    size_t i = timer->slot - 1;
    SZ_ASSERT(i < heap->n && heap->entries[i].timer == timer);
    timer->slot = 0;
    heap->n--;
    if (i != heap->n)
        settle(heap, i, heap->entries[heap->n]);
}

struct sz_timer *sz_heap_due(struct sz_heap *heap, struct sz_mono now)
{
    if (heap->n == 0 || heap->entries[0].at.us > now.us)
        return NULL;
    struct sz_timer *timer = heap->entries[0].timer;
    sz_heap_remove(heap, timer);
    return timer;
}

struct sz_mono sz_heap_next(const struct sz_heap *heap)
{
    return heap->n == 0 ? SZ_NEVER : heap->entries[0].at;
}

void sz_heap_fini(struct sz_heap *heap)
{
    for (size_t i = 0; i < heap->n; i++)
        heap->entries[i].timer->slot = 0;
    free(heap->entries);
    *heap = (struct sz_heap){0};
}
