/*
 * GET /audit and GET /audit/export: the question goes to the journal's readers, the answer comes back as a message.  An
 * export is pulled: the next piece is asked for when the client has taken the last.
 */
#include "edge/admin.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"

struct audit_call {
    h2o_generator_t generator;
    h2o_req_t *req;
    struct sz_audit_read *read;
    bool whole, started;
};

/* Reasons of this page alone: they are no reasons of a decision. */
static void refuse(h2o_req_t *req, unsigned status, const char *reason, const char *detail)
{
    struct sz_header v[] = {
        {SZ_S("content-type"), SZ_S("application/problem+json")},
        {SZ_S("cache-control"), SZ_S("no-store")},
        {SZ_S("x-subzero-reason"), sz_cstr(reason)},
        {SZ_S("retry-after"), SZ_S("1")},
    };
    struct sz_headers headers = {.v = v, .n = status == 503 ? 4 : 3};
    struct sz_buf body = {0};
    sz_buf_printf(&body,
                  "{\"type\":\"urn:subzero:problem:%s\",\"title\":\"%s\",\"status\":%u,\"reason\":\"%s\",\"detail\":",
                  reason, sz_status_text(status), status, reason);
    sz_buf_json(&body, sz_cstr(detail));
    sz_buf_printf(&body, "}\n");
    char *copy = h2o_mem_alloc_pool(&req->pool, body.n);
    memcpy(copy, body.p, body.n);
    sz_respond(req, status, &headers, sz_slice(copy, body.n));
    sz_buf_fini(&body);
}

static void refuse_for(struct audit_call *call, enum sz_audit_outcome outcome, const char *why)
{
    switch (outcome) {
    case SZ_AUDIT_DAMAGED:
        refuse(call->req, 500, "journal_damaged", why);
        return;
    case SZ_AUDIT_BUSY:
        refuse(call->req, 503, "audit_busy", "too many questions to the journal wait already");
        return;
    case SZ_AUDIT_FAILED:
    case SZ_AUDIT_MORE:
    case SZ_AUDIT_END:
        break;
    }
    refuse(call->req, 500, "journal_unreadable", why);
}

static void start_response(struct audit_call *call)
{
    const char *type = !call->whole                       ? "application/json"
                       : sz_audit_read_is_csv(call->read) ? "text/csv; charset=utf-8"
                                                          : "application/jsonl";
    struct sz_header v[] = {
        {SZ_S("content-type"), sz_cstr(type)},
        {SZ_S("cache-control"), SZ_S("no-store")},
        {SZ_S("x-content-type-options"), SZ_S("nosniff")},
    };
    struct sz_headers headers = {.v = v, .n = SZ_COUNT(v)};
    call->req->res.status = 200;
    call->req->res.reason = "OK";
    sz_respond_headers(call->req, &headers);
    h2o_start_response(call->req, &call->generator);
    call->started = true;
}

static bool bodiless(const struct audit_call *call)
{
    return h2o_memis(call->req->input.method.base, call->req->input.method.len, H2O_STRLIT("HEAD"));
}

/* The next piece; when nobody reads any more, the body breaks off. */
static void go_on(struct audit_call *call)
{
    if (!sz_audit_read_next(call->read))
        h2o_send(call->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

static void on_piece(void *arg, enum sz_audit_outcome outcome, struct sz_slice body, const char *why)
{
    struct audit_call *call = arg;
    bool good = outcome == SZ_AUDIT_MORE || outcome == SZ_AUDIT_END;
    if (!call->started && !good) {
        refuse_for(call, outcome, why);
        return;
    }
    if (!call->started) {
        call->req->res.content_length = call->whole ? SIZE_MAX : body.n;
        start_response(call);
    }
    h2o_iovec_t piece = h2o_iovec_init(body.p, body.n);
    /* What was damaged is not passed over in silence: the body breaks off. */
    h2o_send_state_t state = !good                                         ? H2O_SEND_STATE_ERROR
                             : outcome == SZ_AUDIT_MORE && !bodiless(call) ? H2O_SEND_STATE_IN_PROGRESS
                                                                           : H2O_SEND_STATE_FINAL;
    if (outcome == SZ_AUDIT_MORE && body.n == 0 && state == H2O_SEND_STATE_IN_PROGRESS)
        go_on(call); /* much was read and nothing matched: on with it */
    else
        h2o_send(call->req, &piece, body.n == 0 || bodiless(call) ? 0 : 1, state);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct audit_call *call = (struct audit_call *)generator;
    (void)req;
    go_on(call);
}

static void on_dispose(void *arg)
{
    struct audit_call *call = arg;
    sz_audit_read_free(&call->read);
}

static void ask(struct sz_admin_call *admin, bool whole)
{
    struct sz_audit *audit = admin->server->gate.audit;
    struct sz_text why = {""};
    if (audit == NULL) {
        refuse(admin->req, 404, "no_journal", "there is no audit journal: 'audit.path' turns it on");
        return;
    }
    struct audit_call *call = h2o_mem_alloc_shared(&admin->req->pool, sizeof(*call), on_dispose);
    *call = (struct audit_call){.generator = {.proceed = on_proceed}, .req = admin->req, .whole = whole};
    call->read = sz_audit_read_start(audit, admin->server->service->loop, admin->query, whole, on_piece, call, &why);
    if (call->read == NULL)
        sz_respond_problem(admin->req, 400, SZ_REASON_bad_request, h2o_strdup(&admin->req->pool, why.s, SIZE_MAX).base);
    else if (!sz_audit_read_next(call->read))
        refuse_for(call, SZ_AUDIT_BUSY, "");
}

void sz_admin_audit(struct sz_admin_call *call)
{
    ask(call, false);
}

void sz_admin_audit_export(struct sz_admin_call *call)
{
    ask(call, true);
}
