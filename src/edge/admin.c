/* Reads the call, checks who asks, finds the page. */
#include "edge/admin.h"

#include "edge/admin_access.h"
#include "edge/connection.h"
#include "edge/head_parse.h"
#include "edge/logout.h"
#include "edge/respond.h"
#include "edge/revoking.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/metrics.h"

struct page {
    const char *method, *path;
    enum sz_admin_need need;
    void (*serve)(struct sz_admin_call *call);
};

static const struct page pages[] = {
    {"GET", "/livez", SZ_ADMIN_OPEN, sz_admin_livez},
    {"GET", "/readyz", SZ_ADMIN_OPEN, sz_admin_readyz},
    {"GET", "/health", SZ_ADMIN_TOKEN, sz_admin_health},
    {"GET", "/metrics", SZ_ADMIN_METRICS, sz_admin_metrics},
    {"GET", "/.well-known/jwks.json", SZ_ADMIN_OPEN, sz_admin_jwks},
    {"GET", "/config", SZ_ADMIN_TOKEN, sz_admin_config},
    {"GET", "/breakers", SZ_ADMIN_TOKEN, sz_admin_breakers},
    {"GET", "/cache", SZ_ADMIN_TOKEN, sz_admin_cache_stats},
    {"DELETE", "/cache", SZ_ADMIN_TOKEN, sz_admin_cache_flush},
    {"GET", "/threat", SZ_ADMIN_TOKEN, sz_admin_threat},
    {"GET", "/threat/blocks", SZ_ADMIN_TOKEN, sz_admin_threat_blocks},
    {"POST", "/threat/blocks", SZ_ADMIN_TOKEN, sz_admin_threat_block},
    {"DELETE", "/threat/blocks/", SZ_ADMIN_TOKEN, sz_admin_threat_unblock},
    {"POST", "/threat/events", SZ_ADMIN_OPEN, sz_admin_threat_event}, /* asks for a key of its own */
    {"GET", "/audit", SZ_ADMIN_TOKEN, sz_admin_audit},
    {"GET", "/audit/export", SZ_ADMIN_TOKEN, sz_admin_audit_export},
    {"POST", "/revocations", SZ_ADMIN_TOKEN, sz_admin_revoke},
};

void sz_admin_send(struct sz_admin_call *call, unsigned status, const char *type, struct sz_slice body)
{
    struct sz_header v[] = {
        {SZ_S("content-type"), sz_cstr(type)},
        {SZ_S("cache-control"), SZ_S("no-store")},
        {SZ_S("x-content-type-options"), SZ_S("nosniff")},
    };
    struct sz_headers headers = {.v = v, .n = SZ_COUNT(v)};
    char *copy = h2o_mem_alloc_pool(&call->req->pool, body.n + 1);
    memcpy(copy, body.p, body.n);
    sz_respond(call->req, status, &headers, sz_slice(copy, body.n));
}

static bool method_fits(const struct page *page, struct sz_slice method)
{
    struct sz_slice wanted = sz_cstr(page->method);
    return sz_eq(method, wanted) || (sz_eq(method, SZ_S("HEAD")) && sz_eq(wanted, SZ_S("GET")));
}

/* A path that ends in "/" stands for whatever follows it. */
static bool path_fits(const struct page *page, struct sz_slice path)
{
    struct sz_slice wanted = sz_cstr(page->path);
    return wanted.p[wanted.n - 1] == '/' ? path.n > wanted.n && sz_starts_with(path, wanted) : sz_eq(path, wanted);
}

static const struct page *find(const struct sz_admin_call *call, bool *path_known)
{
    *path_known = false;
    for (size_t i = 0; i < SZ_COUNT(pages); i++) {
        if (!path_fits(&pages[i], call->path))
            continue;
        *path_known = true;
        if (method_fits(&pages[i], call->head->method))
            return &pages[i];
    }
    return NULL;
}

/* What readyz lists about the inside is for those who may see /health. */
static enum sz_admin_need need_of(const struct page *page, const struct sz_admin_call *call)
{
    if (page == NULL || (page->serve == sz_admin_readyz && call->query.n > 0))
        return SZ_ADMIN_TOKEN;
    return page->need;
}

/* "POST" or "GET, POST": what this path knows, for 405. */
static void allowed_methods(const struct sz_admin_call *call, struct sz_text *out)
{
    sz_text_set(out, "%s", "");
    for (size_t i = 0; i < SZ_COUNT(pages); i++) {
        if (path_fits(&pages[i], call->path))
            sz_text_add(out, "%s%s", out->s[0] != '\0' ? ", " : "", pages[i].method);
    }
    if (out->s[0] == '\0') /* the one that the configuration names */
        sz_text_set(out, "POST");
}

static void refuse_method(struct sz_admin_call *call)
{
    struct sz_text methods, why;
    allowed_methods(call, &methods);
    sz_text_set(&why, "%.*s takes %s", SZ_FMT(call->path), methods.s);
    if (sz_eq(call->path, SZ_S("/revocations")))
        sz_text_add(&why, "; revocations are not listed: they are kept as digests alone; GET /health says how many");
    const char *value = h2o_strdup(&call->req->pool, methods.s, SIZE_MAX).base;
    h2o_add_header_by_str(&call->req->pool, &call->req->res.headers, H2O_STRLIT("allow"), 1, NULL, value,
                          strlen(value));
    sz_respond_problem(call->req, 405, SZ_REASON_method_not_allowed, why.s);
}

static void refuse(h2o_req_t *req, enum sz_reason reason, const char *why)
{
    if (sz_reason_row(reason)->status == 401)
        h2o_add_header_by_str(&req->pool, &req->res.headers, H2O_STRLIT("www-authenticate"), 1, NULL,
                              H2O_STRLIT("Bearer realm=\"subzero admin\""));
    sz_respond_problem(req, sz_reason_row(reason)->status, reason, why);
}

/* Where the configuration says that providers post logout tokens. */
static const struct page *find_logout(const struct sz_admin_call *call, bool *path_known)
{
    static const struct page page = {"POST", NULL, SZ_ADMIN_OPEN, sz_logout_serve_admin};
    *path_known = sz_logout_owns(call->server->current->conf, call->path);
    return *path_known && method_fits(&page, call->head->method) ? &page : NULL;
}

static void dispatch(struct sz_admin_call *call, struct sz_conn *conn)
{
    const struct sz_conf_admin *conf = &call->server->boot->conf->admin;
    const char *why = NULL;
    bool path_known;
    const struct page *page = find(call, &path_known);
    if (!path_known)
        page = find_logout(call, &path_known);
    enum sz_reason reason = sz_admin_access(conf, call->head, conn->peer, need_of(page, call), &why);

    if (reason != SZ_REASON_allowed)
        refuse(call->req, reason, why);
    else if (page != NULL)
        page->serve(call);
    else if (path_known)
        refuse_method(call);
    else
        refuse(call->req, SZ_REASON_no_route, NULL);
}

int sz_admin_on_req(h2o_handler_t *handler, h2o_req_t *req)
{
    static const struct sz_head_limits limits = {.bytes = 16 * 1024, .fields = 64};
    struct sz_edge_thread *thread = sz_thread_of(req);
    struct sz_conn *conn = sz_conn_of_req(req);
    struct sz_mono begun = sz_mono_read();
    struct sz_head head;
    const char *why = "the admin listener speaks HTTP/1 without leniencies";

    (void)handler;
    if (sz_head_parse_failed() || req->version >= 0x200 ||
        sz_head_check(sz_slice(conn->sock->input->bytes, conn->sock->input->size), &limits, &head, &why) != 0) {
        req->http1_is_persistent = 0;
        refuse(req, SZ_REASON_bad_request, why);
        return 0;
    }
    struct sz_admin_call call = {.req = req, .server = thread->server, .head = &head, .path = head.target};
    ptrdiff_t question = sz_find_byte(head.target, '?');
    if (question >= 0) {
        call.path = sz_sub(head.target, 0, (size_t)question);
        call.query = sz_from(head.target, (size_t)question + 1);
    }
    dispatch(&call, conn);
    sz_observe(thread->index, thread->server->series.admin_duration, sz_between(begun, sz_mono_read()));
    return 0;
}
