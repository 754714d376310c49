/* Writes, reads, changes, budgets and limits of the engine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "subzero/loop.h"

static const char model_text[] =
    "model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user, user:*, group#member]\n"
    "type folder\n  relations\n    define parent: [folder]\n    define viewer: [user] or viewer from parent\n"
    "type doc\n  relations\n    define parent: [folder]\n    define blocked: [user]\n"
    "    define viewer: [user, user with small, group#member] or viewer from parent\n"
    "    define reader: viewer but not blocked\n"
    "condition small(x: int) {\n  x < 10\n}\n";

struct fixture {
    struct sz_engine *e;
    const struct sz_program *p;
    struct sz_fault fault;
};

static struct fixture setup(void)
{
    struct fixture f = {.e = sz_engine_new()};
    struct sz_problems problems;
    sz_problems_init(&problems);
    struct sz_model *m = sz_dsl_parse(sz_cstr(model_text), &problems);
    cr_assert_not_null(m);
    f.p = sz_engine_add_model(f.e, m, &f.fault);
    cr_assert_not_null(f.p, "%s", f.fault.message.s);
    sz_model_free(m);
    sz_problems_fini(&problems);
    return f;
}

static struct sz_tuple_key key(const char *object, const char *relation, const char *user)
{
    return (struct sz_tuple_key){.object = sz_cstr(object), .relation = sz_cstr(relation), .user = sz_cstr(user)};
}

static int write_one(struct fixture *f, struct sz_tuple_key k, bool remove)
{
    struct sz_write w = {.writes = &k, .writes_n = 1};
    if (remove)
        w = (struct sz_write){.deletes = &k, .deletes_n = 1};
    f->fault.code = 0;
    return sz_engine_write(f->e, f->p, &w, (struct sz_wall){INT64_C(1700000000) * 1000000}, &f->fault);
}

static int check(struct fixture *f, const char *object, const char *relation, const char *user, uint64_t steps)
{
    struct sz_check c = {.key = key(object, relation, user)};
    return sz_engine_check(f->e, f->p, &c, &steps, &f->fault);
}

/* ---- writes ---- */

static const struct {
    const char *object, *relation, *user, *condition, *context;
    int code; /* 0: written */
    const char *why;
} writes[] = {
    {"doc", "viewer", "user:a", NULL, NULL, 2000, "object"},
    {"doc:", "viewer", "user:a", NULL, NULL, 2000, "object"},
    {"doc:a b", "viewer", "user:a", NULL, NULL, 2000, "object"},
    {"doc:a:b", "viewer", "user:a", NULL, NULL, 2000, "object"},
    {"doc:*", "viewer", "user:a", NULL, NULL, 2000, "wildcard"},
    {"doc:1", "nope", "user:a", NULL, NULL, 2000, "not found"},
    {"ghost:1", "viewer", "user:a", NULL, NULL, 2000, "not found"},
    {"doc:1", "viewer", "a", NULL, NULL, 2000, "user"},
    {"doc:1", "viewer", "*", NULL, NULL, 2000, "user"},
    {"doc:1", "viewer", "ghost:1", NULL, NULL, 2000, "not found"},
    {"doc:1", "viewer", "group:g", NULL, NULL, 2000, "not an allowed type restriction"},
    {"doc:1", "viewer", "user:*", NULL, NULL, 2000, "not an allowed type restriction"},
    {"doc:1", "viewer", "group:*#member", NULL, NULL, 2000, "user"},
    {"doc:1", "viewer", "group:g#nope", NULL, NULL, 2000, "not found"},
    {"doc:1", "reader", "user:a", NULL, NULL, 2000, "not an allowed type restriction"},
    {"doc:1", "parent", "folder:1#viewer", NULL, NULL, 2000, "tupleset"},
    {"group:g", "member", "group:g#member", NULL, NULL, 2000, "implicit"},
    {"doc:1", "viewer", "user:a", "nope", NULL, 2000, "undefined condition"},
    {"doc:1", "viewer", "group:g#member", "small", NULL, 2000, "invalid condition for type restriction"},
    {"doc:1", "viewer", "user:a", "small", "{\"y\":1}", 2000, "found invalid context parameter: y"},
    {"doc:1", "viewer", "user:a", "small", "{\"x\":\"q\"}", 2000, "number"},
    {"doc:1", "viewer", "user:a", "small", "[]", 2000, "JSON object"},
    {"doc:1", "viewer", "user:a", "small", "{\"x\":1}", 0, ""},
    {"doc:1", "viewer", "user:b", NULL, NULL, 0, ""},
    {"doc:1", "viewer", "user:b", NULL, NULL, 2017, "already exists"},
};

Test(engine, refuses_what_the_model_does_not_admit)
{
    struct fixture f = setup();
    for (size_t i = 0; i < SZ_COUNT(writes); i++) {
        struct sz_tuple_key k = key(writes[i].object, writes[i].relation, writes[i].user);
        k.condition = sz_cstr(writes[i].condition);
        k.condition_context = sz_cstr(writes[i].context);
        int err = write_one(&f, k, false);
        cr_expect_eq(err == 0 ? 0 : f.fault.code, writes[i].code, "%zu: %s", i, f.fault.message.s);
        cr_expect(err == 0 || strstr(f.fault.message.s, writes[i].why) != NULL, "%zu: %s", i, f.fault.message.s);
    }
    sz_engine_free(f.e);
}

Test(engine, a_write_is_all_or_nothing)
{
    struct fixture f = setup();
    struct sz_tuple_key keys[] = {key("doc:1", "viewer", "user:a"), key("doc:2", "viewer", "nobody")};
    struct sz_write w = {.writes = keys, .writes_n = 2};
    struct sz_engine_stats stats;
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), -EINVAL);
    sz_engine_stats(f.e, &stats);
    cr_assert_eq(stats.tuples, 0);
    cr_assert_eq(check(&f, "doc:1", "viewer", "user:a", 100), SZ_ENGINE_NO);
    keys[1] = keys[0];
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), -EINVAL);
    cr_assert_eq(f.fault.code, 2004);
    w = (struct sz_write){0};
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), -EINVAL);
    cr_assert_eq(f.fault.code, 2003);
    sz_engine_free(f.e);
}

Test(engine, ignores_on_request)
{
    struct fixture f = setup();
    struct sz_tuple_key k = key("doc:1", "viewer", "user:a"), other = k;
    struct sz_write w = {.writes = &k, .writes_n = 1, .ignore_duplicates = true, .ignore_missing = true};
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), 0);
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), 0);
    other.condition = SZ_S("small");
    w.writes = &other;
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), -EINVAL);
    cr_assert_eq(f.fault.code, 409);
    w = (struct sz_write){.deletes = &k, .deletes_n = 1, .ignore_missing = true};
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), 0);
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), 0);
    w.ignore_missing = false;
    cr_assert_eq(sz_engine_write(f.e, f.p, &w, (struct sz_wall){0}, &f.fault), -EINVAL);
    cr_assert_eq(f.fault.code, 2017);
    sz_engine_free(f.e);
}

/* ---- large rows ---- */

Test(engine, rows_grow_large_and_small_again)
{
    struct fixture f = setup();
    char user[32];
    enum { USERS = 1500 };
    for (int i = 0; i < USERS; i++) {
        snprintf(user, sizeof(user), "user:%d", i);
        cr_assert_eq(write_one(&f, key("group:g", "member", user), false), 0);
    }
    cr_assert_eq(write_one(&f, key("doc:1", "viewer", "group:g#member"), false), 0);
    for (int i = 0; i < USERS + 10; i++) {
        snprintf(user, sizeof(user), "user:%d", i);
        cr_assert_eq(check(&f, "doc:1", "viewer", user, 100), i < USERS ? SZ_ENGINE_YES : SZ_ENGINE_NO, "%s", user);
    }
    for (int i = 0; i < USERS; i++) {
        snprintf(user, sizeof(user), "user:%d", (i * 7) % USERS);
        cr_assert_eq(write_one(&f, key("group:g", "member", user), true), 0, "%s", f.fault.message.s);
        cr_assert_eq(check(&f, "group:g", "member", user, 100), SZ_ENGINE_NO);
    }
    struct sz_engine_stats stats;
    sz_engine_stats(f.e, &stats);
    cr_assert_eq(stats.tuples, 1);
    sz_engine_free(f.e);
}

/* ---- budget and depth ---- */

static void chain(struct fixture *f, int n)
{
    char child[32], parent[32];
    for (int i = 0; i < n; i++) {
        snprintf(child, sizeof(child), "folder:%d", i);
        snprintf(parent, sizeof(parent), "folder:%d", i + 1);
        cr_assert_eq(write_one(f, key(child, "parent", parent), false), 0);
    }
    cr_assert_eq(write_one(f, key(parent, "viewer", "user:a"), false), 0);
}

Test(engine, twenty_four_hops_pass_and_twenty_five_fail)
{
    struct fixture f = setup();
    chain(&f, 25);
    cr_expect_eq(check(&f, "folder:1", "viewer", "user:a", 1000), SZ_ENGINE_YES);
    cr_expect_eq(check(&f, "folder:0", "viewer", "user:a", 1000), -EINVAL);
    cr_expect_eq(f.fault.code, 2002);
    sz_engine_free(f.e);
}

Test(engine, says_when_the_steps_are_used_up)
{
    struct fixture f = setup();
    chain(&f, 20);
    cr_expect_eq(check(&f, "folder:0", "viewer", "user:a", 10), SZ_ENGINE_BUDGET);
    cr_expect_eq(check(&f, "folder:0", "viewer", "user:a", 0), SZ_ENGINE_BUDGET);
    cr_expect_eq(check(&f, "folder:0", "viewer", "user:a", 100), SZ_ENGINE_YES);
    sz_engine_free(f.e);
}

Test(engine, answers_for_names_that_it_never_saw)
{
    struct fixture f = setup();
    cr_expect_eq(check(&f, "doc:nowhere", "viewer", "user:nobody", 100), SZ_ENGINE_NO);
    cr_expect_eq(write_one(&f, key("group:all", "member", "user:*"), false), 0);
    cr_expect_eq(check(&f, "group:all", "member", "user:nobody", 100), SZ_ENGINE_YES);
    cr_expect_eq(check(&f, "group:new", "member", "group:new#member", 100), SZ_ENGINE_YES);
    cr_expect_eq(check(&f, "group:all", "member", "group:new#member", 100), SZ_ENGINE_NO);
    sz_engine_free(f.e);
}

/* ---- read and changes ---- */

static int collect(void *arg, const struct sz_tuple_key *k, struct sz_wall written)
{
    char *text = arg;
    size_t n = strlen(text);
    (void)written;
    snprintf(text + n, 2000 - n, "%.*s#%.*s@%.*s ", SZ_FMT(k->object), SZ_FMT(k->relation), SZ_FMT(k->user));
    return 0;
}

static char *read_all(struct fixture *f, struct sz_read_filter filter, size_t page)
{
    static char text[2000];
    char room[SZ_TOKEN_ROOM], token[SZ_TOKEN_ROOM] = "";
    struct sz_slice next;
    text[0] = '\0';
    do {
        cr_assert_eq(sz_engine_read(f->e, &filter, sz_cstr(token), page, collect, text, room, &next, &f->fault), 0);
        snprintf(token, sizeof(token), "%.*s", SZ_FMT(next));
    } while (token[0] != '\0');
    return text;
}

Test(engine, reads_by_pages_and_filters)
{
    struct fixture f = setup();
    static const char *const tuples[][3] = {{"doc:1", "viewer", "user:a"},   {"doc:1", "viewer", "user:b"},
                                            {"doc:1", "blocked", "user:a"},  {"doc:2", "viewer", "group:g#member"},
                                            {"group:g", "member", "user:*"}, {"group:g", "member", "user:a"}};
    for (size_t i = 0; i < SZ_COUNT(tuples); i++)
        cr_assert_eq(write_one(&f, key(tuples[i][0], tuples[i][1], tuples[i][2]), false), 0);
    for (size_t page = 1; page < 8; page++) {
        char *all = read_all(&f, (struct sz_read_filter){0}, page);
        for (size_t i = 0; i < SZ_COUNT(tuples); i++) {
            char one[64];
            snprintf(one, sizeof(one), "%s#%s@%s ", tuples[i][0], tuples[i][1], tuples[i][2]);
            cr_expect_not_null(strstr(all, one), "%s not in %s", one, all);
        }
    }
    struct sz_read_filter doc = {.object = SZ_S("doc:1")}, type = {.object = SZ_S("doc:"), .user = SZ_S("user:a")},
                          userset = {.user = SZ_S("group:g#member")}, nothing = {.object = SZ_S("doc:9")};
    cr_expect_str_eq(read_all(&f, doc, 2), "doc:1#viewer@user:a doc:1#viewer@user:b doc:1#blocked@user:a ");
    cr_expect_str_eq(read_all(&f, type, 1), "doc:1#viewer@user:a doc:1#blocked@user:a ");
    cr_expect_str_eq(read_all(&f, userset, 5), "doc:2#viewer@group:g#member ");
    cr_expect_str_eq(read_all(&f, nothing, 5), "");
    struct sz_slice next;
    char room[SZ_TOKEN_ROOM], text[2000] = "";
    cr_expect_eq(sz_engine_read(f.e, &doc, SZ_S("nonsense"), 5, collect, text, room, &next, &f.fault), -EINVAL);
    cr_expect_eq(f.fault.code, 2007);
    sz_engine_free(f.e);
}

static int collect_change(void *arg, const struct sz_tuple_key *k, bool deleted, struct sz_wall when)
{
    char *text = arg;
    size_t n = strlen(text);
    cr_expect_eq(when.us, INT64_C(1700000000) * 1000000);
    snprintf(text + n, 2000 - n, "%c%.*s#%.*s@%.*s ", deleted ? '-' : '+', SZ_FMT(k->object), SZ_FMT(k->relation),
             SZ_FMT(k->user));
    return 0;
}

Test(engine, tells_changes_in_order)
{
    struct fixture f = setup();
    char room[SZ_TOKEN_ROOM], token[SZ_TOKEN_ROOM], text[2000] = "";
    struct sz_slice next;
    write_one(&f, key("doc:1", "viewer", "user:a"), false);
    write_one(&f, key("group:g", "member", "user:a"), false);
    write_one(&f, key("doc:1", "viewer", "user:a"), true);
    cr_assert_eq(sz_engine_changes(f.e, SZ_NONE, SZ_NONE, 2, collect_change, text, room, &next, &f.fault), 0);
    snprintf(token, sizeof(token), "%.*s", SZ_FMT(next));
    cr_assert_eq(sz_engine_changes(f.e, SZ_NONE, sz_cstr(token), 10, collect_change, text, room, &next, &f.fault), 0);
    cr_expect_str_eq(text, "+doc:1#viewer@user:a +group:g#member@user:a -doc:1#viewer@user:a ");
    snprintf(token, sizeof(token), "%.*s", SZ_FMT(next));
    cr_assert_eq(sz_engine_changes(f.e, SZ_NONE, sz_cstr(token), 10, collect_change, text, room, &next, &f.fault), 0);
    cr_expect(sz_eq(next, sz_cstr(token)), "nothing new: the same token");
    text[0] = '\0';
    cr_assert_eq(sz_engine_changes(f.e, SZ_S("group"), SZ_NONE, 10, collect_change, text, room, &next, &f.fault), 0);
    cr_expect_str_eq(text, "+group:g#member@user:a ");
    cr_expect_eq(sz_engine_changes(f.e, SZ_S("doc"), next, 10, collect_change, text, room, &next, &f.fault), -EINVAL);
    cr_expect_eq(f.fault.code, 2052);
    cr_expect_eq(sz_engine_changes(f.e, SZ_NONE, SZ_S("99"), 10, collect_change, text, room, &next, &f.fault), -EINVAL);
    cr_expect_eq(f.fault.code, 2007);
    sz_engine_free(f.e);
}

/* ---- lists, expand, batch ---- */

static int count(void *arg, struct sz_slice name)
{
    (void)name;
    ++*(size_t *)arg;
    return 0;
}

Test(engine, lists_are_cut_and_say_so)
{
    struct fixture f = setup();
    char object[32];
    for (int i = 0; i < 20; i++) {
        snprintf(object, sizeof(object), "doc:%d", i);
        cr_assert_eq(write_one(&f, key(object, "viewer", "user:a"), false), 0);
    }
    for (int few = 0; few < 3; few++) { /* by results, by steps, not at all */
        size_t n = 0;
        bool cut = false;
        uint64_t steps = few == 1 ? 8 : 100000;
        struct sz_list_options o = {.max = few == 0 ? 5 : 0, .steps = &steps, .cut = &cut};
        cr_expect_eq(
            sz_engine_list_objects(f.e, f.p, SZ_S("doc"), SZ_S("viewer"), SZ_S("user:a"), &o, count, &n, &f.fault), 0);
        cr_expect_eq(cut, few < 2);
        cr_expect(few == 0 ? n == 5 : few == 1 ? n < 20 : n == 20, "%zu listed", n);
    }
    sz_engine_free(f.e);
}

Test(engine, expands_one_level)
{
    struct fixture f = setup();
    write_one(&f, key("doc:1", "viewer", "user:a"), false);
    write_one(&f, key("doc:1", "parent", "folder:f"), false);
    void *tree = NULL;
    struct sz_list_options o = {0};
    cr_assert_eq(sz_engine_expand(f.e, f.p, SZ_S("doc:1"), SZ_S("reader"), &o, &tree, &f.fault), 0);
    char *text = json_dumps(tree, JSON_COMPACT);
    cr_expect_str_eq(
        text, "{\"tree\":{\"root\":{\"name\":\"doc:1#reader\",\"difference\":{\"base\":{\"name\":\"doc:1#reader\","
              "\"leaf\":{\"computed\":{\"userset\":\"doc:1#viewer\"}}},\"subtract\":{\"name\":\"doc:1#reader\","
              "\"leaf\":{\"computed\":{\"userset\":\"doc:1#blocked\"}}}}}}}");
    free(text);
    json_decref(tree);
    cr_assert_eq(sz_engine_expand(f.e, f.p, SZ_S("doc:1"), SZ_S("viewer"), &o, &tree, &f.fault), 0);
    text = json_dumps(tree, JSON_COMPACT);
    cr_expect_not_null(strstr(text, "{\"users\":{\"users\":[\"user:a\"]}}"), "%s", text);
    cr_expect_not_null(strstr(text, "{\"tupleset\":\"doc:1#parent\",\"computed\":[{\"userset\":\"folder:f#viewer\"}]}"),
                       "%s", text);
    free(text);
    json_decref(tree);
    sz_engine_free(f.e);
}

Test(engine, one_bad_question_does_not_spoil_a_batch)
{
    struct fixture f = setup();
    write_one(&f, key("doc:1", "viewer", "user:a"), false);
    struct sz_check checks[] = {{.key = key("doc:1", "viewer", "user:a")},
                                {.key = key("doc:1", "nope", "user:a")},
                                {.key = key("doc:1", "viewer", "user:b")}};
    struct sz_batch_answer answers[3];
    uint64_t steps = 100;
    sz_engine_batch_check(f.e, f.p, checks, 3, &steps, answers);
    cr_expect_eq(answers[0].result, SZ_ENGINE_YES);
    cr_expect_eq(answers[1].result, -EINVAL);
    cr_expect_eq(answers[1].fault.code, 2000);
    cr_expect_eq(answers[2].result, SZ_ENGINE_NO);
    sz_engine_free(f.e);
}

Test(engine, explains_by_the_tuples)
{
    struct fixture f = setup();
    struct sz_buf out = {0};
    write_one(&f, key("doc:1", "parent", "folder:f"), false);
    write_one(&f, key("folder:f", "viewer", "user:a"), false);
    struct sz_check c = {.key = key("doc:1", "reader", "user:a")};
    sz_engine_explain(f.e, f.p, &c, &out);
    sz_buf_add(&out, "", 1);
    cr_expect_not_null(strstr(out.p, "doc:1#reader: yes"), "%s", out.p);
    cr_expect_not_null(strstr(out.p, "tuple doc:1#parent@folder:f"), "%s", out.p);
    cr_expect_not_null(strstr(out.p, "tuple folder:f#viewer@user:a"), "%s", out.p);
    sz_buf_fini(&out);
    sz_engine_free(f.e);
}

/* ---- the embedded source ---- */

Test(embedded, answers_at_once)
{
    struct sz_text why;
    struct sz_authz *authz =
        sz_authz_embedded_new(sz_cstr(model_text), SZ_S("- {user: user:a, relation: viewer, object: doc:1}\n"), &why);
    cr_assert_not_null(authz, "%s", why.s);
    struct sz_authz_op op;
    struct sz_check yes = {.key = key("doc:1", "viewer", "user:a")}, no = {.key = key("doc:2", "viewer", "user:a")},
                    bad = {.key = key("doc:2", "nope", "user:a")};
    cr_expect_eq(sz_authz_start(authz, NULL, &yes, SZ_NEVER, &op), 1);
    cr_expect_eq(op.answer.outcome, SZ_AUTHZ_ALLOWED);
    cr_expect_eq(sz_authz_start(authz, NULL, &no, SZ_NEVER, &op), 1);
    cr_expect_eq(op.answer.outcome, SZ_AUTHZ_DENIED);
    cr_expect_eq(sz_authz_start(authz, NULL, &bad, SZ_NEVER, &op), 1);
    cr_expect_eq(op.answer.outcome, SZ_AUTHZ_ERROR);
    cr_expect_eq(op.answer.code, 2000);
    authz->free(authz);
}

Test(embedded, says_what_is_wrong_with_its_files)
{
    struct sz_text why;
    cr_expect_null(sz_authz_embedded_new(SZ_S("model\n  schema 1.1\ntype user\ntyp doc\n"), SZ_NONE, &why));
    cr_expect_not_null(strstr(why.s, "line 4"), "%s", why.s);
    cr_expect_null(
        sz_authz_embedded_new(sz_cstr(model_text), SZ_S("- {user: user:a, relation: nope, object: doc:1}\n"), &why));
    cr_expect_not_null(strstr(why.s, "tuple 1"), "%s", why.s);
    cr_expect_null(sz_authz_embedded_new(sz_cstr(model_text), SZ_S("- {user: [}"), &why));
    cr_expect_not_null(strstr(why.s, "line 1"), "%s", why.s);
}

/* ---- tuple files ---- */

static int collect_tuple(void *arg, const struct sz_tuple_key *k, size_t line)
{
    char *text = arg;
    size_t n = strlen(text);
    (void)line;
    snprintf(text + n, 1000 - n, "%.*s|%.*s|%.*s|%.*s|%.*s;", SZ_FMT(k->user), SZ_FMT(k->relation), SZ_FMT(k->object),
             SZ_FMT(k->condition), SZ_FMT(k->condition_context));
    return 0;
}

static const struct {
    enum sz_tuple_format format;
    const char *text, *want; /* want NULL: refused, and then `text` of the message */
} files[] = {
    {SZ_TUPLES_YAML,
     "- user: user:a\n  relation: r\n  object: d:1\n  condition: {name: c, context: {t: 2024-01-01T00:00:00Z}}\n",
     "user:a|r|d:1|c|{\"t\":\"2024-01-01T00:00:00Z\"};"},
    {SZ_TUPLES_JSON, "[{\"user\":\"user:a\",\"relation\":\"r\",\"object\":\"d:1\"}]", "user:a|r|d:1||;"},
    {SZ_TUPLES_JSON,
     "{\"tuples\":[{\"key\":{\"user\":\"user:a\",\"relation\":\"r\",\"object\":\"d:1\"},\"timestamp\":\"x\"}]}",
     "user:a|r|d:1||;"},
    {SZ_TUPLES_JSONL,
     "{\"user\":\"user:a\",\"relation\":\"r\",\"object\":\"d:1\"}\r\n\n{\"user\":\"user:b\",\"relation\":\"r\","
     "\"object\":\"d:1\"}",
     "user:a|r|d:1||;user:b|r|d:1||;"},
    {SZ_TUPLES_CSV,
     "user_type,user_id,user_relation,relation,object_type,object_id,condition_name,condition_context\n"
     "group,g,member,r,d,1,,\r\nuser,\"a,\"\"b\",,r,d,2,c,\"{\"\"x\"\":1}\"\n",
     "group:g#member|r|d:1||;user:a,\"b|r|d:2|c|{\"x\":1};"},
    {SZ_TUPLES_CSV, "user_type,user_id,relation,object_type,object_id\nuser,a,r,d,1", "user:a|r|d:1||;"},
    {SZ_TUPLES_YAML, "- user: user:a\n", NULL},
    {SZ_TUPLES_YAML, "a: &a [1]\nb: *a\n", NULL},
    {SZ_TUPLES_JSON, "[1]", NULL},
    {SZ_TUPLES_JSONL, "{\"user\":", NULL},
    {SZ_TUPLES_CSV, "user_type,user_id,relation,object_type\nuser,a,r,d", NULL},
    {SZ_TUPLES_CSV, "nope\n", NULL},
    {SZ_TUPLES_CSV, "", NULL},
    {SZ_TUPLES_CSV, "user_type,user_id,relation,object_type,object_id\n\"user,a,r,d,1", NULL},
};

Test(tuple_files, every_form)
{
    for (size_t i = 0; i < SZ_COUNT(files); i++) {
        char text[1000] = "";
        struct sz_text why = {""};
        int err = sz_tuples_parse(sz_cstr(files[i].text), files[i].format, collect_tuple, text, &why);
        if (files[i].want == NULL)
            cr_expect(err != 0 && why.s[0] != '\0', "%zu: %s", i, text);
        else
            cr_expect(err == 0 && strcmp(text, files[i].want) == 0, "%zu: %s (%s)", i, text, why.s);
    }
}
