/* The visitor's cookie: what it takes to be believed, and what the gateway does with it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/visitor.h"
#include "unit/pipeline/kit.h"

#define KEY    SZ_S("0123456789abcdef0123456789abcdef")
#define OTHER  SZ_S("0123456789abcdef0123456789abcdeg")
#define COOKIE SZ_S("subzero_id")

static const uint8_t id[SZ_VISITOR_ID] = "sixteen bytes of";

static bool reads(struct sz_slice text, struct sz_slice key, struct sz_slice cookie, int64_t now)
{
    uint8_t got[SZ_VISITOR_ID] = {0};
    bool good = sz_visitor_read(text, key, cookie, now, got);
    if (good)
        cr_expect_arr_eq(got, id, sizeof(id));
    return good;
}

Test(visitor, is_believed_under_its_key_its_name_and_until_its_end)
{
    char text[SZ_VISITOR_TEXT];
    sz_crypto_init();
    sz_visitor_write(id, 1000, KEY, COOKIE, text);
    struct sz_slice s = sz_slice(text, sizeof(text));
    cr_expect(reads(s, KEY, COOKIE, 999));
    cr_expect(!reads(s, KEY, COOKIE, 1000));
    cr_expect(!reads(s, OTHER, COOKIE, 999));
    cr_expect(!reads(s, KEY, SZ_S("other_id"), 999));
    cr_expect(!reads(sz_sub(s, 0, s.n - 1), KEY, COOKIE, 999));
    cr_expect(!reads(SZ_NONE, KEY, COOKIE, 999));
    for (size_t i = 0; i < sizeof(text); i++) {
        char was = text[i];
        text[i] = was == 'A' ? 'B' : 'A';
        cr_expect(!reads(s, KEY, COOKIE, 999), "byte %zu altered", i);
        text[i] = was;
    }
}

/* ---- on a request's way --------------------------------------------------------------------------------------------
 */

static struct kit kit;
static char key_path[64];

static void open_kit(void)
{
    char *text = NULL;
    snprintf(key_path, sizeof(key_path), "/tmp/subzero-visitor-XXXXXX");
    int fd = mkstemp(key_path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", 45), 45);
    close(fd);
    cr_assert_gt(
        asprintf(
            &text,
            "  - {id: open, match: {path: /open}, public: true, upstream: up, rate_limit: three}\n"
            "  - {id: both, match: {path: /both}, public: true, upstream: up, rate_limit: [visitor, wide]}\n"
            "  - {id: known, match: {path: /known}, auth: {issuers: [one]}, upstream: up, rate_limit: three}\n"
            "rate_limits:\n"
            "  three: {algorithm: token_bucket, capacity: 3, refill: 1/1h, on_store_failure: closed}\n"
            "  visitor: {algorithm: token_bucket, capacity: 2, refill: 1/1h, key: cookie, on_store_failure: closed}\n"
            "  wide: {algorithm: token_bucket, capacity: 100, refill: 1/1h, key: address, on_store_failure: closed}\n"
            "anonymous: {key_file: %s, ttl: 1h}\n",
            key_path),
        0);
    kit_open(&kit, text);
    free(text);
}

static void close_kit(void)
{
    kit_close(&kit);
    unlink(key_path);
}

TestSuite(visitor_requests, .init = open_kit, .fini = close_kit);

/* What "Cookie:" then says; NULL: none was given. */
static const char *cookie_given(struct sz_txn *txn)
{
    const char *set = kit_header(&kit, &txn->respond, "set-cookie");
    return set == NULL ? NULL
                       : sz_pool_printf(&kit.arena.pool, "cookie: a=b; %.*s; c=d%c", (int)strcspn(set, ";"), set, 0).p;
}

static enum sz_reason ask(const char *target, const char *peer, const char *cookie, const char **given)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = target, .peer = peer, .headers = {cookie}});
    enum sz_reason reason = txn->decision.reason;
    if (given != NULL)
        *given = cookie_given(txn);
    if (!txn->decision.allow)
        cr_expect_null(kit_header(&kit, &txn->respond, "set-cookie"), "a denied request was given a cookie");
    kit_end(txn);
    return reason;
}

Test(visitor_requests, a_new_one_is_given_a_cookie_and_keeps_it)
{
    const char *cookie, *again;
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/open"});
    const char *set = kit_header(&kit, &txn->respond, "set-cookie");
    cr_assert_not_null(set);
    cr_expect(strncmp(set, "subzero_id=", 11) == 0, "%s", set);
    cr_expect_not_null(strstr(set, "; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure"), "%s", set);
    cookie = cookie_given(txn);
    kit_end(txn);
    cr_expect_eq(ask("/open", NULL, cookie, &again), SZ_REASON_allowed);
    cr_expect_null(again);
}

Test(visitor_requests, plain_loopback_gets_one_that_a_browser_takes)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/open", .peer = "127.0.0.1"});
    cr_expect_null(strstr(kit_header(&kit, &txn->respond, "set-cookie"), "Secure"));
    kit_end(txn);
}

Test(visitor_requests, both_the_visitor_and_the_address_have_to_allow)
{
    const char *cookie;
    cr_expect_eq(ask("/open", "198.51.100.1", NULL, &cookie), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "198.51.100.2", cookie, NULL), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "198.51.100.3", cookie, NULL), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "198.51.100.4", cookie, NULL), SZ_REASON_rate_limited, "the visitor has had three");
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ask("/open", "198.51.100.9", NULL, NULL), SZ_REASON_allowed);
    cr_expect_eq(ask("/open", "198.51.100.9", NULL, NULL), SZ_REASON_rate_limited, "the address has had three");
}

Test(visitor_requests, a_cookie_policy_counts_the_cookie_alone)
{
    const char *cookie;
    cr_expect_eq(ask("/both", "198.51.100.1", NULL, &cookie), SZ_REASON_allowed);
    cr_expect_eq(ask("/both", "198.51.100.2", cookie, NULL), SZ_REASON_allowed);
    cr_expect_eq(ask("/both", "198.51.100.3", cookie, NULL), SZ_REASON_rate_limited);
    cr_expect_eq(ask("/both", "198.51.100.3", NULL, NULL), SZ_REASON_allowed);
}

Test(visitor_requests, forged_doubled_and_old_ones_are_nobodys)
{
    const char *cookie, *given;
    cr_expect_eq(ask("/open", "198.51.100.1", NULL, &cookie), SZ_REASON_allowed);
    char *forged = strdup(cookie), *at = strstr(forged, "subzero_id=") + 20;
    *at = *at == 'A' ? 'B' : 'A';
    cr_expect_eq(ask("/open", "198.51.100.2", forged, &given), SZ_REASON_allowed);
    cr_expect_not_null(given, "a new one");
    free(forged);
    const char *doubled = sz_pool_printf(&kit.arena.pool, "%s; subzero_id=x%c", cookie, 0).p;
    cr_expect_eq(ask("/open", "198.51.100.3", doubled, &given), SZ_REASON_allowed);
    cr_expect_not_null(given);
    fake_loop_advance(kit.loop, SZ_SEC(3601));
    cr_expect_eq(ask("/open", "198.51.100.4", cookie, &given), SZ_REASON_allowed);
    cr_expect_not_null(given);
}

Test(visitor_requests, the_cookie_stays_here_and_known_subjects_get_none)
{
    const char *cookie;
    cr_expect_eq(ask("/open", NULL, NULL, &cookie), SZ_REASON_allowed);
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/open", .headers = {cookie}});
    cr_expect_str_eq(kit_header(&kit, &txn->forward.headers, "cookie"), "a=b; c=d");
    kit_end(txn);
    txn = kit_run(&kit, &(struct kit_request){.target = "/known", .token = kit_token(&kit, "")});
    cr_expect(txn->decision.allow);
    cr_expect_null(kit_header(&kit, &txn->respond, "set-cookie"));
    kit_end(txn);
}
