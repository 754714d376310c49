/*
 * Looking at borrowed bytes: compare, find, trim, split, read a number.  Nothing here
 * allocates or writes, and nothing here may be used on a secret (see secret.c): these
 * stop at the first difference.
 */
#include "subzero/base.h"

#include <errno.h>

static unsigned char fold(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

bool sz_ieq(struct sz_slice a, struct sz_slice b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++) {
        if (fold((unsigned char)a.p[i]) != fold((unsigned char)b.p[i]))
            return false;
    }
    return true;
}

int sz_cmp(struct sz_slice a, struct sz_slice b)
{
    size_t common = a.n < b.n ? a.n : b.n;
    int order = common == 0 ? 0 : memcmp(a.p, b.p, common);
    if (order != 0)
        return order;
    return (a.n > b.n) - (a.n < b.n);
}

ptrdiff_t sz_find_byte(struct sz_slice s, char byte)
{
    const char *at = s.n == 0 ? NULL : memchr(s.p, byte, s.n);
    return at == NULL ? -1 : at - s.p;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct sz_slice sz_trim(struct sz_slice s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

bool sz_split(struct sz_slice *rest, char sep, struct sz_slice *field)
{
    if (rest->p == NULL) {
        *field = SZ_NONE;
        return false;
    }
    ptrdiff_t at = sz_find_byte(*rest, sep);
    if (at < 0) {
        *field = *rest;
        *rest = SZ_NONE;
        return true;
    }
    *field = sz_slice(rest->p, (size_t)at);
    *rest = sz_slice(rest->p + at + 1, rest->n - (size_t)at - 1);
    return true;
}

int sz_parse_u64(struct sz_slice s, uint64_t max, uint64_t *out)
{
    if (s.n == 0)
        return -EINVAL;
    uint64_t value = 0;
    bool above = false;
    /* Reads on after the bound is passed: "99x" is malformed whatever the bound, and says so. */
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -EINVAL;
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (above || value > (UINT64_MAX - digit) / 10) {
            above = true;
            continue;
        }
        value = value * 10 + digit;
        above = value > max;
    }
    if (above)
        return -ERANGE;
    *out = value;
    return 0;
}
