/*
 * Attacks against the running gateway, and what only looks like one.  The client's addresses come through a trusted
 * proxy, as they do in front of most gateways.  Each attack must be found within the number of requests that
 * docs/threat.md states; the counts are printed.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "subzero/crypto.h"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 2\n"
                           "log: {access: off}\n"
                           "trusted_proxies: [127.0.0.1/32]\n"
                           "threat: {mode: enforce, capacity: 4096}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML "routes:\n"
                           "  - {id: doc, match: {path: \"/doc/*\"}, auth: {issuers: [test]}, upstream: up}\n"
                           "  - {id: pub, match: {path: \"/pub/*\"}, public: true, upstream: up}\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *token;
static struct http1 conn;

static void setup(void)
{
    up = upstream_start(NULL);
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 3600, NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
    cr_assert(http1_open(&conn, gateway.port));
}

static void teardown(void)
{
    http1_close(&conn);
    stop_gateway(&gateway);
    upstream_stop(&up);
    free(token);
    scratch_remove();
}

/* One request from that client; its reason, "allowed" where there is none. */
static const char *ask(const char *from, const char *path, const char *bearer)
{
    static char reason[64];
    struct http1_response r = {0};
    cr_assert(http1_printf(&conn, "GET %s HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n%s%s%s\r\n", path, from,
                           bearer != NULL ? "Authorization: Bearer " : "", bearer != NULL ? bearer : "",
                           bearer != NULL ? "\r\n" : ""));
    cr_assert_eq(http1_read(&conn, "GET", SZ_SEC(10), &r), 0);
    if (!http1_field(&r, "x-subzero-reason", reason, sizeof(reason)))
        snprintf(reason, sizeof(reason), "allowed");
    if (r.closes) {
        http1_close(&conn);
        cr_assert(http1_open(&conn, gateway.port));
    }
    http1_response_fini(&r);
    return reason;
}

static bool is_stopped(const char *reason)
{
    return strcmp(reason, "threat_blocked") == 0 || strcmp(reason, "threat_challenge") == 0;
}

/* The good token of someone else, with a signature of its own. */
static const char *forged(const char *genuine, unsigned n)
{
    static char text[4096];
    char signature[87] = "";
    uint8_t bytes[64] = {0};
    snprintf((char *)bytes, sizeof(bytes), "forged %u", n);
    sz_b64url_encode(bytes, sizeof(bytes), signature);
    snprintf(text, sizeof(text), "%.*s.%s", (int)(strrchr(genuine, '.') - genuine), genuine, signature);
    return text;
}

static void report(const char *attack, unsigned found, unsigned most)
{
    fprintf(stderr, "    %-44s stopped after %3u (at most %u)\n", attack, found, most);
    cr_expect(found > 0 && found <= most, "%s: %u", attack, found);
}

static unsigned stuffing_from(const char *from, unsigned seed)
{
    for (unsigned n = 1; n <= 60; n++) {
        if (is_stopped(ask(from, "/doc/1", forged(token, seed * 100 + n))))
            return n;
    }
    return 0;
}

Test(threat, attacks_are_found, .init = setup, .fini = teardown, .timeout = 120)
{
    report("forged tokens from one address", stuffing_from("203.0.113.1", 1), 25);

    unsigned worst = 0, n = 0;
    for (unsigned i = 0; i < 500; i++) {
        char from[32];
        snprintf(from, sizeof(from), "198.%u.%u.%u", 18 + i / 256, i % 256, 1 + i % 7);
        unsigned found = stuffing_from(from, 1000 + i);
        cr_assert_gt(found, 0, "%s", from);
        worst = found > worst ? found : worst;
    }
    report("forged tokens from 500 addresses, each", worst, 25);

    char path[64];
    for (n = 1; n <= 60; n++) {
        snprintf(path, sizeof(path), "/admin-%u.php", n);
        if (is_stopped(ask("203.0.113.2", path, NULL)))
            break;
    }
    report("path scanning", n, 40);

    static const char *const algs[] = {"none", "None", "NONE", "HS256", "HS384", "HS512", "RS256", "PS256", "ES384"};
    for (n = 1; n <= 60; n++) {
        char header[64], text[512], b64[128] = "";
        snprintf(header, sizeof(header), "{\"alg\":\"%s\"}", algs[n % SZ_COUNT(algs)]);
        sz_b64url_encode(header, strlen(header), b64);
        snprintf(text, sizeof(text), "%s%s", b64, strchr(token, '.'));
        if (is_stopped(ask("203.0.113.3", "/doc/1", text)))
            break;
    }
    report("algorithm probing", n, 12);

    for (n = 1; n <= 50; n++) {
        char from[32];
        snprintf(from, sizeof(from), "100.%u.7.7", 64 + n);
        if (is_stopped(ask(from, "/doc/1", token)))
            break;
    }
    report("one stolen token from many networks", n, 25);

    cr_expect_str_eq(ask("192.0.2.77", "/pub/x", NULL), "allowed", "whoever did nothing");
    char *fresh = issuer_token(&issuer, "alice", 3600, "\"jti\":\"2\"");
    cr_expect_str_eq(ask("192.0.2.78", "/doc/1", fresh), "allowed", "alice logs in again");
    free(fresh);
}

enum { USERS = 120 };

/* An office of people behind one address: good tokens, some typing mistakes, paths that are not there. */
Test(threat, a_busy_office_stays_open, .init = setup, .fini = teardown, .timeout = 60)
{
    for (unsigned i = 0; i < USERS; i++) {
        char sub[32], *mine;
        snprintf(sub, sizeof(sub), "user-%u", i);
        mine = issuer_token(&issuer, sub, 3600, NULL);
        cr_assert_str_eq(ask("203.0.113.9", "/doc/1", mine), "allowed", "user %u", i);
        if (i % 4 == 0)
            cr_assert_str_eq(ask("203.0.113.9", "/doc/1", forged(mine, i)), "invalid_token", "user %u", i);
        if (i % 10 == 0)
            cr_assert_str_eq(ask("203.0.113.9", "/dcos/1", mine), "no_route", "user %u", i);
        free(mine);
    }
}

/* The same office on the day of a release that breaks every token, and calls paths that are gone. */
Test(threat, a_broken_release_blocks_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
    char *users[USERS], path[64];
    for (unsigned i = 0; i < USERS; i++) {
        char sub[32];
        snprintf(sub, sizeof(sub), "user-%u", i);
        users[i] = issuer_token(&issuer, sub, 3600, NULL);
        cr_assert_str_eq(ask("203.0.113.9", "/doc/1", users[i]), "allowed");
    }
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < USERS; i++) {
            cr_assert_str_eq(ask("203.0.113.9", "/doc/1", forged(users[i], i)), "invalid_token", "user %u, round %u", i,
                             round);
            snprintf(path, sizeof(path), "/v3/orders/%u", i * 5 + round);
            cr_assert_str_eq(ask("203.0.113.9", path, users[i]), "no_route", "user %u, round %u", i, round);
        }
    }
    for (unsigned i = 0; i < USERS; i++) {
        cr_expect_str_eq(ask("203.0.113.9", "/doc/1", users[i]), "allowed", "the release is taken back");
        free(users[i]);
    }
    /* One service with one token, which it tries again and again. */
    for (unsigned i = 0; i < 300; i++)
        cr_assert_str_eq(ask("203.0.113.10", "/doc/1", forged(token, 7)), "invalid_token", "try %u", i);
    cr_expect_str_eq(ask("203.0.113.10", "/doc/1", token), "allowed");
}

Test(threat, a_load_test_is_no_attack, .init = setup, .fini = teardown, .timeout = 60)
{
    for (unsigned i = 0; i < 3000; i++)
        cr_assert_str_eq(ask("203.0.113.11", "/doc/1", token), "allowed", "request %u", i);
}

/* Addresses cannot make the metrics or the memory grow.  Of the release binary: a sanitizer keeps what was freed. */
Test(threat, memory_and_series_stay, .init = setup, .fini = teardown, .timeout = 60)
{
    char from[32];
    long before = 0;
    unsigned lines = 0;
    if (release_binary() == NULL)
        cr_skip_test("no release binary beside this build");
    stop_gateway(&gateway);
    cr_assert(gateway_start_binary(&gateway, release_binary(), yaml, upstream_port(up)));
    http1_close(&conn);
    cr_assert(http1_open(&conn, gateway.port));
    for (unsigned i = 0; i < 20000; i++) {
        snprintf(from, sizeof(from), "100.%u.%u.%u", 64 + i / 65536, i / 256 % 256, i % 256);
        (void)ask(from, "/nothing", NULL);
        if (i == 10000)
            before = gateway_status_kb(&gateway, "VmRSS");
    }
    cr_expect_leq(gateway_status_kb(&gateway, "VmRSS"), before + 1024);
    char *metrics = gateway_admin(&gateway, "/metrics");
    for (char *at = metrics; (at = strstr(at, "subzero_threat_signals_total{")) != NULL; at++)
        lines++;
    cr_expect(lines > 0 && lines <= 60, "%u series", lines);
    free(metrics);
}
