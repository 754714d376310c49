/* JSONTestSuite through what every JSON reader here uses: sz_json_check, then jansson. */
#include <criterion/criterion.h>

#include "conformance/vectors.h"
#include "subzero/crypto.h"

static bool accepts(struct sz_slice text)
{
    size_t at;
    if (sz_json_check(text, 2048, &at) != 0)
        return false;
    json_t *value = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    json_decref(value);
    return value != NULL;
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    bool either, want = vector_expects_accept(vector, &either);
    bool accepted = accepts(vector_bytes(vector, "input_b64", pool));
    sz_text_set(got, accepted ? "accept" : "reject");
    return either || accepted == want;
}

Test(vectors, json, .timeout = 60)
{
    vectors_run("json", passes);
}
