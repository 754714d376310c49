/*
 * The claims of a token whose signature is good.  Each rule is one function that reads its claims, denies or fills
 * its part of the identity.  A registered claim of the wrong type is refused rather than treated as
 * absent: an issuer that writes "exp": "never" did mean something.
 *
 * The detail of a denial names claims, never their values.
 */
#include "fga/jwt_claims.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "subzero/crypto.h"

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
static bool read_date(const struct sz_claims_in *in, const char *name, struct date *date, struct sz_verified *out)
{
    const json_t *value = json_object_get(in->claims, name);
    *date = (struct date){.there = value != NULL};
    if (value == NULL)
        return true;
    if (json_is_integer(value)) {
        date->seconds = json_integer_value(value);
    } else if (json_is_real(value) && fabs(json_real_value(value)) <= (double)DATE_MAX) {
        double floored = floor(json_real_value(value));
        date->seconds = (int64_t)floored;
        date->fraction = floored != json_real_value(value);
    } else {
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is not a time in seconds", name);
    }
    if (date->seconds > DATE_MAX || date->seconds < -DATE_MAX)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is out of range", name);
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
    if (!read_date(in, "exp", &exp, out) || !read_date(in, "nbf", &nbf, out) || !read_date(in, "iat", &iat, out))
        return false;
    if (!exp.there)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'exp' is missing");
    if (in->now.us >= moved(exp.seconds, leeway))
        return sz_jwt_deny(out, SZ_REASON_expired_token, "expired");
    nbf.seconds += nbf.fraction; /* up: not a moment too early */
    if (nbf.there && in->now.us < moved(nbf.seconds, -leeway))
        return deny_early(in, "nbf", nbf.seconds, out);
    if (iat.there && in->now.us < moved(iat.seconds, -leeway))
        return deny_early(in, "iat", iat.seconds, out);
    int64_t lifetime = in->issuer->conf->max_lifetime.us;
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

static unsigned audience_bit(const struct sz_conf_issuer *conf, const json_t *value)
{
    struct sz_slice text = sz_json_slice(value);
    for (size_t i = 0; i < conf->audiences.n && i < 8; i++) {
        if (sz_eq(text, conf->audiences.v[i]))
            return 1u << i;
    }
    return 0;
}

static bool check_audience(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_conf_issuer *conf = in->issuer->conf;
    const json_t *aud = json_object_get(in->claims, "aud");
    unsigned bits = 0;
    if (json_is_string(aud)) {
        bits = audience_bit(conf, aud);
    } else if (json_is_array(aud)) {
        for (size_t i = 0; i < json_array_size(aud); i++) {
            if (!json_is_string(json_array_get(aud, i)))
                return sz_jwt_deny(out, SZ_REASON_wrong_audience, "'aud' is not a string or a list of strings");
            bits |= audience_bit(conf, json_array_get(aud, i));
        }
    } else if (aud != NULL) {
        return sz_jwt_deny(out, SZ_REASON_wrong_audience, "'aud' is not a string or a list of strings");
    }
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
        const json_t *value = json_object_getn(in->claims, names->v[i].p, names->v[i].n);
        if (value == NULL || json_is_null(value))
            return sz_jwt_deny(out, SZ_REASON_invalid_token, "the required claim '%.*s' is missing",
                               SZ_FMT(names->v[i]));
    }
    return true;
}

/* A claim that must be a non-empty string when it is there. */
static bool read_name(const struct sz_claims_in *in, const char *name, struct sz_slice *value, struct sz_verified *out)
{
    const json_t *claim = json_object_get(in->claims, name);
    *value = SZ_NONE;
    if (claim == NULL)
        return true;
    if (!json_is_string(claim) || json_string_length(claim) == 0)
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'%s' is not a non-empty string", name);
    *value = sz_json_slice(claim);
    return true;
}

/* The tenant may be a number: written out, as a template would write it. */
static bool read_tenant(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice name = in->issuer->conf->tenant_claim;
    const json_t *claim = name.p == NULL ? NULL : json_object_getn(in->claims, name.p, name.n);
    char digits[24];
    struct sz_slice value;
    if (claim == NULL || json_is_null(claim))
        return true;
    if (json_is_integer(claim))
        value =
            sz_slice(digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)json_integer_value(claim)));
    else if (json_is_string(claim) && json_string_length(claim) != 0)
        value = sz_json_slice(claim);
    else
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "the tenant claim is not a non-empty string or an integer");
    return sz_identity_add_text(id, value, &id->tenant) == 0 || too_big(out);
}

static bool read_who(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    struct sz_slice sub, azp, client, jti, sid;
    if (!read_name(in, "sub", &sub, out) || !read_name(in, "azp", &azp, out) ||
        !read_name(in, "client_id", &client, out) || !read_name(in, "jti", &jti, out) ||
        !read_name(in, "sid", &sid, out))
        return false;
    if (azp.p != NULL && client.p != NULL && !sz_eq(azp, client))
        return sz_jwt_deny(out, SZ_REASON_invalid_token, "'azp' and 'client_id' name different clients");
    if (sz_identity_add_text(id, sub, &id->subject) != 0 ||
        sz_identity_add_text(id, azp.p != NULL ? azp : client, &id->client) != 0)
        return too_big(out);
    if (jti.p != NULL) {
        id->flags |= SZ_ID_HAS_JTI;
        id->jti = sz_issuer_claim_hash(in->issuer->id, SZ_S("jti"), jti);
    }
    if (sid.p != NULL) {
        id->flags |= SZ_ID_HAS_SID;
        id->sid = sz_issuer_claim_hash(in->issuer->id, SZ_S("sid"), sid);
    }
    return read_tenant(in, id, out);
}

/* ---- the claims that rules and templates ask for ------------------------------------------------------------------
 */

static int add_list(struct sz_identity *id, unsigned slot, const json_t *list)
{
    struct sz_buf packed = {.limit = SZ_IDENTITY_TEXT};
    enum sz_claim_type type = SZ_CLAIM_STRINGS;
    for (size_t i = 0; i < json_array_size(list) && type == SZ_CLAIM_STRINGS; i++) {
        const json_t *item = json_array_get(list, i);
        if (json_is_string(item))
            sz_claim_pack(&packed, sz_json_slice(item));
        else
            type = SZ_CLAIM_OTHER;
    }
    struct sz_slice value = type == SZ_CLAIM_STRINGS ? sz_buf_slice(&packed) : SZ_S("");
    int rc = packed.overflow ? -E2BIG : sz_identity_add_claim(id, slot, type, value);
    sz_buf_fini(&packed);
    return rc;
}

static int add_claim(struct sz_identity *id, unsigned slot, const json_t *value)
{
    uint8_t bytes[8];
    switch (json_typeof(value)) {
    case JSON_STRING:
        return sz_identity_add_claim(id, slot, SZ_CLAIM_STRING, sz_json_slice(value));
    case JSON_INTEGER:
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)((uint64_t)json_integer_value(value) >> (8 * i));
        return sz_identity_add_claim(id, slot, SZ_CLAIM_INTEGER, sz_slice(bytes, sizeof(bytes)));
    case JSON_TRUE:
    case JSON_FALSE:
        bytes[0] = json_is_true(value);
        return sz_identity_add_claim(id, slot, SZ_CLAIM_BOOL, sz_slice(bytes, 1));
    case JSON_ARRAY:
        return add_list(id, slot, value);
    case JSON_NULL: /* RFC 7519 gives null no meaning; a rule on the claim does not match */
        return 0;
    case JSON_OBJECT:
    case JSON_REAL:
        break;
    }
    return sz_identity_add_claim(id, slot, SZ_CLAIM_OTHER, SZ_S(""));
}

static bool pack_claims(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    const struct sz_names *names = &in->issuers->claims;
    for (size_t slot = 0; slot < names->n; slot++) {
        const json_t *value = json_object_getn(in->claims, names->v[slot].p, names->v[slot].n);
        if (value != NULL && add_claim(id, (unsigned)slot, value) != 0)
            return too_big(out);
    }
    return true;
}

void sz_jwt_claims(const struct sz_claims_in *in, struct sz_identity *id, struct sz_verified *out)
{
    bool ok = check_times(in, id, out) && check_audience(in, id, out) && check_type(in, out) &&
              check_required(in, out) && read_who(in, id, out) && sz_jwt_binding(in, id, out) &&
              sz_jwt_scopes(in, id, out) && pack_claims(in, id, out);
    if (ok)
        out->reason = SZ_REASON_allowed;
}
