/* What requests tell the threat engine, and what it makes of them. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/metrics.h"
#include "unit/pipeline/kit.h"

#define ROUTES                                                                            \
    "  - {id: doc, match: {path: \"/doc/{id}\"}, auth: {issuers: [one]}, upstream: up}\n" \
    "  - {id: pub, match: {path: \"/pub/*\"}, public: true, upstream: up}\n"
#define THREAT(options) ROUTES "threat: {" options "}\n"

static struct kit kit;
static struct sz_slice good;

static void open_with(const char *yaml)
{
    kit_open(&kit, yaml);
    good = kit_token(&kit, "");
}

static enum sz_reason ask_as(const char *peer, const char *forwarded, const char *target, struct sz_slice token)
{
    struct kit_request r = {.method = "GET", .target = target, .host = "a", .peer = peer, .token = token};
    char field[128];
    snprintf(field, sizeof(field), "x-forwarded-for: %s", forwarded != NULL ? forwarded : "");
    r.headers[0] = forwarded != NULL ? field : NULL;
    return kit_reason(&kit, &r);
}

/* A token of the right shape that nobody has signed. */
static struct sz_slice forged(unsigned n)
{
    char *text = sz_pool_alloc(&kit.arena.pool, good.n + 1);
    memcpy(text, good.p, good.n);
    snprintf(text + good.n - 12, 9, "%08x", n);
    text[good.n - 4] = 'A';
    return sz_slice(text, good.n);
}

static unsigned forged_until(const char *peer, const char *forwarded, enum sz_reason stop)
{
    for (unsigned n = 1; n <= 100; n++) {
        if (ask_as(peer, forwarded, "/doc/1", forged(n)) == stop)
            return n;
    }
    return 0;
}

Test(threat, forged_tokens_lead_to_a_block_of_that_address_alone)
{
    open_with(THREAT("mode: enforce"));
    unsigned n = forged_until("192.0.2.1", NULL, SZ_REASON_threat_blocked);
    cr_expect(n > 5 && n <= 25, "after %u", n);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/pub/x", SZ_S("")), SZ_REASON_threat_blocked);
    cr_expect_eq((int)ask_as("192.0.2.2", NULL, "/doc/1", good), SZ_REASON_allowed, "its neighbour goes on");
    kit_close(&kit);
}

Test(threat, alice_is_not_who_is_named_in_a_forged_token)
{
    open_with(THREAT("mode: enforce"));
    for (unsigned i = 0; i < 40; i++) {
        char from[32];
        snprintf(from, sizeof(from), "198.51.100.%u", i);
        for (unsigned n = 0; n < 8; n++)
            (void)ask_as(from, NULL, "/doc/1", forged(i * 8 + n));
    }
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/doc/1", good), SZ_REASON_allowed);
    kit_close(&kit);
}

Test(threat, a_trusted_proxy_pays_for_nobody)
{
    open_with(THREAT("mode: enforce"));
    cr_expect_eq(forged_until("10.0.0.1", NULL, SZ_REASON_threat_blocked), 0, "its own address is never judged");
    cr_expect_gt(forged_until("10.0.0.1", "203.0.113.9", SZ_REASON_threat_blocked), 0);
    cr_expect_eq((int)ask_as("10.0.0.1", "203.0.113.10", "/doc/1", good), SZ_REASON_allowed);
    cr_expect_eq((int)ask_as("10.0.0.1", "1.2.3.4, 203.0.113.9", "/doc/1", good), SZ_REASON_threat_blocked,
                 "what a client puts in front changes nothing");
    kit_close(&kit);
}

Test(threat, nobody_can_accuse_somebody_else)
{
    open_with(THREAT("mode: enforce"));
    for (unsigned n = 0; n < 100; n++)
        (void)ask_as("192.0.2.66", "203.0.113.9", "/doc/1", forged(n));
    cr_expect_eq((int)ask_as("203.0.113.9", NULL, "/doc/1", good), SZ_REASON_allowed);
    kit_close(&kit);
}

Test(threat, dry_run_counts_and_lets_through)
{
    open_with(THREAT("mode: dry_run"));
    cr_expect_eq(forged_until("192.0.2.1", NULL, SZ_REASON_threat_blocked), 0);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/doc/1", good), SZ_REASON_allowed);
    const char *values[] = {"bad_tokens", "dry_run"};
    cr_expect_gt(sz_counter_read(sz_series(SZ_METRIC_threat_signals, values)), 0);
    kit_close(&kit);
}

Test(threat, a_challenge_is_passed_by_a_recent_login)
{
    open_with(THREAT("mode: enforce, thresholds: {monitor: 0.1, challenge: 0.2, block: 1}, "
                     "step_up: {acr_values: [mfa], max_age: 60s}"));
    for (unsigned n = 0; n < 30; n++) /* each good token below forgives two */
        (void)ask_as("192.0.2.1", NULL, "/doc/1", forged(n));
    struct kit_request r = {.method = "GET", .target = "/doc/1", .host = "a", .peer = "192.0.2.1", .token = good};
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_expect_eq((int)txn->decision.reason, SZ_REASON_threat_challenge);
    cr_expect_eq(txn->answer.status, 401);
    const char *challenge = kit_header(&kit, &txn->answer.headers, "www-authenticate");
    cr_expect(strstr(challenge, "error=\"insufficient_user_authentication\"") != NULL &&
                  strstr(challenge, "acr_values=\"mfa\", max_age=\"60\"") != NULL,
              "%s", challenge);
    kit_end(txn);
    char claims[64];
    long long now = (long long)sz_wall_seconds(sz_loop_wall(kit.loop));
    snprintf(claims, sizeof(claims), "\"auth_time\":%lld", now - 30);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/doc/1", kit_token(&kit, claims)), SZ_REASON_allowed);
    snprintf(claims, sizeof(claims), "\"auth_time\":%lld", now - 90);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/doc/1", kit_token(&kit, claims)), SZ_REASON_threat_challenge);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/doc/1", kit_token(&kit, "\"acr\":\"mfa\"")), SZ_REASON_allowed);
    cr_expect_eq((int)ask_as("192.0.2.1", NULL, "/pub/1", SZ_S("")), SZ_REASON_allowed, "public: nobody to ask");
    kit_close(&kit);
}

Test(threat, a_challenge_can_be_a_403)
{
    open_with(THREAT("mode: enforce, thresholds: {monitor: 0.1, challenge: 0.2, block: 1}, step_up: {status: 403}"));
    for (unsigned n = 0; n < 7; n++)
        (void)ask_as("192.0.2.1", NULL, "/doc/1", forged(n));
    struct kit_request r = {.method = "GET", .target = "/doc/1", .host = "a", .peer = "192.0.2.1", .token = good};
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_expect_eq(txn->answer.status, 403);
    cr_expect_null(kit_header(&kit, &txn->answer.headers, "www-authenticate"));
    kit_end(txn);
    kit_close(&kit);
}

Test(threat, one_token_from_many_networks_is_stopped_and_its_user_may_come_back)
{
    open_with(THREAT("mode: enforce"));
    unsigned n;
    for (n = 0; n < 50; n++) {
        char from[32];
        snprintf(from, sizeof(from), "203.%u.1.1", n);
        if (ask_as(from, NULL, "/doc/1", good) != SZ_REASON_allowed)
            break;
    }
    cr_expect(n >= 6 && n <= 25, "stopped at network %u", n);
    struct sz_slice fresh = kit_token(&kit, "\"jti\":\"fresh\"");
    cr_expect_eq((int)ask_as("203.1.1.1", NULL, "/doc/1", fresh), SZ_REASON_allowed, "a new login is a new token");
    kit_close(&kit);
}

Test(threat, a_token_that_moves_a_little_is_a_phone)
{
    open_with(THREAT("mode: enforce"));
    for (unsigned i = 0; i < 2000; i++) {
        char from[32];
        snprintf(from, sizeof(from), "203.%u.1.%u", i % 4, i % 200);
        cr_assert_eq((int)ask_as(from, NULL, "/doc/1", good), SZ_REASON_allowed, "request %u", i);
    }
    kit_close(&kit);
}

static void write_list(char path[96], const char *name, const char *text)
{
    snprintf(path, 96, "%s/%s", kit.dir, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

Test(threat, lists_deny_warn_and_allow)
{
    char deny[96], risky[96], yaml[1024];
    open_with(ROUTES);
    write_list(deny, "deny", "198.51.100.0/24 # a hoster\n203.0.113.7\n");
    write_list(risky, "risky", "192.0.2.0/24\n");
    snprintf(yaml, sizeof(yaml),
             THREAT("allow: [203.0.113.7], lists: [{file: %s, action: deny}, {file: %s, action: risky}]"), deny, risky);
    kit_reload(&kit, yaml);
    cr_expect_eq((int)ask_as("198.51.100.7", NULL, "/doc/1", good), SZ_REASON_ip_denied);
    cr_expect_eq((int)ask_as("203.0.113.7", NULL, "/doc/1", good), SZ_REASON_allowed, "allow wins");
    cr_expect_eq((int)ask_as("192.0.2.7", NULL, "/doc/1", good), SZ_REASON_allowed, "risky alone blocks nobody");
    unsigned listed = forged_until("192.0.2.7", NULL, SZ_REASON_threat_blocked),
             other = forged_until("100.64.0.7", NULL, SZ_REASON_threat_blocked);
    cr_expect(listed > 0 && listed < other, "%u against %u", listed, other);
    unlink(deny);
    unlink(risky);
    kit_close(&kit);
}

Test(threat, off_costs_and_does_nothing)
{
    open_with(ROUTES);
    cr_expect_eq(forged_until("192.0.2.1", NULL, SZ_REASON_threat_blocked), 0);
    struct sz_threat_stats stats;
    sz_threat_stats(kit.gate.threat, &stats);
    cr_expect_eq(stats.notes, 0);
    kit_close(&kit);
}
