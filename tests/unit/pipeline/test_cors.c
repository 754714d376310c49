/* CORS: what is answered here, what browsers may read, and that nothing of it opens a guarded route. */
#include <criterion/criterion.h>

#include "unit/pipeline/kit.h"

static const char routes[] =
    "  - id: page\n"
    "    match: {methods: [GET, POST], path: /page}\n"
    "    auth: {issuers: [one]}\n"
    "    cors: {origins: ['https://app.example'], methods: [GET, POST], headers: [authorization], expose: [x-total],"
    " credentials: true, max_age: 10m}\n"
    "    upstream: up\n"
    "  - {id: open, match: {path: /open}, public: true, cors: {origins: ['*'], methods: [GET]}, upstream: up}\n"
    "  - {id: closed, match: {path: /closed}, auth: {issuers: [one]}, upstream: up}\n";

static struct kit kit;

static void open_kit(void)
{
    kit_open(&kit, routes);
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(cors, .init = open_kit, .fini = close_kit);

static struct kit_request preflight(const char *target, const char *origin)
{
    struct kit_request r = {.method = "OPTIONS", .target = target};
    r.headers[0] = "access-control-request-method: POST";
    r.headers[1] = origin;
    return r;
}

Test(cors, preflight_is_answered_here)
{
    struct kit_request r = preflight("/page", "origin: https://app.example");
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_not(txn->proxy);
    cr_assert_eq(txn->answer.status, 204);
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-origin"), "https://app.example");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-methods"), "GET, POST");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-headers"), "authorization");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-credentials"), "true");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-max-age"), "600");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "vary"), "Origin");
    kit_end(txn);
}

Test(cors, another_origin_learns_nothing)
{
    struct kit_request r = preflight("/page", "origin: https://evil.example");
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_not(txn->proxy);
    cr_assert_null(kit_header(&kit, &txn->respond, "access-control-allow-origin"));
    cr_assert_null(kit_header(&kit, &txn->respond, "access-control-allow-methods"));
    kit_end(txn);
}

Test(cors, plain_options_needs_auth)
{
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.method = "OPTIONS", .target = "/closed"}),
                 SZ_REASON_missing_token);
    /* no CORS on the route: a preflight is a plain OPTIONS */
    struct kit_request r = preflight("/closed", "origin: https://app.example");
    cr_assert_eq(kit_reason(&kit, &r), SZ_REASON_missing_token);
    /* without Origin it is none */
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.method = "OPTIONS",
                                                        .target = "/page",
                                                        .headers = {"access-control-request-method: GET"}}),
                 SZ_REASON_method_not_allowed);
}

Test(cors, refusals_can_be_read)
{
    struct sz_txn *txn =
        kit_run(&kit, &(struct kit_request){.target = "/page", .headers = {"origin: https://app.example"}});
    cr_assert_eq(txn->answer.status, 401);
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-origin"), "https://app.example");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-expose-headers"), "x-total");
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "vary"), "Origin");
    kit_end(txn);
}

Test(cors, any_origin_is_a_star_without_credentials)
{
    struct sz_txn *txn =
        kit_run(&kit, &(struct kit_request){.target = "/open", .headers = {"origin: https://x.example"}});
    cr_assert(txn->proxy);
    cr_assert_str_eq(kit_header(&kit, &txn->respond, "access-control-allow-origin"), "*");
    cr_assert_null(kit_header(&kit, &txn->respond, "access-control-allow-credentials"));
    kit_end(txn);
}
