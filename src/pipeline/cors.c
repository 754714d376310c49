/*
 * CORS (Fetch standard): what a browser on another origin may read.  Preflights are answered here and
 * never forwarded; real answers and our own errors carry the same fields, so that a page can read why it was refused.
 */
#include "pipeline/header_value.h"
#include "pipeline/stages.h"

static void add(struct sz_txn *txn, struct sz_slice name, struct sz_slice value)
{
    sz_headers_add(&txn->respond, txn->pool, name, value);
}

static bool origin_allowed(const struct sz_conf_cors *cors, struct sz_slice origin)
{
    bool allowed = cors->any_origin;
    for (size_t i = 0; i < cors->origins.n && !allowed; i++)
        allowed = sz_ieq(cors->origins.v[i], origin);
    return origin.n > 0 && allowed;
}

void sz_cors_respond(struct sz_txn *txn, const struct sz_conf_cors *cors, struct sz_slice origin)
{
    if (!cors->any_origin)
        add(txn, SZ_S("vary"), SZ_S("Origin")); /* also without an Origin: a cache must not mix the two */
    if (!origin_allowed(cors, origin))
        return;
    add(txn, SZ_S("access-control-allow-origin"), cors->any_origin ? SZ_S("*") : origin);
    if (cors->credentials)
        add(txn, SZ_S("access-control-allow-credentials"), SZ_S("true"));
    if (cors->expose.n > 0 && !txn->preflight)
        add(txn, SZ_S("access-control-expose-headers"), sz_header_list(&cors->expose, ", ", txn->pool));
}

void sz_cors_preflight(struct sz_txn *txn)
{
    const struct sz_conf_cors *cors = &txn->match.route->cors;
    struct sz_slice origin = sz_headers_get(&txn->req.headers, SZ_S("origin"), NULL);
    sz_cors_respond(txn, cors, origin);
    if (origin_allowed(cors, origin)) {
        add(txn, SZ_S("access-control-allow-methods"), sz_header_list(&cors->methods, ", ", txn->pool));
        if (cors->headers.n > 0)
            add(txn, SZ_S("access-control-allow-headers"), sz_header_list(&cors->headers, ", ", txn->pool));
        if (cors->max_age.us > 0)
            add(txn, SZ_S("access-control-max-age"),
                sz_pool_printf(txn->pool, "%lld", (long long)(cors->max_age.us / 1000000)));
    }
    txn->answer = (struct sz_answer){.status = 204, .body = SZ_NONE};
}
