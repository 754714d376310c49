/*
 * Metrics: rows from subzero/tbl/metrics.h.  Each loop counts in its own cells (no sharing, no
 * atomics beyond relaxed stores), added up when scraped.  Series are created at the start or at
 * a reload from closed lists (routes, reasons, listeners ...); a request can never create one.
 */
#ifndef SUBZERO_METRICS_H
#define SUBZERO_METRICS_H

#include "subzero/base.h"
#include "subzero/time.h"

enum sz_metric {
#define SZ_COUNTER(id, name, labels, help, watch)   SZ_METRIC_##id,
#define SZ_GAUGE(id, name, labels, help, watch)     SZ_METRIC_##id,
#define SZ_HISTOGRAM(id, name, labels, help, watch) SZ_METRIC_##id,
#include "subzero/tbl/metrics.h"
    SZ_METRIC_COUNT
};

/* Metrics that are read where they live when somebody scrapes. */
enum sz_collected {
#define SZ_COLLECTED(id, kind, name, labels, help, watch) SZ_COLLECTED_##id,
#include "subzero/tbl/metrics.h"
    SZ_COLLECTED_COUNT
};

/* Once at the start: cells for `threads` loops (index of sz_loop_index) plus one shared by all other threads. */
void sz_metrics_init(unsigned threads);
void sz_metrics_fini(void);

/*
 * Registers (or finds) the series of a metric with these label values, in the order of its label
 * names; a dense handle, the same in every thread.  values NULL where there are no labels.  Any thread;
 * takes a lock that is never held for longer than one look-up, so keep the handle.  At most 65,536 series
 * in all; beyond it the handle of an overflow series (labels "other") is returned, never an error.  A handle
 * of {0} counts nothing, and before sz_metrics_init that is all there is: a module needs no metrics to be
 * tested.
 */
struct sz_series {
    uint32_t at;
};
struct sz_series sz_series(enum sz_metric metric, const char *const *values);
static inline struct sz_series sz_series1(enum sz_metric metric, const char *value)
{
    return sz_series(metric, &value);
}

/* Hot path: this thread's cell.  thread = sz_loop_index(); a thread without a loop uses SZ_NO_LOOP (atomic add). */
#define SZ_NO_LOOP UINT32_MAX
void sz_count(unsigned thread, struct sz_series series, uint64_t by);
void sz_gauge_add(unsigned thread, struct sz_series series, int64_t by);
void sz_gauge_set(struct sz_series series, int64_t value); /* gauges that have one owner */
void sz_observe(unsigned thread, struct sz_series series, struct sz_span span);
uint64_t sz_counter_read(struct sz_series series);

/*
 * Values that live elsewhere (cache statistics, process_*, pools): called at each scrape, appends
 * whole exposition lines.  Any thread may register; called on the scraping thread.
 */
void sz_metrics_on_scrape(void (*collect)(void *arg, struct sz_buf *out), void *arg);
/* HELP and TYPE of a metric that a collector writes: first, and once in a scrape.  Its name, for the lines after it. */
const char *sz_metrics_head(struct sz_buf *out, enum sz_collected metric);

/* Prometheus text exposition 0.0.4 of everything, process_* included. */
void sz_metrics_expose(struct sz_buf *out);

#endif
