/*
 * What loading promises about public routes, by trial: where no route says covers_guarded, a request that a guarded
 * pattern is there for is answered by a public route only if that one's path is the more specific of the two.
 */
#include "conf/pattern.h"
#include "conf_test.h"
#include "subzero/router.h"

#define ROUTES_MAX 8

static uint64_t state = 0x2545f4914f6cdd1du;

static unsigned dice(unsigned n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % n;
}

static void random_path(struct sz_buf *out, bool pattern)
{
    unsigned n = 1 + dice(3);
    for (unsigned i = 0; i < n; i++) {
        unsigned kind = dice(10);
        sz_buf_add(out, "/", 1);
        if (pattern && kind < 3)
            sz_buf_printf(out, "{p%u}", i);
        else if (pattern && kind < 6 && i + 1 == n)
            sz_buf_add(out, "*", 1);
        else if (i + 1 < n || kind < 9)
            sz_buf_add(out, &"abc"[dice(3)], 1);
    }
}

static void random_routes(struct sz_buf *out, unsigned n)
{
    static const char *const hosts[] = {"", "", ", host: h.x.y", ", host: \"*.x.y\"", ", host: \"*.y\""};
    static const char *const methods[] = {"", "", ", methods: [GET]", ", methods: [POST]"};
    for (unsigned i = 0; i < n; i++) {
        sz_buf_printf(out, "  - {id: r%u, match: {path: \"", i);
        random_path(out, true);
        sz_buf_printf(out, "\"%s%s}, %s, upstream: up}\n", hosts[dice(SZ_COUNT(hosts))],
                      methods[dice(SZ_COUNT(methods))], dice(3) == 0 ? "public: true" : "auth: {issuers: [main]}");
    }
}

/* ---- a matcher that only reads ---------------------------------------------------------------------------- */

static bool host_fits(const struct sz_conf_route *route, struct sz_slice host)
{
    struct sz_slice want = route->match.host;
    if (want.n > 2 && want.p[0] == '*')
        return host.n > want.n - 1 && sz_eq(sz_from(host, host.n - (want.n - 1)), sz_from(want, 1));
    return want.p == NULL || sz_eq(want, host);
}

/* Walks both at once.  *places gets a digit a place: 3 literal or end, 2 parameter, 1 star. */
static bool path_fits(const struct sz_conf_route *route, struct sz_slice path, char places[16])
{
    struct sz_slice want = sz_from(route->match.path, 1), rest = sz_from(path, 1), segment, pattern;
    size_t n = 0;
    memset(places, '3', 15);
    places[15] = '\0';
    while (sz_split(&want, '/', &pattern)) {
        if (want.p == NULL && sz_eq(pattern, SZ_S("*"))) {
            places[n] = '1';
            return true;
        }
        if (!sz_split(&rest, '/', &segment))
            return false;
        bool param = pattern.n > 0 && pattern.p[0] == '{';
        if (param ? segment.n == 0 : !sz_eq(pattern, segment))
            return false;
        places[n++] = param ? '2' : '3';
    }
    return rest.p == NULL;
}

static void ask(const struct sz_conf *conf, const char *yaml, unsigned *public_answers)
{
    static const char *const hosts[] = {"h.x.y", "i.x.y", "x.y", "z"};
    struct sz_slice host = sz_cstr(hosts[dice(SZ_COUNT(hosts))]);
    struct sz_buf path = {0};
    struct sz_route_match m;
    char open[16], shut[16];
    random_path(&path, false);
    if (sz_router_match(conf->router, host, sz_buf_slice(&path), dice(2) ? SZ_S("GET") : SZ_S("POST"), &m) &&
        m.route->is_public) {
        cr_assert(path_fits(m.route, sz_buf_slice(&path), open));
        for (size_t i = 0; i < conf->routes_n; i++) {
            const struct sz_conf_route *route = &conf->routes[i];
            if (route->is_public || !host_fits(route, host) || !path_fits(route, sz_buf_slice(&path), shut))
                continue;
            ++*public_answers;
            cr_assert(strcmp(open, shut) >= 0, "%.*s%.*s: public %.*s before %.*s\n%s", SZ_FMT(host),
                      SZ_FMT(sz_buf_slice(&path)), SZ_FMT(m.route->id), SZ_FMT(route->id), yaml);
        }
    }
    sz_buf_fini(&path);
}

Test(check_routes, public_never_stands_before_guarded, .timeout = 60)
{
    unsigned loaded = 0, public_answers = 0;
    for (unsigned round = 0; round < 1500; round++) {
        struct sz_buf routes = {0};
        struct conf_try t;
        random_routes(&routes, 2 + dice(ROUTES_MAX - 1));
        sz_buf_add(&routes, "", 1);
        char *yaml = conf_base("", routes.p);
        conf_try(&t, yaml);
        for (unsigned i = 0; t.conf != NULL && i < 100; i++)
            ask(t.conf, routes.p, &public_answers);
        loaded += t.conf != NULL;
        conf_done(&t);
        free(yaml);
        sz_buf_fini(&routes);
    }
    cr_assert_gt(loaded, 100, "only %u loaded", loaded);
    cr_assert_gt(public_answers, 50, "only %u exceptions seen", public_answers);
}
