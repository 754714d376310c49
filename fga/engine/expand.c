/*
 * Expand: one level of a relation as the API's tree.  Nothing is evaluated, conditions neither.
 */
#include <errno.h>
#include <jansson.h>

#include "fga/engine/engine_impl.h"
#include "fga/engine/validate.h"

struct expander {
    struct sz_ask *a;
    struct sz_slice object;
    uint32_t node;
    const struct sz_crel *rel;
};

static struct sz_slice name_of(const struct expander *x, uint16_t relation)
{
    return x->a->p->relation_names[relation];
}

static json_t *joined(struct sz_slice object, struct sz_slice relation)
{
    struct sz_buf b = {0};
    sz_buf_printf(&b, "%.*s#%.*s", SZ_FMT(object), SZ_FMT(relation));
    json_t *v = json_stringn(b.p, b.n);
    sz_buf_fini(&b);
    return v;
}

static json_t *named(const struct expander *x, const char *kind, json_t *content)
{
    return json_pack("{s:o, s:o}", "name", joined(x->object, name_of(x, x->rel->relation)), kind, content);
}

/* Has the model this tuple's form and, if any, condition? */
static bool admitted(const struct sz_ask *a, const struct sz_direct *d, const struct sz_tupleiter *it)
{
    const struct sz_cinst *c = it->cond != NULL   ? it->cond
                               : it->cond_id != 0 ? sz_cinst(a->view.store, it->cond_id)
                                                  : NULL;
    if (c == NULL)
        return d->bare;
    for (uint16_t i = 0; i < d->n_conds; i++)
        if (d->conds[i] == c->name)
            return true;
    return false;
}

static json_t *direct(const struct expander *x)
{
    json_t *users = json_array();
    const struct sz_block *b = sz_ask_block(x->a, x->node);
    for (uint16_t i = 0; i < x->rel->n_direct; i++) {
        const struct sz_direct *d = &x->rel->direct[i];
        struct sz_tupleiter it;
        sz_tuples_begin(&it, b, x->node, x->rel->relation, d->form);
        while (sz_tuples_next(x->a, &it)) {
            struct sz_slice name = sz_ask_name(x->a, it.subject);
            if (admitted(x->a, d, &it))
                json_array_append_new(users, d->target == SZ_NO_REL ? json_stringn(name.p, name.n)
                                                                    : joined(name, name_of(x, d->relation)));
        }
    }
    return json_pack("{s:{s:o}}", "users", "users", users);
}

static json_t *ttu(const struct expander *x, const struct sz_cex *e)
{
    json_t *computed = json_array();
    const struct sz_crel *tupleset = &x->a->p->rels[e->tupleset];
    const struct sz_block *b = sz_ask_block(x->a, x->node);
    for (uint16_t i = 0; i < tupleset->n_direct; i++) {
        struct sz_tupleiter it;
        sz_tuples_begin(&it, b, x->node, tupleset->relation, tupleset->direct[i].form);
        while (sz_tuples_next(x->a, &it))
            if (admitted(x->a, &tupleset->direct[i], &it))
                json_array_append_new(
                    computed,
                    json_pack("{s:o}", "userset", joined(sz_ask_name(x->a, it.subject), name_of(x, e->relation))));
    }
    return json_pack("{s:{s:o, s:o}}", "tupleToUserset", "tupleset", joined(x->object, name_of(x, tupleset->relation)),
                     "computed", computed);
}

static json_t *node(const struct expander *x, const struct sz_cex *e)
{
    json_t *list;
    switch (e->op) {
    case SZ_C_DIRECT:
        return named(x, "leaf", direct(x));
    case SZ_C_COMPUTED:
        return named(x, "leaf",
                     json_pack("{s:{s:o}}", "computed", "userset",
                               joined(x->object, name_of(x, x->a->p->rels[e->target].relation))));
    case SZ_C_TTU:
        return named(x, "leaf", ttu(x, e));
    case SZ_C_DIFFERENCE:
        return named(x, "difference",
                     json_pack("{s:o, s:o}", "base", node(x, e->child[0]), "subtract", node(x, e->child[1])));
    case SZ_C_UNION:
    case SZ_C_INTERSECTION:
        list = json_array();
        for (uint16_t i = 0; i < e->n; i++)
            json_array_append_new(list, node(x, e->child[i]));
        return named(x, e->op == SZ_C_UNION ? "union" : "intersection", json_pack("{s:o}", "nodes", list));
    }
    return json_null();
}

static int resolve(struct expander *x, struct sz_slice relation)
{
    struct sz_slice type_name;
    struct sz_ask *a = x->a;
    if (!sz_object_valid(x->object, &type_name) || !sz_relation_valid(relation))
        return sz_ask_fail(a, 2000, "invalid 'object' or 'relation' field format");
    uint16_t type = sz_program_type(a->p, type_name);
    if (type == 0)
        return sz_ask_fail(a, 2021, "type '%.*s' not found", SZ_FMT(type_name));
    uint16_t rel = sz_program_rel(a->p, type, relation);
    if (rel == SZ_NO_REL)
        return sz_ask_fail(a, 2022, "relation '%.*s#%.*s' not found", SZ_FMT(type_name), SZ_FMT(relation));
    x->rel = &a->p->rels[rel];
    x->node = sz_ask_node(a, x->object, type, false);
    return 0;
}

int sz_engine_expand(struct sz_engine *e, const struct sz_program *p, struct sz_slice object, struct sz_slice relation,
                     const struct sz_list_options *o, void **tree, struct sz_fault *fault)
{
    struct sz_ask a;
    struct expander x = {.a = &a, .object = object};
    sz_ask_begin(&a, e, p, UINT64_MAX, fault);
    a.condition_fault = 2000;
    int err = sz_ask_context(&a, o->context, o->contextual, o->contextual_n);
    if (err == 0)
        err = resolve(&x, relation);
    if (err == 0)
        *tree = json_pack("{s:{s:o}}", "tree", "root", node(&x, x.rel->root));
    sz_ask_end(&a);
    return err;
}
