/*
 * A request as the pipeline sees it: what the edge took off the wire, after the strict head
 * checks and before anything was decided.  In decide mode it is the client's original request
 * as the calling proxy describes it, not the call itself.  All bytes are borrowed and live as long
 * as the transaction.
 */
#ifndef SZ_PIPELINE_REQUEST_H
#define SZ_PIPELINE_REQUEST_H

#include "subzero/addr.h"
#include "subzero/base.h"
#include "subzero/conf.h"

struct sz_header {
    struct sz_slice name; /* lower-case */
    struct sz_slice value;
};

struct sz_headers {
    struct sz_header *v;
    size_t n, cap;
};
/* Grows in the pool; name must already be lower-case. */
void sz_headers_add(struct sz_headers *h, struct sz_pool *pool, struct sz_slice name, struct sz_slice value);
/* First value of that (lower-case) name, SZ_NONE when absent; *count (may be NULL) = number of field lines. */
struct sz_slice sz_headers_get(const struct sz_headers *h, struct sz_slice name, unsigned *count);

enum sz_protocol { SZ_HTTP_1_0, SZ_HTTP_1_1, SZ_HTTP_2 };

struct sz_request {
    const struct sz_conf_listener *listener;
    enum sz_protocol protocol;
    bool https;
    struct sz_slice method;
    struct sz_slice target; /* origin-form bytes as received ("/a%2Fb?x"), or "*"; absolute-form: its path and query */
    struct sz_slice authority; /* Host, :authority or the absolute-form's; may be empty on HTTP/1.0 */
    struct sz_headers headers; /* as received: Host, Content-Length, Transfer-Encoding, Upgrade, Expect left out */
    struct sz_slice body;      /* whole, buffered by h2o */
    bool has_body;             /* a body was announced, even an empty one */
    struct sz_addr peer;       /* the socket's other end (after PROXY protocol) */
    bool upgrade; /* a well-formed WebSocket handshake (RFC 6455 4.2.1) over HTTP/1.1; others are ignored */
    const uint8_t *client_cert_sha256; /* 32 bytes: SHA-256 of the verified TLS client certificate; NULL without one */
};

#endif
