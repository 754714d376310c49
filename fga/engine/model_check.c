/*
 * What a server refuses when a model is written.  One fault, the first found.
 */
#include <errno.h>

#include "fga/engine/lint.h"
#include "fga/engine/program.h"

struct at {
    const struct sz_model *m;
    const struct sz_type *t;
    const struct sz_rel *r;
    struct sz_fault *fault;
};

#define REFUSE(fault, ...) (sz_fault_set(fault, 2056, __VA_ARGS__), -EINVAL)
#define REL_FMT            "relation '%.*s' of type '%.*s'"
#define REL_ARGS(a)        SZ_FMT((a)->r->name), SZ_FMT((a)->t->name)

static bool name_ok(struct sz_slice name, size_t max)
{
    if (name.n == 0 || name.n > max || sz_eq(name, SZ_S("self")) || sz_eq(name, SZ_S("this")))
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (strchr(":#@* \t\r\n\f\v", name.p[i]) != NULL)
            return false;
    return sz_utf8_valid(name);
}

static int check_ref(const struct at *a, const struct sz_ref *ref)
{
    const struct sz_type *t = sz_model_type(a->m, ref->type);
    if (t == NULL)
        return REFUSE(a->fault, REL_FMT ": '%.*s' is not a type of the model", REL_ARGS(a), SZ_FMT(ref->type));
    if (ref->wildcard && ref->relation.p != NULL)
        return REFUSE(a->fault, REL_FMT ": a restriction has both a wildcard and a relation", REL_ARGS(a));
    if (ref->relation.p != NULL && sz_type_rel(t, ref->relation) == NULL)
        return REFUSE(a->fault, REL_FMT ": '%.*s#%.*s' is not a relation of the model", REL_ARGS(a), SZ_FMT(ref->type),
                      SZ_FMT(ref->relation));
    if (ref->condition.p != NULL && sz_model_cond(a->m, ref->condition) == NULL)
        return REFUSE(a->fault, REL_FMT ": condition '%.*s' is undefined", REL_ARGS(a), SZ_FMT(ref->condition));
    return 0;
}

static int check_ttu(const struct at *a, const struct sz_rw *rw)
{
    const struct sz_rel *tupleset = sz_type_rel(a->t, rw->tupleset);
    if (tupleset == NULL)
        return REFUSE(a->fault, REL_FMT ": tupleset '%.*s' does not exist", REL_ARGS(a), SZ_FMT(rw->tupleset));
    if (tupleset->rw == NULL || tupleset->rw->op != SZ_RW_THIS)
        return REFUSE(a->fault, REL_FMT ": tupleset '%.*s' must be directly assigned", REL_ARGS(a),
                      SZ_FMT(rw->tupleset));
    bool found = false;
    for (size_t i = 0; i < tupleset->n_refs; i++) {
        const struct sz_ref *ref = &tupleset->refs[i];
        const struct sz_type *parent = sz_model_type(a->m, ref->type);
        if (ref->wildcard || ref->relation.p != NULL)
            return REFUSE(a->fault, REL_FMT ": tupleset '%.*s' must hold plain objects only", REL_ARGS(a),
                          SZ_FMT(rw->tupleset));
        found |= parent != NULL && sz_type_rel(parent, rw->relation) != NULL;
    }
    if (!found)
        return REFUSE(a->fault, REL_FMT ": '%.*s' is a relation of no type that '%.*s' holds", REL_ARGS(a),
                      SZ_FMT(rw->relation), SZ_FMT(rw->tupleset));
    return 0;
}

/* *direct counts the direct parts. */
static int check_rewrite(const struct at *a, const struct sz_rw *rw, size_t *direct)
{
    switch (rw->op) {
    case SZ_RW_THIS:
        ++*direct;
        return 0;
    case SZ_RW_COMPUTED:
        if (sz_eq(rw->relation, a->r->name))
            return REFUSE(a->fault, REL_FMT " is defined by itself", REL_ARGS(a));
        if (sz_type_rel(a->t, rw->relation) == NULL)
            return REFUSE(a->fault, REL_FMT ": relation '%.*s' does not exist", REL_ARGS(a), SZ_FMT(rw->relation));
        return 0;
    case SZ_RW_TTU:
        return check_ttu(a, rw);
    case SZ_RW_UNION:
    case SZ_RW_INTERSECTION:
    case SZ_RW_DIFFERENCE:
        break;
    }
    if (rw->n < 2)
        return REFUSE(a->fault, REL_FMT ": an operator needs two operands", REL_ARGS(a));
    for (size_t i = 0; i < rw->n; i++) {
        int err = check_rewrite(a, rw->child[i], direct);
        if (err != 0)
            return err;
    }
    return 0;
}

static int check_relation(const struct at *a)
{
    size_t direct = 0;
    if (!name_ok(a->r->name, 50))
        return REFUSE(a->fault, REL_FMT ": the name is not allowed", REL_ARGS(a));
    if (a->r->rw == NULL)
        return REFUSE(a->fault, REL_FMT " has no rewrite", REL_ARGS(a));
    int err = check_rewrite(a, a->r->rw, &direct);
    if (err != 0)
        return err;
    if (direct > 0 && a->r->n_refs == 0)
        return REFUSE(a->fault, REL_FMT " is assignable but admits no type", REL_ARGS(a));
    if (direct == 0 && a->r->n_refs > 0)
        return REFUSE(a->fault, REL_FMT " admits types but is not assignable", REL_ARGS(a));
    for (size_t i = 0; i < a->r->n_refs; i++) {
        err = check_ref(a, &a->r->refs[i]);
        if (err != 0)
            return err;
    }
    return 0;
}

static int check_types(const struct sz_model *m, struct sz_fault *fault)
{
    size_t relations = 0;
    for (size_t i = 0; i < m->n_types; i++) {
        struct at a = {m, &m->types[i], NULL, fault};
        if (!name_ok(a.t->name, 254))
            return REFUSE(fault, "type name '%.*s' is not allowed", SZ_FMT(a.t->name));
        if (sz_model_type(m, a.t->name) != a.t)
            return REFUSE(fault, "type '%.*s' is defined twice", SZ_FMT(a.t->name));
        relations += a.t->n_rels;
        if (relations > SZ_MODEL_RELATIONS_MAX || i >= SZ_MODEL_TYPES_MAX)
            return REFUSE(fault, "the model is too large: at most %d types and %d relations", SZ_MODEL_TYPES_MAX,
                          SZ_MODEL_RELATIONS_MAX);
        for (size_t k = 0; k < a.t->n_rels; k++) {
            a.r = &a.t->rels[k];
            if (sz_type_rel(a.t, a.r->name) != a.r)
                return REFUSE(fault, REL_FMT " is defined twice", REL_ARGS(&a));
            int err = check_relation(&a);
            if (err != 0)
                return err;
        }
    }
    return 0;
}

/* Does the rewrite come back to the relation by computed usersets alone?  colour: 1 on the way, 2 done. */
static bool computed_cycle(const struct sz_type *t, const struct sz_rw *rw, uint8_t *colour)
{
    if (rw->op == SZ_RW_COMPUTED) {
        size_t at = (size_t)(sz_type_rel(t, rw->relation) - t->rels);
        if (colour[at] != 0)
            return colour[at] == 1;
        colour[at] = 1;
        bool found = computed_cycle(t, t->rels[at].rw, colour);
        colour[at] = 2;
        return found;
    }
    for (size_t i = 0; i < rw->n; i++)
        if (computed_cycle(t, rw->child[i], colour))
            return true;
    return false;
}

static int check_reachable(const struct sz_model *m, struct sz_pool *scratch, struct sz_fault *fault)
{
    const struct sz_entry *entry = sz_model_entries(m, scratch);
    for (size_t i = 0; i < m->n_types; i++) {
        struct at a = {m, &m->types[i], NULL, fault};
        for (size_t k = 0; k < a.t->n_rels; k++, entry++) {
            a.r = &a.t->rels[k];
            uint8_t *colour = sz_pool_zalloc(scratch, a.t->n_rels);
            colour[k] = 1;
            if (computed_cycle(a.t, a.r->rw, colour))
                return REFUSE(fault, REL_FMT " is part of a cycle", REL_ARGS(&a));
            if (!entry->reachable)
                return REFUSE(fault, REL_FMT " has no entry point", REL_ARGS(&a));
        }
    }
    return 0;
}

static int check_conditions(const struct sz_model *m, struct sz_fault *fault)
{
    for (size_t i = 0; i < m->n_conds; i++) {
        const struct sz_cond *c = &m->conds[i];
        if (!sz_eq(c->key, c->name))
            return REFUSE(fault, "condition '%.*s' is listed under '%.*s'", SZ_FMT(c->name), SZ_FMT(c->key));
        if (c->name.n == 0 || c->name.n > 50 || sz_model_cond(m, c->name) != c)
            return REFUSE(fault, "condition name '%.*s' is not allowed or used twice", SZ_FMT(c->name));
        for (size_t k = 0; k < c->n_params; k++) {
            const struct sz_param *p = &c->params[k];
            bool container = p->type == SZ_P_LIST || p->type == SZ_P_MAP;
            if (p->type == SZ_P_NONE || container != (p->element != SZ_P_NONE) || p->element == SZ_P_LIST ||
                p->element == SZ_P_MAP)
                return REFUSE(fault, "condition '%.*s': parameter '%.*s' has no known type", SZ_FMT(c->name),
                              SZ_FMT(p->name));
        }
    }
    return 0;
}

int sz_model_check(const struct sz_model *m, struct sz_fault *fault)
{
    if (!sz_eq(m->schema, SZ_S("1.1")) && !sz_eq(m->schema, SZ_S("1.2")))
        return REFUSE(fault, "schema version '%.*s' is not supported, use 1.1 or 1.2", SZ_FMT(m->schema));
    struct sz_arena scratch;
    sz_arena_init(&scratch);
    int err = check_types(m, fault);
    if (err == 0)
        err = check_reachable(m, &scratch.pool, fault);
    if (err == 0)
        err = check_conditions(m, fault);
    sz_arena_fini(&scratch);
    return err;
}
