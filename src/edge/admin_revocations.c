/*
 * POST /revocations {kind, issuer?, value, before?, reason?}: 201, or 200 when it stood already; 422 for what means
 * nothing here; 503 when it is not safe yet, which does not mean that it is not honoured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "edge/admin_write.h"
#include "edge/api_json.h"
#include "edge/revoking.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/audit.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

enum { BODY_MAX = 64 * 1024, REASON_MAX = 256 };

struct asked { /* what the body says */
    enum sz_revocation_kind kind;
    const struct sz_conf_issuer *issuer; /* NULL: none was named */
    struct sz_slice value;
    int64_t before;
    struct sz_slice reason;
};

/* ---- times ------------------------------------------------------------------------------------------------------- */

static bool digits(struct sz_slice s, size_t at, size_t n, int *out)
{
    uint64_t value;
    if (at + n > s.n || sz_parse_u64(sz_sub(s, at, n), 9999, &value) != 0)
        return false;
    *out = (int)value;
    return true;
}

/* RFC 3339; fractions are dropped. */
static bool read_time(struct sz_slice s, int64_t *out)
{
    struct tm tm = {0};
    int hours = 0, minutes = 0, year, month;
    if (!digits(s, 0, 4, &year) || !digits(s, 5, 2, &month) || !digits(s, 8, 2, &tm.tm_mday) ||
        !digits(s, 11, 2, &tm.tm_hour) || !digits(s, 14, 2, &tm.tm_min) || !digits(s, 17, 2, &tm.tm_sec) ||
        s.p[4] != '-' || s.p[7] != '-' || (s.p[10] | 0x20) != 't' || s.p[13] != ':' || s.p[16] != ':' || s.n < 20)
        return false;
    if (month < 1 || month > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 || tm.tm_hour > 23 || tm.tm_min > 59 ||
        tm.tm_sec > 60)
        return false;
    size_t at = 19;
    if (s.p[at] == '.') {
        for (at++; at < s.n && s.p[at] >= '0' && s.p[at] <= '9'; at++)
            ;
    }
    struct sz_slice zone = sz_from(s, at);
    bool utc = zone.n == 1 && (zone.p[0] | 0x20) == 'z';
    if (!utc && (zone.n != 6 || (zone.p[0] != '+' && zone.p[0] != '-') || zone.p[3] != ':' ||
                 !digits(zone, 1, 2, &hours) || !digits(zone, 4, 2, &minutes) || hours > 23 || minutes > 59))
        return false;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    int64_t offset = hours * 3600 + minutes * 60;
    *out = (int64_t)timegm(&tm) - (!utc && zone.p[0] == '-' ? -offset : offset);
    return true;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

/* By its name in the configuration, or its `iss`. */
static const struct sz_conf_issuer *find_issuer(const struct sz_conf *conf, struct sz_slice name)
{
    for (size_t i = 0; i < conf->issuers_n; i++) {
        if (sz_eq(conf->issuers[i].issuer, name) || sz_eq(conf->issuers[i].name, name))
            return &conf->issuers[i];
    }
    return NULL;
}

static struct sz_slice member(const json_t *body, const char *name)
{
    const json_t *value = json_object_get(body, name);
    return json_is_string(value) ? sz_slice(json_string_value(value), json_string_length(value)) : SZ_NONE;
}

static const char *read_issuer(const struct sz_conf *conf, const json_t *body, struct asked *out)
{
    struct sz_slice name = member(body, "issuer");
    if (out->kind == SZ_REVOKE_ISSUER && name.p == NULL)
        name = out->value;
    if (name.p == NULL && json_object_get(body, "issuer") != NULL)
        return "'issuer' is a string: a name from the configuration, or an iss";
    if (name.p == NULL && out->kind == SZ_REVOKE_TOKEN)
        return NULL;
    if (name.p == NULL && conf->issuers_n == 1) {
        out->issuer = &conf->issuers[0];
        return NULL;
    }
    if (name.p == NULL)
        return "'issuer' is missing: whose it is, by its name in the configuration or its iss";
    out->issuer = find_issuer(conf, name);
    return out->issuer != NULL ? NULL : "'issuer' is none of the configured ones";
}

static const char *read_before(const json_t *body, int64_t now, struct asked *out)
{
    const json_t *value = json_object_get(body, "before");
    bool timed = out->kind == SZ_REVOKE_SUBJECT || out->kind == SZ_REVOKE_CLIENT || out->kind == SZ_REVOKE_ISSUER;
    out->before = timed ? now : INT64_MAX;
    if (value == NULL)
        return NULL;
    if (!timed)
        return "'before' goes with subject, client and issuer; a token, jti, sid or kid ends whenever it was issued";
    if (json_is_integer(value))
        out->before = json_integer_value(value);
    else if (!json_is_string(value) || !read_time(member(body, "before"), &out->before))
        return "'before' is a time: RFC 3339 with a zone, or unix seconds";
    return out->before >= 0 && out->before < INT64_C(253402300800) ? NULL : "'before' is no time of this world";
}

/* NULL: understood. */
static const char *read_body(const struct sz_conf *conf, const json_t *body, int64_t now, struct asked *out)
{
    struct sz_slice kind = member(body, "kind");
    *out = (struct asked){.value = member(body, "value"), .reason = member(body, "reason")};
    if (kind.p == NULL || !sz_revocation_kind_from(kind, &out->kind))
        return "'kind' is one of token, jti, sid, subject, client, issuer, kid";
    if (out->value.n == 0 && (out->kind != SZ_REVOKE_ISSUER || json_object_get(body, "value") != NULL))
        return "'value' is a string that is not empty";
    if (out->value.n > SZ_TOKEN_MAX)
        return "'value' is longer than any token may be";
    if (json_object_get(body, "reason") != NULL && (out->reason.p == NULL || out->reason.n > REASON_MAX))
        return "'reason' is a string of at most 256 bytes";
    const char *why = read_issuer(conf, body, out);
    return why != NULL ? why : read_before(body, now, out);
}

/* ---- what it means ----------------------------------------------------------------------------------------------- */

/* When a JWT ends by its own word, which a revocation of just this token may believe; INT64_MAX: it does not say. */
static int64_t token_end(struct sz_slice token)
{
    struct sz_slice rest = token, payload;
    int64_t end = INT64_MAX;
    size_t n;
    if (sz_credential_kind(token) != SZ_CREDENTIAL_JWT)
        return end;
    (void)sz_split(&rest, '.', &payload);
    (void)sz_split(&rest, '.', &payload);
    char *bytes = sz_xmalloc(SZ_B64_BYTES(payload.n) + 4);
    if (sz_b64url_decode(payload, bytes, &n) == 0) {
        json_t *claims = json_loadb(bytes, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        const json_t *exp = json_object_get(claims, "exp");
        double at = json_is_number(exp) ? json_number_value(exp) : -1;
        if (at >= 0 && at < 1e15)
            end = (int64_t)at + 600; /* the longest leeway, twice */
        json_decref(claims);
    }
    sz_wipe(bytes, SZ_B64_BYTES(payload.n));
    free(bytes);
    return end;
}

static void make(const struct asked *asked, struct sz_wall wall, struct sz_revocation *r)
{
    int64_t now = sz_wall_seconds(wall), last = asked->before != INT64_MAX && asked->before > now ? asked->before : now;
    struct sz_slice iss = asked->kind == SZ_REVOKE_TOKEN ? SZ_NONE : asked->issuer->issuer;
    struct sz_slice value = asked->kind == SZ_REVOKE_ISSUER  ? SZ_NONE
                            : asked->kind == SZ_REVOKE_TOKEN ? sz_token_signed(asked->value)
                                                             : asked->value;
    *r = (struct sz_revocation){.kind = (uint8_t)asked->kind, .before = asked->before, .made = wall.us};
    r->expires = asked->kind == SZ_REVOKE_KID ? INT64_MAX : sz_revoking_until(asked->issuer, last);
    if (asked->kind == SZ_REVOKE_TOKEN && r->expires == INT64_MAX)
        r->expires = token_end(asked->value);
    sz_revocation_digest(asked->kind, iss, value, r->digest);
}

struct revoking {
    struct sz_revocation_op op;
    struct sz_admin_write *write;
    struct sz_revocation r;
};

static void add_time(struct sz_buf *b, const char *name, int64_t seconds)
{
    char text[32];
    if (seconds == INT64_MAX)
        return;
    sz_wall_format((struct sz_wall){seconds * 1000000}, 0, text);
    sz_buf_printf(b, ",\"%s\":\"%s\"", name, text);
}

static void on_revoked(struct sz_revocation_op *op, enum sz_revoked result)
{
    struct revoking *a = SZ_CONTAINER(op, struct revoking, op);
    struct sz_buf body = {0};
    switch (result) {
    case SZ_REVOKED_NEW:
    case SZ_REVOKED_STOOD:
        sz_buf_printf(&body, "{\"kind\":\"%s\",\"stood\":%s", sz_revocation_kind_name(a->r.kind),
                      result == SZ_REVOKED_STOOD ? "true" : "false");
        add_time(&body, "before", a->r.before);
        add_time(&body, "until", a->r.expires);
        sz_buf_printf(&body, "}\n");
        sz_admin_write_end(a->write, result == SZ_REVOKED_NEW ? 201 : 200, sz_buf_slice(&body));
        break;
    case SZ_REVOKED_UNSAFE:
        sz_admin_write_refuse(
            a->write, 503, SZ_REASON_revocation_unavailable,
            "it is honoured by this instance, but Redis or the disk does not have it yet; that is tried "
            "until it does");
        break;
    case SZ_REVOKED_FULL:
        sz_admin_write_refuse(
            a->write, 503, SZ_REASON_revocation_unavailable,
            "not done: as many revocations stand as revocation.capacity allows, or too many are under "
            "way");
        break;
    }
    sz_buf_fini(&body);
    free(a);
}

/* For the journal: whom it is about, unless that is a token. */
static void about(struct sz_admin_write *write, const struct asked *asked)
{
    struct sz_text object;
    struct sz_slice subject = asked->kind == SZ_REVOKE_SUBJECT ? asked->value : SZ_NONE;
    sz_text_set(&object, "%s%s%.*s", sz_revocation_kind_name(asked->kind), asked->issuer != NULL ? " of " : "",
                SZ_FMT(asked->issuer != NULL ? asked->issuer->name : SZ_NONE));
    if (asked->kind == SZ_REVOKE_CLIENT || asked->kind == SZ_REVOKE_KID)
        sz_text_add(&object, " %.*s", SZ_FMT(asked->value));
    sz_admin_write_about(write, SZ_AUDIT_REVOCATION, "revocation.add", sz_cstr(object.s), subject, asked->reason);
}

/* For the log: who asked is the admin listener's business, whom it is about nobody's. */
static void say(const struct asked *asked)
{
    sz_log(SZ_LOG_INFO, "revocation", "a revocation by %s%s%.*s was asked for", sz_revocation_kind_name(asked->kind),
           asked->issuer != NULL ? " of issuer " : "", SZ_FMT(asked->issuer != NULL ? asked->issuer->name : SZ_NONE));
}

void sz_admin_revoke(struct sz_admin_call *call)
{
    static const char *const names[] = {"kind", "issuer", "value", "before", "reason", NULL};
    struct sz_slice text = sz_slice(call->req->entity.base, call->req->entity.len);
    struct sz_wall wall = sz_loop_wall(call->server->service->loop);
    struct sz_admin_write *write = sz_admin_write_begin(call);
    struct sz_arena arena;
    struct asked asked;
    const char *why = "the body is too long";
    unsigned status = 413;
    if (write == NULL)
        return;
    sz_arena_init(&arena);
    json_t *body = text.n <= BODY_MAX ? sz_api_json(text, &why) : NULL;
    if (body != NULL || text.n <= BODY_MAX)
        status = body == NULL ? 400 : 422;
    if (body != NULL && sz_api_members(body, "the body", names, &arena.pool, &why))
        why = read_body(call->server->current->conf, body, sz_wall_seconds(wall), &asked);
    if (why == NULL) {
        struct revoking *a = sz_xcalloc(1, sizeof(*a));
        a->op.on_done = on_revoked;
        a->write = write;
        make(&asked, wall, &a->r);
        say(&asked);
        about(write, &asked);
        sz_revocations_add(call->server->gate.revocations, &a->r, &a->op);
    } else {
        sz_admin_write_refuse(write, status, SZ_REASON_bad_request, why);
    }
    json_decref(body);
    sz_arena_fini(&arena);
}
