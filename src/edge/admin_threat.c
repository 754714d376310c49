/*
 * /threat: who is suspect and who is blocked; blocks by hand; what the provider has seen.
 *
 *   GET    /threat              scores from the monitor level on, and the blocks
 *   POST   /threat/blocks       {address | issuer + subject, ttl, reason}      201, 200 when it stood
 *   DELETE /threat/blocks/ID                                                   200, 404
 *   POST   /threat/events       {type, address | issuer + subject, time}       202, with a key of its own
 *
 * A write is answered when the disk has it; 503 says that it counts here and is not safe yet.
 */
#include <stdio.h>
#include <time.h>

#include "edge/admin.h"
#include "edge/api_json.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "pipeline/threat.h"
#include "subzero/log.h"
#include "subzero/threat_store.h"

#define BODY_MAX   4096
#define SHOWN_MAX  1000
#define TTL_MAX    (INT64_C(365) * 86400)
#define EVENT_LIVE (INT64_C(7) * 86400) /* seconds; seven half-lives of the slowest signal */

/* ---- looking ----------------------------------------------------------------------------------------------------- */

struct listing {
    struct sz_buf *out;
    unsigned n;
    struct sz_mono now;
    struct sz_wall wall;
};

static void write_until(struct sz_buf *out, struct sz_wall until)
{
    char text[32];
    (void)sz_wall_format(until, 0, text);
    sz_buf_printf(out, "\"until\":\"%s\"", text);
}

static void write_suspect(void *arg, const struct sz_threat_key *key, const struct sz_threat_view *view)
{
    struct listing *l = arg;
    char address[SZ_ADDR_TEXT] = "";
    const char *comma = "";
    if (l->n++ >= SHOWN_MAX)
        return;
    if (key->kind == SZ_THREAT_ADDRESS)
        (void)sz_addr_format(key->addr, address);
    sz_buf_printf(l->out, "%s{\"kind\":\"%s\"", l->n > 1 ? "," : "",
                  key->kind == SZ_THREAT_ADDRESS ? "address"
                  : key->kind == SZ_THREAT_TOKEN ? "token"
                                                 : "subject");
    if (address[0] != '\0')
        sz_buf_printf(l->out, ",\"address\":\"%s\"", address);
    sz_buf_printf(l->out, ",\"score\":%.3f,\"level\":\"%s\",\"blocks\":%u,\"signals\":{", (double)view->score,
                  sz_threat_level_name(view->level), view->blocks);
    for (unsigned i = 0; i < SZ_SIGNALS; i++) {
        if (view->parts[i] <= 0)
            continue;
        sz_buf_printf(l->out, "%s\"%s\":%.3f", comma, sz_signal_row((enum sz_signal)i)->name, (double)view->parts[i]);
        comma = ",";
    }
    sz_buf_printf(l->out, "}");
    if (view->blocked_until.us != 0) {
        sz_buf_printf(l->out, ",");
        write_until(l->out, (struct sz_wall){l->wall.us + (view->blocked_until.us - l->now.us)});
    }
    sz_buf_printf(l->out, "}");
}

static void write_whom(struct sz_buf *out, const struct sz_threat_record *r)
{
    char address[SZ_ADDR_TEXT];
    if (r->is_subject) {
        sz_buf_printf(out, "\"issuer\":");
        sz_buf_json(out, sz_cstr(r->issuer));
        sz_buf_printf(out, ",\"subject\":");
        sz_buf_json(out, sz_cstr(r->subject));
    } else {
        sz_buf_printf(out, "\"address\":\"%.*s\"", (int)sz_addr_format(r->addr, address), address);
    }
}

static void write_block(void *arg, const struct sz_threat_record *r)
{
    struct listing *l = arg;
    if (r->until.us <= l->wall.us || l->n++ >= SHOWN_MAX)
        return;
    sz_buf_printf(l->out, "%s{\"id\":\"%016llx\",", l->n > 1 ? "," : "", (unsigned long long)r->id);
    write_whom(l->out, r);
    sz_buf_printf(l->out, ",");
    write_until(l->out, r->until);
    sz_buf_printf(l->out, ",\"reason\":");
    sz_buf_json(l->out, sz_cstr(r->reason));
    sz_buf_printf(l->out, "}");
}

void sz_admin_threat(struct sz_admin_call *call)
{
    static const char *const modes[] = {"off", "dry_run", "enforce"};
    const struct sz_conf_threat *conf = &call->server->current->conf->threat;
    const struct sz_threat *threat = call->server->gate.threat;
    struct sz_threat_policy policy = sz_threat_policy(conf);
    struct sz_loop *loop = call->server->service->loop;
    struct sz_buf body = {0};
    struct listing l = {&body, 0, sz_loop_now(loop), sz_loop_wall(loop)};
    struct sz_threat_stats stats;

    sz_threat_stats(threat, &stats);
    sz_buf_printf(&body,
                  "{\"mode\":\"%s\",\"entries\":%llu,\"capacity\":%llu,\"bytes\":%llu,\"notes\":%llu,\"dropped\":%llu,"
                  "\"evicted\":%llu,\"suspects\":[",
                  modes[conf->mode], (unsigned long long)stats.entries, (unsigned long long)stats.capacity,
                  (unsigned long long)stats.bytes, (unsigned long long)stats.notes, (unsigned long long)stats.dropped,
                  (unsigned long long)stats.evicted);
    if (conf->mode != SZ_THREAT_OFF) {
        for (enum sz_threat_kind kind = SZ_THREAT_ADDRESS; kind <= SZ_THREAT_SUBJECT; kind++) {
            if (kind != SZ_THREAT_NETWORK)
                sz_threat_each(threat, kind, &policy, policy.monitor, l.now, write_suspect, &l);
        }
    }
    sz_buf_printf(&body, "],\"more\":%u,\"blocks\":[", l.n > SHOWN_MAX ? l.n - SHOWN_MAX : 0);
    l.n = 0;
    sz_threat_store_each(call->server->threat_store, write_block, &l);
    sz_buf_printf(&body, "]}\n");
    sz_admin_send(call, 200, "application/json", sz_buf_slice(&body));
    sz_buf_fini(&body);
}

/* ---- writes: answered later -------------------------------------------------------------------------------------- */

struct pending { /* in the request's pool; its disposal takes it back */
    struct sz_threat_op op;
    struct sz_admin_call call;
    struct sz_threat_record record;
    unsigned fresh; /* status when it is new */
};

static void on_dispose(void *p)
{
    struct pending *pending = p;
    sz_threat_store_cancel(&pending->op);
}

static void refuse(struct sz_admin_call *call, unsigned status, const char *detail)
{
    enum sz_reason reason = status == 404   ? SZ_REASON_no_route
                            : status == 503 ? SZ_REASON_overloaded
                                            : SZ_REASON_bad_request;
    sz_respond_problem(call->req, status, reason, detail);
}

/* For the journal: an address as it is, a subject by its name. */
static void record(const struct pending *pending, unsigned status)
{
    const struct sz_threat_record *r = &pending->record;
    bool lifts = r->made.us == 0;
    struct sz_audit_event e = {.kind = lifts ? SZ_AUDIT_UNBLOCK : SZ_AUDIT_BLOCK,
                               .effect = lifts           ? SZ_EFFECT_DELETED
                                         : status == 200 ? SZ_EFFECT_UNCHANGED
                                                         : SZ_EFFECT_CREATED,
                               .has_address = !lifts && !r->is_subject,
                               .address = r->addr};
    char id[20];
    e.text[SZ_AUDIT_ACTION] = r->is_event ? SZ_S("threat.event")
                              : lifts     ? SZ_S("threat.unblock")
                                          : SZ_S("threat.block");
    e.text[SZ_AUDIT_OBJECT] =
        sz_slice(id, (size_t)snprintf(id, sizeof(id), "%016llx", (unsigned long long)pending->op.id));
    if (r->is_subject)
        e.text[SZ_AUDIT_SUBJECT] = sz_cstr(r->subject);
    if (r->reason[0] != '\0')
        e.text[SZ_AUDIT_DETAIL] = sz_cstr(r->reason);
    (void)sz_audit_note(pending->call.server->gate.audit, &e); /* a full queue counts its own losses */
}

static void on_saved(struct sz_threat_op *op, enum sz_threat_saved result)
{
    struct pending *pending = SZ_CONTAINER(op, struct pending, op);
    struct sz_threat_record *r = &pending->record;
    struct sz_buf body = {0};
    switch (result) {
    case SZ_THREAT_FULL:
        refuse(&pending->call, 503, "no room for another block; lift one");
        return;
    case SZ_THREAT_UNSAFE:
        refuse(&pending->call, 503, "it counts here, but the disk does not have it: tried again until it does");
        return;
    case SZ_THREAT_ABSENT:
        refuse(&pending->call, 404, "no block has that id");
        return;
    case SZ_THREAT_SAVED:
    case SZ_THREAT_STOOD:
        break;
    }
    record(pending, result == SZ_THREAT_STOOD ? 200 : pending->fresh);
    sz_buf_printf(&body, "{\"id\":\"%016llx\"", (unsigned long long)op->id);
    if (r->made.us != 0) {
        sz_buf_printf(&body, ",");
        write_whom(&body, r);
        sz_buf_printf(&body, ",");
        write_until(&body, r->until);
    }
    sz_buf_printf(&body, "}\n");
    sz_admin_send(&pending->call, result == SZ_THREAT_STOOD ? 200 : pending->fresh, "application/json",
                  sz_buf_slice(&body));
    sz_buf_fini(&body);
}

static struct pending *new_pending(const struct sz_admin_call *call, unsigned fresh)
{
    struct pending *pending = h2o_mem_alloc_shared(&call->req->pool, sizeof(*pending), on_dispose);
    *pending = (struct pending){.op = {.on_done = on_saved}, .call = *call, .fresh = fresh};
    pending->call.head = NULL; /* gone by then */
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

/* An event may be the one too many: its block is the engine's own, not the store's. */
static void judge(struct sz_server *server, const struct sz_threat_record *r)
{
    struct sz_threat *threat = server->gate.threat;
    struct sz_threat_policy policy = sz_threat_policy(&server->current->conf->threat);
    struct sz_threat_key key = r->is_subject ? sz_threat_subject(threat, sz_cstr(r->issuer), sz_cstr(r->subject))
                                             : sz_threat_address(threat, r->addr);
    struct sz_threat_view view;
    if (sz_threat_judge(threat, key, &policy, sz_loop_now(server->service->loop), &view))
        sz_log(SZ_LOG_WARN, "threat", "the provider's events block %s", r->is_subject ? "a subject" : "an address");
}

typedef bool read_fn(const json_t *object, const struct sz_conf *conf, struct sz_pool *pool, struct sz_wall now,
                     struct sz_threat_record *r, const char **why);

static void post(struct sz_admin_call *call, unsigned fresh, read_fn *read)
{
    struct sz_server *server = call->server;
    struct pending *pending = new_pending(call, fresh);
    struct sz_arena arena;
    const char *why = "the body is at most 4096 bytes";
    struct sz_slice body = sz_slice(call->req->entity.base, call->req->entity.len);
    json_t *object = body.n > BODY_MAX ? NULL : sz_api_json(body, &why);

    sz_arena_init(&arena);
    if (object != NULL &&
        read(object, server->current->conf, &arena.pool, sz_loop_wall(server->service->loop), &pending->record, &why)) {
        sz_threat_store_add(server->threat_store, &pending->record, &pending->op);
        if (pending->record.is_event)
            judge(server, &pending->record);
        else
            sz_log(SZ_LOG_INFO, "admin", "a block was set by hand: %016llx", (unsigned long long)pending->op.id);
    } else {
        refuse(call, 400, why);
    }
    json_decref(object);
    sz_arena_fini(&arena);
}

/* A block that nothing would look at must not be promised. */
static bool is_off(struct sz_admin_call *call)
{
    bool off = call->server->current->conf->threat.mode == SZ_THREAT_OFF;
    if (off)
        refuse(call, 503, "threat is off: the configuration has no `threat`, or its mode says so");
    return off;
}

void sz_admin_threat_block(struct sz_admin_call *call)
{
    if (!is_off(call))
        post(call, 201, read_block);
}

void sz_admin_threat_unblock(struct sz_admin_call *call)
{
    struct sz_slice id = sz_from(call->path, sizeof("/threat/blocks/") - 1);
    uint64_t number = 0;
    for (size_t i = 0; i < id.n && id.n == 16; i++) {
        int digit = sz_hex_digit(id.p[i]);
        number = digit < 0 ? 0 : number << 4 | (unsigned)digit;
    }
    struct pending *pending = new_pending(call, 200);
    sz_threat_store_lift(call->server->threat_store, number, &pending->op);
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
    if (!has_events_key(call, &why))
        sz_respond_problem(call->req, 401, SZ_REASON_invalid_token, why);
    else if (!is_off(call))
        post(call, 202, read_event);
}
