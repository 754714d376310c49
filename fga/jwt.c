/*
 * From a compact token to a validated identity, in the order that gives an attacker the least work of ours: shape,
 * header, issuer, algorithm, key, signature, claims.  The payload has to be read before the signature is checked,
 * because `iss` decides whose keys count; nothing else of it is believed before.
 */
#include <errno.h>

#include "fga/jwt_claims.h"
#include "fga/verify_thread.h"
#include "subzero/crypto.h"

static void deny_key(int rc, struct sz_verified *out)
{
    switch (rc) {
    case SZ_JWS_BAD:
        sz_jwt_deny(out, SZ_REASON_invalid_token, "the signature does not verify");
        break;
    case SZ_JWS_MISFIT:
        sz_jwt_deny(out, SZ_REASON_algorithm_not_allowed, "the key with that kid is not for that algorithm");
        break;
    default:
        out->heals = true;
        sz_jwt_deny(out, SZ_REASON_invalid_token, "no key with that kid, or for that algorithm");
        break;
    }
}

int sz_jwt_signature(struct sz_issuer *issuer, const struct sz_jose *jose, const struct sz_jws *jws,
                     struct sz_identity *id, struct sz_verified *out)
{
    if (!jose->alg_known || (issuer->conf->algorithms >> jose->alg & 1) == 0) {
        sz_jwt_deny(out, SZ_REASON_algorithm_not_allowed, "the algorithm is not on the issuer's list");
        return 0;
    }
    struct sz_jwks *keys = sz_key_slot_keys(issuer->slot);
    const struct sz_jwk *key = NULL;
    int rc = SZ_JWS_NO_KEY;
    if (keys->n == 0) {
        out->heals = out->missing_key = true;
        sz_jwt_deny(out, SZ_REASON_identity_unavailable, "the issuer has no keys");
    } else {
        rc = sz_jws_verify(keys, jose, jws, &key);
        /* Without a kid, the key that made the signature may just not be known yet. */
        out->missing_key = rc == SZ_JWS_NO_KEY || (rc == SZ_JWS_BAD && jose->kid.p == NULL);
        if (rc > 0)
            deny_key(rc, out);
    }
    if (rc == 0)
        id->key_id = key->id;
    if (out->missing_key && jose->kid.p != NULL)
        out->kid = sz_issuer_claim_hash(issuer->id, SZ_S("kid"), jose->kid);
    sz_jwks_unref(&keys);
    return rc < 0 ? rc : 0;
}

void sz_jwt_begin(struct sz_verified *out, enum sz_reason reason)
{
    out->reason = reason;
    out->heals = out->missing_key = out->ask = false;
    out->heals_at = 0;
    out->issuer = -1;
    out->kid = 0;
    out->detail.s[0] = '\0';
}

static int judge(const struct sz_claims_in *in, struct sz_issuer *issuer, const struct sz_jws *jws,
                 struct sz_identity *id, struct sz_verified *out)
{
    SZ_ASSERT(in->jose != NULL);
    sz_identity_init(id);
    sz_jwt_begin(out, SZ_REASON_malformed_token);
    out->issuer = (int)(issuer - in->issuers->v);
    if (!sz_issuer_verifies(issuer->conf)) {
        out->ask = true;
        sz_jwt_deny(out, SZ_REASON_identity_unavailable, "the issuer is asked about its tokens");
        return 0;
    }
    int rc = sz_jwt_signature(issuer, in->jose, jws, id, out);
    if (rc != 0 || id->key_id == 0)
        return rc;
    sz_jose_keep(jws->header, in->jose);
    id->kind = SZ_CREDENTIAL_JWT;
    id->issuer = issuer->id;
    id->generation = sz_issuer_generation_now(issuer);
    sz_jwt_claims(in, id, out);
    return 0;
}

/*
 * Several issuers may share one `iss` (shared_subjects): the first that allows the token has it.  If none does, a
 * verdict behind a good signature says more than one before it.
 */
static int judge_all(const struct sz_issuers *issuers, struct sz_claims_in *in, const struct sz_jws *jws,
                     struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice iss = sz_json_get_string(in->tree, in->tree->v, SZ_S("iss"));
    size_t first = 0, n = iss.p != NULL ? sz_issuers_find(issuers, iss, &first) : 0;
    struct sz_verified one;
    if (n == 0)
        sz_jwt_deny(out, SZ_REASON_wrong_issuer, "'iss' is no configured issuer");
    for (size_t i = 0; i < n; i++) {
        struct sz_issuer *issuer = &issuers->v[issuers->by_iss[first + i]];
        in->issuer = issuer;
        int rc = judge(in, issuer, jws, id, &one);
        if (rc != 0)
            return rc;
        if (i == 0 || id->key_id != 0)
            *out = one;
        if (out->reason == SZ_REASON_allowed)
            break;
    }
    return 0;
}

static bool read_payload(const struct sz_jws *jws, struct sz_claims_in *in, struct sz_buf *payload,
                         struct sz_verified *out)
{
    struct sz_json_tree *tree = &sz_verify_thread()->tree;
    if (sz_jws_payload(jws, in->jose, payload->p, &payload->n) != 0)
        return sz_jwt_deny(out, SZ_REASON_malformed_token,
                           "the payload is not base64url without padding, or a token itself");
    if (sz_json_read(tree, payload->p, payload->n) != 0 || tree->v[0].type != SZ_JSON_OBJECT)
        return sz_jwt_deny(out, SZ_REASON_malformed_token,
                           "the payload is not an object of strict JSON, or has a name twice");
    in->tree = tree;
    return true;
}

bool sz_jwt_open(struct sz_slice token, struct sz_jws *jws, struct sz_claims_in *in, struct sz_buf *payload,
                 struct sz_verified *out)
{
    if (token.n > SZ_TOKEN_MAX)
        return sz_jwt_deny(out, SZ_REASON_malformed_token, "longer than %d bytes", SZ_TOKEN_MAX);
    if (sz_jws_split(token, jws) != 0)
        return sz_jwt_deny(out, SZ_REASON_malformed_token, "not three segments");
    if (sz_jose_get(jws->header, &in->jose, &out->detail) != 0)
        return false;
    return read_payload(jws, in, payload, out);
}

int sz_jwt_verify(const struct sz_issuers *issuers, struct sz_slice token, struct sz_wall now,
                  struct sz_identity *identity, struct sz_verified *out)
{
    char bytes[SZ_B64_BYTES(SZ_TOKEN_MAX)];
    struct sz_buf payload = {.p = bytes};
    struct sz_claims_in in = {.issuers = issuers, .now = now};
    struct sz_jws jws;
    int rc = 0;
    sz_jwt_begin(out, SZ_REASON_malformed_token);
    if (sz_jwt_open(token, &jws, &in, &payload, out))
        rc = judge_all(issuers, &in, &jws, identity, out);
    sz_wipe(bytes, payload.n);
    return rc;
}

struct sz_slice sz_token_signed(struct sz_slice token)
{
    const char *dot = sz_credential_kind(token) == SZ_CREDENTIAL_JWT ? memrchr(token.p, '.', token.n) : NULL;
    return dot == NULL ? token : sz_slice(token.p, (size_t)(dot - token.p));
}

enum sz_credential_kind sz_credential_kind(struct sz_slice token)
{
    struct sz_jws jws;
    if (token.n == 0)
        return SZ_CREDENTIAL_NONE;
    if (sz_jws_split(token, &jws) != 0 || !sz_jose_is_object(jws.header))
        return SZ_CREDENTIAL_OPAQUE;
    return SZ_CREDENTIAL_JWT;
}
