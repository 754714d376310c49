/*
 * base64url, base64 and hex.  Decoding is canonical: every byte string has exactly one
 * spelling, with no padding too much or too little, no blanks and no stray low bits.
 * Otherwise one token would have several spellings, each a different cache key.
 */
#include <errno.h>

#include "subzero/crypto.h"

static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char std_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Digit value + 1, so that every byte not named is 0: not a digit. */
/* clang-format off */
#define ALPHANUMERIC \
    ['A'] =  1, ['B'] =  2, ['C'] =  3, ['D'] =  4, ['E'] =  5, ['F'] =  6, ['G'] =  7, ['H'] =  8, ['I'] =  9, \
    ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, \
    ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, \
    ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, \
    ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, \
    ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, \
    ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, \
    ['9'] = 62
/* clang-format on */
static const uint8_t url_values[256] = {ALPHANUMERIC, ['-'] = 63, ['_'] = 64};
static const uint8_t std_values[256] = {ALPHANUMERIC, ['+'] = 63, ['/'] = 64};

/* Encodes without padding, returns the length. */
static size_t encode(const char digits[64], const uint8_t *in, size_t n, char *out)
{
    char *start = out;
    for (; n >= 3; n -= 3, in += 3) {
        uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        *out++ = digits[v >> 6 & 63];
        *out++ = digits[v & 63];
    }
    if (n != 0) {
        uint32_t v = (uint32_t)in[0] << 16 | (n == 2 ? (uint32_t)in[1] << 8 : 0);
        *out++ = digits[v >> 18];
        *out++ = digits[v >> 12 & 63];
        if (n == 2)
            *out++ = digits[v >> 6 & 63];
    }
    return (size_t)(out - start);
}

/* The last two or three digits; the bits that carry nothing must be 0. */
static int decode_tail(const uint8_t values[256], const uint8_t *in, size_t n, uint8_t *out)
{
    uint32_t a = values[in[0]] - 1u, b = values[in[1]] - 1u, c = n == 3 ? values[in[2]] - 1u : 0;
    if (((a | b | c) & ~63u) != 0 || (n == 2 ? (b & 15) != 0 : (c & 3) != 0))
        return -EINVAL;
    out[0] = (uint8_t)(a << 2 | b >> 4);
    if (n == 3)
        out[1] = (uint8_t)(b << 4 | c >> 2);
    return 0;
}

/* Unpadded.  Reads four digits before it writes three bytes: `out` may be where `s` starts. */
static int decode(const uint8_t values[256], struct sz_slice s, uint8_t *out, size_t *out_n)
{
    const uint8_t *in = (const uint8_t *)s.p;
    size_t n = s.n;
    if (n % 4 == 1)
        return -EINVAL;
    for (; n >= 4; n -= 4, in += 4, out += 3) {
        uint32_t a = values[in[0]] - 1u, b = values[in[1]] - 1u, c = values[in[2]] - 1u, d = values[in[3]] - 1u;
        if (((a | b | c | d) & ~63u) != 0)
            return -EINVAL;
        out[0] = (uint8_t)(a << 2 | b >> 4);
        out[1] = (uint8_t)(b << 4 | c >> 2);
        out[2] = (uint8_t)(c << 6 | d);
    }
    if (n != 0 && decode_tail(values, in, n, out) != 0)
        return -EINVAL;
    *out_n = SZ_B64_BYTES(s.n);
    return 0;
}

size_t sz_b64url_encode(const void *in, size_t n, char *out)
{
    return encode(url_digits, in, n, out);
}

int sz_b64url_decode(struct sz_slice s, void *out, size_t *out_n)
{
    return decode(url_values, s, out, out_n);
}

size_t sz_b64_encode(const void *in, size_t n, char *out)
{
    size_t len = encode(std_digits, in, n, out);
    while (len % 4 != 0)
        out[len++] = '=';
    return len;
}

int sz_b64_decode(struct sz_slice s, void *out, size_t *out_n)
{
    if (s.n % 4 != 0)
        return -EINVAL;
    size_t pad = 0;
    while (pad < 2 && pad < s.n && s.p[s.n - 1 - pad] == '=')
        pad++;
    return decode(std_values, sz_sub(s, 0, s.n - pad), out, out_n);
}

/* Four bytes, the first one highest, as eight digits in the order of memory: a nibble in each byte, then all at once.
 */
static void put_hex8(uint64_t x, char out[8])
{
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    uint64_t letters = (x + 0x0606060606060606) >> 4 & 0x0101010101010101;
    x += 0x3030303030303030 + letters * ('a' - '0' - 10);
    x = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(x) : x;
    memcpy(out, &x, sizeof(x));
}

void sz_hex_encode(const void *in, size_t n, char *out)
{
    const uint8_t *p = in;
    size_t i = 0;
    for (; n - i >= 4; i += 4)
        put_hex8((uint64_t)p[i] << 24 | (uint64_t)p[i + 1] << 16 | (uint64_t)p[i + 2] << 8 | p[i + 3], out + 2 * i);
    for (; i < n; i++) {
        out[2 * i] = "0123456789abcdef"[p[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
    }
}
