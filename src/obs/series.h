/*
 * Inside the metrics: cells, where threads count, and series, which give cells a name.
 *
 * A series owns one cell, a histogram one for each bucket and one for the sum.  `at` is the
 * first of them, the same number in every thread's cells:
 *
 *   cells of thread t:   chunks[at / CHUNK] ──▶ [ ... at % CHUNK ... ]
 *
 * Chunks are added and never move, so that a thread can count while a reload adds series.
 * Cells 0 to 31 belong to nobody: a zero-initialised handle counts into them, unseen.
 */
#ifndef SZ_OBS_SERIES_H
#define SZ_OBS_SERIES_H

#include <stdatomic.h>

#include "subzero/metrics.h"

#define SZ_SERIES_MAX 65536

enum sz_metric_kind { SZ_KIND_COUNTER, SZ_KIND_GAUGE, SZ_KIND_HISTOGRAM };

struct sz_metric_row {
    enum sz_metric_kind kind;
    const char *name, *labels, *help;
};
extern const struct sz_metric_row sz_metric_rows[SZ_METRIC_COUNT];

/* Upper bounds of the buckets; one more, without a bound, follows the last. */
enum { SZ_BUCKETS = 17, SZ_HISTOGRAM_CELLS = SZ_BUCKETS + 2 };
extern const int64_t sz_bucket_us[SZ_BUCKETS];

struct sz_series_row { /* written once, then never changed */
    struct sz_series handle;
    enum sz_metric metric;
    struct sz_slice labels;               /* as exposed, without the braces: a="x",b="y" */
    _Atomic(struct sz_series_row *) next; /* of the same metric, in the order of creation */
};

/* cells.c */
void sz_cells_init(unsigned threads);
void sz_cells_fini(void);
/* Adds n cells in one chunk; false: no room left.  Under the registry's lock. */
bool sz_cells_add(unsigned n, uint32_t *at);
uint64_t sz_cell_sum(uint32_t at); /* over all threads */

/* series.c */
void sz_registry_init(void);
void sz_registry_fini(void);
const struct sz_series_row *sz_series_first(enum sz_metric metric);

/* process.c */
void sz_process_init(void);
void sz_process_expose(struct sz_buf *out);

/* breakers.c */
void sz_breakers_expose(struct sz_buf *out);

/* expose.c */
void sz_collectors_fini(void);

#endif
