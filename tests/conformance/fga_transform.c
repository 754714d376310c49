/*
 * The modelling language's transformations: DSL to JSON and back, JSON that the DSL cannot say, JSON models'
 * mistakes, modules and fga.mod; and the store tests.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/model.h"
#include "fga_data.h"
#include "subzero/fga_tools.h"

struct tally {
    unsigned ran, failed;
};

static bool same_text(struct tally *t, const char *name, struct sz_slice got, struct sz_slice want)
{
    t->ran++;
    while (got.n > 0 && got.p[got.n - 1] == '\n') /* the files differ in how they end */
        got.n--;
    while (want.n > 0 && want.p[want.n - 1] == '\n')
        want.n--;
    if (sz_eq(got, want))
        return true;
    t->failed++;
    fprintf(stderr, "%s: got\n%.*s\nwant\n%.*s\n", name, SZ_FMT(got), SZ_FMT(want));
    return false;
}

static void same_json(struct tally *t, const char *name, json_t *got, const json_t *want)
{
    t->ran++;
    if (json_equal(got, want))
        return;
    t->failed++;
    char *g = json_dumps(got, JSON_SORT_KEYS | JSON_INDENT(1)), *w = json_dumps(want, JSON_SORT_KEYS | JSON_INDENT(1));
    fprintf(stderr, "%s: got\n%s\nwant\n%s\n", name, g, w);
    free(g);
    free(w);
}

static json_t *read_json(const char *path)
{
    return json_load_file(path, 0, NULL);
}

/* Calls fn with each folder below language/NAME. */
static void each_folder(const char *name, void (*fn)(struct tally *, const char *dir), struct tally *t)
{
    char path[1024], dir[2048];
    fga_path(path, sizeof(path), "language/%s", name);
    DIR *d = opendir(path);
    if (d == NULL)
        cr_skip_test("%s is not there", path);
    struct dirent *entry;
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(dir, sizeof(dir), "%s/%s", path, entry->d_name);
        fn(t, dir);
    }
    closedir(d);
}

static void transform_pair(struct tally *t, const char *dir)
{
    char path[2200];
    struct sz_problems problems;
    struct sz_text why;
    struct sz_buf out = {0};
    sz_problems_init(&problems);
    snprintf(path, sizeof(path), "%s/authorization-model.fga", dir);
    struct sz_slice text = fga_read(path);
    snprintf(path, sizeof(path), "%s/authorization-model.json", dir);
    json_t *want = read_json(path);
    struct sz_model *m = sz_dsl_parse(text, &problems), *back = sz_model_json_read(want, &problems);
    if (m == NULL || back == NULL || sz_dsl_write(back, false, &out, &why) != 0) {
        t->ran++;
        t->failed++;
        fprintf(stderr, "%s: %s\n", dir, m == NULL || back == NULL ? "does not parse" : why.s);
    } else {
        json_t *got = sz_model_json_write(m);
        same_json(t, dir, got, want);
        json_decref(got);
        /* The texts differ in comments and blanks: what is written must mean the same. */
        struct sz_model *again = sz_dsl_parse(sz_buf_slice(&out), &problems);
        got = again != NULL ? sz_model_json_write(again) : json_null();
        same_json(t, dir, got, want);
        json_decref(got);
        sz_model_free(again);
    }
    sz_buf_fini(&out);
    sz_model_free(m);
    sz_model_free(back);
    json_decref(want);
    free((char *)text.p);
    sz_problems_fini(&problems);
}

Test(fga_transform, pairs)
{
    struct tally t = {0};
    each_folder("transformer", transform_pair, &t);
    cr_log_info("%u transformations", t.ran);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}

Test(fga_transform, json_that_the_dsl_cannot_say)
{
    char path[1024];
    struct tally t = {0};
    fga_path(path, sizeof(path), "language/json-syntax-transformer-validation-cases.yaml");
    json_t *cases = fga_yaml(path), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        struct sz_problems problems;
        struct sz_text why = {""};
        struct sz_buf out = {0};
        sz_problems_init(&problems);
        struct sz_model *m = sz_model_json_parse(sz_cstr(fga_str(c, "json")), &problems);
        int err = m == NULL ? -1 : sz_dsl_write(m, false, &out, &why);
        bool valid = json_object_get(c, "valid") == NULL || json_is_true(json_object_get(c, "valid"));
        t.ran++;
        if ((err == 0) != valid || (!valid && strcmp(why.s, fga_str(c, "error_message")) != 0)) {
            t.failed++;
            fprintf(stderr, "%s: %s\n", fga_str(c, "name"), why.s);
        }
        sz_buf_fini(&out);
        sz_model_free(m);
        sz_problems_fini(&problems);
    }
    json_decref(cases);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}

static long at(const json_t *o, const char *what, const char *end)
{
    return (long)json_integer_value(json_object_get(json_object_get(o, what), end));
}

static void compare_problems(struct tally *t, const char *name, const struct sz_problems *got, const json_t *want)
{
    t->ran++;
    bool same = got->n == json_array_size(want);
    for (size_t i = 0; i < got->n; i++) {
        const struct sz_problem *p = &got->v[i];
        const json_t *w = json_array_get(want, i), *meta = json_object_get(w, "metadata");
        same &= sz_eq(p->message, sz_cstr(fga_str(w, "msg")));
        if (json_object_get(w, "line") != NULL)
            same &= p->line == at(w, "line", "start") && p->column == at(w, "column", "start") &&
                    p->end_column == at(w, "column", "end");
        if (json_object_get(meta, "errorType") != NULL)
            same &= strcmp(p->kind, fga_str(meta, "errorType")) == 0;
        if (json_object_get(meta, "symbol") != NULL)
            same &= sz_eq(p->symbol, sz_cstr(fga_str(meta, "symbol")));
        if (json_object_get(w, "file") != NULL)
            same &= sz_eq(p->file, sz_cstr(fga_str(w, "file")));
    }
    if (same)
        return;
    t->failed++;
    for (size_t i = 0; i < got->n; i++)
        fprintf(stderr, "%s: got %.*s: %.*s %u:%u-%u\n", name, SZ_FMT(got->v[i].file), SZ_FMT(got->v[i].message),
                got->v[i].line, got->v[i].column, got->v[i].end_column);
    char *w = json_dumps(want, 0);
    fprintf(stderr, "%s: want %s\n", name, w != NULL ? w : "nothing");
    free(w);
}

Test(fga_transform, mistakes_of_json_models)
{
    char path[1024];
    struct tally t = {0};
    fga_path(path, sizeof(path), "language/json-validation-cases.yaml");
    json_t *cases = fga_yaml(path), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        struct sz_problems problems;
        sz_problems_init(&problems);
        struct sz_model *m = sz_model_json_parse(sz_cstr(fga_str(c, "json")), &problems);
        if (m != NULL)
            sz_model_lint(m, SZ_NONE, &problems);
        compare_problems(&t, fga_str(c, "name"), &problems, json_object_get(c, "expected_errors"));
        sz_model_free(m);
        sz_problems_fini(&problems);
    }
    json_decref(cases);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}

static int by_file_name(const void *a, const void *b)
{
    const struct sz_module_file *x = a, *y = b;
    return sz_cmp(x->name, y->name);
}

/* The module files of a folder, in the order of their names. */
static size_t read_modules(const char *dir, struct sz_module_file *files, struct sz_pool *pool)
{
    char path[4200];
    size_t n = 0;
    snprintf(path, sizeof(path), "%s/module", dir);
    DIR *d = opendir(path);
    struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/module/%s", dir, entry->d_name);
        struct sz_slice text = fga_read(path);
        files[n].name = sz_pool_dup(pool, sz_cstr(entry->d_name));
        files[n++].text = sz_pool_dup(pool, text);
        free((char *)text.p);
    }
    if (d != NULL)
        closedir(d);
    qsort(files, n, sizeof(*files), by_file_name);
    return n;
}

static bool write_as(struct tally *t, const char *dir, const char *file, const json_t *json, bool sources)
{
    char path[2200];
    struct sz_problems problems;
    struct sz_text why = {""};
    struct sz_buf out = {0};
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    struct sz_slice want = fga_read(path);
    if (want.p == NULL)
        return true;
    sz_problems_init(&problems);
    struct sz_model *m = sz_model_json_read(json, &problems);
    bool ok = m != NULL && sz_dsl_write(m, sources, &out, &why) == 0;
    ok = same_text(t, path, sz_buf_slice(&out), want) && ok;
    sz_model_free(m);
    sz_buf_fini(&out);
    sz_problems_fini(&problems);
    free((char *)want.p);
    return ok;
}

static void merge_folder(struct tally *t, const char *dir)
{
    char path[2200];
    struct sz_arena arena;
    struct sz_problems problems;
    struct sz_module_file files[64];
    sz_arena_init(&arena);
    sz_problems_init(&problems);
    size_t n = read_modules(dir, files, &arena.pool);
    snprintf(path, sizeof(path), "%s/expected_errors.json", dir);
    json_t *errors = read_json(path);
    snprintf(path, sizeof(path), "%s/authorization-model.json", dir);
    json_t *want = read_json(path);
    struct sz_model *m = n > 0 ? sz_modules_merge(files, n, SZ_S("1.2"), &problems) : NULL;
    if (n > 0 && (errors != NULL || problems.n > 0))
        compare_problems(t, dir, &problems, errors);
    if (m != NULL && want != NULL) {
        json_t *got = sz_model_json_write(m);
        same_json(t, dir, got, want);
        json_decref(got);
    }
    if (want != NULL) {
        write_as(t, dir, "combined.fga", want, false);
        write_as(t, dir, "combined-sourceinfo.fga", want, true);
    }
    sz_model_free(m);
    json_decref(errors);
    json_decref(want);
    sz_problems_fini(&problems);
    sz_arena_fini(&arena);
}

Test(fga_transform, modules)
{
    struct tally t = {0};
    each_folder("transformer-module", merge_folder, &t);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}

Test(fga_transform, fga_mod)
{
    char path[1024];
    struct tally t = {0};
    fga_path(path, sizeof(path), "language/fga-mod-transformer-cases.yaml");
    json_t *cases = fga_yaml(path), *c;
    size_t i;
    json_array_foreach(cases, i, c)
    {
        struct sz_problems problems;
        struct sz_module_file *files;
        size_t n;
        sz_problems_init(&problems);
        int err = sz_fga_mod_parse(sz_cstr(fga_str(c, "modFile")), &problems.arena.pool, &files, &n, &problems);
        compare_problems(&t, fga_str(c, "name"), &problems, json_object_get(c, "expected_errors"));
        json_t *want = json_loads(fga_str(c, "json"), 0, NULL);
        json_t *names = json_object_get(json_object_get(want, "contents"), "value");
        for (size_t k = 0; err == 0 && k < json_array_size(names); k++)
            cr_expect(k < n && sz_eq(files[k].name, sz_cstr(fga_str(json_array_get(names, k), "value"))));
        json_decref(want);
        sz_problems_fini(&problems);
    }
    json_decref(cases);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}

/* ---- store tests ---- */

static void run_stores(struct sz_fga_totals *totals, const char *dir)
{
    char path[4096];
    DIR *d = opendir(dir);
    struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        size_t n = strlen(entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (n > 9 && strcmp(entry->d_name + n - 9, ".fga.yaml") == 0) {
            struct sz_buf out = {0};
            if (sz_fga_test_file(path, &out, totals) != 0)
                fprintf(stderr, "%.*s", SZ_FMT(sz_buf_slice(&out)));
            sz_buf_fini(&out);
        } else {
            run_stores(totals, path);
        }
    }
    if (d != NULL)
        closedir(d);
}

Test(fga_stores, samples)
{
    char path[1024];
    struct sz_fga_totals totals = {0};
    fga_path(path, sizeof(path), "sample-stores");
    run_stores(&totals, path);
    cr_log_info("%u tests, %u assertions", totals.tests, totals.assertions);
    cr_assert_eq(totals.tests_failed, 0);
}

static void run_language_store(struct tally *t, const char *dir)
{
    char path[2200];
    struct sz_fga_totals totals = {0};
    struct sz_buf out = {0};
    snprintf(path, sizeof(path), "%s/expected_errors.json", dir);
    json_t *errors = read_json(path);
    snprintf(path, sizeof(path), "%s/store.fga.yaml", dir);
    t->ran++;
    if ((sz_fga_test_file(path, &out, &totals) == 0) != (errors == NULL)) {
        t->failed++;
        fprintf(stderr, "%s: %.*s\n", dir, SZ_FMT(sz_buf_slice(&out)));
    }
    json_decref(errors);
    sz_buf_fini(&out);
}

Test(fga_stores, of_the_language)
{
    struct tally t = {0};
    each_folder("stores", run_language_store, &t);
    cr_assert_eq(t.failed, 0, "%u of %u differ", t.failed, t.ran);
}
