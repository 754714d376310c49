/*
 * The Prometheus text exposition, format 0.0.4: the rows of the table in their order, then
 * what others collect, then the process itself.  A histogram's count is the sum of the very
 * buckets that are printed, so that the two agree although the loops count on meanwhile.
 */
#include <inttypes.h>
#include <pthread.h>

#include "obs/series.h"
#include "subzero/log.h"

enum { COLLECTORS_MAX = 64 };

static const char *const bucket_text[SZ_BUCKETS] = {"0.00005", "0.0001", "0.00025", "0.0005", "0.001", "0.0025",
                                                    "0.005",   "0.01",   "0.025",   "0.05",   "0.1",   "0.25",
                                                    "0.5",     "1",      "2.5",     "5",      "10"};

struct collector {
    void (*collect)(void *arg, struct sz_buf *out);
    void *arg;
};

static struct {
    pthread_mutex_t lock;
    struct collector v[COLLECTORS_MAX];
    unsigned n;
} collectors = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sz_metrics_init(unsigned threads)
{
    sz_cells_init(threads);
    sz_registry_init();
    sz_process_init();
}

void sz_metrics_fini(void)
{
    sz_registry_fini();
    sz_cells_fini();
    sz_collectors_fini();
}

void sz_metrics_on_scrape(void (*collect)(void *arg, struct sz_buf *out), void *arg)
{
    pthread_mutex_lock(&collectors.lock);
    SZ_ASSERT(collectors.n < COLLECTORS_MAX);
    collectors.v[collectors.n++] = (struct collector){collect, arg};
    pthread_mutex_unlock(&collectors.lock);
}

void sz_collectors_fini(void)
{
    pthread_mutex_lock(&collectors.lock);
    collectors.n = 0;
    pthread_mutex_unlock(&collectors.lock);
}

static void add_head(struct sz_buf *out, const char *name, const char *type, const char *help)
{
    sz_buf_printf(out, "# HELP %s ", name);
    for (const char *p = help; *p != '\0'; p++) {
        if (*p == '\n' || *p == '\\')
            sz_buf_adds(out, *p == '\n' ? SZ_S("\\n") : SZ_S("\\\\"));
        else
            sz_buf_add(out, p, 1);
    }
    sz_buf_printf(out, "\n# TYPE %s %s\n", name, type);
}

const char *sz_metrics_head(struct sz_buf *out, enum sz_collected metric)
{
    static const struct {
        const char *type, *name, *help;
    } rows[SZ_COLLECTED_COUNT] = {
#define SZ_COLLECTED(id, kind, name, labels, help, watch) {#kind, name, help},
#include "subzero/tbl/metrics.h"
    };
    SZ_ASSERT(metric < SZ_COLLECTED_COUNT);
    add_head(out, rows[metric].name, rows[metric].type, rows[metric].help);
    return rows[metric].name;
}

/* name{labels} and a blank; `suffix` and `le` are a histogram's. */
static void add_name(struct sz_buf *out, const struct sz_series_row *row, const char *suffix, const char *le)
{
    sz_buf_printf(out, "%s%s", sz_metric_rows[row->metric].name, suffix);
    if (row->labels.n != 0 || le != NULL) {
        sz_buf_add(out, "{", 1);
        sz_buf_adds(out, row->labels);
        if (le != NULL)
            sz_buf_printf(out, "%sle=\"%s\"", row->labels.n != 0 ? "," : "", le);
        sz_buf_add(out, "}", 1);
    }
    sz_buf_add(out, " ", 1);
}

static void add_histogram(struct sz_buf *out, const struct sz_series_row *row)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= SZ_BUCKETS; i++) {
        count += sz_cell_sum(row->handle.at + i);
        add_name(out, row, "_bucket", i < SZ_BUCKETS ? bucket_text[i] : "+Inf");
        sz_buf_printf(out, "%" PRIu64 "\n", count);
    }
    uint64_t us = sz_cell_sum(row->handle.at + SZ_BUCKETS + 1);
    add_name(out, row, "_sum", NULL);
    sz_buf_printf(out, "%" PRIu64 ".%06u\n", us / 1000000, (unsigned)(us % 1000000));
    add_name(out, row, "_count", NULL);
    sz_buf_printf(out, "%" PRIu64 "\n", count);
}

static void add_sample(struct sz_buf *out, const struct sz_series_row *row)
{
    uint64_t value = sz_cell_sum(row->handle.at);
    if (row->metric == SZ_METRIC_log_lost)
        value += sz_log_lost(); /* the log's threads know nothing of metrics */
    add_name(out, row, "", NULL);
    if (sz_metric_rows[row->metric].kind == SZ_KIND_GAUGE)
        sz_buf_printf(out, "%" PRId64 "\n", (int64_t)value);
    else
        sz_buf_printf(out, "%" PRIu64 "\n", value);
}

static void add_metric(struct sz_buf *out, enum sz_metric metric)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const struct sz_metric_row *info = &sz_metric_rows[metric];
    const struct sz_series_row *row = sz_series_first(metric);
    if (row == NULL)
        return;
    add_head(out, info->name, types[info->kind], info->help);
    for (; row != NULL; row = atomic_load_explicit(&row->next, memory_order_acquire)) {
        if (info->kind == SZ_KIND_HISTOGRAM)
            add_histogram(out, row);
        else
            add_sample(out, row);
    }
}

void sz_metrics_expose(struct sz_buf *out)
{
    for (unsigned m = 0; m < SZ_METRIC_COUNT; m++)
        add_metric(out, m);
    sz_breakers_expose(out);
    /* Copied: nobody is called under the lock. */
    struct collector v[COLLECTORS_MAX];
    pthread_mutex_lock(&collectors.lock);
    unsigned n = collectors.n;
    memcpy(v, collectors.v, n * sizeof(v[0]));
    pthread_mutex_unlock(&collectors.lock);
    for (unsigned i = 0; i < n; i++)
        v[i].collect(v[i].arg, out);
    sz_process_expose(out);
}
