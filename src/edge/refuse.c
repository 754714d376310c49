/* Refusals of what never became a request that could be judged. */
#include "edge/refuse.h"

#include "edge/connection.h"
#include "edge/head_check.h"
#include "edge/iovec.h"
#include "edge/listener.h"
#include "edge/overrides.h"
#include "edge/respond.h"
#include "edge/thread.h"

#define OVERRIDE __attribute__((visibility("default"), used))

/* As far as it can be told apart from one that is too long. */
static enum sz_reason judge_unparsed(struct sz_exchange *x, const char **why)
{
    const struct sz_conf_limits *limits = &sz_worker_snapshot(&x->thread->worker)->conf->limits;
    struct sz_head_limits most = {.bytes = limits->request_head, .fields = limits->headers};
    h2o_buffer_t *input = x->conn->sock->input;
    struct sz_head head;

    if (input->size > most.bytes && memmem(input->bytes, most.bytes, "\r\n\r\n", 4) == NULL) {
        *why = "the request head is too long";
        return SZ_REASON_headers_too_large;
    }
    int rc = sz_head_check(sz_slice(input->bytes, input->size), &most, &head, why);
    if (rc == 0) /* our own reading would have let it pass: the stricter one counts */
        *why = "the request head is malformed";
    return rc == SZ_HEAD_TOO_LARGE ? SZ_REASON_headers_too_large : SZ_REASON_bad_request;
}

void sz_refuse_unparsed(struct sz_exchange *x)
{
    const char *why = NULL;
    enum sz_reason reason = judge_unparsed(x, &why);
    x->req->http1_is_persistent = 0;
    x->txn.req.protocol = SZ_HTTP_1_1;
    sz_exchange_problem(x, reason, why);
}

/* Which reason a refusal of h2o's own has: framing, body size, Expect. */
static enum sz_reason reason_of(int status)
{
    return status == 413 ? SZ_REASON_body_too_large : SZ_REASON_bad_request;
}

/* h2o's text says what was wrong with the bytes; the client's own bytes are never in it. */
static void refuse_recorded(h2o_req_t *req, struct sz_conn *conn, int status, const char *why)
{
    struct sz_exchange *x = sz_exchange_new(req, conn->thread);
    x->txn.req.listener = conn->listener->conf;
    x->txn.req.peer = conn->peer;
    x->txn.req.protocol = req->version >= 0x200 ? SZ_HTTP_2 : SZ_HTTP_1_1;
    x->txn.req.method = sz_iovec(req->input.method);
    sz_exchange_problem_as(x, reason_of(status), (unsigned)status, why);
}

OVERRIDE void h2o_send_error_generic(h2o_req_t *req, int status, const char *reason, const char *body, int flags)
{
    struct sz_conn *conn = sz_conn_of_req(req);
    (void)reason;
    sz_overrides_seen.error++;
    if (req->pathconf == NULL) {
        h2o_get_timestamp(req->conn->ctx, &req->pool, &req->processed_at);
        h2o_req_bind_conf(req, req->conn->hosts[0], &req->conn->hosts[0]->fallback_path);
    }
    if ((flags & H2O_SEND_ERROR_HTTP1_CLOSE_CONNECTION) != 0)
        req->http1_is_persistent = 0;
    if ((flags & H2O_SEND_ERROR_KEEP_HEADERS) == 0)
        memset(&req->res.headers, 0, sizeof(req->res.headers));
    if (conn != NULL && conn->listener->kind == SZ_LISTEN_DATA)
        refuse_recorded(req, conn, status, body);
    else
        sz_respond_problem(req, (unsigned)status, reason_of(status), NULL);
}
