/*
 * Validate, transform and check as commands use them.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga/engine/model_file.h"
#include "subzero/fga_tools.h"

static void print_problem(struct sz_buf *out, const char *path, const struct sz_problem *p)
{
    if (p->file.n > 0)
        sz_buf_adds(out, p->file);
    else
        sz_buf_adds(out, sz_cstr(path));
    if (p->placed)
        sz_buf_printf(out, ":%u:%u", p->line + 1, p->column + 1);
    sz_buf_printf(out, ": %s: %.*s\n", p->kind, SZ_FMT(p->message));
}

/* A model that parses and passes the language's rules must also be one that the engine takes. */
static void try_engine(const struct sz_model *m, struct sz_problems *problems)
{
    struct sz_fault fault;
    struct sz_engine *e = sz_engine_new();
    if (problems->n == 0 && sz_engine_add_model(e, m, &fault) == NULL)
        sz_problems_add(problems, "model", "%s", fault.message.s);
    sz_engine_free(e);
}

int sz_fga_validate_file(const char *path, struct sz_buf *out)
{
    struct sz_problems problems;
    struct sz_slice text;
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_load_file(path, &problems, &text);
    if (m != NULL) {
        sz_model_lint(m, text, &problems);
        try_engine(m, &problems);
    }
    for (size_t i = 0; i < problems.n; i++)
        print_problem(out, path, &problems.v[i]);
    int code = problems.n == 0 ? 0 : 1;
    sz_model_free(m);
    sz_problems_fini(&problems);
    return code;
}

int sz_fga_transform_file(const char *path, const char *to, struct sz_buf *out)
{
    struct sz_text why;
    struct sz_model *m = sz_model_load(path, &why);
    int err = m == NULL ? -EINVAL : 0;
    if (m != NULL && strcmp(to, "json") == 0) {
        void *json = sz_model_json_write(m);
        char *text = json_dumps(json, JSON_INDENT(2));
        sz_buf_printf(out, "%s\n", text);
        free(text);
        sz_json_free(json);
    } else if (m != NULL) {
        err = sz_dsl_write(m, true, out, &why);
    }
    sz_model_free(m);
    if (err == 0)
        return 0;
    out->n = 0;
    sz_buf_printf(out, "%s\n", why.s);
    return 1;
}

/* ---- check ---- */

struct session {
    struct sz_arena arena;
    struct sz_engine *e;
    const struct sz_program *p;
    struct sz_loader *loader;
    struct sz_text why;
};

static int load_tuple(void *arg, const struct sz_tuple_key *key, size_t place)
{
    struct session *s = arg;
    struct sz_fault fault;
    if (sz_loader_add(s->loader, key, &fault) == 0)
        return 0;
    sz_text_set(&s->why, "tuple %zu: %s", place, fault.message.s);
    return -EINVAL;
}

static int load_tuples(struct session *s, const char *path)
{
    enum sz_tuple_format format;
    struct sz_slice text;
    struct sz_text why = {""};
    if (path == NULL)
        return 0;
    if (sz_tuple_format(sz_cstr(path), &format) != 0) {
        sz_text_set(&s->why, "%s: tuples are read from .yaml, .json, .jsonl and .csv files", path);
        return -EINVAL;
    }
    int err = sz_input_read(path, &s->arena.pool, &text, &s->why);
    if (err != 0)
        return err;
    s->why.s[0] = '\0';
    s->loader = sz_loader_begin(s->e, s->p, (struct sz_wall){0});
    err = sz_tuples_parse(text, format, load_tuple, s, &why);
    sz_loader_end(s->loader);
    if (err != 0) {
        struct sz_text detail = s->why.s[0] != '\0' ? s->why : why;
        sz_text_set(&s->why, "%s: %s", path, detail.s);
    }
    return err;
}

static int open_session(struct session *s, const struct sz_fga_question *q)
{
    struct sz_fault fault;
    sz_arena_init(&s->arena);
    struct sz_model *m = sz_model_load(q->model, &s->why);
    if (m == NULL)
        return -EINVAL;
    s->p = sz_engine_add_model(s->e, m, &fault);
    sz_model_free(m);
    if (s->p == NULL) {
        sz_text_set(&s->why, "%s: %s", q->model, fault.message.s);
        return -EINVAL;
    }
    return load_tuples(s, q->tuples);
}

int sz_fga_check_files(const struct sz_fga_question *q, struct sz_buf *out)
{
    struct session s = {.e = sz_engine_new()};
    struct sz_fault fault;
    uint64_t steps = UINT64_MAX;
    struct sz_check c = {
        .key = {.user = sz_cstr(q->user), .relation = sz_cstr(q->relation), .object = sz_cstr(q->object)},
        .context = sz_cstr(q->context)};
    int result = open_session(&s, q);
    if (result == 0) {
        result = sz_engine_check(s.e, s.p, &c, &steps, &fault);
        if (result < 0)
            sz_text_set(&s.why, "%d: %s", fault.code, fault.message.s);
    }
    if (result < 0)
        sz_buf_printf(out, "error: %s\n", s.why.s);
    else
        sz_buf_printf(out, "%s\n", result == SZ_ENGINE_YES ? "allowed" : "denied");
    if (result >= 0 && q->explain)
        sz_engine_explain(s.e, s.p, &c, out);
    sz_engine_free(s.e);
    sz_arena_fini(&s.arena);
    return result == SZ_ENGINE_YES ? 0 : 1;
}
