/*
 * Building the plan.  One list for "never from a client": a header that any route can set is
 * removed on every route, also where this route has no value for it, so that nothing a client
 * writes can be taken for something we said.
 */
#include "pipeline/plan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "pipeline/header_value.h"

const struct sz_slice sz_own_headers[] = {
    {"x-subzero-subject", 17}, {"x-subzero-client", 16}, {"x-subzero-scopes", 16},    {"x-subzero-issuer", 16},
    {"x-subzero-tenant", 16},  {"x-request-id", 12},     {"x-subzero-assertion", 19},
};
const size_t sz_own_headers_n = SZ_COUNT(sz_own_headers);

/*
 * Hop-by-hop fields (RFC 9110 7.6.1), what the HTTP client layer writes itself, names that some upstream takes for an
 * identity, a method or a path, and every way of forwarding an address but the one we build.
 */
static const char *const never_from_client[] = {
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
    "proxy-authorization",
    "http2-settings",
    "host",
    "content-length",
    "expect",
    "proxy",
    "x-user",
    "x-forwarded-user",
    "x-remote-user",
    "remote-user",
    "x-original-url",
    "x-original-uri",
    "x-original-method",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-port",
    "x-forwarded-uri",
    "x-forwarded-method",
    "x-forwarded-prefix",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "forwarded",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
};

struct names {
    struct sz_slice *v;
    size_t n;
};

static void push(struct names *names, struct sz_slice name)
{
    for (size_t i = 0; i < names->n; i++) {
        if (sz_eq(names->v[i], name))
            return;
    }
    names->v[names->n++] = name;
}

static size_t count_headers(const struct sz_conf *conf)
{
    size_t n = sz_own_headers_n + SZ_COUNT(never_from_client) + 1;
    for (size_t i = 0; i < conf->routes_n; i++)
        n += conf->routes[i].headers_n;
    return n;
}

/* Identity headers first (ours, then the routes' in configuration order), then the rest. */
static void collect(const struct sz_conf *conf, struct names *names, struct sz_plan *plan)
{
    for (size_t i = 0; i < SZ_OWN_IDENTITY; i++)
        push(names, sz_own_headers[i]);
    for (size_t i = 0; i < conf->routes_n; i++) {
        for (size_t j = 0; j < conf->routes[i].headers_n; j++)
            push(names, conf->routes[i].headers[j].name);
    }
    plan->identity = (struct sz_strings){names->v, names->n};
    for (size_t i = SZ_OWN_IDENTITY; i < sz_own_headers_n; i++)
        push(names, sz_own_headers[i]);
    for (size_t i = 0; i < SZ_COUNT(never_from_client); i++)
        push(names, sz_cstr(never_from_client[i]));
}

/* What every route strips, what this one adds, and Authorization unless it is kept. */
static void strip_set(struct sz_nameset *set, const struct names *all, struct sz_strings more, bool keep_authorization,
                      struct sz_pool *pool)
{
    struct sz_slice *names = sz_xcalloc(all->n + more.n + 1, sizeof(*names));
    size_t n = 0;
    for (; n < all->n; n++)
        names[n] = all->v[n];
    for (size_t i = 0; i < more.n; i++)
        names[n++] = more.v[i];
    if (!keep_authorization)
        names[n++] = SZ_S("authorization");
    sz_nameset_build(set, names, n, pool);
    free(names);
}

/* usual: by keep_authorization; shared by the routes that add nothing, or ten thousand of them would hold 50 MB. */
static void plan_route(struct sz_route_plan *plan, const struct sz_conf_route *route, const struct names *all,
                       const struct sz_nameset usual[2], struct sz_pool *pool)
{
    plan->strip = usual[route->keep_authorization];
    if (route->strip_headers.n > 0)
        strip_set(&plan->strip, all, route->strip_headers, route->keep_authorization, pool);
    plan->scope_list = sz_header_list(&route->scope_names, " ", pool);
    plan->label = sz_pool_strdup(pool, route->id);
}

static void plan_limit(struct sz_limit_plan *plan, const struct sz_conf_rate_limit *limit, struct sz_pool *pool)
{
    plan->label = sz_pool_strdup(pool, limit->name);
    plan->policy = sz_pool_printf(pool, "\"%.*s\";q=%" PRIu64, SZ_FMT(limit->name), limit->quota);
    if (limit->quota_seconds > 0)
        plan->policy = sz_pool_printf(pool, "%.*s;w=%" PRIu64, SZ_FMT(plan->policy), limit->quota_seconds);
}

struct sz_plan *sz_plan_new(const struct sz_conf *conf, struct sz_pool *pool)
{
    struct sz_plan *plan = sz_pool_zalloc(pool, sizeof(*plan));
    struct names all = {.v = sz_pool_alloc(pool, count_headers(conf) * sizeof(*all.v))};
    struct sz_nameset usual[2];
    collect(conf, &all, plan);
    for (int keep = 0; keep < 2; keep++)
        strip_set(&usual[keep], &all, (struct sz_strings){0}, keep, pool);
    plan->routes = sz_pool_zalloc(pool, conf->routes_n * sizeof(*plan->routes));
    for (size_t i = 0; i < conf->routes_n; i++)
        plan_route(&plan->routes[i], &conf->routes[i], &all, usual, pool);
    plan->limits = sz_pool_zalloc(pool, conf->rate_limits_n * sizeof(*plan->limits));
    for (size_t i = 0; i < conf->rate_limits_n; i++)
        plan_limit(&plan->limits[i], &conf->rate_limits[i], pool);
    plan->unmatched.strip = usual[1];
    plan->unmatched.label = "none";
    return plan;
}

static struct sz_series once(_Atomic uint32_t *slot, enum sz_metric metric, const char *const *values)
{
    struct sz_series series = sz_series(metric, values);
    atomic_store_explicit(slot, series.at + 1, memory_order_relaxed);
    return series;
}

struct sz_series sz_plan_series(struct sz_route_plan *plan, bool allow, enum sz_reason reason)
{
    _Atomic uint32_t *slot = &plan->series[allow][reason];
    uint32_t handle = atomic_load_explicit(slot, memory_order_relaxed);
    if (SZ_LIKELY(handle != 0))
        return (struct sz_series){handle - 1};
    const char *values[] = {plan->label, allow ? "allow" : "deny", sz_reason_row(reason)->name};
    return once(slot, SZ_METRIC_requests, values);
}

struct sz_series sz_plan_limit_series(struct sz_limit_plan *plan, bool allow, enum sz_reason reason)
{
    _Atomic uint32_t *slot = &plan->series[allow][reason];
    uint32_t handle = atomic_load_explicit(slot, memory_order_relaxed);
    if (SZ_LIKELY(handle != 0))
        return (struct sz_series){handle - 1};
    const char *values[] = {plan->label, sz_reason_row(reason)->name, allow ? "allow" : "deny"};
    return once(slot, SZ_METRIC_limits, values);
}
