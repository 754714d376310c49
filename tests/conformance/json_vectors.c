/*
 * JSONTestSuite through what every JSON reader here uses: sz_json_check, then jansson.
 * A `must` mismatch fails, a `policy` mismatch is printed and counted.  The data is in
 * $SUBZERO_CONFORMANCE/vectors/json.jsonl; without it the test is skipped.
 */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "subzero/crypto.h"

static FILE *open_vectors(void)
{
    const char *root = getenv("SUBZERO_CONFORMANCE");
    char path[4096];
    snprintf(path, sizeof(path), "%s/vectors/json.jsonl", root != NULL ? root : SZ_SOURCE_DIR "/../shared/conformance");
    return fopen(path, "r");
}

static bool accepts(struct sz_slice text)
{
    size_t at;
    if (sz_json_check(text, 2048, &at) != 0) {
        return false;
    }
    json_t *value = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    json_decref(value);
    return value != NULL;
}

static const char *field(const json_t *vector, const char *name)
{
    const char *s = json_string_value(json_object_get(vector, name));
    cr_assert_not_null(s, "a vector without \"%s\"", name);
    return s;
}

/* True when the verdict is the expected one, or either will do. */
static bool agrees(const json_t *vector)
{
    struct sz_slice input = sz_cstr(field(vector, "input_b64"));
    char *text = sz_xmalloc(SZ_B64_BYTES(input.n));
    size_t n;
    cr_assert_eq(sz_b64_decode(input, text, &n), 0);
    bool accepted = accepts(sz_slice(text, n));
    free(text);
    const char *expect = field(vector, "expect");
    return strcmp(expect, "either") == 0 || accepted == (strcmp(expect, "accept") == 0);
}

Test(json, vectors, .timeout = 60)
{
    FILE *file = open_vectors();
    if (file == NULL) {
        cr_skip_test("no json vectors in $SUBZERO_CONFORMANCE");
    }
    char *line = NULL;
    size_t room = 0, total = 0, policy = 0;
    while (getline(&line, &room, file) > 0) {
        json_t *vector = json_loads(line, 0, NULL);
        cr_assert_not_null(vector);
        total++;
        if (!agrees(vector)) {
            bool must = strcmp(field(vector, "level"), "must") == 0;
            fprintf(stderr, "json: %s mismatch: %s\n", field(vector, "level"), field(vector, "id"));
            cr_expect_not(must, "%s: expected %s", field(vector, "id"), field(vector, "expect"));
            policy += !must;
        }
        json_decref(vector);
    }
    free(line);
    fclose(file);
    fprintf(stderr, "json: %zu vectors, %zu policy mismatches\n", total, policy);
    cr_expect_gt(total, 0);
}
