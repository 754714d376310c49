/* What the gate's caches hold, read when somebody scrapes: they count by themselves, per thread or per set. */
#include <inttypes.h>

#include "pipeline/txn.h"
#include "subzero/decision.h"

struct figures {
    const char *kind;
    struct sz_cache_stats stats;
};

static uint64_t entries(const struct sz_cache_stats *s)
{
    return s->entries;
}

static uint64_t capacity(const struct sz_cache_stats *s)
{
    return s->capacity;
}

static uint64_t evictions(const struct sz_cache_stats *s)
{
    return s->evictions;
}

static void add(struct sz_buf *out, enum sz_collected metric, const struct figures *figures, size_t n,
                uint64_t (*value)(const struct sz_cache_stats *s))
{
    const char *name = sz_metrics_head(out, metric);
    for (size_t i = 0; i < n; i++)
        sz_buf_printf(out, "%s{layer=\"l1\",kind=\"%s\"} %" PRIu64 "\n", name, figures[i].kind,
                      value(&figures[i].stats));
}

void sz_gate_collect(void *arg, struct sz_buf *out)
{
    const struct sz_gate *gate = arg;
    struct figures figures[3] = {{.kind = "token"}, {.kind = "negative"}, {.kind = "decision"}};
    size_t n = gate->decisions != NULL ? 3 : 2;
    sz_token_cache_stats(gate->tokens, &figures[0].stats);
    sz_reject_cache_stats(gate->rejects, &figures[1].stats);
    if (gate->decisions != NULL)
        sz_decisions_stats(gate->decisions, &figures[2].stats);
    add(out, SZ_COLLECTED_cache_entries, figures, n, entries);
    add(out, SZ_COLLECTED_cache_capacity, figures, n, capacity);
    add(out, SZ_COLLECTED_cache_evictions, figures, n, evictions);
}
