/* Addresses before authentication: their share, what a refused credential costs, who is exempt. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "unit/pipeline/kit.h"

static const char routes[] = "  - {id: a, match: {path: /a}, auth: {issuers: [one]}, upstream: up}\n"
                             "  - {id: open, match: {path: /open}, public: true, upstream: up}\n"
                             "  - id: slow\n"
                             "    match: {path: /slow}\n"
                             "    auth: {issuers: [one]}\n"
                             "    authorize: {user: 'user:x', relation: r, object: 'thing:later'}\n"
                             "    upstream: up\n"
                             "limits: {per_address: {rate: 1/1s, burst: 10, failure_cost: 4, in_flight: 2}}\n";

#define LIMITED SZ_REASON_rate_limited
#define BAD     SZ_S("aaaa.bbbb.cccc")

static struct kit kit;

static void open_kit(void)
{
    kit_open(&kit, routes);
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(limit_address, .init = open_kit, .fini = close_kit);

static enum sz_reason ask(const char *target, const char *peer, struct sz_slice token, const char *header)
{
    return kit_reason(&kit, &(struct kit_request){.target = target, .peer = peer, .token = token, .headers = {header}});
}

Test(limit_address, each_has_its_share)
{
    for (int i = 0; i < 10; i++)
        cr_expect_eq(ask("/open", "198.51.100.1", SZ_NONE, NULL), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "198.51.100.1", SZ_NONE, NULL), LIMITED);
    cr_expect_eq(ask("/nowhere", "198.51.100.1", SZ_NONE, NULL), LIMITED, "also what is not served");
    cr_expect_eq(ask("/open", "198.51.100.2", SZ_NONE, NULL), SZ_REASON_allowed);
    fake_loop_advance(kit.loop, SZ_SEC(2));
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/open", .peer = "198.51.100.1"});
    cr_expect(txn->decision.allow);
    kit_end(txn);
}

Test(limit_address, a_refused_credential_counts_for_several)
{
    int refused = 0;
    while (ask("/a", "198.51.100.1", BAD, NULL) != LIMITED)
        refused++;
    cr_expect_eq(refused, 3, "%d", refused); /* 4 + 4 + what is left of ten */
    struct sz_slice good = kit_token(&kit, "");
    for (int i = 0; i < 10; i++)
        cr_expect_eq(ask("/a", "198.51.100.2", good, NULL), SZ_REASON_allowed);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(ask("/a", "198.51.100.3", SZ_NONE, NULL), SZ_REASON_missing_token,
                     "no credential, no verification");
    cr_expect_eq(ask("/a", "198.51.100.1", good, NULL), LIMITED);
}

Test(limit_address, a_trusted_proxy_is_exempt_and_its_clients_are_not)
{
    for (int i = 0; i < 30; i++)
        cr_expect_eq(ask("/a", "10.0.0.1", BAD, NULL), SZ_REASON_malformed_token);
    for (int i = 0; i < 10; i++)
        cr_expect_eq(ask("/open", "10.0.0.1", SZ_NONE, "x-forwarded-for: 203.0.113.9"), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "10.0.0.1", SZ_NONE, "x-forwarded-for: 203.0.113.9"), LIMITED);
    cr_expect_eq(ask("/open", "10.0.0.1", SZ_NONE, "x-forwarded-for: 10.9.9.9, 203.0.113.9"), LIMITED);
    cr_expect_eq(ask("/open", "10.0.0.1", SZ_NONE, "x-forwarded-for: 203.0.113.8, 203.0.113.9"), LIMITED);
}

Test(limit_address, ipv6_goes_by_64_and_by_48)
{
    char peer[64];
    int passed = 0;
    for (int i = 0; i < 11; i++) {
        snprintf(peer, sizeof(peer), "2001:db8:1:1::%x", i);
        passed += ask("/open", peer, SZ_NONE, NULL) == SZ_REASON_allowed;
    }
    cr_expect_eq(passed, 10);
    for (int i = 0; i < 300; i++) {
        snprintf(peer, sizeof(peer), "2001:db8:1:%x::1", i + 16);
        passed += ask("/open", peer, SZ_NONE, NULL) == SZ_REASON_allowed;
    }
    cr_expect_eq(passed, 160, "%d", passed);
    cr_expect_eq(ask("/open", "2001:db8:2::1", SZ_NONE, NULL), SZ_REASON_allowed);
}

Test(limit_address, so_many_at_once_and_no_more)
{
    struct sz_txn *txn[3];
    enum sz_step step;
    struct kit_request request = {.target = "/slow", .peer = "198.51.100.1", .token = kit_token(&kit, "")};
    for (int i = 0; i < 3; i++)
        kit_answer("thing:later", SZ_AUTHZ_DENIED, true);
    txn[0] = kit_start(&kit, &request, &step);
    cr_assert_eq(step, SZ_STEP_PARKED);
    txn[1] = kit_start(&kit, &(struct kit_request){.target = "/open", .peer = "198.51.100.1"}, &step);
    cr_expect(txn[1]->decision.allow);
    txn[2] = kit_start(&kit, &(struct kit_request){.target = "/open", .peer = "198.51.100.1"}, &step);
    cr_expect_eq(txn[2]->decision.reason, SZ_REASON_concurrency_limited);
    cr_expect_eq(txn[2]->answer.status, 429);
    kit_end(txn[2]);
    kit_end(txn[1]);
    cr_expect_eq(ask("/open", "198.51.100.1", SZ_NONE, NULL), SZ_REASON_allowed);
    kit_end(txn[0]);
    cr_expect_eq(ask("/open", "198.51.100.1", SZ_NONE, NULL), SZ_REASON_allowed);
}
