/*
 * CORS (Fetch standard): what a browser on another origin may read.  Preflights are answered here and
 * never forwarded; real answers and our own errors carry the same fields, so that a page can read why it was refused.
 */
#include <stdio.h>

#include "pipeline/stages.h"

static bool contains(const struct sz_strings *list, struct sz_slice s, bool fold)
{
    for (size_t i = 0; i < list->n; i++) {
        if (fold ? sz_ieq(list->v[i], s) : sz_eq(list->v[i], s))
            return true;
    }
    return false;
}

static void add(struct sz_txn *txn, struct sz_slice name, struct sz_slice value)
{
    sz_headers_add(&txn->respond, txn->pool, name, value);
}

static struct sz_slice join(struct sz_txn *txn, const struct sz_strings *list)
{
    struct sz_buf buf = {0};
    for (size_t i = 0; i < list->n; i++)
        sz_buf_printf(&buf, "%s%.*s", i > 0 ? ", " : "", SZ_FMT(list->v[i]));
    struct sz_slice out = sz_pool_dup(txn->pool, sz_buf_slice(&buf));
    sz_buf_fini(&buf);
    return out;
}

static bool origin_allowed(const struct sz_conf_cors *cors, struct sz_slice origin)
{
    return origin.n > 0 && (cors->any_origin || contains(&cors->origins, origin, true));
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
        add(txn, SZ_S("access-control-expose-headers"), join(txn, &cors->expose));
}

void sz_cors_preflight(struct sz_txn *txn)
{
    const struct sz_conf_cors *cors = &txn->match.route->cors;
    struct sz_slice origin = sz_headers_get(&txn->req.headers, SZ_S("origin"), NULL);
    sz_cors_respond(txn, cors, origin);
    if (origin_allowed(cors, origin)) {
        add(txn, SZ_S("access-control-allow-methods"), join(txn, &cors->methods));
        if (cors->headers.n > 0)
            add(txn, SZ_S("access-control-allow-headers"), join(txn, &cors->headers));
        if (cors->max_age.us > 0)
            add(txn, SZ_S("access-control-max-age"),
                sz_pool_printf(txn->pool, "%lld", (long long)(cors->max_age.us / 1000000)));
    }
    txn->answer = (struct sz_answer){.status = 204, .body = SZ_NONE};
}
