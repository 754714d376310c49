/*
 * The claims of a token whose signature is good.  Each rule is one function that reads its claims, denies or fills
 * its part of the identity.  A registered claim of the wrong type is refused rather than treated as
 * absent: an issuer that writes "exp": "never" did mean something.
 *
 * The detail of a denial names claims, never their values.
 */
#include "fga/jwt_claims.h"

#include <errno.h>
#include <stdio.h>

#include "subzero/crypto.h"
#include "subzero/revocation.h"

#define DATE_MAX (INT64_C(1) << 53) /* the last integer that every JSON reader agrees on */

bool sz_jwt_deny(struct sz_verified *out, enum sz_reason reason, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(out->detail.s, sizeof(out->detail.s), fmt, args);
    va_end(args);
    out->reason = reason;
    return false;
}

static bool too_big(struct sz_verified *out)
{
    return sz_jwt_deny(out, SZ_REASON_malformed_token, "subject and claims do not fit into %d bytes", SZ_IDENTITY_TEXT);
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

struct date {
    bool there, fraction;
    int64_t seconds; /* rounded down */
};

/* NumericDate (RFC 7519 section 2): any JSON number, within reason. */
static bool read_date(const struct sz_claims_in *in, struct sz_slice name, struct date *date, struct sz_verified *out)
{
    const struct sz_json_node *value = sz_claim(in, name);
    double real;
    *date = (struct date){.there = value != NULL};
    if (value == NULL)
        return true;
    if (value->type != SZ_JSON_NUMBER)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is not a time in seconds", name.p);
    int rc = sz_json_integer(in->tree, value, &date->seconds);
    if (rc == -EINVAL && sz_json_real(in->tree, value, &real) == 0 && real <= (double)DATE_MAX &&
        real >= -(double)DATE_MAX) {
        date->seconds = (int64_t)real;
        date->seconds -= (double)date->seconds > real; /* the cast rounds towards zero */
        date->fraction = (double)date->seconds != real;
        rc = 0;
    }
    if (rc != 0 || date->seconds > DATE_MAX || date->seconds < -DATE_MAX)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is out of range", name.p);
    return true;
}

/* Microseconds of `seconds` moved by `by`, saturating. */
static int64_t moved(int64_t seconds, int64_t by)
{
    int64_t us;
    if (__builtin_mul_overflow(seconds, INT64_C(1000000), &us) || __builtin_add_overflow(us, by, &us))
        return seconds > 0 ? INT64_MAX : INT64_MIN;
    return us;
}

static bool deny_early(const struct sz_claims_in *in, const char *name, int64_t seconds, struct sz_verified *out)
{
    out->heals = true;
    out->heals_at = seconds - in->issuer->conf->leeway.us / 1000000;
    return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is in the future", name);
}

static bool check_times(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    int64_t leeway = in->issuer->conf->leeway.us;
    struct date exp, nbf, iat;
    if (!read_date(in, SZ_S("exp"), &exp, out) || !read_date(in, SZ_S("nbf"), &nbf, out) ||
        !read_date(in, SZ_S("iat"), &iat, out))
        return false;
    if (!exp.there && in->told)
        exp.seconds = DATE_MAX; /* the provider is asked again soon: the cache's own time ends the fact */
    else if (!exp.there)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'exp' is missing");
    if (in->now.us >= moved(exp.seconds, leeway))
        return sz_jwt_deny(out, SZ_REASON_expired_token, "expired");
    nbf.seconds += nbf.fraction; /* up: not a moment too early */
    if (nbf.there && in->now.us < moved(nbf.seconds, -leeway))
        return deny_early(in, "nbf", nbf.seconds, out);
    if (iat.there && in->now.us < moved(iat.seconds, -leeway))
        return deny_early(in, "iat", iat.seconds, out);
    int64_t lifetime = in->issuer->conf->max_lifetime.us;
    if (lifetime != 0 && !exp.there)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'exp' is missing, and max_lifetime needs it");
    if (lifetime != 0 && !iat.there)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'iat' is missing, and max_lifetime needs it");
    if (lifetime != 0 && moved(exp.seconds - iat.seconds, 0) > lifetime)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "lives longer than max_lifetime");
    id->exp = exp.seconds;
    id->iat = iat.seconds;
    id->flags |= iat.there ? SZ_ID_HAS_IAT : 0;
    return true;
}

/* ---- audience -------------------------------------------------------------------------------------------------- */

static unsigned audience_bit(const struct sz_conf_issuer *conf, struct sz_slice text)
{
    for (size_t i = 0; i < conf->audiences.n && i < 8; i++) {
        if (sz_eq(text, conf->audiences.v[i]))
            return 1u << i;
    }
    return 0;
}

static bool check_audience(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_conf_issuer *conf = in->issuer->conf;
    const struct sz_json_node *aud = sz_claim(in, SZ_S("aud")), *item = NULL;
    bool typed = true;
    unsigned bits = 0;
    if (in->no_audience)
        return true;
    if (sz_json_is(aud, SZ_JSON_STRING)) {
        bits = audience_bit(conf, sz_json_slice(in->tree, aud));
    } else if (sz_json_is(aud, SZ_JSON_ARRAY)) {
        while (typed && (item = sz_json_next(in->tree, aud, item)) != NULL) {
            typed = item->type == SZ_JSON_STRING;
            bits |= typed ? audience_bit(conf, sz_json_slice(in->tree, item)) : 0;
        }
    } else {
        typed = aud == NULL;
    }
    if (!typed)
        return sz_jwt_deny(out, SZ_REASON_wrong_audience, "'aud' is not a string or a list of strings");
    if (bits == 0 && !conf->any_audience)
        return sz_jwt_deny(out, SZ_REASON_wrong_audience, "'aud' is none of the issuer's audiences");
    id->audiences = (uint8_t)bits;
    return true;
}

/* ---- type ------------------------------------------------------------------------------------------------------ */

/* RFC 7515 section 4.1.9: a media type, compared without case, "application/" may be left out. */
static bool same_type(struct sz_slice a, struct sz_slice b)
{
    struct sz_slice prefix = SZ_S("application/");
    if (sz_ieq(sz_sub(a, 0, prefix.n), prefix))
        a = sz_from(a, prefix.n);
    if (sz_ieq(sz_sub(b, 0, prefix.n), prefix))
        b = sz_from(b, prefix.n);
    return sz_ieq(a, b);
}

static bool check_type(const struct sz_claims_in *in, struct sz_verified *out)
{
    static const struct sz_slice usual[] = {{"JWT", 3}, {"at+jwt", 6}, {"", 0}};
    const struct sz_strings *set = &in->issuer->conf->types;
    if (in->told)
        return true;
    const struct sz_strings accepted = set->n != 0 ? *set : (struct sz_strings){usual, SZ_COUNT(usual)};
    struct sz_slice typ = in->jose->typ.p != NULL ? in->jose->typ : SZ_S("");
    for (size_t i = 0; i < accepted.n; i++) {
        if (same_type(typ, accepted.v[i]))
            return true;
    }
    return sz_jwt_deny(out, SZ_REASON_invalid_token, "'typ' is none of the issuer's types");
}

/* ---- who ------------------------------------------------------------------------------------------------------- */

static bool check_required(const struct sz_claims_in *in, struct sz_verified *out)
{
    const struct sz_strings *names = &in->issuer->conf->required_claims;
    for (size_t i = 0; i < names->n; i++) {
        const struct sz_json_node *value = sz_claim(in, names->v[i]);
        if (value == NULL || value->type == SZ_JSON_NULL)
            return sz_jwt_deny(out, SZ_REASON_invalid_token, "the required claim '%.*s' is missing",
                               SZ_FMT(names->v[i]));
    }
    return true;
}

/* A claim that must be a non-empty string when it is there. */
static bool read_name(const struct sz_claims_in *in, struct sz_slice name, struct sz_slice *value,
                      struct sz_verified *out)
{
    const struct sz_json_node *claim = sz_claim(in, name);
    *value = SZ_NONE;
    if (claim == NULL)
        return true;
    if (claim->type != SZ_JSON_STRING || claim->n == 0)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is not a non-empty string", name.p);
    *value = sz_json_slice(in->tree, claim);
    return true;
}

/* The tenant may be a number: as the token writes it. */
static bool read_tenant(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice name = in->issuer->conf->tenant_claim;
    const struct sz_json_node *claim = name.p == NULL ? NULL : sz_claim(in, name);
    int64_t number;
    if (claim == NULL || claim->type == SZ_JSON_NULL)
        return true;
    bool fits = (claim->type == SZ_JSON_STRING && claim->n != 0) ||
                (claim->type == SZ_JSON_NUMBER && sz_json_integer(in->tree, claim, &number) == 0);
    if (!fits)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "the tenant claim is not a non-empty string or an integer");
    return sz_identity_add_text(id, sz_json_slice(in->tree, claim), &id->tenant) == 0 || too_big(out);
}

static bool read_who(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice sub, azp, client, jti, sid;
    if (!read_name(in, SZ_S("sub"), &sub, out) || !read_name(in, SZ_S("azp"), &azp, out) ||
        !read_name(in, SZ_S("client_id"), &client, out) || !read_name(in, SZ_S("jti"), &jti, out) ||
        !read_name(in, SZ_S("sid"), &sid, out))
        return false;
    if (azp.p != NULL && client.p != NULL && !sz_eq(azp, client))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'azp' and 'client_id' name different clients");
    if (sz_identity_add_text(id, sub, &id->subject) != 0 ||
        sz_identity_add_text(id, azp.p != NULL ? azp : client, &id->client) != 0)
        return too_big(out);
    if (jti.p != NULL) {
        id->flags |= SZ_ID_HAS_JTI;
        id->jti = sz_revocation_name(SZ_REVOKE_JTI, in->issuer->conf->issuer, jti);
    }
    if (sid.p != NULL) {
        id->flags |= SZ_ID_HAS_SID;
        id->sid = sz_revocation_name(SZ_REVOKE_SID, in->issuer->conf->issuer, sid);
    }
    return read_tenant(in, id, out);
}

/* ---- the claims that rules and templates ask for ----------------------------------------------------------------- */

/* What only a condition can make something of.  Too long to carry along: known to be there, and no more. */
static int add_other(const struct sz_claims_in *in, struct sz_identity *id, unsigned slot,
                     const struct sz_json_node *value)
{
    struct sz_buf json = {.limit = SZ_CLAIM_JSON_MAX};
    sz_json_write(in->tree, value, &json);
    int rc = sz_identity_add_claim(id, slot, SZ_CLAIM_OTHER, json.overflow ? SZ_S("") : sz_buf_slice(&json));
    sz_buf_fini(&json);
    return rc;
}

static int add_list(const struct sz_claims_in *in, struct sz_identity *id, unsigned slot,
                    const struct sz_json_node *list)
{
    struct sz_buf packed = {.limit = SZ_IDENTITY_TEXT};
    enum sz_claim_type type = SZ_CLAIM_STRINGS;
    const struct sz_json_node *item = NULL;
    while (type == SZ_CLAIM_STRINGS && (item = sz_json_next(in->tree, list, item)) != NULL) {
        if (item->type == SZ_JSON_STRING)
            sz_claim_pack(&packed, sz_json_slice(in->tree, item));
        else
            type = SZ_CLAIM_OTHER;
    }
    int rc = type == SZ_CLAIM_OTHER ? add_other(in, id, slot, list)
             : packed.overflow      ? -E2BIG
                                    : sz_identity_add_claim(id, slot, type, sz_buf_slice(&packed));
    sz_buf_fini(&packed);
    return rc;
}

static int add_number(const struct sz_claims_in *in, struct sz_identity *id, unsigned slot,
                      const struct sz_json_node *value)
{
    uint8_t bytes[8];
    int64_t number;
    if (sz_json_integer(in->tree, value, &number) != 0)
        return add_other(in, id, slot, value);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((uint64_t)number >> (8 * i));
    return sz_identity_add_claim(id, slot, SZ_CLAIM_INTEGER, sz_slice(bytes, sizeof(bytes)));
}

static int add_claim(const struct sz_claims_in *in, struct sz_identity *id, unsigned slot,
                     const struct sz_json_node *value)
{
    switch ((enum sz_json_type)value->type) {
    case SZ_JSON_STRING:
        return sz_identity_add_claim(id, slot, SZ_CLAIM_STRING, sz_json_slice(in->tree, value));
    case SZ_JSON_NUMBER:
        return add_number(in, id, slot, value);
    case SZ_JSON_TRUE:
        return sz_identity_add_claim(id, slot, SZ_CLAIM_BOOL, sz_slice("\1", 1));
    case SZ_JSON_FALSE:
        return sz_identity_add_claim(id, slot, SZ_CLAIM_BOOL, sz_slice("\0", 1));
    case SZ_JSON_ARRAY:
        return add_list(in, id, slot, value);
    case SZ_JSON_NULL: /* RFC 7519 gives null no meaning; a rule on the claim does not match */
        return 0;
    case SZ_JSON_OBJECT:
        break;
    }
    return add_other(in, id, slot, value);
}

static bool pack_claims(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_names *names = &in->issuers->claims;
    for (size_t slot = 0; slot < names->n; slot++) {
        const struct sz_json_node *value = sz_claim(in, names->v[slot]);
        if (value != NULL && add_claim(in, id, (unsigned)slot, value) != 0)
            return too_big(out);
    }
    return true;
}

void sz_jwt_claims(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    bool ok = check_times(in, id, out) && check_audience(in, id, out) && check_type(in, out) &&
              check_required(in, out) && read_who(in, id, out) && sz_jwt_binding(in, id, out) &&
              (in->no_audience || sz_jwt_scopes(in, id, out)) && pack_claims(in, id, out);
    if (ok)
        out->reason = SZ_REASON_allowed;
}
