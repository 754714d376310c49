/*
 * Logout tokens.  Signed as access tokens are and by the same keys, so what tells them apart has to be looked at: the
 * event, the client as audience, no nonce (an ID token could otherwise be sent here), `typ` where there is one.
 */
#include "fga/jwt_claims.h"
#include "fga/verify_thread.h"
#include "subzero/crypto.h"
#include "subzero/revocation.h"

#define EVENT SZ_S("http://schemas.openid.net/event/backchannel-logout")
enum { AGE_MAX = 600 }; /* seconds since `iat`, where no `exp` bounds it */

static bool is_one_of(const struct sz_claims_in *in, const struct sz_json_node *value)
{
    const struct sz_strings *clients = &in->issuer->conf->logout.client_ids;
    for (size_t i = 0; i < clients->n && value->type == SZ_JSON_STRING; i++) {
        if (sz_eq(sz_json_slice(in->tree, value), clients->v[i]))
            return true;
    }
    return false;
}

static bool check_audience(const struct sz_claims_in *in, struct sz_verified *out)
{
    const struct sz_json_node *aud = sz_claim(in, SZ_S("aud")), *item = NULL;
    bool fits = aud != NULL && is_one_of(in, aud);
    while (!fits && aud != NULL && aud->type == SZ_JSON_ARRAY && (item = sz_json_next(in->tree, aud, item)) != NULL)
        fits = is_one_of(in, item);
    return fits || sz_jwt_deny(out, SZ_REASON_wrong_audience, "'aud' is none of backchannel_logout.client_ids");
}

static bool check_kind(const struct sz_claims_in *in, struct sz_verified *out)
{
    const struct sz_json_node *events = sz_claim(in, SZ_S("events"));
    const struct sz_json_node *event =
        events != NULL && events->type == SZ_JSON_OBJECT ? sz_json_get(in->tree, events, EVENT) : NULL;
    struct sz_slice typ = in->jose->typ;
    if (typ.p != NULL && !sz_ieq(typ, SZ_S("logout+jwt")) && !sz_ieq(typ, SZ_S("application/logout+jwt")) &&
        !sz_ieq(typ, SZ_S("JWT")))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'typ' is another kind of token");
    if (event == NULL || event->type != SZ_JSON_OBJECT)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'events' does not say that it is a logout");
    return sz_claim(in, SZ_S("nonce")) == NULL ||
           sz_jwt_deny(out, SZ_REASON_invalid_token, "a logout token has no 'nonce'");
}

/* An integer, or a denial.  Absent: only where it may be, and *there says so. */
static bool read_seconds(const struct sz_claims_in *in, struct sz_slice name, bool needed, bool *there, int64_t *value,
                         struct sz_verified *out)
{
    const struct sz_json_node *claim = sz_claim(in, name);
    *there = claim != NULL;
    if (claim == NULL && !needed)
        return true;
    if (claim != NULL && claim->type == SZ_JSON_NUMBER && sz_json_integer(in->tree, claim, value) == 0 && *value >= 0 &&
        *value < INT64_C(1) << 40)
        return true;
    return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is no time in seconds", name.p);
}

static bool check_times(const struct sz_claims_in *in, struct sz_logout *logout, struct sz_verified *out)
{
    int64_t now = sz_wall_seconds(in->now), leeway = in->issuer->conf->leeway.us / 1000000, exp = 0;
    bool has_iat, has_exp;
    if (!read_seconds(in, SZ_S("iat"), true, &has_iat, &logout->iat, out) ||
        !read_seconds(in, SZ_S("exp"), false, &has_exp, &exp, out))
        return false;
    logout->until = (has_exp ? exp : logout->iat + AGE_MAX) + leeway;
    if (now >= logout->until)
        return sz_jwt_deny(out, SZ_REASON_expired_token, "expired");
    return logout->iat <= now + leeway || sz_jwt_deny(out, SZ_REASON_invalid_token, "'iat' is in the future");
}

static bool read_text(const struct sz_claims_in *in, struct sz_slice name, char *text, size_t *n,
                      struct sz_verified *out)
{
    const struct sz_json_node *claim = sz_claim(in, name);
    *n = 0;
    if (claim == NULL)
        return true;
    struct sz_slice value = claim->type == SZ_JSON_STRING ? sz_json_slice(in->tree, claim) : SZ_NONE;
    if (value.n == 0 || value.n > SZ_LOGOUT_TEXT)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is no string of 1 to %d bytes", name.p, SZ_LOGOUT_TEXT);
    memcpy(text, value.p, value.n);
    *n = value.n;
    return true;
}

static bool read_who(const struct sz_claims_in *in, struct sz_logout *logout, struct sz_verified *out)
{
    char jti[SZ_LOGOUT_TEXT];
    size_t jti_n;
    if (!read_text(in, SZ_S("sub"), logout->sub, &logout->sub_n, out) ||
        !read_text(in, SZ_S("sid"), logout->sid, &logout->sid_n, out) || !read_text(in, SZ_S("jti"), jti, &jti_n, out))
        return false;
    if (logout->sub_n == 0 && logout->sid_n == 0)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "neither 'sub' nor 'sid' is there");
    if (jti_n == 0)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'jti' is missing");
    logout->jti = sz_issuer_claim_hash(in->issuer->id, SZ_S("logout"), sz_slice(jti, jti_n));
    return true;
}

static int judge(struct sz_claims_in *in, struct sz_issuer *issuer, const struct sz_jws *jws, struct sz_logout *logout,
                 struct sz_verified *out)
{
    struct sz_identity id;
    sz_identity_init(&id);
    in->issuer = issuer;
    out->issuer = (int)(issuer - in->issuers->v);
    int rc = sz_jwt_signature(issuer, in->jose, jws, &id, out);
    if (rc != 0 || id.key_id == 0)
        return rc;
    if (check_kind(in, out) && check_audience(in, out) && check_times(in, logout, out) && read_who(in, logout, out))
        out->reason = SZ_REASON_allowed;
    return 0;
}

/* Of several issuers with one `iss`, the first that has a logout endpoint here. */
static struct sz_issuer *find(const struct sz_issuers *issuers, struct sz_slice iss, struct sz_slice path)
{
    size_t first = 0, n = iss.p != NULL ? sz_issuers_find(issuers, iss, &first) : 0;
    for (size_t i = 0; i < n; i++) {
        struct sz_issuer *issuer = &issuers->v[issuers->by_iss[first + i]];
        if (issuer->conf->logout.path.p != NULL && sz_eq(issuer->conf->logout.path, path))
            return issuer;
    }
    return NULL;
}

int sz_logout_verify(const struct sz_issuers *issuers, struct sz_slice path, struct sz_slice token, struct sz_wall now,
                     struct sz_logout *out, struct sz_verified *verdict)
{
    char bytes[SZ_B64_BYTES(SZ_TOKEN_MAX)];
    struct sz_buf payload = {.p = bytes};
    struct sz_claims_in in = {.issuers = issuers, .now = now};
    struct sz_jws jws;
    int rc = 0;
    memset(out, 0, sizeof(*out));
    sz_jwt_begin(verdict, SZ_REASON_malformed_token);
    if (sz_jwt_open(token, &jws, &in, &payload, verdict)) {
        struct sz_issuer *issuer = find(issuers, sz_json_get_string(in.tree, in.tree->v, SZ_S("iss")), path);
        if (issuer == NULL)
            sz_jwt_deny(verdict, SZ_REASON_wrong_issuer, "'iss' is no issuer with a logout endpoint here");
        else
            rc = judge(&in, issuer, &jws, out, verdict);
    }
    sz_wipe(bytes, payload.n);
    return rc;
}
