/* fga/json_tree.c: the same verdicts and values as sz_json_check with jansson, on hostile text first. */
#include <criterion/criterion.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/json_tree.h"
#include "subzero/crypto.h"

TestSuite(json_tree, .init = sz_crypto_init);

static int read_text(struct sz_json_tree *tree, char *room, const char *text)
{
    memcpy(room, text, strlen(text) + 1);
    return sz_json_read(tree, room, strlen(text));
}

static const char *const refused[] = {
    "",
    " ",
    "{",
    "}",
    "[",
    "{\"a\":1",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{,}",
    "[1,]",
    "[1 2]",
    "{\"a\":1}x",
    "{\"a\":1}{}",
    "{\"a\":01}",
    "{\"a\":+1}",
    "{\"a\":.5}",
    "{\"a\":1.}",
    "{\"a\":0x1}",
    "{\"a\":NaN}",
    "{\"a\":Infinity}",
    "{\"a\":tru}",
    "{\"a\":TRUE}",
    "{'a':1}",
    "{a:1}",
    "{\"a\":\"\n\"}",
    "{\"a\":\"\\x41\"}",
    "{\"a\":\"\\u12\"}",
    "{\"a\":\"\\ud800\"}",
    "{\"a\":\"\\ud800\\u0041\"}",
    "{\"a\":\"\\udc00\\ud800\"}",
    "{\"a\\u0000\":1}",
    "\xef\xbb\xbf{}",
    "{\"a\":\"\xff\"}",
    "{\"a\":\"\xed\xa0\x80\"}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"x\":{\"a\":1,\"b\":2,\"a\":3}}",
    "[{\"a\":1},{\"a\":1,\"a\":1}]",
    "{\"\":1,\"\":2}",
};

Test(json_tree, what_is_not_strict_is_refused)
{
    struct sz_json_tree tree;
    char room[256];
    for (size_t i = 0; i < SZ_COUNT(refused); i++)
        cr_expect_eq(read_text(&tree, room, refused[i]), -EINVAL, "%s", refused[i]);
}

Test(json_tree, depth_and_length_are_bounded)
{
    static struct sz_json_tree tree;
    static char text[SZ_JSON_TEXT_MAX + 2];
    for (size_t depth = 1; depth <= 5000; depth = depth < 100 ? depth + 1 : depth * 2) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        cr_expect_eq(sz_json_read(&tree, text, 2 * depth), depth <= SZ_JSON_TREE_DEPTH ? 0 : -EINVAL);
    }
    memset(text, ' ', sizeof(text));
    text[0] = '1';
    cr_expect_eq(sz_json_read(&tree, text, SZ_JSON_TEXT_MAX + 1), -E2BIG);
    cr_expect_eq(sz_json_read(&tree, text, SZ_JSON_TEXT_MAX), 0);
}

/* As many values as a text can hold: the nodes suffice. */
Test(json_tree, the_densest_texts_fit)
{
    static const char *const items[] = {"1,", "[],", "\"\","};
    static struct sz_json_tree tree;
    static char text[SZ_JSON_TEXT_MAX + 8];
    for (size_t i = 0; i < SZ_COUNT(items); i++) {
        size_t n = 0, item = strlen(items[i]), count = 0;
        text[n++] = '[';
        for (; n + item <= SZ_JSON_TEXT_MAX; n += item, count++)
            memcpy(text + n, items[i], item);
        text[n - 1] = ']';
        cr_expect_eq(sz_json_read(&tree, text, n), 0);
        cr_expect_eq(tree.n, count + 1);
    }
}

/* Beyond a few names a hash table takes over: same verdict. */
Test(json_tree, many_names_are_still_unique)
{
    static struct sz_json_tree tree;
    for (unsigned count = 2; count <= 900; count += 13) {
        for (int twice = 0; twice < 2; twice++) {
            struct sz_buf b = {0};
            for (unsigned i = 0; i < count; i++)
                sz_buf_printf(&b, "%s\"name%u\":[%u]", i == 0 ? "{" : ",",
                              twice != 0 && i == count - 1 ? count / 2 - (count == 2 ? 1 : 0) : i, i);
            sz_buf_printf(&b, "}");
            cr_expect_eq(sz_json_read(&tree, b.p, b.n), twice != 0 ? -EINVAL : 0, "%u %d", count, twice);
            sz_buf_fini(&b);
        }
    }
}

Test(json_tree, members_items_and_escapes)
{
    struct sz_json_tree tree;
    char room[512];
    cr_assert_eq(
        read_text(&tree, room,
                  " {\"\\u0065xp\" : 1 , \"s\":\"a\\u00e9\\ud83d\\ude00\\/\\n\\u0000z\",\"o\":{\"x\":[],\"y\":{}},"
                  "\"l\":[1,[2,3],{\"q\":4},\"five\"],\"t\":true,\"f\":false,\"n\":null} "),
        0);
    const struct sz_json_node *root = tree.v;
    cr_expect(sz_json_is(sz_json_get(&tree, root, SZ_S("exp")), SZ_JSON_NUMBER));
    cr_expect(sz_eq(sz_json_get_string(&tree, root, SZ_S("s")), SZ_S("a\xc3\xa9\xf0\x9f\x98\x80/\n\0z")));
    cr_expect(sz_json_get_string(&tree, root, SZ_S("exp")).p == NULL);
    cr_expect(sz_json_get(&tree, root, SZ_S("x")) == NULL, "not of the inner object");
    cr_expect_eq(sz_json_members(&tree, root), 7);
    const struct sz_json_node *list = sz_json_get(&tree, root, SZ_S("l")), *item = NULL;
    static const enum sz_json_type types[] = {SZ_JSON_NUMBER, SZ_JSON_ARRAY, SZ_JSON_OBJECT, SZ_JSON_STRING};
    size_t n = 0;
    while ((item = sz_json_next(&tree, list, item)) != NULL)
        cr_expect_eq(item->type, types[n++]);
    cr_expect_eq(n, 4);
    const struct sz_json_node *inner = sz_json_get(&tree, root, SZ_S("o"));
    cr_expect(sz_json_next(&tree, sz_json_get(&tree, inner, SZ_S("x")), NULL) == NULL);
    cr_expect_eq(sz_json_members(&tree, sz_json_get(&tree, inner, SZ_S("y"))), 0);
    cr_expect(sz_json_is(sz_json_get(&tree, root, SZ_S("n")), SZ_JSON_NULL));
}

static const struct {
    const char *literal;
    int rc;
    int64_t value;
} integers[] = {
    {"0", 0, 0},
    {"-0", 0, 0},
    {"-1", 0, -1},
    {"9223372036854775807", 0, INT64_MAX},
    {"-9223372036854775808", 0, INT64_MIN},
    {"9223372036854775808", -ERANGE, 0},
    {"-9223372036854775809", -ERANGE, 0},
    {"18446744073709551615", -ERANGE, 0},
    {"99999999999999999999999999", -ERANGE, 0},
    {"1.0", -EINVAL, 0},
    {"1e3", -EINVAL, 0},
};

Test(json_tree, integers_never_wrap)
{
    struct sz_json_tree tree;
    char room[64];
    for (size_t i = 0; i < SZ_COUNT(integers); i++) {
        int64_t value = 77;
        cr_assert_eq(read_text(&tree, room, integers[i].literal), 0);
        cr_expect_eq(sz_json_integer(&tree, tree.v, &value), integers[i].rc, "%s", integers[i].literal);
        cr_expect(integers[i].rc != 0 || value == integers[i].value, "%s", integers[i].literal);
    }
    double real;
    cr_assert_eq(read_text(&tree, room, "4.1024448e9"), 0);
    cr_expect(sz_json_real(&tree, tree.v, &real) == 0 && real == 4102444800.0);
    cr_assert_eq(read_text(&tree, room, "1e999"), 0);
    cr_expect_eq(sz_json_real(&tree, tree.v, &real), -ERANGE);
}

/* Every text of every test vector would do; here, texts made of a few tokens, all of them up to a length. */
Test(json_tree, agrees_with_jansson_on_every_short_text)
{
    static const char *const tokens[] = {"{",     "}",           "[", "]",    ":",    ",",
                                         "\"a\"", "\"\\u0061\"", "1", "-0.5", "true", " "};
    struct sz_json_tree tree;
    unsigned index[6];
    for (size_t length = 1; length <= SZ_COUNT(index); length++) {
        memset(index, 0, sizeof(index));
        for (size_t at = 0; at < length;) {
            char text[80], room[80];
            size_t n = 0;
            for (size_t i = 0; i < length; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", tokens[index[i]]);
            json_t *value = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
            int rc = read_text(&tree, room, text);
            cr_assert((rc == 0) == (value != NULL), "%s", text);
            json_decref(value);
            for (at = 0; at < length && ++index[at] == SZ_COUNT(tokens); at++)
                index[at] = 0;
        }
    }
}
