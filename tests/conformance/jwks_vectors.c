/* Class jwks: which keys of a document may verify anything. */
#include <criterion/criterion.h>

#include "conformance/vectors.h"
#include "fga/jwks.h"

static bool same_keys(const struct sz_jwks *keys, const json_t *usable)
{
    if (keys->n != json_array_size(usable))
        return false;
    for (size_t i = 0; i < keys->n; i++) {
        if (json_integer_value(json_array_get(usable, i)) != (json_int_t)keys->keys[i].index)
            return false;
    }
    return true;
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    bool either, accept = vector_expects_accept(vector, &either);
    struct sz_jwks *keys = NULL;
    int rc = sz_jwks_parse(vector_bytes(vector, "input_b64", pool), 0, SZ_JWKS_ANY, NULL, &keys, got);
    bool ok = rc == 0 ? same_keys(keys, json_object_get(vector, "usable")) : !accept;
    if (rc == 0)
        sz_text_set(got, "%zu usable keys", keys->n);
    sz_jwks_unref(&keys);
    return ok;
}

Test(vectors, jwks, .timeout = 60)
{
    vectors_run("jwks", passes);
}
