/* Several urls of one upstream: turns, what counts against one, and reloads that leave connections alone. */
#include "integration/harness.h"

#include <poll.h>
#include <stdio.h>

#define URLS 3

static struct upstream *ups[URLS];
static struct gateway gw;
static struct http1_response r;
static struct sz_buf yaml;

/* `extra`: lines of the upstream, each with its newline. */
static const char *config(const char *extra)
{
    yaml.n = 0;
    sz_buf_printf(&yaml,
                  "listen: [{address: \"127.0.0.1:{port}\"}]\nadmin: {address: \"127.0.0.1:{admin}\"}\n"
                  "workers: 1\nlog: {access: off}\nupstreams:\n  up:\n%s    urls:\n",
                  extra);
    for (size_t i = 0; i < URLS; i++)
        sz_buf_printf(&yaml, "      - http://127.0.0.1:%u\n", upstream_port(ups[i]));
    sz_buf_adds(&yaml, SZ_S("routes: [{id: all, match: {path: /*}, public: true, upstream: up}]\n"));
    sz_buf_add(&yaml, "", 1);
    return yaml.p;
}

static void setup(void)
{
    for (size_t i = 0; i < URLS; i++)
        ups[i] = upstream_start(NULL);
    cr_assert(gateway_start(&gw, config(""), 0));
}

static void teardown(void)
{
    stop_gateway(&gw);
    for (size_t i = 0; i < URLS; i++)
        upstream_stop(&ups[i]);
    http1_response_fini(&r);
    sz_buf_fini(&yaml);
    scratch_remove();
}

static int ask(const char *method)
{
    return http1_ask(gw.port, method, "/", NULL, NULL, NULL, &r);
}

Test(proxy_urls, requests_take_turns, .init = setup, .fini = teardown, .timeout = 60)
{
    for (int i = 0; i < 30; i++)
        cr_expect_eq(ask("GET"), 200);
    for (size_t i = 0; i < URLS; i++) {
        cr_expect_eq(upstream_count(ups[i]), 10, "url %zu: %zu", i, upstream_count(ups[i]));
        cr_expect_eq(upstream_connections(ups[i]), 1);
    }
}

/* Nothing was sent to a url that refuses: even a POST goes to the next one, and soon it is not asked at all. */
Test(proxy_urls, a_url_that_refuses_costs_no_request, .init = setup, .fini = teardown, .timeout = 60)
{
    upstream_refuse(ups[1]);
    for (int i = 0; i < 30; i++)
        cr_expect_eq(ask(i % 2 == 0 ? "GET" : "POST"), 200);
    cr_expect_geq(upstream_count(ups[0]), 13);
    cr_expect_geq(upstream_count(ups[2]), 13);
    for (int i = 0; i < 100 && !gateway_logged(&gw, "is put aside for 10 s"); i++)
        poll(NULL, 0, 20); /* the log has a thread of its own */
    cr_expect(gateway_logged(&gw, "is put aside for 10 s"));
    upstream_accept(ups[1]);
    for (int i = 0; i < 9; i++)
        cr_expect_eq(ask("GET"), 200);
    cr_expect_eq(upstream_count(ups[1]), 0, "still aside");
}

Test(proxy_urls, resets_count_and_statuses_do_not, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script resets = {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_RESET};
    static const struct upstream_script fails = {.answer = {"HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", 37}};
    int failed = 0, errors = 0;

    upstream_play(ups[0], &resets);
    upstream_play(ups[2], &fails);
    for (int i = 0; i < 30; i++) {
        int status = ask("GET");
        failed += status == 502;
        errors += status == 500;
    }
    cr_expect_eq(failed, 3, "%d: three in a row, then aside", failed);
    cr_expect_eq(upstream_connections(ups[0]), 3);
    cr_expect_gt(errors, 10, "%d: an answer is an answer", errors);
}

Test(proxy_urls, the_last_url_is_never_put_aside, .init = setup, .fini = teardown, .timeout = 60)
{
    for (size_t i = 0; i < URLS; i++)
        upstream_refuse(ups[i]);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(ask("GET"), 502);
    for (size_t i = 0; i < URLS; i++)
        upstream_accept(ups[i]);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(ask("GET"), 200);
}

Test(proxy_urls, a_reload_keeps_what_did_not_change, .init = setup, .fini = teardown, .timeout = 60)
{
    for (int i = 0; i < 6; i++)
        cr_expect_eq(ask("GET"), 200);
    cr_assert(gateway_reload(&gw));
    for (int i = 0; i < 6; i++)
        cr_expect_eq(ask("GET"), 200);
    for (size_t i = 0; i < URLS; i++)
        cr_expect_eq(upstream_connections(ups[i]), 1, "the same connection before and after");
    gateway_rewrite(&gw, config("    timeouts: {idle: 7s}\n"));
    cr_assert(gateway_reload(&gw));
    for (int i = 0; i < 100 && upstream_open(ups[0]) > 0; i++)
        poll(NULL, 0, 20);
    cr_expect_eq(upstream_open(ups[0]), 0, "a changed upstream's idle connections end");
    for (int i = 0; i < 6; i++)
        cr_expect_eq(ask("GET"), 200);
}
