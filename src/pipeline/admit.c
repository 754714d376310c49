/*
 * admit: what is asked, by whom, under which route.  Everything here is local and cheap, so that a
 * request that cannot be served costs nothing else.
 */
#include "pipeline/stages.h"
#include "pipeline/threat.h"
#include "pipeline/worker.h"

#define REQUEST_ID_MAX 64

static bool is_request_id(struct sz_slice id)
{
    if (id.n == 0 || id.n > REQUEST_ID_MAX)
        return false;
    for (size_t i = 0; i < id.n; i++) {
        uint8_t c = (uint8_t)id.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && c != '.' && c != '_' && c != '-')
            return false;
    }
    return true;
}

/*
 * A trusted peer's id is kept, so that one request has one name across hops, and on an api listener that of whoever
 * asks (AuthZEN has it echoed); anybody else gets a fresh one.  The number grows either way: trace ids and the sampling
 * of the log are made from it.
 */
static bool may_name_it(const struct sz_txn *txn)
{
    return txn->from.peer_trusted || (txn->req.listener != NULL && txn->req.listener->mode == SZ_MODE_API);
}

void sz_request_id(struct sz_txn *txn)
{
    uint64_t seq = ++txn->worker->request_seq;
    unsigned count = 0;
    struct sz_slice given = SZ_NONE;
    if (may_name_it(txn))
        given = sz_headers_get(&txn->req.headers, SZ_S("x-request-id"), &count);
    if (count == 1 && is_request_id(given)) {
        txn->request_id = given;
    } else {
        uint8_t bytes[12];
        memcpy(bytes, txn->worker->id_seed, 8);
        for (int i = 0; i < 4; i++)
            bytes[8 + i] = (uint8_t)(seq >> (24 - 8 * i));
        bytes[7] ^= (uint8_t)(seq >> 32);
        char *hex = sz_pool_alloc(txn->pool, 24);
        sz_hex_encode(bytes, sizeof(bytes), hex);
        txn->request_id = sz_slice(hex, 24);
    }
    sz_headers_add(&txn->respond, txn->pool, SZ_S("x-request-id"), txn->request_id);
}

/*
 * A CORS preflight (Fetch standard): OPTIONS with Origin and Access-Control-Request-Method.  Never on a decide
 * listener: a front proxy takes any 2xx for "let it through" and would send upstream what nobody has judged.
 */
static bool is_preflight(const struct sz_txn *txn, struct sz_slice *method)
{
    if (!sz_eq(txn->req.method, SZ_S("OPTIONS")) || txn->target.asterisk || txn->req.listener->mode == SZ_MODE_DECIDE)
        return false;
    *method = sz_headers_get(&txn->req.headers, SZ_S("access-control-request-method"), NULL);
    return method->n > 0 && sz_headers_get(&txn->req.headers, SZ_S("origin"), NULL).n > 0;
}

/* The route that the announced request would take, or any route of its pattern, if it has CORS: answered here. */
static bool try_preflight(struct sz_txn *txn, struct sz_slice method)
{
    struct sz_route_match match;
    const struct sz_router *router = txn->snapshot->conf->router;
    bool found = sz_router_match(router, txn->authority.host, txn->target.path, method, &match);
    const struct sz_conf_route *route = found ? match.route : match.sibling;
    if (route == NULL || !route->cors.on)
        return false;
    txn->match = match;
    txn->match.route = route;
    txn->preflight = true;
    return true;
}

/* Does the path, as an upstream reads it that decodes more and drops parameters, belong to another route? */
static bool is_ambiguous(const struct sz_txn *txn)
{
    struct sz_route_match other;
    struct sz_slice path = sz_target_other_reading(txn->target.path, txn->pool);
    if (path.p == txn->target.path.p)
        return false;
    (void)sz_router_match(txn->snapshot->conf->router, txn->authority.host, path, txn->req.method, &other);
    return other.route != txn->match.route;
}

static enum sz_step match_route(struct sz_txn *txn)
{
    struct sz_slice method;
    if (is_preflight(txn, &method) && try_preflight(txn, method))
        return sz_jump(txn, SZ_STAGE_decide); /* which answers it; nothing is forwarded */
    if (!sz_router_match(txn->snapshot->conf->router, txn->authority.host, txn->target.path, txn->req.method,
                         &txn->match))
        return sz_refuse(txn, txn->match.allow.n > 0 ? SZ_REASON_method_not_allowed : SZ_REASON_no_route);
    if (is_ambiguous(txn)) {
        txn->detail = "the path's escapes or parameters decide which route it takes";
        return sz_refuse(txn, SZ_REASON_ambiguous_path);
    }
    txn->deadline = sz_after(txn->started, txn->match.route->timeout);
    if (txn->match.route->cors.on)
        sz_cors_respond(txn, &txn->match.route->cors, sz_headers_get(&txn->req.headers, SZ_S("origin"), NULL));
    if (txn->req.body.n > txn->match.route->request_body)
        return sz_refuse(txn, SZ_REASON_body_too_large);
    return sz_pass(txn);
}

enum sz_reason sz_admit_target(struct sz_txn *txn, const char **why)
{
    const struct sz_conf *conf = txn->snapshot->conf;
    sz_client_addr(&txn->req, &conf->trusted_proxies, &txn->from);
    sz_request_id(txn);
    txn->deadline = sz_after(txn->started, conf->limits.request_timeout);
    if (txn->req.listener->mode == SZ_MODE_DECIDE && !txn->from.peer_trusted)
        return SZ_REASON_untrusted_peer;
    enum sz_reason threat = sz_threat_admit(txn);
    if (threat != SZ_REASON_allowed)
        return threat;
    enum sz_reason share = sz_address_share(txn);
    if (share != SZ_REASON_allowed)
        return share;
    int rc = sz_target_parse(txn->req.target, txn->pool, &txn->target, why);
    return rc == 0 ? SZ_REASON_allowed : rc == SZ_TARGET_AMBIGUOUS ? SZ_REASON_ambiguous_path : SZ_REASON_bad_request;
}

enum sz_step sz_stage_admit(struct sz_txn *txn)
{
    enum sz_reason reason = sz_admit_target(txn, &txn->detail);
    if (reason != SZ_REASON_allowed)
        return sz_refuse(txn, reason);
    if (txn->target.asterisk && !sz_eq(txn->req.method, SZ_S("OPTIONS")))
        return sz_refuse(txn, SZ_REASON_bad_request);
    if (txn->req.listener->mode == SZ_MODE_DECIDE && !txn->target.was_canonical) {
        txn->detail = "the calling proxy forwards its own bytes, so the target must already be canonical";
        return sz_refuse(txn, SZ_REASON_ambiguous_path);
    }
    if (txn->req.authority.n > 0 && sz_authority_parse(txn->req.authority, txn->pool, &txn->authority) != 0)
        return sz_refuse(txn, SZ_REASON_bad_request);
    return match_route(txn);
}
