/*
 * The response's head on its way to the client.  Fields are handed to h2o as they lie in the block: h2o writes
 * them out in its first send, before the block is used again.
 */
#include <errno.h>

#include "edge/proxy_call.h"
#include "edge/websocket.h"

#define INFORMATIONAL_MAX 16 /* 1xx responses before the real one */

static bool is_http2(const struct sz_proxy_call *call)
{
    return call->x->req->version >= 0x200;
}

/* What we say about the response replaces what the upstream says. */
static bool is_ours(const struct sz_headers *respond, struct sz_slice name)
{
    if (sz_ieq(name, SZ_S("vary")))
        return false; /* a list: what the upstream's answer depends on stands beside what ours does */
    for (size_t i = 0; i < respond->n; i++) {
        if (sz_ieq(respond->v[i].name, name))
            return true;
    }
    return false;
}

static void add_fields(struct sz_proxy_call *call, const struct sz_response *r)
{
    h2o_req_t *req = call->x->req;
    const struct sz_headers *respond = &call->x->txn.respond;
    bool http2 = is_http2(call), hide_server = req->conn->ctx->globalconf->server_name.len > 0;

    h2o_vector_reserve(&req->pool, &req->res.headers, r->fields_n + respond->n + 1);
    for (size_t i = 0; i < r->fields_n; i++) {
        struct sz_slice name = r->fields[i].name, value = r->fields[i].value;
        if (is_ours(respond, name) || (hide_server && sz_ieq(name, SZ_S("server"))))
            continue;
        h2o_add_header_by_str(&req->pool, &req->res.headers, name.p, name.n, http2, NULL, value.p, value.n);
    }
}

/* Towards the client the body ends by its length, by our chunks, by HTTP/2, or with the connection. */
static void set_framing(struct sz_proxy_call *call, const struct sz_response *r)
{
    h2o_req_t *req = call->x->req;
    bool endless = r->body == SZ_BODY_CHUNKED || r->body == SZ_BODY_UNTIL_CLOSE;

    req->res.content_length = r->has_length ? (size_t)r->length : SIZE_MAX;
    if (endless && req->version == 0x101) {
        call->chunked_out = true;
        req->bytes_counted_by_ostream = 1; /* the body's bytes, without our framing */
        h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_TRANSFER_ENCODING, NULL, H2O_STRLIT("chunked"));
    } else if (endless && !is_http2(call)) {
        req->http1_is_persistent = 0;
    }
    if (call->x->txn.forward.websocket)
        req->http1_is_persistent = 0; /* a refused handshake: the client may have sent frames already */
}

static char *reason_text(h2o_req_t *req, struct sz_slice reason)
{
    static char ok[] = "OK";
    return sz_eq(reason, SZ_S("OK")) ? ok : h2o_strdup(&req->pool, reason.p, reason.n).base;
}

static void start_response(struct sz_proxy_call *call, const struct sz_response *r)
{
    struct sz_exchange *x = call->x;
    h2o_req_t *req = x->req;

    req->res.status = (int)r->status;
    req->res.reason = reason_text(req, r->reason);
    add_fields(call, r);
    set_framing(call, r);
    x->answered = true;
    sz_exchange_add_respond(x);
    /* Neither a copy of the fields nor h2o's chunk filter: that one holds a head back until there is a body. */
    req->res.original.status = req->res.status;
    req->_next_filter_index = req->pathconf->filters.size;
    call->generator.proceed = sz_call_proceed;
    h2o_start_response(req, &call->generator);
}

static void respond(struct sz_proxy_call *call, const struct sz_response *r, size_t head_n)
{
    struct sz_mono now = sz_loop_now(call->pools->loop);
    struct sz_piece piece;

    sz_health_ok(&call->upstream->shared->health[call->url->at]);
    sz_observe(call->pools->thread, call->upstream->latency, sz_between(call->started, now));
    call->state = SZ_CALL_BODY;
    call->body = r->body;
    call->left = r->body == SZ_BODY_LENGTH ? r->length : 0;
    call->keep_alive = r->keep_alive;
    if (sz_call_decode(call, call->block->bytes + head_n, call->have - head_n, &piece) != 0) {
        sz_call_fail(call, SZ_REASON_upstream_error, "malformed chunk");
        return;
    }
    sz_upconn_deadline(call->user.conn, sz_after(now, call->upstream->idle));
    start_response(call, r);
    if (r->event_stream && !piece.ended)
        sz_call_watch_events(call);
    sz_call_emit(call, &piece);
}

static bool proof_is_right(const struct sz_proxy_call *call, const struct sz_response *r)
{
    char expected[SZ_WEBSOCKET_ACCEPT];
    unsigned keys;
    struct sz_slice key = sz_headers_get(&call->x->txn.forward.headers, SZ_S("sec-websocket-key"), &keys);

    if (keys != 1 || !r->upgrade_websocket)
        return false;
    sz_websocket_accept(key, expected);
    return sz_eq(r->accept, sz_slice(expected, sizeof(expected)));
}

static void switch_protocols(struct sz_proxy_call *call, const struct sz_response *r, size_t head_n)
{
    h2o_req_t *req = call->x->req;

    if (!call->x->txn.forward.websocket || !proof_is_right(call, r)) {
        sz_call_fail(call, SZ_REASON_upstream_error, "a 101 that nobody asked for, or without the right proof");
        return;
    }
    sz_health_ok(&call->upstream->shared->health[call->url->at]);
    req->res.status = 101;
    req->res.reason = "Switching Protocols";
    add_fields(call, r);
    h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_UPGRADE, NULL, H2O_STRLIT("websocket"));
    call->x->answered = true;
    sz_exchange_add_respond(call->x);
    sz_tunnel_start(call, head_n);
}

/* Takes a 1xx response off the front; the real one may already be behind it. */
static bool skip_informational(struct sz_proxy_call *call, size_t head_n)
{
    if (++call->informational > INFORMATIONAL_MAX)
        return false;
    call->have -= head_n;
    memmove(call->block->bytes, call->block->bytes + head_n, call->have);
    call->scanned = 0;
    return true;
}

static void look(struct sz_proxy_call *call)
{
    struct sz_response *r = call->pools->response;
    bool is_head = sz_eq(call->x->txn.forward.method, SZ_S("HEAD"));
    const char *why = NULL;

    for (;;) {
        ptrdiff_t head_n = sz_response_scan(call->block->bytes, call->have, &call->scanned);
        if (head_n == 0 && call->have < SZ_RESPONSE_HEAD_MAX)
            return;
        if (head_n <= 0)
            why = head_n == 0 ? "the response's head is too large" : "malformed response";
        else if (sz_response_parse(r, call->block->bytes, (size_t)head_n, is_head, is_http2(call), &why) == 0) {
            if (r->status >= 200)
                return respond(call, r, (size_t)head_n);
            if (r->status == 101)
                return switch_protocols(call, r, (size_t)head_n);
            if (skip_informational(call, (size_t)head_n))
                continue;
            why = "too many informational responses";
        }
        sz_call_fail(call, SZ_REASON_upstream_error, why);
        return;
    }
}

void sz_call_read_head(struct sz_proxy_call *call)
{
    if (call->block == NULL)
        call->block = sz_block_get(call->pools);
    ssize_t n = sz_upconn_read(call->user.conn, call->block->bytes + call->have, SZ_RESPONSE_HEAD_MAX - call->have);
    if (n == -EAGAIN)
        return;
    if (n <= 0) {
        sz_call_lost(call, n);
        return;
    }
    call->have += (size_t)n;
    look(call);
}
