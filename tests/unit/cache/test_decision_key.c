/* Names of questions: two that can be answered differently never share one; spelling alone does not make two. */
#include <criterion/criterion.h>

#include "cache/decision_key.h"

#define KEY(u, r, o)                                \
    {                                               \
        SZ_S(u), SZ_S(r), SZ_S(o), SZ_NONE, SZ_NONE \
    }

static bool same(uint64_t epoch_a, const struct sz_check *a, uint64_t epoch_b, const struct sz_check *b)
{
    struct sz_decision_fields fa, fb;
    sz_decision_fields_init(&fa, epoch_a, a);
    sz_decision_fields_init(&fb, epoch_b, b);
    bool equal = sz_eq(sz_buf_slice(&fa.b), sz_buf_slice(&fb.b));
    sz_decision_fields_fini(&fa);
    sz_decision_fields_fini(&fb);
    return equal;
}

static bool same_context(const char *a, const char *b)
{
    const struct sz_check ca = {.key = KEY("user:a", "r", "doc:1"), .context = sz_cstr(a)};
    const struct sz_check cb = {.key = KEY("user:a", "r", "doc:1"), .context = sz_cstr(b)};
    return same(1, &ca, 1, &cb);
}

Test(decision_key, every_part_counts)
{
    const struct sz_check base = {.key = KEY("user:a", "viewer", "doc:1")};
    const struct sz_check others[] = {
        {.key = KEY("user:b", "viewer", "doc:1")},
        {.key = KEY("user:a", "editor", "doc:1")},
        {.key = KEY("user:a", "viewer", "doc:2")},
        {.key = KEY("user:aviewer", "", "doc:1")}, /* parts do not run into one another */
        {.key = KEY("viewer", "user:a", "doc:1")},
        {.key = KEY("user:a", "viewer", "doc:1"), .context = SZ_S("{}")},
        {.key = KEY("user:a", "viewer", "doc:1"), .contextual = &base.key, .contextual_n = 1},
    };
    cr_assert(same(1, &base, 1, &base));
    cr_assert_not(same(1, &base, 2, &base), "the state of the source");
    for (size_t i = 0; i < SZ_COUNT(others); i++)
        cr_assert_not(same(1, &base, 1, &others[i]), "%zu", i);
}

Test(decision_key, a_context_has_one_spelling)
{
    cr_assert(same_context("{\"a\":1,\"b\":[true,null]}", " { \"b\" : [ true , null ] , \"a\" : 1 } "));
    cr_assert(same_context("{\"a\":\"\\u0041\"}", "{\"a\":\"A\"}"));
    cr_assert_not(same_context("{\"a\":1}", "{\"a\":2}"));
    cr_assert_not(same_context("{\"a\":1}", "{\"a\":\"1\"}"));
    cr_assert_not(same_context("{\"a\":[1,2]}", "{\"a\":[2,1]}"), "a list has an order");
    cr_assert_not(same_context("{\"a\":1}", "{\"a\":1,\"a\":1}"), "what is no strict JSON stays apart");
    cr_assert_not(same_context("{\"a\":1,\"b\":1", "{\"b\":1,\"a\":1"));
    cr_assert_not(same_context("{\"a\":9007199254740993}", "{\"a\":9007199254740992}"));
}

Test(decision_key, contextual_tuples_have_no_order_but_among_equals)
{
    const struct sz_tuple_key ab[] = {KEY("user:a", "r", "doc:1"), KEY("user:b", "r", "doc:1")};
    const struct sz_tuple_key ba[] = {KEY("user:b", "r", "doc:1"), KEY("user:a", "r", "doc:1")};
    const struct sz_tuple_key c1 = {SZ_S("user:a"), SZ_S("r"), SZ_S("doc:1"), SZ_S("c"), SZ_S("{\"x\":1}")};
    const struct sz_tuple_key c2 = {SZ_S("user:a"), SZ_S("r"), SZ_S("doc:1"), SZ_S("c"), SZ_S("{\"x\":2}")};
    const struct sz_tuple_key c12[] = {c1, c2}, c21[] = {c2, c1};
    struct sz_check a = {.key = KEY("user:a", "viewer", "doc:1"), .contextual = ab, .contextual_n = 2}, b = a;
    b.contextual = ba;
    cr_assert(same(1, &a, 1, &b));
    b.contextual_n = 1;
    cr_assert_not(same(1, &a, 1, &b));
    a.contextual = c12;
    b = a;
    b.contextual = c21; /* the last of one key is the one that counts */
    cr_assert_not(same(1, &a, 1, &b));
    b.contextual = ab;
    cr_assert_not(same(1, &a, 1, &b), "conditions count");
}

Test(decision_key, long_names_fit_as_well)
{
    char name[3000];
    memset(name, 'x', sizeof(name));
    struct sz_check a = {.key = {sz_slice(name, 990), SZ_S("r"), SZ_S("d:1"), SZ_NONE, SZ_NONE}}, b = a;
    cr_assert(same(1, &a, 1, &b));
    for (size_t n = 980; n < 1030; n++) { /* around the room on the stack */
        a.key.user.n = n;
        b.key.user.n = n + 1;
        cr_assert_not(same(1, &a, 1, &b));
    }
    a.key.user.n = b.key.user.n = sizeof(name);
    cr_assert(same(1, &a, 1, &b));
}
