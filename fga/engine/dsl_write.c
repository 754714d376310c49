/*
 * Model -> .fga text, laid out as the ecosystem's own formatter does.  What the language cannot say (a direct part that
 * is not first, or two of them) is refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/engine/model.h"

struct writer {
    struct sz_buf *out;
    struct sz_text *why;
    const struct sz_rel *rel;
    bool modular, sources;
    unsigned direct; /* direct parts met in this relation */
};

static void put(struct writer *w, struct sz_slice s)
{
    sz_buf_adds(w->out, s);
}

static void put_refs(struct writer *w)
{
    put(w, SZ_S("["));
    for (size_t i = 0; i < w->rel->n_refs; i++) {
        const struct sz_ref *ref = &w->rel->refs[i];
        sz_buf_printf(w->out, "%s%.*s%s", i == 0 ? "" : ", ", SZ_FMT(ref->type), ref->wildcard ? ":*" : "");
        if (ref->relation.p != NULL)
            sz_buf_printf(w->out, "#%.*s", SZ_FMT(ref->relation));
        if (ref->condition.p != NULL)
            sz_buf_printf(w->out, " with %.*s", SZ_FMT(ref->condition));
    }
    put(w, SZ_S("]"));
}

/* The operands in the order of writing: the direct part of `or` and `and` comes first. */
static size_t written_order(const struct sz_rw *rw, size_t i)
{
    size_t direct = 0;
    while (direct < rw->n && rw->child[direct]->op != SZ_RW_THIS)
        direct++;
    if (rw->op == SZ_RW_DIFFERENCE || direct >= rw->n)
        return i;
    return i == 0 ? direct : i <= direct ? i - 1 : i;
}

static void put_operand(struct writer *w, const struct sz_rw *rw);

static void put_operator(struct writer *w, const struct sz_rw *rw)
{
    const char *word = rw->op == SZ_RW_UNION ? " or " : rw->op == SZ_RW_INTERSECTION ? " and " : " but not ";
    for (size_t i = 0; i < rw->n; i++) {
        if (i > 0)
            put(w, sz_cstr(word));
        put_operand(w, rw->child[written_order(rw, i)]);
    }
}

static void put_operand(struct writer *w, const struct sz_rw *rw)
{
    switch (rw->op) {
    case SZ_RW_THIS:
        w->direct++;
        put_refs(w);
        return;
    case SZ_RW_COMPUTED:
        put(w, rw->relation);
        return;
    case SZ_RW_TTU:
        sz_buf_printf(w->out, "%.*s from %.*s", SZ_FMT(rw->relation), SZ_FMT(rw->tupleset));
        return;
    case SZ_RW_UNION:
    case SZ_RW_INTERSECTION:
    case SZ_RW_DIFFERENCE:
        put(w, SZ_S("("));
        put_operator(w, rw);
        put(w, SZ_S(")"));
        return;
    }
}

/* Once written, the direct part is the first thing in the relation. */
static bool direct_first(const struct sz_rw *rw)
{
    while (rw->n > 0)
        rw = rw->child[written_order(rw, 0)];
    return rw->op == SZ_RW_THIS;
}

static void put_source(struct writer *w, const char *lead, struct sz_slice module, struct sz_slice file)
{
    if (w->sources && module.p != NULL)
        sz_buf_printf(w->out, " #%s module: %.*s, file: %.*s", lead, SZ_FMT(module), SZ_FMT(file));
}

static int put_relation(struct writer *w, const struct sz_type *t, const struct sz_rel *r)
{
    w->rel = r;
    w->direct = 0;
    sz_buf_printf(w->out, "\n    define %.*s: ", SZ_FMT(r->name));
    if (r->rw != NULL && r->rw->n > 0)
        put_operator(w, r->rw);
    else if (r->rw != NULL)
        put_operand(w, r->rw);
    put_source(w, " extended by:", r->module, r->file);
    if (r->rw != NULL && (w->direct == 0 || (w->direct == 1 && direct_first(r->rw))))
        return 0;
    sz_text_set(w->why,
                "the '%.*s' relation definition under the '%.*s' type is not supported by the OpenFGA DSL syntax yet",
                SZ_FMT(r->name), SZ_FMT(t->name));
    return -EINVAL;
}

/* ---- order: as written, or by module, file and name ---- */

struct item {
    struct sz_slice name, module, file;
    const void *what;
    size_t at;
};

static int by_name(struct sz_slice a, struct sz_slice b)
{
    int c = 0;
    for (size_t i = 0; c == 0 && i < a.n && i < b.n; i++) { /* letters before their case, as collation has it */
        char x = a.p[i], y = b.p[i];
        c = (x | 0x20) != (y | 0x20) ? (unsigned char)(x | 0x20) - (unsigned char)(y | 0x20) : 0;
    }
    if (c == 0)
        c = (a.n > b.n) - (a.n < b.n);
    return c != 0 ? c : -sz_cmp(a, b);
}

static int by_module(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    int c;
    if ((x->module.p == NULL) != (y->module.p == NULL))
        return x->module.p == NULL ? -1 : 1;
    c = x->module.p == NULL ? 0 : by_name(x->module, y->module);
    if (c == 0 && x->module.p != NULL)
        c = by_name(x->file, y->file);
    if (c == 0)
        c = by_name(x->name, y->name);
    return c != 0 ? c : (x->at > y->at) - (x->at < y->at);
}

static int by_condition(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return by_name(x->name, y->name);
}

static int put_type(struct writer *w, const struct sz_type *t)
{
    int err = 0;
    sz_buf_printf(w->out, "\ntype %.*s", SZ_FMT(t->name));
    put_source(w, "", t->module, t->file);
    struct item *items = sz_xcalloc(t->n_rels + 1, sizeof(*items));
    for (size_t i = 0; i < t->n_rels; i++)
        items[i] = (struct item){t->rels[i].name, t->rels[i].module, t->rels[i].file, &t->rels[i], i};
    if (w->modular)
        qsort(items, t->n_rels, sizeof(*items), by_module);
    if (t->n_rels > 0)
        put(w, SZ_S("\n  relations"));
    for (size_t i = 0; err == 0 && i < t->n_rels; i++)
        err = put_relation(w, t, items[i].what);
    free(items);
    put(w, SZ_S("\n"));
    return err;
}

static int by_param(const void *a, const void *b)
{
    const struct sz_param *x = *(const struct sz_param *const *)a, *y = *(const struct sz_param *const *)b;
    return sz_cmp(x->name, y->name);
}

static int put_condition(struct writer *w, const struct sz_cond *c)
{
    if (!sz_eq(c->key, c->name)) {
        sz_text_set(w->why, "the '%.*s' condition has a different nested condition name ('%.*s')", SZ_FMT(c->key),
                    SZ_FMT(c->name));
        return -EINVAL;
    }
    sz_buf_printf(w->out, "\ncondition %.*s(", SZ_FMT(c->name));
    const struct sz_param **params = sz_xcalloc(c->n_params + 1, sizeof(const struct sz_param *));
    for (size_t i = 0; i < c->n_params; i++)
        params[i] = &c->params[i];
    qsort(params, c->n_params, sizeof(*params), by_param);
    for (size_t i = 0; i < c->n_params; i++) {
        const struct sz_param *p = params[i];
        sz_buf_printf(w->out, "%s%.*s: %s", i == 0 ? "" : ", ", SZ_FMT(p->name), sz_ptype_word(p->type));
        if (p->element != SZ_P_NONE)
            sz_buf_printf(w->out, "<%s>", sz_ptype_word(p->element));
    }
    free(params);
    sz_buf_printf(w->out, ") {\n  %.*s\n}", SZ_FMT(c->expression));
    put_source(w, "", c->module, c->file);
    put(w, SZ_S("\n"));
    return 0;
}

static bool is_modular(const struct sz_model *m)
{
    for (size_t i = 0; i < m->n_types; i++)
        if (m->types[i].module.p != NULL)
            return true;
    return false;
}

int sz_dsl_write(const struct sz_model *m, bool sources, struct sz_buf *out, struct sz_text *why)
{
    struct writer w = {.out = out, .why = why, .modular = is_modular(m), .sources = sources};
    struct item *types = sz_xcalloc(m->n_types + 1, sizeof(*types)),
                *conds = sz_xcalloc(m->n_conds + 1, sizeof(*conds));
    int err = 0;
    for (size_t i = 0; i < m->n_types; i++)
        types[i] = (struct item){m->types[i].name, m->types[i].module, m->types[i].file, &m->types[i], i};
    for (size_t i = 0; i < m->n_conds; i++)
        conds[i] = (struct item){m->conds[i].key, m->conds[i].module, m->conds[i].file, &m->conds[i], i};
    if (w.modular)
        qsort(types, m->n_types, sizeof(*types), by_module);
    qsort(conds, m->n_conds, sizeof(*conds), w.modular ? by_module : by_condition);
    sz_buf_printf(out, "model\n  schema %.*s\n", SZ_FMT(m->schema.n > 0 ? m->schema : SZ_S("1.1")));
    for (size_t i = 0; err == 0 && i < m->n_types; i++)
        err = put_type(&w, types[i].what);
    for (size_t i = 0; err == 0 && i < m->n_conds; i++)
        err = put_condition(&w, conds[i].what);
    free(types);
    free(conds);
    return err;
}
