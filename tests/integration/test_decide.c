/*
 * Decide listeners as the front proxies call them: their own headers are read, everybody else's change nothing, and the
 * answer carries every identity header or none.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/issuer.h"

#define YAML(dialect)                                                                    \
    "listen:\n  - {address: \"127.0.0.1:{port}\", mode: decide, dialect: " dialect "}\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                          \
    "workers: 1\n"                                                                       \
    "trusted_proxies: [127.0.0.1/32]\n"                                                  \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:9\"]}\n" ISSUER_YAML "routes:\n"       \
    "  - {id: hello, match: {path: \"/public/*\"}, public: true}\n"                      \
    "  - id: docs\n"                                                                     \
    "    match: {methods: [GET], path: \"/docs/{id}\", host: app.example}\n"             \
    "    auth: {issuers: [test], scopes: [\"read:docs\"]}\n"                             \
    "    set_headers: {x-department: \"{claims.department}\"}\n"                         \
    "  - {id: post, match: {methods: [POST], path: \"/docs/{id}\", host: app.example}, auth: {issuers: [test]}}\n"

static struct gateway g;
static struct issuer issuer;
static char *token, *poor;
static char answer[65536];

static void setup(void)
{
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 300, "\"scope\":\"read:docs\",\"department\":\"legal\"");
    poor = issuer_token(&issuer, "bob", 300, NULL);
}

static void teardown(void)
{
    cr_expect(gateway_stop(&g));
    free(token);
    free(poor);
    scratch_remove();
}

/* One call; fields end in CRLF each, %s in it is the token. */
static int call_from(const char *from, const char *line, const char *fields, const char *bearer)
{
    char request[8192], authorization[4096] = "";
    int fd = client_open_from(from, g.port);
    cr_assert_geq(fd, 0);
    if (bearer != NULL)
        snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s\r\n", bearer);
    snprintf(request, sizeof(request), "%s HTTP/1.1\r\n%s%s\r\n", line, fields, authorization);
    client_send(fd, sz_cstr(request));
    int status = client_response(fd, answer, sizeof(answer), 5000);
    close(fd);
    return status;
}

static int call(const char *fields, const char *bearer)
{
    return call_from("127.0.0.1", "GET /auth", fields, bearer);
}

static bool answered(const char *name, const char *value)
{
    char got[512];
    return raw_header(answer, name, got, sizeof(got)) && strcmp(got, value) == 0;
}

#define NGINX(method, uri) "Host: app.example\r\nX-Original-Method: " method "\r\nX-Original-URI: " uri "\r\n"

Test(decide, nginx, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("nginx"), 0));
    cr_expect_eq(call(NGINX("GET", "/public/x"), NULL), 200);
    cr_expect(answered("x-subzero-subject", ""), "every identity header, empty where there is no value: %s", answer);
    cr_expect(answered("x-department", ""), "%s", answer);
    cr_expect_eq(call(NGINX("GET", "/docs/1"), token), 200);
    cr_expect(answered("x-subzero-subject", "alice") && answered("x-department", "legal"), "%s", answer);
    cr_expect(answered("x-subzero-scopes", "read:docs"));
    cr_expect_eq(call(NGINX("GET", "/docs/1"), NULL), 401);
    cr_expect_neq(strstr(answer, "www-authenticate: Bearer"), NULL);
    cr_expect_eq(strstr(answer, "x-subzero-subject"), NULL, "a denial carries no identity");
    cr_expect_eq(call(NGINX("GET", "/docs/1"), poor), 403);
    cr_expect_eq(strstr(answer, "x-subzero-subject"), NULL);
    cr_expect(answered("x-subzero-reason", "insufficient_scope"));
    /* nginx makes a 500 of anything but 2xx, 401 and 403. */
    cr_expect_eq(call(NGINX("DELETE", "/docs/1"), token), 403);
    cr_expect(answered("x-subzero-status", "405"));
    cr_expect_eq(call(NGINX("GET", "/docs/%2e%2e/x"), token), 403);
    cr_expect(answered("x-subzero-status", "400"));
    cr_expect_eq(call(NGINX("GET", "/public/../docs/1"), token), 403);
    cr_expect(answered("x-subzero-status", "400"),
              "a target that is not canonical is refused: nginx forwards its own bytes");
    cr_expect_eq(call("Host: app.example\r\nX-Original-URI: /public/x\r\n", NULL), 403);
    cr_expect(answered("x-subzero-status", "400"), "no default method");
    cr_expect_eq(call("Host: app.example\r\nX-Original-Method: GET\r\n", NULL), 403);
    cr_expect_eq(call(NGINX("GET", "/public/x") "X-Original-URI: /docs/1\r\n", NULL), 403);
    cr_expect_eq(call_from("127.0.0.2", "GET /auth", NGINX("GET", "/public/x"), NULL), 403);
    cr_expect(answered("x-subzero-reason", "untrusted_peer"));
}

#define OTHERS                                                                                                 \
    "X-Original-Method: GET\r\nX-Original-URI: /public/x\r\nX-Original-Host: evil.example\r\nX-Original-URL: " \
    "/public/x\r\n"                                                                                            \
    "X-Rewrite-URL: /public/x\r\nX-HTTP-Method-Override: GET\r\n"
#define FORWARDED(method, uri)                                                                                      \
    "Host: gate\r\nX-Forwarded-Method: " method "\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: app.example\r\n" \
    "X-Forwarded-Uri: " uri "\r\n"

static void traefik_and_caddy(const char *yaml)
{
    cr_assert(gateway_start(&g, yaml, 0));
    cr_expect_eq(call(FORWARDED("GET", "/docs/1?a=b"), token), 200);
    cr_expect(answered("x-subzero-subject", "alice"));
    cr_expect_eq(call(FORWARDED("GET", "/docs/1") OTHERS, NULL), 401, "other dialects' headers change nothing");
    cr_expect_eq(call(FORWARDED("POST", "/docs/1") OTHERS, token), 200);
    cr_expect_eq(call(FORWARDED("PUT", "/docs/1") OTHERS, token), 405);
    cr_expect_eq(call(FORWARDED("GET", "/public/..%2fdocs/1"), token), 400);
    cr_expect_eq(
        call("Host: gate\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: app.example\r\n",
             token),
        400);
    cr_expect_eq(call(FORWARDED("GET", "/docs/1") "X-Forwarded-Uri: /public/x\r\n", NULL), 400);
    cr_expect_eq(call_from("127.0.0.1", "GET /public/x", OTHERS "Host: gate\r\n", NULL), 400);
}

Test(decide, traefik, .init = setup, .fini = teardown, .timeout = 60)
{
    traefik_and_caddy(YAML("traefik"));
}

Test(decide, caddy, .init = setup, .fini = teardown, .timeout = 60)
{
    traefik_and_caddy(YAML("caddy"));
}

/* Envoy's HTTP check request is the client's request line and Host. */
Test(decide, envoy, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("envoy"), 0));
    cr_expect_eq(call_from("127.0.0.1", "GET /docs/1", "Host: app.example\r\n", token), 200);
    cr_expect_eq(
        call_from("127.0.0.1", "GET /docs/1", "Host: app.example\r\n" OTHERS "X-Forwarded-Uri: /public/x\r\n", NULL),
        401);
    cr_expect_eq(call_from("127.0.0.1", "POST /docs/1", "Host: app.example\r\nContent-Length: 0\r\n", token), 200);
    cr_expect_eq(call_from("127.0.0.1", "GET /public/./x", "Host: app.example\r\n", NULL), 400);
    cr_expect_eq(call_from("127.0.0.1", "GET /docs/1", "Host: other.example\r\n", token), 404);
}

Test(decide, haproxy, .init = setup, .fini = teardown, .timeout = 60)
{
    cr_assert(gateway_start(&g, YAML("haproxy"), 0));
    static const char fields[] =
        "Host: gate\r\nX-Original-Method: GET\r\nX-Original-URI: /docs/1\r\nX-Original-Host: app.example\r\n";
    cr_expect_eq(call(fields, token), 200);
    cr_expect_eq(call(fields, NULL), 401);
    cr_expect_eq(call("Host: app.example\r\nX-Original-Method: GET\r\nX-Original-URI: /docs/1\r\n", token), 400);
    cr_expect_eq(call(FORWARDED("GET", "/public/x"), NULL), 400);
}
