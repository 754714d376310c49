/* Rate limits of the running gateway: exact when requests race, told to the client, counted without growing. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "fake/client.h"
#include "harness.h"

#define YAML(more)                                                                              \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                                            \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                                 \
    "workers: 2\n"                                                                              \
    "log: {access: off}\n"                                                                      \
    "trusted_proxies: [127.0.0.9/32]\n"                                                         \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"], timeouts: {first_byte: 1s}}\n" \
    "routes:\n"                                                                                 \
    "  - {id: all, match: {path: \"/*\"}, public: true, upstream: up, rate_limit: ten}\n"       \
    "rate_limits:\n"                                                                            \
    "  ten: {algorithm: token_bucket, capacity: 10, refill: 0/1s, key: address, on_store_failure: closed}\n" more

static struct gateway g;
static struct upstream *upstream;

static void setup(void)
{
    upstream = upstream_start(NULL);
}

static void teardown(void)
{
    stop_gateway(&g);
    upstream_stop(&upstream);
    scratch_remove();
}

TestSuite(rate_limits, .init = setup, .fini = teardown, .timeout = 120);

static int ask_from(const char *from, const char *head)
{
    static _Thread_local char buf[16384];
    int fd = client_open_from(from, g.port);
    client_send(fd, sz_cstr(head));
    int status = client_response(fd, buf, sizeof(buf), 10000);
    close(fd);
    return status;
}

static atomic_uint admitted, refused;

static void *racer(void *arg)
{
    (void)arg;
    int status = ask_from("127.0.0.5", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    atomic_fetch_add(status == 200 ? &admitted : &refused, 1);
    cr_expect(status == 200 || status == 429, "%d", status);
    return NULL;
}

Test(rate_limits, fifty_racing_requests_admit_exactly_the_capacity)
{
    pthread_t threads[50];
    cr_assert(gateway_start(&g, YAML(""), upstream_port(upstream)));
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, racer, NULL), 0);
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(atomic_load(&admitted), 10);
    cr_expect_eq(atomic_load(&refused), 40);
    cr_expect_eq(
        gateway_metric(&g, "subzero_ratelimit_decisions_total{policy=\"ten\",reason=\"allowed\",decision=\"allow\"}"),
        10);
    cr_expect_eq(gateway_metric(
                     &g, "subzero_ratelimit_decisions_total{policy=\"ten\",reason=\"rate_limited\",decision=\"deny\"}"),
                 40);
}

Test(rate_limits, what_a_client_says_about_itself_changes_nothing)
{
    static const char *const fields[] = {"X-Forwarded-For: 203.0.113.", "Forwarded: for=203.0.113.",
                                         "X-Real-Ip: 203.0.113.", "X-Subzero-Tenant: t", "X-Other: "};
    char head[256];
    int passed = 0;
    cr_assert(gateway_start(&g, YAML(""), upstream_port(upstream)));
    for (int i = 0; i < 50; i++) {
        snprintf(head, sizeof(head), "GET /x%d HTTP/1.1\r\nHost: a\r\n%s%d\r\n\r\n", i, fields[i % 5], i);
        passed += ask_from("127.0.0.5", head) == 200;
    }
    cr_expect_eq(passed, 10);
    for (int i = 0; i < 20; i++) { /* the trusted one is believed, what stands before its own entry is not */
        snprintf(head, sizeof(head), "GET /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.%d, 203.0.113.1\r\n\r\n",
                 i);
        passed += ask_from("127.0.0.9", head) == 200;
    }
    cr_expect_eq(passed, 20);
}

static size_t series(void)
{
    size_t n = 0;
    char *text = gateway_admin(&g, "/metrics");
    for (const char *at = text; (at = strstr(at, "subzero_ratelimit_decisions_total{")) != NULL; at++)
        n++;
    free(text);
    return n;
}

/* AddressSanitizer keeps what was freed, which would count as growth. */
static void small_quarantine(void)
{
    char with[512];
    const char *options = getenv("ASAN_OPTIONS");
    snprintf(with, sizeof(with), "%s:quarantine_size_mb=1", options != NULL ? options : "");
    setenv("ASAN_OPTIONS", with, 1);
}

/* SUBZERO_TEST_MANY=1000000 asks for as many as that. */
static unsigned many(void)
{
    const char *text = getenv("SUBZERO_TEST_MANY");
    unsigned long n = text != NULL ? strtoul(text, NULL, 10) : 0;
    return n >= 20000 && n <= 10000000 ? (unsigned)n : 20000;
}

/* Through one connection of a trusted proxy, each request with an address and a path of its own. */
Test(rate_limits, any_number_of_addresses_and_paths_are_constant_series_and_memory, .timeout = 600)
{
    char head[256], answer[4096];
    long before = 0, after;
    const unsigned n = many();
    small_quarantine();
    upstream_play(upstream, &(struct upstream_script){.forgets = true});
    cr_assert(gateway_start(&g,
                            YAML("limits: {rate_limit_keys: 2000, per_address: {rate: 1/1s, burst: 10, keys: 2000}}\n"),
                            upstream_port(upstream)));
    int fd = client_open_from("127.0.0.9", g.port);
    for (unsigned i = 0; i < n; i++) {
        snprintf(head, sizeof(head), "GET /p%u HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8:%x:%x::1\r\n\r\n", i,
                 i >> 4, i & 15);
        client_send(fd, sz_cstr(head));
        cr_assert_eq(client_response(fd, answer, sizeof(answer), 10000), 200);
        if (i == 8000)
            before = gateway_status_kb(&g, "VmRSS");
    }
    after = gateway_status_kb(&g, "VmRSS");
    cr_expect_leq(series(), 2);
    cr_expect_gt(gateway_metric(&g, "subzero_ratelimit_given_up_total{table=\"addresses\"}"), 10000);
    cr_expect_lt(after - before, 4096, "%ld KiB more", after - before);
    close(fd);
}

Test(rate_limits, an_address_has_so_many_requests_at_once)
{
    int fds[2];
    upstream_play(upstream, &(struct upstream_script){.fault_at = UPSTREAM_AT_ANSWER, .fault = UPSTREAM_HANG});
    cr_assert(
        gateway_start(&g, YAML("limits: {per_address: {rate: 100/1s, in_flight: 2}}\n"), upstream_port(upstream)));
    for (int i = 0; i < 2; i++) {
        fds[i] = client_open_from("127.0.0.5", g.port);
        client_send(fds[i], SZ_S("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    for (int i = 0; i < 200 && upstream_count(upstream) < 2; i++)
        usleep(10000);
    cr_expect_eq(ask_from("127.0.0.5", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), 429);
    upstream_play(upstream, NULL);
    cr_expect_eq(ask_from("127.0.0.6", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    int status = 429;
    for (int i = 0; i < 500 && status == 429; i++) {
        usleep(10000);
        status = ask_from("127.0.0.5", "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    cr_expect_eq(status, 200, "a place became free");
}
