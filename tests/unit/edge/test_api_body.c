/* Bodies of api calls: which are questions, which question, and how an id is written. */
#include <criterion/criterion.h>

#include "edge/api_access.h"
#include "edge/api_body.h"

static struct sz_arena arena;

static void setup(void)
{
    sz_arena_init(&arena);
}

static void teardown(void)
{
    sz_arena_fini(&arena);
}

TestSuite(api_body, .init = setup, .fini = teardown);

#define BODY(user, type, id, relation, more) \
    "{\"user_id\":" user ",\"resource_type\":" type ",\"resource_id\":" id ",\"relation\":" relation more "}"

Test(api_body, a_check)
{
    static const struct {
        const char *body, *user, *object, *context; /* user NULL: refused */
    } rows[] = {
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ""), "user:alice", "doc:1", ""},
        {BODY("\"group:a#member\"", "\"doc\"", "\"1\"", "\"r\"", ""), "group:a#member", "doc:1", ""},
        {BODY("\"a@b\"", "\"doc\"", "\"x:y#z *%\"", "\"r\"", ""), "user:a%40b", "doc:x%3Ay%23z%20%2A%25", ""},
        {BODY("\"\\u00e9\"", "\"doc\"", "\"1\"", "\"r\"", ""), "user:\xc3\xa9", "doc:1", ""},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":{\"b\":1,\"a\":{\"d\":2.5,\"c\":null}}"),
         "user:alice", "doc:1", "{\"a\":{\"c\":null,\"d\":2.5},\"b\":1}"},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":{}"), "user:alice", "doc:1", ""},
        {"{}", NULL, NULL, NULL},
        {"", NULL, NULL, NULL},
        {"null", NULL, NULL, NULL},
        {"\xef\xbb\xbf{}", NULL, NULL, NULL},
        {BODY("\"\"", "\"doc\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("null", "\"doc\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"\xff\"", "\"doc\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"\\ud800\"", "\"doc\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"d oc\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc#r\"", "\"1\"", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "1", "\"r\"", ""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r@s\"", ""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"extra\":1"), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"relation\":\"s\""), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":[]"), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":null"), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":{\"a\":1,\"a\":2}"), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"context\":{\"a\":99999999999999999999}"), NULL, NULL, NULL},
        {BODY("\"alice\"", "\"doc\"", "\"1\"", "\"r\"", ",\"consistency\":\"HIGHER_CONSISTENCY\""), NULL, NULL, NULL},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_check check;
        const char *why = NULL;
        bool good = sz_api_read_check(sz_cstr(rows[i].body), &arena.pool, &check, &why);
        cr_expect_eq(good, rows[i].user != NULL, "%s: %s", rows[i].body, why);
        cr_expect(good || (why != NULL && why[0] != '\0'), "%s: no word why", rows[i].body);
        if (!good || rows[i].user == NULL)
            continue;
        cr_expect(sz_eq(check.key.user, sz_cstr(rows[i].user)), "%.*s", SZ_FMT(check.key.user));
        cr_expect(sz_eq(check.key.object, sz_cstr(rows[i].object)), "%.*s", SZ_FMT(check.key.object));
        cr_expect(sz_eq(check.context.p != NULL ? check.context : SZ_S(""), sz_cstr(rows[i].context)), "%.*s",
                  SZ_FMT(check.context));
    }
}

/* As many as there are of an id, and one byte more. */
Test(api_body, ids_are_bounded)
{
    char id[600], body[800];
    for (size_t n = 240; n < 270; n++) {
        struct sz_check check;
        const char *why;
        memset(id, 'x', n);
        id[n] = '\0';
        snprintf(body, sizeof(body), BODY("\"a\"", "\"doc\"", "\"%s\"", "\"r\"", ""), id);
        cr_expect_eq(sz_api_read_check(sz_cstr(body), &arena.pool, &check, &why), n + 4 <= 256, "%zu", n);
    }
}

Test(api_body, evaluations_take_what_they_lack_from_around_them)
{
    struct sz_api_evaluations e;
    const char *why;
    cr_assert(sz_api_read_evaluations(SZ_S("{\"subject\":{\"type\":\"user\",\"id\":\"a\",\"properties\":{\"x\":1}},"
                                           "\"action\":{\"name\":\"r\"},\"context\":"
                                           "{\"c\":1},\"options\":{\"evaluations_semantic\":\"deny_on_first_deny\"},"
                                           "\"evaluations\":[{\"resource\":{\"type\":"
                                           "\"d\",\"id\":\"1\"}},{\"resource\":{\"type\":\"d\",\"id\":\"2\"},"
                                           "\"context\":{}},{\"subject\":{\"type\":\"user\"}},[]]}"),
                                      true, &arena.pool, &e, &why));
    cr_expect(e.several && e.n == 4 && e.until == SZ_API_FIRST_DENY);
    cr_expect(sz_eq(e.items[0].check.context, SZ_S("{\"c\":1,\"subject_x\":1}")), "%.*s",
              SZ_FMT(e.items[0].check.context));
    cr_expect(sz_eq(e.items[1].check.context, SZ_S("{\"subject_x\":1}")), "%.*s", SZ_FMT(e.items[1].check.context));
    cr_expect(e.items[0].wrong == NULL && e.items[1].wrong == NULL);
    cr_expect(strstr(e.items[2].wrong, "'id'") != NULL, "%s", e.items[2].wrong);
    cr_expect(strstr(e.items[3].wrong, "must be an object") != NULL, "%s", e.items[3].wrong);
}

Test(api_body, who_may_ask)
{
    static const struct sz_api_key keys[] = {{{"key-number-one", 14}, {"one", 3}}, {{"key-number-two", 14}, {NULL, 0}}};
    struct sz_conf_listener closed = {.keys = keys, .keys_n = 2}, open = {.keys_n = 0};
    static const struct {
        const char *authorization;
        enum sz_reason reason;
        const char *caller;
    } rows[] = {
        {NULL, SZ_REASON_missing_token, ""},
        {"Bearer key-number-one", SZ_REASON_allowed, "one"},
        {"bearer key-number-two", SZ_REASON_allowed, ""},
        {"Bearer  key-number-one ", SZ_REASON_allowed, "one"},
        {"Bearer key-number-on", SZ_REASON_invalid_token, ""},
        {"Bearer key-number-onee", SZ_REASON_invalid_token, ""},
        {"Bearer ", SZ_REASON_invalid_token, ""},
        {"Bearer", SZ_REASON_malformed_token, ""},
        {"Basic key-number-one", SZ_REASON_malformed_token, ""},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_request req = {.authority = SZ_S("evil.example")};
        struct sz_slice caller;
        const char *why = NULL;
        if (rows[i].authorization != NULL)
            sz_headers_add(&req.headers, &arena.pool, SZ_S("authorization"), sz_cstr(rows[i].authorization));
        cr_expect_eq((int)sz_api_access(&closed, &req, &caller, &why), (int)rows[i].reason, "%s",
                     rows[i].authorization);
        cr_expect(sz_eq(caller.p != NULL ? caller : SZ_S(""), sz_cstr(rows[i].caller)), "%s", rows[i].authorization);
    }
    struct sz_request req = {.authority = SZ_S("localhost:8082")};
    struct sz_slice caller;
    const char *why;
    cr_expect_eq((int)sz_api_access(&open, &req, &caller, &why), (int)SZ_REASON_untrusted_peer, "not of this machine");
    cr_assert_eq(sz_addr_parse(SZ_S("127.0.0.1"), &req.peer), 0);
    cr_expect_eq((int)sz_api_access(&open, &req, &caller, &why), (int)SZ_REASON_allowed);
    req.authority = SZ_S("evil.example:8082");
    cr_expect_eq((int)sz_api_access(&open, &req, &caller, &why), (int)SZ_REASON_misdirected);
}
