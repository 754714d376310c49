/* The request may be gone before the answer: its pool tells, and the write goes on without it. */
#include "edge/admin_write.h"

#include <stdlib.h>

#include "edge/connection.h"
#include "edge/idempotency.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"

struct tie { /* on the request's pool */
    struct sz_admin_write *write;
};

struct sz_admin_write {
    h2o_req_t *req; /* NULL: the client has left */
    struct tie *tie;
    struct sz_server *server;
    uint64_t ticket; /* 0: no Idempotency-Key */
    struct sz_arena arena;
    struct sz_audit_event event;         /* texts in the arena */
    struct sz_audit_wait wait;           /* with audit.required the answer comes after the record */
    struct sz_admin_write *next, **prev; /* of those that wait so: server->writes; prev NULL: not one of them */
    unsigned status;
    struct sz_slice body;
};

static void on_dispose(void *p)
{
    struct tie *tie = p;
    if (tie->write != NULL)
        tie->write->req = NULL;
}

static void reply(h2o_req_t *req, unsigned status, struct sz_slice body)
{
    bool problem = status >= 400;
    struct sz_header v[] = {
        {SZ_S("content-type"), problem ? SZ_S("application/problem+json") : SZ_S("application/json")},
        {SZ_S("cache-control"), SZ_S("no-store")},
        {SZ_S("x-content-type-options"), SZ_S("nosniff")},
    };
    struct sz_headers headers = {.v = v, .n = SZ_COUNT(v)};
    char *copy = h2o_mem_alloc_pool(&req->pool, body.n + 1);
    if (body.n != 0)
        memcpy(copy, body.p, body.n);
    sz_respond(req, status, &headers, sz_slice(copy, body.n));
}

static struct sz_slice field(const struct sz_head *head, struct sz_slice name, unsigned *count)
{
    struct sz_slice value = SZ_NONE;
    *count = 0;
    for (size_t i = 0; i < head->fields_n; i++) {
        if (!sz_ieq(head->fields[i].name, name))
            continue;
        value = head->fields[i].value;
        ++*count;
    }
    return value;
}

/* ---- the record ---------------------------------------------------------------------------------------------------
 */

static void describe(const struct sz_admin_call *call, struct sz_audit_event *e)
{
    *e = (struct sz_audit_event){
        .kind = SZ_AUDIT_ADMIN, .has_address = true, .address = sz_conn_of_req(call->req)->peer};
    e->text[SZ_AUDIT_METHOD] = call->head->method;
    e->text[SZ_AUDIT_PATH] = call->path;
}

static void add_outcome(struct sz_audit_event *e, unsigned status)
{
    bool lifts = e->kind == SZ_AUDIT_UNBLOCK;
    e->effect = status >= 300   ? SZ_EFFECT_REFUSED
                : status == 201 ? SZ_EFFECT_CREATED
                : lifts         ? SZ_EFFECT_DELETED
                                : SZ_EFFECT_UNCHANGED;
    e->text[SZ_AUDIT_RESULT] = status < 300 ? SZ_S("ok") : SZ_S("refused");
}

/* One that changed nothing, because it was done before. */
static void record_replay(const struct sz_admin_call *call, unsigned status)
{
    struct sz_audit_event e;
    describe(call, &e);
    add_outcome(&e, status);
    (void)sz_audit_note(call->server->gate.audit, &e); /* a full queue counts its own losses */
}

/* True: answered. */
static bool replay(struct sz_admin_call *call, struct sz_slice key, unsigned keys, bool once, uint64_t *ticket)
{
    struct sz_slice body = sz_slice(call->req->entity.base, call->req->entity.len), answer, what;
    struct sz_buf named = {0};
    unsigned status;
    sz_buf_printf(&named, "%.*s %.*s", SZ_FMT(call->head->method), SZ_FMT(call->path));
    what = sz_buf_slice(&named);
    enum sz_idempotent found =
        keys > 1 ? SZ_IDEMPOTENT_BAD
                 : sz_idempotency_begin(call->server->idempotency, what, key, body,
                                        sz_loop_now(call->server->service->loop), ticket, &status, &answer);
    sz_buf_fini(&named);
    switch (found) {
    case SZ_IDEMPOTENT_NEW:
        return false;
    case SZ_IDEMPOTENT_KNOWN:
        status = status == 201 ? 200 : status; /* it stood already */
        record_replay(call, status);
        reply(call->req, status, answer);
        return true;
    case SZ_IDEMPOTENT_OTHER:
        sz_respond_problem(call->req, 422, SZ_REASON_bad_request, "this Idempotency-Key came with another body before");
        return true;
    case SZ_IDEMPOTENT_BUSY: /* the first is under way */
        *ticket = 0;
        if (once)
            sz_respond_problem(call->req, 409, SZ_REASON_bad_request,
                               "the first request with this Idempotency-Key is being carried out; ask again");
        return once; /* else what is written stands once, however often it is asked for */
    case SZ_IDEMPOTENT_BAD:
        break;
    }
    sz_respond_problem(call->req, 400, SZ_REASON_bad_request,
                       "an Idempotency-Key is 1 to 255 visible ASCII characters");
    return true;
}

static struct sz_admin_write *begin(struct sz_admin_call *call, bool once)
{
    unsigned keys;
    uint64_t ticket = 0;
    struct sz_slice key = field(call->head, SZ_S("idempotency-key"), &keys);
    if (keys > 0 && replay(call, key, keys, once, &ticket))
        return NULL;
    struct sz_admin_write *write = sz_xcalloc(1, sizeof(*write));
    write->req = call->req;
    write->server = call->server;
    write->ticket = ticket;
    sz_arena_init(&write->arena);
    describe(call, &write->event);
    write->event.text[SZ_AUDIT_METHOD] = sz_pool_dup(&write->arena.pool, call->head->method);
    write->event.text[SZ_AUDIT_PATH] = sz_pool_dup(&write->arena.pool, call->path);
    write->tie = h2o_mem_alloc_shared(&call->req->pool, sizeof(*write->tie), on_dispose);
    write->tie->write = write;
    return write;
}

struct sz_admin_write *sz_admin_write_begin(struct sz_admin_call *call)
{
    return begin(call, false);
}

struct sz_admin_write *sz_admin_write_begin_once(struct sz_admin_call *call)
{
    return begin(call, true);
}

void sz_admin_write_about(struct sz_admin_write *write, enum sz_audit_kind kind, const char *action,
                          struct sz_slice object, struct sz_slice subject, struct sz_slice detail)
{
    struct sz_pool *pool = &write->arena.pool;
    write->event.kind = kind;
    write->event.text[SZ_AUDIT_ACTION] = sz_pool_dup(pool, sz_cstr(action));
    if (object.p != NULL)
        write->event.text[SZ_AUDIT_OBJECT] = sz_pool_dup(pool, object);
    if (subject.p != NULL)
        write->event.text[SZ_AUDIT_SUBJECT] = sz_pool_dup(pool, subject);
    if (detail.p != NULL)
        write->event.text[SZ_AUDIT_DETAIL] = sz_pool_dup(pool, detail);
}

static void link_write(struct sz_admin_write *write)
{
    write->prev = &write->server->writes;
    write->next = write->server->writes;
    if (write->next != NULL)
        write->next->prev = &write->next;
    write->server->writes = write;
}

static void unlink_write(struct sz_admin_write *write)
{
    if (write->prev == NULL)
        return;
    *write->prev = write->next;
    if (write->next != NULL)
        write->next->prev = write->prev;
    write->prev = NULL;
}

static void finish(struct sz_admin_write *write, unsigned status, struct sz_slice body)
{
    unlink_write(write);
    if (write->ticket != 0)
        sz_idempotency_end(write->server->idempotency, write->ticket, status, body);
    if (write->req != NULL) {
        write->tie->write = NULL;
        reply(write->req, status, body);
    }
    sz_arena_fini(&write->arena);
    free(write);
}

/* The change stands, and whoever asked must not take it for recorded. */
static void finish_unrecorded(struct sz_admin_write *write)
{
    static const char body[] =
        "{\"type\":\"urn:subzero:problem:audit_unavailable\",\"title\":\"The decision cannot be recorded\","
        "\"status\":503,\"reason\":\"audit_unavailable\",\"detail\":\"it was done; its record is missing\"}\n";
    finish(write, 503, SZ_S(body));
}

static void on_recorded(struct sz_audit_wait *wait, bool committed)
{
    struct sz_admin_write *write = SZ_CONTAINER(wait, struct sz_admin_write, wait);
    if (committed)
        finish(write, write->status, write->body);
    else
        finish_unrecorded(write);
}

void sz_admin_write_end(struct sz_admin_write *write, unsigned status, struct sz_slice body)
{
    struct sz_server *server = write->server;
    add_outcome(&write->event, status);
    if (!sz_audit_required(server->gate.audit)) {
        (void)sz_audit_note(server->gate.audit, &write->event); /* a full queue counts its own losses */
        finish(write, status, body);
        return;
    }
    write->status = status;
    write->body = sz_pool_dup(&write->arena.pool, body);
    write->wait.on_done = on_recorded;
    if (sz_audit_commit(server->gate.audit, server->audit_port, &write->event, &write->wait) == SZ_AUDIT_PENDING)
        link_write(write);
    else
        finish_unrecorded(write);
}

void sz_admin_writes_end(struct sz_server *server)
{
    while (server->writes != NULL) {
        struct sz_admin_write *write = server->writes;
        sz_audit_wait_cancel(&write->wait);
        finish_unrecorded(write);
    }
}

void sz_admin_write_refuse(struct sz_admin_write *write, unsigned status, enum sz_reason reason, const char *detail)
{
    const struct sz_reason_row *row = sz_reason_row(reason);
    struct sz_buf body = {0};
    sz_buf_printf(&body,
                  "{\"type\":\"urn:subzero:problem:%s\",\"title\":\"%s\",\"status\":%u,\"reason\":\"%s\",\"detail\":",
                  row->name, row->title, status, row->name);
    sz_buf_json(&body, sz_cstr(detail));
    sz_buf_printf(&body, "}\n");
    sz_admin_write_end(write, status, sz_buf_slice(&body));
    sz_buf_fini(&body);
}
