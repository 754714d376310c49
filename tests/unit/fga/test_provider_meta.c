/* fga/provider_meta.c: where metadata is, whose it is, how long keys stay fresh, when to try again. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/provider_impl.h"

#define ISSUER "https://idp.test/tenant"

TestSuite(provider_meta);

Test(provider_meta, the_well_known_places)
{
    static const struct {
        const char *issuer, *openid, *oauth;
    } cases[] = {
        {"https://a.test", "https://a.test/.well-known/openid-configuration",
         "https://a.test/.well-known/oauth-authorization-server"},
        {"https://a.test/", "https://a.test/.well-known/openid-configuration",
         "https://a.test/.well-known/oauth-authorization-server"},
        {"https://a.test:8443/t/x", "https://a.test:8443/t/x/.well-known/openid-configuration",
         "https://a.test:8443/.well-known/oauth-authorization-server/t/x"},
        {"https://a.test/t/", "https://a.test/t/.well-known/openid-configuration",
         "https://a.test/.well-known/oauth-authorization-server/t"},
    };
    struct sz_arena arena;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_slice openid = sz_metadata_openid(sz_cstr(cases[i].issuer), &arena.pool);
        struct sz_slice oauth = sz_metadata_oauth(sz_cstr(cases[i].issuer), &arena.pool);
        cr_expect(sz_eq(openid, sz_cstr(cases[i].openid)), "%.*s", SZ_FMT(openid));
        cr_expect(sz_eq(oauth, sz_cstr(cases[i].oauth)), "%.*s", SZ_FMT(oauth));
    }
    sz_arena_fini(&arena);
}

Test(provider_meta, metadata_is_read_strictly_and_only_the_issuers_own)
{
    static const struct {
        const char *document, *says; /* NULL: good */
    } cases[] = {
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"<html>", "not a JSON object"},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://idp.test/k\"", "not a JSON object"},
        {"{\"issuer\":\"" ISSUER "\",\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://idp.test/k\"}",
         "not a JSON object"},
        {"{\"jwks_uri\":\"https://idp.test/k\"}", "another issuer"},
        {"{\"issuer\":null,\"jwks_uri\":\"https://idp.test/k\"}", "another issuer"},
        {"{\"issuer\":\"" ISSUER "/\",\"jwks_uri\":\"https://idp.test/k\"}", "another issuer"},
        {"{\"issuer\":\"https://IDP.test/tenant\",\"jwks_uri\":\"https://idp.test/k\"}", "another issuer"},
        {"{\"issuer\":\"" ISSUER "\\u0000\",\"jwks_uri\":\"https://idp.test/k\"}", "another issuer"},
        {"{\"issuer\":\"" ISSUER "\"}", "no jwks_uri"},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":[\"https://idp.test/k\"]}", "no jwks_uri"},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"http://idp.test/k\"}", "jwks_uri: "},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"file:///etc/passwd\"}", "jwks_uri: "},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://u:p@idp.test/k\"}", "jwks_uri: "},
        {"{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"https://idp.test/k\",\"x\":[1]}", NULL},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_slice uri = SZ_NONE;
        struct sz_text why = {""};
        int rc = sz_metadata_read(sz_cstr(cases[i].document), SZ_S(ISSUER), false, &uri, &why);
        cr_expect_eq(rc, cases[i].says == NULL ? 0 : -EINVAL, "%zu", i);
        cr_expect(cases[i].says == NULL || strstr(why.s, cases[i].says) != NULL, "%zu: %s", i, why.s);
        if (rc == 0) {
            cr_expect(sz_eq(uri, SZ_S("https://idp.test/k")));
            free((void *)(uintptr_t)uri.p);
        }
    }
}

Test(provider_meta, freshness_follows_the_fields_within_bounds)
{
    static const struct {
        const char *head;
        int64_t seconds;
    } cases[] = {
        {"", 600},
        {"Cache-Control: max-age=300\r\n", 300},
        {"cache-control: public, MAX-AGE=300, must-revalidate\r\n", 300},
        {"Cache-Control: max-age=300\r\nAge: 100\r\n", 200},
        {"Cache-Control: max-age=300\r\nAge: 1000\r\n", 600},
        {"Cache-Control: max-age=0\r\n", 600},
        {"Cache-Control: max-age=1\r\n", 10},
        {"Cache-Control: max-age=99999999\r\n", 86400},
        {"Cache-Control: max-age=-5\r\n", 600},
        {"Cache-Control: max-age=1e9\r\n", 600},
        {"Cache-Control: no-store\r\n", 600},
        {"Cache-Control: no-cache, max-age=300\r\n", 600},
        {"Expires: Thu, 01 Jan 2026 00:05:00 GMT\r\n", 300},
        {"Expires: 0\r\n", 600},
        {"Expires: Wed, 31 Dec 2025 00:00:00 GMT\r\n", 600},
        {"Cache-Control: max-age=300\r\nExpires: Thu, 01 Jan 2026 00:10:00 GMT\r\n", 300},
    };
    struct sz_wall now = {INT64_C(1767225600) * 1000000}; /* 2026-01-01 00:00:00 */
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        char head[256];
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%s\r\n", cases[i].head);
        struct sz_http_answer answer = {.status = 200, .head = sz_cstr(head)};
        struct sz_span fresh = sz_freshness(&answer, now, SZ_SEC(10), SZ_SEC(86400));
        cr_expect_eq(fresh.us / 1000000, cases[i].seconds, "%s: %lld", cases[i].head, (long long)fresh.us / 1000000);
    }
}

Test(provider_meta, failures_are_tried_again_soon_then_less_often)
{
    static const int64_t most[] = {1, 1, 2, 4, 8, 16, 30, 30, 30};
    for (unsigned n = 0; n < SZ_COUNT(most); n++) {
        for (uint64_t r = 0; r < 1000; r++) {
            struct sz_span wait = sz_provider_backoff(n, r * 7919000003u);
            cr_assert(wait.us <= most[n] * 1000000 && wait.us >= most[n] * 800000, "%u: %lld", n, (long long)wait.us);
        }
    }
    cr_expect_leq(sz_provider_backoff(UINT32_MAX, UINT64_MAX).us, 30 * 1000000);
}
