/*
 * The compact serialisation, and which key a token may be checked with.  The algorithm named by the
 * token only ever selects among keys that can do it; it never turns one kind of key into
 * another.
 */
#include <errno.h>

#include "fga/jws_verify.h"
#include "subzero/crypto.h"

int sz_jws_split(struct sz_slice token, struct sz_jws *jws)
{
    ptrdiff_t first = sz_find_byte(token, '.');
    if (first < 0)
        return -EINVAL;
    struct sz_slice rest = sz_from(token, (size_t)first + 1);
    ptrdiff_t second = sz_find_byte(rest, '.');
    if (second < 0)
        return -EINVAL;
    jws->header = sz_sub(token, 0, (size_t)first);
    jws->payload = sz_sub(rest, 0, (size_t)second);
    jws->signature = sz_from(rest, (size_t)second + 1);
    jws->input = sz_sub(token, 0, (size_t)(first + 1 + second));
    return sz_find_byte(jws->signature, '.') < 0 ? 0 : -EINVAL;
}

int sz_jws_payload(const struct sz_jws *jws, const struct sz_jose *jose, char *out, size_t *out_n)
{
    int rc = sz_b64url_decode(jws->payload, out, out_n);
    if (rc != 0)
        return rc;
    /* cty "JWT" on plain claims is a common slip and harmless; on anything else it announces a nested token. */
    return jose->nested && !sz_starts_with(sz_trim(sz_slice(out, *out_n)), SZ_S("{")) ? -EINVAL : 0;
}

int sz_jws_verify(const struct sz_jwks *keys, const struct sz_jose *jose, const struct sz_jws *jws,
                  const struct sz_jwk **verified_by)
{
    const struct sz_jwk *found[SZ_JWS_TRIES_MAX];
    uint8_t signature[SZ_RSA_BYTES_MAX];
    size_t n;
    bool known;
    if (!jose->alg_known)
        return SZ_JWS_MISFIT;
    if (SZ_B64_BYTES(jws->signature.n) > sizeof(signature) || sz_b64url_decode(jws->signature, signature, &n) != 0)
        return SZ_JWS_BAD;
    size_t candidates = sz_jwks_find(keys, jose->kid, jose->alg, found, SZ_JWS_TRIES_MAX, &known);
    if (candidates == 0)
        return known && jose->kid.p != NULL ? SZ_JWS_MISFIT : SZ_JWS_NO_KEY;
    for (size_t i = 0; i < candidates && i < SZ_JWS_TRIES_MAX; i++) {
        int rc = sz_jws_check(found[i], jose->alg, jws->input, sz_slice(signature, n));
        if (rc != SZ_JWS_BAD) {
            *verified_by = found[i];
            return rc;
        }
    }
    return SZ_JWS_BAD;
}
