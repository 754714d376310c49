/*
 * Model -> program.  Names get the store's numbers, so tuples written under one model mean the same
 * under the next.  What users of a form can reach is found by following the arrows of the model backwards from
 * the form: admitted directly, by computed usersets, through parents, through usersets.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/engine/program.h"

struct compiler {
    struct sz_store *s;
    const struct sz_model *m;
    struct sz_program *p;
    struct sz_fault *fault;
};

/* The first and last eight bytes and the length tell relations of a type apart; the names come from models, not
 * clients. */
static uint32_t rel_hash(uint16_t type, struct sz_slice name)
{
    uint64_t first = 0, last = 0;
    if (name.n >= 8) {
        memcpy(&first, name.p, 8);
        memcpy(&last, name.p + name.n - 8, 8);
    } else {
        for (size_t i = 0; i < name.n; i++)
            first |= (uint64_t)(unsigned char)name.p[i] << (8 * i);
    }
    uint64_t h =
        (first ^ last * 31) * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)name.n << 32) + type * UINT64_C(0x85ebca6b);
    return (uint32_t)(h ^ h >> 32) ^ (uint32_t)(h >> 17);
}

uint16_t sz_program_rel(const struct sz_program *p, uint16_t type, struct sz_slice relation)
{
    for (uint32_t i = rel_hash(type, relation) & p->rel_mask;; i = (i + 1) & p->rel_mask) {
        uint16_t at = p->rel_table[i];
        if (at == SZ_NO_REL)
            return SZ_NO_REL;
        if (p->rels[at].type == type && sz_eq(p->relation_names[p->rels[at].relation], relation))
            return at;
    }
}

uint16_t sz_program_type(const struct sz_program *p, struct sz_slice name)
{
    for (size_t i = 1; i < p->n_type_names; i++)
        if (p->has_type[i] && sz_eq(p->type_names[i], name))
            return (uint16_t)i;
    return 0;
}

uint16_t sz_program_relation(const struct sz_program *p, struct sz_slice name)
{
    for (size_t i = 1; i < p->n_relation_names; i++)
        if (sz_eq(p->relation_names[i], name))
            return (uint16_t)i;
    return 0;
}

uint16_t sz_program_form(const struct sz_program *p, uint16_t type, uint16_t relation)
{
    for (size_t i = 1; i < p->n_forms; i++)
        if (p->forms[i].type == type && p->forms[i].relation == relation)
            return (uint16_t)i;
    return 0;
}

/* ---- names ---- */

static int full(struct compiler *c)
{
    sz_fault_set(c->fault, 2056, "the store knows too many names already");
    return -EINVAL;
}

static int number_names(struct compiler *c)
{
    struct sz_store *s = c->s;
    for (size_t i = 0; i < c->m->n_types; i++) {
        const struct sz_type *t = &c->m->types[i];
        uint16_t type = sz_symbol_add(&s->types, t->name);
        if (type == 0 || sz_form_add(s, type, 0) == 0 || sz_form_add(s, type, SZ_WILD) == 0)
            return full(c);
        for (size_t k = 0; k < t->n_rels; k++) {
            uint16_t relation = sz_symbol_add(&s->relations, t->rels[k].name);
            if (relation == 0 || sz_form_add(s, type, relation) == 0)
                return full(c);
        }
    }
    for (size_t i = 0; i < c->m->n_types; i++) /* forms of reverse rows: (type of the object, relation of the user) */
        for (size_t k = 0; k < c->m->types[i].n_rels; k++)
            for (size_t j = 0; j < c->m->types[i].rels[k].n_refs; j++) {
                struct sz_slice relation = c->m->types[i].rels[k].refs[j].relation;
                if (relation.p != NULL && sz_form_add(s, sz_symbol_find(&s->types, c->m->types[i].name),
                                                      sz_symbol_find(&s->relations, relation)) == 0)
                    return full(c);
            }
    for (size_t i = 0; i < c->m->n_conds; i++)
        if (sz_symbol_add(&s->conditions, c->m->conds[i].name) == 0)
            return full(c);
    return 0;
}

static void *copy(struct compiler *c, const void *v, size_t n, size_t size)
{
    void *out = sz_pool_zalloc(&c->p->arena.pool, (n + 1) * size);
    if (n > 0)
        memcpy(out, v, n * size);
    return out;
}

static void index_names(struct compiler *c)
{
    struct sz_program *p = c->p;
    struct sz_pool *pool = &p->arena.pool;
    p->n_type_names = c->s->types.n;
    p->type_names = copy(c, c->s->types.v, p->n_type_names, sizeof(struct sz_slice));
    p->n_relation_names = c->s->relations.n;
    p->relation_names = copy(c, c->s->relations.v, p->n_relation_names, sizeof(struct sz_slice));
    p->n_forms = c->s->n_forms;
    p->forms = copy(c, c->s->forms, p->n_forms, sizeof(struct sz_form));
    p->has_type = sz_pool_zalloc(pool, p->n_type_names + 1);
    p->plain_form = sz_pool_zalloc(pool, (p->n_type_names + 1) * sizeof(uint16_t));
    p->wild_form = sz_pool_zalloc(pool, (p->n_type_names + 1) * sizeof(uint16_t));
    for (size_t i = 0; i < c->m->n_types; i++)
        p->has_type[sz_symbol_find(&c->s->types, c->m->types[i].name)] = 1;
    for (size_t i = 1; i < p->n_forms; i++) {
        if (p->forms[i].relation == 0)
            p->plain_form[p->forms[i].type] = (uint16_t)i;
        else if (p->forms[i].relation == SZ_WILD)
            p->wild_form[p->forms[i].type] = (uint16_t)i;
    }
}

static void index_relations(struct compiler *c)
{
    struct sz_program *p = c->p;
    size_t n = 0, slots = 16;
    for (size_t i = 0; i < c->m->n_types; i++)
        n += c->m->types[i].n_rels;
    while (slots < n * 2)
        slots *= 2;
    p->rels = sz_pool_zalloc(&p->arena.pool, (n + 1) * sizeof(*p->rels));
    p->rel_table = sz_pool_alloc(&p->arena.pool, slots * sizeof(uint16_t));
    memset(p->rel_table, 0xff, slots * sizeof(uint16_t));
    p->rel_mask = (uint32_t)slots - 1;
    for (size_t i = 0; i < c->m->n_types; i++) {
        const struct sz_type *t = &c->m->types[i];
        for (size_t k = 0; k < t->n_rels; k++) {
            struct sz_crel *r = &p->rels[p->n_rels];
            r->type = sz_symbol_find(&c->s->types, t->name);
            r->relation = sz_symbol_find(&c->s->relations, t->rels[k].name);
            uint32_t at = rel_hash(r->type, t->rels[k].name) & p->rel_mask;
            while (p->rel_table[at] != SZ_NO_REL)
                at = (at + 1) & p->rel_mask;
            p->rel_table[at] = (uint16_t)p->n_rels++;
        }
    }
}

/* ---- relations ---- */

/* The entry for the form, new or there already (one entry per form, however many conditions it is listed with). */
static struct sz_direct *direct_entry(struct sz_direct *list, uint16_t *n, uint16_t form)
{
    for (uint16_t i = 0; i < *n; i++)
        if (list[i].form == form)
            return &list[i];
    struct sz_direct *d = &list[(*n)++];
    *d = (struct sz_direct){.form = form, .target = SZ_NO_REL};
    return d;
}

static void compile_direct(struct compiler *c, struct sz_crel *r, const struct sz_rel *rel)
{
    struct sz_direct *list = sz_pool_zalloc(&c->p->arena.pool, (rel->n_refs + 1) * sizeof(*list));
    for (size_t i = 0; i < rel->n_refs; i++) {
        const struct sz_ref *ref = &rel->refs[i];
        uint16_t type = sz_symbol_find(&c->s->types, ref->type);
        uint16_t relation = ref->wildcard             ? SZ_WILD
                            : ref->relation.p != NULL ? sz_symbol_find(&c->s->relations, ref->relation)
                                                      : 0;
        struct sz_direct *d = direct_entry(list, &r->n_direct, sz_program_form(c->p, type, relation));
        d->type = type;
        d->relation = relation;
        if (ref->relation.p != NULL)
            d->target = sz_program_rel(c->p, type, ref->relation);
        if (ref->condition.p == NULL) {
            d->bare = true;
            continue;
        }
        uint16_t *conds = copy(c, d->conds, d->n_conds, sizeof(uint16_t));
        conds[d->n_conds++] = sz_symbol_find(&c->s->conditions, ref->condition);
        d->conds = conds;
    }
    r->direct = list;
}

static const struct sz_cex *compile_rewrite(struct compiler *c, struct sz_crel *r, const struct sz_rw *rw);

static void compile_ttu(struct compiler *c, struct sz_crel *r, const struct sz_rw *rw, struct sz_cex *x)
{
    x->op = SZ_C_TTU;
    x->tupleset = sz_program_rel(c->p, r->type, rw->tupleset);
    x->relation = sz_symbol_find(&c->s->relations, rw->relation);
    struct sz_crel *tupleset = &c->p->rels[x->tupleset];
    tupleset->tupleset = true;
    if (r->parent_key == 0 && tupleset->n_direct > 0)
        r->parent_key = sz_row_key(tupleset->relation, tupleset->direct[0].form);
    uint16_t *parents = sz_pool_alloc(&c->p->arena.pool, (tupleset->n_direct + 1U) * sizeof(*parents));
    for (uint16_t i = 0; i < tupleset->n_direct; i++)
        parents[i] = sz_program_rel(c->p, tupleset->direct[i].type, rw->relation);
    x->parents = parents;
}

static const struct sz_cex *compile_rewrite(struct compiler *c, struct sz_crel *r, const struct sz_rw *rw)
{
    struct sz_cex *x = sz_pool_zalloc(&c->p->arena.pool, sizeof(*x));
    switch (rw->op) {
    case SZ_RW_THIS:
        x->op = SZ_C_DIRECT;
        r->assignable = true;
        return x;
    case SZ_RW_COMPUTED:
        x->op = SZ_C_COMPUTED;
        x->target = sz_program_rel(c->p, r->type, rw->relation);
        return x;
    case SZ_RW_TTU:
        compile_ttu(c, r, rw, x);
        return x;
    case SZ_RW_UNION:
        x->op = SZ_C_UNION;
        break;
    case SZ_RW_INTERSECTION:
        x->op = SZ_C_INTERSECTION;
        break;
    case SZ_RW_DIFFERENCE:
        x->op = SZ_C_DIFFERENCE;
        break;
    }
    const struct sz_cex **child = sz_pool_alloc(&c->p->arena.pool, rw->n * sizeof(*child));
    for (size_t i = 0; i < rw->n; i++)
        child[i] = compile_rewrite(c, r, rw->child[i]);
    x->child = child;
    x->n = (uint16_t)rw->n;
    return x;
}

static void compile_relations(struct compiler *c)
{
    struct sz_crel *r = c->p->rels;
    for (size_t i = 0; i < c->m->n_types; i++)
        for (size_t k = 0; k < c->m->types[i].n_rels; k++, r++)
            compile_direct(c, r, &c->m->types[i].rels[k]);
    r = c->p->rels;
    for (size_t i = 0; i < c->m->n_types; i++)
        for (size_t k = 0; k < c->m->types[i].n_rels; k++, r++) {
            r->root = compile_rewrite(c, r, c->m->types[i].rels[k].rw);
            r->members_only = r->root->op == SZ_C_DIRECT;
            for (uint16_t d = 0; d < r->n_direct; d++)
                r->members_only &= r->direct[d].target == SZ_NO_REL && r->direct[d].n_conds == 0;
        }
}

/* ---- what leads where ---- */

struct askers {      /* for each relation, those whose rewrite asks it: lists in one array */
    uint32_t *first; /* n_rels + 1 */
    uint16_t *v;
    uint16_t *queue; /* workspace */
};

static void put(uint16_t *out, size_t n, uint16_t v)
{
    if (out != NULL)
        out[n] = v;
}

/* Every relation that this rewrite asks; out NULL only counts. */
static size_t asked_by(const struct sz_program *p, const struct sz_crel *r, const struct sz_cex *x, uint16_t *out)
{
    size_t n = 0;
    switch (x->op) {
    case SZ_C_DIRECT:
        for (uint16_t i = 0; i < r->n_direct; i++)
            if (r->direct[i].target != SZ_NO_REL)
                put(out, n++, r->direct[i].target);
        return n;
    case SZ_C_COMPUTED:
        put(out, n++, x->target);
        return n;
    case SZ_C_TTU:
        for (uint16_t i = 0; i < p->rels[x->tupleset].n_direct; i++)
            if (x->parents[i] != SZ_NO_REL)
                put(out, n++, x->parents[i]);
        return n;
    case SZ_C_UNION:
    case SZ_C_INTERSECTION:
    case SZ_C_DIFFERENCE:
        for (uint16_t i = 0; i < x->n; i++)
            n += asked_by(p, r, x->child[i], out == NULL ? NULL : out + n);
        return n;
    }
    return n;
}

static struct askers find_askers(const struct sz_program *p, struct sz_pool *pool)
{
    struct askers a = {.first = sz_pool_zalloc(pool, (p->n_rels + 2) * sizeof(*a.first)),
                       .queue = sz_pool_alloc(pool, (p->n_rels + 1) * sizeof(*a.queue))};
    size_t total = 0, most = 0;
    for (size_t r = 0; r < p->n_rels; r++) {
        size_t n = asked_by(p, &p->rels[r], p->rels[r].root, NULL);
        total += n;
        most = n > most ? n : most;
    }
    uint16_t *asked = sz_pool_alloc(pool, (most + 1) * sizeof(*asked));
    a.v = sz_pool_alloc(pool, (total + 1) * sizeof(*a.v));
    for (int pass = 0; pass < 2; pass++) { /* count, then place from the end of each list */
        for (size_t r = 0; r < p->n_rels; r++) {
            size_t n = asked_by(p, &p->rels[r], p->rels[r].root, asked);
            for (size_t i = 0; i < n; i++) {
                if (pass == 0)
                    a.first[asked[i]]++;
                else
                    a.v[--a.first[asked[i]]] = (uint16_t)r;
            }
        }
        for (size_t r = 0; pass == 0 && r < p->n_rels; r++)
            a.first[r + 1] += a.first[r];
    }
    a.first[p->n_rels] = (uint32_t)total;
    return a;
}

static bool mark(uint64_t *set, size_t r)
{
    uint64_t bit = UINT64_C(1) << r % 64;
    bool fresh = (set[r / 64] & bit) == 0;
    set[r / 64] |= bit;
    return fresh;
}

/* Adds all that ask one of the first n in the queue, in however many steps. */
static void close_over_askers(const struct askers *a, uint64_t *set, size_t n)
{
    for (size_t head = 0; head < n; head++)
        for (uint32_t i = a->first[a->queue[head]]; i < a->first[a->queue[head] + 1]; i++)
            if (mark(set, a->v[i]))
                a->queue[n++] = a->v[i];
}

/* Asked by something that asks it: itself among its askers' askers. */
static void mark_recursive(struct sz_program *p, const struct askers *a, struct sz_pool *pool)
{
    uint64_t *set = sz_pool_alloc(pool, p->reach_words * sizeof(*set));
    for (size_t r = 0; r < p->n_rels; r++) {
        memset(set, 0, p->reach_words * sizeof(*set));
        size_t n = 0;
        for (uint32_t i = a->first[r]; i < a->first[r + 1]; i++)
            if (mark(set, a->v[i]))
                a->queue[n++] = a->v[i];
        close_over_askers(a, set, n);
        p->rels[r].recursive = (set[r / 64] >> r % 64 & 1) != 0;
    }
}

static void compute_reach(struct compiler *c)
{
    struct sz_program *p = c->p;
    struct sz_arena scratch;
    sz_arena_init(&scratch);
    p->reach_words = p->n_rels / 64 + 1;
    p->reach = sz_pool_zalloc(&p->arena.pool, (p->n_forms + 1) * p->reach_words * sizeof(*p->reach));
    struct askers a = find_askers(p, &scratch.pool);
    mark_recursive(p, &a, &scratch.pool);
    for (size_t f = 1; f < p->n_forms; f++) {
        uint64_t *set = p->reach + f * p->reach_words;
        size_t n = 0;
        for (size_t r = 0; r < p->n_rels; r++) {
            bool itself = p->rels[r].type == p->forms[f].type && p->rels[r].relation == p->forms[f].relation;
            bool admits = p->rels[r].assignable && sz_direct_find(&p->rels[r], (uint16_t)f) != NULL;
            if ((itself || admits) && mark(set, r))
                a.queue[n++] = (uint16_t)r;
        }
        close_over_askers(&a, set, n);
    }
    sz_arena_fini(&scratch);
}

/* ---- conditions ---- */

static int compile_conditions(struct compiler *c)
{
    struct sz_program *p = c->p;
    struct sz_pool *pool = &p->arena.pool;
    p->n_cond_index = c->s->conditions.n;
    p->cond_index = sz_pool_zalloc(pool, (p->n_cond_index + 1) * sizeof(uint16_t));
    p->conds = sz_pool_zalloc(pool, (c->m->n_conds + 1) * sizeof(*p->conds));
    for (size_t i = 0; i < c->m->n_conds; i++) {
        const struct sz_cond *from = &c->m->conds[i];
        struct sz_ccond *to = &p->conds[p->n_conds];
        struct sz_text why;
        to->name = sz_symbol_find(&c->s->conditions, from->name);
        to->text = sz_pool_dup(pool, from->name);
        to->n_params = from->n_params;
        struct sz_param *params = copy(c, from->params, from->n_params, sizeof(*params));
        for (size_t k = 0; k < from->n_params; k++)
            params[k].name = sz_pool_dup(pool, from->params[k].name);
        to->params = params;
        to->cel = sz_cel_compile(from->expression, params, from->n_params, &why);
        if (to->cel == NULL) {
            sz_fault_set(c->fault, 2056, "condition '%.*s' does not compile: %s", SZ_FMT(from->name), why.s);
            return -EINVAL;
        }
        p->cond_index[to->name] = (uint16_t)++p->n_conds;
    }
    return 0;
}

struct sz_program *sz_program_new(struct sz_store *s, const struct sz_model *m, struct sz_fault *fault)
{
    if (sz_model_check(m, fault) != 0)
        return NULL;
    struct compiler c = {s, m, sz_xcalloc(1, sizeof(struct sz_program)), fault};
    sz_arena_init(&c.p->arena);
    int err = number_names(&c);
    if (err == 0) {
        index_names(&c);
        index_relations(&c);
        compile_relations(&c);
        compute_reach(&c);
        sz_program_index_back(c.p);
        err = compile_conditions(&c);
    }
    if (err == 0)
        return c.p;
    sz_program_free(c.p);
    return NULL;
}

void sz_program_free(struct sz_program *p)
{
    for (size_t i = 0; i < p->n_conds; i++)
        sz_cel_free(p->conds[i].cel);
    sz_arena_fini(&p->arena);
    free(p);
}
