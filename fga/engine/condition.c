/*
 * Does a tuple's condition hold?  Variables are the request's context overlaid by the tuple's own.  Casting is done
 * once per tuple context (kept with it for the model that asked first) and once per request and condition.
 */
#include "fga/engine/condition.h"

#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/ask.h"

void sz_typed_context_free(struct sz_typed_context *t)
{
    if (t == NULL)
        return;
    sz_arena_fini(&t->arena);
    free(t);
}

static const struct sz_param *param(const struct sz_ccond *c, const char *name)
{
    for (size_t i = 0; i < c->n_params; i++)
        if (sz_eq(c->params[i].name, sz_cstr(name)))
            return &c->params[i];
    return NULL;
}

static void cast_all(struct sz_typed_context *t, const struct sz_ccond *c, const void *json, struct sz_pool *pool,
                     struct sz_text *why)
{
    const char *key;
    json_t *value;
    t->given = sz_pool_zalloc(pool, c->n_params + 1);
    t->v = sz_pool_zalloc(pool, (c->n_params + 1) * sizeof(*t->v));
    json_object_foreach((json_t *)json, key, value)
    {
        const struct sz_param *p = param(c, key);
        struct sz_text reason;
        if (p == NULL) {
            sz_text_set(why, "found invalid context parameter: %s", key);
            return;
        }
        size_t i = (size_t)(p - c->params);
        if (sz_cv_from_json(value, p->type, p->element, pool, &t->v[i], &reason) != 0) {
            sz_text_set(why, "parameter '%s': %s", key, reason.s);
            return;
        }
        t->given[i] = true;
    }
    t->valid = true;
}

struct sz_typed_context *sz_typed_context_make(const struct sz_program *p, const struct sz_ccond *c, const void *json,
                                               struct sz_pool *pool, struct sz_text *why)
{
    struct sz_typed_context *t = sz_pool_zalloc(pool, sizeof(*t));
    t->p = p;
    cast_all(t, c, json, pool, why);
    return t;
}

/* The stored condition's context for this model: kept with it when it is the first to ask, else made for the question.
 */
static const struct sz_typed_context *typed(struct sz_ask *a, const struct sz_ccond *c, const struct sz_cinst *inst)
{
    struct sz_text why;
    struct sz_typed_context *t = atomic_load_explicit(&inst->typed, memory_order_acquire);
    if (t != NULL && t->p == a->p)
        return t;
    if (t != NULL)
        return sz_typed_context_make(a->p, c, inst->json, sz_ask_pool(a), &why);
    struct sz_typed_context *fresh = sz_xcalloc(1, sizeof(*fresh)), *none = NULL;
    sz_arena_init(&fresh->arena);
    fresh->p = a->p;
    cast_all(fresh, c, inst->json, &fresh->arena.pool, &why);
    _Atomic(struct sz_typed_context *) *home = (_Atomic(struct sz_typed_context *) *)&inst->typed;
    if (atomic_compare_exchange_strong_explicit(home, &none, fresh, memory_order_acq_rel, memory_order_acquire))
        return fresh;
    sz_typed_context_free(fresh); /* another thread was first, maybe for another model */
    return none->p == a->p ? none : sz_typed_context_make(a->p, c, inst->json, sz_ask_pool(a), &why);
}

/* The request's value of the i-th parameter; -1: not given, -2: not castable (fault set). */
static int request_value(struct sz_ask *a, const struct sz_ccond *c, size_t i, struct sz_cv *out)
{
    size_t at = (size_t)(c - a->p->conds);
    struct sz_pool *pool = sz_ask_pool(a);
    if (a->vars == NULL)
        a->vars = sz_pool_zalloc(pool, (a->p->n_conds + 1) * sizeof(struct sz_cv *));
    if (a->vars[at] == NULL) /* kind CV_ERROR, zero: not cast yet */
        a->vars[at] = sz_pool_zalloc(pool, (c->n_params + 1) * sizeof(struct sz_cv));
    struct sz_cv *kept = &a->vars[at][i];
    if (kept->kind != CV_ERROR) {
        *out = *kept;
        return 0;
    }
    const struct sz_param *p = &c->params[i];
    const json_t *value = json_object_getn(a->context, p->name.p, p->name.n);
    struct sz_text why;
    if (value == NULL)
        return -1;
    if (sz_cv_from_json(value, p->type, p->element, pool, kept, &why) != 0) {
        kept->kind = CV_ERROR;
        sz_ask_fail(a, 2000, "condition '%.*s': parameter '%.*s': %s", SZ_FMT(c->text), SZ_FMT(p->name), why.s);
        return -2;
    }
    *out = *kept;
    return 0;
}

static bool listed(const struct sz_direct *d, uint16_t name)
{
    for (uint16_t i = 0; i < d->n_conds; i++)
        if (d->conds[i] == name)
            return true;
    return false;
}

enum sz_answer sz_ask_condition(struct sz_ask *a, const struct sz_direct *d, const struct sz_cinst *inst)
{
    const struct sz_ccond *c = listed(d, inst->name) ? sz_program_cond(a->p, inst->name) : NULL;
    const struct sz_typed_context *t = c != NULL ? typed(a, c, inst) : NULL;
    if (t == NULL || !t->valid)
        return SZ_NO; /* the model does not admit such a tuple */
    struct sz_cv few[16],
        *vars = c->n_params > SZ_COUNT(few) ? sz_pool_alloc(sz_ask_pool(a), c->n_params * sizeof(*vars)) : few;
    bool missing = false;
    for (size_t i = 0; i < c->n_params; i++) {
        if (t->given[i]) {
            vars[i] = t->v[i];
            continue;
        }
        int err = request_value(a, c, i, &vars[i]);
        if (err == -2)
            return SZ_ERROR;
        if (err == -1 && !missing)
            sz_ask_fail(a, 2000, "condition '%.*s': parameter '%.*s' is missing in the context", SZ_FMT(c->text),
                        SZ_FMT(c->params[i].name));
        missing |= err == -1;
    }
    if (missing)
        return SZ_ERROR;
    struct sz_text why;
    int held = sz_cel_eval(c->cel, vars, sz_ask_pool(a), &why);
    if (held < 0)
        sz_ask_fail(a, 2000, "condition '%.*s': %s", SZ_FMT(c->text), why.s);
    return held < 0 ? SZ_ERROR : held == 1 ? SZ_YES : SZ_NO;
}
