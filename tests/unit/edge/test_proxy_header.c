#include "edge/proxy_header.h"

#include <criterion/criterion.h>
#include <errno.h>

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

Test(proxy_header, anything_else_is_refused)
{
    static const struct sz_slice bad[] = {
        SZ_S("GET / HTTP/1.1\r\n\r\n"),
        SZ_S("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n"),
        SZ_S("PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n"),
        SZ_S("PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n"),
        SZ_S("PROXY TCP4  1.2.3.4 5.6.7.8 1 2\r\n"),
        SZ_S("PROXY TCP4 ::1 ::1 1 2\r\n"),
        SZ_S("PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n"),
        SZ_S("PROXY TCP4 1.2.3.4 x 1 2\r\n"),
        SZ_S("PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n"),
        SZ_S("PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n"),
        SZ_S("PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n"),
        SZ_S("PROXY UNKNOWNX\r\n"),
        SZ_S("PROXY "
             "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234"
             "5"),
        SZ_S(SIGNATURE "\x11\x11\0\x0c"
                       "\1\2\3\4\5\6\7\10\0\1\0\2"),
        SZ_S(SIGNATURE "\x22\x11\0\x0c"
                       "\1\2\3\4\5\6\7\10\0\1\0\2"),
        SZ_S(SIGNATURE "\x21\x12\0\x0c"
                       "\1\2\3\4\5\6\7\10\0\1\0\2"),
        SZ_S(SIGNATURE "\x21\x11\0\x04"
                       "\1\2\3\4"),
        SZ_S(SIGNATURE "\x21\x21\0\x0c"
                       "\1\2\3\4\5\6\7\10\0\1\0\2"),
        SZ_S(SIGNATURE "\x21\x11\xff\xff"),
    };
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        struct sz_proxy_header out;
        cr_expect_eq(sz_proxy_header_parse(bad[i], &out), -EINVAL, "row %zu", i);
    }
}

Test(proxy_header, the_client_is_what_the_header_says)
{
    static const struct {
        struct sz_slice bytes;
        const char *client; /* NULL: none */
        uint16_t port;
    } rows[] = {
        {SZ_S("PROXY TCP4 192.0.2.1 198.51.100.1 4711 443\r\n"), "192.0.2.1", 4711},
        {SZ_S("PROXY TCP6 2001:db8::1 2001:db8::2 4711 443\r\n"), "2001:db8::1", 4711},
        {SZ_S("PROXY UNKNOWN\r\n"), NULL, 0},
        {SZ_S("PROXY UNKNOWN ff:ff whatever\r\n"), NULL, 0},
        {SZ_S(SIGNATURE "\x21\x11\0\x0c"
                        "\xc0\0\2\1\xc6\x33\x64\1\x12\x67\1\xbb"),
         "192.0.2.1", 4711},
        {SZ_S(SIGNATURE "\x21\x21\0\x24"
                        "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2\x12\x67\1\xbb"),
         "2001:db8::1", 4711},
        {SZ_S(SIGNATURE "\x21\x11\0\x0f"
                        "\xc0\0\2\1\xc6\x33\x64\1\x12\x67\1\xbb\4\0\0"),
         "192.0.2.1", 4711},
        {SZ_S(SIGNATURE "\x20\0\0\0"), NULL, 0},
        {SZ_S(SIGNATURE "\x21\0\0\0"), NULL, 0},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_proxy_header out;
        for (size_t n = 0; n < rows[i].bytes.n; n++)
            cr_expect_eq(sz_proxy_header_parse(sz_sub(rows[i].bytes, 0, n), &out), SZ_PROXY_HEADER_MORE, "row %zu, %zu",
                         i, n);
        char text[SZ_ADDR_TEXT] = "";
        cr_assert_eq(sz_proxy_header_parse(rows[i].bytes, &out), 0, "row %zu", i);
        cr_expect_eq(out.length, rows[i].bytes.n, "row %zu", i);
        cr_expect_eq(out.has_client, rows[i].client != NULL, "row %zu", i);
        if (out.has_client)
            sz_addr_format(out.client, text);
        cr_expect_str_eq(text, rows[i].client != NULL ? rows[i].client : "", "row %zu", i);
        cr_expect_eq(out.port, rows[i].port, "row %zu", i);
    }
}
