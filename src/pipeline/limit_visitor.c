/*
 * Who a visitor is: whoever shows the cookie that we gave, or somebody new.  A new one gets a cookie with the answer
 * that lets the request through, and with no other: a denied client must not be able to draw fresh buckets.
 */
#include "pipeline/credential.h"
#include "pipeline/limit.h"
#include "pipeline/visitor.h"

/* The one cookie of that name; two of them are nobody's. */
static struct sz_slice cookie_of(const struct sz_txn *txn, struct sz_slice name)
{
    unsigned count = 0;
    struct sz_slice found = sz_cookie_find(&txn->req.headers, name, &count);
    return count == 1 ? found : SZ_NONE;
}

void sz_limit_visitor(struct sz_txn *txn)
{
    const struct sz_conf *conf = txn->snapshot->conf;
    struct sz_limit_run *run = txn->limits;
    int64_t now = sz_wall_seconds(sz_loop_wall(txn->worker->loop));
    if (run->visitor_known || run->visitor_new)
        return;
    run->visitor_known = sz_visitor_read(cookie_of(txn, conf->anonymous.cookie), conf->anonymous.key.value,
                                         conf->anonymous.cookie, now, run->visitor);
    run->visitor_new = !run->visitor_known;
    if (run->visitor_new)
        sz_random(run->visitor, sizeof(run->visitor));
}

/* Over plain HTTP a browser would drop a Secure cookie, and between here and here there is nobody to read it. */
static bool is_local(const struct sz_txn *txn)
{
    return !txn->req.https && sz_addr_is_loopback(txn->from.client);
}

void sz_limit_allowed(struct sz_txn *txn)
{
    const struct sz_conf *conf = txn->snapshot->conf;
    char text[SZ_VISITOR_TEXT];
    if (txn->limits == NULL || !txn->limits->visitor_new)
        return;
    int64_t seconds = conf->anonymous.ttl.us / 1000000;
    sz_visitor_write(txn->limits->visitor, sz_wall_seconds(sz_loop_wall(txn->worker->loop)) + seconds,
                     conf->anonymous.key.value, conf->anonymous.cookie, text);
    sz_headers_add(&txn->respond, txn->pool, SZ_S("set-cookie"),
                   sz_pool_printf(txn->pool, "%.*s=%.*s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
                                  SZ_FMT(conf->anonymous.cookie), (int)sizeof(text), text, (long long)seconds,
                                  is_local(txn) ? "" : "; Secure"));
}
