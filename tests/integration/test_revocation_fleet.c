/*
 * Two instances and one Redis: how fast a revocation is everywhere, what is said on the wire, what somebody with full
 * access to Redis can do, and what a cut, a flush and restarts leave.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/provider.h"
#include "fake/redis.h"
#include "integration/revoke_kit.h"
#include "subzero/crypto.h"
#include "subzero/revocation.h"

static struct gateway a, b;
static struct redis_server server;
static struct issuer issuer;
static struct upstream *up;

#define YAML                                                       \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n"                  \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                    \
    "workers: 1\n" ISSUER_YAML "cache: {l1: {ttl: 60s}}\n"         \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" \
    "routes:\n"                                                    \
    "  - {id: all, match: {path: '/*'}, auth: {issuers: [test]}, upstream: up}\n"

static char yaml[4096];

static void use(const char *redis, const char *more)
{
    snprintf(yaml, sizeof(yaml), YAML "redis: {%s, key_file: \"{dir}/fleet.key\"}\n%s", redis, more);
}

static void start_both(const char *more)
{
    char place[256];
    snprintf(place, sizeof(place), "url: \"%s\"", server.url);
    use(place, more);
    cr_assert(gateway_start_as(&a, "a", yaml, upstream_port(up)));
    cr_assert(gateway_start_as(&b, "b", yaml, upstream_port(up)));
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    sz_crypto_init();
    scratch_write("fleet.key", SZ_S("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"));
    issuer_init(&issuer);
    up = upstream_start(NULL);
    server = (struct redis_server){0};
    cr_assert(redis_start(&server));
}

static void teardown(void)
{
    redis_continue(&server);
    stop_gateway(&a);
    stop_gateway(&b);
    redis_kill(&server);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    scratch_remove();
}

TestSuite(revocation_fleet, .init = setup, .fini = teardown, .timeout = 170);

#define WELL "\"revocations\":{\"status\":\"ok\""
#define CUT  "\"revocations\":{\"status\":\"cut_off\""

static void wait_well(void)
{
    cr_assert(revoke_health(&a, WELL) && revoke_health(&b, WELL));
}

static char *jti_token(const char *jti)
{
    char claims[64];
    snprintf(claims, sizeof(claims), "\"jti\":\"%s\"", jti);
    return issuer_token(&issuer, "alice", 600, claims);
}

/* ---- speed ------------------------------------------------------------------------------------------------------- */

static int compare(const void *x, const void *y)
{
    int64_t one = *(const int64_t *)x, two = *(const int64_t *)y;
    return one < two ? -1 : one > two;
}

Test(revocation_fleet, revoked_at_one_refused_at_the_other_within_100_ms)
{
    enum { N = 1000 };
    static int64_t took[N];
    char id[32];
    start_both("");
    wait_well();
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "t%d", i);
        char *token = jti_token(id);
        cr_assert_eq(revoke_get(&b, token), 200);
        struct sz_mono begun = sz_mono_read();
        cr_assert_eq(revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"%s\"}", id), 201);
        cr_assert_geq(revoke_becomes(&b, token, 401, 5000), 0, "%d", i);
        took[i] = sz_between(begun, sz_mono_read()).us;
        free(token);
    }
    qsort(took, N, sizeof(took[0]), compare);
    fprintf(stderr,
            "revoked at one, refused at the other, %d times, with the call itself: p50 %.1f ms, p90 %.1f ms, "
            "p99 %.1f ms, longest %.1f ms\n",
            N, (double)took[N / 2] / 1e3, (double)took[N * 9 / 10] / 1e3, (double)took[N * 99 / 100] / 1e3,
            (double)took[N - 1] / 1e3);
    cr_expect_lt(took[N * 9 / 10], 100000, "9 of 10 within 100 ms, on a machine that does other things too");
    cr_expect_eq(gateway_metric(&b, "subzero_revocation_propagation_seconds_count"), N);
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

Test(revocation_fleet, monitor_shows_nothing_that_can_be_guessed)
{
    static const char *const never[] = {"alice-the-great", "sess-1", "jti-1", "issuer.test", "client-9"};
    struct proc monitor = {0};
    char port[16], hex[65];
    uint8_t digest[32];
    start_both("");
    wait_well();
    snprintf(port, sizeof(port), "%u", server.port);
    char *cli = strdup(program_find("redis-cli"));
    const char *argv[] = {cli, "-p", port, "monitor", NULL};
    cr_assert(proc_start(&monitor, "monitor", 0, argv));
    poll(NULL, 0, 300);
    char *token = issuer_token(&issuer, "alice-the-great", 300, "\"jti\":\"jti-1\",\"sid\":\"sess-1\"");
    cr_expect_eq(revoke_get(&b, token), 200);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"alice-the-great\"}"), 201);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"sid\",\"value\":\"sess-1\"}"), 201);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"jti-1\"}"), 201);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"client\",\"value\":\"client-9\"}"), 201);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"token\",\"value\":\"%s\"}", token), 201);
    cr_expect_geq(revoke_becomes(&b, token, 401, 2000), 0);
    poll(NULL, 0, 300);
    proc_stop(&monitor);
    size_t n;
    char *said = file_read(monitor.log, &n);
    cr_assert_not_null(memmem(said, n, "revocations", 11), "it was listened to");
    for (size_t i = 0; i < SZ_COUNT(never); i++)
        cr_expect_null(memmem(said, n, never[i], strlen(never[i])), "%s", never[i]);
    cr_expect_null(memmem(said, n, token, 40));
    /* Nor what we know it by: that can be computed by everybody. */
    sz_revocation_digest(SZ_REVOKE_SUBJECT, SZ_S(ISSUER_NAME), SZ_S("alice-the-great"), digest);
    sz_hex_encode(digest, 32, hex);
    cr_expect_null(memmem(said, n, hex, 16));
    cr_expect_null(memmem(said, n, digest, 4));
    free(said);
    free(token);
    free(cli);
}

/* ---- somebody with full access to Redis -------------------------------------------------------------------------- */

static void key_of(char key[64])
{
    char *keys = redis_say(&server, "KEYS *:revocations");
    const char *at = strstr(keys, "subzero:{");
    cr_assert_not_null(at);
    snprintf(key, 64, "%.*s", (int)strcspn(at, "\r"), at);
    free(keys);
}

static bool say(const char *fmt, const char *key)
{
    char text[256];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), fmt, key);
#pragma GCC diagnostic pop
    char *answer = redis_say(&server, "%s", text);
    bool good = answer != NULL && answer[0] != '-';
    free(answer);
    return good;
}

/* A record as Redis has it. */
static struct sz_slice record_of(const char *key, const char *number, char bytes[256])
{
    size_t n;
    const struct sz_slice args[] = {SZ_S("HGET"), sz_cstr(key), sz_cstr(number)};
    char *answer = redis_ask(&server, args, 3, &n), *line = strstr(answer, "\r\n");
    cr_assert(n > 120 && line != NULL && (size_t)(line + 2 - answer) + 120 <= n);
    memcpy(bytes, line + 2, 120);
    free(answer);
    return sz_slice(bytes, 120);
}

static void announce(const char *key, const char *number, struct sz_slice record)
{
    char channel[80];
    struct sz_buf message = {0};
    snprintf(channel, sizeof(channel), "%.*srevoked", (int)(strlen(key) - strlen("revocations")), key);
    sz_buf_printf(&message, "%s %.*s", number, SZ_FMT(record));
    const struct sz_slice args[] = {SZ_S("PUBLISH"), sz_cstr(channel), sz_buf_slice(&message)};
    size_t n;
    free(redis_ask(&server, args, 3, &n));
    sz_buf_fini(&message);
}

Test(revocation_fleet, forgeries_are_counted_and_nobody_is_locked_out)
{
    char key[64], bytes[256];
    start_both("");
    wait_well();
    char *alice = issuer_token(&issuer, "alice", 300, NULL), *bob = issuer_token(&issuer, "bob", 300, NULL);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"alice\"}"), 201);
    cr_expect_geq(revoke_becomes(&b, alice, 401, 2000), 0);
    key_of(key);
    struct sz_slice record = record_of(key, "1", bytes);
    /* Bits turned, lengths, other numbers, other words, rubbish. */
    for (size_t i = 0; i < 120; i += 7) {
        bytes[i] ^= 1;
        announce(key, "2", record);
        bytes[i] ^= 1;
    }
    announce(key, "2", sz_sub(record, 0, 119));
    announce(key, "", record);
    announce(key, "-1", record);
    announce(key, "x", SZ_S("y"));
    announce(key, "9007199254740992", record);
    announce(key, "9007199254740993", record);
    announce(key, "2", record); /* genuine, said again */
    cr_expect_geq(gateway_metric(&b, "subzero_revocation_events_total{event=\"forged\"}"), 18);
    cr_expect_eq(revoke_get(&b, bob), 200);
    /* Numbers and names of the hash itself, and something else at our key. */
    static const char *const deeds[] = {"HSET %s s 99999999999",
                                        "HSET %s s -5",
                                        "HSET %s s rubbish",
                                        "HSET %s e x",
                                        "HDEL %s e",
                                        "HDEL %s s",
                                        "HSET %s 1 rubbish",
                                        "HDEL %s 1",
                                        "DEL %s",
                                        "FLUSHALL",
                                        "SET %s a-string"};
    for (size_t i = 0; i < SZ_COUNT(deeds); i++) {
        cr_assert(say(deeds[i], key), "%s", deeds[i]);
        poll(NULL, 0, 400);
        char sub[16];
        snprintf(sub, sizeof(sub), "x%zu", i);
        char *token = issuer_token(&issuer, sub, 300, NULL);
        cr_expect_eq(revoke_get(&b, token), 200);
        cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"%s\"}", sub), 201, "after %s", deeds[i]);
        cr_expect_geq(revoke_becomes(&b, token, 401, 3000), 0, "after %s", deeds[i]);
        cr_expect_eq(revoke_get(&a, alice), 401);
        cr_expect_eq(revoke_get(&b, alice), 401);
        cr_expect_eq(revoke_get(&b, bob), 200);
        free(token);
    }
    wait_well();
    /* And all of it is in Redis again: a new instance hears of it there alone. */
    cr_expect(gateway_stop(&b));
    cr_assert(gateway_start_as(&b, "b", yaml, upstream_port(up)));
    cr_expect_geq(revoke_becomes(&b, alice, 401, 3000), 0);
    cr_expect_eq(revoke_get(&b, bob), 200);
    free(alice);
    free(bob);
}

/* The entry of a later moment is replaced by that of an earlier one, which is as genuine. */
Test(revocation_fleet, an_older_record_put_back_takes_nothing_back)
{
    char key[64], old[256];
    start_both("");
    wait_well();
    long now = (long)sz_wall_seconds(sz_wall_read());
    char *token = issuer_token(&issuer, "alice", 300, NULL);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"alice\",\"before\":%ld}", now - 1000), 201);
    cr_expect_eq(revoke_get(&b, token), 200, "issued later");
    key_of(key);
    struct sz_slice record = record_of(key, "1", old);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"alice\",\"before\":%ld}", now + 5), 201);
    cr_expect_geq(revoke_becomes(&b, token, 401, 2000), 0);
    const struct sz_slice args[] = {SZ_S("HSET"), sz_cstr(key), SZ_S("2"), record};
    size_t n;
    free(redis_ask(&server, args, 4, &n));
    announce(key, "3", record);
    poll(NULL, 0, 600);
    cr_expect_eq(revoke_get(&a, token), 401);
    cr_expect_eq(revoke_get(&b, token), 401);
    /* The wider one was written again for those who come. */
    cr_expect(gateway_stop(&b));
    cr_assert(gateway_start_as(&b, "b", yaml, upstream_port(up)));
    cr_expect_geq(revoke_becomes(&b, token, 401, 3000), 0);
    free(token);
}

/* ---- cuts -------------------------------------------------------------------------------------------------------- */

Test(revocation_fleet, a_hundred_revoked_during_a_cut_are_refused_after_it)
{
    enum { N = 100 };
    char *tokens[N], id[32];
    start_both("");
    wait_well();
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "c%d", i);
        tokens[i] = jti_token(id);
        cr_assert_eq(revoke_get(&b, tokens[i]), 200);
    }
    redis_pause(&server);
    cr_assert(revoke_health(&a, CUT) && revoke_health(&b, CUT));
    for (int i = 0; i < N; i++) {
        cr_expect_eq(revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"c%d\"}", i), 503, "not safe yet");
        cr_expect_eq(revoke_get(&a, tokens[i]), 401, "but honoured here");
    }
    cr_expect_eq(revoke_get(&b, tokens[0]), 200, "open: goes on by what it knows");
    redis_continue(&server);
    wait_well();
    struct sz_mono begun = sz_mono_read();
    for (int i = 0; i < N; i++)
        cr_expect_geq(revoke_becomes(&b, tokens[i], 401, 3000), 0, "%d", i);
    fprintf(stderr, "%d revoked during a cut: all refused %.1f ms after both were well again\n", N,
            (double)sz_between(begun, sz_mono_read()).us / 1e3);
    for (int i = 0; i < N; i++)
        free(tokens[i]);
}

/* What waits for Redis when the process ends is answered by what it has come to, and leaves nothing behind. */
static void *post_one(void *arg)
{
    *(int *)arg = revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"late\"}");
    return NULL;
}

Test(revocation_fleet, the_end_comes_while_one_waits_for_redis)
{
    int status = -1;
    pthread_t thread;
    start_both("audit: {path: \"{dir}/audit-{admin}\", required: true}\n");
    wait_well();
    redis_pause(&server);
    cr_assert_eq(pthread_create(&thread, NULL, post_one, &status), 0);
    cr_expect(gateway_logged(&a, "a revocation by jti of issuer test was asked for"));
    cr_expect(gateway_stop(&a), "ended without a leak");
    pthread_join(thread, NULL);
    cr_expect(status == 503 || status == 0, "%d: not told that it is safe", status);
}

Test(revocation_fleet, closed_refuses_while_nothing_can_be_heard)
{
    struct http1_response r = {0};
    start_both("revocation: {on_store_failure: closed}\n");
    wait_well();
    char *token = issuer_token(&issuer, "alice", 300, NULL);
    cr_expect_eq(revoke_get(&a, token), 200);
    redis_kill(&server);
    cr_expect_geq(revoke_becomes(&a, token, 503, 3000), 0);
    cr_expect_eq(http1_ask(a.port, "GET", "/x", token, NULL, NULL, &r), 503);
    expect_answer(&r, 503, "revocation_unavailable", "closed");
    cr_assert(redis_start(&server));
    cr_expect_geq(revoke_becomes(&a, token, 200, 10000), 0);
    http1_response_fini(&r);
    free(token);
}

Test(revocation_fleet, a_flush_and_a_restart_of_everybody)
{
    char *token = issuer_token(&issuer, "alice", 300, NULL), *bob = issuer_token(&issuer, "bob", 300, NULL);
    start_both("state_dir: \"{dir}/state-{admin}\"\n");
    wait_well();
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"subject\",\"value\":\"alice\"}"), 201);
    cr_expect_geq(revoke_becomes(&b, token, 401, 2000), 0);
    gateway_kill(&a);
    gateway_kill(&b);
    free(redis_say(&server, "FLUSHALL"));
    cr_assert(gateway_again(&a));
    cr_assert(gateway_again(&b));
    cr_expect_eq(revoke_get(&a, token), 401);
    cr_expect_eq(revoke_get(&b, token), 401);
    cr_expect_eq(revoke_get(&b, bob), 200);
    /* One that lost its disk hears of it from Redis, which the other has filled again. */
    wait_well();
    gateway_kill(&b);
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s/state-%u'", scratch_path(), b.admin);
    cr_assert_eq(system(command), 0);
    cr_assert(gateway_again(&b));
    cr_expect_geq(revoke_becomes(&b, token, 401, 3000), 0);
    free(token);
    free(bob);
}

/* Kept for a minute while revocations are heard; what its provider revoked is refused soon when they are not. */
Test(revocation_fleet, cut_off_cached_tokens_live_for_ttl_degraded)
{
    static const char format[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                                 "admin: {address: \"127.0.0.1:{admin}\"}\n"
                                 "cache: {l1: {ttl_opaque: 60s, ttl_degraded: 500ms}}\n"
                                 "redis: {url: \"%s\", key_file: \"{dir}/fleet.key\"}\n"
                                 "issuers:\n"
                                 "  idp:\n"
                                 "    issuer: %s\n"
                                 "    audiences: [api]\n"
                                 "    introspection: {endpoint: %s/introspect, client_id: gateway,\n"
                                 "                    client_secret_file: \"{dir}/secret\"}\n"
                                 "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                                 "routes:\n"
                                 "  - {id: all, match: {path: '/*'}, auth: {issuers: [idp]}, upstream: up}\n";
    struct provider *provider = provider_start(NULL);
    struct http1_response r = {0};
    scratch_write("secret", SZ_S("s3cret+/:%"));
    snprintf(yaml, sizeof(yaml), format, server.url, provider_url(provider), provider_url(provider));
    cr_assert(gateway_start_as(&a, "a", yaml, upstream_port(up)));
    cr_assert(revoke_health(&a, WELL));
    char *token = provider_opaque(provider, "alice", 600, NULL);
    cr_assert_eq(revoke_get(&a, token), 200);
    provider_revoke(provider, token);
    poll(NULL, 0, 700);
    cr_expect_eq(revoke_get(&a, token), 200, "kept, as configured");
    redis_pause(&server);
    struct sz_mono begun = sz_mono_read();
    while (http1_ask(a.port, "GET", "/x", token, NULL, NULL, &r) == 200 &&
           sz_between(begun, sz_mono_read()).us < 8000000)
        poll(NULL, 0, 20);
    expect_answer(&r, 401, "invalid_token", "asked about again");
    cr_expect_lt(sz_between(begun, sz_mono_read()).us, 4000000);
    http1_response_fini(&r);
    free(token);
    provider_stop(&provider);
}

Test(revocation_fleet, in_a_cluster_too, .timeout = 170)
{
    static struct redis_cluster cluster;
    char seeds[600];
    cr_assert(redis_cluster_start(&cluster));
    snprintf(seeds, sizeof(seeds), "cluster: [\"%s\", \"%s\", \"%s\"]", cluster.nodes[0].url, cluster.nodes[1].url,
             cluster.nodes[2].url);
    use(seeds, "");
    cr_assert(gateway_start_as(&a, "a", yaml, upstream_port(up)));
    cr_assert(gateway_start_as(&b, "b", yaml, upstream_port(up)));
    wait_well();
    char *one = jti_token("k1"), *two = jti_token("k2");
    cr_expect_eq(revoke_get(&b, one), 200);
    cr_expect_eq(revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"k1\"}"), 201);
    cr_expect_geq(revoke_becomes(&b, one, 401, 2000), 0);
    for (int i = 0; i < 2; i++) { /* two of three masters go, one after the other; replicas take over */
        redis_kill(&cluster.nodes[i]);
        cr_expect(redis_cluster_ok(&cluster, 20000));
        cr_assert(redis_start(&cluster.nodes[i]));
    }
    for (int i = 0; i < 100 && !(revoke_health(&a, WELL) && revoke_health(&b, WELL)); i++)
        ;
    cr_expect_eq(revoke_get(&b, one), 401);
    int status = 0;
    for (int i = 0; i < 50 && status != 200 && status != 201; i++) {
        status = revoke_by(&a, "{\"kind\":\"jti\",\"value\":\"k2\"}");
        poll(NULL, 0, status >= 500 ? 300 : 0);
    }
    cr_expect(status == 200 || status == 201, "%d", status);
    cr_expect_geq(revoke_becomes(&b, two, 401, 5000), 0);
    free(one);
    free(two);
    redis_cluster_stop(&cluster);
}
