/*
 * ListObjects: from the user backwards to every object that could be reached, then a check for each, unless the
 * relation is such that being reached is the answer.
 *
 * Walking back ignores conditions and follows only the first operand of `and` and the base of `but not`: which
 * objects are looked at decides whose errors are seen, so it is part of the contract.
 *
 * First deep, which finds some results soon; hops are counted as a check counts them.  Only when a way was cut off for
 * being too long, and a shorter one may have been overlooked, everything is walked once more level by level.
 */
#include <errno.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/set.h"
#include "fga/engine/validate.h"

struct item {
    uint32_t object;
    uint16_t rel, hops;
};
struct items {
    struct item *v;
    size_t n, cap;
};

struct walk {
    struct sz_ask *a;
    uint16_t target;
    uint64_t *useful; /* relations from which the target can follow */
    struct items now, next;
    struct sz_set64 seen, results;
    const struct sz_list_options *o;
    sz_list_fn *fn;
    void *arg;
    size_t given;
    bool stop;
    unsigned hops;             /* of what is being reached */
    bool by_level, same_level; /* by level, a computed userset stays on its level */
    bool deep;                 /* something was more hops away than allowed */
};

static int result(struct walk *w, uint32_t object)
{
    if (w->o->max != 0 && w->given >= w->o->max) {
        w->stop = true;
        if (w->o->cut != NULL)
            *w->o->cut = true;
        return 0;
    }
    w->given++;
    w->stop |= w->fn(w->arg, sz_ask_name(w->a, object)) != 0;
    return 0;
}

static int out_of_steps(struct walk *w)
{
    w->stop = true;
    if (w->o->cut != NULL)
        *w->o->cut = true;
    return 0;
}

/* An object that was reached at the target relation. */
static int candidate(struct walk *w, uint32_t object)
{
    if (!sz_set64_add(&w->results, (uint64_t)object + 1))
        return 0;
    if (w->a->p->rels[w->target].pure && w->hops < SZ_DEPTH_MAX)
        return result(w, object);
    switch (sz_ask_relation(w->a, object, w->target, 0)) {
    case SZ_YES:
        return result(w, object);
    case SZ_ERROR:
        return -EINVAL;
    case SZ_OUT_OF_STEPS:
        return out_of_steps(w);
    case SZ_NO:
    case SZ_CYCLE:
        break;
    }
    return 0;
}

static bool useful(const struct walk *w, uint16_t rel)
{
    return (w->useful[rel / 64] >> rel % 64 & 1) != 0;
}

static int reach(struct walk *w, uint32_t object, uint16_t rel)
{
    if (!useful(w, rel) || !sz_set64_add(&w->seen, ((uint64_t)object << 16 | rel) + 1))
        return 0;
    if (!sz_ask_spend(w->a, 1))
        return out_of_steps(w);
    struct items *list = w->by_level && !w->same_level ? &w->next : &w->now;
    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 64 : list->cap * 2;
        list->v = sz_xrealloc(list->v, list->cap * sizeof(*list->v));
    }
    list->v[list->n++] = (struct item){object, rel, (uint16_t)w->hops};
    return rel == w->target ? candidate(w, object) : 0;
}

/* A tuple that names a condition where the model admits it bare, or the other way round, is none. */
static bool admitted(const struct walk *w, const struct sz_direct *d, uint32_t cond)
{
    if (cond == 0)
        return d->bare;
    uint16_t name = sz_cinst(w->a->view.store, cond)->name;
    for (uint16_t i = 0; i < d->n_conds; i++)
        if (d->conds[i] == name)
            return true;
    return false;
}

/* Every object that has `subject` under (relation, form) becomes an item of rel. */
static int reach_row(struct walk *w, uint32_t subject, uint16_t relation, uint16_t row_form, const struct sz_direct *d,
                     uint16_t object_type, uint16_t rel)
{
    struct sz_rowiter it;
    sz_block_row(sz_ask_reverse(w->a, subject), sz_row_key(relation, row_form), &it.row);
    sz_row_begin(&it);
    while (!w->stop && sz_row_next(&it))
        if (admitted(w, d, it.cond) && reach(w, it.subject, rel) != 0)
            return -EINVAL;
    for (size_t i = 0; i < w->a->n_ctuples && !w->stop; i++) {
        const struct sz_ctuple *t = &w->a->ctuples[i];
        if (t->subject == subject && t->relation == relation && t->form == d->form &&
            sz_ask_type(w->a, t->object) == object_type && reach(w, t->object, rel) != 0)
            return -EINVAL;
    }
    return 0;
}

/* The tuples of the user itself (or of everybody) in every relation that admits the form. */
static int seed(struct walk *w, uint32_t subject, uint16_t form, uint16_t user_relation)
{
    const struct sz_program *p = w->a->p;
    for (size_t r = 0; r < p->n_rels && !w->stop; r++) {
        const struct sz_direct *d =
            p->rels[r].listable && useful(w, (uint16_t)r) ? sz_direct_find(&p->rels[r], form) : NULL;
        if (d == NULL)
            continue;
        uint16_t row_form =
            user_relation == 0 ? p->plain_form[p->rels[r].type] : sz_program_form(p, p->rels[r].type, user_relation);
        if (reach_row(w, subject, p->rels[r].relation, row_form, d, p->rels[r].type, (uint16_t)r) != 0)
            return -EINVAL;
    }
    return 0;
}

static int seed_all(struct walk *w)
{
    struct sz_ask *a = w->a;
    bool userset = a->user_relation != 0 && a->user_relation != SZ_WILD;
    int err = 0;
    if (userset) { /* the userset itself is on its own object */
        uint16_t rel = sz_program_rel(a->p, a->user_type, a->p->relation_names[a->user_relation]);
        err = reach(w, a->user, rel);
        return err != 0 ? err : seed(w, a->user, a->user_form, a->user_relation);
    }
    err = seed(w, a->user, a->user_form, 0);
    uint32_t star = sz_wildcard_node(a->view.store, a->user_type);
    for (size_t i = 0; star == SZ_NO_NODE && i < a->n_own; i++)
        if (a->own[i].wild && a->own[i].type == a->user_type)
            star = SZ_OWN_NODE + (uint32_t)i;
    if (err == 0 && star != SZ_NO_NODE && star != a->user)
        err = seed(w, star, a->wild_form, 0);
    return err;
}

/* One arrow from an item: to the same object, or by tuples one hop further. */
static int follow_arrow(struct walk *w, struct item it, const struct sz_back *b)
{
    const struct sz_program *p = w->a->p;
    const struct sz_crel *from = &p->rels[it.rel], *to = &p->rels[b->rel];
    w->hops = it.hops;
    w->same_level = b->op == SZ_C_COMPUTED;
    if (w->same_level)
        return reach(w, it.object, b->rel);
    if (!useful(w, b->rel))
        return 0;
    if (it.hops >= SZ_DEPTH_MAX) {
        w->deep = true;
        return 0;
    }
    w->hops++;
    bool ttu = b->op == SZ_C_TTU;
    const struct sz_crel *reads = ttu ? &p->rels[sz_program_rel(p, to->type, p->relation_names[b->row_relation])] : to;
    uint16_t form = ttu ? p->plain_form[from->type] : sz_program_form(p, from->type, from->relation);
    return reach_row(w, it.object, b->row_relation, b->row_form, sz_direct_find(reads, form), to->type, b->rel);
}

static int follow(struct walk *w, struct item it)
{
    const struct sz_program *p = w->a->p;
    int err = 0;
    for (uint32_t i = p->back_first[it.rel]; err == 0 && i < p->back_first[it.rel + 1] && !w->stop; i++)
        err = follow_arrow(w, it, &p->back[i]);
    return err;
}

static int walk_deep(struct walk *w)
{
    int err = seed_all(w);
    while (err == 0 && !w->stop && w->now.n > 0)
        err = follow(w, w->now.v[--w->now.n]);
    return err;
}

/* Results found before are not given again: they are kept in a set. */
static int walk_by_level(struct walk *w)
{
    sz_set64_fini(&w->seen);
    w->by_level = true;
    w->same_level = false;
    w->hops = 0;
    w->now.n = w->next.n = 0;
    int err = seed_all(w);
    while (err == 0 && !w->stop && w->next.n > 0) {
        struct items swap = w->now;
        w->now = w->next;
        w->next = swap;
        w->next.n = 0;
        for (size_t i = 0; err == 0 && !w->stop && i < w->now.n; i++) /* grows while it is walked */
            err = follow(w, w->now.v[i]);
    }
    return err;
}

static int walk(struct walk *w)
{
    int err = walk_deep(w);
    return err == 0 && w->deep && !w->stop ? walk_by_level(w) : err;
}

struct useful_arg {
    const struct sz_program *p;
    uint64_t *set;
    uint16_t *queue;
    size_t n;
};

static void add_useful(struct useful_arg *u, uint16_t rel)
{
    uint64_t bit = UINT64_C(1) << rel % 64;
    if (rel == SZ_NO_REL || (u->set[rel / 64] & bit) != 0)
        return;
    u->set[rel / 64] |= bit;
    u->queue[u->n++] = rel;
}

static void add_useful_leaf(void *arg, const struct sz_crel *r, const struct sz_cex *leaf)
{
    struct useful_arg *u = arg;
    for (uint16_t i = 0; leaf->op == SZ_C_DIRECT && i < r->n_direct; i++)
        add_useful(u, r->direct[i].target);
    if (leaf->op == SZ_C_COMPUTED)
        add_useful(u, leaf->target);
    for (uint16_t i = 0; leaf->op == SZ_C_TTU && i < u->p->rels[leaf->tupleset].n_direct; i++)
        add_useful(u, leaf->parents[i]);
}

static uint64_t *useful_for(const struct sz_program *p, uint16_t target, struct sz_pool *pool)
{
    struct useful_arg u = {.p = p,
                           .set = sz_pool_zalloc(pool, p->reach_words * sizeof(uint64_t)),
                           .queue = sz_pool_alloc(pool, (p->n_rels + 1) * sizeof(uint16_t))};
    add_useful(&u, target);
    for (size_t i = 0; i < u.n; i++)
        sz_followed(&p->rels[u.queue[i]], p->rels[u.queue[i]].root, add_useful_leaf, &u);
    return u.set;
}

/* Type, relation and user, in the order and with the codes of the API. */
static int resolve(struct sz_ask *a, struct sz_slice type_name, struct sz_slice relation, struct sz_slice user,
                   uint16_t *rel)
{
    struct sz_user_ids ids;
    struct sz_text why;
    uint16_t type = sz_program_type(a->p, type_name);
    if (type == 0)
        return sz_ask_fail(a, 2021, "type '%.*s' not found", SZ_FMT(type_name));
    *rel = sz_program_rel(a->p, type, relation);
    if (*rel == SZ_NO_REL)
        return sz_ask_fail(a, 2022, "relation '%.*s#%.*s' not found", SZ_FMT(type_name), SZ_FMT(relation));
    if (sz_user_check(a->p, user, &ids, &why) != 0)
        return sz_ask_fail(a, 2000, "invalid 'user' value: %s", why.s);
    sz_ask_user_node(a, sz_ask_node(a, ids.parts.object, ids.type, ids.parts.wild), ids.type, ids.relation);
    return 0;
}

int sz_engine_list_objects(struct sz_engine *e, const struct sz_program *p, struct sz_slice type,
                           struct sz_slice relation, struct sz_slice user, const struct sz_list_options *o,
                           sz_list_fn *fn, void *arg, struct sz_fault *fault)
{
    struct sz_ask a;
    struct walk w = {.a = &a, .o = o, .fn = fn, .arg = arg};
    sz_ask_begin(&a, e, p, o->steps != NULL ? *o->steps : UINT64_MAX, fault);
    a.condition_fault = 2000;
    int err = sz_ask_context(&a, o->context, o->contextual, o->contextual_n);
    if (err == 0)
        err = resolve(&a, type, relation, user, &w.target);
    if (err == 0) {
        w.useful = useful_for(p, w.target, sz_ask_pool(&a));
        err = walk(&w);
    }
    free(w.now.v);
    free(w.next.v);
    sz_set64_fini(&w.seen);
    sz_set64_fini(&w.results);
    if (o->steps != NULL)
        *o->steps = a.steps;
    sz_ask_end(&a);
    return err;
}
