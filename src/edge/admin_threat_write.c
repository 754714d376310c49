/*
 * Writes of /threat: blocks by hand, and what the provider has seen.
 *
 *   POST   /threat/blocks       {address | issuer + subject, ttl, reason}      201, 200 when it stood
 *   DELETE /threat/blocks/ID                                                   200, 404
 *   POST   /threat/events       {type, address | issuer + subject, time}       202, with a key of its own
 *
 * A write is answered when the disk has it; 503 says that it counts here and is not safe yet.  Each takes an
 * Idempotency-Key: an event that is told twice would count twice.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "edge/admin_threat.h"
#include "edge/admin_write.h"
#include "edge/api_json.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "pipeline/threat.h"
#include "subzero/log.h"

#define BODY_MAX   4096
#define TTL_MAX    (INT64_C(365) * 86400)
#define EVENT_LIVE (INT64_C(7) * 86400) /* seconds; seven half-lives of the slowest signal */

/* ---- answers ----------------------------------------------------------------------------------------------------- */

struct pending {
    struct sz_threat_op op;
    struct sz_admin_write *write;
    const struct sz_audit *audit;
    struct sz_threat_record record; /* made 0: a block is lifted */
    unsigned fresh;                 /* status when it is new */
};

static void refuse(struct sz_admin_write *write, unsigned status, const char *detail)
{
    enum sz_reason reason = status == 404   ? SZ_REASON_no_route
                            : status == 503 ? SZ_REASON_overloaded
                                            : SZ_REASON_bad_request;
    sz_admin_write_refuse(write, status, reason, detail);
}

/* For the journal, which has its way of naming an address and a subject. */
static void tell_journal(const struct pending *pending)
{
    const struct sz_threat_record *r = &pending->record;
    bool lifts = r->made.us == 0;
    char id[20], address[SZ_AUDIT_ADDRESS];
    struct sz_text object;
    snprintf(id, sizeof(id), "%016llx", (unsigned long long)pending->op.id);
    sz_text_set(&object, "%s", id);
    if (!lifts && !r->is_subject)
        sz_text_add(&object, " of %.*s", (int)sz_audit_address(pending->audit, r->addr, address), address);
    sz_admin_write_about(pending->write, lifts ? SZ_AUDIT_UNBLOCK : SZ_AUDIT_BLOCK,
                         r->is_event ? "threat.event"
                         : lifts     ? "threat.unblock"
                                     : "threat.block",
                         sz_cstr(object.s), r->is_subject ? sz_cstr(r->subject) : SZ_NONE,
                         r->reason[0] != '\0' ? sz_cstr(r->reason) : SZ_NONE);
}

static void end_well(const struct pending *pending, unsigned status)
{
    struct sz_buf body = {0};
    sz_buf_printf(&body, "{\"id\":\"%016llx\"", (unsigned long long)pending->op.id);
    if (pending->record.made.us != 0) {
        sz_buf_printf(&body, ",");
        sz_threat_write_whom(&body, &pending->record);
        sz_buf_printf(&body, ",");
        sz_threat_write_until(&body, pending->record.until);
    }
    sz_buf_printf(&body, "}\n");
    sz_admin_write_end(pending->write, status, sz_buf_slice(&body));
    sz_buf_fini(&body);
}

static void on_saved(struct sz_threat_op *op, enum sz_threat_saved result)
{
    struct pending *pending = SZ_CONTAINER(op, struct pending, op);
    tell_journal(pending);
    switch (result) {
    case SZ_THREAT_FULL:
        refuse(pending->write, 503, "no room for another block; lift one");
        break;
    case SZ_THREAT_UNSAFE:
        refuse(pending->write, 503, "it counts here, but the disk does not have it: tried again until it does");
        break;
    case SZ_THREAT_ABSENT:
        refuse(pending->write, 404, "no block has that id");
        break;
    case SZ_THREAT_SAVED:
        end_well(pending, pending->fresh);
        break;
    case SZ_THREAT_STOOD:
        end_well(pending, 200);
        break;
    }
    free(pending);
}

static struct pending *new_pending(struct sz_admin_write *write, unsigned fresh)
{
    struct pending *pending = sz_xcalloc(1, sizeof(*pending));
    pending->op.on_done = on_saved;
    pending->write = write;
    pending->fresh = fresh;
    return pending;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static bool copy_text(struct sz_slice text, char out[SZ_THREAT_TEXT], const char **why)
{
    *why = "a text is longer than 255 bytes";
    if (text.n >= SZ_THREAT_TEXT)
        return false;
    memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return true;
}

static bool member(const json_t *object, const char *name, char out[SZ_THREAT_TEXT], struct sz_pool *pool,
                   const char **why)
{
    struct sz_slice text = sz_api_text(object, "the body", name, pool, why);
    return text.p != NULL && copy_text(text, out, why);
}

/* An address alone, or an issuer with a subject: the one configured issuer need not be named. */
static bool read_whom(const json_t *object, const struct sz_conf *conf, struct sz_pool *pool,
                      struct sz_threat_record *r, const char **why)
{
    char text[SZ_THREAT_TEXT];
    bool address = json_object_get(object, "address") != NULL;
    *why = "either 'address' or 'subject' says who";
    if (address == (json_object_get(object, "subject") != NULL))
        return false;
    if (address) {
        if (!member(object, "address", text, pool, why))
            return false;
        *why = "'address' is no IP address";
        return sz_addr_parse(sz_cstr(text), &r->addr) == 0;
    }
    r->is_subject = true;
    if (!member(object, "subject", r->subject, pool, why))
        return false;
    if (json_object_get(object, "issuer") != NULL)
        return member(object, "issuer", r->issuer, pool, why);
    *why = "'issuer' is needed: a subject is known by both";
    return conf->issuers_n == 1 && copy_text(conf->issuers[0].issuer, r->issuer, why);
}

/* "10m", "24h", or whole seconds. */
static bool read_ttl(const json_t *value, int64_t *seconds, const char **why)
{
    static const struct {
        char unit;
        int64_t factor;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    struct sz_slice text = sz_cstr(json_string_value(value));
    uint64_t n = 0;
    *why = "'ttl' is how long: \"10m\", \"24h\", or seconds; at most a year";
    if (json_is_integer(value))
        *seconds = json_integer_value(value);
    else if (text.n < 2 || sz_parse_u64(sz_sub(text, 0, text.n - 1), (uint64_t)TTL_MAX, &n) != 0)
        return false;
    for (size_t i = 0; i < SZ_COUNT(units) && text.n > 0; i++) {
        if (text.p[text.n - 1] == units[i].unit)
            *seconds = (int64_t)n * units[i].factor;
    }
    return *seconds > 0 && *seconds <= TTL_MAX;
}

static bool read_block(const json_t *object, const struct sz_conf *conf, struct sz_pool *pool, struct sz_wall now,
                       struct sz_threat_record *r, const char **why)
{
    static const char *const names[] = {"address", "issuer", "subject", "ttl", "reason", NULL};
    int64_t seconds = 0;
    if (!sz_api_members(object, "the body", names, pool, why) || !read_whom(object, conf, pool, r, why) ||
        !read_ttl(json_object_get(object, "ttl"), &seconds, why))
        return false;
    if (json_object_get(object, "reason") != NULL && !member(object, "reason", r->reason, pool, why))
        return false;
    r->made = now;
    r->until.us = now.us + seconds * 1000000;
    return true;
}

/* RFC 3339 in UTC, or unix seconds; neither in the future nor older than what counts. */
static bool read_time(const json_t *value, struct sz_wall now, struct sz_wall *out, const char **why)
{
    struct tm tm = {0};
    const char *text = json_string_value(value), *end = text == NULL ? NULL : strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    *why = "'time' is when it happened: 2026-01-31T12:00:00Z, or unix seconds; not in the future, at most a week ago";
    if (value == NULL)
        *out = now;
    else if (json_is_integer(value) && json_integer_value(value) > 0 && json_integer_value(value) < INT64_MAX / 1000000)
        out->us = json_integer_value(value) * 1000000;
    else if (end != NULL && (strcmp(end, "Z") == 0 || (end[0] == '.' && end[strspn(end + 1, "0123456789") + 1] == 'Z')))
        out->us = (int64_t)timegm(&tm) * 1000000;
    else
        return false;
    return out->us <= now.us + 60 * 1000000 && out->us >= now.us - EVENT_LIVE * 1000000;
}

static bool read_event(const json_t *object, const struct sz_conf *conf, struct sz_pool *pool, struct sz_wall now,
                       struct sz_threat_record *r, const char **why)
{
    static const char *const names[] = {"type", "address", "issuer", "subject", "time", NULL};
    char type[SZ_THREAT_TEXT];
    r->is_event = true;
    if (!sz_api_members(object, "the body", names, pool, why) || !member(object, "type", type, pool, why) ||
        !read_whom(object, conf, pool, r, why) || !read_time(json_object_get(object, "time"), now, &r->made, why))
        return false;
    r->signal = sz_signal_from(sz_cstr(type));
    r->until.us = r->made.us + EVENT_LIVE * 1000000;
    *why = "'type' is disposable_signup, mfa_push or login_velocity";
    return r->signal == SZ_SIGNAL_disposable_signup || r->signal == SZ_SIGNAL_mfa_push ||
           r->signal == SZ_SIGNAL_login_velocity;
}

/* An event may be the one too many: its block is the engine's own, not one by hand. */
static void judge(struct sz_server *server, const struct sz_threat_record *r)
{
    struct sz_threat *threat = server->gate.threat;
    const struct sz_conf_threat *conf = &server->current->conf->threat;
    struct sz_threat_policy policy = sz_threat_policy(conf);
    struct sz_threat_key key = r->is_subject ? sz_threat_subject(threat, sz_cstr(r->issuer), sz_cstr(r->subject))
                                             : sz_threat_address(threat, r->addr);
    struct sz_mono now = sz_loop_now(server->service->loop);
    struct sz_wall until = sz_loop_wall(server->service->loop);
    struct sz_threat_view view;
    if (!sz_threat_judge(threat, key, &policy, now, &view))
        return;
    sz_log(SZ_LOG_WARN, "threat", "the provider's events block %s", r->is_subject ? "a subject" : "an address");
    until.us += sz_between(now, view.blocked_until).us;
    if (conf->mode == SZ_THREAT_ENFORCE)
        sz_threat_store_found_by_events(server->threat_store, r, until);
}

typedef bool read_fn(const json_t *object, const struct sz_conf *conf, struct sz_pool *pool, struct sz_wall now,
                     struct sz_threat_record *r, const char **why);

static void add(struct sz_server *server, struct pending *pending)
{
    pending->audit = server->gate.audit;
    sz_threat_store_add(server->threat_store, &pending->record, &pending->op); /* answers after this turn */
    if (pending->record.is_event)
        judge(server, &pending->record);
    else
        sz_log(SZ_LOG_INFO, "admin", "a block was set by hand: %016llx", (unsigned long long)pending->op.id);
}

static void post(struct sz_admin_call *call, struct sz_admin_write *write, unsigned fresh, read_fn *read)
{
    struct sz_server *server = call->server;
    struct pending *pending = new_pending(write, fresh);
    struct sz_arena arena;
    const char *why = "the body is at most 4096 bytes";
    struct sz_slice body = sz_slice(call->req->entity.base, call->req->entity.len);
    json_t *object = body.n > BODY_MAX ? NULL : sz_api_json(body, &why);

    sz_arena_init(&arena);
    if (object != NULL &&
        read(object, server->current->conf, &arena.pool, sz_loop_wall(server->service->loop), &pending->record, &why)) {
        add(server, pending);
    } else {
        refuse(write, 400, why);
        free(pending);
    }
    json_decref(object);
    sz_arena_fini(&arena);
}

/* A block that nothing would look at must not be promised. */
static bool is_off(struct sz_admin_call *call)
{
    bool off = call->server->current->conf->threat.mode == SZ_THREAT_OFF;
    if (off)
        sz_respond_problem(call->req, 503, SZ_REASON_overloaded,
                           "threat is off: the configuration has no `threat`, or its mode says so");
    return off;
}

void sz_admin_threat_block(struct sz_admin_call *call)
{
    struct sz_admin_write *write = is_off(call) ? NULL : sz_admin_write_begin(call);
    if (write != NULL)
        post(call, write, 201, read_block);
}

void sz_admin_threat_unblock(struct sz_admin_call *call)
{
    struct sz_slice id = sz_from(call->path, sizeof("/threat/blocks/") - 1);
    struct sz_admin_write *write = sz_admin_write_begin(call);
    uint64_t number = 0;
    for (size_t i = 0; i < id.n && id.n == 16; i++) {
        int digit = sz_hex_digit(id.p[i]);
        number = digit < 0 ? 0 : number << 4 | (unsigned)digit;
    }
    if (write != NULL)
        sz_threat_store_lift(call->server->threat_store, number, &new_pending(write, 200)->op);
}

/* The provider's own key and no other: whoever reports logins need not be able to lift blocks. */
static bool has_events_key(const struct sz_admin_call *call, const char **why)
{
    static const char scheme[] = "Bearer ";
    const struct sz_secret *key = &call->server->current->conf->threat.events_key;
    struct sz_slice value = SZ_NONE;
    *why = key->set ? "threat.events_key_file holds the bearer key" : "threat.events_key_file is not configured";
    for (size_t i = 0; i < call->head->fields_n; i++) {
        if (sz_ieq(call->head->fields[i].name, SZ_S("authorization")))
            value = call->head->fields[i].value;
    }
    return key->set && sz_ieq(sz_sub(value, 0, sizeof(scheme) - 1), SZ_S("Bearer ")) &&
           sz_secret_eq(sz_trim(sz_from(value, sizeof(scheme) - 1)), sz_trim(key->value));
}

void sz_admin_threat_event(struct sz_admin_call *call)
{
    const char *why;
    if (!has_events_key(call, &why)) {
        sz_respond_problem(call->req, 401, SZ_REASON_invalid_token, why);
        return;
    }
    struct sz_admin_write *write = is_off(call) ? NULL : sz_admin_write_begin_once(call);
    if (write != NULL)
        post(call, write, 202, read_event);
}
