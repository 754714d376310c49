/*
 * Ways around a route: another method beside a looser pattern, a second request inside the body of the first.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 1\n"
                           "log: {access: off}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML "routes:\n"
                           "  - {id: all, match: {path: \"/*\"}, public: true, covers_guarded: true, upstream: up}\n"
                           "  - id: guarded\n"
                           "    match: {methods: [GET], path: /guarded}\n"
                           "    auth: {issuers: [test]}\n"
                           "    upstream: up\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *token;

static void setup(void)
{
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 600, NULL);
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}

Test(loopholes, a_method_that_the_guarded_path_lacks_is_405_and_never_the_public_route, .init = setup, .fini = teardown,
     .timeout = 60)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "QUERY", "get", "GETX"};
    static const char *const spellings[] = {"/guarded",   "/guarded?x=1",  "//guarded",
                                            "/./guarded", "/x/../guarded", "/%67uarded"};
    struct http1_response r = {0};
    char allow[64];

    for (size_t i = 0; i < SZ_COUNT(methods) * SZ_COUNT(spellings); i++) {
        const char *method = methods[i % SZ_COUNT(methods)], *target = spellings[i / SZ_COUNT(methods)];
        http1_ask(gateway.port, method, target, NULL, "X-HTTP-Method-Override: GET\r\n", NULL, &r);
        expect_answer(&r, 405, "method_not_allowed", method);
        cr_expect(http1_field(&r, "allow", allow, sizeof(allow)) && strcmp(allow, "GET, HEAD") == 0, "'%s'", allow);
        http1_ask(gateway.port, method, target, token, NULL, NULL, &r);
        expect_answer(&r, 405, "method_not_allowed", method);
    }
    cr_expect_eq(upstream_count(up), 0);
    http1_ask(gateway.port, "GET", "/guarded", NULL, NULL, NULL, &r);
    expect_answer(&r, 401, "missing_token", "GET");
    cr_expect_eq(http1_ask(gateway.port, "HEAD", "/guarded", token, NULL, NULL, &r), 200);
    cr_expect_eq(http1_ask(gateway.port, "POST", "/elsewhere", NULL, NULL, "x", &r), 200);
    http1_response_fini(&r);
}

Test(loopholes, the_same_over_http2, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http2 c;
    char allow[64];

    cr_assert(h2_open(&c, gateway.port));
    const struct h2_response *r = h2_ask(&c, "POST", SZ_S("/guarded"), NULL, NULL, 0, SZ_S("x"));
    expect_h2_answer(r, 405, "method_not_allowed", "POST");
    cr_expect(h2_response_field(r, "allow", allow, sizeof(allow)) && strcmp(allow, "GET, HEAD") == 0, "'%s'", allow);
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/guarded"), NULL, NULL, 0, SZ_NONE), 401, "missing_token", "GET");
    cr_expect_eq(upstream_count(up), 0);
    expect_h2_answer(h2_ask(&c, "GET", SZ_S("/guarded"), token, NULL, 0, SZ_NONE), 200, "", "GET");
    h2_close(&c);
}

/* ---- a request in a body ----------------------------------------------------------------------------------------- */

#define HIDDEN "GET /guarded HTTP/1.1\r\nHost: gateway.test\r\nX-Subzero-Subject: root\r\n\r\n"

/* Each request is answered with its own target, so an answer that got out of step shows. */
static bool name_the_target(struct wire *w, const struct upstream_request *request, void *arg)
{
    struct sz_buf out = {0};
    char value[32];

    (void)arg;
    sz_buf_printf(&out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", request->target.n);
    if (!sz_eq(request->method, SZ_S("HEAD")))
        sz_buf_adds(&out, request->target);
    bool sent = wire_send(w, sz_buf_slice(&out));
    sz_buf_fini(&out);
    return sent && !(upstream_field(request, "connection", value, sizeof(value)) && strcmp(value, "close") == 0);
}

static void expect_in_step(const char *method, const char *request)
{
    struct http1_response r = {0};
    struct http1 c;

    cr_assert(http1_open(&c, gateway.port) && http1_printf(&c, "%s", request));
    cr_expect_eq(http1_read(&c, method, SZ_SEC(5), &r), 0, "%s", request);
    cr_expect_eq(r.status, 200, "%s: %d", request, r.status);
    cr_expect_str_eq(r.body.p, strcmp(method, "HEAD") == 0 ? "" : "/first", "%s", request);
    for (int i = 0; i < 3; i++) { /* others, who would be given what was left on the connection */
        cr_expect_eq(http1_ask(gateway.port, "GET", "/other", NULL, NULL, NULL, &r), 200);
        cr_expect_str_eq(r.body.p, "/other", "%s", request);
    }
    http1_close(&c);
    http1_response_fini(&r);
    for (size_t i = 0; i < upstream_count(up); i++)
        cr_expect(!sz_eq(upstream_at(up, i)->target, SZ_S("/guarded")), "the hidden request was read:\n%s", request);
    cr_assert(upstream_wait(up, upstream_count(up), SZ_SEC(5)));
    upstream_clear(up);
}

Test(loopholes, a_body_that_an_upstream_ignores_is_not_its_next_request, .init = setup, .fini = teardown, .timeout = 60)
{
    static const char *const methods[] = {"GET", "HEAD", "DELETE", "OPTIONS"};
    struct upstream_script script = {.ignores_body = true, .speak = name_the_target};
    char request[512];

    upstream_play(up, &script);
    for (size_t i = 0; i < SZ_COUNT(methods); i++) {
        snprintf(request, sizeof(request), "%s /first HTTP/1.1\r\nHost: gateway.test\r\nContent-Length: %zu\r\n\r\n%s",
                 methods[i], strlen(HIDDEN), HIDDEN);
        expect_in_step(methods[i], request);
        snprintf(request, sizeof(request),
                 "%s /first HTTP/1.1\r\nHost: gateway.test\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
                 methods[i], strlen(HIDDEN), HIDDEN);
        expect_in_step(methods[i], request);
    }
}
