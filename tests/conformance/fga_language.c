/*
 * The modelling language's own cases: DSL and JSON pairs, and what every mistake must be called,
 * with its line and columns.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/model.h"
#include "fga_data.h"

static long at(const json_t *o, const char *what, const char *end)
{
    return (long)json_integer_value(json_object_get(json_object_get(o, what), end));
}

/* Prints each difference; true when the list is exactly the expected one, in order. */
static bool same_problems(const char *name, const struct sz_problems *got, const json_t *want, bool positions)
{
    bool ok = got->n == json_array_size(want);
    for (size_t i = 0; i < got->n || i < json_array_size(want); i++) {
        const json_t *w = json_array_get(want, i);
        const struct sz_problem *p = i < got->n ? &got->v[i] : NULL;
        const json_t *meta = json_object_get(w, "metadata");
        bool same = p != NULL && w != NULL && sz_eq(p->message, sz_cstr(fga_str(w, "msg")));
        if (same && positions && json_object_get(w, "line") != NULL)
            same = p->placed && p->line == at(w, "line", "start") && p->column == at(w, "column", "start") &&
                   p->end_column == at(w, "column", "end");
        if (same && json_object_get(meta, "errorType") != NULL)
            same = strcmp(p->kind, fga_str(meta, "errorType")) == 0;
        if (same && json_object_get(meta, "symbol") != NULL)
            same = sz_eq(p->symbol, sz_cstr(fga_str(meta, "symbol")));
        if (same && json_object_get(w, "file") != NULL)
            same = sz_eq(p->file, sz_cstr(fga_str(w, "file")));
        if (same)
            continue;
        ok = false;
        if (w != NULL)
            fprintf(stderr, "%s: want %s  %ld:%ld-%ld\n", name, fga_str(w, "msg"), at(w, "line", "start"),
                    at(w, "column", "start"), at(w, "column", "end"));
        if (p != NULL)
            fprintf(stderr, "%s: got  %.*s  %u:%u-%u (%s)\n", name, SZ_FMT(p->message), p->line, p->column,
                    p->end_column, p->kind);
    }
    return ok;
}

static unsigned run_dsl_cases(const char *file, bool semantic, unsigned *ran)
{
    char path[1024];
    fga_path(path, sizeof(path), "language/%s", file);
    json_t *cases = fga_yaml(path), *c;
    size_t i;
    unsigned failed = 0;
    json_array_foreach(cases, i, c)
    {
        if (json_is_true(json_object_get(c, "skip")))
            continue;
        struct sz_problems problems;
        sz_problems_init(&problems);
        struct sz_slice text = sz_cstr(fga_str(c, "dsl"));
        struct sz_model *m = sz_dsl_parse(text, &problems);
        if (m != NULL && semantic)
            sz_model_lint(m, text, &problems);
        failed += !same_problems(fga_str(c, "name"), &problems, json_object_get(c, "expected_errors"), true);
        ++*ran;
        sz_model_free(m);
        sz_problems_fini(&problems);
    }
    json_decref(cases);
    return failed;
}

Test(fga_language, syntax_mistakes)
{
    unsigned ran = 0, failed = run_dsl_cases("dsl-syntax-validation-cases.yaml", false, &ran);
    cr_log_info("%u cases", ran);
    cr_assert_eq(failed, 0, "%u of %u cases differ", failed, ran);
}

Test(fga_language, semantic_mistakes)
{
    unsigned ran = 0, failed = run_dsl_cases("dsl-semantic-validation-cases.yaml", true, &ran);
    cr_log_info("%u cases", ran);
    cr_assert_eq(failed, 0, "%u of %u cases differ", failed, ran);
}
