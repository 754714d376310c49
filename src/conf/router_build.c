/*
 * The compiler: patterns into the arrays of router_table.h.  Everything grows by doubling in the
 * pool that the router lives in; what is left behind is at most as large as what stays.
 */
#include <errno.h>
#include <stdlib.h>

#include "conf/router_table.h"
#include "subzero/conf.h"

struct build {
    struct sz_pool *pool;
    struct sz_router *r;
    uint32_t edges_n, nodes_n, nodes_cap, groups_n, groups_cap;
    struct sz_text *why;
};

/* ---- edges ------------------------------------------------------------------------------------------ */

/* False: the place would be more than SZ_EDGE_PROBES away. */
static bool place(struct sz_edge *table, uint64_t mask, struct sz_edge e)
{
    for (uint64_t i = 0; i < SZ_EDGE_PROBES; i++) {
        struct sz_edge *at = &table[(e.hash + i) & mask];
        if (at->p == NULL) {
            *at = e;
            return true;
        }
    }
    return false;
}

/* A larger table, or another seed, until every edge finds a place near enough.  At most half full, so few tries do. */
static void rehash(struct build *b, uint64_t size)
{
    struct sz_router *r = b->r;
    struct sz_edge *old = r->edges;
    uint64_t old_size = old == NULL ? 0 : r->mask + 1;
    for (unsigned try = 0;; try++) {
        uint64_t seed = r->seed + 0x9e3779b97f4a7c15ull * (try + 1);
        if (try > 0 && try % 8 == 0)
            size *= 2;
        if (try == 0 || try % 8 == 0)
            r->edges = sz_pool_alloc(b->pool, size * sizeof(*r->edges));
        memset(r->edges, 0, size * sizeof(*r->edges));
        bool ok = true;
        for (uint64_t i = 0; i < old_size && ok; i++) {
            struct sz_edge e = old[i];
            if (e.p == NULL)
                continue;
            e.hash = sz_edge_hash(seed, e.parent, e.p, e.n);
            ok = place(r->edges, size - 1, e);
        }
        if (ok) {
            r->mask = size - 1;
            r->seed = seed;
            return;
        }
    }
}

static void add_edge(struct build *b, uint32_t parent, struct sz_slice text, uint32_t child)
{
    struct sz_router *r = b->r;
    if ((uint64_t)(b->edges_n + 1) * 2 > r->mask + 1)
        rehash(b, (r->mask + 1) * 2);
    struct sz_edge e = {.p = text.p, .n = (uint32_t)text.n, .parent = parent, .child = child};
    for (;;) {
        e.hash = sz_edge_hash(r->seed, parent, text.p, text.n);
        if (place(r->edges, r->mask, e))
            break;
        rehash(b, (r->mask + 1) * 2);
    }
    b->edges_n++;
}

/* ---- nodes and groups ------------------------------------------------------------------------------------- */

static void *room(struct build *b, void *array, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    uint32_t more = *cap == 0 ? 64 : *cap * 2;
    void *grown = sz_pool_zalloc(b->pool, more * size);
    if (n > 0)
        memcpy(grown, array, n * size);
    *cap = more;
    return grown;
}

static uint32_t new_node(struct build *b)
{
    b->r->nodes = room(b, b->r->nodes, b->nodes_n, &b->nodes_cap, sizeof(*b->r->nodes));
    return b->nodes_n++;
}

static uint32_t new_group(struct build *b, const struct sz_pattern *p)
{
    b->r->groups = room(b, b->r->groups, b->groups_n, &b->groups_cap, sizeof(*b->r->groups));
    struct sz_route_group *g = &b->r->groups[b->groups_n];
    for (unsigned i = 0; i < p->n; i++) {
        if (p->seg[i].param)
            g->param_at[g->params_n++] = (uint8_t)i;
    }
    return b->groups_n++;
}

static uint32_t literal_child(struct build *b, uint32_t parent, struct sz_slice text)
{
    uint32_t child = sz_edge_find(b->r, parent, text.p, text.n);
    if (child == 0) {
        child = new_node(b);
        add_edge(b, parent, text, child);
    }
    return child;
}

static uint32_t param_child(struct build *b, uint32_t parent)
{
    if (b->r->nodes[parent].param == 0) {
        uint32_t child = new_node(b); /* moves the array */
        b->r->nodes[parent].param = child;
    }
    return b->r->nodes[parent].param;
}

static uint32_t root_of(struct build *b, const struct sz_pattern *p)
{
    struct sz_router *r = b->r;
    if (p->host.p == NULL) {
        if (r->any_root == 0)
            r->any_root = new_node(b);
        return r->any_root;
    }
    if (!p->wildcard) {
        r->hosts = true;
        return literal_child(b, SZ_EDGE_HOST, p->host);
    }
    unsigned labels = 0;
    for (size_t i = 0; i < p->host.n; i++)
        labels += p->host.p[i] == '.';
    if (labels > r->suffix_labels)
        r->suffix_labels = labels;
    return literal_child(b, SZ_EDGE_SUFFIX, p->host);
}

static struct sz_route_group *group_of(struct build *b, const struct sz_pattern *p)
{
    uint32_t at = root_of(b, p);
    for (unsigned i = 0; i < p->n; i++) {
        if (p->seg[i].param) {
            at = param_child(b, at);
        } else {
            b->r->nodes[at].literals = true;
            at = literal_child(b, at, p->seg[i].text);
        }
    }
    uint32_t *slot = p->star ? &b->r->nodes[at].star : &b->r->nodes[at].end;
    if (*slot == 0)
        *slot = new_group(b, p);
    return &b->r->groups[*slot];
}

/* ---- methods ------------------------------------------------------------------------------------------------ */

static int conflict(struct build *b, const struct sz_conf_route *a, const struct sz_conf_route *c)
{
    sz_text_set(b->why, "routes '%.*s' and '%.*s' match the same requests", SZ_FMT(a->id), SZ_FMT(c->id));
    return -EEXIST;
}

static int add_method(struct build *b, struct sz_route_group *g, struct sz_slice name,
                      const struct sz_conf_route *route)
{
    uint32_t n = g->methods_n;
    for (uint32_t i = 0; i < n; i++) {
        if (sz_eq(g->methods[i].name, name))
            return g->methods[i].route == route ? 0 : conflict(b, g->methods[i].route, route);
    }
    struct sz_route_method *grown = sz_pool_alloc(b->pool, (n + 1) * sizeof(*grown)); /* few, and once */
    if (n > 0)
        memcpy(grown, g->methods, n * sizeof(*grown));
    grown[n] = (struct sz_route_method){name, route};
    g->methods = grown;
    g->methods_n = n + 1;
    return 0;
}

static int add_route(struct build *b, const struct sz_conf_route *route)
{
    struct sz_pattern p;
    struct sz_slice canonical;
    int rc = sz_pattern_host(b->pool, route->match.host, &p, &canonical, b->why);
    if (rc == 0)
        rc = sz_pattern_path(b->pool, route->match.path, &p, b->why);
    if (rc != 0)
        return rc;
    struct sz_route_group *g = group_of(b, &p);
    if (g->any != NULL)
        return conflict(b, g->any, route);
    if (route->match.methods.n == 0) {
        g->any = route;
        return g->methods_n > 0 ? conflict(b, g->methods[0].route, route) : 0;
    }
    for (size_t i = 0; i < route->match.methods.n && rc == 0; i++) {
        rc = add_method(b, g, route->match.methods.v[i], route);
        if (rc == 0 && sz_eq(route->match.methods.v[i], SZ_S("GET")))
            rc = add_method(b, g, SZ_S("HEAD"), route);
    }
    return rc;
}

static int by_name(const void *pa, const void *pb)
{
    return sz_cmp(((const struct sz_route_method *)pa)->name, ((const struct sz_route_method *)pb)->name);
}

static void write_allow(struct build *b, struct sz_route_group *g)
{
    struct sz_buf text = {0};
    if (g->any != NULL) {
        g->allow = SZ_S("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
        return;
    }
    struct sz_route_method *sorted = sz_pool_alloc(b->pool, g->methods_n * sizeof(*sorted));
    memcpy(sorted, g->methods, g->methods_n * sizeof(*sorted));
    qsort(sorted, g->methods_n, sizeof(*sorted), by_name);
    for (uint32_t i = 0; i < g->methods_n; i++)
        sz_buf_printf(&text, "%s%.*s", i == 0 ? "" : ", ", SZ_FMT(sorted[i].name));
    g->methods = sorted;
    g->allow = sz_slice(sz_pool_strdup(b->pool, sz_buf_slice(&text)), text.n);
    sz_buf_fini(&text);
}

/* ---- the bound ------------------------------------------------------------------------------------------------ */

/* visits[node] as router_table.h defines it, saturating.  Children have higher numbers than their parents. */
static uint32_t *count_visits(const struct build *b)
{
    uint32_t *visits = sz_xcalloc(b->nodes_n, sizeof(*visits));
    uint32_t *literal = sz_xcalloc(b->nodes_n, sizeof(*literal)); /* the most of the literal children so far */
    uint32_t *parent = sz_xcalloc(b->nodes_n, sizeof(*parent));
    for (uint64_t i = 0; i <= b->r->mask; i++) {
        const struct sz_edge *e = &b->r->edges[i];
        if (e->p != NULL && e->parent < b->nodes_n)
            parent[e->child] = e->parent;
    }
    for (uint32_t n = b->nodes_n - 1; n > 0; n--) {
        uint64_t sum = 1ull + literal[n] + visits[b->r->nodes[n].param];
        visits[n] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
        if (visits[n] > literal[parent[n]])
            literal[parent[n]] = visits[n];
    }
    free(literal);
    free(parent);
    return visits;
}

/* The most steps of a request for `host`: its own root, every enclosing "*." and the routes without a host. */
static uint64_t steps_of(const struct build *b, const uint32_t *visits, struct sz_slice host, uint32_t root)
{
    uint64_t sum = visits[root] + (uint64_t)visits[b->r->any_root];
    for (size_t i = 1; i < host.n; i++) {
        if (host.p[i] == '.')
            sum += visits[sz_edge_find(b->r, SZ_EDGE_SUFFIX, host.p + i, host.n - i)];
    }
    return sum;
}

static int check_bound(struct build *b)
{
    uint32_t *visits = count_visits(b);
    uint64_t most = visits[b->r->any_root];
    for (uint64_t i = 0; i <= b->r->mask; i++) {
        const struct sz_edge *e = &b->r->edges[i];
        if (e->p == NULL || e->parent < b->nodes_n)
            continue;
        uint64_t steps = steps_of(b, visits, sz_slice(e->p, e->n), e->child);
        most = steps > most ? steps : most;
    }
    free(visits);
    if (most <= SZ_ROUTER_STEPS_MAX)
        return 0;
    sz_text_set(b->why,
                "literals and {parameters} side by side at many levels: one request could take %llu steps, the most is "
                "%d; use fewer parameters before literals",
                (unsigned long long)most, SZ_ROUTER_STEPS_MAX);
    return -E2BIG;
}

struct sz_router *sz_router_new(const struct sz_conf_route *routes, size_t n, struct sz_pool *pool, struct sz_text *why)
{
    struct build b = {.pool = pool, .r = sz_pool_zalloc(pool, sizeof(struct sz_router)), .why = why};
    rehash(&b, 64);
    new_node(&b); /* node 0 and group 0 mean "none" */
    new_group(&b, &(struct sz_pattern){0});
    for (size_t i = 0; i < n; i++) {
        if (add_route(&b, &routes[i]) != 0)
            return NULL;
    }
    for (uint32_t i = 1; i < b.groups_n; i++)
        write_allow(&b, &b.r->groups[i]);
    return check_bound(&b) == 0 ? b.r : NULL;
}
