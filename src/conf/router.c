/*
 * The matcher: host, then path, then method.  The walk is depth-first in the order literal,
 * {x}, star, so the first whole match is the most specific pattern, leftmost segment first.  When that
 * pattern has no route for the method the walk is over: no less specific pattern is asked, or a public
 * "/ *" would answer the POST that a guarded pattern meant to refuse.  router_table.h proves the bound.
 */
#include "conf/router_table.h"
#include "subzero/conf.h"

struct walk {
    const struct sz_router *r;
    struct sz_slice path;
    unsigned known;                             /* how many segments have been cut so far */
    uint32_t ends[SZ_PATTERN_SEGMENTS_MAX + 1]; /* where each ends: at '/' or the path's end */
};

/* Segment `i`, or false behind the last; asked for in order, each cut once. */
static bool segment(struct walk *w, unsigned i, struct sz_slice *out)
{
    size_t start = i == 0 ? 0 : w->ends[i - 1]; /* its '/' */
    if (start >= w->path.n)
        return false;
    const char *p = w->path.p + start + 1;
    if (i == w->known) {
        const char *end = memchr(p, '/', w->path.n - start - 1);
        w->ends[w->known++] = (uint32_t)(end == NULL ? w->path.n : (size_t)(end - w->path.p));
    }
    *out = sz_slice(p, w->ends[i] - start - 1);
    return true;
}

/* The group of the most specific pattern below `at` that matches the path from segment `depth` on; 0: none. */
static uint32_t find(struct walk *w, uint32_t at, unsigned depth)
{
    const struct sz_route_node *node = &w->r->nodes[at];
    struct sz_slice s;
    uint32_t group = 0, child;
    if (!segment(w, depth, &s))
        return node->end != 0 ? node->end : node->star;
    if (node->literals && (child = sz_edge_find(w->r, at, s.p, s.n)) != 0)
        group = find(w, child, depth + 1);
    if (group == 0 && node->param != 0 && s.n > 0)
        group = find(w, node->param, depth + 1);
    return group != 0 ? group : node->star;
}

/* Roots to try, most specific host first; each suffix of at most the configured number of labels. */
static uint32_t find_by_host(struct walk *w, struct sz_slice host)
{
    const struct sz_router *r = w->r;
    uint32_t root, group;
    if (r->hosts && (root = sz_edge_find(r, SZ_EDGE_HOST, host.p, host.n)) != 0 && (group = find(w, root, 0)) != 0)
        return group;
    if (r->suffix_labels == 0)
        return 0;
    unsigned dots = 0;
    size_t start = host.n;
    while (start > 1 && dots < r->suffix_labels) /* the longest suffix that can be configured; never the whole host */
        dots += host.p[--start] == '.';
    for (; start < host.n; start++) {
        if (host.p[start] != '.' || start == 0)
            continue;
        root = sz_edge_find(r, SZ_EDGE_SUFFIX, host.p + start, host.n - start);
        if (root != 0 && (group = find(w, root, 0)) != 0)
            return group;
    }
    return 0;
}

static const struct sz_conf_route *by_method(const struct sz_route_group *g, struct sz_slice method)
{
    for (uint32_t i = 0; i < g->methods_n; i++) {
        if (sz_eq(g->methods[i].name, method))
            return g->methods[i].route;
    }
    /* Upper case alone: some upstreams fold the case, and "trace" would be what TRACE may not. */
    if (g->any == NULL || !sz_method_ok(method) || sz_eq(method, SZ_S("TRACE")) || sz_eq(method, SZ_S("CONNECT")))
        return NULL;
    return g->any;
}

bool sz_router_match(const struct sz_router *router, struct sz_slice host, struct sz_slice path, struct sz_slice method,
                     struct sz_route_match *out)
{
    struct walk w = {.r = router, .path = path, .known = 0};
    struct sz_slice s;
    out->route = out->sibling = NULL;
    out->params_n = 0;
    out->allow = SZ_NONE;
    if (path.n == 0 || path.p[0] != '/' || path.n > UINT32_MAX)
        return false;
    uint32_t group = host.n > 0 ? find_by_host(&w, host) : 0;
    if (group == 0 && router->any_root != 0)
        group = find(&w, router->any_root, 0);
    if (group == 0)
        return false;
    const struct sz_route_group *g = &router->groups[group];
    for (unsigned i = 0; i < g->params_n && segment(&w, g->param_at[i], &s); i++)
        out->params[out->params_n++] = s;
    out->route = by_method(g, method);
    if (out->route != NULL)
        return true;
    out->allow = g->allow;
    out->sibling = g->any != NULL ? g->any : g->methods[0].route;
    return false;
}
