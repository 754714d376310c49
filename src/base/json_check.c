/*
 * Is this text exactly one JSON value, by the letter of RFC 8259?  Runs before jansson,
 * which is laxer in places and recurses; here nesting costs one bit a level:
 *
 *   in_object: one bit per open container, 1 = object      depth: how many are open
 *
 * Refused beyond the grammar: a byte order mark, surrogate escapes that do not pair (two
 * readers would disagree on the name they spell), and an escaped NUL in a member name
 * (C code behind us would see the name end there).  Duplicate names are jansson's part.
 */
#include <errno.h>

#include "base/utf8.h"
#include "subzero/crypto.h"

enum { DEPTH_MAX = 2048 }; /* jansson's own limit */

struct scan {
    const unsigned char *p, *end;
    unsigned depth, limit;
    uint64_t in_object[DEPTH_MAX / 64];
};

static void skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool take(struct scan *s, unsigned char c)
{
    if (s->p < s->end && *s->p == c) {
        s->p++;
        return true;
    }
    return false;
}

static bool take_digits(struct scan *s)
{
    const unsigned char *start = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p != start;
}

static bool take_number(struct scan *s)
{
    take(s, '-');
    if (!take(s, '0') && !take_digits(s))
        return false;
    if (take(s, '.') && !take_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        return take_digits(s);
    }
    return true;
}

static bool take_word(struct scan *s, struct sz_slice word)
{
    if (!sz_starts_with(sz_slice(s->p, (size_t)(s->end - s->p)), word))
        return false;
    s->p += word.n;
    return true;
}

/* Four hex digits after \u; false leaves s->p at the wrong one. */
static bool take_hex4(struct scan *s, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        unsigned c = s->p < s->end ? *s->p : 0;
        unsigned digit = c >= '0' && c <= '9'   ? c - '0'
                         : c >= 'a' && c <= 'f' ? c - 'a' + 10
                         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                : 16;
        if (digit == 16)
            return false;
        *code = *code << 4 | digit;
    }
    return true;
}

static bool take_escape(struct scan *s, bool is_name)
{
    if (s->p == s->end)
        return false;
    if (*s->p != 'u') {
        if (*s->p == 0 || strchr("\"\\/bfnrt", *s->p) == NULL)
            return false;
        s->p++;
        return true;
    }
    const unsigned char *start = s->p++;
    unsigned high, low;
    if (!take_hex4(s, &high))
        return false;
    bool ok = !(is_name && high == 0);
    if (high >= 0xD800 && high <= 0xDFFF)
        ok = high < 0xDC00 && take(s, '\\') && take(s, 'u') && take_hex4(s, &low) && low >= 0xDC00 && low <= 0xDFFF;
    if (!ok)
        s->p = start; /* the message points at the escape, not behind it */
    return ok;
}

/* The text is known to be valid UTF-8, so bytes from 0x80 up need no look here. */
static bool take_string(struct scan *s, bool is_name)
{
    if (!take(s, '"'))
        return false;
    while (s->p < s->end && *s->p >= 0x20) {
        unsigned char c = *s->p;
        if (c == '"') {
            s->p++;
            return true;
        }
        s->p++;
        if (c == '\\' && !take_escape(s, is_name))
            return false;
    }
    return false;
}

static bool take_name(struct scan *s)
{
    skip_space(s);
    if (!take_string(s, true))
        return false;
    skip_space(s);
    return take(s, ':');
}

static bool top_is_object(const struct scan *s)
{
    return (s->in_object[(s->depth - 1) / 64] >> ((s->depth - 1) % 64) & 1) != 0;
}

static bool open_container(struct scan *s, bool object)
{
    if (s->depth >= s->limit)
        return false;
    uint64_t bit = UINT64_C(1) << (s->depth % 64);
    uint64_t *word = &s->in_object[s->depth / 64];
    *word = object ? *word | bit : *word & ~bit;
    s->depth++;
    s->p++;
    return true;
}

static bool take_scalar(struct scan *s)
{
    switch (*s->p) {
    case '"':
        return take_string(s, false);
    case 't':
        return take_word(s, SZ_S("true"));
    case 'f':
        return take_word(s, SZ_S("false"));
    case 'n':
        return take_word(s, SZ_S("null"));
    default:
        return take_number(s);
    }
}

/* After a value: closes what ends here; true with *more when another value must follow. */
static bool take_follow(struct scan *s, bool *more)
{
    while (s->depth > 0) {
        bool object = top_is_object(s);
        skip_space(s);
        if (take(s, ',')) {
            *more = true;
            return !object || take_name(s);
        }
        if (!take(s, object ? '}' : ']'))
            return false;
        s->depth--;
    }
    *more = false;
    return true;
}

/* Opens containers down to the first scalar, or to one that is empty. */
static bool take_value(struct scan *s)
{
    for (;;) {
        skip_space(s);
        if (s->p == s->end)
            return false;
        bool object = *s->p == '{';
        if (!object && *s->p != '[')
            return take_scalar(s);
        if (!open_container(s, object))
            return false;
        skip_space(s);
        if (take(s, object ? '}' : ']')) {
            s->depth--;
            return true;
        }
        if (object && !take_name(s))
            return false;
    }
}

int sz_json_check(struct sz_slice text, unsigned depth, size_t *at)
{
    size_t bad = sz_utf8_prefix(text);
    if (bad != text.n) {
        *at = bad;
        return -EINVAL;
    }
    const unsigned char *start = (const unsigned char *)(text.p != NULL ? text.p : "");
    struct scan s = {.p = start, .end = start + text.n, .limit = depth < DEPTH_MAX ? depth : DEPTH_MAX};
    bool more = true;
    while (more) {
        if (!take_value(&s) || !take_follow(&s, &more)) {
            *at = (size_t)(s.p - start);
            return -EINVAL;
        }
    }
    skip_space(&s);
    *at = (size_t)(s.p - start);
    return s.p == s.end ? 0 : -EINVAL;
}
