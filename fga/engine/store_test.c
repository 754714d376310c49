/*
 * Store tests, the ecosystem's .fga.yaml files: a model, tuples, and what checks and lists must answer.  Every test
 * gets an engine of its own with the common tuples and its own.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga/engine/model_file.h"
#include "fga/engine/yaml.h"
#include "subzero/fga_tools.h"

enum { VALUES_MAX = 10000000 };

struct test_run {
    const char *path;
    struct sz_buf *out;
    struct sz_fga_totals *totals;
    struct sz_arena arena;
    const json_t *root;
    struct sz_model *model;
    struct sz_engine *e; /* of the test that runs */
    const struct sz_program *p;
    unsigned failed; /* assertions of the test that runs */
    unsigned ran;
};

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static int complain(struct test_run *t, const char *fmt, ...) SZ_PRINTF(2, 3);
static int complain(struct test_run *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct sz_slice s = sz_pool_vprintf(&t->arena.pool, fmt, args);
    va_end(args);
    sz_buf_printf(t->out, "%s: %.*s\n", t->path, SZ_FMT(s));
    return -EINVAL;
}

/* Keys of an object that are not in the list are mistakes: a misspelled assertion must not pass by not being run. */
static int check_keys(struct test_run *t, const json_t *o, const char *what, const char *const *known)
{
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return complain(t, "%s must be a mapping", what);
    json_object_foreach((json_t *)o, key, v)
    {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return complain(t, "%s has an unknown key '%s'", what, key);
    }
    return 0;
}

/* A path beside the test file; NULL: it would leave the folder. */
static const char *beside(struct test_run *t, const char *name)
{
    const char *slash = strrchr(t->path, '/');
    int dir = slash == NULL ? 0 : (int)(slash - t->path) + 1;
    bool climbs =
        name[0] == '/' || strcmp(name, "..") == 0 || strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL;
    if (climbs) {
        complain(t, "'%s' is outside of the test's folder", name);
        return NULL;
    }
    return sz_pool_strdup(&t->arena.pool, sz_pool_printf(&t->arena.pool, "%.*s%s", dir, t->path, name));
}

static int load_model(struct test_run *t)
{
    struct sz_problems problems;
    struct sz_text first, why = {""};
    sz_problems_init(&problems);
    const json_t *inline_model = json_object_get(t->root, "model");
    if (json_is_string(inline_model)) {
        t->model = sz_dsl_parse(sz_cstr(json_string_value(inline_model)), &problems);
        sz_problems_first(&problems, &first);
        sz_text_set(&why, "model: %s", first.s);
    } else if (text(t->root, "model_file")[0] != '\0') {
        const char *path = beside(t, text(t->root, "model_file"));
        t->model = path != NULL ? sz_model_load(path, &why) : NULL;
    } else {
        sz_text_set(&why, "'model' or 'model_file' is needed");
    }
    sz_problems_fini(&problems);
    return t->model != NULL ? 0 : complain(t, "%s", why.s);
}

/* ---- tuples ---- */

struct loading {
    struct test_run *t;
    struct sz_loader *loader;
    const char *file;
};

static int load_tuple(void *arg, const struct sz_tuple_key *key, size_t place)
{
    struct loading *l = arg;
    struct sz_fault fault;
    if (sz_loader_add(l->loader, key, &fault) == 0)
        return 0;
    return complain(l->t, "%s: tuple %zu: %s", l->file, place, fault.message.s);
}

static int load_file(struct loading *l, const char *name)
{
    enum sz_tuple_format format;
    struct sz_slice all;
    struct sz_text why = {""};
    const char *path = beside(l->t, name);
    if (path == NULL)
        return -EINVAL;
    l->file = name;
    if (sz_tuple_format(sz_cstr(name), &format) != 0)
        return complain(l->t, "%s: tuples are read from .yaml, .json, .jsonl and .csv files", name);
    if (sz_input_read(path, &l->t->arena.pool, &all, &why) != 0)
        return complain(l->t, "%s", why.s);
    size_t before = l->t->out->n;
    int err = sz_tuples_parse(all, format, load_tuple, l, &why);
    return err == 0 || l->t->out->n > before ? err : complain(l->t, "%s: %s", name, why.s);
}

/* `tuples`, `tuple_file` and `tuple_files` of the store or of a test. */
static int load_tuples(struct loading *l, const json_t *o)
{
    const json_t *files = json_object_get(o, "tuple_files"), *list = json_object_get(o, "tuples");
    int err = 0;
    if (json_is_string(json_object_get(o, "tuple_file")))
        err = load_file(l, text(o, "tuple_file"));
    for (size_t i = 0; err == 0 && i < json_array_size(files); i++)
        err = json_is_string(json_array_get(files, i)) ? load_file(l, json_string_value(json_array_get(files, i)))
                                                       : complain(l->t, "tuple_files must be a list of names");
    if (err != 0 || list == NULL || json_is_null(list))
        return err;
    char *again = json_dumps(list, JSON_COMPACT);
    struct sz_text why = {""};
    size_t before = l->t->out->n;
    l->file = "tuples";
    err = sz_tuples_parse(sz_cstr(again), SZ_TUPLES_JSON, load_tuple, l, &why);
    if (err != 0 && l->t->out->n == before)
        complain(l->t, "tuples: %s", why.s);
    free(again);
    return err;
}

/* ---- assertions ---- */

static void failed(struct test_run *t, const char *fmt, ...) SZ_PRINTF(2, 3);
static void failed(struct test_run *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct sz_slice s = sz_pool_vprintf(&t->arena.pool, fmt, args);
    va_end(args);
    t->failed++;
    sz_buf_printf(t->out, "    %.*s\n", SZ_FMT(s));
}

static char *context_of(const json_t *o)
{
    const json_t *c = json_object_get(o, "context");
    return c == NULL || json_is_null(c) ? NULL : json_dumps(c, JSON_COMPACT);
}

static void check_one(struct test_run *t, const char *user, const char *relation, const char *object,
                      const char *context, bool want)
{
    struct sz_check c = {.key = {.user = sz_cstr(user), .relation = sz_cstr(relation), .object = sz_cstr(object)},
                         .context = sz_cstr(context)};
    struct sz_fault fault;
    uint64_t steps = UINT64_MAX;
    int got = sz_engine_check(t->e, t->p, &c, &steps, &fault);
    t->ran++;
    if (got < 0)
        failed(t, "check %s %s %s: expected %s, got an error: %s", user, relation, object, want ? "true" : "false",
               fault.message.s);
    else if ((got == SZ_ENGINE_YES) != want)
        failed(t, "check %s %s %s: expected %s, got %s", user, relation, object, want ? "true" : "false",
               want ? "false" : "true");
}

/* The names under `one` (text) or `many` (list). */
static json_t *names_of(const json_t *o, const char *one, const char *many)
{
    const json_t *list = json_object_get(o, many);
    return json_is_array(list) ? json_copy((json_t *)list) : json_pack("[s]", text(o, one));
}

static int run_check(struct test_run *t, const json_t *o)
{
    static const char *const keys[] = {"user", "users", "object", "objects", "context", "assertions", NULL};
    if (check_keys(t, o, "a check", keys) != 0)
        return -EINVAL;
    json_t *users = names_of(o, "user", "users"), *objects = names_of(o, "object", "objects");
    char *context = context_of(o);
    const char *relation;
    json_t *want;
    for (size_t u = 0; u < json_array_size(users); u++)
        for (size_t b = 0; b < json_array_size(objects); b++)
            json_object_foreach(json_object_get(o, "assertions"), relation, want)
            {
                const char *user = json_string_value(json_array_get(users, u));
                const char *object = json_string_value(json_array_get(objects, b));
                if (user != NULL && object != NULL && json_is_boolean(want))
                    check_one(t, user, relation, object, context, json_is_true(want));
                else
                    failed(t, "check of %s: users and objects are texts, assertions true or false", relation);
            }
    free(context);
    json_decref(users);
    json_decref(objects);
    return 0;
}

static int collect(void *arg, struct sz_slice name)
{
    json_array_append_new(arg, json_stringn(name.p, name.n));
    return 0;
}

static bool holds(const json_t *list, const json_t *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), name))
            return true;
    return false;
}

static void compare_lists(struct test_run *t, const char *what, const json_t *want, const json_t *got)
{
    t->ran++;
    bool same = true;
    for (size_t i = 0; i < json_array_size(want); i++)
        same &= holds(got, json_array_get(want, i));
    for (size_t i = 0; i < json_array_size(got); i++)
        same &= holds(want, json_array_get(got, i));
    if (same)
        return;
    char *w = json_dumps(want, JSON_ENCODE_ANY), *g = json_dumps(got, 0);
    failed(t, "%s: expected %s, got %s", what, w != NULL ? w : "[]", g);
    free(w);
    free(g);
}

static int run_list_objects(struct test_run *t, const json_t *o)
{
    static const char *const keys[] = {"user", "type", "context", "assertions", NULL};
    if (check_keys(t, o, "a list of objects", keys) != 0)
        return -EINVAL;
    char *context = context_of(o);
    struct sz_list_options options = {.context = sz_cstr(context)};
    const char *relation;
    json_t *want;
    json_object_foreach(json_object_get(o, "assertions"), relation, want)
    {
        json_t *got = json_array();
        struct sz_fault fault;
        struct sz_slice what =
            sz_pool_printf(&t->arena.pool, "list objects %s %s %s", text(o, "user"), relation, text(o, "type"));
        if (sz_engine_list_objects(t->e, t->p, sz_cstr(text(o, "type")), sz_cstr(relation), sz_cstr(text(o, "user")),
                                   &options, collect, got, &fault) != 0) {
            t->ran++;
            failed(t, "%.*s: an error: %s", SZ_FMT(what), fault.message.s);
        } else {
            compare_lists(t, sz_pool_strdup(&t->arena.pool, what), want, got);
        }
        json_decref(got);
    }
    free(context);
    return 0;
}

static int run_list_users(struct test_run *t, const json_t *o)
{
    static const char *const keys[] = {"object", "user_filter", "context", "assertions", NULL};
    if (check_keys(t, o, "a list of users", keys) != 0)
        return -EINVAL;
    char *context = context_of(o);
    struct sz_list_options options = {.context = sz_cstr(context)};
    const json_t *filters = json_object_get(o, "user_filter");
    const char *relation;
    json_t *want;
    json_object_foreach(json_object_get(o, "assertions"), relation, want)
    {
        json_t *got = json_array();
        struct sz_fault fault;
        struct sz_slice what = sz_pool_printf(&t->arena.pool, "list users %s %s", relation, text(o, "object"));
        int err = 0;
        for (size_t i = 0; err == 0 && i < json_array_size(filters); i++) {
            const json_t *f = json_array_get(filters, i), *r = json_object_get(f, "relation");
            err = sz_engine_list_users(t->e, t->p, sz_cstr(text(o, "object")), sz_cstr(relation),
                                       sz_cstr(text(f, "type")), sz_cstr(json_string_value(r)), &options, collect, got,
                                       &fault);
        }
        if (err != 0) {
            t->ran++;
            failed(t, "%.*s: an error: %s", SZ_FMT(what), fault.message.s);
        } else {
            compare_lists(t, sz_pool_strdup(&t->arena.pool, what), json_object_get(want, "users"), got);
        }
        json_decref(got);
    }
    free(context);
    return 0;
}

/* ---- tests ---- */

static int run_assertions(struct test_run *t, const json_t *test)
{
    size_t i;
    json_t *o;
    int err = 0;
    json_array_foreach(json_object_get(test, "check"), i, o) err |= run_check(t, o);
    json_array_foreach(json_object_get(test, "list_objects"), i, o) err |= run_list_objects(t, o);
    json_array_foreach(json_object_get(test, "list_users"), i, o) err |= run_list_users(t, o);
    return err != 0 ? -EINVAL : 0;
}

static int run_test(struct test_run *t, const json_t *test)
{
    static const char *const keys[] = {"name",  "description",  "tuple_file", "tuple_files", "tuples",
                                       "check", "list_objects", "list_users", NULL};
    struct sz_fault fault;
    if (check_keys(t, test, "a test", keys) != 0)
        return -EINVAL;
    t->e = sz_engine_new();
    t->p = sz_engine_add_model(t->e, t->model, &fault);
    t->failed = t->ran = 0;
    int err = t->p != NULL ? 0 : complain(t, "the model is not valid: %s", fault.message.s);
    if (err == 0) {
        struct loading l = {t, sz_loader_begin(t->e, t->p, (struct sz_wall){0}), ""};
        err = load_tuples(&l, t->root);
        if (err == 0)
            err = load_tuples(&l, test);
        sz_loader_end(l.loader);
    }
    size_t before = t->out->n;
    if (err == 0)
        err = run_assertions(t, test);
    sz_engine_free(t->e);
    struct sz_slice details = sz_pool_dup(&t->arena.pool, sz_from(sz_buf_slice(t->out), before));
    t->out->n = before; /* the line of the test comes before its details */
    sz_buf_printf(t->out, "  %s %s (%u of %u)\n", t->failed == 0 && err == 0 ? "ok    " : "FAILED",
                  text(test, "name")[0] != '\0' ? text(test, "name") : "(no name)", t->ran - t->failed, t->ran);
    sz_buf_adds(t->out, details);
    t->totals->tests++;
    t->totals->tests_failed += t->failed > 0 || err != 0;
    t->totals->assertions += t->ran;
    t->totals->assertions_failed += t->failed;
    return err;
}

static int run_store(struct test_run *t)
{
    static const char *const keys[] = {"name",        "model",  "model_file", "tuple_file",
                                       "tuple_files", "tuples", "tests",      NULL};
    size_t i;
    json_t *test;
    if (check_keys(t, t->root, "a store test", keys) != 0 || load_model(t) != 0)
        return -EINVAL;
    sz_buf_printf(t->out, "%s: %s\n", t->path, text(t->root, "name"));
    int err = 0;
    json_array_foreach(json_object_get(t->root, "tests"), i, test) err |= run_test(t, test);
    return err != 0 ? -EINVAL : 0;
}

int sz_fga_test_file(const char *path, struct sz_buf *out, struct sz_fga_totals *totals)
{
    struct test_run t = {.path = path, .out = out, .totals = totals};
    struct sz_slice all;
    struct sz_text why;
    unsigned before = totals->tests_failed;
    sz_arena_init(&t.arena);
    int err = sz_input_read(path, &t.arena.pool, &all, &why);
    if (err != 0)
        sz_buf_printf(out, "%s\n", why.s);
    json_t *root = err == 0 ? sz_yaml_json(all, VALUES_MAX, &why) : NULL;
    if (err == 0 && root == NULL)
        err = complain(&t, "%s", why.s);
    t.root = root;
    if (err == 0)
        err = run_store(&t);
    sz_model_free(t.model);
    json_decref(root);
    sz_arena_fini(&t.arena);
    return err != 0 || totals->tests_failed > before ? 1 : 0;
}
