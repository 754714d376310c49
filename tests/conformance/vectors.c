/* Reading the vectors line by line and keeping count. */
#include "conformance/vectors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/crypto.h"

const char *vector_text(json_t *vector, const char *member)
{
    const char *s = json_string_value(json_object_get(vector, member));
    cr_assert_not_null(s, "a vector without \"%s\"", member);
    return s;
}

bool vector_expects_accept(json_t *vector, bool *either)
{
    const char *expect = vector_text(vector, "expect");
    *either = strcmp(expect, "either") == 0;
    return strcmp(expect, "accept") == 0;
}

struct sz_slice vector_b64(json_t *value, struct sz_pool *pool)
{
    cr_assert(json_is_string(value));
    struct sz_slice text = sz_slice(json_string_value(value), json_string_length(value));
    char *out = sz_pool_alloc(pool, SZ_B64_BYTES(text.n) + 1);
    size_t n = 0;
    cr_assert_eq(sz_b64_decode(text, out, &n), 0);
    return sz_slice(out, n);
}

struct sz_slice vector_bytes(json_t *vector, const char *member, struct sz_pool *pool)
{
    return vector_b64(json_object_get(vector, member), pool);
}

static FILE *open_class(const char *class_name)
{
    const char *root = getenv("SUBZERO_CONFORMANCE");
    char path[4096];
    snprintf(path, sizeof(path), "%s/vectors/%s.jsonl", root != NULL ? root : SZ_SOURCE_DIR "/../shared/conformance",
             class_name);
    return fopen(path, "r");
}

bool vectors_present(const char *class_name)
{
    FILE *file = open_class(class_name);
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

struct count {
    size_t must, policy, must_failed, policy_differs;
};

static void run_one(const char *label, json_t *vector, vector_fn *passes, struct count *count)
{
    struct sz_arena arena;
    struct sz_text got = {""};
    sz_arena_init(&arena);
    bool ok = passes(vector, &arena.pool, &got);
    sz_arena_fini(&arena);
    bool must = strcmp(vector_text(vector, "level"), "must") == 0;
    count->must += must;
    count->policy += !must;
    if (ok)
        return;
    count->must_failed += must;
    count->policy_differs += !must;
    fprintf(stderr, "%s: %s mismatch: %s: expected %s, got %s: %s\n", label, must ? "MUST" : "policy",
            vector_text(vector, "id"), vector_text(vector, "expect"), got.s, vector_text(vector, "reason"));
}

void vectors_run_as(const char *label, const char *class_name, vector_fn *passes)
{
    FILE *file = open_class(class_name);
    if (file == NULL)
        cr_skip_test("no %s vectors in $SUBZERO_CONFORMANCE", class_name);
    char *line = NULL;
    size_t room = 0;
    struct count count = {0};
    ssize_t n;
    while ((n = getline(&line, &room, file)) > 0) {
        json_t *vector = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        cr_assert_not_null(vector);
        run_one(label, vector, passes, &count);
        json_decref(vector);
    }
    free(line);
    fclose(file);
    fprintf(stderr, "%s: %zu must vectors, %zu of them fail; %zu policy vectors, we differ in %zu\n", label, count.must,
            count.must_failed, count.policy, count.policy_differs);
    cr_assert_gt(count.must + count.policy, 0);
    cr_assert_eq(count.must_failed, 0, "%s: %zu must vectors fail", label, count.must_failed);
}

void vectors_run(const char *class_name, vector_fn *passes)
{
    vectors_run_as(class_name, class_name, passes);
}
