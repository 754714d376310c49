/* What a rule makes of a request and a token: values with their types, tuples each once, and nothing left out. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "unit/pipeline/kit.h"

#define RULE(id, path, more)                                                                                        \
    "  - id: " id "\n    match: {path: '" path "'}\n    auth: {issuers: [one]}\n    upstream: up\n    authorize:\n" \
    "      {user: 'user:{claims.sub}', relation: viewer, object: 'doc:mine', " more "}\n"

static const char routes[] = RULE(
    "types", "/types",
    "context: {z: '{claims.level}', list: '{claims.list}', flag: '{claims.flag}', frac: '{claims.frac}', deep: "
    "'{claims.deep}', who: '{claims.name}', sub: '{claims.sub}', n: 5, minus: -1.5, b: true, text: '5', mixed: "
    "'l-{claims.level}'}")
    RULE(
        "world", "/world/{id}",
        "context: {ip: '{client.ip}', now: '{now}', method: '{method}', id: '{path.id}', at: 'at {now}'}, consistency: "
        "higher_consistency") RULE("words", "/words", "context: {q: '{query.q}', h: '{header.x-h}'}")
        RULE("groups", "/groups",
             "contextual_tuples: [{user: 'user:{claims.sub}', relation: member, object: 'group:{claims.groups[]}'}]")
            RULE("usersets", "/usersets",
                 "contextual_tuples: [{user: 'group:{claims.groups[]}#member', relation: viewer, object: 'doc:mine'}, "
                 "{user: "
                 "'user:{claims.sub}', relation: owner, object: 'org:{claims.org}'}]")
                RULE("once", "/once",
                     "contextual_tuples: [{user: 'user:{claims.sub}', relation: member, object: "
                     "'group:{claims.groups[]}'}, {user: "
                     "'user:{claims.sub}', relation: member, object: 'group:b'}]");

static struct kit kit;

static void open_kit(void)
{
    kit_open(&kit, routes);
    kit_answer("doc:mine", SZ_AUTHZ_ALLOWED, false);
}

static void close_kit(void)
{
    kit_close(&kit);
}

TestSuite(question, .init = open_kit, .fini = close_kit);

static enum sz_reason ask(const char *target, const char *claims, const char *header)
{
    return kit_reason(&kit,
                      &(struct kit_request){.target = target, .token = kit_token(&kit, claims), .headers = {header}});
}

Test(question, values_keep_their_types)
{
    cr_expect_eq(ask("/types",
                     "\"level\":3,\"list\":[\"b\",\"a\"],\"flag\":false,\"frac\":1.50,\"deep\":{\"b\":[1,null],\"a\":"
                     "\"\\u00e9\"},\"name\":\"O\\\"Neil\\n\"",
                     NULL),
                 SZ_REASON_allowed);
    cr_expect_str_eq(
        kit_asked_context(),
        "{\"b\":true,\"deep\":{\"a\":\"\xc3\xa9\",\"b\":[1,null]},\"flag\":false,\"frac\":1.50,\"list\":[\"b\","
        "\"a\"],\"minus\":-1.5,\"mixed\":\"l-3\",\"n\":5,\"sub\":\"alice\",\"text\":\"5\",\"who\":"
        "\"O\\\"Neil\\n\",\"z\":3}");
    cr_expect_not(kit_asked_consistent());
}

/* A claim that is not there is nobody's claim to anything. */
Test(question, an_absent_claim_is_a_denial)
{
    static const char *const some[] = {
        "\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{},\"name\":\"x\"",
        "\"level\":null,\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{},\"name\":\"x\"",
        "\"level\":3,\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{}",
        /* In the middle of a text only a string or an integer stands. */
        "\"level\":true,\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{},\"name\":\"x\"",
        "\"level\":[\"3\"],\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{},\"name\":\"x\"",
    };
    for (size_t i = 0; i < SZ_COUNT(some); i++) {
        cr_expect_eq(ask("/types", some[i], NULL), SZ_REASON_not_permitted, "%s", some[i]);
        cr_expect_eq(kit_asked_n(), 0, "it was asked: %s", some[i]);
    }
    cr_expect_eq(ask("/types", "\"level\":3,\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{},\"name\":\"x\"", NULL),
                 SZ_REASON_allowed);
    cr_expect(strstr(kit_asked_context(), "\"list\":[],") != NULL, "%s", kit_asked_context());
}

/* Longer than an identity carries along: known to be there, and no more. */
Test(question, a_claim_too_large_for_a_context_is_a_denial)
{
    char claims[1024];
    snprintf(claims, sizeof(claims),
             "\"level\":3,\"list\":[],\"flag\":false,\"frac\":1.5,\"deep\":{\"a\":\"%0520d\"},\"name\":\"x\"", 0);
    cr_expect_eq(ask("/types", claims, NULL), SZ_REASON_not_permitted);
}

Test(question, the_world_around_the_request)
{
    char now[32], want[512];
    sz_wall_format(sz_loop_wall(kit.loop), 0, now);
    snprintf(want, sizeof(want),
             "{\"at\":\"at %s\",\"id\":\"a:b c\",\"ip\":\"198.51.100.7\",\"method\":\"GET\",\"now\":\"%s\"}", now, now);
    cr_expect_eq(ask("/world/a%3Ab%20c", "", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_context(), want);
    cr_expect(kit_asked_consistent());
}

Test(question, query_and_header_occur_once_and_are_text)
{
    cr_expect_eq(ask("/words?q=a+%22b%22", "", "x-h: v"), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_context(), "{\"h\":\"v\",\"q\":\"a \\\"b\\\"\"}");
    cr_expect_eq(ask("/words?q=", "", "x-h: v"), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_context(), "{\"h\":\"v\",\"q\":\"\"}");
    static const struct {
        const char *target, *header;
    } bad[] = {
        {"/words", "x-h: v"},
        {"/words?q=a", NULL},
        {"/words?q=a&q=b", "x-h: v"},
        {"/words?q=a&q[]=b", "x-h: v"},
        {"/words?q=a;q=a", "x-h: v"},
        {"/words?Q=a", "x-h: v"},
        {"/words?q=%ff", "x-h: v"},
        {"/words?q=a%00b", "x-h: v"},
        {"/words?q=%c0%80", "x-h: v"},
        {"/words?q=a", "x-h: \xff"},
        {"/words?q=%ed%a0%80", "x-h: v"},
    };
    for (size_t i = 0; i < SZ_COUNT(bad); i++)
        cr_expect_eq(ask(bad[i].target, "", bad[i].header), SZ_REASON_bad_request, "%s, %s", bad[i].target,
                     bad[i].header);
    struct kit_request twice = {.target = "/words?q=a", .token = kit_token(&kit, ""), .headers = {"x-h: v", "x-h: w"}};
    cr_expect_eq(kit_reason(&kit, &twice), SZ_REASON_bad_request);
}

Test(question, groups_become_tuples_each_once_in_order)
{
    cr_expect_eq(ask("/groups", "\"groups\":[\"b\",\"a\",\"b\",\"a:b#c *\"]", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "user:alice member group:a\nuser:alice member group:a%3Ab%23c%20%2A\n"
                                         "user:alice member group:b\n");
    cr_expect_eq(ask("/groups", "\"groups\":\"eng\"", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "user:alice member group:eng\n");
    cr_expect_eq(ask("/groups", "\"groups\":7", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "user:alice member group:7\n");
    cr_expect_eq(ask("/groups", "\"groups\":[]", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "");
    cr_expect_eq(ask("/groups", "", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "");
    cr_expect_eq(ask("/once", "\"groups\":[\"b\",\"c\"]", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "user:alice member group:b\nuser:alice member group:c\n");
}

/* What is no list of names is not guessed at; a tuple that lacks its claim is not left out. */
Test(question, a_claim_of_the_wrong_kind_is_a_denial)
{
    static const char *const claims[] = {"\"groups\":{\"a\":1}", "\"groups\":[\"a\",1]", "\"groups\":[\"a\",null]",
                                         "\"groups\":true",      "\"groups\":1.5",       "\"groups\":[\"a\",\"\"]",
                                         "\"groups\":[[\"a\"]]"};
    for (size_t i = 0; i < SZ_COUNT(claims); i++)
        cr_expect_eq(ask("/groups", claims[i], NULL), SZ_REASON_not_permitted, "%s", claims[i]);
    cr_expect_eq(kit_asked_n(), 0);
    cr_expect_eq(ask("/usersets", "\"groups\":[\"a\"]", NULL), SZ_REASON_not_permitted, "no org");
    cr_expect_eq(ask("/usersets", "\"groups\":[\"a\"],\"org\":\"acme\"", NULL), SZ_REASON_allowed);
    cr_expect_str_eq(kit_asked_tuples(), "group:a#member viewer doc:mine\nuser:alice owner org:acme\n");
}

/* A hundred, and one more; the same one a hundred times over counts once. */
Test(question, tuples_are_bounded_and_never_cut)
{
    struct sz_buf claims = {0};
    for (int round = 0; round < 3; round++) {
        claims.n = 0;
        sz_buf_printf(&claims, "\"groups\":[\"g\"");
        for (int i = 0; i < (round == 0 ? 99 : round == 1 ? 100 : 300); i++)
            sz_buf_printf(&claims, round == 2 ? ",\"g\"" : ",\"g%d\"", i);
        sz_buf_printf(&claims, "]%c", '\0');
        struct sz_txn *txn =
            kit_run(&kit, &(struct kit_request){.target = "/groups", .token = kit_token(&kit, claims.p)});
        cr_expect_eq(txn->decision.reason, round == 1 ? SZ_REASON_not_permitted : SZ_REASON_allowed, "round %d: %s",
                     round, sz_reason_row(txn->decision.reason)->name);
        if (round == 1)
            cr_expect(strstr(txn->answer.body.p, "more than 100 contextual tuples") != NULL, "%.*s",
                      SZ_FMT(txn->answer.body));
        kit_end(txn);
    }
    sz_buf_fini(&claims);
}
