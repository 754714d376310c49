/*
 * Strict UTF-8 (RFC 3629).  What may follow a lead byte depends on it alone (the table
 * of RFC 3629 section 4): that is what keeps out overlong forms, surrogates and
 * everything above U+10FFFF.  ASCII, nearly all we see, goes eight bytes at a time.
 */
#include "base/utf8.h"

static bool is_tail(unsigned char c)
{
    return (c & 0xC0) == 0x80;
}

/* The permitted range of the second byte, the only one that depends on the lead byte. */
static bool second_fits(unsigned char lead, unsigned char c)
{
    switch (lead) {
    case 0xE0:
        return c >= 0xA0 && c <= 0xBF; /* no overlong form of U+0000..U+07FF */
    case 0xED:
        return c >= 0x80 && c <= 0x9F; /* no surrogates U+D800..U+DFFF */
    case 0xF0:
        return c >= 0x90 && c <= 0xBF; /* no overlong form of U+0000..U+FFFF */
    case 0xF4:
        return c >= 0x80 && c <= 0x8F; /* nothing above U+10FFFF */
    default:
        return is_tail(c);
    }
}

size_t sz_utf8_step(struct sz_slice s)
{
    if (s.n == 0)
        return 0;
    const unsigned char *p = (const unsigned char *)s.p;
    if (p[0] < 0x80)
        return 1;
    /* C0 and C1 would only start overlong forms; F5 and above lie outside Unicode. */
    size_t n = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (n == 0 || s.n < n || !second_fits(p[0], p[1]))
        return 0;
    for (size_t i = 2; i < n; i++) {
        if (!is_tail(p[i]))
            return 0;
    }
    return n;
}

size_t sz_utf8_prefix(struct sz_slice s)
{
    size_t at = 0;
    while (at < s.n) {
        uint64_t word;
        if (s.n - at >= sizeof(word)) {
            memcpy(&word, s.p + at, sizeof(word));
            if ((word & 0x8080808080808080u) == 0) {
                at += sizeof(word);
                continue;
            }
        }
        size_t n = sz_utf8_step(sz_from(s, at));
        if (n == 0)
            return at;
        at += n;
    }
    return s.n;
}

bool sz_utf8_valid(struct sz_slice s)
{
    return sz_utf8_prefix(s) == s.n;
}
