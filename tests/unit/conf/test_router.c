/*
 * The router against its rules, first by hand, then against a naive matcher on random pattern sets.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/pattern.h"
#include "conf/router_table.h"
#include "subzero/conf.h"
#include "subzero/router.h"

#define ROUTES_MAX 64

struct row {
    const char *id, *host, *path, *methods; /* methods: blank-separated, NULL: all */
};

struct set {
    struct sz_arena arena;
    struct sz_conf_route routes[ROUTES_MAX];
    struct sz_router *router;
    struct sz_text why;
    size_t n;
};

static void set_add(struct set *set, const struct row *row)
{
    struct sz_conf_route *route = &set->routes[set->n++];
    struct sz_slice rest = sz_cstr(row->methods), method;
    struct sz_slice *v = sz_pool_alloc(&set->arena.pool, 8 * sizeof(*v));
    size_t n = 0;
    while (sz_split(&rest, ' ', &method))
        v[n++] = method;
    *route = (struct sz_conf_route){.id = sz_cstr(row->id)};
    route->match.host = sz_cstr(row->host);
    route->match.path = sz_cstr(row->path);
    route->match.methods = (struct sz_strings){v, n};
}

static void set_build(struct set *set, const struct row *rows, size_t n)
{
    sz_arena_init(&set->arena);
    set->n = 0;
    for (size_t i = 0; i < n; i++)
        set_add(set, &rows[i]);
    set->router = sz_router_new(set->routes, set->n, &set->arena.pool, &set->why);
}

static const char *ask(struct set *set, const char *host, const char *path, const char *method,
                       struct sz_route_match *m)
{
    if (sz_router_match(set->router, sz_cstr(host), sz_cstr(path), sz_cstr(method), m))
        return m->route->id.p;
    return m->allow.n > 0 ? "405" : "404";
}

/* ---- hostile ------------------------------------------------------------------------------------- */

Test(router, wrong_method_never_falls_to_a_wider_route)
{
    static const struct row rows[] = {{"guarded", NULL, "/documents/{id}", "GET"},
                                      {"open", NULL, "/*", NULL},
                                      {"docs", NULL, "/documents/*", "POST"}};
    struct set set;
    struct sz_route_match m;
    set_build(&set, rows, SZ_COUNT(rows));
    cr_assert_str_eq(ask(&set, "h", "/documents/1", "GET", &m), "guarded");
    cr_assert_str_eq(ask(&set, "h", "/documents/1", "POST", &m), "405");
    cr_assert(sz_eq(m.allow, SZ_S("GET, HEAD")));
    cr_assert_str_eq(m.sibling->id.p, "guarded");
    cr_assert_str_eq(ask(&set, "h", "/documents/1/x", "POST", &m), "docs");
    cr_assert_str_eq(ask(&set, "h", "/documents/1/x", "GET", &m), "405");
    cr_assert_str_eq(ask(&set, "h", "/other", "GET", &m), "open");
    sz_arena_fini(&set.arena);
}

Test(router, trace_and_connect_never_match)
{
    static const struct row rows[] = {{"all", NULL, "/*", NULL}, {"one", NULL, "/one", "GET"}};
    struct set set;
    struct sz_route_match m;
    set_build(&set, rows, SZ_COUNT(rows));
    cr_assert_str_eq(ask(&set, "h", "/x", "TRACE", &m), "405");
    cr_assert(sz_eq(m.allow, SZ_S("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")));
    cr_assert_str_eq(ask(&set, "h", "/x", "CONNECT", &m), "405");
    cr_assert_str_eq(ask(&set, "h", "/one", "TRACE", &m), "405");
    cr_assert_str_eq(ask(&set, "h", "/x", "PROPFIND", &m), "all");
    cr_assert_str_eq(ask(&set, "h", "/one", "get", &m), "405", "methods are case-sensitive");
    sz_arena_fini(&set.arena);
}

Test(router, odd_targets_match_nothing)
{
    static const struct row rows[] = {{"all", NULL, "/*", NULL}};
    struct set set;
    struct sz_route_match m;
    set_build(&set, rows, SZ_COUNT(rows));
    cr_assert_str_eq(ask(&set, "", "", "GET", &m), "404");
    cr_assert_str_eq(ask(&set, "", "*", "OPTIONS", &m), "404");
    cr_assert_str_eq(ask(&set, "", "x", "GET", &m), "404");
    cr_assert_str_eq(ask(&set, "", "/", "GET", &m), "all");
    sz_arena_fini(&set.arena);
    set_build(&set, rows, 0);
    cr_assert_str_eq(ask(&set, "", "/", "GET", &m), "404", "no routes");
    sz_arena_fini(&set.arena);
}

Test(router, conflicts_and_malformed_patterns_are_refused)
{
    static const struct {
        struct row rows[2];
        const char *why;
    } cases[] = {
        {{{"a", NULL, "/x/{id}", "GET"}, {"b", NULL, "/x/{name}", "POST GET"}}, "match the same requests"},
        {{{"a", NULL, "/x", "GET"}, {"b", NULL, "/x", "HEAD"}}, "match the same requests"},
        {{{"a", NULL, "/x", NULL}, {"b", NULL, "/x", "PUT"}}, "match the same requests"},
        {{{"a", NULL, "/x", "PUT"}, {"b", NULL, "/x", NULL}}, "match the same requests"},
        {{{"a", "API.example.com", "/x", NULL}, {"b", "api.example.com", "/x", NULL}}, "match the same requests"},
        {{{"a", NULL, "/x", "GET"}, {"b", NULL, "x", "GET"}}, "begins with '/'"},
        {{{"a", NULL, "/x", "GET"}, {"b", "a b", "/y", "GET"}}, "no host"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct set set;
        set_build(&set, cases[i].rows, 2);
        cr_assert_null(set.router, "case %zu", i);
        cr_assert_not_null(strstr(set.why.s, cases[i].why), "case %zu: %s", i, set.why.s);
        sz_arena_fini(&set.arena);
    }
}

/* A literal and a parameter at every level double the ways at each: refused before a request can use it. */
Test(router, entangled_patterns_are_refused)
{
    char paths[ROUTES_MAX][128];
    struct row rows[ROUTES_MAX];
    for (unsigned i = 0; i < ROUTES_MAX; i++) {
        char *at = paths[i];
        for (unsigned bit = 0; bit < 6; bit++)
            at += snprintf(at, 8, (i >> bit & 1) != 0 ? "/a" : "/{p%u}", bit);
        rows[i] = (struct row){"r", NULL, paths[i], NULL};
    }
    struct set set;
    set_build(&set, rows, ROUTES_MAX);
    cr_assert_not_null(set.router, "127 steps are within the bound: %s", set.why.s);
    sz_arena_fini(&set.arena);
    for (unsigned i = 0; i < ROUTES_MAX; i++)
        snprintf(paths[i] + strlen(paths[i]), 32, "/a/{q}/{r}/x");
    set_build(&set, rows, ROUTES_MAX);
    cr_assert_null(set.router);
    cr_assert_not_null(strstr(set.why.s, "steps"), "%s", set.why.s);
    sz_arena_fini(&set.arena);
}

/* ---- the rules ------------------------------------------------------------------------------------- */

Test(router, the_most_specific_pattern_wins_whatever_the_order)
{
    static const struct row rows[] = {
        {"star", NULL, "/a/*", NULL},     {"param", NULL, "/a/{x}", NULL},    {"literal", NULL, "/a/b", NULL},
        {"deep", NULL, "/a/{x}/c", NULL}, {"left", NULL, "/a/b/{y}", NULL},   {"slash", NULL, "/a/b/", NULL},
        {"root", NULL, "/", NULL},        {"back", NULL, "/a/b/c/d/e", NULL}, {"mid", NULL, "/a/{x}/c/d/f", NULL},
    };
    static const struct {
        const char *path, *id;
    } cases[] = {
        {"/", "root"},         {"/a", "star"},         {"/a/", "star"},    {"/a/x", "param"}, {"/a/b", "literal"},
        {"/a/x/c", "deep"},    {"/a/b/c", "left"},     {"/a/b/", "slash"}, {"/a/x/", "star"}, {"/a/b/c/d/e", "back"},
        {"/a/b/c/d/f", "mid"}, {"/a/b/c/d/g", "star"}, {"/b", "404"},      {"/ab", "404"},    {"/a/b/c/", "star"},
    };
    for (unsigned turn = 0; turn < 2; turn++) {
        struct row turned[SZ_COUNT(rows)];
        struct set set;
        struct sz_route_match m;
        for (size_t i = 0; i < SZ_COUNT(rows); i++)
            turned[i] = rows[turn == 0 ? i : SZ_COUNT(rows) - 1 - i];
        set_build(&set, turned, SZ_COUNT(rows));
        cr_assert_not_null(set.router, "%s", set.why.s);
        for (size_t i = 0; i < SZ_COUNT(cases); i++)
            cr_assert_str_eq(ask(&set, "", cases[i].path, "GET", &m), cases[i].id, "%s", cases[i].path);
        sz_arena_fini(&set.arena);
    }
}

Test(router, hosts)
{
    static const struct row rows[] = {
        {"any", NULL, "/*", NULL},
        {"wild", "*.example.com", "/w", NULL},
        {"wilder", "*.eu.example.com", "/w", NULL},
        {"exact", "api.example.com", "/w", NULL},
        {"six", "[0::0001]", "/w", NULL},
    };
    static const struct {
        const char *host, *path, *id;
    } cases[] = {
        {"api.example.com", "/w", "exact"},
        {"api.example.com", "/x", "any"},
        {"a.example.com", "/w", "wild"},
        {"a.b.example.com", "/w", "wild"},
        {"x.eu.example.com", "/w", "wilder"},
        {"eu.example.com", "/w", "wild"},
        {"example.com", "/w", "any"},
        {".example.com", "/w", "any"},
        {"xexample.com", "/w", "any"},
        {"", "/w", "any"},
        {"a.a.a.a.a.a.a.a.eu.example.com", "/w", "wilder"},
        {"::1", "/w", "six"},
    };
    struct set set;
    struct sz_route_match m;
    set_build(&set, rows, SZ_COUNT(rows));
    cr_assert_not_null(set.router, "%s", set.why.s);
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        cr_assert_str_eq(ask(&set, cases[i].host, cases[i].path, "GET", &m), cases[i].id, "%s", cases[i].host);
    sz_arena_fini(&set.arena);
}

Test(router, parameters_come_in_pattern_order)
{
    static const struct row rows[] = {{"r", NULL, "/a/{x}/b/{y}/*", "GET"}, {"s", NULL, "/a/{p}/b/{q}/*", "PUT"}};
    struct set set;
    struct sz_route_match m;
    set_build(&set, rows, SZ_COUNT(rows));
    cr_assert_str_eq(ask(&set, "", "/a/one/b/two%20/three/four", "HEAD", &m), "r");
    cr_assert_eq(m.params_n, 2);
    cr_assert(sz_eq(m.params[0], SZ_S("one")) && sz_eq(m.params[1], SZ_S("two%20")));
    cr_assert_str_eq(ask(&set, "", "/a/one/b/two", "PUT", &m), "s");
    cr_assert(sz_eq(m.params[1], SZ_S("two")));
    cr_assert_str_eq(ask(&set, "", "/a//b/two", "PUT", &m), "404", "a parameter is never empty");
    sz_arena_fini(&set.arena);
}

/* ---- against a naive matcher --------------------------------------------------------------------------- */

static size_t cut(struct sz_slice path, struct sz_slice *seg)
{
    struct sz_slice rest = sz_from(path, 1), field;
    size_t n = 0;
    while (sz_split(&rest, '/', &field))
        seg[n++] = field;
    return n;
}

static bool naive_path(const struct sz_pattern *p, const struct sz_slice *seg, size_t n)
{
    if (p->star ? n < p->n : n != p->n)
        return false;
    for (unsigned i = 0; i < p->n; i++) {
        if (p->seg[i].param ? seg[i].n == 0 : !sz_eq(p->seg[i].text, seg[i]))
            return false;
    }
    return true;
}

static bool naive_host(const struct sz_pattern *p, struct sz_slice host)
{
    if (p->host.p == NULL)
        return true;
    if (!p->wildcard)
        return sz_eq(p->host, host);
    return host.n > p->host.n && sz_eq(sz_from(host, host.n - p->host.n), p->host);
}

/* > 0: a is more specific.  Host first (exact, longer suffix, none), then place by place. */
static int naive_order(const struct sz_pattern *a, const struct sz_pattern *b)
{
    int ha = a->host.p == NULL ? 0 : a->wildcard ? (int)a->host.n : 1000;
    int hb = b->host.p == NULL ? 0 : b->wildcard ? (int)b->host.n : 1000;
    if (ha != hb)
        return ha - hb;
    for (unsigned i = 0;; i++) {
        /* what stands there: 3 a literal or the end, 2 a parameter, 1 the star */
        int ka = i < a->n ? (a->seg[i].param ? 2 : 3) : a->star ? 1 : 3;
        int kb = i < b->n ? (b->seg[i].param ? 2 : 3) : b->star ? 1 : 3;
        if (ka != kb || i >= a->n || i >= b->n)
            return ka - kb;
    }
}

static const char *naive(struct set *set, const struct sz_pattern *patterns, struct sz_slice host, struct sz_slice path)
{
    struct sz_slice seg[64];
    size_t n = cut(path, seg), best = SIZE_MAX;
    for (size_t i = 0; i < set->n; i++) {
        if (naive_host(&patterns[i], host) && naive_path(&patterns[i], seg, n) &&
            (best == SIZE_MAX || naive_order(&patterns[i], &patterns[best]) > 0))
            best = i;
    }
    return best == SIZE_MAX ? "404" : set->routes[best].id.p;
}

static uint64_t dice_state = 88172645463325252ull;
static unsigned dice(unsigned n)
{
    dice_state ^= dice_state << 13;
    dice_state ^= dice_state >> 7;
    dice_state ^= dice_state << 17;
    return (unsigned)(dice_state % n);
}

/* Few letters, so that everything collides with everything. */
static void random_path(char *out, bool pattern)
{
    unsigned n = dice(5) + 1;
    for (unsigned i = 0; i < n; i++) {
        unsigned kind = dice(10);
        *out++ = '/';
        if (pattern && kind < 4)
            out += snprintf(out, 8, "{p%u}", i);
        else if (pattern && kind < 5 && i + 1 == n)
            *out++ = '*';
        else if (i + 1 < n || kind < 9)
            *out++ = (char)('a' + dice(3));
    }
    *out = '\0';
}

static const char *random_host(bool pattern)
{
    static const char *const hosts[] = {"", "h.x.y", "i.x.y", "x.y", "g.h.x.y"};
    static const char *const patterns[] = {NULL, "h.x.y", "*.x.y", "*.y", "*.h.x.y"};
    return pattern ? patterns[dice(5)] : hosts[dice(5)];
}

struct random_set {
    struct set set;
    struct sz_pattern patterns[ROUTES_MAX];
    char paths[ROUTES_MAX][64], ids[ROUTES_MAX][8];
};

static void random_set(struct random_set *r)
{
    struct set *set = &r->set;
    size_t want = dice(ROUTES_MAX) + 1;
    sz_arena_init(&set->arena);
    set->n = 0;
    for (size_t i = 0; i < want; i++) {
        struct sz_slice canonical;
        struct sz_pattern *p = &r->patterns[set->n];
        struct row row = {r->ids[set->n], random_host(true), r->paths[set->n], NULL};
        bool taken = false;
        random_path(r->paths[set->n], true);
        snprintf(r->ids[set->n], sizeof(r->ids[0]), "r%zu", set->n);
        cr_assert_eq(sz_pattern_host(&set->arena.pool, sz_cstr(row.host), p, &canonical, &set->why), 0);
        cr_assert_eq(sz_pattern_path(&set->arena.pool, sz_cstr(row.path), p, &set->why), 0, "%s: %s", row.path,
                     set->why.s);
        for (size_t k = 0; k < set->n; k++)
            taken |= sz_pattern_equal(p, &r->patterns[k]);
        if (!taken)
            set_add(set, &row);
    }
    set->router = sz_router_new(set->routes, set->n, &set->arena.pool, &set->why);
    cr_assert_not_null(set->router, "%s", set->why.s);
}

Test(router, random_sets_match_as_a_naive_matcher_does)
{
    static struct random_set r;
    for (unsigned round = 0; round < 400; round++) {
        random_set(&r);
        for (unsigned i = 0; i < 200; i++) {
            char path[64];
            struct sz_route_match m;
            const char *host = random_host(false);
            random_path(path, false);
            const char *want = naive(&r.set, r.patterns, sz_cstr(host), sz_cstr(path));
            cr_assert_str_eq(ask(&r.set, host, path, "GET", &m), want, "round %u: %s%s", round, host, path);
        }
        sz_arena_fini(&r.set.arena);
    }
}

/* Whatever a covered pattern matches, the covering one matches. */
Test(router, covers_agrees_with_matching)
{
    static struct random_set r;
    unsigned seen = 0;
    for (unsigned round = 0; round < 100; round++) {
        random_set(&r);
        for (unsigned i = 0; i < 2000; i++) {
            unsigned n = (unsigned)r.set.n;
            const struct sz_pattern *a = &r.patterns[dice(n)], *b = &r.patterns[dice(n)];
            struct sz_slice seg[64], host = sz_cstr(random_host(false));
            char path[64];
            random_path(path, false);
            size_t segments = cut(sz_cstr(path), seg);
            if (!sz_pattern_covers(a, b) || !naive_host(b, host) || !naive_path(b, seg, segments))
                continue;
            seen++;
            cr_assert(naive_host(a, host) && naive_path(a, seg, segments), "%s%s", host.p, path);
        }
        sz_arena_fini(&r.set.arena);
    }
    cr_assert_gt(seen, 500);
}

Test(router, covers)
{
    static const struct {
        const char *outer_host, *outer, *inner_host, *inner;
        bool covers;
    } cases[] = {
        {NULL, "/*", NULL, "/admin", true},     {NULL, "/*", "h.x", "/a/{b}/*", true},
        {"h.x", "/*", NULL, "/admin", false},   {"*.x", "/*", "h.x", "/admin", true},
        {"*.x", "/*", "*.h.x", "/admin", true}, {"*.h.x", "/*", "*.x", "/admin", false},
        {"*.x", "/*", "x", "/admin", false},    {NULL, "/a/*", NULL, "/a", true},
        {NULL, "/a/*", NULL, "/ab", false},     {NULL, "/a/{x}", NULL, "/a/b", true},
        {NULL, "/a/{x}", NULL, "/a/", false},   {NULL, "/a/b", NULL, "/a/{x}", false},
        {NULL, "/a/{x}", NULL, "/a/*", false},  {NULL, "/{x}/*", NULL, "/a/b/c", true},
        {NULL, "/{x}/b", NULL, "/a/*", false},
    };
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_pattern a, b;
        struct sz_slice canonical;
        struct sz_text why;
        cr_assert_eq(sz_pattern_host(&arena.pool, sz_cstr(cases[i].outer_host), &a, &canonical, &why), 0);
        cr_assert_eq(sz_pattern_host(&arena.pool, sz_cstr(cases[i].inner_host), &b, &canonical, &why), 0);
        cr_assert_eq(sz_pattern_path(&arena.pool, sz_cstr(cases[i].outer), &a, &why), 0);
        cr_assert_eq(sz_pattern_path(&arena.pool, sz_cstr(cases[i].inner), &b, &why), 0);
        cr_expect_eq(sz_pattern_covers(&a, &b), cases[i].covers, "%s over %s", cases[i].outer, cases[i].inner);
    }
    sz_arena_fini(&arena);
}

/* ---- the arrays ---------------------------------------------------------------------------------------- */

Test(router, no_lookup_needs_more_probes_than_promised)
{
    enum { MANY = 10000 };
    struct sz_arena arena;
    struct sz_text why;
    sz_arena_init(&arena);
    struct sz_conf_route *routes = sz_pool_zalloc(&arena.pool, MANY * sizeof(*routes));
    for (unsigned i = 0; i < MANY; i++) {
        routes[i].id = sz_pool_printf(&arena.pool, "r%u", i);
        routes[i].match.path = sz_pool_printf(&arena.pool, "/service-%u/items/{id}", i);
    }
    struct sz_router *router = sz_router_new(routes, MANY, &arena.pool, &why);
    cr_assert_not_null(router, "%s", why.s);
    for (unsigned i = 0; i < MANY; i++) {
        struct sz_route_match m;
        char path[64];
        snprintf(path, sizeof(path), "/service-%u/items/%u", i, i * 7);
        cr_assert(sz_router_match(router, SZ_S("h"), sz_cstr(path), SZ_S("GET"), &m));
        cr_assert_eq(m.route, &routes[i]);
    }
    for (uint64_t i = 0; i <= router->mask; i++) {
        const struct sz_edge *e = &router->edges[i];
        if (e->p != NULL)
            cr_assert_lt((i - e->hash) & router->mask, SZ_EDGE_PROBES);
    }
    sz_arena_fini(&arena);
}
