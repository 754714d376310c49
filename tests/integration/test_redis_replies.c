/*
 * Something else answers in the place of Redis, under load: replies cut short, half a gigabyte, errors of a server that
 * is loading, belongs to a cluster or wants a password, nothing at all for half a minute, nonsense.  Whatever it says,
 * requests are answered in their budget and by their own rights alone, memory does not grow, and when the server is
 * back all of it is used again without a restart.
 *
 * Each request asks Redis for its identity (L1 forgets at once) and for its limit; one of the tokens has been revoked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/load.h"
#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"

enum {
    CLIENTS = 3,
    BUDGET_MS = 3000, /* two questions of 100 ms each; the rest is for a busy machine */
    GROWTH_KB = 24 * 1024
};

static struct gateway gw;
static struct redis_server server;
static struct fake_redis fake;
static struct upstream *up;
static struct issuer issuer;
static char *alice, *mallory, good_request[2048], bad_request[2048];
static struct load good, bad;

#define YAML                                                                                                       \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                                                                  \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                                    \
    "workers: 1\n"                                                                                                 \
    "log: {access: off}\n"                                                                                         \
    "state_dir: \"{dir}/state-{admin}\"\n" ISSUER_YAML                                                             \
    "cache: {l1: {ttl: 10ms}, negative: {ttl: 10ms}, l2: {jwt: true}}\n"                                           \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"                                                 \
    "rate_limits:\n"                                                                                               \
    "  wide: {algorithm: token_bucket, capacity: 1000000, refill: 1000000/1s, on_store_failure: open, emergency: " \
    "1000000/1s}\n"                                                                                                \
    "routes:\n"                                                                                                    \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up, rate_limit: wide}\n"

static char *token_of(const char *jti)
{
    char claims[64];
    snprintf(claims, sizeof(claims), "\"jti\":\"%s\"", jti);
    return issuer_token(&issuer, "alice", 3600, claims);
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    issuer_init(&issuer);
    up = upstream_start(NULL);
    upstream_play(up, &(struct upstream_script){.forgets = true});
    server = (struct redis_server){0};
    cr_assert(redis_start(&server));
    alice = token_of("alice");
    mallory = token_of("mallory");
    snprintf(good_request, sizeof(good_request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
             alice);
    snprintf(bad_request, sizeof(bad_request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n",
             mallory);
}

static void teardown(void)
{
    stop_gateway(&gw);
    redis_kill(&server);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(alice);
    free(mallory);
    scratch_remove();
}

TestSuite(redis_replies, .init = setup, .fini = teardown, .timeout = 240);

static void start(const char *binary)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             YAML "redis: {url: \"%s\", key_file: \"{dir}/fleet.key\", timeout: 100ms, breaker: {open: 300ms}}\n",
             server.url);
    cr_assert(gateway_start_binary(&gw, binary, yaml, upstream_port(up)));
    cr_assert(revoke_health(&gw, "\"revocations\":{\"status\":\"ok\""));
    cr_assert_eq(revoke_by(&gw, "{\"kind\":\"jti\",\"value\":\"mallory\"}"), 201);
    cr_assert_geq(revoke_becomes(&gw, mallory, 401, 5000), 0);
}

/* ---- load -------------------------------------------------------------------------------------------------------- */

static void load_both(void)
{
    good = (struct load){.port = gw.port,
                         .request = good_request,
                         .clients = CLIENTS,
                         .pause_us = 1000,
                         .latencies_us = malloc(400000 * sizeof(uint32_t)),
                         .latencies_max = 400000};
    bad = (struct load){.port = gw.port, .request = bad_request, .clients = CLIENTS, .pause_us = 1000};
    load_start(&good);
    load_start(&bad);
}

static void end_both(const char *what)
{
    load_end(&good);
    load_end(&bad);
    uint32_t longest = load_percentile(&good, 100) / 1000;
    fprintf(stderr, "%s: %lu served, %lu refused; longest %u ms\n", what, good.ok, bad.refused, longest);
    cr_expect_gt(good.ok, 20, "%s: there was load", what);
    cr_expect(good.refused == 0 && good.lost == 0 && good.unconnected == 0, "%s: %lu refused, %lu lost", what,
              good.refused, good.lost);
    cr_expect(bad.ok == 0 && bad.lost == 0 && bad.status_503 == 0, "%s: %lu revoked ones served, %lu lost", what,
              bad.ok, bad.lost);
    cr_expect_lt(longest, BUDGET_MS, "%s: %u ms", what, longest);
    free(good.latencies_us);
}

static double counted(const char *sample)
{
    double n = gateway_metric(&gw, sample);
    return n > 0 ? n : 0;
}

/* Within 20 s identities come from Redis, limits are counted there, and revocations are heard. */
static void expect_all_is_used(const char *when)
{
    static const char *const samples[] = {
        "subzero_cache_hits_total{layer=\"l2\",kind=\"token\"}",
        "subzero_ratelimit_decisions_total{policy=\"wide\",reason=\"allowed\",decision=\"allow\"}"};
    for (size_t i = 0; i < SZ_COUNT(samples); i++) {
        double from = counted(samples[i]);
        bool more = false;
        for (int tries = 0; tries < 200 && !more; tries++) {
            usleep(100000);
            more = counted(samples[i]) > from + 5;
        }
        cr_expect(more, "%s: %s stands still", when, samples[i]);
    }
    cr_expect(revoke_health(&gw, "\"revocations\":{\"status\":\"ok\"") ||
                  revoke_health(&gw, "\"revocations\":{\"status\":\"ok\""),
              "%s: revocations are not heard", when);
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *what;
    enum fake_redis_mode mode;
    const char *reply;
    bool logins; /* the login is answered as Redis does */
} rows[] = {
    {"cut short", FAKE_REDIS_CUT, "$100\r\nhalf of it", true},
    {"an array cut short", FAKE_REDIS_CUT, "*3\r\n$1\r\na\r\n", true},
    {"half a gigabyte", FAKE_REDIS_FLOOD, "$536870912\r\n", true},
    {"a billion items", FAKE_REDIS_FLOOD, "*1073741824\r\n", true},
    {"loading", FAKE_REDIS_REPLY, "-LOADING Redis is loading the dataset in memory\r\n", true},
    {"loading, to the login too", FAKE_REDIS_REPLY, "-LOADING Redis is loading the dataset in memory\r\n", false},
    {"moved", FAKE_REDIS_REPLY, "-MOVED 3999 127.0.0.1:1\r\n", true},
    {"asking for a password", FAKE_REDIS_REPLY, "-NOAUTH Authentication required.\r\n", true},
    {"not ours any more", FAKE_REDIS_REPLY, "-WRONGPASS invalid username-password pair or user is disabled.\r\n",
     false},
    {"full", FAKE_REDIS_REPLY, "-OOM command not allowed when used memory > 'maxmemory'.\r\n", true},
    {"a number for all", FAKE_REDIS_REPLY, ":1\r\n", true},
    {"somebody's fact", FAKE_REDIS_REPLY, "$5\r\nalice\r\n", true},
    {"yes to all", FAKE_REDIS_REPLY, "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n", true},
    {"no Redis", FAKE_REDIS_REPLY, "HTTP/1.1 400 Bad Request\r\n\r\n", false},
    {"silent", FAKE_REDIS_SILENT, "", true},
};

static void say_instead(size_t i, unsigned ms)
{
    redis_kill(&server);
    fake_redis_start_at(&fake, server.port);
    fake_redis_set(&fake, rows[i].mode, sz_cstr(rows[i].reply), rows[i].logins);
    char *fresh = token_of("fresh");
    cr_expect_eq(http1_ask(gw.port, "GET", "/x", fresh, NULL, NULL, NULL), 200, "%s", rows[i].what);
    cr_expect_eq(http1_ask(gw.port, "GET", "/x", NULL, NULL, NULL, NULL), 401, "%s", rows[i].what);
    for (int tries = 0; tries < 200 && atomic_load(&fake.accepted) == 0; tries++)
        usleep(50000); /* whoever was refused before comes back within two seconds */
    usleep(ms * 1000);
    cr_expect_gt(atomic_load(&fake.accepted), 0, "%s: it was met", rows[i].what);
    fake_redis_stop(&fake);
    cr_assert(redis_start(&server));
    free(fresh);
}

Test(redis_replies, whatever_comes_in_their_place)
{
    start(SZ_BINARY);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        load_both();
        say_instead(i, 1200);
        expect_all_is_used(rows[i].what);
        end_both(rows[i].what);
    }
    char *log = file_read(gw.proc.log, NULL);
    cr_expect_null(strstr(log, "alice"));
    free(log);
}

/* Without a sanitizer, which keeps what was freed: there memory means nothing. */
Test(redis_replies, half_a_gigabyte_does_not_grow_it)
{
    const char *binary = release_binary();
    if (binary == NULL)
        cr_skip_test("no release build here");
    start(binary);
    load_both();
    say_instead(2, 300); /* the buffers of its usual life */
    expect_all_is_used(rows[2].what);
    long before = gateway_status_kb(&gw, "VmRSS");
    for (int i = 0; i < 4; i++) {
        say_instead(2 + (size_t)i % 2, 1500);
        expect_all_is_used(rows[2].what);
    }
    long grown = gateway_status_kb(&gw, "VmRSS") - before;
    cr_expect_lt(grown, GROWTH_KB, "%ld kB more", grown);
    end_both("half a gigabyte, again and again");
}

/* Every command takes half a minute; nobody waits for it. */
Test(redis_replies, slow_by_thirty_seconds)
{
    start(SZ_BINARY);
    load_both();
    expect_all_is_used("before");
    struct sz_mono begun = sz_mono_read();
    free(redis_say(&server, "CLIENT PAUSE 30000 ALL"));
    cr_expect(revoke_health(&gw, "\"revocations\":{\"status\":\"cut_off\""));
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"jti\",\"value\":\"meanwhile\"}"), 503, "not safe yet");
    char *token = token_of("meanwhile");
    cr_expect_eq(revoke_get(&gw, token), 401, "but honoured");
    while (sz_between(begun, sz_mono_read()).us < 30500000)
        usleep(100000);
    expect_all_is_used("after");
    cr_expect_eq(revoke_by(&gw, "{\"kind\":\"jti\",\"value\":\"meanwhile\"}"), 200, "it stands, and is safe by now");
    end_both("slow by 30 s");
    free(token);
}
