/*
 * Entry points: a relation that no tuple can ever make true for anybody is a mistake.
 *
 * A relation is reachable when some finite derivation ends in plain users: the least fixpoint, computed
 * by rounds over all relations.  For one that is not, the message differs when computed usersets of
 * the same object run in a circle, found by following only the operands that fail.
 */
#include "fga/engine/lint.h"

struct node {
    const struct sz_type *type;
    const struct sz_rel *rel;
};

struct graph {
    const struct sz_model *m;
    struct node *nodes;
    size_t n;
    struct sz_entry *entry;
    uint8_t *colour; /* 0 new, 1 on the path, 2 done */
    bool *loops;
};

static size_t index_of(const struct graph *g, struct sz_slice type, struct sz_slice rel)
{
    const struct sz_type *t = sz_model_type(g->m, type);
    const struct sz_rel *r = t != NULL ? sz_type_rel(t, rel) : NULL;
    if (r == NULL)
        return SIZE_MAX;
    size_t at = (size_t)(r - t->rels);
    for (const struct sz_type *before = g->m->types; before < t; before++)
        at += before->n_rels;
    return at;
}

static bool entry(const struct graph *g, size_t at)
{
    return at != SIZE_MAX && g->entry[at].reachable;
}

static bool direct_entry(const struct graph *g, const struct node *n)
{
    for (size_t i = 0; i < n->rel->n_refs; i++) {
        const struct sz_ref *ref = &n->rel->refs[i];
        if (ref->relation.p == NULL || ref->wildcard)
            return true;
        size_t to = index_of(g, ref->type, ref->relation);
        if (to == SIZE_MAX)
            return false;
        if (entry(g, to))
            return true;
    }
    return false;
}

static bool ttu_entry(const struct graph *g, const struct node *n, const struct sz_rw *rw)
{
    const struct sz_rel *tupleset = sz_type_rel(n->type, rw->tupleset);
    for (size_t i = 0; tupleset != NULL && i < tupleset->n_refs; i++)
        if (entry(g, index_of(g, tupleset->refs[i].type, rw->relation)))
            return true;
    return false;
}

static bool has_entry(const struct graph *g, const struct node *n, const struct sz_rw *rw)
{
    if (rw == NULL)
        return false;
    switch (rw->op) {
    case SZ_RW_THIS:
        return direct_entry(g, n);
    case SZ_RW_COMPUTED:
        return entry(g, index_of(g, n->type->name, rw->relation));
    case SZ_RW_TTU:
        return ttu_entry(g, n, rw);
    case SZ_RW_UNION:
        for (size_t i = 0; i < rw->n; i++)
            if (has_entry(g, n, rw->child[i]))
                return true;
        return false;
    case SZ_RW_INTERSECTION:
    case SZ_RW_DIFFERENCE:
        for (size_t i = 0; i < rw->n; i++)
            if (!has_entry(g, n, rw->child[i]))
                return false;
        return rw->n > 0;
    }
    return false;
}

static bool loops(struct graph *g, size_t at);

static bool rewrite_loops(struct graph *g, const struct node *n, const struct sz_rw *rw)
{
    if (rw == NULL)
        return false;
    bool found = false;
    switch (rw->op) {
    case SZ_RW_THIS:
    case SZ_RW_TTU:
        return false;
    case SZ_RW_COMPUTED: {
        size_t to = index_of(g, n->type->name, rw->relation);
        return to != SIZE_MAX && loops(g, to);
    }
    case SZ_RW_UNION:
        for (size_t i = 0; i < rw->n; i++)
            found |= rewrite_loops(g, n, rw->child[i]);
        return found;
    case SZ_RW_INTERSECTION:
    case SZ_RW_DIFFERENCE:
        for (size_t i = 0; i < rw->n; i++)
            if (!has_entry(g, n, rw->child[i]))
                return rewrite_loops(g, n, rw->child[i]);
        return false;
    }
    return false;
}

/* Can a circle be reached from here? */
static bool loops(struct graph *g, size_t at)
{
    if (g->colour[at] != 0)
        return g->colour[at] == 1 || g->loops[at];
    g->colour[at] = 1;
    g->loops[at] = rewrite_loops(g, &g->nodes[at], g->nodes[at].rel->rw);
    g->colour[at] = 2;
    return g->loops[at];
}

struct sz_entry *sz_model_entries(const struct sz_model *m, struct sz_pool *pool)
{
    struct graph g = {.m = m};
    for (size_t i = 0; i < m->n_types; i++)
        g.n += m->types[i].n_rels;
    g.nodes = sz_pool_zalloc(pool, (g.n + 1) * sizeof(*g.nodes));
    g.entry = sz_pool_zalloc(pool, (g.n + 1) * sizeof(*g.entry));
    g.colour = sz_pool_zalloc(pool, g.n + 1);
    g.loops = sz_pool_zalloc(pool, (g.n + 1) * sizeof(*g.loops));
    size_t at = 0;
    for (size_t i = 0; i < m->n_types; i++)
        for (size_t k = 0; k < m->types[i].n_rels; k++)
            g.nodes[at++] = (struct node){&m->types[i], &m->types[i].rels[k]};
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g.n; i++)
            if (!g.entry[i].reachable && has_entry(&g, &g.nodes[i], g.nodes[i].rel->rw))
                changed = g.entry[i].reachable = true;
    }
    for (size_t i = 0; i < g.n; i++)
        g.entry[i].loop = !g.entry[i].reachable && loops(&g, i);
    return g.entry;
}
