/*
 * forward: the request as the upstream gets it.  The client's fields minus everything that is ours, hop-by-hop,
 * nominated by Connection or readable in two ways; then what we know ourselves.
 */
#include "pipeline/credential.h"
#include "pipeline/stages.h"
#include "pipeline/trace.h"

#define NOMINATED_MAX 16 /* options in Connection; more is nobody's honest request, and refused */

struct nominated {
    struct sz_slice names[NOMINATED_MAX];
    size_t n;
};

/* RFC 9110 7.6.1: fields named in Connection belong to this hop.  False: too many. */
static bool collect_nominated(const struct sz_headers *headers, struct nominated *out)
{
    out->n = 0;
    for (size_t i = 0; i < headers->n; i++) {
        struct sz_slice rest = headers->v[i].value, option;
        if (!sz_eq(headers->v[i].name, SZ_S("connection")) || rest.p == NULL)
            continue;
        while (sz_split(&rest, ',', &option)) {
            option = sz_trim(option);
            if (option.n > 0 && out->n == NOMINATED_MAX)
                return false;
            if (option.n > 0)
                out->names[out->n++] = option;
        }
    }
    return true;
}

static bool is_nominated(const struct nominated *nominated, struct sz_slice name)
{
    for (size_t i = 0; i < nominated->n; i++) {
        if (sz_ieq(nominated->names[i], name))
            return true;
    }
    return false;
}

/* Letters, digits and '-': anything else is an alias waiting to happen ("x_subzero_subject"). */
static bool is_plain_name(struct sz_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = (uint8_t)name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return name.n > 0;
}

static bool is_reserved_prefix(struct sz_slice name)
{
    return name.n > 8 && name.p[0] == 'x' && name.p[1] == '-' &&
           (sz_starts_with(name, SZ_S("x-subzero-")) || sz_starts_with(name, SZ_S("x-forwarded-")) ||
            sz_starts_with(name, SZ_S("x-accel-")));
}

/* An odd name is judged by what an upstream may make of it: every other byte read as '-'. */
static bool odd_name_is_ours(const struct sz_nameset *strip, struct sz_slice name)
{
    char plain[64];
    if (name.n > sizeof(plain))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = (uint8_t)name.p[i];
        plain[i] = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? (char)c : '-';
    }
    struct sz_slice alias = sz_slice(plain, name.n);
    return sz_nameset_has(strip, alias) || is_reserved_prefix(alias);
}

static bool passes(const struct sz_txn *txn, const struct nominated *nominated, const struct sz_nameset *strip,
                   struct sz_slice name)
{
    if (sz_nameset_has(strip, name) || is_reserved_prefix(name))
        return false;
    if (!is_plain_name(name) && (!txn->match.route->keep_odd_headers || odd_name_is_ours(strip, name)))
        return false;
    return nominated->n == 0 || !is_nominated(nominated, name);
}

/* Cookies without the credential, and without the one that we gave to a visitor. */
static struct sz_slice without_ours(struct sz_txn *txn, struct sz_slice cookies)
{
    const struct sz_conf_route *route = txn->match.route;
    const struct sz_conf *conf = txn->snapshot->conf;
    if ((route->token_from & SZ_FROM_COOKIE) != 0)
        cookies = sz_cookie_without(cookies, route->cookie_name, txn->pool);
    if (conf->anonymous.on && cookies.n > 0)
        cookies = sz_cookie_without(cookies, conf->anonymous.cookie, txn->pool);
    return cookies;
}

static enum sz_reason copy_client_headers(struct sz_txn *txn, struct sz_headers *out)
{
    const struct sz_headers *in = &txn->req.headers;
    struct nominated nominated;
    if (!collect_nominated(in, &nominated))
        return SZ_REASON_bad_request;
    out->cap = in->n + 16;
    out->v = sz_pool_alloc(txn->pool, out->cap * sizeof(*out->v));
    for (size_t i = 0; i < in->n; i++) {
        struct sz_header h = in->v[i];
        if (!passes(txn, &nominated, &sz_txn_plan(txn)->strip, h.name))
            continue;
        if (sz_eq(h.name, SZ_S("cookie"))) {
            h.value = without_ours(txn, h.value);
            if (h.value.n == 0 && in->v[i].value.n > 0)
                continue;
        }
        sz_headers_add(out, txn->pool, h.name, h.value);
    }
    return SZ_REASON_allowed;
}

/* The client's scheme: our own, or what the one trusted proxy in front of us says. */
static struct sz_slice forwarded_proto(const struct sz_txn *txn)
{
    unsigned count = 0;
    struct sz_slice said = SZ_NONE;
    if (txn->from.peer_trusted)
        said = sz_headers_get(&txn->req.headers, SZ_S("x-forwarded-proto"), &count);
    if (count == 1 && (sz_eq(said, SZ_S("http")) || sz_eq(said, SZ_S("https"))))
        return said;
    return txn->req.https ? SZ_S("https") : SZ_S("http");
}

static void add_forwarding(struct sz_txn *txn, struct sz_headers *out)
{
    sz_headers_add(out, txn->pool, SZ_S("x-forwarded-for"),
                   sz_client_chain(&txn->req, &txn->snapshot->conf->trusted_proxies, txn->pool));
    sz_headers_add(out, txn->pool, SZ_S("x-forwarded-proto"), forwarded_proto(txn));
    if (txn->authority.canonical.n > 0)
        sz_headers_add(out, txn->pool, SZ_S("x-forwarded-host"), txn->authority.canonical);
    sz_headers_add(out, txn->pool, SZ_S("x-request-id"), txn->request_id);
    sz_trace_forward(txn, out);
}

static struct sz_slice forward_target(struct sz_txn *txn)
{
    const struct sz_conf_route *route = txn->match.route;
    struct sz_slice query = txn->target.query;
    if (txn->target.asterisk)
        return SZ_S("*");
    if ((route->token_from & SZ_FROM_QUERY) != 0)
        query = sz_query_without(query, route->query_name, txn->pool);
    if (query.p == NULL)
        return txn->target.path;
    if (query.p == txn->target.query.p && query.p == txn->target.path.p + txn->target.path.n + 1)
        return sz_slice(txn->target.path.p, txn->target.path.n + 1 + query.n); /* still side by side in the request */
    return sz_pool_printf(txn->pool, "%.*s?%.*s", SZ_FMT(txn->target.path), SZ_FMT(query));
}

static bool is_method(const struct sz_txn *txn, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sz_eq(txn->req.method, sz_cstr(names[i])))
            return true;
    }
    return false;
}

/* WebSockets and event streams end with the token, or with the route's max_lifetime. */
static struct sz_mono stream_end(const struct sz_txn *txn)
{
    struct sz_mono now = sz_loop_now(txn->worker->loop), end = SZ_NEVER;
    if (txn->identity != NULL)
        end = sz_fact_end(now, sz_loop_wall(txn->worker->loop), (struct sz_span){INT64_MAX}, txn->identity->exp);
    if (txn->match.route->max_lifetime.us > 0)
        end = sz_earlier(end, sz_after(now, txn->match.route->max_lifetime));
    return end;
}

static void describe(struct sz_txn *txn, struct sz_forward *f)
{
    static const char *const bodyless[] = {"GET", "HEAD", "DELETE", "OPTIONS"};
    static const char *const idempotent[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    f->upstream = txn->match.route->upstream;
    f->method = txn->req.method;
    f->target = forward_target(txn);
    f->authority = txn->authority.canonical;
    f->body = txn->req.body;
    f->has_body = txn->req.has_body;
    f->own_connection =
        f->upstream->reuse == SZ_REUSE_NEVER || (f->has_body && is_method(txn, bodyless, SZ_COUNT(bodyless)));
    f->retry_safe = !f->has_body && is_method(txn, idempotent, SZ_COUNT(idempotent));
    f->websocket = txn->req.upgrade && txn->match.route->websocket;
    f->stream_until = stream_end(txn);
}

enum sz_reason sz_forward_build(struct sz_txn *txn)
{
    struct sz_forward *f = &txn->forward;
    if (txn->req.listener->mode == SZ_MODE_DECIDE)
        return sz_identity_headers(txn, true, &f->headers);
    describe(txn, f);
    enum sz_reason reason = copy_client_headers(txn, &f->headers);
    if (reason != SZ_REASON_allowed)
        return reason;
    add_forwarding(txn, &f->headers);
    reason = sz_identity_headers(txn, false, &f->headers);
    if (reason == SZ_REASON_allowed && txn->match.route->assertion)
        reason = sz_assertion_add(txn, &f->headers);
    return reason;
}
