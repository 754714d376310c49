/* utf8.c: RFC 3629 to the letter, against a decoder that is slow and obvious. */
#include <criterion/criterion.h>

#include "base/utf8.h"

/* Decodes the claimed length first, then asks whether that was the shortest form of a real character. */
static bool obvious(const unsigned char *p, size_t n)
{
    while (n > 0) {
        size_t len = p[0] < 0x80             ? 1
                     : (p[0] & 0xE0) == 0xC0 ? 2
                     : (p[0] & 0xF0) == 0xE0 ? 3
                     : (p[0] & 0xF8) == 0xF0 ? 4
                                             : 0;
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        if (len == 0 || len > n)
            return false;
        uint32_t code = len == 1 ? p[0] : p[0] & (0x7Fu >> len);
        for (size_t i = 1; i < len; i++) {
            if ((p[i] & 0xC0) != 0x80)
                return false;
            code = code << 6 | (p[i] & 0x3F);
        }
        if (code < least[len] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return false;
        p += len;
        n -= len;
    }
    return true;
}

Test(utf8, every_pair_and_every_edge_agrees)
{
    static const unsigned char edge[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1,
                                         0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3,
                                         0xF4, 0xF5, 0xF7, 0xF8, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF};
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            unsigned char two[2] = {(unsigned char)a, (unsigned char)b};
            cr_assert_eq(sz_utf8_valid(sz_slice(two, 2)), obvious(two, 2), "%02x %02x", a, b);
            for (size_t c = 0; c < sizeof(edge); c++) {
                for (size_t d = 0; d < sizeof(edge); d++) {
                    unsigned char four[4] = {two[0], two[1], edge[c], edge[d]};
                    cr_assert_eq(sz_utf8_valid(sz_slice(four, 4)), obvious(four, 4), "%02x %02x %02x %02x", four[0],
                                 four[1], four[2], four[3]);
                }
            }
        }
    }
}

Test(utf8, truncated_at_every_length)
{
    static const char text[] = "0123456789abcdef\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\x92z";
    for (size_t n = 0; n < sizeof(text); n++)
        cr_assert_eq(sz_utf8_valid(sz_slice(text, n)), obvious((const unsigned char *)text, n), "%zu", n);
    cr_expect_eq(sz_utf8_prefix(SZ_S("0123456789\xFF 3456789")), 10);
    cr_expect_eq(sz_utf8_prefix(SZ_S("abc\xE2\x82")), 3);
    cr_expect(sz_utf8_valid(SZ_NONE));
    cr_expect_eq(sz_utf8_step(SZ_NONE), 0);
}
