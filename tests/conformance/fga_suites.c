/*
 * The suites of checks and lists.  Every single-stage test runs twice: its tuples stored, and sent along as
 * contextual tuples.  Every listed object and user must also pass a check.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga_data.h"

struct tally {
    unsigned ran, failed;
};

struct run {
    const char *where;
    struct sz_engine *e;
    const struct sz_program *p;
    const json_t *extra; /* tuples that go along with each request, NULL: none */
    struct tally *tally;
};

static char *dump(const json_t *v)
{
    return v == NULL || json_is_null(v) ? NULL : json_dumps(v, JSON_COMPACT);
}

/* A tuple of the data as a key; the context is heap. */
static struct sz_tuple_key tuple_key(const json_t *t)
{
    const json_t *c = json_object_get(t, "condition");
    struct sz_tuple_key k = {.user = sz_cstr(fga_str(t, "user")),
                             .relation = sz_cstr(fga_str(t, "relation")),
                             .object = sz_cstr(fga_str(t, "object"))};
    if (json_is_object(c)) {
        k.condition = sz_cstr(fga_str(c, "name"));
        k.condition_context = sz_cstr(dump(json_object_get(c, "context")));
    }
    return k;
}

static void free_keys(struct sz_tuple_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((char *)keys[i].condition_context.p);
    free(keys);
}

/* The assertion's contextual tuples and the run's own. */
static struct sz_tuple_key *contextual(const struct run *r, const json_t *a, size_t *n)
{
    const json_t *own = json_object_get(a, "contextualTuples");
    struct sz_tuple_key *keys = calloc(json_array_size(own) + json_array_size(r->extra) + 1, sizeof(*keys));
    *n = 0;
    for (size_t i = 0; i < json_array_size(own); i++)
        keys[(*n)++] = tuple_key(json_array_get(own, i));
    for (size_t i = 0; i < json_array_size(r->extra); i++)
        keys[(*n)++] = tuple_key(json_array_get(r->extra, i));
    return keys;
}

static void judge(const struct run *r, bool same, const char *kind, const json_t *a, const char *got)
{
    r->tally->ran++;
    if (same)
        return;
    r->tally->failed++;
    char *text = json_dumps(a, JSON_COMPACT);
    fprintf(stderr, "%s: %s: got %s for %s\n", r->where, kind, got, text);
    free(text);
}

/* 0, 1 or the fault's code. */
static int check(const struct run *r, struct sz_tuple_key key, const json_t *context, const struct sz_tuple_key *keys,
                 size_t n)
{
    char *text = dump(context);
    struct sz_check c = {.key = key, .context = sz_cstr(text), .contextual = keys, .contextual_n = n};
    struct sz_fault fault = {0};
    uint64_t steps = 10000000;
    int result = sz_engine_check(r->e, r->p, &c, &steps, &fault);
    free(text);
    return result < 0 ? fault.code : result == SZ_ENGINE_BUDGET ? -1 : result;
}

static void run_check(const struct run *r, const json_t *a)
{
    struct sz_tuple_key key = tuple_key(json_object_get(a, "tuple"));
    size_t n;
    struct sz_tuple_key *keys = contextual(r, a, &n);
    int got = check(r, key, json_object_get(a, "context"), keys, n);
    int want = json_object_get(a, "errorCode") != NULL ? (int)json_integer_value(json_object_get(a, "errorCode"))
                                                       : json_is_true(json_object_get(a, "expectation"));
    char text[16];
    snprintf(text, sizeof(text), "%d", got);
    judge(r, got == want, "check", a, text);
    free_keys(keys, n);
}

static int collect(void *arg, struct sz_slice name)
{
    json_array_append_new(arg, json_stringn(name.p, name.n));
    return 0;
}

static bool contains(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    return false;
}

static bool same_set(const json_t *a, const json_t *b)
{
    if (json_array_size(a) != json_array_size(b))
        return false;
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!contains(b, json_string_value(json_array_get(a, i))))
            return false;
    return true;
}

/* The list, or the fault's code in *code. */
static json_t *list_objects(const struct run *r, const char *type, const char *relation, const char *user,
                            const struct sz_list_options *o, int *code)
{
    json_t *got = json_array();
    struct sz_fault fault = {0};
    *code = 0;
    if (sz_engine_list_objects(r->e, r->p, sz_cstr(type), sz_cstr(relation), sz_cstr(user), o, collect, got, &fault) !=
        0)
        *code = fault.code;
    return got;
}

static json_t *list_users(const struct run *r, const char *object, const char *relation, const char *filter,
                          const struct sz_list_options *o, int *code)
{
    json_t *got = json_array();
    struct sz_fault fault = {0};
    struct sz_slice type, rest = sz_cstr(filter), rel = SZ_NONE;
    *code = 0;
    sz_split(&rest, '#', &type);
    if (rest.p != NULL)
        rel = rest;
    if (sz_engine_list_users(r->e, r->p, sz_cstr(object), sz_cstr(relation), type, rel, o, collect, got, &fault) != 0)
        *code = fault.code;
    return got;
}

static void judge_list(const struct run *r, const char *kind, const json_t *a, const json_t *got, int code)
{
    int want = (int)json_integer_value(json_object_get(a, "errorCode"));
    char *text = json_dumps(got, JSON_COMPACT), whole[2000];
    snprintf(whole, sizeof(whole), "%s code %d", text, code);
    judge(r, code == want && (want != 0 || same_set(got, json_object_get(a, "expectation"))), kind, a, whole);
    free(text);
}

static void run_list_objects(const struct run *r, const json_t *a)
{
    const json_t *q = json_object_get(a, "request");
    size_t n;
    int code;
    struct sz_tuple_key *keys = contextual(r, a, &n);
    char *context = dump(json_object_get(a, "context"));
    struct sz_list_options o = {.context = sz_cstr(context), .contextual = keys, .contextual_n = n};
    json_t *got = list_objects(r, fga_str(q, "type"), fga_str(q, "relation"), fga_str(q, "user"), &o, &code);
    judge_list(r, "list objects", a, got, code);
    for (size_t i = 0; i < json_array_size(got); i++) {
        struct sz_tuple_key k = {.user = sz_cstr(fga_str(q, "user")),
                                 .relation = sz_cstr(fga_str(q, "relation")),
                                 .object = sz_cstr(json_string_value(json_array_get(got, i)))};
        judge(r, check(r, k, json_object_get(a, "context"), keys, n) == 1, "check of a listed object", a,
              json_string_value(json_array_get(got, i)));
    }
    json_decref(got);
    free(context);
    free_keys(keys, n);
}

static void run_list_users(const struct run *r, const json_t *a)
{
    const json_t *q = json_object_get(a, "request"), *filters = json_object_get(q, "filters");
    size_t n;
    int code;
    struct sz_tuple_key *keys = contextual(r, a, &n);
    char *context = dump(json_object_get(a, "context"));
    struct sz_list_options o = {.context = sz_cstr(context), .contextual = keys, .contextual_n = n};
    json_t *got = list_users(r, fga_str(q, "object"), fga_str(q, "relation"),
                             json_string_value(json_array_get(filters, 0)), &o, &code);
    judge_list(r, "list users", a, got, code);
    for (size_t i = 0; i < json_array_size(got); i++) {
        struct sz_tuple_key k = {.object = sz_cstr(fga_str(q, "object")),
                                 .relation = sz_cstr(fga_str(q, "relation")),
                                 .user = sz_cstr(json_string_value(json_array_get(got, i)))};
        judge(r, check(r, k, json_object_get(a, "context"), keys, n) == 1, "check of a listed user", a,
              json_string_value(json_array_get(got, i)));
    }
    json_decref(got);
    free(context);
    free_keys(keys, n);
}

static int code_of(const json_t *a, const char *special)
{
    const json_t *v = json_object_get(a, special);
    if (v == NULL)
        v = json_object_get(a, "errorCode");
    return (int)json_integer_value(v);
}

/* What a check of the matrices says about the two lists. */
static void run_implied(const struct run *r, const json_t *a)
{
    const json_t *t = json_object_get(a, "tuple");
    struct sz_slice object = sz_cstr(fga_str(t, "object")), user = sz_cstr(fga_str(t, "user"));
    char type[300], filter[300], star[310], got_text[64];
    size_t n;
    int code, want;
    bool expected = json_is_true(json_object_get(a, "expectation"));
    struct sz_tuple_key *keys = contextual(r, a, &n);
    char *context = dump(json_object_get(a, "context"));
    struct sz_list_options o = {.context = sz_cstr(context), .contextual = keys, .contextual_n = n};
    snprintf(type, sizeof(type), "%.*s", (int)sz_find_byte(object, ':'), object.p);
    json_t *got = list_objects(r, type, fga_str(t, "relation"), user.p, &o, &code);
    want = code_of(a, "listObjectsErrorCode");
    snprintf(got_text, sizeof(got_text), "%zu objects, code %d", json_array_size(got), code);
    judge(r, code == want && (want != 0 || contains(got, object.p) == expected), "implied list objects", a, got_text);
    json_decref(got);
    ptrdiff_t hash = sz_find_byte(user, '#');
    snprintf(type, sizeof(type), "%.*s", (int)sz_find_byte(user, ':'), user.p);
    snprintf(filter, sizeof(filter), "%s%s", type, hash >= 0 ? user.p + hash : "");
    snprintf(star, sizeof(star), "%s:*", type);
    got = list_users(r, object.p, fga_str(t, "relation"), filter, &o, &code);
    want = code_of(a, "listUsersErrorCode");
    /* "Everybody" covers a plain user, unless the answer is no: then it stands for everybody else. */
    bool there = contains(got, user.p) || (expected && hash < 0 && contains(got, star));
    snprintf(got_text, sizeof(got_text), "%zu users, code %d", json_array_size(got), code);
    judge(r, code == want && (want != 0 || there == expected), "implied list users", a, got_text);
    json_decref(got);
    free(context);
    free_keys(keys, n);
}

static void run_stage(const struct run *r, const json_t *stage, bool implied)
{
    size_t i;
    json_t *a;
    json_array_foreach(json_object_get(stage, "checkAssertions"), i, a)
    {
        run_check(r, a);
        if (implied)
            run_implied(r, a);
    }
    json_array_foreach(json_object_get(stage, "listObjectsAssertions"), i, a) run_list_objects(r, a);
    json_array_foreach(json_object_get(stage, "listUsersAssertions"), i, a) run_list_users(r, a);
}

static bool write_tuples(struct run *r, const json_t *tuples)
{
    bool ok = true;
    for (size_t i = 0; i < json_array_size(tuples); i++) {
        struct sz_tuple_key *k = calloc(1, sizeof(*k));
        *k = tuple_key(json_array_get(tuples, i));
        struct sz_write w = {.writes = k, .writes_n = 1};
        struct sz_fault fault = {0};
        if (sz_engine_write(r->e, r->p, &w, (struct sz_wall){1000000}, &fault) != 0) {
            fprintf(stderr, "%s: write: %s\n", r->where, fault.message.s);
            ok = false;
        }
        free_keys(k, 1);
    }
    return ok;
}

static void run_test(const char *file, const json_t *test, const char *common_model, bool as_contextual,
                     struct tally *tally)
{
    char where[400];
    struct run r = {.where = where, .e = sz_engine_new(), .tally = tally};
    size_t i;
    json_t *stage;
    json_array_foreach(json_object_get(test, "stages"), i, stage)
    {
        snprintf(where, sizeof(where), "%s/%s[%zu]%s", file, fga_str(test, "name"), i,
                 as_contextual ? " contextual" : "");
        const char *text = common_model != NULL ? common_model : fga_str(stage, "model");
        struct sz_problems problems;
        struct sz_fault fault = {0};
        sz_problems_init(&problems);
        struct sz_model *m = sz_dsl_parse(sz_cstr(text), &problems);
        r.p = m != NULL ? sz_engine_add_model(r.e, m, &fault) : NULL;
        if (r.p == NULL) {
            struct sz_text first;
            sz_problems_first(&problems, &first);
            fprintf(stderr, "%s: model: %s%s\n", where, first.s, fault.message.s);
            tally->failed++;
        } else {
            const json_t *tuples = json_object_get(stage, "tuples");
            r.extra = as_contextual ? tuples : NULL;
            if (!as_contextual && !write_tuples(&r, tuples))
                tally->failed++;
            run_stage(&r, stage, common_model != NULL);
        }
        sz_model_free(m);
        sz_problems_fini(&problems);
    }
    sz_engine_free(r.e);
}

static void run_file(const char *file)
{
    char path[1024];
    struct tally tally = {0};
    fga_path(path, sizeof(path), "%s", file);
    json_t *root = fga_yaml(path), *test;
    size_t i;
    if (root == NULL)
        cr_skip_test("%s is not there", path);
    const char *model = json_string_value(json_object_get(root, "model"));
    json_array_foreach(json_object_get(root, "tests"), i, test)
    {
        const json_t *stages = json_object_get(test, "stages");
        size_t tuples = json_array_size(json_object_get(json_array_get(stages, 0), "tuples"));
        run_test(file, test, model, false, &tally);
        if (json_array_size(stages) == 1 && tuples > 0 && tuples <= 100)
            run_test(file, test, model, true, &tally);
    }
    json_decref(root);
    cr_log_info("%s: %u assertions", file, tally.ran);
    cr_assert_eq(tally.failed, 0, "%s: %u of %u assertions failed", file, tally.failed, tally.ran);
}

Test(fga_suites, consolidated)
{
    run_file("openfga/consolidated_1_1_tests.yaml");
}

Test(fga_suites, abac)
{
    run_file("openfga/abac_tests.yaml");
}

Test(fga_suites, matrix_check)
{
    run_file("openfga/matrix_check_tests.yaml");
}

Test(fga_suites, matrix_list_objects)
{
    run_file("openfga/matrix_list_objects_tests.yaml");
}

Test(fga_suites, derived)
{
    run_file("derived/derived_tests.yaml");
}
