/*
 * ListUsers: the set of users of a relation, computed from the tuples up.
 *
 * A set is a list of atoms that are in or out, and whether everybody else is in.  An atom is a plain user of the
 * filter's type, or a userset when the filter names its type and relation.  "Everybody" never covers usersets.
 */
#include <errno.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/set.h"
#include "fga/engine/validate.h"

struct atom {
    uint64_t key; /* node << 16 | relation (0: plain) */
    bool in;
};
struct users { /* sorted by key; memory of the question */
    struct atom *v;
    size_t n, cap;
    bool wild, cycle;
};

struct lister {
    struct sz_ask *a;
    uint16_t type, relation; /* of the filter; relation 0: plain users */
};

static int collect(struct lister *l, uint32_t object, uint16_t rel, unsigned depth, struct users *out);

static void add(struct lister *l, struct users *u, uint64_t key, bool in)
{
    if (u->n == u->cap) {
        size_t cap = u->cap == 0 ? 8 : u->cap * 2;
        struct atom *more = sz_pool_alloc(sz_ask_pool(l->a), cap * sizeof(*more));
        if (u->n > 0)
            memcpy(more, u->v, u->n * sizeof(*more));
        u->v = more;
        u->cap = cap;
    }
    u->v[u->n++] = (struct atom){key, in};
}

static int by_key(const void *a, const void *b)
{
    const struct atom *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static const struct atom *find(const struct users *u, uint64_t key)
{
    struct atom wanted = {key, false};
    return u->n == 0 ? NULL : bsearch(&wanted, u->v, u->n, sizeof(*u->v), by_key);
}

static bool has(const struct users *u, uint64_t key)
{
    const struct atom *at = find(u, key);
    return at != NULL ? at->in : u->wild && (key & 0xffff) == 0;
}

static bool combine_bits(enum sz_cop op, const bool *v, size_t n)
{
    bool any = false, all = true;
    for (size_t i = 0; i < n; i++) {
        any |= v[i];
        all &= v[i];
    }
    return op == SZ_C_UNION ? any : op == SZ_C_INTERSECTION ? all : v[0] && !v[1];
}

/* One atom of the result; an atom that everybody covers is named only when an operand named it as in. */
static void combine_atom(struct lister *l, enum sz_cop op, const struct users *parts, size_t n, uint64_t key,
                         bool *bits, struct users *out)
{
    bool named = false;
    for (size_t i = 0; i < n; i++) {
        const struct atom *at = find(&parts[i], key);
        bits[i] = has(&parts[i], key);
        named |= at != NULL && at->in && (op != SZ_C_DIFFERENCE || i == 0);
    }
    bool in = combine_bits(op, bits, n);
    if (in && (!out->wild || named))
        add(l, out, key, true);
    else if (!in && out->wild)
        add(l, out, key, false);
}

static void combine(struct lister *l, enum sz_cop op, const struct users *parts, size_t n, struct users *out)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += parts[i].n;
    struct sz_pool *pool = sz_ask_pool(l->a);
    struct atom *all = sz_pool_alloc(pool, (total + 1) * sizeof(*all));
    bool *bits = sz_pool_alloc(pool, n + 2);
    total = 0;
    for (size_t i = 0; i < n; i++) {
        bits[i] = parts[i].wild;
        if (parts[i].n > 0)
            memcpy(all + total, parts[i].v, parts[i].n * sizeof(*all));
        total += parts[i].n;
    }
    out->wild = combine_bits(op, bits, n);
    qsort(all, total, sizeof(*all), by_key);
    for (size_t i = 0; i < total; i++)
        if (i == 0 || all[i].key != all[i - 1].key)
            combine_atom(l, op, parts, n, all[i].key, bits, out);
}

/* A growing union: what several tuples bring. */
struct parts {
    struct users *v;
    size_t n, cap;
};

static struct users *new_part(struct lister *l, struct parts *p)
{
    if (p->n == p->cap) {
        size_t cap = p->cap == 0 ? 8 : p->cap * 2;
        struct users *more = sz_pool_alloc(sz_ask_pool(l->a), cap * sizeof(*more));
        if (p->n > 0)
            memcpy(more, p->v, p->n * sizeof(*more));
        p->v = more;
        p->cap = cap;
    }
    memset(&p->v[p->n], 0, sizeof(*p->v));
    return &p->v[p->n++];
}

static void sum_parts(struct lister *l, const struct parts *p, struct users *out)
{
    combine(l, SZ_C_UNION, p->v, p->n, out);
    for (size_t i = 0; i < p->n; i++)
        out->cycle |= p->v[i].cycle;
}

static int spend(struct lister *l)
{
    return sz_ask_spend(l->a, 1) ? 0 : SZ_ENGINE_BUDGET;
}

/* The tuples of one form; plain ones and type:* into `named`, usersets and parents as parts of their own. */
static int read_form(struct lister *l, const struct sz_block *b, uint32_t object, uint16_t relation,
                     const struct sz_direct *d, uint16_t follow, unsigned depth, struct users *named,
                     struct parts *parts, bool *failed)
{
    struct sz_tupleiter it;
    sz_tuples_begin(&it, b, object, relation, d->form);
    while (sz_tuples_next(l->a, &it)) {
        if (spend(l) != 0)
            return SZ_ENGINE_BUDGET;
        enum sz_answer held = sz_tuples_admits(l->a, d, &it);
        *failed |= held == SZ_ERROR; /* the call fails, but not before the rest was looked at */
        if (held != SZ_YES)
            continue;
        if (follow != SZ_NO_REL) {
            int err = collect(l, it.subject, follow, depth + 1, new_part(l, parts));
            if (err != 0)
                return err;
        } else if (named != NULL && d->type == l->type && d->relation == SZ_WILD) {
            named->wild = true;
        } else if (named != NULL && d->type == l->type && d->relation == 0) {
            add(l, named, (uint64_t)it.subject << 16, true);
        }
    }
    return 0;
}

static int collect_direct(struct lister *l, uint32_t object, const struct sz_crel *r, unsigned depth, struct users *out)
{
    const struct sz_block *b = sz_ask_block(l->a, object);
    struct parts parts = {0};
    struct users named = {0};
    bool failed = false;
    for (uint16_t i = 0; i < r->n_direct; i++) {
        const struct sz_direct *d = &r->direct[i];
        int err = read_form(l, b, object, r->relation, d, d->target, depth, &named, &parts, &failed);
        if (err != 0)
            return err;
    }
    if (named.n > 0)
        qsort(named.v, named.n, sizeof(*named.v), by_key);
    *new_part(l, &parts) = named;
    sum_parts(l, &parts, out);
    return failed ? -EINVAL : 0;
}

static int collect_ttu(struct lister *l, uint32_t object, const struct sz_cex *x, unsigned depth, struct users *out)
{
    const struct sz_block *b = sz_ask_block(l->a, object);
    const struct sz_crel *tupleset = &l->a->p->rels[x->tupleset];
    struct parts parts = {0};
    bool failed = false;
    for (uint16_t i = 0; i < tupleset->n_direct; i++) {
        int err = read_form(l, b, object, tupleset->relation, &tupleset->direct[i], x->parents[i], depth, NULL, &parts,
                            &failed);
        if (err != 0)
            return err;
    }
    sum_parts(l, &parts, out);
    return failed ? -EINVAL : 0;
}

static int collect_rewrite(struct lister *l, uint32_t object, const struct sz_crel *r, const struct sz_cex *x,
                           unsigned depth, struct users *out)
{
    if (x->op == SZ_C_DIRECT)
        return collect_direct(l, object, r, depth, out);
    if (x->op == SZ_C_COMPUTED)
        return collect(l, object, x->target, depth + 1, out);
    if (x->op == SZ_C_TTU)
        return collect_ttu(l, object, x, depth, out);
    struct users *parts = sz_pool_zalloc(sz_ask_pool(l->a), x->n * sizeof(*parts));
    int failed = 0;
    for (uint16_t i = 0; i < x->n; i++) { /* an error anywhere fails the call: no operand decides alone */
        int err = collect_rewrite(l, object, r, x->child[i], depth, &parts[i]);
        if (err == SZ_ENGINE_BUDGET)
            return err;
        failed = err != 0 ? err : failed;
    }
    if (x->op == SZ_C_DIFFERENCE && parts[1].cycle)
        return 0; /* nobody, and the cycle ends here */
    combine(l, x->op, parts, x->n, out);
    return failed;
}

static bool on_path(const struct sz_ask *a, uint32_t object, uint16_t rel)
{
    for (size_t i = 0; i < a->n_path; i++)
        if (a->path[i].object == object && a->path[i].rel == rel)
            return true;
    return false;
}

/* The users of (object, rel).  0, -EINVAL (fault set), SZ_ENGINE_BUDGET. */
static int collect(struct lister *l, uint32_t object, uint16_t rel, unsigned depth, struct users *out)
{
    struct sz_ask *a = l->a;
    const struct sz_crel *r = &a->p->rels[rel];
    if (depth >= SZ_DEPTH_MAX)
        return sz_ask_fail(a, 2002, "the answer is more than %d steps away", SZ_DEPTH_MAX - 1);
    if (spend(l) != 0)
        return SZ_ENGINE_BUDGET;
    if (on_path(a, object, rel)) {
        out->cycle = true;
        return 0;
    }
    if (a->n_path == a->cap_path) {
        struct sz_pathstep *more = sz_pool_alloc(sz_ask_pool(a), a->cap_path * 2 * sizeof(*more));
        memcpy(more, a->path, a->n_path * sizeof(*more));
        a->path = more;
        a->cap_path *= 2;
    }
    a->path[a->n_path++] = (struct sz_pathstep){object, rel};
    struct users parts[2] = {0}; /* the userset itself, when the filter asks for it */
    if (l->relation != 0 && r->type == l->type && r->relation == l->relation)
        add(l, &parts[0], (uint64_t)object << 16 | r->relation, true);
    int err = collect_rewrite(l, object, r, r->root, depth, &parts[1]);
    a->n_path--;
    combine(l, SZ_C_UNION, parts, 2, out);
    out->cycle = parts[1].cycle;
    return err;
}

/* ---- is there a way at all? ---- */

struct route {
    const struct sz_program *p;
    uint16_t form, wild_form, rel; /* rel: the filter's userset as a relation, SZ_NO_REL for plain users */
    uint16_t *queue;
    uint8_t *seen;
    size_t n;
    bool found;
};

static void route_to(struct route *t, uint16_t rel)
{
    t->found |= rel != SZ_NO_REL && rel == t->rel;
    if (rel == SZ_NO_REL || t->seen[rel])
        return;
    t->seen[rel] = 1;
    t->queue[t->n++] = rel;
}

static void route_leaf(void *arg, const struct sz_crel *r, const struct sz_cex *leaf)
{
    struct route *t = arg;
    for (uint16_t i = 0; leaf->op == SZ_C_DIRECT && i < r->n_direct; i++) {
        t->found |= r->direct[i].form == t->form || (t->wild_form != 0 && r->direct[i].form == t->wild_form);
        route_to(t, r->direct[i].target);
    }
    if (leaf->op == SZ_C_COMPUTED)
        route_to(t, leaf->target);
    for (uint16_t i = 0; leaf->op == SZ_C_TTU && i < t->p->rels[leaf->tupleset].n_direct; i++)
        route_to(t, leaf->parents[i]);
}

static bool has_route(struct lister *l, uint16_t target)
{
    const struct sz_program *p = l->a->p;
    struct sz_pool *pool = sz_ask_pool(l->a);
    struct route t = {.p = p, .rel = SZ_NO_REL, .form = p->plain_form[l->type], .wild_form = p->wild_form[l->type]};
    if (l->relation != 0) {
        t.rel = sz_program_rel(p, l->type, p->relation_names[l->relation]);
        t.form = sz_program_form(p, l->type, l->relation);
        t.wild_form = 0;
    }
    t.queue = sz_pool_alloc(pool, (p->n_rels + 1) * sizeof(*t.queue));
    t.seen = sz_pool_zalloc(pool, p->n_rels + 1);
    route_to(&t, target);
    for (size_t i = 0; i < t.n && !t.found; i++)
        sz_followed(&p->rels[t.queue[i]], p->rels[t.queue[i]].root, route_leaf, &t);
    return t.found;
}

static int resolve(struct lister *l, struct sz_slice object, struct sz_slice relation, struct sz_slice filter_type,
                   struct sz_slice filter_relation, uint32_t *node, uint16_t *rel)
{
    struct sz_ask *a = l->a;
    struct sz_slice type_name;
    l->type = sz_program_type(a->p, filter_type);
    if (l->type == 0)
        return sz_ask_fail(a, 2021, "type '%.*s' not found", SZ_FMT(filter_type));
    if (filter_relation.n > 0) {
        uint16_t r = sz_program_rel(a->p, l->type, filter_relation);
        if (r == SZ_NO_REL)
            return sz_ask_fail(a, 2022, "relation '%.*s#%.*s' not found", SZ_FMT(filter_type), SZ_FMT(filter_relation));
        l->relation = a->p->rels[r].relation;
    }
    ptrdiff_t colon = sz_find_byte(object, ':');
    if (colon < 1 || (size_t)colon + 1 == object.n)
        return sz_ask_fail(a, 2000, "invalid 'object' field format");
    type_name = sz_sub(object, 0, (size_t)colon); /* an id that no object can have is one that none has */
    uint16_t type = sz_program_type(a->p, type_name);
    if (type == 0)
        return sz_ask_fail(a, 2021, "type '%.*s' not found", SZ_FMT(type_name));
    *rel = sz_program_rel(a->p, type, relation);
    if (*rel == SZ_NO_REL)
        return sz_ask_fail(a, 2022, "relation '%.*s#%.*s' not found", SZ_FMT(type_name), SZ_FMT(relation));
    *node = sz_ask_node(a, object, type, false);
    return 0;
}

static void give(struct lister *l, const struct users *u, const struct sz_list_options *o, sz_list_fn *fn, void *arg)
{
    const struct sz_program *p = l->a->p;
    size_t given = 0;
    for (size_t i = 0; i <= u->n; i++) {
        struct sz_slice name;
        if (i == u->n && !u->wild)
            break;
        if (i < u->n && !u->v[i].in)
            continue;
        if (o->max != 0 && given++ >= o->max) {
            if (o->cut != NULL)
                *o->cut = true;
            return;
        }
        if (i == u->n)
            name = sz_pool_printf(sz_ask_pool(l->a), "%.*s:*", SZ_FMT(p->type_names[l->type]));
        else
            name = sz_ask_name(l->a, (uint32_t)(u->v[i].key >> 16));
        if (i < u->n && (u->v[i].key & 0xffff) != 0)
            name = sz_pool_printf(sz_ask_pool(l->a), "%.*s#%.*s", SZ_FMT(name),
                                  SZ_FMT(p->relation_names[u->v[i].key & 0xffff]));
        if (fn(arg, name) != 0)
            return;
    }
}

int sz_engine_list_users(struct sz_engine *e, const struct sz_program *p, struct sz_slice object,
                         struct sz_slice relation, struct sz_slice filter_type, struct sz_slice filter_relation,
                         const struct sz_list_options *o, sz_list_fn *fn, void *arg, struct sz_fault *fault)
{
    struct sz_ask a;
    struct lister l = {.a = &a};
    struct users users = {0};
    uint32_t node = SZ_NO_NODE;
    uint16_t rel = SZ_NO_REL;
    sz_ask_begin(&a, e, p, o->steps != NULL ? *o->steps : UINT64_MAX, fault);
    a.condition_fault = 2000;
    int err = sz_ask_context(&a, o->context, o->contextual, o->contextual_n);
    if (err == 0)
        err = resolve(&l, object, relation, filter_type, filter_relation, &node, &rel);
    if (err == 0 && has_route(&l, rel))
        err = collect(&l, node, rel, 0, &users);
    if (err == SZ_ENGINE_BUDGET) { /* a half computed set is no set: nobody is listed */
        users = (struct users){0};
        if (o->cut != NULL)
            *o->cut = true;
        err = 0;
    }
    if (err == 0)
        give(&l, &users, o, fn, arg);
    if (o->steps != NULL)
        *o->steps = a.steps;
    sz_ask_end(&a);
    return err;
}
