/*
 * Sender-constrained tokens: what the confirmation claim (RFC 7800) asks for.  Only x5t#S256 (RFC 8705) can be
 * proven here; anything else, and an empty confirmation too, marks the token as bound by a
 * method that we cannot check, so that the request is refused instead of waved through as a bearer.
 */
#include "fga/jwt_claims.h"
#include "subzero/crypto.h"

static bool read_x5t(const json_t *value, uint8_t out[32])
{
    size_t n;
    return json_is_string(value) && json_string_length(value) == SZ_B64_LEN(32) &&
           sz_b64url_decode(sz_json_slice(value), out, &n) == 0;
}

/* Keycloak marks a DPoP token by a `typ` claim, others by `token_type`. */
static bool says_dpop(const json_t *claims, const char *name)
{
    const json_t *value = json_object_get(claims, name);
    return json_is_string(value) && sz_ieq(sz_json_slice(value), SZ_S("DPoP"));
}

bool sz_jwt_binding(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const json_t *cnf = json_object_get(in->claims, "cnf");
    if (in->issuer->conf->ignore_cnf)
        return true;
    if (says_dpop(in->claims, "typ") || says_dpop(in->claims, "token_type"))
        id->flags |= SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER;
    if (cnf == NULL)
        return true;
    if (!json_is_object(cnf))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'cnf' is not an object");
    id->flags |= SZ_ID_SENDER_BOUND;
    const json_t *x5t = json_object_get(cnf, "x5t#S256");
    if (x5t != NULL && !read_x5t(x5t, id->x5t))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'cnf' has an x5t#S256 that is no SHA-256 thumbprint");
    if (x5t != NULL)
        id->flags |= SZ_ID_HAS_X5T;
    if (x5t == NULL || json_object_size(cnf) != 1)
        id->flags |= SZ_ID_CNF_OTHER;
    return true;
}
