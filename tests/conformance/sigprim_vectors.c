/* Class sigprim: the bare signature primitives, through the key reader. */
#include <criterion/criterion.h>

#include "conformance/vectors.h"
#include "fga/jws_verify.h"

static struct sz_slice from_hex(const char *hex, struct sz_pool *pool)
{
    size_t n = strlen(hex) / 2;
    char *bytes = sz_pool_alloc(pool, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return sz_slice(bytes, n);
}

static bool verifies(const struct sz_jwks *keys, json_t *vector, struct sz_pool *pool)
{
    enum sz_alg alg = sz_alg_from(sz_cstr(vector_text(vector, "alg")));
    if (keys->n != 1 || alg == SZ_ALG_COUNT || (keys->keys[0].algs >> alg & 1) == 0)
        return false;
    int rc = sz_jws_check(&keys->keys[0], alg, from_hex(vector_text(vector, "msg_hex"), pool),
                          from_hex(vector_text(vector, "sig_hex"), pool));
    cr_assert(rc >= 0);
    return rc == 0;
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    bool either, want = vector_expects_accept(vector, &either);
    char *jwk = json_dumps(json_object_get(vector, "key"), JSON_COMPACT);
    struct sz_slice document = sz_pool_printf(pool, "{\"keys\":[%s]}", jwk);
    struct sz_jwks *keys = NULL;
    bool accepted = sz_jwks_parse(document, 0, SZ_JWKS_ANY, NULL, &keys, got) == 0 && verifies(keys, vector, pool);
    sz_text_set(got, accepted ? "accept" : "reject");
    sz_jwks_unref(&keys);
    free(jwk);
    return either || accepted == want;
}

Test(vectors, sigprim, .timeout = 60)
{
    vectors_run("sigprim", passes);
}
