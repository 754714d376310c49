/*
 * Routes, one by one: the pattern, the choice between public and auth, and the small switches.
 * The larger parts have files of their own: build_auth.c, build_authorize.c, build_headers.c, build_cors.c.
 */
#include "conf/build.h"

static void check_id(struct sz_builder *b, const struct sz_raw_route *raw)
{
    const struct sz_node *at = sz_node_get(raw->head.node, "id");
    if (raw->id.p == NULL)
        return;
    bool ok = raw->id.n <= 128;
    for (size_t i = 0; i < raw->id.n && ok; i++) {
        char c = raw->id.p[i];
        ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
             c == '-';
    }
    if (!ok)
        sz_mistake(b->l, at, "a route's id has up to 128 letters, digits, '.', '_' or '-'");
    else if (sz_eq(raw->id, SZ_S("none")))
        sz_mistake(b->l, at, "'none' is how metrics call an unmatched request; choose another id");
}

static void methods(struct sz_builder *b, const struct sz_raw_match *raw)
{
    for (size_t i = 0; i < raw->methods.n; i++) {
        const struct sz_node *at = sz_node_item(raw->head.node, "methods", i);
        struct sz_slice m = raw->methods.v[i];
        if (sz_eq(m, SZ_S("TRACE")) || sz_eq(m, SZ_S("CONNECT")))
            sz_mistake(b->l, at, "%.*s is never let through; remove it", SZ_FMT(m));
        else if (!sz_method_ok(m))
            sz_mistake(b->l, at, "'%.*s' is no method; methods are upper-case words, such as GET", SZ_FMT(m));
    }
}

static void match(struct sz_builder *b, const struct sz_raw_match *raw, struct sz_pattern *pattern,
                  struct sz_conf_route *out)
{
    const struct sz_node *node = raw->head.node;
    struct sz_text why;
    if (node == NULL)
        return;
    if (sz_pattern_host(b->l->pool, raw->host, pattern, &out->match.host, &why) != 0)
        sz_mistake(b->l, sz_node_get(node, "host"), "%s", why.s);
    if (raw->path.p != NULL && sz_pattern_path(b->l->pool, raw->path, pattern, &why) != 0)
        sz_mistake(b->l, sz_node_get(node, "path"), "path '%.*s': %s", SZ_FMT(raw->path), why.s);
    methods(b, raw);
    out->match.path = raw->path;
    out->match.methods = raw->methods;
}

static void guard(struct sz_builder *b, const struct sz_raw_route *raw)
{
    const struct sz_node *node = raw->head.node, *at = sz_node_key(node, "id");
    bool auth = sz_node_get(node, "auth") != NULL;
    if (raw->is_public && auth)
        sz_mistake(b->l, sz_node_key(node, "public"), "'public: true' beside 'auth'; keep one");
    else if (!raw->is_public && !auth)
        sz_mistake(b->l, at, "route '%.*s' has no 'auth'; add it, or say 'public: true'", SZ_FMT(raw->id));
    if (raw->is_public && sz_node_get(node, "authorize") != NULL)
        sz_mistake(b->l, sz_node_key(node, "authorize"),
                   "'authorize' on a public route: nobody is known there; add 'auth'");
    if (raw->is_public && sz_node_get(node, "assertion") != NULL)
        sz_mistake(b->l, sz_node_key(node, "assertion"),
                   "'assertion' on a public route: nobody is known there; add 'auth'");
    if (!raw->is_public && raw->covers_guarded)
        sz_mistake(b->l, sz_node_key(node, "covers_guarded"), "'covers_guarded' is for public routes; remove it");
    if (raw->shared_subjects && raw->auth.issuers.n < 2)
        sz_mistake(b->l, sz_node_key(node, "shared_subjects"),
                   "'shared_subjects' is for routes with several issuers; remove it");
}

static bool proxies(const struct sz_builder *b)
{
    for (size_t i = 0; i < b->conf->listeners_n; i++) {
        if (b->conf->listeners[i].mode == SZ_MODE_PROXY)
            return true;
    }
    return false;
}

static void upstream(struct sz_builder *b, const struct sz_raw_route *raw, struct sz_conf_route *out)
{
    const struct sz_node *node = raw->head.node, *at = sz_node_get(node, "upstream");
    const char **names;
    if (at == NULL) {
        if (proxies(b))
            sz_mistake(b->l, sz_node_key(node, "id"),
                       "route '%.*s' needs 'upstream': a listener in mode 'proxy' serves it", SZ_FMT(raw->id));
        return;
    }
    for (size_t i = 0; i < b->conf->upstreams_n; i++) {
        if (sz_eq(raw->upstream, b->conf->upstreams[i].name))
            out->upstream = &b->conf->upstreams[i];
    }
    if (out->upstream != NULL || raw->upstream.p == NULL)
        return;
    names = sz_pool_alloc(b->l->pool, b->conf->upstreams_n * sizeof(*names));
    for (size_t i = 0; i < b->conf->upstreams_n; i++)
        names[i] = b->conf->upstreams[i].name.p;
    const char *meant = sz_suggest(raw->upstream, names, b->conf->upstreams_n);
    sz_mistake(b->l, at, "no upstream '%.*s'; %s%s%s", SZ_FMT(raw->upstream),
               meant ? "did you mean '" : "add it to 'upstreams'", meant ? meant : "", meant ? "'?" : "");
}

static void assertion(struct sz_builder *b, const struct sz_raw_route *raw, struct sz_conf_route *out)
{
    if (raw->assertion.head.node == NULL)
        return;
    out->assertion = true;
    out->assertion_audience = raw->assertion.audience.p != NULL ? raw->assertion.audience : raw->upstream;
    if (b->raw->assertion.head.node == NULL)
        sz_mistake(b->l, sz_node_key(raw->head.node, "assertion"),
                   "'assertion' here needs 'assertion: {key_file: ...}' at the top");
    if (out->assertion_audience.p == NULL)
        sz_mistake(b->l, sz_node_key(raw->head.node, "assertion"),
                   "'assertion' without 'upstream' needs its 'audience'");
}

static void switches(struct sz_builder *b, const struct sz_raw_route *raw, struct sz_conf_route *out)
{
    const struct sz_node *node = raw->head.node;
    bool body = sz_node_get(node, "request_body") != NULL;
    out->id = raw->id;
    out->is_public = raw->is_public;
    out->covers_guarded = raw->covers_guarded;
    out->shared_subjects = raw->shared_subjects;
    out->keep_authorization = raw->authorization == 1;
    out->keep_odd_headers = raw->keep_odd_headers;
    out->websocket = raw->websocket;
    out->max_lifetime = raw->max_lifetime;
    out->timeout = raw->timeout.us > 0 ? raw->timeout : b->raw->limits.out.request_timeout;
    out->request_body = body ? raw->request_body : b->raw->limits.out.request_body;
    if (out->request_body > b->raw->limits.out.request_body)
        sz_mistake(b->l, sz_node_get(node, "request_body"),
                   "'request_body' is larger than 'limits.request_body'; raise that one");
}

/* An api listener asks no route. */
static bool needs_routes(const struct sz_builder *b)
{
    for (size_t i = 0; i < b->conf->listeners_n; i++) {
        if (b->conf->listeners[i].mode != SZ_MODE_API)
            return true;
    }
    return b->conf->listeners_n == 0;
}

void sz_build_routes(struct sz_builder *b)
{
    if (b->raw->head.node != NULL && sz_node_get(b->raw->head.node, "routes") == NULL && needs_routes(b))
        sz_mistake(b->l, b->raw->head.node,
                   "the configuration needs 'routes': what is let through; all else is refused");
    const struct sz_raw_route *raw = b->raw->routes.v;
    size_t n = b->raw->routes.n;
    struct sz_conf_route *v = sz_pool_zalloc(b->l->pool, n * sizeof(*v));
    b->patterns = sz_pool_zalloc(b->l->pool, n * sizeof(*b->patterns));
    b->conf->routes = v;
    b->conf->routes_n = n;
    for (size_t i = 0; i < n; i++) {
        if (raw[i].head.node == NULL)
            continue;
        check_id(b, &raw[i]);
        match(b, &raw[i].match, &b->patterns[i], &v[i]);
        guard(b, &raw[i]);
        switches(b, &raw[i], &v[i]);
        upstream(b, &raw[i], &v[i]);
        sz_build_auth(b, &raw[i], &v[i]);
        sz_build_authorize(b, &raw[i], &b->patterns[i], &v[i]);
        sz_build_route_limits(b, &raw[i], &b->patterns[i], &v[i]);
        sz_build_headers(b, &raw[i], &b->patterns[i], &v[i]);
        sz_build_cors(b, &raw[i], &v[i]);
        assertion(b, &raw[i], &v[i]);
    }
}
