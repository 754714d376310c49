/*
 * Class jws: the signature layer alone, below the claims.  The allow list and the key set (shared secrets
 * included) are those of each vector.
 */
#include <criterion/criterion.h>

#include "conformance/vectors.h"
#include "fga/jws_verify.h"

static uint32_t allowed_algs(const json_t *list)
{
    uint32_t algs = 0;
    if (!json_is_array(list))
        return SZ_ALGS_ALL;
    for (size_t i = 0; i < json_array_size(list); i++)
        algs |= 1u << sz_alg_from(sz_cstr(json_string_value(json_array_get(list, i))));
    return algs;
}

static bool verifies(json_t *vector, struct sz_jwks *keys, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_jws jws;
    struct sz_jose jose;
    const struct sz_jwk *key;
    const json_t *token = json_object_get(vector, "token");
    uint32_t algs = allowed_algs(json_object_get(vector, "algs"));
    size_t n;
    if (sz_jws_split(sz_slice(json_string_value(token), json_string_length(token)), &jws) != 0)
        return false;
    if (sz_jose_parse(jws.header, &jose, got) != 0)
        return false;
    if (!jose.alg_known || (algs >> jose.alg & 1) == 0)
        return false;
    if (sz_jws_payload(&jws, &jose, sz_pool_alloc(pool, jws.payload.n + 1), &n) != 0)
        return false;
    return sz_jws_verify(keys, &jose, &jws, &key) == 0;
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    bool either, want = vector_expects_accept(vector, &either);
    char *document = json_dumps(json_object_get(vector, "jwks"), JSON_COMPACT);
    struct sz_jwks *keys = NULL;
    bool accepted =
        sz_jwks_parse(sz_cstr(document), 0, SZ_JWKS_ANY, NULL, &keys, got) == 0 && verifies(vector, keys, pool, got);
    sz_text_set(got, accepted ? "accept" : "reject");
    sz_jwks_unref(&keys);
    free(document);
    return either || accepted == want;
}

Test(vectors, jws, .timeout = 120)
{
    vectors_run("jws", passes);
}
