/* addr.c: spellings that fool others, mapped addresses, ranges. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "subzero/addr.h"

Test(addr, spellings_that_are_no_address)
{
    static const char *const bad[] = {"",
                                      "127.1",
                                      "2130706433",
                                      "0x7f.0.0.1",
                                      "0177.0.0.1",
                                      "127.0.0.01",
                                      "127.0.0.256",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.4 ",
                                      " 1.2.3.4",
                                      "1.2.3.4:80",
                                      "[::1]",
                                      "::1%lo",
                                      "fe80::1%1",
                                      ":::",
                                      "::1::",
                                      "1:2:3:4:5:6:7:8:9",
                                      "12345::",
                                      "::ffff:1.2.3",
                                      "::ffff:01.2.3.4",
                                      "1.2.3.-4",
                                      "1..2.3",
                                      "unknown",
                                      "_hidden",
                                      "localhost",
                                      "1:2:3:4:5:6:7:8::",
                                      "\xD9\xA1.2.3.4",
                                      "1.2.3.4/32",
                                      "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        struct sz_addr a;
        cr_expect_eq(sz_addr_parse(sz_cstr(bad[i]), &a), -EINVAL, "%s", bad[i]);
    }
    struct sz_addr a;
    cr_expect_eq(sz_addr_parse(SZ_NONE, &a), -EINVAL);
    cr_expect_eq(sz_addr_parse(SZ_S("1.2.3.4\0"), &a), -EINVAL);
    cr_expect_eq(sz_addr_parse(SZ_S("::1\0::2"), &a), -EINVAL);
}

static struct sz_addr addr(const char *text)
{
    struct sz_addr a;
    cr_assert_eq(sz_addr_parse(sz_cstr(text), &a), 0, "%s", text);
    return a;
}

Test(addr, mapped_ipv6_is_ipv4)
{
    static const struct {
        const char *text, *canonical;
        bool v4, loopback;
    } rows[] = {
        {"127.0.0.1", "127.0.0.1", true, true},
        {"::ffff:127.0.0.1", "127.0.0.1", true, true},
        {"::ffff:7f00:1", "127.0.0.1", true, true},
        {"0:0:0:0:0:FFFF:7F00:0001", "127.0.0.1", true, true},
        {"::FFFF:10.1.2.3", "10.1.2.3", true, false},
        {"127.255.255.254", "127.255.255.254", true, true},
        {"::1", "::1", false, true},
        {"::", "::", false, false},
        {"::2", "::2", false, false},
        {"2001:DB8:0:0:0:0:0:1", "2001:db8::1", false, false},
        {"255.255.255.255", "255.255.255.255", true, false},
        {"0.0.0.0", "0.0.0.0", true, false},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_addr a = addr(rows[i].text);
        char text[SZ_ADDR_TEXT];
        size_t n = sz_addr_format(a, text);
        cr_expect_str_eq(text, rows[i].canonical);
        cr_expect_eq(n, strlen(text));
        cr_expect_eq(sz_addr_is_v4(a), rows[i].v4, "%s", rows[i].text);
        cr_expect_eq(sz_addr_is_loopback(a), rows[i].loopback, "%s", rows[i].text);
        cr_expect(sz_addr_eq(a, addr(text)));
    }
}

Test(addr, from_sockaddr)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0A010203)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_scope_id = 7};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sz_addr a;
    cr_expect_eq(sz_addr_from_sockaddr((struct sockaddr *)&in, sizeof(in), &a), 0);
    cr_expect(sz_addr_eq(a, addr("10.1.2.3")));
    inet_pton(AF_INET6, "::ffff:10.1.2.3", &in6.sin6_addr);
    cr_expect_eq(sz_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in6), &a), 0);
    cr_expect(sz_addr_eq(a, addr("10.1.2.3")));
    cr_expect_eq(sz_addr_from_sockaddr((struct sockaddr *)&un, sizeof(un), &a), -EAFNOSUPPORT);
    cr_expect_eq(sz_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in), &a), -EAFNOSUPPORT);
    cr_expect_eq(sz_addr_from_sockaddr((struct sockaddr *)&in, 0, &a), -EAFNOSUPPORT);
}

Test(addr, prefixes)
{
    static const struct {
        const char *in;
        unsigned bits;
        const char *out;
    } rows[] = {
        {"10.1.2.3", 24, "10.1.2.0"},      {"10.1.2.3", 0, "0.0.0.0"},
        {"10.1.2.255", 31, "10.1.2.254"},  {"10.1.2.3", 32, "10.1.2.3"},
        {"10.1.2.3", 99, "10.1.2.3"},      {"2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::"},
        {"2001:db8::1", 0, "::"},          {"2001:db8::1", 128, "2001:db8::1"},
        {"2001:dbf::1", 29, "2001:db8::"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        cr_expect(sz_addr_eq(sz_addr_prefix(addr(rows[i].in), rows[i].bits), addr(rows[i].out)), "%s/%u", rows[i].in,
                  rows[i].bits);
    }
}

Test(cidr, mistakes_say_what_to_write)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"10.0.0.1/8", "write 10.0.0.0/8"},
        {"::ffff:10.0.0.1/104", "write 10.0.0.0/8"},
        {"2001:db8::1/32", "write 2001:db8::/32"},
        {"::ffff:0:0/80", "bits set"},
        {"10.0.0.0/33", "from 0 to 32"},
        {"::/129", "from 0 to 128"},
        {"10.0.0.0/", "prefix length"},
        {"10.0.0.0/08", "prefix length"},
        {"10.0.0.0/ 8", "prefix length"},
        {"10.0.0.0/-1", "prefix length"},
        {"10.0.0.0/8/8", "prefix length"},
        {"10.0.0.0/99999999999999999999", "prefix length"},
        {"10.0.0/8", "not an IP address"},
        {"/8", "not an IP address"},
        {"", "not an IP address"},
        {"example.com", "not an IP address"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_cidr range;
        struct sz_text why = {""};
        cr_expect_eq(sz_cidr_parse(sz_cstr(rows[i].text), &range, &why), -EINVAL, "%s", rows[i].text);
        cr_expect_not_null(strstr(why.s, rows[i].says), "%s: %s", rows[i].text, why.s);
    }
}

Test(cidr, contains)
{
    static const struct {
        const char *range, *address;
        bool in;
    } rows[] = {
        {"10.0.0.0/8", "10.255.0.1", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
        {"::ffff:10.0.0.0/104", "10.0.0.1", true},
        {"0.0.0.0/0", "1.2.3.4", true},
        {"0.0.0.0/0", "::1", false}, /* a /0 of IPv4 is all of IPv4, no more */
        {"0.0.0.0/0", "::1:2:3", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "1.2.3.4", false}, /* and the other way round */
        {"::/0", "::ffff:1.2.3.4", false},
        {"::ffff:0:0/96", "1.2.3.4", true},
        {"::ffff:0:0/96", "::1", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"127.0.0.0/31", "127.0.0.1", true},
        {"127.0.0.0/31", "127.0.0.2", false},
        {"fe80::/10", "febf::1", true},
        {"fe80::/10", "fec0::1", false},
        {"::1/128", "::1", true},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_cidr range;
        struct sz_text why;
        cr_assert_eq(sz_cidr_parse(sz_cstr(rows[i].range), &range, &why), 0, "%s", rows[i].range);
        cr_expect_eq(sz_cidr_contains(&range, addr(rows[i].address)), rows[i].in, "%s in %s", rows[i].address,
                     rows[i].range);
    }
}

Test(cidr, lengths_are_what_people_write)
{
    struct sz_cidr range;
    struct sz_text why;
    cr_assert_eq(sz_cidr_parse(SZ_S("10.0.0.0/8"), &range, &why), 0);
    cr_expect_eq(sz_cidr_length(&range), 8);
    cr_assert_eq(sz_cidr_parse(SZ_S("0.0.0.0/0"), &range, &why), 0);
    cr_expect_eq(sz_cidr_length(&range), 0);
    cr_assert_eq(sz_cidr_parse(SZ_S("2001:db8::/32"), &range, &why), 0);
    cr_expect_eq(sz_cidr_length(&range), 32);
}
