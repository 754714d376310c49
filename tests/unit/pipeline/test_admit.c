/* Admission: which requests are answered here, which route judges them, and which have no single reading. */
#include <criterion/criterion.h>

#include "unit/pipeline/kit.h"

static const char routes[] =
    "  - {id: any, match: {path: '/v1/{name}'}, auth: {issuers: [one]}, upstream: up}\n"
    "  - {id: purge, match: {path: '/v1/all:purge'}, auth: {issuers: [one], scopes: [admin]}, upstream: up}\n"
    "  - {id: self, match: {path: '/v1/@me'}, auth: {issuers: [one], scopes: [admin]}, upstream: up}\n"
    "  - {id: star, match: {path: '/v1/a%2Ab'}, auth: {issuers: [one], scopes: [admin]}, upstream: up}\n"
    "  - {id: tenants, match: {path: '/t/{tenant}/logo'}, public: true, upstream: up}\n"
    "  - {id: admin, match: {path: '/t/admin/*'}, auth: {issuers: [one], scopes: [admin]}, upstream: up}\n"
    "  - {id: files, match: {path: '/files/*'}, public: true, upstream: up}\n"
    "  - {id: slow, match: {path: /slow}, public: true, timeout: 3s, upstream: up}\n"
    "  - id: page\n"
    "    match: {path: /page}\n"
    "    auth: {issuers: [one]}\n"
    "    cors: {origins: ['https://app.example']}\n"
    "    upstream: up\n";

static struct kit kit;

static void open_kit(void)
{
    kit_open(&kit, routes);
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(admit, .init = open_kit, .fini = close_kit);

static void expect(const char *target, struct sz_slice token, enum sz_reason want)
{
    enum sz_reason got = kit_reason(&kit, &(struct kit_request){.target = target, .token = token});
    cr_expect_eq(got, want, "%s: %s instead of %s", target, sz_reason_row(got)->name, sz_reason_row(want)->name);
}

/*
 * An upstream that decodes "%3A" or drops ";x" serves the resource of the guarded pattern: a request that only the
 * spelling takes to another route has two readings.
 */
Test(admit, a_spelling_never_chooses_the_route)
{
    static const char *const two_readings[] = {
        "/v1/all%3Apurge", "/v1/all%3apurge",      "/v1/%40me",          "/v1/a*b",           "/v1/@me;x=1",
        "/v1/%40me;x",     "/v1/all:purge%3B.css", "/v1/all:purge;.css", "/t/admin;a=b/logo", "/t/admin%3b/logo",
    };
    struct sz_slice plain = kit_token(&kit, ""), admin = kit_token(&kit, "\"scope\":\"admin\"");
    expect("/v1/all:purge", plain, SZ_REASON_insufficient_scope);
    expect("/v1/@me", plain, SZ_REASON_insufficient_scope);
    expect("/v1/a%2ab", plain, SZ_REASON_insufficient_scope);
    expect("/v1/a%2Ab", admin, SZ_REASON_allowed);
    for (size_t i = 0; i < SZ_COUNT(two_readings); i++)
        expect(two_readings[i], plain, SZ_REASON_ambiguous_path);
}

/* Where both readings end at one route, nothing is refused. */
Test(admit, other_spellings_are_left_alone)
{
    static const char *const one_reading[] = {
        "/v1/a%3Ab", "/v1/a:b", "/v1/x;v=1", "/v1/%40you", "/v1/a%20b", "/v1/%C3%A9", "/v1/100%25", "/v1/a%3Bb",
    };
    struct sz_slice plain = kit_token(&kit, "");
    for (size_t i = 0; i < SZ_COUNT(one_reading); i++)
        expect(one_reading[i], plain, SZ_REASON_allowed);
    expect("/files/a;b/c%2Bd", SZ_NONE, SZ_REASON_allowed);
    expect("/t/acme;x/logo", SZ_NONE, SZ_REASON_allowed);
    expect("/nowhere/a;b", SZ_NONE, SZ_REASON_no_route);
}

Test(admit, a_route_has_a_deadline_of_its_own)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/slow"});
    cr_assert_eq(sz_between(txn->started, txn->deadline).us, SZ_SEC(3).us);
    kit_end(txn);
    txn = kit_run(&kit, &(struct kit_request){.target = "/files/x"});
    cr_assert_eq(sz_between(txn->started, txn->deadline).us, SZ_SEC(10).us);
    kit_end(txn);
}

/* To a front proxy any 2xx means "let it through": a preflight answered there would send the request upstream. */
Test(admit, a_preflight_is_no_yes_on_a_decide_listener)
{
    struct kit_request r = {.method = "OPTIONS", .target = "/page", .decide = true};
    r.headers[0] = "origin: https://app.example";
    r.headers[1] = "access-control-request-method: GET";
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_not(txn->decision.allow);
    cr_assert_eq(txn->decision.reason, SZ_REASON_missing_token);
    cr_assert_eq(txn->answer.status, 401);
    kit_end(txn);
}

/* Some upstreams fold the case of a method: "trace" is not to pass where TRACE may not, nor "get" with a GET's body. */
Test(admit, methods_are_upper_case)
{
    static const char *const odd[] = {"trace", "Connect", "get", "POST!", "A_B", "1"};
    for (size_t i = 0; i < SZ_COUNT(odd); i++) {
        struct kit_request r = {.method = odd[i], .target = "/files/x"};
        cr_expect_eq(kit_reason(&kit, &r), SZ_REASON_method_not_allowed, "%s", odd[i]);
    }
    cr_expect_eq(kit_reason(&kit, &(struct kit_request){.method = "PROPFIND", .target = "/files/x"}),
                 SZ_REASON_allowed);
}

/* Requests are told apart by their number also where the proxy in front of us has named them already. */
Test(admit, every_request_is_counted)
{
    struct kit_request r = {.target = "/files/x", .peer = "10.0.0.9"};
    r.headers[0] = "x-request-id: given";
    struct sz_txn *first = kit_run(&kit, &r), *second = kit_run(&kit, &r);
    cr_assert_str_eq(kit_header(&kit, &first->forward.headers, "x-request-id"), "given");
    cr_assert_str_neq(kit_header(&kit, &first->forward.headers, "traceparent"),
                      kit_header(&kit, &second->forward.headers, "traceparent"));
    cr_assert_eq(kit.worker.request_seq, 2);
    kit_end(first);
    kit_end(second);
}
