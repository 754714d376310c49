/* The request may be gone before the answer: its pool tells, and the write goes on without it. */
#include "edge/admin_write.h"

#include <stdlib.h>

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

/* True: answered. */
static bool replay(struct sz_admin_call *call, struct sz_slice key, unsigned keys, uint64_t *ticket)
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
        reply(call->req, status, answer);
        return true;
    case SZ_IDEMPOTENT_OTHER:
        sz_respond_problem(call->req, 422, SZ_REASON_bad_request, "this Idempotency-Key came with another body before");
        return true;
    case SZ_IDEMPOTENT_BUSY:
        sz_respond_problem(call->req, 409, SZ_REASON_bad_request,
                           "the first request with this Idempotency-Key is not over");
        return true;
    case SZ_IDEMPOTENT_BAD:
        break;
    }
    sz_respond_problem(call->req, 400, SZ_REASON_bad_request,
                       "an Idempotency-Key is 1 to 255 visible ASCII characters");
    return true;
}

struct sz_admin_write *sz_admin_write_begin(struct sz_admin_call *call)
{
    unsigned keys;
    uint64_t ticket = 0;
    struct sz_slice key = field(call->head, SZ_S("idempotency-key"), &keys);
    if (keys > 0 && replay(call, key, keys, &ticket))
        return NULL;
    struct sz_admin_write *write = sz_xcalloc(1, sizeof(*write));
    write->req = call->req;
    write->server = call->server;
    write->ticket = ticket;
    write->tie = h2o_mem_alloc_shared(&call->req->pool, sizeof(*write->tie), on_dispose);
    write->tie->write = write;
    return write;
}

void sz_admin_write_end(struct sz_admin_write *write, unsigned status, struct sz_slice body)
{
    if (write->ticket != 0)
        sz_idempotency_end(write->server->idempotency, write->ticket, status, body);
    if (write->req != NULL) {
        write->tie->write = NULL;
        reply(write->req, status, body);
    }
    free(write);
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
