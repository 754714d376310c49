/*
 * A call to a decide listener becomes the client's request: only from a trusted proxy, and without any header that
 * describes a request in any dialect.
 */
#include "edge/connection.h"
#include "edge/dialect.h"
#include "edge/thread.h"

static void drop_owned(struct sz_headers *headers)
{
    size_t kept = 0;
    for (size_t i = 0; i < headers->n; i++) {
        if (!sz_dialect_owns(headers->v[i].name))
            headers->v[kept++] = headers->v[i];
    }
    headers->n = kept;
}

bool sz_dialect_read(struct sz_exchange *x, struct sz_refusal *refusal)
{
    struct sz_request *req = &x->txn.req;
    struct sz_dialect_request original;

    if (!sz_cidrs_contain(&sz_worker_snapshot(&x->thread->worker)->conf->trusted_proxies, x->conn->peer)) {
        *refusal = (struct sz_refusal){.reason = SZ_REASON_untrusted_peer};
        return false;
    }
    if (sz_dialect_parse(req->listener->dialect, req, &original, &refusal->why) != 0) {
        refusal->reason = SZ_REASON_bad_request;
        return false;
    }
    req->method = original.method;
    req->target = original.target;
    req->authority = original.authority;
    req->https = original.https;
    /* The body, the upgrade and the certificate are the call's, not the client's. */
    req->body = SZ_NONE;
    req->has_body = false;
    req->upgrade = false;
    req->client_cert_sha256 = NULL;
    drop_owned(&req->headers);
    return true;
}
