/*
 * HTTP/1: everything is taken from our own reading of the raw head, which still lies in the socket's input buffer while
 * a request is pending (the names have been lower-cased in place, and nothing more is read until the response is out).
 * HTTP/2: from h2o's decoded list, held to the same rules.
 */
#include "edge/request.h"

#include "edge/connection.h"
#include "edge/h2_check.h"
#include "edge/h2_streams.h"
#include "edge/head_check.h"
#include "edge/head_parse.h"
#include "edge/iovec.h"
#include "edge/thread.h"
#include "edge/tls_peer.h"

/* Told apart by length first: most fields are none of them. */
static bool is_framing(struct sz_slice name)
{
    switch (name.n) {
    case 4:
        return sz_eq(name, SZ_S("host"));
    case 6:
        return sz_eq(name, SZ_S("expect"));
    case 7:
        return sz_eq(name, SZ_S("upgrade"));
    case 14:
        return sz_eq(name, SZ_S("content-length"));
    case 17:
        return sz_eq(name, SZ_S("transfer-encoding"));
    default:
        return false;
    }
}

/* Room for `n` at once: the list is built in one go, whatever is added later is little. */
static void reserve(struct sz_exchange *x, size_t n)
{
    struct sz_headers *headers = &x->txn.req.headers;
    headers->cap = n + 8;
    headers->v = sz_pool_alloc(x->txn.pool, headers->cap * sizeof(*headers->v));
}

static void from_head(struct sz_exchange *x, const struct sz_head *head)
{
    struct sz_request *req = &x->txn.req;
    req->protocol = head->http_1_0 ? SZ_HTTP_1_0 : SZ_HTTP_1_1;
    req->method = head->method;
    req->target = head->target;
    if (head->target.p[0] == '?')
        req->target = sz_pool_printf(x->txn.pool, "/%.*s", SZ_FMT(head->target));
    req->authority = head->authority;
    req->has_body = head->chunked || head->has_length;
    req->upgrade = sz_head_is_websocket(head);
    reserve(x, head->fields_n);
    for (size_t i = 0; i < head->fields_n; i++) {
        if (!is_framing(head->fields[i].name))
            req->headers.v[req->headers.n++] = head->fields[i];
    }
}

static bool within(const struct sz_head *head, const struct sz_head_limits *most, struct sz_refusal *refusal)
{
    if (head->length <= most->bytes && head->fields_n <= most->fields)
        return true;
    refusal->reason = SZ_REASON_headers_too_large;
    refusal->why = head->length <= most->bytes ? "too many header lines" : "the request head is too long";
    return false;
}

static bool read_http1(struct sz_exchange *x, struct sz_refusal *refusal)
{
    const struct sz_conf_limits *limits = &sz_worker_snapshot(&x->thread->worker)->conf->limits;
    h2o_buffer_t *input = x->conn->sock->input;
    struct sz_head_limits most = {.bytes = limits->request_head, .fields = limits->headers};
    const struct sz_head *known = sz_head_parse_known(input->bytes);
    struct sz_head head;

    if (known != NULL) {
        from_head(x, known);
        return within(known, &most, refusal);
    }
    int rc = sz_head_check(sz_slice(input->bytes, input->size), &most, &head, &refusal->why);
    if (rc != 0) {
        refusal->reason = rc == SZ_HEAD_TOO_LARGE ? SZ_REASON_headers_too_large : SZ_REASON_bad_request;
        return false;
    }
    from_head(x, &head);
    return true;
}

/* h2o compares content-length with the data that came, but not when the stream ended with its header. */
static bool length_agrees(h2o_req_t *req)
{
    h2o_http2_stream_t *stream = H2O_STRUCT_FROM_MEMBER(h2o_http2_stream_t, req, req);
    return stream->_expected_content_length == SIZE_MAX || stream->_expected_content_length == req->entity.len;
}

/* HTTP/2 sends cookies in crumbs; to HTTP/1 they are one field (RFC 9113 8.2.3). */
static void join_cookies(struct sz_exchange *x)
{
    struct sz_headers *headers = &x->txn.req.headers;
    struct sz_header *first = NULL;
    size_t kept = 0, size = 0;
    char *joined = NULL;

    for (size_t i = 0; i < headers->n; i++) {
        if (sz_eq(headers->v[i].name, SZ_S("cookie")))
            size += headers->v[i].value.n + 2;
    }
    for (size_t i = 0; i < headers->n; i++) {
        struct sz_slice value = headers->v[i].value;
        bool cookie = sz_eq(headers->v[i].name, SZ_S("cookie"));
        if (!cookie || first == NULL)
            headers->v[kept++] = headers->v[i];
        if (!cookie)
            continue;
        if (first == NULL) {
            first = &headers->v[kept - 1];
            joined = sz_pool_alloc(x->txn.pool, size);
            first->value = sz_slice(joined, 0);
        } else {
            memcpy(joined + first->value.n, "; ", 2);
            first->value.n += 2;
        }
        memcpy(joined + first->value.n, value.p, value.n);
        first->value.n += value.n;
    }
    headers->n = kept;
}

static bool read_http2(struct sz_exchange *x, struct sz_refusal *refusal)
{
    const struct sz_conf_limits *limits = &sz_worker_snapshot(&x->thread->worker)->conf->limits;
    struct sz_head_limits most = {.bytes = limits->request_head, .fields = limits->headers};
    h2o_req_t *h2 = x->req;
    struct sz_request *req = &x->txn.req;

    int rc = sz_h2_check(h2, &most, &refusal->why);
    if (rc != 0) {
        refusal->reason = rc == SZ_HEAD_TOO_LARGE ? SZ_REASON_headers_too_large : SZ_REASON_bad_request;
        /* An empty :path is no request at all (RFC 9113 8.3.1): other streams are not trusted either. */
        if (h2->input.path.len == 0)
            sz_conn_cut(x->conn);
        return false;
    }
    if (!length_agrees(h2)) {
        refusal->why = "content-length does not agree with the data";
        return false;
    }
    req->protocol = SZ_HTTP_2;
    req->method = sz_iovec(h2->input.method);
    req->target = sz_iovec(h2->input.path);
    req->authority = sz_iovec(h2->input.authority);
    req->has_body = h2->entity.base != NULL;
    reserve(x, h2->headers.size);
    for (size_t i = 0; i < h2->headers.size; i++) {
        struct sz_slice name = sz_iovec(*h2->headers.entries[i].name);
        if (!is_framing(name))
            req->headers.v[req->headers.n++] =
                (struct sz_header){.name = name, .value = sz_iovec(h2->headers.entries[i].value)};
    }
    join_cookies(x);
    return true;
}

bool sz_request_read(struct sz_exchange *x, struct sz_refusal *refusal)
{
    struct sz_request *req = &x->txn.req;
    req->https = x->conn->sock->ssl != NULL;
    req->client_cert_sha256 = req->https ? sz_tls_peer_cert(x->conn) : NULL;
    req->body = sz_iovec(x->req->entity);
    return x->req->version >= 0x200 ? read_http2(x, refusal) : read_http1(x, refusal);
}
