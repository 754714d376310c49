/*
 * Whole transactions: what a request is answered and what would go upstream.  Every verdict is asked for twice,
 * so that the second runs from the cache: a hit must judge as a miss does.
 */
#include <criterion/criterion.h>

#include "unit/pipeline/kit.h"

static const char routes[] =
    "  - {id: public, match: {path: '/public/*'}, public: true, upstream: up}\n"
    "  - {id: plain, match: {methods: [GET], path: /plain}, auth: {issuers: [one]}, upstream: up}\n"
    "  - {id: two, match: {path: /two}, auth: {issuers: [two], audiences: [other]}, upstream: up}\n"
    "  - {id: read, match: {path: /read}, auth: {issuers: [one], scopes: [read, list]}, upstream: up}\n"
    "  - {id: any, match: {path: /any}, auth: {issuers: [one], any_scope: [admin, write]}, upstream: up}\n"
    "  - {id: claim, match: {path: /claim}, auth: {issuers: [one], claims: {plan: [gold, silver]}}, upstream: up}\n"
    "  - id: doc\n"
    "    match: {path: '/doc/{id}'}\n"
    "    auth: {issuers: [one]}\n"
    "    authorize: {user: 'user:{claims.sub}', relation: viewer, object: 'document:{path.id}'}\n"
    "    upstream: up\n"
    "  - id: all\n"
    "    match: {path: /all}\n"
    "    auth: {issuers: [one]}\n"
    "    authorize: {all: [{user: 'user:{claims.sub}', relation: viewer, object: 'doc:a'},"
    " {user: 'user:{claims.sub}', relation: viewer, object: 'doc:b'}]}\n"
    "    upstream: up\n"
    "  - id: either\n"
    "    match: {path: /either}\n"
    "    auth: {issuers: [one]}\n"
    "    authorize: {any: [{user: 'user:{claims.sub}', relation: viewer, object: 'doc:a'},"
    " {user: 'user:{claims.sub}', relation: viewer, object: 'doc:b'}]}\n"
    "    upstream: up\n"
    "  - id: header\n"
    "    match: {path: /header}\n"
    "    auth: {issuers: [one]}\n"
    "    set_headers: {X-Plan: '{claims.plan}'}\n"
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

TestSuite(txn, .init = open_kit, .fini = close_kit);

/* From the verifier, then from the cache. */
static void expect_twice(const struct kit_request *r, enum sz_reason want)
{
    for (int i = 0; i < 2; i++) {
        enum sz_reason got = kit_reason(&kit, r);
        cr_assert_eq(got, want, "%s, time %d: %s instead of %s", r->target, i + 1, sz_reason_row(got)->name,
                     sz_reason_row(want)->name);
    }
}

Test(txn, nothing_passes_without_a_route)
{
    expect_twice(&(struct kit_request){.target = "/nowhere"}, SZ_REASON_no_route);
    expect_twice(&(struct kit_request){.target = "/plain", .method = "POST"}, SZ_REASON_method_not_allowed);
    expect_twice(&(struct kit_request){.target = "/plain", .method = "TRACE"}, SZ_REASON_method_not_allowed);
    expect_twice(&(struct kit_request){.target = "/public/..%2fplain"}, SZ_REASON_ambiguous_path);
    expect_twice(&(struct kit_request){.target = "/public/../plain"}, SZ_REASON_missing_token);
    expect_twice(&(struct kit_request){.target = "/public/x", .host = "a@b"}, SZ_REASON_bad_request);
    expect_twice(&(struct kit_request){.target = "/public/x"}, SZ_REASON_allowed);
}

Test(txn, tokens_are_judged)
{
    struct sz_slice good = kit_token(&kit, "");
    expect_twice(&(struct kit_request){.target = "/plain"}, SZ_REASON_missing_token);
    expect_twice(&(struct kit_request){.target = "/plain", .token = SZ_S("x.y.z")}, SZ_REASON_malformed_token);
    expect_twice(&(struct kit_request){.target = "/plain", .token = SZ_S("x.y,z")}, SZ_REASON_malformed_token);
    expect_twice(&(struct kit_request){.target = "/plain", .token = SZ_S("x.y.z w")}, SZ_REASON_malformed_token);
    expect_twice(&(struct kit_request){.target = "/plain", .token = good}, SZ_REASON_allowed);
    expect_twice(&(struct kit_request){.target = "/two", .token = good}, SZ_REASON_wrong_issuer);
    expect_twice(
        &(struct kit_request){.target = "/plain", .token = kit_token_of(&kit, "https://three.example/", "api", 60, "")},
        SZ_REASON_wrong_issuer);
    expect_twice(
        &(struct kit_request){.target = "/plain", .token = kit_token_of(&kit, "https://one.example/", "x", 60, "")},
        SZ_REASON_wrong_audience);
    expect_twice(
        &(struct kit_request){.target = "/two", .token = kit_token_of(&kit, "https://two.example/", "api", 60, "")},
        SZ_REASON_wrong_audience);
    expect_twice(
        &(struct kit_request){.target = "/two", .token = kit_token_of(&kit, "https://two.example/", "other", 60, "")},
        SZ_REASON_allowed);
    expect_twice(
        &(struct kit_request){.target = "/plain", .token = kit_token_of(&kit, "https://one.example/", "api", -60, "")},
        SZ_REASON_expired_token);
}

Test(txn, a_bad_signature_is_not_the_good_token)
{
    struct sz_slice good = kit_token(&kit, "");
    char *bad = sz_pool_strdup(&kit.arena.pool, good);
    bad[good.n - 2] = bad[good.n - 2] == 'A' ? 'B' : 'A';
    expect_twice(&(struct kit_request){.target = "/plain", .token = good}, SZ_REASON_allowed);
    expect_twice(&(struct kit_request){.target = "/plain", .token = sz_slice(bad, good.n)}, SZ_REASON_invalid_token);
    expect_twice(&(struct kit_request){.target = "/plain", .token = good}, SZ_REASON_allowed);
}

Test(txn, a_fact_ends_with_its_token)
{
    struct kit_request r = {.target = "/plain", .token = kit_token_of(&kit, "https://one.example/", "api", 20, "")};
    expect_twice(&r, SZ_REASON_allowed);
    fake_loop_advance(kit.loop, SZ_SEC(19));
    expect_twice(&r, SZ_REASON_allowed);
    fake_loop_advance(kit.loop, SZ_SEC(12)); /* past exp and the leeway of 10 s */
    expect_twice(&r, SZ_REASON_expired_token);
}

Test(txn, a_wall_clock_that_steps_stretches_nothing)
{
    struct kit_request r = {.target = "/plain", .token = kit_token_of(&kit, "https://one.example/", "api", 20, "")};
    struct sz_wall start = sz_loop_wall(kit.loop);
    expect_twice(&r, SZ_REASON_allowed);
    fake_loop_set_wall(kit.loop, (struct sz_wall){start.us - INT64_C(3600) * 1000000});
    fake_loop_advance(kit.loop, SZ_SEC(40)); /* the cached fact has ended although the wall says it is early */
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_neq(txn->token_layer, 1);
    kit_end(txn);
    fake_loop_set_wall(kit.loop, (struct sz_wall){start.us + INT64_C(3600) * 1000000});
    expect_twice(&r, SZ_REASON_expired_token);
}

Test(txn, the_second_request_hits_l1)
{
    struct kit_request r = {.target = "/plain", .token = kit_token(&kit, "")};
    struct sz_txn *first = kit_run(&kit, &r);
    cr_assert_eq(first->token_layer, 3);
    kit_end(first);
    struct sz_txn *second = kit_run(&kit, &r);
    cr_assert_eq(second->token_layer, 1);
    kit_end(second);
}

/* A reload that leaves the issuer alone keeps its facts; a new scope anywhere is a new vocabulary and ends them. */
Test(txn, reload_keeps_or_ends_facts)
{
    static const char fewer[] =
        "  - {id: plain, match: {path: /plain}, auth: {issuers: [one], scopes: [read]}, upstream: up}\n";
    struct kit_request r = {.target = "/plain", .token = kit_token(&kit, "\"scope\":\"read fresh\"")};
    expect_twice(&r, SZ_REASON_allowed);
    kit_reload(&kit, routes);
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_eq(txn->token_layer, 1);
    kit_end(txn);
    kit_reload(&kit, fewer);
    txn = kit_run(&kit, &r);
    cr_assert_eq(txn->token_layer, 3);
    cr_assert(txn->decision.allow);
    kit_end(txn);
}

Test(txn, scopes_and_claims)
{
    struct {
        const char *target, *claims;
        enum sz_reason want;
    } rows[] = {
        {"/read", "", SZ_REASON_insufficient_scope},
        {"/read", "\"scope\":\"read\"", SZ_REASON_insufficient_scope},
        {"/read", "\"scope\":\"read listing\"", SZ_REASON_insufficient_scope},
        {"/read", "\"scope\":\"list other read\"", SZ_REASON_allowed},
        {"/read", "\"scp\":[\"read\",\"list\"]", SZ_REASON_allowed},
        {"/any", "\"scope\":\"read\"", SZ_REASON_insufficient_scope},
        {"/any", "\"scope\":\"write\"", SZ_REASON_allowed},
        {"/claim", "", SZ_REASON_claim_mismatch},
        {"/claim", "\"plan\":\"bronze\"", SZ_REASON_claim_mismatch},
        {"/claim", "\"plan\":\"gold\"", SZ_REASON_allowed},
        {"/claim", "\"plan\":[\"x\",\"silver\"]", SZ_REASON_allowed},
        {"/claim", "\"plan\":{\"gold\":true}", SZ_REASON_claim_mismatch},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        expect_twice(&(struct kit_request){.target = rows[i].target, .token = kit_token(&kit, rows[i].claims)},
                     rows[i].want);
}

Test(txn, bound_tokens_need_their_proof)
{
    static const uint8_t digest[32] = {1, 2, 3}, other[32] = {9};
    char x5t[SZ_B64_LEN(32) + 1] = {0};
    sz_b64url_encode(digest, 32, x5t);
    struct sz_slice claims = sz_pool_printf(&kit.arena.pool, "\"cnf\":{\"x5t#S256\":\"%s\"}", x5t);
    struct sz_slice bound = kit_token(&kit, claims.p), jkt = kit_token(&kit, "\"cnf\":{\"jkt\":\"abc\"}");
    expect_twice(&(struct kit_request){.target = "/plain", .token = bound}, SZ_REASON_sender_constrained);
    expect_twice(&(struct kit_request){.target = "/plain", .token = bound, .client_cert_sha256 = other},
                 SZ_REASON_sender_constrained);
    expect_twice(&(struct kit_request){.target = "/plain", .token = bound, .client_cert_sha256 = digest},
                 SZ_REASON_allowed);
    expect_twice(&(struct kit_request){.target = "/plain", .token = bound}, SZ_REASON_sender_constrained);
    expect_twice(&(struct kit_request){.target = "/plain", .token = jkt, .client_cert_sha256 = digest},
                 SZ_REASON_sender_constrained);
}

/* ---- relations ------------------------------------------------------------------------------------------ */

Test(txn, four_outcomes_four_answers)
{
    struct sz_slice token = kit_token(&kit, "");
    kit_answer("document:yes", SZ_AUTHZ_ALLOWED, false);
    kit_answer("document:no", SZ_AUTHZ_DENIED, false);
    kit_answer("document:broken", SZ_AUTHZ_ERROR, false);
    kit_answer("document:down", SZ_AUTHZ_UNAVAILABLE, false);
    kit_answer("document:later", SZ_AUTHZ_ALLOWED, true);
    kit_answer("document:laterno", SZ_AUTHZ_DENIED, true);
    expect_twice(&(struct kit_request){.target = "/doc/yes", .token = token}, SZ_REASON_allowed);
    cr_assert_str_eq(kit_asked(), "user:alice|viewer|document:yes");
    expect_twice(&(struct kit_request){.target = "/doc/no", .token = token}, SZ_REASON_not_permitted);
    expect_twice(&(struct kit_request){.target = "/doc/broken", .token = token}, SZ_REASON_authz_error);
    expect_twice(&(struct kit_request){.target = "/doc/down", .token = token}, SZ_REASON_authz_unavailable);
    expect_twice(&(struct kit_request){.target = "/doc/later", .token = token}, SZ_REASON_allowed);
    expect_twice(&(struct kit_request){.target = "/doc/laterno", .token = token}, SZ_REASON_not_permitted);
}

Test(txn, values_never_choose_type_or_relation)
{
    struct sz_slice token = kit_token(&kit, "");
    kit_reason(&kit, &(struct kit_request){.target = "/doc/folder:x", .token = token});
    cr_assert_str_eq(kit_asked(), "user:alice|viewer|document:folder%3Ax");
    kit_reason(&kit, &(struct kit_request){.target = "/doc/x%23viewer", .token = token});
    cr_assert_str_eq(kit_asked(), "user:alice|viewer|document:x%23viewer");
    kit_reason(&kit, &(struct kit_request){.target = "/doc/*", .token = token});
    cr_assert_str_eq(kit_asked(), "user:alice|viewer|document:%2A");
    kit_reason(&kit, &(struct kit_request){.target = "/doc/a%20b%25", .token = token});
    cr_assert_str_eq(kit_asked(), "user:alice|viewer|document:a%20b%25");
}

static enum sz_reason ask_pair(const char *target, enum sz_authz_outcome a, enum sz_authz_outcome b, bool later)
{
    kit_close(&kit);
    kit_open(&kit, routes);
    kit_answer("doc:a", a, later);
    kit_answer("doc:b", b, later);
    return kit_reason(&kit, &(struct kit_request){.target = target, .token = kit_token(&kit, "")});
}

Test(txn, all_and_any_keep_no_and_could_not_ask_apart)
{
    static const struct {
        enum sz_authz_outcome a, b;
        enum sz_reason all, any;
    } rows[] = {
        {SZ_AUTHZ_ALLOWED, SZ_AUTHZ_ALLOWED, SZ_REASON_allowed, SZ_REASON_allowed},
        {SZ_AUTHZ_ALLOWED, SZ_AUTHZ_DENIED, SZ_REASON_not_permitted, SZ_REASON_allowed},
        {SZ_AUTHZ_DENIED, SZ_AUTHZ_ALLOWED, SZ_REASON_not_permitted, SZ_REASON_allowed},
        {SZ_AUTHZ_DENIED, SZ_AUTHZ_DENIED, SZ_REASON_not_permitted, SZ_REASON_not_permitted},
        {SZ_AUTHZ_UNAVAILABLE, SZ_AUTHZ_ALLOWED, SZ_REASON_authz_unavailable, SZ_REASON_allowed},
        {SZ_AUTHZ_ALLOWED, SZ_AUTHZ_UNAVAILABLE, SZ_REASON_authz_unavailable, SZ_REASON_allowed},
        {SZ_AUTHZ_UNAVAILABLE, SZ_AUTHZ_DENIED, SZ_REASON_not_permitted, SZ_REASON_authz_unavailable},
        {SZ_AUTHZ_DENIED, SZ_AUTHZ_ERROR, SZ_REASON_not_permitted, SZ_REASON_authz_error},
        {SZ_AUTHZ_ERROR, SZ_AUTHZ_ERROR, SZ_REASON_authz_error, SZ_REASON_authz_error},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        for (int later = 0; later < 2; later++) {
            cr_assert_eq(ask_pair("/all", rows[i].a, rows[i].b, later), rows[i].all, "all, row %zu, later %d", i,
                         later);
            cr_assert_eq(ask_pair("/either", rows[i].a, rows[i].b, later), rows[i].any, "any, row %zu, later %d", i,
                         later);
        }
    }
}

Test(txn, checks_behind_one_that_is_waited_for_are_asked_with_it)
{
    enum sz_step step;
    kit_answer("doc:a", SZ_AUTHZ_ALLOWED, true);
    kit_answer("doc:b", SZ_AUTHZ_ALLOWED, true);
    struct sz_txn *txn = kit_start(&kit, &(struct kit_request){.target = "/all", .token = kit_token(&kit, "")}, &step);
    cr_assert_eq(step, SZ_STEP_PARKED);
    cr_assert_eq(kit_asked_n(), 2);
    kit_end(txn);
    cr_assert_eq(kit_cancelled_n(), 2);
    fake_loop_settle(kit.loop); /* nothing comes back */
    /* The first no decides, and nobody waits for the second. */
    kit_close(&kit);
    kit_open(&kit, routes);
    kit_answer("doc:a", SZ_AUTHZ_DENIED, true);
    kit_answer("doc:b", SZ_AUTHZ_ALLOWED, true);
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.target = "/all", .token = kit_token(&kit, "")}),
                 SZ_REASON_not_permitted);
    cr_assert_eq(kit_cancelled_n(), 1);
}

Test(txn, a_client_that_leaves_cancels_its_question)
{
    enum sz_step step;
    kit_answer("document:later", SZ_AUTHZ_ALLOWED, true);
    struct sz_txn *txn =
        kit_start(&kit, &(struct kit_request){.target = "/doc/later", .token = kit_token(&kit, "")}, &step);
    cr_assert_eq(step, SZ_STEP_PARKED);
    kit_end(txn);
    cr_assert_eq(kit_cancelled_n(), 1);
    fake_loop_settle(kit.loop); /* nothing comes back */
}

/* ---- verification is bounded per turn --------------------------------------------------------------------- */

Test(txn, verifications_queue_behind_the_turn)
{
    enum sz_step step;
    struct sz_txn *txns[40];
    unsigned now = 0, parked = 0;
    struct sz_slice cached = kit_token(&kit, "\"jti\":\"cached\"");
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.target = "/plain", .token = cached}), SZ_REASON_allowed);
    fake_loop_run_once(kit.loop);
    for (int i = 0; i < 40; i++) {
        struct sz_slice claims = sz_pool_printf(&kit.arena.pool, "\"jti\":\"%d\"", i);
        txns[i] = kit_start(&kit, &(struct kit_request){.target = "/plain", .token = kit_token(&kit, claims.p)}, &step);
        now += step == SZ_STEP_FINISHED;
        parked += step == SZ_STEP_PARKED;
    }
    cr_assert_eq(now, 1);
    cr_assert_eq(parked, 39);
    /* A cached token is not in the queue. */
    struct sz_txn *hit = kit_start(&kit, &(struct kit_request){.target = "/plain", .token = cached}, &step);
    cr_assert_eq(step, SZ_STEP_FINISHED);
    cr_assert(hit->decision.allow);
    kit_end(hit);
    kit_end(txns[20]); /* one gives up while it waits */
    fake_loop_settle(kit.loop);
    for (int i = 0; i < 40; i++) {
        cr_assert(i == 20 || txns[i]->decision.allow, "token %d", i);
        if (i != 20)
            kit_end(txns[i]);
    }
}

static struct sz_txn *start_numbered(int i, enum sz_step *step)
{
    struct sz_slice claims = sz_pool_printf(&kit.arena.pool, "\"jti\":\"%d\"", i);
    return kit_start(&kit, &(struct kit_request){.target = "/plain", .token = kit_token(&kit, claims.p)}, step);
}

/* Its fact has ended, the token has not: it goes before those that nobody has seen, and one check serves all who ask.
 */
Test(txn, a_token_known_from_before_is_verified_first)
{
    enum { STRANGERS = 20 };
    enum sz_step step;
    struct sz_txn *txns[STRANGERS], *known[2];
    struct sz_slice token = kit_token(&kit, "\"jti\":\"known\"");
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.target = "/plain", .token = token}), SZ_REASON_allowed);
    fake_loop_advance(kit.loop, SZ_SEC(40));
    fake_loop_run_once(kit.loop);
    for (int i = 0; i < STRANGERS; i++)
        txns[i] = start_numbered(i, &step);
    for (int i = 0; i < 2; i++) {
        known[i] = kit_start(&kit, &(struct kit_request){.target = "/plain", .token = token}, &step);
        cr_assert_eq(step, SZ_STEP_PARKED);
    }
    fake_loop_run_once(kit.loop);
    fake_loop_run_once(kit.loop);
    fake_loop_run_once(kit.loop);
    for (int i = 0; i < 2; i++) {
        cr_assert(known[i]->decision.allow, "%d still waits", i);
        cr_assert_eq(known[i]->token_layer, i == 0 ? 3 : 1);
        kit_end(known[i]);
    }
    cr_assert_not(txns[STRANGERS - 1]->decision.made);
    fake_loop_settle(kit.loop);
    for (int i = 0; i < STRANGERS; i++) {
        cr_assert(txns[i]->decision.allow, "stranger %d", i);
        kit_end(txns[i]);
    }
}

/* While each turn begins several requests, strangers get one verification every half millisecond, and no more. */
Test(txn, strangers_wait_for_a_quiet_turn_but_not_for_ever)
{
    enum { STRANGERS = 10 };
    enum sz_step step;
    struct sz_txn *txns[STRANGERS];
    unsigned served = 0;
    struct sz_slice cached = kit_token(&kit, "\"jti\":\"cached\"");
    cr_assert_eq(kit_reason(&kit, &(struct kit_request){.target = "/plain", .token = cached}), SZ_REASON_allowed);
    fake_loop_run_once(kit.loop);
    for (int i = 0; i < STRANGERS; i++)
        txns[i] = start_numbered(i, &step);
    for (int turn = 0; turn < 100; turn++) { /* 2.5 ms */
        for (int i = 0; i < 3; i++)
            cr_assert_eq(kit_reason(&kit, &(struct kit_request){.target = "/plain", .token = cached}),
                         SZ_REASON_allowed);
        fake_loop_advance(kit.loop, SZ_US(25));
        fake_loop_run_once(kit.loop);
    }
    for (int i = 0; i < STRANGERS; i++)
        served += txns[i]->decision.made;
    cr_assert(served >= 5 && served <= 7, "%u were verified in 2.5 ms", served);
    fake_loop_settle(kit.loop);
    for (int i = 0; i < STRANGERS; i++) {
        cr_assert(txns[i]->decision.allow);
        kit_end(txns[i]);
    }
}

/* ---- what goes upstream --------------------------------------------------------------------------------------- */

Test(txn, identity_headers_come_from_facts_alone)
{
    struct kit_request r = {
        .target = "/read?q=1",
        .token = kit_token(&kit, "\"scope\":\"list write read\",\"azp\":\"app\""),
        .headers = {"x-subzero-subject: mallory", "x-subzero-scopes: admin", "x_subzero_subject: mallory",
                    "x-subzero-new: 1", "x-plan: gold", "x-user: root", "x-forwarded-for: 6.6.6.6",
                    "x-forwarded-user: root", "x-accel-redirect: /etc", "connection: x-drop, close", "x-drop: 1",
                    "x-keep: 1", "x-request-id: mine", "forwarded: for=6.6.6.6", "x-http-method-override: DELETE"}};
    struct sz_txn *txn = kit_run(&kit, &r);
    struct sz_headers *h = &txn->forward.headers;
    cr_assert(txn->proxy);
    cr_assert_str_eq(kit_header(&kit, h, "x-subzero-subject"), "alice");
    cr_assert_str_eq(kit_header(&kit, h, "x-subzero-client"), "app");
    cr_assert_str_eq(kit_header(&kit, h, "x-subzero-scopes"), "read list write"); /* configuration order */
    cr_assert_str_eq(kit_header(&kit, h, "x-subzero-issuer"), "https://one.example/");
    cr_assert_str_eq(kit_header(&kit, h, "x-forwarded-for"), "198.51.100.7");
    cr_assert_str_eq(kit_header(&kit, h, "x-forwarded-proto"), "http");
    cr_assert_str_eq(kit_header(&kit, h, "x-forwarded-host"), "api.example.com");
    cr_assert_str_eq(kit_header(&kit, h, "x-keep"), "1");
    cr_assert_str_neq(kit_header(&kit, h, "x-request-id"), "mine");
    static const char *const gone[] = {
        "x_subzero_subject", "x-subzero-new",          "x-plan",        "x-user",
        "x-forwarded-user",  "x-accel-redirect",       "connection",    "x-drop",
        "forwarded",         "x-http-method-override", "authorization", "x-subzero-tenant"};
    for (size_t i = 0; i < SZ_COUNT(gone); i++)
        cr_assert_null(kit_header(&kit, h, gone[i]), "%s went upstream", gone[i]);
    cr_assert(sz_eq(txn->forward.target, SZ_S("/read?q=1")));
    kit_end(txn);
}

Test(txn, every_nominated_field_is_dropped_or_the_request_refused)
{
    struct kit_request r = {
        .target = "/read",
        .token = kit_token(&kit, "\"scope\":\"list write read\""),
        .headers = {"connection: , a,,b , c,d,e,f,g,h,i,j", "connection: k,l,m,n,o,x-drop", "x-drop: 1", "x-keep: 1"}};
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert(txn->proxy);
    cr_assert_null(kit_header(&kit, &txn->forward.headers, "x-drop"));
    cr_assert_str_eq(kit_header(&kit, &txn->forward.headers, "x-keep"), "1");
    kit_end(txn);
    r.headers[4] = "connection: one-too-many";
    cr_assert_eq(kit_reason(&kit, &r), SZ_REASON_bad_request);
}

Test(txn, a_claim_is_one_header_line_or_none)
{
    struct sz_txn *txn =
        kit_run(&kit, &(struct kit_request){.target = "/header", .token = kit_token(&kit, "\"plan\":\"caf\\u00e9 \"")});
    cr_assert_str_eq(kit_header(&kit, &txn->forward.headers, "x-plan"), "caf%C3%A9%20");
    kit_end(txn);
    expect_twice(&(struct kit_request){.target = "/header", .token = kit_token(&kit, "\"plan\":\"a\\r\\nX-Admin: 1\"")},
                 SZ_REASON_claim_mismatch);
    txn = kit_run(&kit, &(struct kit_request){.target = "/header", .token = kit_token(&kit, "")});
    cr_assert(txn->proxy);
    cr_assert_null(kit_header(&kit, &txn->forward.headers, "x-plan"));
    kit_end(txn);
}

Test(txn, decide_answers_carry_every_identity_header)
{
    struct kit_request r = {.target = "/plain", .decide = true, .token = kit_token(&kit, "")};
    struct sz_txn *txn = kit_run(&kit, &r);
    cr_assert_eq(txn->answer.status, 200);
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "x-subzero-subject"), "alice");
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "x-plan"), "");
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "x-subzero-tenant"), "");
    kit_end(txn);
    r.target = "/two";
    txn = kit_run(&kit, &r);
    cr_assert_eq(txn->answer.status, 401);
    cr_assert_null(kit_header(&kit, &txn->answer.headers, "x-subzero-subject"));
    kit_end(txn);
    expect_twice(&(struct kit_request){.target = "/plain", .decide = true, .peer = "203.0.113.1"},
                 SZ_REASON_untrusted_peer);
    expect_twice(&(struct kit_request){.target = "/public/./x", .decide = true}, SZ_REASON_ambiguous_path);
    txn = kit_run(&kit, &(struct kit_request){.target = "/a%2fb", .decide = true}); /* nginx makes a 500 of a 400 */
    cr_assert_eq(txn->answer.status, 403);
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "x-subzero-status"), "400");
    kit_end(txn);
}

Test(txn, answers_tell_what_is_missing)
{
    struct sz_txn *txn = kit_run(&kit, &(struct kit_request){.target = "/read"});
    cr_assert_eq(txn->answer.status, 401);
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "www-authenticate"), "Bearer realm=\"subzero\"");
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "content-type"), "application/problem+json");
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "cache-control"), "no-store");
    kit_end(txn);
    txn = kit_run(&kit, &(struct kit_request){.target = "/read", .token = kit_token(&kit, "")});
    cr_assert_eq(txn->answer.status, 403);
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "www-authenticate"),
                     "Bearer realm=\"subzero\", error=\"insufficient_scope\", scope=\"read list\"");
    kit_end(txn);
    txn = kit_run(&kit, &(struct kit_request){.target = "/plain", .method = "DELETE"});
    cr_assert_eq(txn->answer.status, 405);
    cr_assert_str_eq(kit_header(&kit, &txn->answer.headers, "allow"), "GET, HEAD");
    kit_end(txn);
}
