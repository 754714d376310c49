/*
 * Building and searching model trees.  Lists double inside the arena: what they leave behind is
 * at most as large as the model itself.
 */
#include "fga/engine/model.h"

#include <stdlib.h>

struct sz_model *sz_model_new(void)
{
    struct sz_model *m = sz_xcalloc(1, sizeof(*m));
    sz_arena_init(&m->arena);
    return m;
}

void sz_model_free(struct sz_model *m)
{
    if (m == NULL)
        return;
    sz_arena_fini(&m->arena);
    free(m);
}

/* Room for one more at *list: capacities are powers of two, so a full list is one whose count is one. */
static void *grow(struct sz_model *m, void *list, size_t n, size_t size)
{
    if (n != 0 && (n & (n - 1)) != 0)
        return list;
    char *bigger = sz_pool_zalloc(&m->arena.pool, (n == 0 ? 1 : n * 2) * size);
    if (n > 0)
        memcpy(bigger, list, n * size);
    return bigger;
}

struct sz_type *sz_model_add_type(struct sz_model *m, struct sz_slice name)
{
    m->types = grow(m, m->types, m->n_types, sizeof(*m->types));
    struct sz_type *t = &m->types[m->n_types++];
    t->name = name;
    return t;
}

struct sz_rel *sz_model_add_rel(struct sz_model *m, struct sz_type *t, struct sz_slice name)
{
    t->rels = grow(m, t->rels, t->n_rels, sizeof(*t->rels));
    struct sz_rel *r = &t->rels[t->n_rels++];
    r->name = name;
    return r;
}

struct sz_ref *sz_model_add_ref(struct sz_model *m, struct sz_rel *r)
{
    r->refs = grow(m, r->refs, r->n_refs, sizeof(*r->refs));
    return &r->refs[r->n_refs++];
}

struct sz_cond *sz_model_add_cond(struct sz_model *m, struct sz_slice name)
{
    m->conds = grow(m, m->conds, m->n_conds, sizeof(*m->conds));
    struct sz_cond *c = &m->conds[m->n_conds++];
    c->key = c->name = name;
    return c;
}

struct sz_param *sz_model_add_param(struct sz_model *m, struct sz_cond *c, struct sz_slice name)
{
    c->params = grow(m, c->params, c->n_params, sizeof(*c->params));
    struct sz_param *p = &c->params[c->n_params++];
    p->name = name;
    return p;
}

struct sz_rw *sz_model_rw(struct sz_model *m, enum sz_rw_op op)
{
    struct sz_rw *rw = sz_pool_zalloc(&m->arena.pool, sizeof(*rw));
    rw->op = op;
    return rw;
}

void sz_model_rw_add(struct sz_model *m, struct sz_rw *parent, struct sz_rw *child)
{
    parent->child = grow(m, parent->child, parent->n, sizeof(struct sz_rw *));
    parent->child[parent->n++] = child;
}

struct sz_type *sz_model_type(const struct sz_model *m, struct sz_slice name)
{
    for (size_t i = m->n_types; i-- > 0;) /* the last of a duplicate counts, as in the ecosystem's tools */
        if (sz_eq(m->types[i].name, name))
            return &m->types[i];
    return NULL;
}

struct sz_rel *sz_type_rel(const struct sz_type *t, struct sz_slice name)
{
    for (size_t i = 0; i < t->n_rels; i++)
        if (sz_eq(t->rels[i].name, name))
            return &t->rels[i];
    return NULL;
}

struct sz_cond *sz_model_cond(const struct sz_model *m, struct sz_slice name)
{
    for (size_t i = 0; i < m->n_conds; i++)
        if (sz_eq(m->conds[i].key, name))
            return &m->conds[i];
    return NULL;
}

static bool rewrite_within(const struct sz_rw *rw, unsigned depth)
{
    if (rw == NULL)
        return true;
    if (rw->n > SZ_MODEL_LIST_MAX || depth > SZ_MODEL_NEST)
        return false;
    for (size_t i = 0; i < rw->n; i++)
        if (!rewrite_within(rw->child[i], depth + 1))
            return false;
    return true;
}

bool sz_model_within_bounds(const struct sz_model *m, struct sz_problems *problems)
{
    size_t relations = 0;
    bool lists = m->n_conds <= SZ_MODEL_LIST_MAX;
    for (size_t i = 0; i < m->n_types; i++)
        relations += m->types[i].n_rels;
    if (m->n_types > SZ_MODEL_TYPES_MAX || relations > SZ_MODEL_RELATIONS_MAX) {
        sz_problems_add(problems, "limit", "a model may have at most %d types and %d relations", SZ_MODEL_TYPES_MAX,
                        SZ_MODEL_RELATIONS_MAX);
        return false;
    }
    for (size_t i = 0; i < m->n_types; i++)
        for (size_t k = 0; k < m->types[i].n_rels; k++)
            lists &= m->types[i].rels[k].n_refs <= SZ_MODEL_LIST_MAX && rewrite_within(m->types[i].rels[k].rw, 0);
    for (size_t i = 0; i < m->n_conds; i++)
        lists &= m->conds[i].n_params <= SZ_MODEL_LIST_MAX;
    if (!lists)
        sz_problems_add(problems, "limit",
                        "a relation, an operator, a condition or the list of conditions has more than %d entries, or "
                        "operators are nested more than %d deep",
                        SZ_MODEL_LIST_MAX, SZ_MODEL_NEST);
    return lists;
}

static const char *const words[] = {
    [SZ_P_NONE] = "unspecified", [SZ_P_ANY] = "any",           [SZ_P_BOOL] = "bool",
    [SZ_P_STRING] = "string",    [SZ_P_INT] = "int",           [SZ_P_UINT] = "uint",
    [SZ_P_DOUBLE] = "double",    [SZ_P_DURATION] = "duration", [SZ_P_TIMESTAMP] = "timestamp",
    [SZ_P_MAP] = "map",          [SZ_P_LIST] = "list",         [SZ_P_IPADDRESS] = "ipaddress",
};

enum sz_ptype sz_ptype_parse(struct sz_slice word)
{
    for (size_t i = SZ_P_ANY; i < SZ_COUNT(words); i++)
        if (sz_eq(word, sz_cstr(words[i])))
            return (enum sz_ptype)i;
    return SZ_P_NONE;
}

const char *sz_ptype_word(enum sz_ptype t)
{
    return words[t];
}
