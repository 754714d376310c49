/* Rate limits of routes: whose bucket, in which order, what the client is told, what a dry run changes. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "subzero/metrics.h"
#include "unit/pipeline/kit.h"

static const char routes[] =
    "  - {id: a, match: {path: /a}, auth: {issuers: [one, two], audiences: [api]}, upstream: up, rate_limit: two}\n"
    "  - {id: b, match: {path: /b}, auth: {issuers: [one, two], audiences: [api]}, upstream: up, rate_limit: two}\n"
    "  - {id: both, match: {path: /both}, auth: {issuers: [one]}, upstream: up, rate_limit: [two, wide]}\n"
    "  - {id: client, match: {path: /client}, auth: {issuers: [one]}, upstream: up, rate_limit: client}\n"
    "  - {id: address, match: {path: /address}, public: true, upstream: up, rate_limit: address}\n"
    "  - {id: open, match: {path: /open}, public: true, upstream: up, rate_limit: two}\n"
    "  - {id: plan, match: {path: '/plan/{x}'}, auth: {issuers: [one]}, upstream: up, rate_limit: plan}\n"
    "  - {id: query, match: {path: '/query'}, public: true, upstream: up, rate_limit: query}\n"
    "  - {id: dry, match: {path: /dry}, auth: {issuers: [one]}, upstream: up, rate_limit: [dry, wide]}\n"
    "  - {id: window, match: {path: /window}, auth: {issuers: [one]}, upstream: up, rate_limit: window}\n"
    "  - {id: free, match: {path: /free}, public: true, upstream: up}\n"
    "rate_limits:\n"
    "  two: {algorithm: token_bucket, capacity: 2, refill: 1/10s, on_store_failure: closed}\n"
    "  wide: {algorithm: token_bucket, capacity: 100, refill: 100/60s, on_store_failure: closed}\n"
    "  client: {algorithm: token_bucket, capacity: 1, refill: 1/10s, key: client, on_store_failure: closed}\n"
    "  address: {algorithm: token_bucket, capacity: 1, refill: 1/10s, key: address, on_store_failure: closed}\n"
    "  plan: {algorithm: token_bucket, capacity: 1, refill: 1/10s, key: '{claims.plan}', on_store_failure: closed}\n"
    "  query: {algorithm: token_bucket, capacity: 1, refill: 1/10s, key: '{query.k}', on_store_failure: closed}\n"
    "  dry: {algorithm: token_bucket, capacity: 1, refill: 1/10s, dry_run: true, on_store_failure: closed}\n"
    "  window: {algorithm: sliding_window, limit: 2, window: 10s, on_store_failure: closed}\n";

static struct kit kit;
static struct sz_slice alice, bob;

static void open_kit(void)
{
    kit_open(&kit, routes);
    alice = kit_token(&kit, "");
    bob = kit_token_of(&kit, "https://two.example/", "api", 60, "");
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(limit, .init = open_kit, .fini = close_kit);

static enum sz_reason ask(const char *target, struct sz_slice token)
{
    return kit_reason(&kit, &(struct kit_request){.target = target, .token = token});
}

static enum sz_reason ask_from(const char *target, const char *peer, const char *header)
{
    return kit_reason(&kit, &(struct kit_request){.target = target, .peer = peer, .headers = {header}});
}

#define YES SZ_REASON_allowed
#define NO  SZ_REASON_rate_limited

Test(limit, each_issuer_and_subject_has_a_bucket_on_each_route)
{
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), NO);
    cr_expect_eq(ask("/b", alice), YES, "another route");
    cr_expect_eq(ask("/a", bob), YES, "the same sub of another issuer");
    fake_loop_advance(kit.loop, SZ_SEC(10));
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), NO);
}

Test(limit, a_refused_token_costs_no_bucket)
{
    for (int i = 0; i < 5; i++)
        cr_expect_eq(ask("/a", SZ_S("aaaa.bbbb.cccc")), SZ_REASON_malformed_token);
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), YES);
}

Test(limit, all_have_to_allow_and_a_refusal_charges_nothing_further)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/both", .token = alice});
    cr_expect_str_eq(kit_header(&kit, &txn->respond, "ratelimit"), "\"two\";r=1;t=10, \"wide\";r=99;t=1");
    cr_expect_str_eq(kit_header(&kit, &txn->respond, "ratelimit-policy"), "\"two\";q=2;w=20, \"wide\";q=100;w=60");
    kit_end(txn);
    cr_expect_eq(ask("/both", alice), YES);
    txn = kit_run(&kit, &(struct kit_request){.target = "/both", .token = alice});
    cr_expect_eq(txn->decision.reason, NO);
    cr_expect_eq(txn->decision.limit->name.n, 3);
    cr_expect_eq(txn->answer.status, 429);
    cr_expect_str_eq(kit_header(&kit, &txn->answer.headers, "retry-after"), "10");
    cr_expect_str_eq(kit_header(&kit, &txn->respond, "ratelimit"), "\"two\";r=0;t=20");
    kit_end(txn);
    fake_loop_advance(kit.loop, SZ_SEC(10));
    txn = kit_run(&kit, &(struct kit_request){.target = "/both", .token = alice});
    cr_expect_not_null(strstr(kit_header(&kit, &txn->respond, "ratelimit"), "\"wide\";r=99;"), "the refused one cost");
    kit_end(txn);
}

Test(limit, retry_after_is_rounded_up)
{
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), YES);
    fake_loop_advance(kit.loop, SZ_MS(8999));
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/a", .token = alice});
    cr_expect_str_eq(kit_header(&kit, &txn->answer.headers, "retry-after"), "2");
    kit_end(txn);
}

Test(limit, nginx_gets_a_status_that_it_understands)
{
    const struct kit_request request = {.target = "/client", .token = alice, .decide = true};
    cr_expect_eq(kit_reason(&kit, &request), YES);
    struct sz_txn *txn = kit_run(&kit, &request);
    cr_expect_eq(txn->answer.status, 403);
    cr_expect_str_eq(kit_header(&kit, &txn->answer.headers, "x-subzero-status"), "429");
    cr_expect_str_eq(kit_header(&kit, &txn->answer.headers, "x-subzero-reason"), "rate_limited");
    cr_expect_str_eq(kit_header(&kit, &txn->answer.headers, "retry-after"), "10");
    kit_end(txn);
}

Test(limit, clients_of_one_subject_are_apart)
{
    struct sz_slice app = kit_token(&kit, "\"client_id\":\"app\""), web = kit_token(&kit, "\"client_id\":\"web\"");
    cr_expect_eq(ask("/client", app), YES);
    cr_expect_eq(ask("/client", app), NO);
    cr_expect_eq(ask("/client", web), YES);
    cr_expect_eq(ask("/client", alice), YES, "no client: the subject");
    cr_expect_eq(ask("/client", alice), NO);
}

Test(limit, addresses_are_those_that_a_trusted_proxy_names)
{
    cr_expect_eq(ask_from("/address", "198.51.100.1", NULL), YES);
    cr_expect_eq(ask_from("/address", "198.51.100.1", "x-forwarded-for: 203.0.113.9"), NO, "anybody can say that");
    cr_expect_eq(ask_from("/address", "198.51.100.1", "forwarded: for=203.0.113.9"), NO);
    cr_expect_eq(ask_from("/address", "198.51.100.1", "x-real-ip: 203.0.113.9"), NO);
    cr_expect_eq(ask_from("/address", "10.0.0.1", "x-forwarded-for: 203.0.113.9"), YES);
    cr_expect_eq(ask_from("/address", "10.0.0.1", "x-forwarded-for: 203.0.113.9"), NO);
    cr_expect_eq(ask_from("/address", "10.0.0.1", "x-forwarded-for: 1.2.3.4, 203.0.113.9"), NO, "prepended");
    cr_expect_eq(ask_from("/address", "10.0.0.2", "x-forwarded-for: 5.6.7.8, 10.0.0.9, 203.0.113.9"), NO);
}

Test(limit, a_proxy_that_names_nobody_is_not_limited_itself)
{
    for (int i = 0; i < 20; i++) {
        cr_expect_eq(ask_from("/address", "10.0.0.1", NULL), YES);
        cr_expect_eq(ask_from("/open", "10.0.0.1", "x-forwarded-for: 10.1.2.3"), YES);
    }
}

Test(limit, an_ipv6_client_is_its_64)
{
    cr_expect_eq(ask_from("/address", "2001:db8:1:2::1", NULL), YES);
    cr_expect_eq(ask_from("/address", "2001:db8:1:2:ffff::1", NULL), NO);
    cr_expect_eq(ask_from("/address", "2001:db8:1:3::1", NULL), YES);
}

Test(limit, where_nobody_is_known_the_address_is)
{
    cr_expect_eq(ask_from("/open", "198.51.100.1", NULL), YES);
    cr_expect_eq(ask_from("/open", "198.51.100.1", NULL), YES);
    cr_expect_eq(ask_from("/open", "198.51.100.1", NULL), NO);
    cr_expect_eq(ask_from("/open", "198.51.100.2", NULL), YES);
}

Test(limit, tenant_headers_of_a_client_are_nothing)
{
    cr_expect_eq(ask_from("/open", "198.51.100.1", "x-subzero-tenant: a"), YES);
    cr_expect_eq(ask_from("/open", "198.51.100.1", "x-subzero-tenant: b"), YES);
    cr_expect_eq(ask_from("/open", "198.51.100.1", "x-subzero-tenant: c"), NO);
}

Test(limit, templates_choose_the_bucket)
{
    struct sz_slice gold = kit_token(&kit, "\"plan\":\"gold\""), tin = kit_token(&kit, "\"plan\":\"tin\"");
    cr_expect_eq(ask("/plan/1", gold), YES);
    cr_expect_eq(ask("/plan/2", gold), NO, "the path is no part of it");
    cr_expect_eq(ask("/plan/1", tin), YES);
    cr_expect_eq(ask("/plan/1", alice), YES, "all without a value share one");
    cr_expect_eq(ask("/plan/2", alice), NO);
    cr_expect_eq(ask_from("/query?k=1", "198.51.100.1", NULL), YES);
    cr_expect_eq(ask_from("/query?k=1", "198.51.100.1", NULL), NO);
    cr_expect_eq(ask_from("/query?k=1&k=2", "198.51.100.1", NULL), SZ_REASON_bad_request);
}

Test(limit, a_dry_run_counts_and_refuses_nothing)
{
    const char *values[] = {"dry", "rate_limited", "deny"};
    for (int i = 0; i < 3; i++) {
        struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/dry", .token = alice});
        cr_expect(txn->decision.allow);
        cr_expect_null(strstr(kit_header(&kit, &txn->respond, "ratelimit"), "dry"));
        kit_end(txn);
    }
    cr_expect_eq(sz_counter_read(sz_series(SZ_METRIC_limits, values)), 2);
}

Test(limit, a_window_slides)
{
    cr_expect_eq(ask("/window", alice), YES);
    cr_expect_eq(ask("/window", alice), YES);
    cr_expect_eq(ask("/window", alice), NO);
    fake_loop_advance(kit.loop, SZ_SEC(14)); /* 6/10 of the window before still count: 1.2 */
    cr_expect_eq(ask("/window", alice), YES);
    cr_expect_eq(ask("/window", alice), NO);
}

Test(limit, routes_without_one_say_nothing)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/free"});
    cr_expect_null(kit_header(&kit, &txn->respond, "ratelimit"));
    kit_end(txn);
}

/* A reload with the same policies keeps the buckets; another version begins anew. */
Test(limit, buckets_outlive_a_reload)
{
    cr_expect_eq(ask("/a", alice), YES);
    cr_expect_eq(ask("/a", alice), YES);
    kit_reload(&kit, routes);
    cr_expect_eq(ask("/a", alice), NO);
    char *version = strdup(routes), *at = strstr(version, "refill: 1/10s");
    memcpy(at, "refill: 2/10s", 13);
    kit_reload(&kit, version);
    cr_expect_eq(ask("/a", alice), NO, "the same buckets under a new rate");
    free(version);
    cr_assert_gt(asprintf(&version,
                          "%s  x: {algorithm: token_bucket, capacity: 2, refill: 1/10s, policy_version: 2, "
                          "on_store_failure: closed}\n",
                          routes),
                 0);
    memcpy(strstr(version, "rate_limit: two"), "rate_limit: x  ", 15);
    kit_reload(&kit, version);
    cr_expect_eq(ask("/a", alice), YES, "other buckets");
    free(version);
}
