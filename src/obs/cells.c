/*
 * Counting: each loop in its own cells, with plain loads and stores that no other thread
 * writes over; threads without a loop share one set and add atomically.  A scrape adds up.
 */
#include <stdlib.h>

#include "obs/series.h"

enum { CHUNK = 1024, CHUNKS = 2048, NOBODYS = 32 };

const int64_t sz_bucket_us[SZ_BUCKETS] = {50,    100,    250,    500,    1000,    2500,    5000,    10000,   25000,
                                          50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};

struct cells {
    _Atomic(_Atomic uint64_t *) chunks[CHUNKS];
};

static struct cells *all; /* threads + 1; the last is shared */
static unsigned shared;   /* its index */
static uint32_t used;

void sz_cells_init(unsigned threads)
{
    SZ_ASSERT(all == NULL);
    all = sz_xcalloc((size_t)threads + 1, sizeof(*all));
    shared = threads;
    used = 0;
    uint32_t at;
    SZ_ASSERT(sz_cells_add(NOBODYS, &at) && at == 0);
}

void sz_cells_fini(void)
{
    for (unsigned t = 0; all != NULL && t <= shared; t++) {
        for (unsigned c = 0; c < CHUNKS; c++)
            free(atomic_load_explicit(&all[t].chunks[c], memory_order_relaxed));
    }
    free(all);
    all = NULL;
}

static void add_chunk(unsigned chunk)
{
    for (unsigned t = 0; t <= shared; t++) {
        size_t size = CHUNK * sizeof(_Atomic uint64_t);
        void *p = aligned_alloc(SZ_CACHE_LINE, size); /* no line shared between two threads */
        SZ_ASSERT(p != NULL);
        memset(p, 0, size);
        atomic_store_explicit(&all[t].chunks[chunk], p, memory_order_release);
    }
}

bool sz_cells_add(unsigned n, uint32_t *at)
{
    uint32_t start = used;
    if (start % CHUNK + n > CHUNK)
        start = (start / CHUNK + 1) * CHUNK;
    if (start + n > CHUNK * CHUNKS)
        return false;
    if (start % CHUNK == 0)
        add_chunk(start / CHUNK);
    used = start + n;
    *at = start;
    return true;
}

/* NULL before sz_metrics_init, so that a module can be tested without metrics. */
static _Atomic uint64_t *cell_of(unsigned thread, uint32_t at)
{
    if (SZ_UNLIKELY(all == NULL || at >= CHUNK * CHUNKS))
        return NULL;
    _Atomic uint64_t *chunk = atomic_load_explicit(&all[thread].chunks[at / CHUNK], memory_order_acquire);
    return chunk == NULL ? NULL : chunk + at % CHUNK;
}

static void add(unsigned thread, uint32_t at, uint64_t by)
{
    if (thread >= shared) {
        _Atomic uint64_t *cell = cell_of(shared, at);
        if (cell != NULL)
            atomic_fetch_add_explicit(cell, by, memory_order_relaxed);
        return;
    }
    _Atomic uint64_t *cell = cell_of(thread, at);
    if (cell != NULL) {
        uint64_t value = atomic_load_explicit(cell, memory_order_relaxed);
        atomic_store_explicit(cell, value + by, memory_order_relaxed);
    }
}

void sz_count(unsigned thread, struct sz_series series, uint64_t by)
{
    add(thread, series.at, by);
}

void sz_gauge_add(unsigned thread, struct sz_series series, int64_t by)
{
    add(thread, series.at, (uint64_t)by);
}

void sz_gauge_set(struct sz_series series, int64_t value)
{
    _Atomic uint64_t *cell = cell_of(shared, series.at);
    if (cell != NULL)
        atomic_store_explicit(cell, (uint64_t)value, memory_order_relaxed);
}

void sz_observe(unsigned thread, struct sz_series series, struct sz_span span)
{
    int64_t us = span.us > 0 ? span.us : 0;
    uint32_t bucket = 0;
    while (bucket < SZ_BUCKETS && us > sz_bucket_us[bucket])
        bucket++;
    add(thread, series.at + bucket, 1);
    add(thread, series.at + SZ_BUCKETS + 1, (uint64_t)us);
}

uint64_t sz_cell_sum(uint32_t at)
{
    uint64_t sum = 0;
    for (unsigned t = 0; all != NULL && t <= shared; t++) {
        _Atomic uint64_t *cell = cell_of(t, at);
        sum += cell == NULL ? 0 : atomic_load_explicit(cell, memory_order_relaxed);
    }
    return sum;
}

uint64_t sz_counter_read(struct sz_series series)
{
    return sz_cell_sum(series.at);
}
