/*
 * The language's validation.  The order of the checks, and which of them a found problem silences, is
 * part of what a user sees, so it follows the ecosystem's validators: names first, then references, then
 * duplicates, then entry points; each group only when the groups before found nothing.
 */
#include "fga/engine/lint.h"

struct file_modules { /* modules met in one file, in order */
    struct sz_slice file, modules[16];
    size_t n;
};

struct lint {
    const struct sz_model *m;
    struct sz_problems *problems;
    const struct sz_lines *lines; /* NULL: no text */
    size_t before;
    struct sz_arena scratch;
    struct file_modules *files;
    size_t n_files;
};

/* Where a problem is: the relation's own module when it was added by another file, else the type's. */
struct where {
    const struct sz_type *type;
    const struct sz_rel *rel;
};

static struct sz_problem *raise(struct lint *l, const struct where *w, const char *kind, struct sz_slice symbol,
                                size_t line, struct sz_slice message)
{
    struct sz_problem *p = sz_problems_add(l->problems, kind, "%.*s", SZ_FMT(message));
    if (p == NULL)
        return NULL;
    struct sz_pool *pool = &l->problems->arena.pool;
    p->symbol = sz_pool_dup(pool, symbol);
    if (w != NULL && w->type != NULL) {
        bool own = w->rel != NULL && w->rel->file.p != NULL;
        p->file = own ? w->rel->file : w->type->file;
        p->module = w->rel != NULL && w->rel->module.p != NULL ? w->rel->module : w->type->module;
        p->type = sz_pool_dup(pool, w->type->name);
        p->relation = w->rel != NULL ? sz_pool_dup(pool, w->rel->name) : SZ_NONE;
        p->file = p->file.p != NULL ? sz_pool_dup(pool, p->file) : SZ_NONE;
        p->module = p->module.p != NULL ? sz_pool_dup(pool, p->module) : SZ_NONE;
    }
    sz_lint_place(p, l->lines, line);
    return p;
}

#define SAY(l, ...) sz_pool_printf(&(l)->scratch.pool, __VA_ARGS__)

static size_t type_line(const struct lint *l, struct sz_slice type)
{
    return l->lines == NULL ? SZ_NO_LINE : sz_lines_type(l->lines, type, 0, false);
}

static size_t rel_line(const struct lint *l, const struct where *w)
{
    return l->lines == NULL ? SZ_NO_LINE : sz_lines_relation(l->lines, w->rel->name, type_line(l, w->type->name));
}

static bool clean(const struct lint *l)
{
    return l->problems->n == l->before;
}

static void note_module(struct lint *l, struct sz_slice file, struct sz_slice module)
{
    if (file.n == 0 || module.n == 0)
        return;
    struct file_modules *f = NULL;
    for (size_t i = 0; i < l->n_files && f == NULL; i++)
        if (sz_eq(l->files[i].file, file))
            f = &l->files[i];
    if (f == NULL) {
        struct file_modules *more = sz_pool_zalloc(&l->scratch.pool, (l->n_files + 1) * sizeof(*more));
        if (l->n_files > 0)
            memcpy(more, l->files, l->n_files * sizeof(*more));
        l->files = more;
        f = &more[l->n_files++];
        f->file = file;
    }
    for (size_t i = 0; i < f->n; i++)
        if (sz_eq(f->modules[i], module))
            return;
    if (f->n < SZ_COUNT(f->modules))
        f->modules[f->n++] = module;
}

/* ---- names ---- */

static bool reserved(struct sz_slice name)
{
    return sz_eq(name, SZ_S("self")) || sz_eq(name, SZ_S("this"));
}

static bool name_ok(struct sz_slice name, size_t max)
{
    for (size_t i = 0; i < name.n; i++)
        if (strchr(":#@* \t\r\n\f\v", name.p[i]) != NULL)
            return false;
    return name.n >= 1 && name.n <= max;
}

static void check_relation_name(struct lint *l, const struct sz_type *t, const struct sz_rel *r)
{
    struct where w = {t, r};
    if (reserved(r->name))
        raise(l, &w, "reserved-relation-keywords", r->name, rel_line(l, &w),
              SZ_S("a relation cannot be named 'self' or 'this'."));
    if (!name_ok(r->name, 50))
        raise(l, &w, "invalid-name", r->name, rel_line(l, &w),
              SAY(l, "relation '%.*s' of type '%.*s' does not match naming rule: '^[^:#@\\*\\s]{1,50}$'.",
                  SZ_FMT(r->name), SZ_FMT(t->name)));
}

static void check_names(struct lint *l)
{
    for (size_t i = 0; i < l->m->n_types; i++) {
        const struct sz_type *t = &l->m->types[i];
        struct where w = {t, NULL};
        note_module(l, t->file, t->module);
        if (reserved(t->name))
            raise(l, &w, "reserved-type-keywords", t->name, type_line(l, t->name),
                  SZ_S("a type cannot be named 'self' or 'this'."));
        if (!name_ok(t->name, 254))
            raise(l, &w, "invalid-name", t->name, type_line(l, t->name),
                  SAY(l, "type '%.*s' does not match naming rule: '^[^:#@\\*\\s]{1,254}$'.", SZ_FMT(t->name)));
        for (size_t k = 0; k < t->n_rels; k++)
            check_relation_name(l, t, &t->rels[k]);
    }
}

/* ---- references ---- */

static struct sz_slice ref_text(struct lint *l, const struct sz_ref *ref)
{
    return SAY(l, "%.*s%s%s%.*s%s%.*s", SZ_FMT(ref->type), ref->wildcard ? ":*" : "",
               !ref->wildcard && ref->relation.p != NULL ? "#" : "", SZ_FMT(ref->wildcard ? SZ_S("") : ref->relation),
               ref->condition.p != NULL ? " with " : "", SZ_FMT(ref->condition));
}

static void check_ref(struct lint *l, const struct where *w, const struct sz_ref *ref)
{
    const struct sz_type *t = sz_model_type(l->m, ref->type);
    if (t == NULL)
        raise(l, w, "invalid-type", ref->type, rel_line(l, w),
              SAY(l, "`%.*s` is not a valid type.", SZ_FMT(ref->type)));
    if (ref->condition.p != NULL && sz_model_cond(l->m, ref->condition) == NULL)
        raise(l, w, "condition-not-defined", ref->condition, rel_line(l, w),
              SAY(l, "`%.*s` is not a defined condition in the model.", SZ_FMT(ref->condition)));
    if (ref->relation.p == NULL)
        return;
    if (ref->wildcard) {
        struct sz_slice both = SAY(l, "%.*s:*#%.*s", SZ_FMT(ref->type), SZ_FMT(ref->relation));
        raise(l, w, "type-wildcard-relation", both, rel_line(l, w),
              SAY(l, "type restriction `%.*s` cannot contain both wildcard and relation", SZ_FMT(both)));
    } else if (t == NULL || sz_type_rel(t, ref->relation) == NULL) {
        struct sz_problem *p =
            raise(l, w, "invalid-relation-type", SAY(l, "%.*s#%.*s", SZ_FMT(ref->type), SZ_FMT(ref->relation)),
                  rel_line(l, w),
                  SAY(l, "`%.*s` is not a valid relation for `%.*s`.", SZ_FMT(ref->relation), SZ_FMT(ref->type)));
        if (p != NULL)
            p->offending_type = sz_pool_dup(&l->problems->arena.pool, w->type->name);
    }
}

static void check_direct(struct lint *l, const struct where *w)
{
    if (w->rel->n_refs == 0)
        raise(l, w, "assignable-relation-must-have-type", SZ_S(""), SZ_NO_LINE,
              SZ_S("assignable relation '' must have types"));
    for (size_t i = 0; i < w->rel->n_refs; i++)
        check_ref(l, w, &w->rel->refs[i]);
}

static void not_direct(struct lint *l, const struct where *w, struct sz_slice tupleset)
{
    raise(l, w, "tupleuserset-not-direct", tupleset, rel_line(l, w),
          SAY(l, "`%.*s` relation used inside from allows only direct relation.", SZ_FMT(tupleset)));
}

static void check_ttu(struct lint *l, const struct where *w, const struct sz_rw *rw)
{
    struct sz_slice symbol = SAY(l, "%.*s from %.*s", SZ_FMT(rw->relation), SZ_FMT(rw->tupleset));
    const struct sz_rel *tupleset = sz_type_rel(w->type, rw->tupleset);
    if (tupleset == NULL) {
        struct sz_problem *p =
            raise(l, w, "invalid-relation-type", symbol, rel_line(l, w),
                  SAY(l, "`%.*s` is not a valid relation for `%.*s`.", SZ_FMT(rw->tupleset), SZ_FMT(w->type->name)));
        if (p != NULL)
            p->offending_type = sz_pool_dup(&l->problems->arena.pool, w->type->name);
        return;
    }
    if (tupleset->rw == NULL || tupleset->rw->op != SZ_RW_THIS || tupleset->n_refs == 0) {
        not_direct(l, w, rw->tupleset);
        return;
    }
    size_t missing = 0;
    for (size_t i = 0; i < tupleset->n_refs; i++) {
        const struct sz_ref *ref = &tupleset->refs[i];
        const struct sz_type *parent = sz_model_type(l->m, ref->type);
        if (ref->wildcard || ref->relation.p != NULL)
            not_direct(l, w, rw->tupleset);
        else
            missing += parent == NULL || sz_type_rel(parent, rw->relation) == NULL;
    }
    if (missing < tupleset->n_refs) /* one parent type that has it is enough */
        return;
    for (size_t i = 0; i < tupleset->n_refs; i++)
        raise(l, w, "invalid-relation-on-tupleset", symbol, rel_line(l, w),
              SAY(l,
                  "the `%.*s` relation definition on type `%.*s` is not valid: `%.*s` does not exist on `%.*s`, which "
                  "is of type `%.*s`.",
                  SZ_FMT(rw->relation), SZ_FMT(w->type->name), SZ_FMT(rw->relation), SZ_FMT(rw->tupleset),
                  SZ_FMT(tupleset->refs[i].type)));
}

static void check_leaf(struct lint *l, const struct where *w, const struct sz_rw *rw)
{
    if (rw->op == SZ_RW_THIS)
        check_direct(l, w);
    else if (rw->op == SZ_RW_TTU)
        check_ttu(l, w, rw);
    else if (rw->op == SZ_RW_COMPUTED && sz_type_rel(w->type, rw->relation) == NULL)
        raise(l, w, "missing-definition", rw->relation, rel_line(l, w),
              SAY(l, "the relation `%.*s` does not exist.", SZ_FMT(rw->relation)));
}

/* Breadth first: the order in which the ecosystem's tools list what they find. */
static void check_rewrite(struct lint *l, const struct where *w)
{
    size_t cap = 64, head = 0, tail = 0;
    const struct sz_rw **queue = sz_pool_alloc(&l->scratch.pool, cap * sizeof(*queue));
    if (w->rel->rw != NULL)
        queue[tail++] = w->rel->rw;
    while (head < tail) {
        const struct sz_rw *rw = queue[head++];
        if (rw->n == 0)
            check_leaf(l, w, rw);
        if (tail + rw->n > cap) {
            const struct sz_rw **more = sz_pool_alloc(&l->scratch.pool, (cap * 2 + rw->n) * sizeof(*more));
            memcpy(more, queue, tail * sizeof(*more));
            queue = more;
            cap = cap * 2 + rw->n;
        }
        for (size_t i = 0; i < rw->n; i++)
            queue[tail++] = rw->child[i];
    }
}

static void check_references(struct lint *l)
{
    for (size_t i = 0; i < l->m->n_types; i++) {
        const struct sz_type *t = sz_model_type(l->m, l->m->types[i].name);
        for (size_t k = 0; k < t->n_rels; k++)
            check_rewrite(l, &(struct where){t, &t->rels[k]});
    }
}

/* ---- duplicates ---- */

static struct sz_slice operand_text(struct lint *l, const struct sz_rw *rw)
{
    if (rw->op == SZ_RW_COMPUTED)
        return rw->relation;
    return rw->op == SZ_RW_TTU ? SAY(l, "%.*s from %.*s", SZ_FMT(rw->relation), SZ_FMT(rw->tupleset)) : SZ_NONE;
}

static bool same_ref(const struct sz_ref *a, const struct sz_ref *b)
{
    return sz_eq(a->type, b->type) && a->wildcard == b->wildcard && sz_eq(a->relation, b->relation) &&
           sz_eq(a->condition, b->condition);
}

static bool same_operand(const struct sz_rw *a, const struct sz_rw *b)
{
    return a->op == b->op && (a->op == SZ_RW_COMPUTED || a->op == SZ_RW_TTU) && sz_eq(a->relation, b->relation) &&
           sz_eq(a->tupleset, b->tupleset);
}

static void check_duplicates_in(struct lint *l, const struct where *w)
{
    for (size_t i = 0; i < w->rel->n_refs; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_ref(&w->rel->refs[i], &w->rel->refs[k]);
        if (!seen)
            continue;
        struct sz_slice name = ref_text(l, &w->rel->refs[i]);
        size_t line = l->lines == NULL ? SZ_NO_LINE
                                       : sz_lines_relation(l->lines, w->rel->name, type_line(l, w->rel->refs[i].type));
        raise(l, w, "duplicated-error", name, line,
              SAY(l, "the type restriction `%.*s` is a duplicate in the relation `%.*s`.", SZ_FMT(name),
                  SZ_FMT(w->rel->name)));
    }
    const struct sz_rw *rw = w->rel->rw;
    for (size_t i = 0; rw != NULL && i < rw->n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = same_operand(rw->child[i], rw->child[k]);
        struct sz_slice name = seen ? operand_text(l, rw->child[i]) : SZ_NONE;
        if (seen)
            raise(l, w, "duplicated-error", name, rel_line(l, w),
                  SAY(l, "the partial relation definition `%.*s` is a duplicate in the relation `%.*s`.", SZ_FMT(name),
                      SZ_FMT(w->rel->name)));
    }
}

static void check_duplicates(struct lint *l)
{
    for (size_t i = 0; i < l->m->n_types; i++) {
        const struct sz_type *t = &l->m->types[i];
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = sz_eq(t->name, l->m->types[k].name);
        if (seen)
            raise(l, &(struct where){t, NULL}, "duplicated-error", t->name, type_line(l, t->name),
                  SAY(l, "the type `%.*s` is a duplicate.", SZ_FMT(t->name)));
        for (size_t k = 0; k < t->n_rels; k++)
            check_duplicates_in(l, &(struct where){t, &t->rels[k]});
    }
}

/* ---- entry points, conditions, modules ---- */

static void check_entries(struct lint *l)
{
    const struct sz_entry *entry = sz_model_entries(l->m, &l->scratch.pool);
    for (size_t i = 0; i < l->m->n_types; i++) {
        const struct sz_type *t = &l->m->types[i];
        for (size_t k = 0; k < t->n_rels; k++, entry++) {
            struct where w = {t, &t->rels[k]};
            note_module(l, w.rel->file.p != NULL ? w.rel->file : t->file,
                        w.rel->module.p != NULL ? w.rel->module : t->module);
            if (!entry->reachable)
                raise(l, &w, "relation-no-entry-point", w.rel->name, rel_line(l, &w),
                      SAY(l, "`%.*s` is an impossible relation for `%.*s` (%s).", SZ_FMT(w.rel->name), SZ_FMT(t->name),
                          entry->loop ? "potential loop" : "no entrypoint"));
        }
    }
}

static bool condition_used(const struct sz_model *m, struct sz_slice name)
{
    for (size_t i = 0; i < m->n_types; i++)
        for (size_t k = 0; k < m->types[i].n_rels; k++)
            for (size_t j = 0; j < m->types[i].rels[k].n_refs; j++)
                if (sz_eq(m->types[i].rels[k].refs[j].condition, name))
                    return true;
    return false;
}

static void check_conditions(struct lint *l)
{
    for (size_t i = 0; i < l->m->n_conds; i++) {
        const struct sz_cond *c = &l->m->conds[i];
        note_module(l, c->file, c->module);
        if (!sz_eq(c->key, c->name))
            raise(l, NULL, "different-nested-condition-name", c->name, SZ_NO_LINE,
                  SAY(l, "condition key is `%.*s` but nested name property is %.*s", SZ_FMT(c->key), SZ_FMT(c->name)));
        if (condition_used(l->m, c->key))
            continue;
        struct sz_type from = {.file = c->file, .module = c->module};
        raise(l, &(struct where){&from, NULL}, "condition-not-used", c->key,
              l->lines == NULL ? SZ_NO_LINE : sz_lines_condition(l->lines, c->key),
              SAY(l, "`%.*s` condition is not used in the model.", SZ_FMT(c->key)));
    }
}

static void check_modules(struct lint *l)
{
    for (size_t i = 0; i < l->n_files; i++) {
        const struct file_modules *f = &l->files[i];
        struct sz_buf list = {0};
        for (size_t k = 0; k < f->n; k++)
            sz_buf_printf(&list, "%s%.*s", k == 0 ? "" : ", ", SZ_FMT(f->modules[k]));
        if (f->n > 1)
            raise(l, NULL, "multiple-modules-in-file", f->file, SZ_NO_LINE,
                  SAY(l,
                      "file %.*s would contain multiple module definitions (%.*s) when transforming to DSL. Only one "
                      "module can be defined per file.",
                      SZ_FMT(f->file), SZ_FMT(sz_buf_slice(&list))));
        sz_buf_fini(&list);
    }
}

static void check_meaning(struct lint *l)
{
    if (!clean(l))
        return;
    check_references(l);
    if (clean(l))
        check_duplicates(l);
    if (clean(l))
        check_entries(l);
    check_conditions(l);
}

size_t sz_model_lint(const struct sz_model *m, struct sz_slice text, struct sz_problems *problems)
{
    struct lint l = {.m = m, .problems = problems, .before = problems->n};
    struct sz_lines lines;
    sz_arena_init(&l.scratch);
    if (text.p != NULL) {
        sz_lines_init(&lines, text, &l.scratch.pool);
        l.lines = &lines;
    }
    check_names(&l);
    if (m->schema.n == 0)
        raise(&l, NULL, "schema-version-required", SZ_S(""), 0, SZ_S("schema version required"));
    else if (sz_eq(m->schema, SZ_S("1.1")) || sz_eq(m->schema, SZ_S("1.2")))
        check_meaning(&l);
    else
        raise(&l, NULL, "invalid-schema", m->schema, l.lines == NULL ? 0 : sz_lines_schema(&lines, m->schema),
              SAY(&l, "invalid schema %.*s", SZ_FMT(m->schema)));
    check_modules(&l);
    sz_arena_fini(&l.scratch);
    return problems->n - l.before;
}
