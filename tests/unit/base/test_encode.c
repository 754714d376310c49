/* encode.c: one spelling per byte string, and nothing else decodes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "subzero/crypto.h"

Test(encode, what_is_not_canonical_is_refused)
{
    static const char *const url[] = {"A",
                                      "AAAAA",
                                      "AA=",
                                      "AA==",
                                      "AAA=",
                                      "AB",
                                      "AAB",
                                      "Zh",
                                      "Zm9=",
                                      "A+/A",
                                      "AA A",
                                      " AAA",
                                      "AAA\n",
                                      "A.AA",
                                      "====",
                                      "\xC3\xA9"
                                      "AA",
                                      "AA\x80"};
    static const char *const std[] = {"AA",   "AAA",  "AA=",  "A===",  "AB==",  "AAB=",  "====",     "AA==AA==",
                                      "A-_A", "=AAA", "AA=A", "AAAA=", "AAAAA", "AA ==", "AAAA====", "AAAA=A=="};
    char out[32];
    size_t n = 99;
    for (size_t i = 0; i < SZ_COUNT(url); i++)
        cr_expect_eq(sz_b64url_decode(sz_cstr(url[i]), out, &n), -EINVAL, "%s", url[i]);
    for (size_t i = 0; i < SZ_COUNT(std); i++)
        cr_expect_eq(sz_b64_decode(sz_cstr(std[i]), out, &n), -EINVAL, "%s", std[i]);
    cr_expect_eq(sz_b64url_decode(SZ_S("AA\0A"), out, &n), -EINVAL);
    cr_expect_eq(n, 99);
}

Test(encode, rfc_4648_vectors)
{
    static const struct {
        const char *plain, *url, *std;
    } rows[] = {
        {"", "", ""},
        {"f", "Zg", "Zg=="},
        {"fo", "Zm8", "Zm8="},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg", "Zm9vYg=="},
        {"fooba", "Zm9vYmE", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xFB\xFF\xBF", "-_-_", "+/+/"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char out[32];
        size_t n = sz_b64url_encode(rows[i].plain, strlen(rows[i].plain), out);
        cr_expect(sz_eq(sz_slice(out, n), sz_cstr(rows[i].url)), "%s", rows[i].url);
        n = sz_b64_encode(rows[i].plain, strlen(rows[i].plain), out);
        cr_expect(sz_eq(sz_slice(out, n), sz_cstr(rows[i].std)), "%s", rows[i].std);
        cr_expect_eq(sz_b64url_decode(sz_cstr(rows[i].url), out, &n), 0);
        cr_expect(sz_eq(sz_slice(out, n), sz_cstr(rows[i].plain)));
        cr_expect_eq(sz_b64_decode(sz_cstr(rows[i].std), out, &n), 0);
        cr_expect(sz_eq(sz_slice(out, n), sz_cstr(rows[i].plain)));
    }
    size_t n = 99;
    cr_expect_eq(sz_b64url_decode(SZ_NONE, NULL, &n), 0);
    cr_expect_eq(n, 0);
}

/* Of all texts of two and three digits, exactly as many decode as there are byte strings. */
Test(encode, decoding_is_a_bijection)
{
    unsigned two = 0, three = 0;
    for (unsigned v = 0; v < 1u << 24; v++) {
        char s[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        uint8_t out[4];
        size_t n;
        if ((v & 0xFF) == 0)
            two += sz_b64url_decode(sz_slice(s, 2), out, &n) == 0;
        three += sz_b64url_decode(sz_slice(s, 3), out, &n) == 0;
    }
    cr_expect_eq(two, 256);
    cr_expect_eq(three, 65536);
}

Test(encode, sizes_and_decoding_in_place)
{
    uint8_t in[100];
    for (size_t n = 0; n <= sizeof(in); n++) {
        sz_random(in, n);
        char *text = sz_xmalloc(SZ_B64_LEN(n)); /* exact: the sanitizer sees one byte too many */
        size_t len = sz_b64url_encode(in, n, text);
        cr_assert_eq(len, SZ_B64_LEN(n));
        cr_assert_eq(SZ_B64_BYTES(len), n);
        uint8_t *out = sz_xmalloc(n);
        size_t out_n;
        cr_assert_eq(sz_b64url_decode(sz_slice(text, len), out, &out_n), 0);
        cr_assert(out_n == n && memcmp(out, in, n) == 0);
        cr_assert_eq(sz_b64url_decode(sz_slice(text, len), text, &out_n), 0);
        cr_assert(out_n == n && memcmp(text, in, n) == 0);
        free(text);
        free(out);
    }
}
