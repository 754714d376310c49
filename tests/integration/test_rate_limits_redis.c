/* Rate limits that several gateways share through Redis, and what each policy does when Redis is gone. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/client.h"
#include "fake/redis.h"
#include "harness.h"

#define INSTANCES 3

static struct gateway g[INSTANCES];
static struct redis_server server = {.name = "limits"};
static struct upstream *upstream;

static const char yaml[] =
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 2\n"
    "log: {access: off}\n"
    "redis: {url: \"%s\", key_file: \"%s\", timeout: %s, breaker: {failures: 5, open: 30s}}\n"
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n"
    "routes:\n"
    "  - {id: ten, match: {path: /ten}, public: true, upstream: up, rate_limit: ten}\n"
    "  - {id: window, match: {path: /window}, public: true, upstream: up, rate_limit: window}\n"
    "  - {id: leased, match: {path: /leased}, public: true, upstream: up, rate_limit: leased}\n"
    "  - {id: open, match: {path: /open}, public: true, upstream: up, rate_limit: open}\n"
    "  - {id: mixed, match: {path: /mixed}, public: true, upstream: up, rate_limit: [open, ten]}\n"
    "  - {id: trial, match: {path: /trial}, public: true, upstream: up, rate_limit: [trial, open]}\n"
    "rate_limits:\n"
    "  trial: {algorithm: token_bucket, capacity: 9, refill: 0/1s, key: address, on_store_failure: closed, "
    "dry_run: true}\n"
    "  ten: {algorithm: token_bucket, capacity: 10, refill: 0/1s, key: address, on_store_failure: closed}\n"
    "  window: {algorithm: sliding_window, limit: 20, window: 1h, key: address, on_store_failure: closed}\n"
    "  leased: {algorithm: token_bucket, capacity: 60, refill: 0/1s, key: address, lease: 5, on_store_failure: "
    "closed}\n"
    "  open: {algorithm: token_bucket, capacity: 100, refill: 1/1s, key: address, on_store_failure: open}\n";

/* Where nothing hangs a busy machine must not look like it. */
static void start_with(size_t instances, const char *timeout)
{
    char *text = NULL;
    const char *key = scratch_write("fleet", SZ_S("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"));
    cr_assert(redis_start(&server));
    cr_assert_gt(asprintf(&text, yaml, server.url, key, timeout), 0);
    upstream = upstream_start(NULL);
    upstream_play(upstream, &(struct upstream_script){.forgets = true});
    for (size_t i = 0; i < instances; i++)
        cr_assert(gateway_start(&g[i], text, upstream_port(upstream)));
    free(text);
}

static void start(size_t instances)
{
    start_with(instances, "5s");
}

static void teardown(void)
{
    for (size_t i = 0; i < INSTANCES; i++) {
        if (g[i].proc.pid > 0)
            stop_gateway(&g[i]);
    }
    upstream_stop(&upstream);
    redis_stop(&server);
    scratch_remove();
}

TestSuite(rate_limits_redis, .fini = teardown, .timeout = 120);

struct seen {
    int status;
    char reason[64];
    struct sz_span took;
};

static struct seen ask(size_t instance, const char *from, const char *path)
{
    char head[128], buf[16384], *at;
    struct seen seen = {0};
    struct sz_mono before = sz_mono_read();
    int fd = client_open_from(from, g[instance].port);
    snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    client_send(fd, sz_cstr(head));
    seen.status = client_response(fd, buf, sizeof(buf), 10000);
    seen.took = sz_between(before, sz_mono_read());
    close(fd);
    at = strcasestr(buf, "x-subzero-reason: ");
    if (at != NULL)
        snprintf(seen.reason, sizeof(seen.reason), "%.*s", (int)strcspn(at + 18, "\r"), at + 18);
    return seen;
}

static void expect(const char *path, int status, const char *reason)
{
    struct seen seen = ask(0, "127.0.0.5", path);
    cr_expect(seen.status == status && strcmp(seen.reason, reason) == 0, "%s: wanted %d %s, got %d %s", path, status,
              reason, seen.status, seen.reason);
    cr_expect_lt(seen.took.us, 1000000);
}

/* ---- shared
 * ---------------------------------------------------------------------------------------------------------- */

static const char *racing;
static unsigned each;
static atomic_uint admitted, refused, failed, open_circuit, others;

static void *racer(void *arg)
{
    for (unsigned i = 0; i < each; i++) {
        struct seen seen = ask((size_t)(uintptr_t)arg % INSTANCES, "127.0.0.5", racing);
        atomic_fetch_add(seen.status == 200                         ? &admitted
                         : strcmp(seen.reason, "rate_limited") == 0 ? &refused
                         : strcmp(seen.reason, "fail_closed") == 0  ? &failed
                         : strcmp(seen.reason, "circuit_open") == 0 ? &open_circuit
                                                                    : &others,
                         1);
    }
    return NULL;
}

static void race(const char *path, unsigned threads_n, unsigned requests, size_t step)
{
    pthread_t threads[64];
    racing = path;
    each = requests;
    admitted = refused = failed = open_circuit = others = 0;
    for (size_t i = 0; i < threads_n; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, racer, (void *)(uintptr_t)(i * step)), 0);
    for (size_t i = 0; i < threads_n; i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&others), 0);
}

Test(rate_limits_redis, three_instances_admit_together_what_one_may)
{
    start(INSTANCES);
    race("/ten", 48, 2, 1);
    cr_expect_eq(atomic_load(&admitted), 10);
    cr_expect_eq(atomic_load(&refused), 86);
    race("/window", 48, 2, 1);
    cr_expect_leq(atomic_load(&admitted), 20);
    cr_expect_geq(atomic_load(&admitted), 19); /* a window that ended meanwhile left less room */
    race("/leased", 12, 30, 1);
    cr_expect_eq(atomic_load(&admitted), 60);
    double counted = 0;
    for (size_t i = 0; i < INSTANCES; i++) {
        double n = gateway_metric(
            &g[i], "subzero_ratelimit_decisions_total{policy=\"ten\",reason=\"allowed\",decision=\"allow\"}");
        counted += n > 0 ? n : 0; /* not there: it admitted none */
    }
    cr_expect_eq(counted, 10);
}

Test(rate_limits_redis, buckets_outlive_an_instance)
{
    start(1);
    for (int i = 0; i < 10; i++)
        expect("/ten", 200, "");
    stop_gateway(&g[0]);
    char *text = NULL;
    cr_assert_gt(asprintf(&text, yaml, server.url,
                          scratch_write("fleet", SZ_S("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")), "5s"),
                 0);
    cr_assert(gateway_start(&g[0], text, upstream_port(upstream)));
    free(text);
    expect("/ten", 429, "rate_limited");
}

/* ---- gone
 * ------------------------------------------------------------------------------------------------------------ */

Test(rate_limits_redis, dead_and_closed_is_five_failures_and_then_an_open_circuit)
{
    start(1);
    expect("/ten", 200, "");
    redis_kill(&server);
    for (int i = 0; i < 5; i++)
        expect("/ten", 503, "fail_closed");
    for (int i = 0; i < 20; i++)
        expect("/ten", 503, "circuit_open");
    cr_expect_eq(
        gateway_metric(&g[0],
                       "subzero_ratelimit_decisions_total{policy=\"ten\",reason=\"fail_closed\",decision=\"deny\"}"),
        5);
    cr_expect_eq(
        gateway_metric(&g[0],
                       "subzero_ratelimit_decisions_total{policy=\"ten\",reason=\"circuit_open\",decision=\"deny\"}"),
        20);
    cr_expect_eq(gateway_metric(&g[0], "subzero_breaker_state{dependency=\"redis:limits\"}"), 1);
}

Test(rate_limits_redis, dead_and_closed_with_eight_at_once)
{
    start(1);
    redis_kill(&server);
    race("/ten", 8, 20, INSTANCES);
    cr_expect_geq(atomic_load(&failed), 5);
    cr_expect_leq(atomic_load(&failed), 5 + 7);
    cr_expect_eq(atomic_load(&failed) + atomic_load(&open_circuit), 160);
}

Test(rate_limits_redis, dead_and_open_is_one_by_its_class_and_then_the_emergency_limit)
{
    start(1);
    redis_kill(&server);
    expect("/open", 200, "redis_connection_error");
    expect("/open", 429, "emergency_local_limit");
    expect("/open", 429, "emergency_local_limit");
    cr_expect_eq(
        gateway_metric(
            &g[0],
            "subzero_ratelimit_decisions_total{policy=\"open\",reason=\"redis_connection_error\",decision=\"allow\"}"),
        1);
    expect("/mixed", 503, "fail_closed"); /* one that is closed still refuses */
}

Test(rate_limits_redis, hanging_costs_its_timeout_and_then_nothing)
{
    start_with(1, "100ms");
    expect("/open", 200, "");
    redis_pause(&server);
    expect("/open", 200, "redis_timeout");
    expect("/open", 429, "emergency_local_limit");
    for (int i = 0; i < 3; i++)
        expect("/ten", 503, "fail_closed");
    struct seen seen = ask(0, "127.0.0.5", "/ten");
    cr_expect_str_eq(seen.reason, "circuit_open");
    cr_expect_lt(seen.took.us, 90000, "it was asked");
    usleep(1100000);
    expect("/open", 200, "circuit_open");
    redis_continue(&server);
}

/* A dry run refuses nobody, and its failure is the request's: the next limit does not wait for the same Redis again. */
Test(rate_limits_redis, one_request_waits_once)
{
    start_with(1, "100ms");
    expect("/trial", 200, "");
    redis_pause(&server);
    expect("/trial", 200, "redis_timeout");
    expect("/trial", 429, "emergency_local_limit");
    for (int i = 0; i < 3; i++) /* two have failed, not four: the fifth failure opens the breaker */
        expect("/ten", 503, "fail_closed");
    expect("/ten", 503, "circuit_open");
    redis_continue(&server);
}

static void *killer(void *arg)
{
    usleep(150000);
    redis_kill(arg);
    return NULL;
}

Test(rate_limits_redis, killed_under_load_every_request_has_an_answer_of_the_table)
{
    pthread_t thread;
    start(INSTANCES);
    cr_assert_eq(pthread_create(&thread, NULL, killer, &server), 0);
    race("/ten", 12, 100, 1);
    pthread_join(thread, NULL);
    cr_expect_leq(atomic_load(&admitted), 10);
    cr_expect_gt(atomic_load(&refused), 0);
    cr_expect_gt(atomic_load(&open_circuit), 0);
}

Test(rate_limits_redis, flushed_and_full)
{
    start(1);
    for (int i = 0; i < 10; i++)
        expect("/ten", 200, "");
    expect("/ten", 429, "rate_limited");
    free(redis_say(&server, "SCRIPT FLUSH SYNC"));
    expect("/ten", 429, "rate_limited");
    free(redis_say(&server, "FLUSHALL"));
    expect("/ten", 200, "");
    free(redis_say(&server, "CONFIG SET maxmemory 1mb"));
    expect("/ten", 503, "fail_closed");
    expect("/open", 200, "redis_connection_error");
    free(redis_say(&server, "CONFIG SET maxmemory 0"));
    expect("/ten", 200, "");
}
