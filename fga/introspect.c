/*
 * What a provider says about a token (RFC 7662, or a userinfo endpoint), as an identity.  Read as strictly as a token
 * is, and judged by the same rules as a JWT's claims, so that the same policy gives the same verdict either way.
 *
 *   "no"             active: false (introspection), 401 or 403 (userinfo), or a claim that the issuer's settings refuse
 *   "could not ask"  everything that is no clear answer: another status, no JSON, no `active`
 */
#include "fga/introspect.h"

#include <errno.h>

#include "fga/jwt_claims.h"
#include "fga/verify_thread.h"

static bool is_json(struct sz_slice type)
{
    struct sz_slice name;
    return type.p != NULL && sz_split(&type, ';', &name) && sz_ieq(sz_trim(name), SZ_S("application/json"));
}

static int nonsense(struct sz_verified *out, const char *what)
{
    sz_jwt_deny(out, SZ_REASON_identity_unavailable, "the provider's answer %s", what);
    return -EPROTO;
}

static int judge(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_json_node *iss = sz_claim(in, SZ_S("iss"));
    if (iss != NULL && (iss->type != SZ_JSON_STRING || !sz_eq(sz_json_slice(in->tree, iss), in->issuer->conf->issuer)))
        sz_jwt_deny(out, SZ_REASON_wrong_issuer, "the provider speaks of another issuer");
    else
        sz_jwt_claims(in, id, out);
    return 0;
}

static int judge_introspection(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_json_node *active = sz_claim(in, SZ_S("active"));
    if (sz_json_is(active, SZ_JSON_FALSE)) {
        sz_jwt_deny(out, SZ_REASON_invalid_token, "the provider says that it is not active");
        return 0;
    }
    return sz_json_is(active, SZ_JSON_TRUE) ? judge(in, id, out) : nonsense(out, "has no true or false 'active'");
}

static int judge_userinfo(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice sub = sz_json_get_string(in->tree, in->tree->v, SZ_S("sub"));
    return sub.n > 0 ? judge(in, id, out) : nonsense(out, "has no 'sub'");
}

static void begin(const struct sz_issuer *issuer, int index, struct sz_identity *id, struct sz_verified *out)
{
    memset(out, 0, sizeof(*out));
    out->reason = SZ_REASON_identity_unavailable;
    out->issuer = index;
    sz_identity_init(id);
    id->kind = SZ_CREDENTIAL_OPAQUE;
    id->issuer = issuer->id;
    id->generation = issuer->generation;
}

int sz_introspection_read(const struct sz_issuers *issuers, int index, const struct sz_introspected *answer,
                          struct sz_wall now, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_issuer *issuer = &issuers->v[index];
    struct sz_json_tree *tree = &sz_verify_thread()->tree;
    bool userinfo = issuer->conf->userinfo.on;
    char text[SZ_JSON_TEXT_MAX];
    begin(issuer, index, id, out);
    if (userinfo && (answer->status == 401 || answer->status == 403)) {
        sz_jwt_deny(out, SZ_REASON_invalid_token, "the provider refuses it");
        return 0;
    }
    if (answer->status != 200) {
        sz_jwt_deny(out, SZ_REASON_identity_unavailable, "the provider answers %d", answer->status);
        return -EAGAIN;
    }
    if (!is_json(answer->content_type))
        return nonsense(out, "is not of type application/json");
    if (answer->body.n > sizeof(text))
        return nonsense(out, "is too long");
    memcpy(text, answer->body.p, answer->body.n);
    struct sz_claims_in in = {
        .issuers = issuers, .issuer = issuer, .tree = tree, .now = now, .told = true, .no_audience = userinfo};
    int rc;
    if (sz_json_read(tree, text, answer->body.n) != 0 || tree->v[0].type != SZ_JSON_OBJECT)
        rc = nonsense(out, "is not an object of strict JSON, or has a name twice");
    else
        rc = userinfo ? judge_userinfo(&in, id, out) : judge_introspection(&in, id, out);
    sz_wipe(text, answer->body.n);
    return rc;
}
