/* The tests' own client and upstream against each other: a fake that is wrong hides what it should show. */
#include "integration/harness.h"

#include <errno.h>

#define ANSWER(text)           \
    {                          \
        text, sizeof(text) - 1 \
    }

static struct upstream *up;

static void setup(void)
{
    up = upstream_start(NULL);
}

static void teardown(void)
{
    upstream_stop(&up);
}

static int play(const struct upstream_script *script, const char *method, struct http1_response *r)
{
    struct http1 c;

    upstream_play(up, script);
    cr_assert(http1_open(&c, upstream_port(up)));
    cr_assert(http1_printf(&c, "%s /a?b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\n\r\n", method));
    int rc = http1_read(&c, method, SZ_SEC(2), r);
    http1_close(&c);
    return rc;
}

Test(fakes, answers_are_read_whole_or_said_to_be_broken, .init = setup, .fini = teardown)
{
    static const struct {
        struct upstream_script script;
        const char *method;
        int rc;
        size_t body_n;
    } rows[] = {
        {{.close = false}, "GET", 0, 2},
        {{.close = true}, "GET", 0, 2},
        {{.close = false}, "HEAD", 0, 0},
        {{.stream = 1000000}, "GET", 0, 1000000},
        {{.stream = 100, .drip = 60, .pause = {1000}}, "GET", 0, 100},
        {{.answer =
              ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n")},
         "GET",
         0,
         12},
        {{.answer = ANSWER("HTTP/1.0 200 OK\r\n\r\nto the end"), .close = true}, "GET", 0, 10},
        {{.answer = ANSWER("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")}, "GET", 0, 0},
        {{.answer = ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), .close = true}, "GET", -EPIPE, 5},
        {{.answer = ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n")}, "GET", -EPROTO, 0},
        {{.answer = ANSWER("220 mail\r\n\r\n")}, "GET", -EPROTO, 0},
        {{.stream = 1000, .fault_at = UPSTREAM_AT_ANSWER, .after = 500, .fault = UPSTREAM_CLOSE}, "GET", -EPIPE, 459},
        {{.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_RESET}, "GET", -EPIPE, 0},
        {{.fault_at = UPSTREAM_AT_ACCEPT, .fault = UPSTREAM_CLOSE}, "GET", -EPIPE, 0},
    };
    struct http1_response r = {0};

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        int rc = play(&rows[i].script, rows[i].method, &r);
        cr_expect_eq(rc, rows[i].rc, "row %zu: %d", i, rc);
        cr_expect_eq(r.body.n, rows[i].body_n, "row %zu: %zu bytes", i, r.body.n);
    }
    http1_response_fini(&r);
}

Test(fakes, requests_are_recorded_as_they_came, .init = setup, .fini = teardown)
{
    static const char raw[] = "POST /a b HTTP/1.1\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
                              "3\r\nabc\r\n0\r\n\r\n"
                              "GET /second HTTP/1.1\r\n\r\n"
                              "POST /bad HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc";
    struct http1 c;
    char value[8];

    cr_assert(http1_open(&c, upstream_port(up)) && http1_send(&c, SZ_S(raw)));
    cr_assert(upstream_wait(up, 3, SZ_SEC(5)));
    const struct upstream_request *first = upstream_at(up, 0), *third = upstream_at(up, 2);
    cr_expect(sz_eq(first->method, SZ_S("POST")) && sz_eq(first->target, SZ_S("/a b")) && !first->broken);
    cr_expect(sz_eq(first->body, SZ_S("abc")) && first->body_n == 3 && first->raw.n == 79, "%zu", first->raw.n);
    cr_expect_eq(upstream_field_count(first, "X-a"), 2);
    cr_expect(upstream_field(first, "x-A", value, sizeof(value)) && strcmp(value, "1") == 0);
    cr_expect(sz_eq(upstream_at(up, 1)->target, SZ_S("/second")) && upstream_at(up, 1)->connection == 1);
    cr_expect(third->broken && third->ended);
    cr_expect_null(upstream_at(up, 3));
    cr_expect(wire_closed_within(&c.wire, SZ_SEC(5)));
    http1_close(&c);
}

Test(fakes, refusing_and_hanging, .init = setup, .fini = teardown)
{
    static const struct upstream_script hangs = {.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_HANG};
    struct http1 c;
    struct http1_response r = {0};

    upstream_play(up, &hangs);
    cr_assert(http1_open(&c, upstream_port(up)) && http1_printf(&c, "GET / HTTP/1.1\r\n\r\n"));
    cr_expect_eq(http1_read(&c, "GET", SZ_MS(50), &r), -ETIMEDOUT);
    cr_expect_eq(upstream_open(up), 1);
    http1_close(&c);
    upstream_refuse(up);
    cr_expect_not(http1_open(&c, upstream_port(up)));
    upstream_accept(up);
    upstream_play(up, NULL);
    cr_expect_eq(http1_ask(upstream_port(up), "GET", "/", NULL, NULL, NULL, &r), 200);
    http1_response_fini(&r);
}
