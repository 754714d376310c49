/* When a connection to an upstream is used again, and what happens when that was a mistake: answers never change
 * owners. */
#include "integration/harness.h"

#include <poll.h>
#include <stdio.h>

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "log: {access: off}\n"
                           "upstreams:\n"
                           "  up:\n"
                           "    urls: [\"http://127.0.0.1:{upstream}\"]\n"
                           "    keepalive: 300ms\n"
                           "    max_idle: 2\n"
                           "  once: {urls: [\"http://127.0.0.1:{upstream}\"], reuse: never}\n"
                           "routes:\n"
                           "  - {id: all, match: {path: /*}, public: true, upstream: up}\n"
                           "  - {id: once, match: {path: /once}, public: true, upstream: once}\n";

static struct upstream *up;
static struct gateway gw;
static struct http1_response r;

static void setup(void)
{
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gw, yaml, upstream_port(up)));
}

static void teardown(void)
{
    http1_response_fini(&r);
    stop_gateway(&gw);
    upstream_stop(&up);
}

/* Answers with the target, so that an answer shows whose it is. */
static bool say_target(struct wire *w, const struct upstream_request *request, void *arg)
{
    char text[600];
    (void)arg;
    int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%.*s", request->target.n,
                     SZ_FMT(request->target));
    return wire_send(w, sz_slice(text, (size_t)n));
}

static void expect_own_answer(const char *method, const char *target, const char *body)
{
    cr_expect_eq(http1_ask(gw.port, method, target, NULL, NULL, body, &r), 200, "%s %s", method, target);
    cr_expect(sz_eq(sz_buf_slice(&r.body), sz_cstr(target)), "%s %s: %.*s", method, target, (int)r.body.n, r.body.p);
}

Test(proxy_reuse, one_connection_serves_many_requests, .init = setup, .fini = teardown, .timeout = 60)
{
    for (int i = 0; i < 20; i++)
        cr_expect_eq(http1_ask(gw.port, i % 2 == 0 ? "GET" : "POST", "/", NULL, NULL, i % 3 == 0 ? "body" : NULL, &r),
                     200);
    cr_expect_leq(upstream_connections(up), 1 + 4, "only GETs with a body have their own");
}

Test(proxy_reuse, idle_connections_end_by_time_and_number, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script slow = {.drip = 20, .pause = {50000}};
    struct http1 c[6];

    upstream_play(up, &slow);
    for (size_t i = 0; i < SZ_COUNT(c); i++)
        cr_assert(http1_open(&c[i], gw.port) && http1_printf(&c[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    for (size_t i = 0; i < SZ_COUNT(c); i++)
        cr_expect_eq(http1_read(&c[i], "GET", SZ_SEC(5), &r), 0);
    cr_expect_eq(upstream_connections(up), SZ_COUNT(c));
    struct sz_mono end = in_time(SZ_SEC(5));
    while (upstream_open(up) > 2 && sz_mono_read().us < end.us)
        poll(NULL, 0, 10);
    cr_expect_leq(upstream_open(up), 2, "max_idle");
    while (upstream_open(up) > 0 && sz_mono_read().us < end.us)
        poll(NULL, 0, 10);
    cr_expect_eq(upstream_open(up), 0, "keepalive");
    for (size_t i = 0; i < SZ_COUNT(c); i++)
        http1_close(&c[i]);
}

Test(proxy_reuse, reuse_never_means_never, .init = setup, .fini = teardown, .timeout = 60)
{
    char value[20];

    for (unsigned i = 1; i <= 3; i++) {
        cr_expect_eq(http1_ask(gw.port, "GET", "/once", NULL, NULL, NULL, &r), 200);
        cr_expect_eq(upstream_connections(up), i);
        const struct upstream_request *request = upstream_at(up, i - 1);
        cr_expect(upstream_field(request, "connection", value, sizeof(value)) && strcmp(value, "close") == 0);
    }
}

/*
 * The first request of a connection is answered, at the second one it closes without a word, as a server does whose
 * keep-alive ran out just then.
 */
static bool close_at_second(struct wire *w, const struct upstream_request *request, void *arg)
{
    unsigned *last = arg;
    if (*last == request->connection)
        return false;
    *last = request->connection;
    return say_target(w, request, NULL);
}

Test(proxy_reuse, the_keep_alive_race_is_invisible_where_repeating_is_safe, .init = setup, .fini = teardown,
     .timeout = 60)
{
    static unsigned last;
    static const struct upstream_script script = {.speak = close_at_second, .arg = &last};

    upstream_play(up, &script);
    for (int i = 0; i < 6; i++)
        expect_own_answer("GET", "/get", NULL);
    cr_expect_eq(http1_ask(gw.port, "OPTIONS", "/options", NULL, NULL, NULL, &r), 200);
}

Test(proxy_reuse, a_post_is_not_repeated, .init = setup, .fini = teardown, .timeout = 60)
{
    static unsigned last;
    static const struct upstream_script script = {.speak = close_at_second, .arg = &last};

    upstream_play(up, &script);
    expect_own_answer("POST", "/one", "1");
    cr_expect_eq(http1_ask(gw.port, "POST", "/two", NULL, NULL, "2", &r), 502);
    expect_answer(&r, 502, "upstream_error", "a POST that may have been carried out");
    cr_expect_eq(upstream_count(up), 2);
}

/* Dead while idle: noticed before anything is sent on it, so even a POST goes through. */
Test(proxy_reuse, a_dead_idle_connection_is_not_used, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.close = true,
                                                  .answer = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38}};

    upstream_play(up, &script); /* closes without saying so */
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(http1_ask(gw.port, "POST", "/", NULL, NULL, "body", &r), 200);
        poll(NULL, 0, 50); /* the close comes while it is idle */
    }
    cr_expect_eq(upstream_connections(up), 5);
}

/* Bytes behind a response, at once or later: they are nobody's, and their connection is not used again. */
Test(proxy_reuse, surplus_bytes_answer_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
#define HONEST "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define EVIL   "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
    static const struct upstream_script at_once = {.answer = {HONEST EVIL, sizeof(HONEST EVIL) - 1}};
    static const struct upstream_script later = {
        .answer = {HONEST EVIL, sizeof(HONEST EVIL) - 1}, .drip = sizeof(HONEST) - 1, .pause = {50000}};
    const struct upstream_script *scripts[] = {&at_once, &later};

    for (size_t i = 0; i < SZ_COUNT(scripts); i++) {
        for (int k = 0; k < 4; k++) {
            upstream_play(up, scripts[i]);
            cr_expect_eq(http1_ask(gw.port, "GET", "/", NULL, NULL, NULL, &r), 200);
            cr_expect(sz_eq(sz_buf_slice(&r.body), SZ_S("ok")));
            poll(NULL, 0, 150); /* the surplus comes while the connection is idle */
        }
    }
}

/*
 * An upstream that does not read bodies takes the body of a GET for the next request and answers it.  On a shared
 * connection that answer would be the next client's.
 */
Test(proxy_reuse, the_body_of_a_get_is_no_request, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = say_target, .ignores_body = true};
    static const char *const methods[] = {"GET", "HEAD", "DELETE", "OPTIONS"};
    char value[20];

    upstream_play(up, &script);
    for (size_t i = 0; i < SZ_COUNT(methods); i++) {
        unsigned before = upstream_connections(up);
        size_t count = upstream_count(up);
        expect_own_answer("GET", "/before", NULL);
        cr_expect_eq(
            http1_ask(gw.port, methods[i], "/with-body", NULL, NULL, "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", &r),
            200, "%s", methods[i]);
        cr_expect_null(r.body.p == NULL ? NULL : strstr(r.body.p, "smuggled"), "%s", methods[i]);
        for (int k = 0; k < 3; k++)
            expect_own_answer("GET", "/after", NULL);
        const struct upstream_request *request = upstream_at(up, count + 1);
        cr_assert_not_null(request);
        cr_expect(upstream_field(request, "connection", value, sizeof(value)) && strcmp(value, "close") == 0);
        cr_expect_neq(request->connection, upstream_at(up, count)->connection);
        cr_expect_leq(upstream_connections(up), before + 2);
    }
}

/* POST bodies may travel on kept connections: an upstream that leaves them unread must not see them as requests either.
 */
Test(proxy_reuse, the_unread_body_of_a_post_ends_its_connection, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct upstream_script script = {.speak = say_target, .ignores_body = true};

    upstream_play(up, &script);
    cr_expect_eq(http1_ask(gw.port, "POST", "/p", NULL, NULL, "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", &r), 200);
    cr_expect(sz_eq(sz_buf_slice(&r.body), SZ_S("/p")));
    poll(NULL, 0, 150);
    for (int k = 0; k < 5; k++)
        expect_own_answer("GET", "/after", NULL);
}
