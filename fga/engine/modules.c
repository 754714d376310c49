/*
 * fga.mod and its modules: each file is parsed alone, then all types and conditions are put together and `extend type`
 * adds relations to the type of another file.  Problems of the whole are looked up in the file that they came from.
 */
#include <errno.h>
#include <yaml.h>

#include "fga/engine/lint.h"

/* ---- fga.mod ---- */

struct mod {
    yaml_document_t doc;
    struct sz_problems *problems;
    struct sz_pool *pool;
};

static void problem_at(struct mod *m, const yaml_node_t *node, struct sz_slice message)
{
    struct sz_problem *p = sz_problems_add(m->problems, "module", "%.*s", SZ_FMT(message));
    if (node == NULL)
        sz_problem_place(p, 0, 0, 0);
    else
        sz_problem_place(p, node->start_mark.line, node->start_mark.column, node->end_mark.column);
}

static struct sz_slice scalar(const yaml_node_t *n)
{
    return n->type == YAML_SCALAR_NODE ? sz_slice(n->data.scalar.value, n->data.scalar.length) : SZ_S("");
}

/* Text that YAML's core schema reads as text: quoted, or neither a number, a boolean nor null. */
static bool is_text(const yaml_node_t *n)
{
    static const char *const others[] = {"",     "~",    "null",  "Null",  "NULL", "true",
                                         "True", "TRUE", "false", "False", "FALSE"};
    struct sz_slice s = scalar(n);
    if (n->type != YAML_SCALAR_NODE)
        return false;
    if (n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return true;
    for (size_t i = 0; i < SZ_COUNT(others); i++)
        if (sz_eq(s, sz_cstr(others[i])))
            return false;
    size_t at = s.p[0] == '-' || s.p[0] == '+';
    for (; at < s.n; at++)
        if (strchr("0123456789.eE+-", s.p[at]) == NULL)
            return true;
    return false;
}

static const yaml_node_t *field(struct mod *m, const char *name)
{
    yaml_node_t *root = yaml_document_get_root_node(&m->doc);
    if (root == NULL || root->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top; p++)
        if (sz_eq(scalar(yaml_document_get_node(&m->doc, p->key)), sz_cstr(name)))
            return yaml_document_get_node(&m->doc, p->value);
    return NULL;
}

static void check_schema(struct mod *m)
{
    const yaml_node_t *n = field(m, "schema");
    if (n == NULL)
        problem_at(m, NULL, SZ_S("missing schema field"));
    else if (!is_text(n))
        problem_at(
            m, n, sz_pool_printf(m->pool, "unexpected schema type, expected string got value %.*s", SZ_FMT(scalar(n))));
    else if (!sz_eq(scalar(n), SZ_S("1.2")))
        problem_at(m, n, SZ_S("unsupported schema version, fga.mod only supported in version `1.2`"));
}

static bool take_escape(struct sz_slice s, char a, char b)
{
    return s.n >= 3 && s.p[0] == '%' && s.p[1] == a && (s.p[2] | 0x20) == b;
}

/* %2e, %2f and %5c are what they stand for. */
static struct sz_slice decode(struct mod *m, struct sz_slice s)
{
    char *out = sz_pool_alloc(m->pool, s.n + 1);
    size_t n = 0;
    while (s.n > 0) {
        char c = take_escape(s, '2', 'e') ? '.' : take_escape(s, '2', 'f') ? '/' : take_escape(s, '5', 'c') ? '\\' : 0;
        out[n++] = c != 0 ? c : s.p[0];
        s = sz_from(s, c != 0 ? 3 : 1);
    }
    return sz_slice(out, n);
}

static bool climbs(struct sz_slice s)
{
    for (size_t i = 0; i + 2 < s.n; i++)
        if (s.p[i] == '.' && s.p[i + 1] == '.' && (s.p[i + 2] == '/' || s.p[i + 2] == '\\'))
            return true;
    return s.n > 0 && s.p[0] == '/';
}

static void check_item(struct mod *m, const yaml_node_t *n, struct sz_module_file *files, size_t *count)
{
    struct sz_slice written = scalar(n), name = decode(m, written);
    if (!is_text(n))
        problem_at(
            m, n,
            sz_pool_printf(m->pool, "unexpected contents item type, expected string got value %.*s", SZ_FMT(written)));
    else if (climbs(name))
        problem_at(m, n, sz_pool_printf(m->pool, "invalid contents item %.*s", SZ_FMT(written)));
    else if (name.n < 4 || !sz_eq(sz_from(name, name.n - 4), SZ_S(".fga")))
        problem_at(m, n,
                   sz_pool_printf(m->pool, "contents items should use fga file extension, got %.*s", SZ_FMT(written)));
    else
        files[(*count)++] = (struct sz_module_file){.name = name};
}

static void check_contents(struct mod *m, struct sz_module_file **files, size_t *count)
{
    const yaml_node_t *n = field(m, "contents");
    if (n == NULL) {
        problem_at(m, NULL, SZ_S("missing contents field"));
        return;
    }
    if (n->type != YAML_SEQUENCE_NODE) {
        problem_at(m, n,
                   sz_pool_printf(m->pool, "unexpected contents type, expected list of strings got value %.*s",
                                  SZ_FMT(scalar(n))));
        return;
    }
    size_t items = (size_t)(n->data.sequence.items.top - n->data.sequence.items.start);
    *files = sz_pool_zalloc(m->pool, (items + 1) * sizeof(**files));
    for (size_t i = 0; i < items; i++)
        check_item(m, yaml_document_get_node(&m->doc, n->data.sequence.items.start[i]), *files, count);
}

int sz_fga_mod_parse(struct sz_slice text, struct sz_pool *pool, struct sz_module_file **files, size_t *n,
                     struct sz_problems *problems)
{
    struct mod m = {.problems = problems, .pool = pool};
    yaml_parser_t parser;
    size_t before = problems->n;
    *files = NULL;
    *n = 0;
    if (!yaml_parser_initialize(&parser))
        return -ENOMEM;
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p != NULL ? text.p : ""), text.n);
    if (!yaml_parser_load(&parser, &m.doc)) {
        struct sz_problem *p =
            sz_problems_add(problems, "module", "%s", parser.problem != NULL ? parser.problem : "not YAML");
        sz_problem_place(p, parser.problem_mark.line, parser.problem_mark.column, parser.problem_mark.column);
    } else {
        check_schema(&m);
        check_contents(&m, files, n);
        yaml_document_delete(&m.doc);
    }
    yaml_parser_delete(&parser);
    return problems->n == before ? 0 : -EINVAL;
}

/* ---- merging ---- */

struct merge {
    struct sz_model *whole;
    struct sz_model **parts;
    const struct sz_module_file *files;
    size_t n;
    struct sz_lines *lines; /* per file */
    struct sz_problems *problems;
};

static size_t file_of(const struct merge *g, struct sz_slice name)
{
    size_t i = 0;
    while (i < g->n && !sz_eq(g->files[i].name, name))
        i++;
    return i;
}

static void say(struct merge *g, size_t file, size_t line, struct sz_slice symbol, struct sz_slice message)
{
    struct sz_pool *pool = &g->problems->arena.pool;
    struct sz_problem *p = sz_problems_add(g->problems, "module", "%.*s", SZ_FMT(message));
    if (p == NULL)
        return;
    p->symbol = sz_pool_dup(pool, symbol);
    p->file = sz_pool_dup(pool, g->files[file].name);
    sz_lint_place(p, &g->lines[file], line);
}

#define SAY(g, ...) sz_pool_printf(&(g)->problems->arena.pool, __VA_ARGS__)

static void parse_part(struct merge *g, size_t i)
{
    size_t before = g->problems->n;
    g->parts[i] = sz_dsl_parse(g->files[i].text, g->problems);
    for (size_t k = before; k < g->problems->n; k++)
        g->problems->v[k].file = sz_pool_dup(&g->problems->arena.pool, g->files[i].name);
}

/* Copies share the parts' texts: the parts are kept until the whole is copied for good. */
static void copy_relation(struct merge *g, struct sz_type *to, const struct sz_rel *from)
{
    struct sz_rel *r = sz_model_add_rel(g->whole, to, from->name);
    *r = *from;
}

static void take_types(struct merge *g, size_t i)
{
    const struct sz_model *part = g->parts[i];
    for (size_t k = 0; k < part->n_types; k++) {
        const struct sz_type *t = &part->types[k];
        if (t->extends)
            continue;
        if (!t->has_metadata || t->module.p == NULL) {
            struct sz_problem *p = sz_problems_add(g->problems, "module", "file is not a module");
            sz_problem_place(p, 0, 0, 0);
            if (p != NULL)
                p->file = sz_pool_dup(&g->problems->arena.pool, g->files[i].name);
            continue;
        }
        struct sz_type *to = sz_model_add_type(g->whole, t->name);
        to->has_metadata = true;
        to->module = t->module;
        to->file = g->files[i].name;
        for (size_t r = 0; r < t->n_rels; r++)
            copy_relation(g, to, &t->rels[r]);
    }
}

static void take_conditions(struct merge *g, size_t i)
{
    const struct sz_model *part = g->parts[i];
    for (size_t k = 0; k < part->n_conds; k++) {
        const struct sz_cond *c = &part->conds[k];
        if (sz_model_cond(g->whole, c->name) != NULL) {
            say(g, i, sz_lines_condition(&g->lines[i], c->name), c->name,
                SAY(g, "duplicate condition %.*s", SZ_FMT(c->name)));
            continue;
        }
        struct sz_cond *to = sz_model_add_cond(g->whole, c->name);
        *to = *c;
        to->file = g->files[i].name;
    }
}

static void extend(struct merge *g, size_t i, const struct sz_type *t)
{
    struct sz_type *to = NULL;
    for (size_t k = 0; k < g->whole->n_types && to == NULL; k++)
        if (sz_eq(g->whole->types[k].name, t->name))
            to = &g->whole->types[k];
    if (to == NULL) {
        say(g, i, sz_lines_type(&g->lines[i], t->name, 0, true), t->name,
            SAY(g, "extended type %.*s does not exist", SZ_FMT(t->name)));
        return;
    }
    size_t own = to->n_rels;
    for (size_t k = 0; k < t->n_rels; k++) {
        struct sz_rel *there = sz_type_rel(to, t->rels[k].name);
        if (there != NULL && (size_t)(there - to->rels) < own) {
            say(g, i, sz_lines_relation(&g->lines[i], t->rels[k].name, 0), t->rels[k].name,
                SAY(g, "relation %.*s already exists on type %.*s", SZ_FMT(t->rels[k].name), SZ_FMT(t->name)));
            continue;
        }
        copy_relation(g, to, &t->rels[k]);
        to->rels[to->n_rels - 1].file = g->files[i].name;
    }
}

/* The line of a problem that the whole model's validation found, in the file that it names. */
static size_t line_of(const struct merge *g, const struct sz_problem *p, const struct sz_lines *lines)
{
    (void)g;
    if (strcmp(p->kind, "condition-not-used") == 0)
        return sz_lines_condition(lines, p->symbol);
    if (strcmp(p->kind, "reserved-type-keywords") == 0)
        return sz_lines_type(lines, p->symbol, 0, false);
    if (strcmp(p->kind, "reserved-relation-keywords") == 0)
        return sz_lines_relation(lines, p->symbol, 0);
    if (strcmp(p->kind, "invalid-name") == 0)
        return p->relation.p != NULL ? sz_lines_relation(lines, p->symbol, 0)
                                     : sz_lines_type(lines, p->symbol, 0, false);
    struct sz_slice type = p->offending_type.p != NULL ? p->offending_type : p->type;
    size_t at = sz_lines_type(lines, type, 0, false);
    if (at == SZ_NO_LINE)
        at = sz_lines_type(lines, type, 0, true);
    return p->relation.p == NULL ? at : sz_lines_relation(lines, p->relation, at);
}

static void lint_whole(struct merge *g)
{
    size_t before = g->problems->n;
    sz_model_lint(g->whole, SZ_NONE, g->problems);
    for (size_t i = before; i < g->problems->n; i++) {
        struct sz_problem *p = &g->problems->v[i];
        size_t file = file_of(g, p->file);
        if (p->file.p != NULL && p->module.p != NULL && file < g->n)
            sz_lint_place(p, &g->lines[file], line_of(g, p, &g->lines[file]));
    }
}

/* A copy that owns all its texts. */
static struct sz_model *own(const struct sz_model *m)
{
    void *json = sz_model_json_write(m);
    struct sz_problems none;
    sz_problems_init(&none);
    struct sz_model *copy = sz_model_json_read(json, &none);
    sz_problems_fini(&none);
    sz_json_free(json);
    return copy;
}

struct sz_model *sz_modules_merge(const struct sz_module_file *files, size_t n, struct sz_slice schema,
                                  struct sz_problems *problems)
{
    struct sz_arena scratch;
    size_t before = problems->n;
    sz_arena_init(&scratch);
    struct merge g = {.whole = sz_model_new(), .files = files, .n = n, .problems = problems};
    g.parts = sz_pool_zalloc(&scratch.pool, (n + 1) * sizeof(struct sz_model *));
    g.lines = sz_pool_zalloc(&scratch.pool, (n + 1) * sizeof(*g.lines));
    g.whole->schema = schema;
    for (size_t i = 0; i < n; i++) {
        sz_lines_init(&g.lines[i], files[i].text, &scratch.pool);
        parse_part(&g, i);
        if (g.parts[i] == NULL)
            continue;
        take_types(&g, i);
        take_conditions(&g, i);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; g.parts[i] != NULL && k < g.parts[i]->n_types; k++)
            if (g.parts[i]->types[k].extends)
                extend(&g, i, &g.parts[i]->types[k]);
    lint_whole(&g);
    struct sz_model *out = problems->n == before ? own(g.whole) : NULL;
    for (size_t i = 0; i < n; i++)
        sz_model_free(g.parts[i]);
    sz_model_free(g.whole);
    sz_arena_fini(&scratch);
    return out;
}
