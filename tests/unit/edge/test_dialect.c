#include "edge/dialect.h"

#include <criterion/criterion.h>

struct rig {
    struct sz_header v[16];
    struct sz_request call;
};

static void rig_init(struct rig *rig, const char *const *fields)
{
    *rig = (struct rig){.call = {.method = SZ_S("GET"), .target = SZ_S("/auth"), .authority = SZ_S("gate:8081")}};
    rig->call.headers.v = rig->v;
    for (; *fields != NULL; fields += 2)
        rig->v[rig->call.headers.n++] = (struct sz_header){sz_cstr(fields[0]), sz_cstr(fields[1])};
}

#define NGINX  "x-original-method", "POST", "x-original-uri", "/a?b"
#define PROXY  "x-forwarded-method", "PUT", "x-forwarded-uri", "/f?g", "x-forwarded-host", "app.example"
#define SCHEME "x-forwarded-proto", "https"

Test(dialect, a_part_that_is_missing_doubled_or_malformed_is_refused)
{
    static const struct {
        enum sz_dialect dialect;
        const char *fields[12];
    } rows[] = {
        {SZ_DIALECT_NGINX, {"x-original-method", "GET"}},
        {SZ_DIALECT_NGINX, {"x-original-uri", "/"}},
        {SZ_DIALECT_NGINX, {PROXY, SCHEME}},
        {SZ_DIALECT_NGINX, {NGINX, "x-original-uri", "/other"}},
        {SZ_DIALECT_NGINX, {NGINX, "x-original-method", "POST"}},
        {SZ_DIALECT_NGINX, {"x-original-method", "GET", "x-original-uri", ""}},
        {SZ_DIALECT_NGINX, {"x-original-method", "", "x-original-uri", "/"}},
        {SZ_DIALECT_NGINX, {"x-original-method", "G T", "x-original-uri", "/"}},
        {SZ_DIALECT_NGINX, {"x-original-method", "GET", "x-original-uri", "http://app.example/"}},
        {SZ_DIALECT_NGINX, {"x-original-method", "GET", "x-original-uri", "*"}},
        {SZ_DIALECT_NGINX, {"x-original-method", "GET", "x-original-uri", "/a b"}},
        {SZ_DIALECT_TRAEFIK, {NGINX}},
        {SZ_DIALECT_TRAEFIK, {PROXY}},
        {SZ_DIALECT_TRAEFIK, {PROXY, "x-forwarded-proto", "ftp"}},
        {SZ_DIALECT_TRAEFIK, {PROXY, "x-forwarded-proto", "https, http"}},
        {SZ_DIALECT_TRAEFIK, {PROXY, SCHEME, "x-forwarded-host", "evil.example"}},
        {SZ_DIALECT_TRAEFIK, {SCHEME, "x-forwarded-method", "GET", "x-forwarded-uri", "/", "x-forwarded-host", "a, b"}},
        {SZ_DIALECT_CADDY, {SCHEME, "x-forwarded-method", "GET", "x-forwarded-uri", "/"}},
        {SZ_DIALECT_HAPROXY, {NGINX}},
        {SZ_DIALECT_HAPROXY, {NGINX, "x-original-host", "a b"}},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct rig rig;
        struct sz_dialect_request out;
        const char *why = NULL;
        rig_init(&rig, rows[i].fields);
        cr_expect_neq(sz_dialect_parse(rows[i].dialect, &rig.call, &out, &why), 0, "row %zu", i);
        cr_expect_neq(why, NULL, "row %zu", i);
    }
}

static void expect(enum sz_dialect dialect, const char *const *fields, const char *method, const char *target,
                   const char *authority, bool https)
{
    struct rig rig;
    struct sz_dialect_request out;
    const char *why = "";
    rig_init(&rig, fields);
    cr_assert_eq(sz_dialect_parse(dialect, &rig.call, &out, &why), 0, "%s", why);
    cr_expect(sz_eq(out.method, sz_cstr(method)));
    cr_expect(sz_eq(out.target, sz_cstr(target)));
    cr_expect(sz_eq(out.authority, sz_cstr(authority)));
    cr_expect_eq(out.https, https);
}

Test(dialect, each_reads_its_own_headers_whatever_the_others_say)
{
    static const char *const all[] = {NGINX, PROXY, SCHEME, "x-original-host", "orig.example", NULL};
    expect(SZ_DIALECT_NGINX, all, "POST", "/a?b", "gate:8081", false);
    expect(SZ_DIALECT_TRAEFIK, all, "PUT", "/f?g", "app.example", true);
    expect(SZ_DIALECT_CADDY, all, "PUT", "/f?g", "app.example", true);
    expect(SZ_DIALECT_HAPROXY, all, "POST", "/a?b", "orig.example", false);
    expect(SZ_DIALECT_ENVOY, all, "GET", "/auth", "gate:8081", false);
}

Test(dialect, no_header_that_describes_a_request_is_the_clients)
{
    static const char *const owned[] = {"x-original-method", "x-original-uri",   "x-original-host",
                                        "x-forwarded-uri",   "x-forwarded-host", "x-forwarded-method",
                                        "x-forwarded-proto"};
    for (size_t i = 0; i < SZ_COUNT(owned); i++)
        cr_expect(sz_dialect_owns(sz_cstr(owned[i])));
    cr_expect_not(sz_dialect_owns(SZ_S("x-forwarded-for")));
    cr_expect_not(sz_dialect_owns(SZ_S("authorization")));
}
