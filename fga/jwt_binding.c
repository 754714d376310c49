/*
 * Sender-constrained tokens: what the confirmation claim (RFC 7800) asks for.  Only x5t#S256 (RFC 8705) can be
 * proven here; anything else, and an empty confirmation too, marks the token as bound by a
 * method that we cannot check, so that the request is refused instead of waved through as a bearer.
 */
#include "fga/jwt_claims.h"
#include "subzero/crypto.h"

static bool read_x5t(struct sz_slice text, uint8_t out[32])
{
    size_t n;
    return text.n == SZ_B64_LEN(32) && sz_b64url_decode(text, out, &n) == 0;
}

/* Keycloak marks a DPoP token by a `typ` claim, others by `token_type`. */
static bool says_dpop(const struct sz_claims_in *in, struct sz_slice name)
{
    return sz_ieq(sz_json_get_string(in->tree, in->tree->v, name), SZ_S("DPoP"));
}

bool sz_jwt_binding(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_json_node *cnf = sz_claim(in, SZ_S("cnf"));
    if (in->issuer->conf->ignore_cnf)
        return true;
    if (says_dpop(in, SZ_S("typ")) || says_dpop(in, SZ_S("token_type")))
        id->flags |= SZ_ID_SENDER_BOUND | SZ_ID_CNF_OTHER;
    if (cnf == NULL)
        return true;
    if (cnf->type != SZ_JSON_OBJECT)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'cnf' is not an object");
    id->flags |= SZ_ID_SENDER_BOUND;
    bool has_x5t = sz_json_get(in->tree, cnf, SZ_S("x5t#S256")) != NULL;
    if (has_x5t && !read_x5t(sz_json_get_string(in->tree, cnf, SZ_S("x5t#S256")), id->x5t))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'cnf' has an x5t#S256 that is no SHA-256 thumbprint");
    if (has_x5t)
        id->flags |= SZ_ID_HAS_X5T;
    if (!has_x5t || sz_json_members(in->tree, cnf) != 1)
        id->flags |= SZ_ID_CNF_OTHER;
    return true;
}
