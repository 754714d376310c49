/*
 * Front proxies that are not to be had here, by the requests that their documentation describes: Traefik's ForwardAuth
 * and Envoy's ext_authz over HTTP.  The lines are written out as those programs send them.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/gateway.h"
#include "fake/issuer.h"

TestSuite(documented, .fini = scratch_remove, .timeout = 60);

static const char configuration[] = "listen: [{address: \"127.0.0.1:{port}\", mode: decide, dialect: %s}]\n"
                                    "admin: {address: \"127.0.0.1:{admin}\"}\n"
                                    "trusted_proxies: [127.0.0.1/32]\n" ISSUER_YAML "routes:\n"
                                    "  - {id: anyone, match: {path: /public/*}, public: true}\n"
                                    "  - id: documents\n"
                                    "    match: {methods: [GET], path: \"/documents/{id}\"}\n"
                                    "    auth: {issuers: [test], scopes: [\"read:documents\"]}\n";

/* One question and its answer's status; %s in `lines` becomes the token. */
static char *ask(struct gateway *g, const char *lines, const char *token)
{
    struct sz_buf request = {0};
    const char *mark = strstr(lines, "%s");

    sz_buf_printf(&request, "%.*s%s%s\r\n", mark != NULL ? (int)(mark - lines) : (int)strlen(lines), lines,
                  mark != NULL ? token : "", mark != NULL ? mark + 2 : "");
    char *answer = raw_exchange(g->port, sz_buf_slice(&request), NULL);
    cr_assert_not_null(answer);
    sz_buf_fini(&request);
    return answer;
}

struct question {
    const char *what, *lines;
    int status;
};

static void check(const char *dialect, const struct question *q, size_t n)
{
    struct gateway g;
    struct issuer issuer;
    char value[256], yaml[2048];

    issuer_init(&issuer);
    snprintf(yaml, sizeof(yaml), configuration, dialect);
    cr_assert(gateway_start(&g, yaml, 9));
    char *token = issuer_token(&issuer, "alice", 600, "\"scope\":\"read:documents\"");
    for (size_t i = 0; i < n; i++) {
        char *answer = ask(&g, q[i].lines, token);
        cr_expect_eq(raw_status(answer), q[i].status, "%s: %d where %d is right:\n%s", q[i].what, raw_status(answer),
                     q[i].status, answer);
        /* The front proxy replaces the client's header by this one: an answer that lets pass has it, even when empty.
         */
        bool there = raw_header(answer, "x-subzero-subject", value, sizeof(value));
        cr_expect_eq(there, q[i].status == 200, "%s:\n%s", q[i].what, answer);
        free(answer);
    }
    free(token);
    sz_signer_free(&issuer.signer);
    cr_expect(gateway_stop(&g));
}

#define TRAEFIK(method, uri)                                                                                      \
    "GET / HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"                        \
    "X-Forwarded-For: 192.0.2.10\r\nX-Forwarded-Host: api.test\r\nX-Forwarded-Method: " method "\r\n"             \
    "X-Forwarded-Port: 443\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Server: traefik-0\r\nX-Forwarded-Uri: " uri \
    "\r\nX-Real-Ip: 192.0.2.10\r\nAccept-Encoding: gzip\r\nConnection: close\r\n"
#define BEARER "Authorization: Bearer %s\r\n"

Test(documented, traefik)
{
    static const struct question q[] = {
        {"public", TRAEFIK("GET", "/public/hello"), 200},
        {"no token", TRAEFIK("GET", "/documents/1"), 401},
        {"alice", TRAEFIK("GET", "/documents/1?x=1") BEARER, 200},
        {"the client's method counts", TRAEFIK("DELETE", "/documents/1") BEARER, 405},
        {"a forged name", TRAEFIK("GET", "/public/hello") "X-Subzero-Subject: root\r\n", 200},
        {"nginx's headers change nothing",
         TRAEFIK("GET", "/documents/1") "X-Original-URI: /public/x\r\nX-Original-Method: GET\r\n", 401},
        {"not canonical", TRAEFIK("GET", "/public/../documents/1") BEARER, 400},
        {"no target",
         "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: a\r\n"
         "X-Forwarded-Proto: http\r\nConnection: close\r\n",
         400},
        {"two targets", TRAEFIK("GET", "/public/a") "X-Forwarded-Uri: /public/b\r\n", 400},
    };
    check("traefik", q, SZ_COUNT(q));
}

#define ENVOY(method, path)                                                                                 \
    method " " path " HTTP/1.1\r\nHost: api.test\r\nContent-Length: 0\r\nX-Forwarded-For: 192.0.2.10\r\n"   \
           "X-Forwarded-Proto: https\r\nX-Envoy-Internal: true\r\nX-Envoy-Expected-Rq-Timeout-Ms: 1000\r\n" \
           "Connection: close\r\n"

Test(documented, envoy)
{
    static const struct question q[] = {
        {"public", ENVOY("GET", "/public/hello"), 200},
        {"no token", ENVOY("GET", "/documents/1"), 401},
        {"alice", ENVOY("GET", "/documents/1?x=1") BEARER, 200},
        {"the client's method counts", ENVOY("DELETE", "/documents/1") BEARER, 405},
        {"a forged name", ENVOY("GET", "/public/hello") "X-Subzero-Subject: root\r\n", 200},
        {"other dialects' headers change nothing",
         ENVOY("GET", "/documents/1") "X-Original-URI: /public/x\r\nX-Forwarded-Uri: /public/x\r\n", 401},
        {"not canonical", ENVOY("GET", "/public/../documents/1") BEARER, 400},
    };
    check("envoy", q, SZ_COUNT(q));
}
