/* Hash-consed nodes of ways, sorted by where they return to. */
#include "fga/engine/dsl_stack.h"

#include <stdlib.h>

enum { NIL = UINT32_MAX };

void sz_ways_reset(struct sz_ways *w)
{
    w->n_pool = 0;
    w->n_nodes = 1; /* SZ_WAY_NONE */
    memset(w->buckets, 0xff, sizeof(w->buckets));
    memset(w->memo, 0, sizeof(w->memo));
    if (w->cap_nodes == 0) {
        w->cap_nodes = 64;
        w->nodes = sz_xrealloc(w->nodes, w->cap_nodes * sizeof(*w->nodes));
        w->nodes[0].first = w->nodes[0].n = w->nodes[0].next = 0;
    }
}

void sz_ways_fini(struct sz_ways *w)
{
    free(w->pool);
    free(w->nodes);
    memset(w, 0, sizeof(*w));
}

bool sz_ways_at(const struct sz_ways *w, uint32_t node, size_t i, struct sz_way *out)
{
    if (node == SZ_WAY_NONE) {
        *out = (struct sz_way){SZ_WAY_END, SZ_WAY_NONE};
        return i == 0;
    }
    if (i >= w->nodes[node].n)
        return false;
    *out = w->pool[w->nodes[node].first + i];
    return true;
}

static bool same(const struct sz_way *a, const struct sz_way *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].ret != b[i].ret || a[i].parent != b[i].parent)
            return false;
    return true;
}

/* The node with the last n ways of the pool: a new one, or one that is there (then they are dropped again). */
static uint32_t intern(struct sz_ways *w, size_t n)
{
    struct sz_way *v = w->pool + w->n_pool - n;
    uint32_t hash = 2166136261U;
    if (n == 1 && v[0].ret == SZ_WAY_END) {
        w->n_pool -= n;
        return SZ_WAY_NONE;
    }
    for (size_t i = 0; i < n; i++)
        hash = ((hash ^ v[i].ret) * 16777619U ^ v[i].parent) * 16777619U;
    uint32_t *bucket = &w->buckets[(hash ^ hash >> 16) % SZ_COUNT(w->buckets)];
    for (uint32_t i = *bucket; i != NIL; i = w->nodes[i].next, w->work++)
        if (w->nodes[i].n == n && same(w->pool + w->nodes[i].first, v, n)) {
            w->n_pool -= n;
            return i;
        }
    if (w->n_nodes == w->cap_nodes) {
        w->cap_nodes *= 2;
        w->nodes = sz_xrealloc(w->nodes, w->cap_nodes * sizeof(*w->nodes));
    }
    uint32_t id = (uint32_t)w->n_nodes++;
    w->nodes[id].first = (uint32_t)(w->n_pool - n);
    w->nodes[id].n = (uint32_t)n;
    w->nodes[id].next = *bucket;
    *bucket = id;
    return id;
}

static void append(struct sz_ways *w, struct sz_way way)
{
    if (w->n_pool == w->cap_pool) {
        w->cap_pool = w->cap_pool == 0 ? 256 : w->cap_pool * 2;
        w->pool = sz_xrealloc(w->pool, w->cap_pool * sizeof(*w->pool));
    }
    w->pool[w->n_pool++] = way;
}

uint32_t sz_ways_push(struct sz_ways *w, uint16_t ret, uint32_t parent)
{
    append(w, (struct sz_way){ret, parent});
    return intern(w, 1);
}

uint32_t sz_ways_merge(struct sz_ways *w, uint32_t a, uint32_t b, bool wildcard)
{
    if (a == b)
        return a;
    if (wildcard && (a == SZ_WAY_NONE || b == SZ_WAY_NONE))
        return SZ_WAY_NONE;
    size_t slot = (a * 31 + b) % SZ_COUNT(w->memo);
    if (w->memo[slot].a == a && w->memo[slot].b == b && w->memo[slot].merged != 0)
        return w->memo[slot].merged;
    struct sz_way merged[128], x, y; /* a rule is used at far fewer places */
    size_t n = 0, i = 0, k = 0;
    bool more_x = sz_ways_at(w, a, 0, &x), more_y = sz_ways_at(w, b, 0, &y);
    while ((more_x || more_y) && n < SZ_COUNT(merged)) {
        bool take_x = more_x && (!more_y || x.ret <= y.ret), take_y = more_y && (!more_x || y.ret <= x.ret);
        merged[n] = take_x ? x : y;
        if (take_x && take_y && x.ret != SZ_WAY_END)
            merged[n].parent = sz_ways_merge(w, x.parent, y.parent, wildcard);
        n++;
        w->work++;
        if (take_x)
            more_x = sz_ways_at(w, a, ++i, &x);
        if (take_y)
            more_y = sz_ways_at(w, b, ++k, &y);
    }
    for (i = 0; i < n; i++)
        append(w, merged[i]);
    uint32_t id = intern(w, n);
    w->memo[slot].a = a;
    w->memo[slot].b = b;
    w->memo[slot].merged = id;
    return id;
}
