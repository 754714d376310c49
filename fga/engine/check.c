/*
 * Check: does the user have the relation with the object?  Read from top to bottom.
 *
 * A question (object, relation) is answered by the relation's rewrite; tuples that name a userset or a parent lead to
 * further questions about the same user.  Depth counts those hops.  Three things keep the way short: relations that
 * the user's kind cannot reach are never opened; relations that cannot come back to themselves need no search for
 * cycles; and where a userset is plain membership, the user's own list of groups (one reverse row, fetched once)
 * answers for all usersets of the row.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/engine/ask.h"

static bool on_path(const struct sz_ask *a, uint32_t object, uint16_t rel)
{
    for (size_t i = a->n_path; i-- > 0;)
        if (a->path[i].object == object && a->path[i].rel == rel)
            return true;
    return false;
}

static void push_path(struct sz_ask *a, uint32_t object, uint16_t rel)
{
    if (a->n_path == a->cap_path) {
        struct sz_pathstep *more = sz_pool_alloc(sz_ask_pool(a), a->cap_path * 2 * sizeof(*more));
        memcpy(more, a->path, a->n_path * sizeof(*more));
        a->path = more;
        a->cap_path *= 2;
    }
    a->path[a->n_path++] = (struct sz_pathstep){object, rel};
}

void sz_ask_enter(struct sz_ask *a, uint32_t object, uint16_t rel)
{
    if (a->p->rels[rel].recursive)
        push_path(a, object, rel);
}

void sz_ask_leave(struct sz_ask *a, uint16_t rel)
{
    a->n_path -= a->p->rels[rel].recursive;
}

enum sz_answer sz_ask_relation(struct sz_ask *a, uint32_t object, uint16_t rel, unsigned depth)
{
    const struct sz_crel *r = &a->p->rels[rel];
    if (SZ_UNLIKELY(depth == SZ_DEPTH_MAX)) {
        sz_ask_fail(a, 2002, "the answer is more than %d hops away", SZ_DEPTH_MAX - 1);
        return SZ_ERROR;
    }
    if (r->recursive && on_path(a, object, rel)) {
        a->cycle = true;
        return SZ_CYCLE;
    }
    if (a->user == object && a->user_relation == r->relation) /* a userset is a member of itself */
        return SZ_YES;
    if (!sz_ask_reaches(a, rel))
        return SZ_NO;
    if (!sz_ask_spend(a, 1))
        return SZ_OUT_OF_STEPS;
    if (!r->recursive)
        return sz_ask_rewrite(a, object, r, r->root, depth);
    push_path(a, object, rel);
    enum sz_answer answer = sz_ask_rewrite(a, object, r, r->root, depth);
    a->n_path--;
    return answer;
}

/* ---- unions ---- */

/* What the parts of a union have said so far.  Steps running out ends everything, like YES. */
struct sum {
    bool cycle, error;
};

/* True: this part decides. */
static bool decides_union(struct sum *s, enum sz_answer part)
{
    s->cycle |= part == SZ_CYCLE;
    s->error |= part == SZ_ERROR;
    return part == SZ_YES || part == SZ_OUT_OF_STEPS;
}

static enum sz_answer sum_up(const struct sum *s)
{
    return s->error ? SZ_ERROR : s->cycle ? SZ_CYCLE : SZ_NO;
}

/* ---- direct: the tuple itself, everybody, usersets ---- */

static const struct sz_ctuple *contextual_tuple(const struct sz_ask *a, uint32_t object, uint16_t relation)
{
    for (size_t i = 0; i < a->n_ctuples; i++) {
        const struct sz_ctuple *t = &a->ctuples[i];
        if (t->object == object && t->relation == relation && t->form == a->user_form && t->subject == a->user)
            return t;
    }
    return NULL;
}

static enum sz_answer exact_tuple(struct sz_ask *a, const struct sz_block *b, uint32_t object, const struct sz_crel *r)
{
    const struct sz_direct *d = sz_direct_find(r, a->user_form);
    uint32_t cond;
    if (d == NULL)
        return SZ_NO;
    const struct sz_ctuple *t = contextual_tuple(a, object, r->relation); /* hides the stored one */
    if (t != NULL)
        return t->cond == NULL ? (d->bare ? SZ_YES : SZ_NO) : sz_ask_condition(a, d, t->cond);
    struct sz_rowref row;
    sz_block_row(b, sz_row_key(r->relation, a->user_form), &row);
    return sz_row_has(&row, a->user, &cond) ? sz_ask_admits(a, d, cond) : SZ_NO;
}

static enum sz_answer everybody(struct sz_ask *a, const struct sz_block *b, uint32_t object, const struct sz_crel *r)
{
    const struct sz_direct *d = a->wild_form == 0 ? NULL : sz_direct_find(r, a->wild_form);
    if (d == NULL)
        return SZ_NO;
    struct sz_tupleiter it;
    sz_tuples_begin(&it, b, object, r->relation, a->wild_form);
    enum sz_answer answer = SZ_NO;
    while (sz_tuples_next(a, &it)) {
        enum sz_answer one = sz_tuples_admits(a, d, &it);
        if (one == SZ_YES)
            return SZ_YES;
        if (one == SZ_ERROR)
            answer = SZ_ERROR;
    }
    return answer;
}

/*
 * The user's groups: every object of the type on which the user, or everybody, has this relation by plain tuples.
 * Kept for the next row, since a walk up a tree asks for the same groups on every level.
 */
static bool fetch_groups(struct sz_ask *a, const struct sz_direct *d)
{
    uint32_t key = sz_row_key(d->relation, a->p->plain_form[d->type]);
    if (a->groups_key == key)
        return a->groups_usable;
    const struct sz_crel *m = &a->p->rels[d->target];
    const struct sz_direct *plain = sz_direct_find(m, a->user_form), *wild = sz_direct_find(m, a->wild_form);
    a->groups_key = key;
    a->groups.n = a->everybodys.n = 0;
    a->groups.big = a->everybodys.big = NULL;
    a->groups.conds = a->everybodys.conds = NULL;
    if (plain != NULL)
        sz_block_row(sz_ask_reverse(a, a->user), key, &a->groups);
    uint32_t star = wild != NULL ? sz_wildcard_node(a->view.store, a->user_type) : SZ_NO_NODE;
    if (star != SZ_NO_NODE)
        sz_block_row(sz_ask_reverse(a, star), key, &a->everybodys);
    /* Older tuples may carry conditions, which this model does not admit: then each tuple has to be looked at. */
    a->groups_usable = !sz_row_conditional(&a->groups) && !sz_row_conditional(&a->everybodys);
    return a->groups_usable;
}

static bool in_groups(const struct sz_ask *a, uint32_t group)
{
    return sz_row_has(&a->groups, group, NULL) || sz_row_has(&a->everybodys, group, NULL);
}

/* A row of usersets that are plain membership, without conditions: is the user in one of the groups? */
static enum sz_answer any_of_groups(struct sz_ask *a, const struct sz_rowref *row)
{
    if (a->groups.n + a->everybodys.n == 0)
        return SZ_NO;
    if (!sz_ask_spend(a, row->n))
        return SZ_OUT_OF_STEPS;
    for (uint32_t i = 0; i < row->n; i++)
        if (in_groups(a, row->subjects[i]))
            return SZ_YES;
    return SZ_NO;
}

/* One form of userset in the row; held_back: conditions could not be told for some, passed: some held. */
static enum sz_answer usersets_of_form(struct sz_ask *a, const struct sz_block *b, uint32_t object,
                                       const struct sz_crel *r, const struct sz_direct *d, unsigned depth,
                                       bool *held_back, bool *passed)
{
    struct sz_tupleiter it;
    struct sum sum = {0};
    sz_tuples_begin(&it, b, object, r->relation, d->form);
    const struct sz_rowref *row = &it.stored.row;
    if (row->n == 0 && a->n_ctuples == 0)
        return SZ_NO;
    bool by_groups = a->p->rels[d->target].members_only && a->user_relation == 0 && a->n_ctuples == 0 &&
                     depth + 1 < SZ_DEPTH_MAX && fetch_groups(a, d);
    if (by_groups && d->bare && row->big == NULL && row->conds == NULL) {
        *passed = true;
        return any_of_groups(a, row);
    }
    while (sz_tuples_next(a, &it)) {
        if (!sz_ask_spend(a, 1))
            return SZ_OUT_OF_STEPS;
        enum sz_answer held = sz_tuples_admits(a, d, &it);
        *held_back |= held == SZ_ERROR;
        if (held != SZ_YES)
            continue;
        *passed = true;
        enum sz_answer one = by_groups ? (in_groups(a, it.subject) ? SZ_YES : SZ_NO)
                                       : sz_ask_relation(a, it.subject, d->target, depth + 1);
        if (decides_union(&sum, one))
            return one;
    }
    return sum_up(&sum);
}

static enum sz_answer usersets(struct sz_ask *a, const struct sz_block *b, uint32_t object, const struct sz_crel *r,
                               unsigned depth)
{
    struct sum sum = {0};
    bool held_back = false, passed = false;
    for (uint16_t i = 0; i < r->n_direct; i++) {
        if (r->direct[i].target == SZ_NO_REL)
            continue;
        enum sz_answer one = usersets_of_form(a, b, object, r, &r->direct[i], depth, &held_back, &passed);
        if (decides_union(&sum, one))
            return one;
    }
    sum.error |= held_back && !passed;
    return sum_up(&sum);
}

/* The first parent, which is asked next when nothing is found here: its memory is called for while we look. */
static struct sz_node_info *next_parent(const struct sz_ask *a, const struct sz_block *b, const struct sz_crel *r)
{
    struct sz_rowref row;
    if (r->parent_key == 0)
        return NULL;
    sz_block_row(b, r->parent_key, &row);
    return row.n == 0 || row.big != NULL ? NULL : sz_node(a->view.store, row.subjects[0]);
}

static enum sz_answer direct(struct sz_ask *a, uint32_t object, const struct sz_crel *r, unsigned depth)
{
    const struct sz_block *b = sz_ask_block(a, object);
    struct sum sum = {0};
    if (b == NULL && a->n_ctuples == 0)
        return SZ_NO;
    struct sz_node_info *ahead = next_parent(a, b, r);
    __builtin_prefetch(ahead);
    enum sz_answer one = exact_tuple(a, b, object, r);
    if (decides_union(&sum, one))
        return one;
    if (ahead != NULL)
        __builtin_prefetch(atomic_load_explicit(&ahead->fwd, memory_order_relaxed));
    one = everybody(a, b, object, r);
    if (decides_union(&sum, one))
        return one;
    one = usersets(a, b, object, r, depth);
    if (decides_union(&sum, one))
        return one;
    return sum_up(&sum);
}

/* ---- x from y ---- */

static enum sz_answer parents(struct sz_ask *a, uint32_t object, const struct sz_cex *x, unsigned depth)
{
    const struct sz_block *b = sz_ask_block(a, object);
    const struct sz_crel *tupleset = &a->p->rels[x->tupleset];
    struct sum sum = {0};
    bool held_back = false, passed = false;
    for (uint16_t i = 0; i < tupleset->n_direct; i++) {
        const struct sz_direct *d = &tupleset->direct[i];
        struct sz_tupleiter it;
        sz_tuples_begin(&it, b, object, tupleset->relation, d->form);
        while (sz_tuples_next(a, &it)) {
            if (!sz_ask_spend(a, 1))
                return SZ_OUT_OF_STEPS;
            enum sz_answer held = sz_tuples_admits(a, d, &it);
            held_back |= held == SZ_ERROR;
            if (held != SZ_YES)
                continue;
            passed = true;
            if (x->parents[i] == SZ_NO_REL) /* a parent of a type without the relation is skipped */
                continue;
            enum sz_answer one = sz_ask_relation(a, it.subject, x->parents[i], depth + 1);
            if (decides_union(&sum, one))
                return one;
        }
    }
    sum.error |= held_back && !passed;
    return sum_up(&sum);
}

/* ---- operators ---- */

static enum sz_answer intersection(struct sz_ask *a, uint32_t object, const struct sz_crel *r, const struct sz_cex *x,
                                   unsigned depth)
{
    bool error = false;
    for (uint16_t i = 0; i < x->n; i++) {
        enum sz_answer one = sz_ask_rewrite(a, object, r, x->child[i], depth);
        if (one == SZ_ERROR)
            error = true; /* a later NO still decides */
        else if (one != SZ_YES)
            return one;
    }
    return error ? SZ_ERROR : SZ_YES;
}

static enum sz_answer difference(struct sz_ask *a, uint32_t object, const struct sz_crel *r, const struct sz_cex *x,
                                 unsigned depth)
{
    enum sz_answer base = sz_ask_rewrite(a, object, r, x->child[0], depth);
    if (base != SZ_YES && base != SZ_ERROR)
        return base;
    struct sz_fault of_base;
    if (base == SZ_ERROR)
        of_base = *a->fault;
    enum sz_answer subtract = sz_ask_rewrite(a, object, r, x->child[1], depth);
    if (subtract == SZ_YES)
        return SZ_NO;
    if (subtract == SZ_CYCLE || subtract == SZ_OUT_OF_STEPS) /* a cycle in what is taken away denies */
        return subtract;
    if (base == SZ_ERROR)
        *a->fault = of_base;
    return base == SZ_ERROR ? SZ_ERROR : subtract == SZ_ERROR ? SZ_ERROR : SZ_YES;
}

enum sz_answer sz_ask_rewrite(struct sz_ask *a, uint32_t object, const struct sz_crel *r, const struct sz_cex *x,
                              unsigned depth)
{
    struct sum sum = {0};
    switch (x->op) {
    case SZ_C_DIRECT:
        return direct(a, object, r, depth);
    case SZ_C_COMPUTED:
        return sz_ask_relation(a, object, x->target, depth);
    case SZ_C_TTU:
        return parents(a, object, x, depth);
    case SZ_C_UNION:
        for (uint16_t i = 0; i < x->n; i++) {
            enum sz_answer one = sz_ask_rewrite(a, object, r, x->child[i], depth);
            if (decides_union(&sum, one))
                return one;
        }
        return sum_up(&sum);
    case SZ_C_INTERSECTION:
        return intersection(a, object, r, x, depth);
    case SZ_C_DIFFERENCE:
        return difference(a, object, r, x, depth);
    }
    return SZ_NO;
}
