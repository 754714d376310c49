/* Range sets against a plain walk over the same ranges, and what a list file may hold. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "subzero/prefixes.h"

static struct sz_cidr cidr(const char *s)
{
    struct sz_text why;
    struct sz_cidr out;
    cr_assert_eq(sz_cidr_parse(sz_cstr(s), &out, &why), 0, "%s: %s", s, why.s);
    return out;
}

static struct sz_addr addr(const char *s)
{
    struct sz_addr out;
    cr_assert_eq(sz_addr_parse(sz_cstr(s), &out), 0, "%s", s);
    return out;
}

static struct sz_prefixes *set_of(const char *text)
{
    struct sz_prefixes_builder *b = sz_prefixes_builder_new();
    struct sz_text why = {""};
    cr_assert_eq(sz_prefixes_read(b, sz_cstr(text), 1, &why), 0, "%s", why.s);
    return sz_prefixes_new(&b);
}

Test(prefixes, lists_have_comments_blanks_and_both_families)
{
    struct sz_prefixes *set = set_of("# risky\n\n 10.0.0.0/8 \r\n192.0.2.7 # one\n2001:db8::/32\n\t::1\n");
    static const struct {
        const char *addr;
        bool in;
    } rows[] = {{"10.0.0.0", true},       {"10.255.255.255", true},
                {"9.255.255.255", false}, {"11.0.0.0", false},
                {"192.0.2.7", true},      {"192.0.2.8", false},
                {"192.0.2.6", false},     {"2001:db8:ffff::", true},
                {"2001:db9::", false},    {"::1", true},
                {"::2", false},           {"::", false},
                {"::ffff:10.1.1.1", true}};
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        uint8_t value;
        cr_assert_eq(sz_prefixes_find(set, addr(rows[i].addr), &value), rows[i].in, "%s", rows[i].addr);
    }
    cr_assert_eq(sz_prefixes_count(set), 4);
    sz_prefixes_free(&set);
}

Test(prefixes, mistakes_name_their_line)
{
    static const char *const texts[] = {"10.0.0.0/8\nten\n", "\n10.0.0.1/8\n", "1.1.1.1\n1.2.3.4/33",
                                        "1.1.1.1\n::/129\n"};
    for (size_t i = 0; i < SZ_COUNT(texts); i++) {
        struct sz_prefixes_builder *b = sz_prefixes_builder_new();
        struct sz_text why = {""};
        cr_assert_eq(sz_prefixes_read(b, sz_cstr(texts[i]), 1, &why), -EINVAL, "%s", texts[i]);
        cr_assert(strstr(why.s, "line 2: ") == why.s, "%s", why.s);
        sz_prefixes_builder_free(&b);
    }
}

Test(prefixes, the_ends_of_the_address_space)
{
    struct sz_prefixes *set = set_of("0.0.0.0/0\n::/0\n");
    uint8_t value;
    cr_assert(sz_prefixes_find(set, addr("255.255.255.255"), &value) && sz_prefixes_find(set, addr("0.0.0.0"), &value));
    cr_assert(sz_prefixes_find(set, addr("::"), &value));
    cr_assert(sz_prefixes_find(set, addr("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), &value));
    sz_prefixes_free(&set);
    struct sz_prefixes_builder *none = sz_prefixes_builder_new();
    set = sz_prefixes_new(&none);
    cr_assert_not(sz_prefixes_find(set, addr("1.2.3.4"), &value));
    cr_assert_not(sz_prefixes_find(set, addr("::1"), &value));
    sz_prefixes_free(&set);
}

/* The definition, walked: the narrowest that holds it, between equals the last. */
static bool plain(const struct sz_cidr *ranges, const uint8_t *values, size_t n, struct sz_addr a, uint8_t *value)
{
    int best = -1;
    for (size_t i = 0; i < n; i++) {
        if (sz_cidr_contains(&ranges[i], a) && (best < 0 || ranges[i].bits >= ranges[best].bits))
            best = (int)i;
    }
    if (best >= 0)
        *value = values[best];
    return best >= 0;
}

static struct sz_addr random_addr(bool v4)
{
    struct sz_addr a = {{0}};
    for (int i = 0; i < 16; i++)
        a.b[i] = (uint8_t)(rand() % 8 == 0 ? rand() : rand() % 3); /* crowded, so that ranges nest */
    if (v4)
        memcpy(a.b, (const uint8_t[12]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 12);
    else
        a.b[0] |= 0x20;
    return a;
}

Test(prefixes, random_sets_equal_the_plain_walk)
{
    srand(7);
    for (unsigned round = 0; round < 300; round++) {
        struct sz_prefixes_builder *b = sz_prefixes_builder_new();
        struct sz_cidr ranges[120];
        uint8_t values[120];
        size_t n = (size_t)(rand() % 120);
        for (size_t i = 0; i < n; i++) {
            bool v4 = rand() % 2 == 0;
            unsigned bits = (unsigned)(v4 ? rand() % 33 : rand() % 129);
            ranges[i].net = sz_addr_prefix(random_addr(v4), bits);
            ranges[i].bits = (uint8_t)(v4 ? bits + 96 : bits);
            values[i] = (uint8_t)(rand() % 256);
            cr_assert_eq(sz_prefixes_add(b, &ranges[i], values[i]), 0);
        }
        struct sz_prefixes *set = sz_prefixes_new(&b);
        for (unsigned k = 0; k < 400; k++) {
            struct sz_addr a = k % 2 == 0 || n == 0 ? random_addr(k % 4 == 0) : ranges[(size_t)rand() % n].net;
            uint8_t expected = 0, got = 0;
            bool in = plain(ranges, values, n, a, &expected);
            cr_assert_eq(sz_prefixes_find(set, a, &got), in);
            cr_assert(!in || got == expected);
        }
        sz_prefixes_free(&set);
    }
}

Test(prefixes, a_million_ranges_and_not_one_more)
{
    struct sz_prefixes_builder *b = sz_prefixes_builder_new();
    struct sz_cidr range = cidr("1.0.0.0");
    uint8_t value;
    for (uint32_t i = 0; i < SZ_PREFIXES_MAX; i++) {
        uint32_t n = 0x01000000u + i * 3;
        for (int k = 0; k < 4; k++)
            range.net.b[12 + k] = (uint8_t)(n >> (24 - 8 * k));
        cr_assert_eq(sz_prefixes_add(b, &range, (uint8_t)i), 0);
    }
    cr_assert_eq(sz_prefixes_add(b, &range, 0), -E2BIG);
    struct sz_prefixes *set = sz_prefixes_new(&b);
    cr_assert_leq(sz_prefixes_bytes(set), 13u << 20);
    cr_assert(sz_prefixes_find(set, addr("1.0.0.3"), &value) && value == 1);
    cr_assert_not(sz_prefixes_find(set, addr("1.0.0.4"), &value));
    sz_prefixes_free(&set);
}
