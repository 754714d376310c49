#include "subzero/addr_count.h"

#include <criterion/criterion.h>

#include "subzero/crypto.h"

static struct sz_addr addr(const char *s)
{
    struct sz_addr a;
    cr_assert_eq(sz_addr_parse(sz_cstr(s), &a), 0);
    return a;
}

Test(addr_count, an_address_has_its_share_and_no_more, .init = sz_crypto_init)
{
    struct sz_addr_count *table = sz_addr_count_new();
    for (int i = 0; i < 5; i++)
        cr_expect(sz_addr_count_enter(table, addr("192.0.2.1"), 5));
    cr_expect_not(sz_addr_count_enter(table, addr("192.0.2.1"), 5));
    cr_expect_not(sz_addr_count_enter(table, addr("::ffff:192.0.2.1"), 5), "the mapped form is the same address");
    cr_expect(sz_addr_count_enter(table, addr("192.0.2.2"), 5));
    sz_addr_count_leave(table, addr("192.0.2.1"));
    cr_expect(sz_addr_count_enter(table, addr("192.0.2.1"), 5));
    sz_addr_count_free(&table);
}

Test(addr_count, ipv6_counts_by_its_network, .init = sz_crypto_init)
{
    struct sz_addr_count *table = sz_addr_count_new();
    cr_expect(sz_addr_count_enter(table, addr("2001:db8::1"), 2));
    cr_expect(sz_addr_count_enter(table, addr("2001:db8::2"), 2));
    cr_expect_not(sz_addr_count_enter(table, addr("2001:db8:0:0:ffff::3"), 2));
    cr_expect(sz_addr_count_enter(table, addr("2001:db8:0:1::1"), 2));
    sz_addr_count_free(&table);
}

Test(addr_count, many_others_do_not_use_up_a_share, .init = sz_crypto_init)
{
    struct sz_addr_count *table = sz_addr_count_new();
    int refused = 0;
    for (unsigned i = 0; i < 20000; i++) {
        struct sz_addr a = addr("10.0.0.0");
        a.b[13] = (uint8_t)(i >> 16);
        a.b[14] = (uint8_t)(i >> 8);
        a.b[15] = (uint8_t)i;
        refused += !sz_addr_count_enter(table, a, 64);
    }
    cr_expect_eq(refused, 0);
    cr_expect(sz_addr_count_enter(table, addr("192.0.2.1"), 64));
    sz_addr_count_free(&table);
}
