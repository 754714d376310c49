/*
 * A call from its start to its failure: picks a url, takes or opens a connection, tries again where that is safe.
 *
 * Our own small HTTP/1.1 client instead of h2o_http1client, because that one exports and imports the socket and peeks
 * at it on every request (four epoll_ctl, two fcntl, one recv), re-arms a timer at every step, copies every field,
 * reads without bound, cannot pause, checks names of certificates too late and addresses never, and takes what
 * follows a response for the next one's beginning.
 */
#include "edge/proxy.h"

#include <errno.h>

#include "edge/proxy_call.h"
#include "edge/thread.h"
#include "subzero/log.h"

static const struct sz_upconn_ops ops;

static struct sz_proxy_call *call_of(struct sz_upconn_user *user)
{
    return SZ_CONTAINER(user, struct sz_proxy_call, user);
}

static struct sz_mono now_of(const struct sz_proxy_call *call)
{
    return sz_loop_now(call->pools->loop);
}

static const struct sz_forward *forward_of(const struct sz_proxy_call *call)
{
    return &call->x->txn.forward;
}

/* A request that is no ordinary one leaves nothing behind that the next one could meet. */
static bool has_own_connection(const struct sz_proxy_call *call)
{
    return forward_of(call)->own_connection || forward_of(call)->websocket;
}

/* ---- ends ------------------------------------------------------------------------------------------------- */

void sz_call_let_go(struct sz_proxy_call *call)
{
    struct sz_upconn *conn = call->user.conn;
    if (conn == NULL)
        return;
    bool complete = call->state == SZ_CALL_DONE && call->out_n == 0 && call->keep_alive && !call->surplus;
    if (complete && !has_own_connection(call))
        sz_upconn_release(conn);
    else
        sz_upconn_close(conn);
}

void sz_call_fail(struct sz_proxy_call *call, enum sz_reason reason, const char *detail)
{
    struct sz_exchange *x = call->x;

    if (call->user.conn != NULL)
        sz_upconn_close(call->user.conn);
    call->state = SZ_CALL_DONE;
    sz_exchange_problem(x, reason, detail);
}

static void on_later(struct sz_defer *defer)
{
    struct sz_proxy_call *call = SZ_CONTAINER(defer, struct sz_proxy_call, later);
    sz_call_fail(call, SZ_REASON_upstream_unavailable, call->later_detail);
}

static void fail_later(struct sz_proxy_call *call, const char *detail)
{
    call->later.on_run = on_later;
    call->later_detail = detail;
    sz_defer_start(call->pools->loop, &call->later);
}

/* What we lack says nothing about the other side. */
static bool is_our_fault(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL;
}

static void count_failure(struct sz_proxy_call *call, int err)
{
    struct sz_upstream *upstream = call->upstream;

    if (!is_our_fault(err) && sz_health_failed(upstream->shared->health, upstream->urls_n, call->url->at, now_of(call)))
        sz_log(SZ_LOG_WARN, "proxy", "upstream %s: %s is put aside for 10 s: %s", upstream->name, call->url->authority,
               strerror(err));
}

/* ---- the way to a connection ------------------------------------------------------------------------------ */

static void on_open(struct sz_upconn_user *user)
{
    struct sz_proxy_call *call = call_of(user);
    if (!sz_call_send(call))
        sz_call_lost(call, -ECONNRESET);
}

/* An idle connection that still looks alive.  What cannot be repeated is worth one more system call. */
static bool take(struct sz_proxy_call *call)
{
    while (sz_upconn_take(call->url, &call->user)) {
        if (forward_of(call)->retry_safe || !sz_upconn_is_stale(call->user.conn))
            return true;
        sz_upconn_close(call->user.conn);
    }
    return false;
}

static void open_new(struct sz_proxy_call *call)
{
    call->state = SZ_CALL_OPENING;
    sz_upconn_open(call->url, &call->user);
}

static bool pick(struct sz_proxy_call *call)
{
    struct sz_upstream *upstream = call->upstream;
    size_t at = sz_health_pick(upstream->shared->health, upstream->urls_n, &upstream->turn, call->tried, now_of(call));
    if (at == upstream->urls_n)
        return false;
    call->url = &upstream->urls[at];
    return true;
}

static void begin(struct sz_proxy_call *call)
{
    /* A dead connection that took nothing has done no harm: the next one, at last a new one. */
    while (!has_own_connection(call) && take(call)) {
        if (sz_call_send(call))
            return;
        sz_upconn_close(call->user.conn);
    }
    open_new(call);
}

/* Nothing was sent: another url may take the request, whatever it is. */
static void on_failed(struct sz_upconn_user *user, int err)
{
    struct sz_proxy_call *call = call_of(user);

    count_failure(call, err);
    call->tried |= (uint64_t)1 << call->url->at;
    if (pick(call))
        begin(call);
    else if (err == ETIMEDOUT)
        sz_call_fail(call, SZ_REASON_upstream_timeout, "connecting took too long");
    else
        sz_call_fail(call, SZ_REASON_upstream_unavailable, NULL);
}

void sz_call_lost(struct sz_proxy_call *call, ssize_t status)
{
    bool race = call->user.conn->used && call->have == 0;

    sz_upconn_close(call->user.conn);
    if (race && !call->retried && (forward_of(call)->retry_safe || !call->any_written)) {
        call->retried = true;
        open_new(call);
        return;
    }
    if (!race && call->have == 0 && status == -ECONNRESET)
        count_failure(call, ECONNRESET);
    sz_call_fail(call, SZ_REASON_upstream_error, "the connection ended before the response");
}

static void on_timeout(struct sz_upconn_user *user)
{
    struct sz_proxy_call *call = call_of(user);
    if (call->state == SZ_CALL_BODY)
        sz_call_body_timeout(call);
    else
        sz_call_fail(call, SZ_REASON_upstream_timeout, NULL);
}

static void on_readable(struct sz_upconn_user *user)
{
    struct sz_proxy_call *call = call_of(user);
    if (call->state == SZ_CALL_BODY)
        sz_call_read_body(call);
    else
        sz_call_read_head(call);
}

static void on_writable(struct sz_upconn_user *user)
{
    sz_call_on_writable(call_of(user));
}

static const struct sz_upconn_ops ops = {
    .on_open = on_open,
    .on_failed = on_failed,
    .on_readable = on_readable,
    .on_writable = on_writable,
    .on_timeout = on_timeout,
};

/* ---- the exchange's side ---------------------------------------------------------------------------------- */

void sz_proxy_start(struct sz_exchange *x)
{
    struct sz_proxy_pools *pools = x->thread->pools;
    struct sz_proxy_call *call = h2o_mem_alloc_pool(&x->req->pool, sizeof(*call));
    const struct sz_conf *conf = x->txn.snapshot->conf;

    memset(call, 0, sizeof(*call));
    call->user.ops = &ops;
    call->x = x;
    call->pools = pools;
    call->started = sz_loop_now(pools->loop);
    x->proxy = call;
    sz_exchange_wait(x);
    call->upstream = x->generation->upstreams[x->txn.forward.upstream - conf->upstreams];
    call->upstream->refs++;
    if (pick(call))
        begin(call);
    else
        fail_later(call, "no url");
}

void sz_proxy_detach(struct sz_exchange *x)
{
    struct sz_proxy_call *call = x->proxy;
    if (call == NULL)
        return;
    x->proxy = NULL;
    sz_defer_cancel(&call->later);
    if (call->user.conn != NULL)
        sz_upconn_close(call->user.conn);
    sz_client_drained(call);
    sz_call_unwatch_events(call);
    if (call->block != NULL)
        sz_block_put(call->pools, call->block);
    if (call->upstream != NULL)
        sz_upstream_unref(call->upstream);
}
