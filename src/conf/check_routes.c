/*
 * What holds between routes.  Sorting does the work: ids and patterns that collide become neighbours,
 * so 10,000 routes are checked in a moment; only public against guarded is done in pairs.
 */
#include <stdlib.h>

#include "conf/build.h"
#include "subzero/router.h"

static const struct sz_raw_route *raw_at(const struct sz_builder *b, size_t i)
{
    return &((const struct sz_raw_route *)b->raw->routes.v)[i];
}

static int by_id(const void *pa, const void *pb, void *arg)
{
    const struct sz_builder *b = arg;
    size_t i = *(const size_t *)pa, k = *(const size_t *)pb;
    int c = sz_cmp(b->conf->routes[i].id, b->conf->routes[k].id);
    return c != 0 ? c : (i > k) - (i < k);
}

static int pattern_order(const struct sz_pattern *a, const struct sz_pattern *c)
{
    int order = sz_cmp(a->host, c->host);
    if (order == 0)
        order = (int)a->wildcard - (int)c->wildcard;
    for (unsigned i = 0; order == 0 && i < a->n && i < c->n; i++) {
        order = (int)a->seg[i].param - (int)c->seg[i].param;
        if (order == 0 && !a->seg[i].param)
            order = sz_cmp(a->seg[i].text, c->seg[i].text);
    }
    if (order == 0)
        order = (int)a->n - (int)c->n;
    return order != 0 ? order : (int)a->star - (int)c->star;
}

static int by_pattern(const void *pa, const void *pb, void *arg)
{
    const struct sz_builder *b = arg;
    size_t i = *(const size_t *)pa, k = *(const size_t *)pb;
    int c = pattern_order(&b->patterns[i], &b->patterns[k]);
    return c != 0 ? c : (i > k) - (i < k);
}

static void check_ids(struct sz_builder *b, const size_t *order)
{
    for (size_t i = 1; i < b->conf->routes_n; i++) {
        const struct sz_conf_route *a = &b->conf->routes[order[i - 1]], *c = &b->conf->routes[order[i]];
        const struct sz_node *first = sz_node_get(raw_at(b, order[i - 1])->head.node, "id");
        if (c->id.p != NULL && first != NULL && sz_eq(a->id, c->id))
            sz_mistake(b->l, sz_node_get(raw_at(b, order[i])->head.node, "id"),
                       "route id '%.*s' is taken in line %u; ids are unique", SZ_FMT(c->id), first->line);
    }
}

/* A method that both take, for the message; SZ_NONE: none. */
static struct sz_slice common_method(struct sz_strings a, struct sz_strings c)
{
    if (a.n == 0 && c.n == 0)
        return SZ_S("every method");
    if (a.n == 0 || c.n == 0)
        return a.n == 0 ? c.v[0] : a.v[0];
    for (size_t i = 0; i < a.n; i++) {
        for (size_t k = 0; k < c.n; k++) {
            if (sz_eq(a.v[i], c.v[k]))
                return a.v[i];
            if ((sz_eq(a.v[i], SZ_S("GET")) && sz_eq(c.v[k], SZ_S("HEAD"))) ||
                (sz_eq(a.v[i], SZ_S("HEAD")) && sz_eq(c.v[k], SZ_S("GET"))))
                return SZ_S("HEAD");
        }
    }
    return SZ_NONE;
}

static bool usable(const struct sz_builder *b, size_t i)
{
    return b->patterns[i].n > 0 || b->patterns[i].star;
}

/* `order` is by pattern: equal ones stand together. */
static void check_equal(struct sz_builder *b, const size_t *order)
{
    for (size_t i = 0; i < b->conf->routes_n; i++) {
        for (size_t k = i + 1; k < b->conf->routes_n && usable(b, order[i]) &&
                               sz_pattern_equal(&b->patterns[order[i]], &b->patterns[order[k]]);
             k++) {
            const struct sz_conf_route *a = &b->conf->routes[order[i]], *c = &b->conf->routes[order[k]];
            struct sz_slice method = common_method(a->match.methods, c->match.methods);
            if (method.p == NULL)
                continue;
            sz_mistake(b->l, sz_node_key(raw_at(b, order[k])->head.node, "match"),
                       "routes '%.*s' and '%.*s' match the same requests (%.*s %.*s); change a path, host or method",
                       SZ_FMT(a->id), SZ_FMT(c->id), SZ_FMT(method), SZ_FMT(c->match.path));
            break;
        }
    }
}

/* How a public route takes requests that a guarded one is there for; NULL: it does not. */
static const char *in_the_way(const struct sz_pattern *open, const struct sz_pattern *shut)
{
    if (sz_pattern_equal(open, shut))
        return NULL;
    return sz_pattern_covers(open, shut)    ? "covers"
           : sz_pattern_shadows(open, shut) ? "by its host comes before"
                                            : NULL;
}

static void check_covers(struct sz_builder *b)
{
    size_t n = b->conf->routes_n;
    for (size_t i = 0; i < n; i++) {
        const struct sz_conf_route *open = &b->conf->routes[i];
        if (!open->is_public || open->covers_guarded || !usable(b, i))
            continue;
        for (size_t k = 0; k < n; k++) {
            const struct sz_conf_route *shut = &b->conf->routes[k];
            const char *how = shut->is_public || !usable(b, k) ? NULL : in_the_way(&b->patterns[i], &b->patterns[k]);
            if (how == NULL)
                continue;
            sz_mistake(
                b->l, sz_node_key(raw_at(b, i)->head.node, "match"),
                "public route '%.*s' (%.*s) %s the guarded '%.*s' (%.*s); narrow it, or say 'covers_guarded: true'",
                SZ_FMT(open->id), SZ_FMT(open->match.path), how, SZ_FMT(shut->id), SZ_FMT(shut->match.path));
            break;
        }
    }
}

/* A header that some route sets is no client's on any route: "keep" beside it would be said in vain. */
static void check_kept(struct sz_builder *b)
{
    const struct sz_conf_route *routes = b->conf->routes, *setter = NULL;
    for (size_t i = 0; i < b->conf->routes_n && setter == NULL; i++) {
        for (size_t k = 0; k < routes[i].headers_n; k++)
            setter = sz_eq(routes[i].headers[k].name, SZ_S("authorization")) ? &routes[i] : setter;
    }
    for (size_t i = 0; i < b->conf->routes_n && setter != NULL; i++) {
        if (routes[i].keep_authorization)
            sz_mistake(b->l, sz_node_key(raw_at(b, i)->head.node, "authorization"),
                       "'authorization: keep' has no effect: route '%.*s' sets that header, so it is taken from every "
                       "client; remove one of the two",
                       SZ_FMT(setter->id));
    }
}

void sz_check_routes(struct sz_builder *b)
{
    size_t n = b->conf->routes_n, before = b->l->m->errors;
    struct sz_text why;
    if (n == 0)
        return; /* its own mistake */
    size_t *order = sz_xcalloc(n, sizeof(*order));
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), by_id, b);
    check_ids(b, order);
    qsort_r(order, n, sizeof(*order), by_pattern, b);
    check_equal(b, order);
    free(order);
    check_covers(b);
    check_kept(b);
    if (before > 0 || b->l->m->errors > 0)
        return; /* a router of half-read routes would only repeat what was said */
    b->conf->router = sz_router_new(b->conf->routes, n, b->l->pool, &why);
    if (b->conf->router == NULL)
        sz_mistake(b->l, sz_node_key(b->raw->head.node, "routes"), "%s", why.s);
}
