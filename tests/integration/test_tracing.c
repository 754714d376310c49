/*
 * Traces of the running gateway, at a collector that the test plays: whole ones with the right parents; sampling; and a
 * collector that is slow, refuses, is gone or answers too much, of which no request notices anything.
 */
#include "integration/harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/otlp.h"

#define ID     "0af7651916cd43dd8448eb211c80319c"
#define CALLER "b7ad6b7169203331"

#define CONFIG(tracing)                                                                    \
    "listen:\n"                                                                            \
    "  - {address: \"127.0.0.1:{port}\"}\n"                                                \
    "  - {address: \"127.0.0.1:{port2}\", mode: decide, dialect: nginx}\n"                 \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                            \
    "workers: 2\n"                                                                         \
    "trusted_proxies: [127.0.0.1/32]\n"                                                    \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML "routes:\n" \
    "  - {id: doc, match: {path: \"/doc/{id}\"}, auth: {issuers: [test]}, upstream: up}\n" \
    "  - {id: pub, match: {path: \"/pub/*\"}, public: true, upstream: up}\n"               \
    "tracing: {endpoint: \"http://127.0.0.1:COLLECTOR\", " tracing "}\n"

static struct gateway gateway;
static struct upstream *up, *collector;
static struct issuer issuer;
static char *token;
static struct otlp got;

static void setup(void)
{
    up = upstream_start(NULL);
    collector = upstream_start(NULL);
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice-secret-subject", 3600, NULL);
}

static void teardown(void)
{
    upstream_stop(&up);
    upstream_stop(&collector);
    otlp_free(&got);
    free(token);
    scratch_remove();
}

TestSuite(tracing, .init = setup, .fini = teardown, .timeout = 120);

static void start(const char *config)
{
    static const char place[] = "COLLECTOR";
    char text[4096];
    const char *at = strstr(config, place);
    snprintf(text, sizeof(text), "%.*s%u%s", (int)(at - config), config, upstream_port(collector),
             at + sizeof(place) - 1);
    cr_assert(gateway_start(&gateway, text, upstream_port(up)));
}

static int ask(const char *target, const char *bearer, const char *fields)
{
    return http1_ask(gateway.port, "GET", target, bearer, fields, NULL, NULL);
}

/* Everything that has been posted; and that it was said as the protocol says. */
static void read_posts(void)
{
    otlp_free(&got);
    for (size_t i = 0; i < upstream_count(collector); i++) {
        const struct upstream_request *r = upstream_at(collector, i);
        char type[64] = "";
        cr_assert(upstream_wait(collector, i + 1, SZ_SEC(10)));
        upstream_field(r, "content-type", type, sizeof(type));
        cr_expect_str_eq(type, "application/x-protobuf");
        cr_expect(sz_eq(r->method, SZ_S("POST")) && sz_eq(r->target, SZ_S("/v1/traces")));
        cr_assert(otlp_read(&got, r->body), "post %zu", i);
    }
}

static double spans(const char *result)
{
    char sample[128];
    snprintf(sample, sizeof(sample), "subzero_trace_spans_total{result=\"%s\"}", result);
    double n = gateway_metric(&gateway, sample);
    return n < 0 ? 0 : n;
}

/* Until so many are exported (or whatever `result` says). */
static void wait_for(const char *result, double n)
{
    for (int i = 0; i < 1500 && spans(result) < n; i++)
        usleep(20000);
    cr_assert_geq(spans(result), n, "%s", result);
}

static const struct otlp_span *child(const struct otlp_span *parent, const char *name)
{
    for (size_t i = 0; i < got.n; i++) {
        if (strcmp(got.v[i].name, name) == 0 && strcmp(got.v[i].parent, parent->id) == 0 &&
            strcmp(got.v[i].trace_id, parent->trace_id) == 0)
            return &got.v[i];
    }
    return NULL;
}

Test(tracing, a_request_is_a_tree_that_goes_on_upstream)
{
    start(CONFIG("sample: all"));
    cr_expect_eq(ask("/doc/7?q=secret-query", token,
                     "traceparent: 00-" ID "-" CALLER "-01\r\ntracestate: rojo=1\r\nX-Secret: secret-field\r\n"),
                 200);
    wait_for("exported", 4);
    read_posts();
    const struct otlp_span *root = otlp_find(&got, "GET /doc/{id}");
    cr_assert_not_null(root);
    cr_expect_str_eq(root->trace_id, ID);
    cr_expect_str_eq(root->parent, CALLER);
    cr_expect(root->kind == 2 && root->remote);
    cr_expect(otlp_has(root, "http.route=/doc/{id}") && otlp_has(root, "http.response.status_code=200"));
    cr_expect(otlp_has(root, "subzero.decision=allow") && otlp_has(root, "subzero.reason=allowed"));
    const struct otlp_span *identify = child(root, "identify"), *upstream = child(root, "upstream");
    cr_assert(child(root, "admit") != NULL && identify != NULL && child(root, "authorize") != NULL);
    cr_assert_not_null(upstream);
    cr_expect(otlp_has(identify, "subzero.cache.layer=l3"));
    cr_expect(otlp_has(upstream, "subzero.upstream=up") && upstream->kind == 3);
    cr_expect(upstream->start >= identify->end && upstream->end <= root->end);

    char sent[128] = "", state[64] = "", wanted[128];
    upstream_field(upstream_at(up, 0), "traceparent", sent, sizeof(sent));
    upstream_field(upstream_at(up, 0), "tracestate", state, sizeof(state));
    snprintf(wanted, sizeof(wanted), "00-" ID "-%s-01", upstream->id);
    cr_expect_str_eq(sent, wanted);
    cr_expect_str_eq(state, "rojo=1");
    cr_expect(gateway_logged(&gateway, "\"trace_id\":\"" ID "\""));

    cr_expect_eq(ask("/doc/7", token, NULL), 200);
    wait_for("exported", 8);
    upstream_wait(collector, 2, SZ_SEC(10));
    read_posts();
    identify = NULL;
    for (size_t i = 0; i < got.n; i++) {
        if (strcmp(got.v[i].name, "identify") == 0)
            identify = &got.v[i];
    }
    cr_expect(identify != NULL && otlp_has(identify, "subzero.cache.layer=l1"));

    /* Z10: nothing of the client's is in it. */
    for (size_t i = 0; i < upstream_count(collector); i++) {
        struct sz_slice body = upstream_at(collector, i)->body;
        cr_expect_null(memmem(body.p, body.n, "secret", 6));
        cr_expect_null(memmem(body.p, body.n, "/doc/7", 6));
        cr_expect_null(memmem(body.p, body.n, token + strlen(token) - 20, 20));
    }
    stop_gateway(&gateway);
}

Test(tracing, refusals_and_decisions_are_traces_too)
{
    start(CONFIG("paths: true, service_name: edge, resource: {deployment.environment: test}"));
    cr_expect_eq(ask("/doc/7", "not-a-token", "traceparent: nonsense\r\ntracestate: rojo=1\r\n"), 401);
    cr_expect_eq(ask("/nowhere", NULL, NULL), 404);
    cr_expect_eq(http1_ask(gateway.port2, "GET", "/", token,
                           "X-Original-URI: /doc/9\r\nX-Original-Method: GET\r\ntraceparent: 00-" ID "-" CALLER
                           "-01\r\n",
                           NULL, NULL),
                 200);
    stop_gateway(&gateway); /* a drain sends what is left */
    read_posts();
    cr_expect_not_null(memmem(got.resource.p, got.resource.n, "service.name=edge\n", 18));
    cr_expect_not_null(memmem(got.resource.p, got.resource.n, "deployment.environment=test\n", 28));
    bool refused = false, lost = false, decided = false;
    for (size_t i = 0; i < got.n; i++) {
        const struct otlp_span *s = &got.v[i];
        refused = refused || (s->kind == 2 && otlp_has(s, "subzero.reason=malformed_token") && s->parent[0] == '\0' &&
                              s->status == 0 && otlp_has(s, "url.path=/doc/7"));
        lost = lost || (strcmp(s->name, "GET") == 0 && otlp_has(s, "subzero.reason=no_route"));
        decided = decided || (strcmp(s->trace_id, ID) == 0 && s->kind == 2 && otlp_has(s, "url.path=/doc/9"));
        cr_expect_str_neq(s->name, "upstream", "nothing went upstream");
    }
    cr_expect(refused && lost && decided, "%d %d %d", refused, lost, decided);
}

Test(tracing, callers_decide_and_the_rest_is_a_share)
{
    start(CONFIG("sample: 0.1, queue: 65536"));
    for (int i = 0; i < 400; i++)
        cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(ask("/pub/2", NULL, "traceparent: 00-" ID "-" CALLER "-01\r\n"), 200);
        cr_assert_eq(ask("/pub/3", NULL, "traceparent: 00-" ID "-" CALLER "-00\r\n"), 200);
    }
    char sent[128] = "";
    upstream_field(upstream_at(up, 439), "traceparent", sent, sizeof(sent));
    cr_expect_str_eq(sent, "00-" ID "-" CALLER "-00", "what nobody records is passed on as it is");
    stop_gateway(&gateway);
    read_posts();
    unsigned own = 0, theirs = 0;
    for (size_t i = 0; i < got.n; i++) {
        own += got.v[i].kind == 2 && got.v[i].parent[0] == '\0';
        theirs += got.v[i].kind == 2 && got.v[i].parent[0] != '\0';
    }
    cr_expect(own >= 10 && own <= 90, "%u of 400", own);
    cr_expect_eq(theirs, 20);
}

Test(tracing, strangers_do_not_say_which_trace_it_is)
{
    start(CONFIG("context: trusted"));
    struct http1 c;
    struct http1_response r = {0};
    cr_assert(http1_open_from(&c, "127.0.0.2", gateway.port));
    cr_assert(http1_printf(&c, "GET /pub/1 HTTP/1.1\r\nHost: a\r\ntraceparent: 00-" ID "-" CALLER "-01\r\n"
                               "tracestate: rojo=1\r\n\r\n"));
    cr_assert_eq(http1_read(&c, "GET", SZ_SEC(10), &r), 0);
    cr_expect_eq(r.status, 200);
    http1_response_fini(&r);
    http1_close(&c);
    cr_expect_eq(ask("/pub/1", NULL, "traceparent: 00-" ID "-" CALLER "-01\r\n"), 200);
    char sent[128] = "";
    upstream_field(upstream_at(up, 0), "traceparent", sent, sizeof(sent));
    cr_expect_null(strstr(sent, ID));
    cr_expect_eq(upstream_field_count(upstream_at(up, 0), "tracestate"), 0);
    upstream_field(upstream_at(up, 1), "traceparent", sent, sizeof(sent));
    cr_expect_not_null(strstr(sent, ID));
    stop_gateway(&gateway);
}

Test(tracing, context_is_passed_on_without_a_collector)
{
    char text[] = CONFIG("sample: all");
    *strstr(text, "tracing:") = '\0';
    cr_assert(gateway_start(&gateway, text, upstream_port(up)));
    char sent[128] = "";
    cr_expect_eq(ask("/pub/1", NULL, "traceparent: 00-" ID "-" CALLER "-01\r\ntracestate: a=1\r\ntracestate: b=2\r\n"),
                 200);
    upstream_field(upstream_at(up, 0), "traceparent", sent, sizeof(sent));
    cr_expect_str_eq(sent, "00-" ID "-" CALLER "-01");
    cr_expect_eq(upstream_field_count(upstream_at(up, 0), "tracestate"), 2);
    cr_expect_eq(ask("/pub/1", NULL, "traceparent: 00-" ID "-" CALLER "-01\r\ntracestate: a=1,a=2\r\n"), 200);
    cr_expect_eq(upstream_field_count(upstream_at(up, 1), "tracestate"), 0, "a list that is none goes alone");
    cr_expect_eq(upstream_field_count(upstream_at(up, 1), "traceparent"), 1);
    cr_expect_eq(
        ask("/pub/1", NULL, "traceparent: 00-" ID "-" CALLER "-01\r\ntraceparent: 00-" ID "-" CALLER "-01\r\n"), 200);
    upstream_field(upstream_at(up, 2), "traceparent", sent, sizeof(sent));
    cr_expect_eq(upstream_field_count(upstream_at(up, 2), "traceparent"), 1);
    cr_expect_null(strstr(sent, ID), "twice is never");
    stop_gateway(&gateway);
}

/* Whatever the collector does: requests are answered, memory stays, what is lost is counted. */
static void ordeal(const struct upstream_script *script, bool gone)
{
    start(CONFIG("queue: 64, timeout: 500ms, breaker: {failures: 3, open: 500ms}"));
    if (gone)
        upstream_refuse(collector);
    upstream_play(collector, script);
    cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    long before = gateway_status_kb(&gateway, "VmRSS");
    for (int i = 0; i < 1500; i++)
        cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    wait_for("full", 100);
    long grown = gateway_status_kb(&gateway, "VmRSS") - before;
    cr_expect_lt(grown, 64 * 1024, "%ld kB more", grown); /* a sanitizer keeps what was freed for a while */
    upstream_play(collector, NULL);
    if (gone)
        upstream_accept(collector);
    for (int i = 0; i < 3000 && spans("exported") < 3; i++) { /* it comes back by itself */
        cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
        usleep(20000);
    }
    cr_expect_geq(spans("exported"), 3);
    cr_expect_eq(ask("/doc/1", token, NULL), 200);
    stop_gateway(&gateway);
}

Test(tracing, a_collector_that_is_silent)
{
    ordeal(&(struct upstream_script){.fault_at = UPSTREAM_AT_HEAD, .fault = UPSTREAM_HANG}, false);
}

Test(tracing, a_collector_that_is_out_of_service)
{
    ordeal(&(struct upstream_script){.answer = SZ_S("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")},
           false);
}

Test(tracing, a_collector_that_is_gone)
{
    ordeal(NULL, true);
}

Test(tracing, a_collector_that_answers_without_end)
{
    start(CONFIG("queue: 64, timeout: 2s"));
    upstream_play(collector, &(struct upstream_script){.stream = 1u << 30});
    for (int i = 0; i < 50; i++)
        cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    wait_for("failed", 100);
    cr_expect_lt(upstream_sent(collector), 64u << 20);
    stop_gateway(&gateway);
}

Test(tracing, a_collector_that_refuses_for_good)
{
    start(CONFIG("sample: all"));
    upstream_play(collector,
                  &(struct upstream_script){.answer = SZ_S("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")});
    cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    wait_for("failed", 3);
    cr_expect(gateway_logged(&gateway, "takes no spans"));
    cr_expect_eq(upstream_count(collector), 1, "a plain no is not asked again");
    char *breakers = gateway_admin(&gateway, "/breakers");
    cr_expect_not_null(strstr(breakers, "{\"dependency\":\"otlp\",\"state\":\"closed\",\"failures\":0,"), "%s",
                       breakers);
    free(breakers);
    stop_gateway(&gateway);
}

Test(tracing, its_key_goes_along_and_shows_nowhere)
{
    scratch_write("otlp.headers", SZ_S("x-api-key=s3cret%20key\n"));
    start(CONFIG("headers_file: \"{dir}/otlp.headers\""));
    cr_assert_eq(ask("/pub/1", NULL, NULL), 200);
    wait_for("exported", 3);
    char key[64] = "";
    upstream_field(upstream_at(collector, 0), "x-api-key", key, sizeof(key));
    cr_expect_str_eq(key, "s3cret key");
    char *config = gateway_admin(&gateway, "/config");
    cr_expect_null(strstr(config, "s3cret"));
    free(config);
    stop_gateway(&gateway);
    char *log = file_read(gateway.proc.log, NULL);
    cr_expect_null(strstr(log, "s3cret"));
    free(log);
}
