/*
 * The model's arrows turned round, for lists: from a relation that a user has on an object to the relations that
 * follow from it.
 */
#include "fga/engine/program.h"

void sz_followed(const struct sz_crel *r, const struct sz_cex *x, sz_leaf_fn *fn, void *arg)
{
    if (x->op < SZ_C_UNION) {
        fn(arg, r, x);
        return;
    }
    for (int i = 0; i < (x->op == SZ_C_UNION ? x->n : 1); i++)
        sz_followed(r, x->child[i], fn, arg);
}

struct indexer {
    struct sz_program *p;
    bool counting;
};

static void place(struct indexer *x, uint16_t from, struct sz_back b)
{
    if (x->counting)
        x->p->back_first[from]++;
    else
        x->p->back[--x->p->back_first[from]] = b;
}

static void place_leaf(void *arg, const struct sz_crel *r, const struct sz_cex *leaf)
{
    struct indexer *x = arg;
    struct sz_program *p = x->p;
    uint16_t rel = (uint16_t)(r - p->rels);
    struct sz_back b = {.op = leaf->op, .rel = rel};
    switch (leaf->op) {
    case SZ_C_DIRECT:
        p->rels[rel].listable = true;
        for (uint16_t i = 0; i < r->n_direct; i++)
            if (r->direct[i].target != SZ_NO_REL) {
                b.row_relation = r->relation;
                b.row_form = sz_program_form(p, r->type, r->direct[i].relation);
                place(x, r->direct[i].target, b);
            }
        return;
    case SZ_C_COMPUTED:
        place(x, leaf->target, b);
        return;
    case SZ_C_TTU:
        b.row_relation = p->rels[leaf->tupleset].relation;
        b.row_form = p->plain_form[r->type];
        for (uint16_t i = 0; i < p->rels[leaf->tupleset].n_direct; i++)
            if (leaf->parents[i] != SZ_NO_REL)
                place(x, leaf->parents[i], b);
        return;
    default:
        return;
    }
}

/* No operator but `or`, no condition on any tuple that is read here. */
static bool pure_here(const struct sz_program *p, const struct sz_crel *r, const struct sz_cex *x)
{
    const struct sz_crel *reads = x->op == SZ_C_TTU ? &p->rels[x->tupleset] : r;
    if (x->op == SZ_C_INTERSECTION || x->op == SZ_C_DIFFERENCE)
        return false;
    for (uint16_t i = 0; (x->op == SZ_C_DIRECT || x->op == SZ_C_TTU) && i < reads->n_direct; i++)
        if (reads->direct[i].n_conds > 0)
            return false;
    for (uint16_t i = 0; i < x->n; i++)
        if (!pure_here(p, r, x->child[i]))
            return false;
    return true;
}

void sz_program_index_back(struct sz_program *p)
{
    struct sz_pool *pool = &p->arena.pool;
    struct indexer x = {p, true};
    p->back_first = sz_pool_zalloc(pool, (p->n_rels + 2) * sizeof(*p->back_first));
    for (size_t r = 0; r < p->n_rels; r++)
        sz_followed(&p->rels[r], p->rels[r].root, place_leaf, &x);
    for (size_t r = 0; r < p->n_rels; r++)
        p->back_first[r + 1] += p->back_first[r];
    uint32_t total = p->n_rels > 0 ? p->back_first[p->n_rels - 1] : 0;
    p->back = sz_pool_alloc(pool, (total + 1) * sizeof(*p->back));
    x.counting = false;
    for (size_t r = 0; r < p->n_rels; r++)
        sz_followed(&p->rels[r], p->rels[r].root, place_leaf, &x);
    p->back_first[p->n_rels] = total;
    for (size_t r = 0; r < p->n_rels; r++)
        p->rels[r].pure = pure_here(p, &p->rels[r], p->rels[r].root);
    for (bool changed = true;
         changed;) { /* impurity spreads to whoever asks; all arrows of a pure relation are followed */
        changed = false;
        for (size_t r = 0; r < p->n_rels; r++)
            for (uint32_t i = p->back_first[r]; !p->rels[r].pure && i < p->back_first[r + 1]; i++)
                if (p->rels[p->back[i].rel].pure) {
                    p->rels[p->back[i].rel].pure = false;
                    changed = true;
                }
    }
}
