/*
 * The registry of series: which label values exist.  Series are created at the start and at
 * reloads from closed lists; they are never removed, since a counter that vanishes and comes
 * back looks like a reset.  A row is written once and then linked, so that a scrape walks the
 * rows without the lock that creating one takes.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "obs/series.h"
#include "subzero/crypto.h"

const struct sz_metric_row sz_metric_rows[SZ_METRIC_COUNT] = {
#define SZ_COUNTER(id, name, labels, help, watch)   {SZ_KIND_COUNTER, name, labels, help},
#define SZ_GAUGE(id, name, labels, help, watch)     {SZ_KIND_GAUGE, name, labels, help},
#define SZ_HISTOGRAM(id, name, labels, help, watch) {SZ_KIND_HISTOGRAM, name, labels, help},
#include "subzero/tbl/metrics.h"
};

static struct {
    pthread_mutex_t lock;
    bool ready;
    struct sz_arena arena;
    struct sz_series_row **slots; /* open addressing by metric and labels, at most half full */
    size_t slots_n, rows;
    struct sz_series_row *last[SZ_METRIC_COUNT];
    _Atomic(struct sz_series_row *) first[SZ_METRIC_COUNT];
} reg = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Backslash, quote and newline are escaped (exposition format 0.0.4); bytes that are not UTF-8 become U+FFFD. */
static void add_value(struct sz_buf *b, struct sz_slice value)
{
    for (size_t at = 0; at < value.n;) {
        size_t n = sz_utf8_step(sz_from(value, at));
        if (n == 0) {
            sz_buf_adds(b, SZ_S("\xEF\xBF\xBD"));
            n = 1;
        } else if (value.p[at] == '\n') {
            sz_buf_adds(b, SZ_S("\\n"));
        } else {
            if (value.p[at] == '"' || value.p[at] == '\\')
                sz_buf_add(b, "\\", 1);
            sz_buf_add(b, value.p + at, n);
        }
        at += n;
    }
}

/* values NULL: every value is "other". */
static void render(struct sz_buf *b, enum sz_metric metric, const char *const *values)
{
    struct sz_slice names = sz_cstr(sz_metric_rows[metric].labels), name;
    if (names.n == 0)
        return;
    for (size_t i = 0; sz_split(&names, ',', &name); i++) {
        sz_buf_printf(b, "%s%.*s=\"", i == 0 ? "" : ",", SZ_FMT(name));
        add_value(b, values == NULL ? SZ_S("other") : sz_cstr(values[i]));
        sz_buf_add(b, "\"", 1);
    }
}

/* The slot of a row, or the empty one where it belongs.  Label values are our own: the hash needs no secret. */
static struct sz_series_row **slot_of(enum sz_metric metric, struct sz_slice labels)
{
    static const struct sz_key128 key;
    size_t i = (size_t)(sz_hash64(&key, labels) + (uint64_t)metric * 0x9E3779B97F4A7C15u);
    for (;; i++) {
        struct sz_series_row **slot = &reg.slots[i & (reg.slots_n - 1)];
        if (*slot == NULL || ((*slot)->metric == metric && sz_eq((*slot)->labels, labels)))
            return slot;
    }
}

static void grow(void)
{
    struct sz_series_row **old = reg.slots;
    size_t old_n = reg.slots_n;
    reg.slots_n = old_n == 0 ? 256 : old_n * 2;
    reg.slots = sz_xcalloc(reg.slots_n, sizeof(struct sz_series_row *));
    for (size_t i = 0; i < old_n; i++) {
        if (old[i] != NULL)
            *slot_of(old[i]->metric, old[i]->labels) = old[i];
    }
    free(old);
}

static const struct sz_series_row *create(enum sz_metric metric, struct sz_slice labels)
{
    uint32_t at;
    if (!sz_cells_add(sz_metric_rows[metric].kind == SZ_KIND_HISTOGRAM ? SZ_HISTOGRAM_CELLS : 1, &at))
        return NULL;
    if (2 * (reg.rows + 1) > reg.slots_n)
        grow();
    struct sz_series_row *row = sz_pool_zalloc(&reg.arena.pool, sizeof(*row));
    row->handle.at = at;
    row->metric = metric;
    row->labels = sz_pool_dup(&reg.arena.pool, labels);
    *slot_of(metric, labels) = row;
    reg.rows++;
    struct sz_series_row *last = reg.last[metric];
    reg.last[metric] = row;
    atomic_store_explicit(last == NULL ? &reg.first[metric] : &last->next, row, memory_order_release);
    return row;
}

static const struct sz_series_row *find_or_create(enum sz_metric metric, const char *const *values)
{
    struct sz_buf labels = {0};
    render(&labels, metric, values);
    const struct sz_series_row *row = reg.slots_n == 0 ? NULL : *slot_of(metric, sz_buf_slice(&labels));
    /* The overflow series, one a metric, come on top of the limit. */
    if (row == NULL && (reg.rows < SZ_SERIES_MAX || values == NULL))
        row = create(metric, sz_buf_slice(&labels));
    sz_buf_fini(&labels);
    return row;
}

struct sz_series sz_series(enum sz_metric metric, const char *const *values)
{
    static const char *const none[1];
    struct sz_series handle = {0};
    pthread_mutex_lock(&reg.lock);
    if (reg.ready) {
        const struct sz_series_row *row = find_or_create(metric, values != NULL ? values : none);
        if (row == NULL)
            row = find_or_create(metric, NULL);
        SZ_ASSERT(row != NULL);
        handle = row->handle;
    }
    pthread_mutex_unlock(&reg.lock);
    return handle;
}

const struct sz_series_row *sz_series_first(enum sz_metric metric)
{
    return atomic_load_explicit(&reg.first[metric], memory_order_acquire);
}

void sz_registry_init(void)
{
    pthread_mutex_lock(&reg.lock);
    sz_arena_init(&reg.arena);
    reg.ready = true;
    pthread_mutex_unlock(&reg.lock);
    /* What has no labels is there from the start, at 0: a rate over it then sees its first step. */
    for (unsigned m = 0; m < SZ_METRIC_COUNT; m++) {
        if (sz_metric_rows[m].labels[0] == '\0')
            sz_series(m, NULL);
    }
}

void sz_registry_fini(void)
{
    pthread_mutex_lock(&reg.lock);
    sz_arena_fini(&reg.arena);
    free(reg.slots);
    reg.ready = false;
    reg.slots = NULL;
    reg.slots_n = reg.rows = 0;
    for (unsigned m = 0; m < SZ_METRIC_COUNT; m++) {
        reg.last[m] = NULL;
        atomic_store_explicit(&reg.first[m], NULL, memory_order_relaxed);
    }
    pthread_mutex_unlock(&reg.lock);
}
