/* See subzero/trace_context.h.  The grammar is that of the W3C Recommendation of 2021-11-23, sections 3.2 and 3.3. */
#include "subzero/trace_context.h"

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Lower-case digits alone.  *zero: all of them are 0. */
static bool read_hex(struct sz_slice s, uint8_t *out, bool *zero)
{
    *zero = true;
    for (size_t i = 0; i < s.n / 2; i++) {
        int high = hex_digit(s.p[2 * i]), low = hex_digit(s.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
        *zero = *zero && out[i] == 0;
    }
    return true;
}

/* version "-" trace-id "-" parent-id "-" flags; version ff is invalid, later ones than 00 may go on after a "-". */
bool sz_traceparent_parse(struct sz_slice s, struct sz_trace_parent *out)
{
    uint8_t version;
    bool zero;
    if (s.n < SZ_TRACEPARENT || s.p[2] != '-' || s.p[35] != '-' || s.p[52] != '-')
        return false;
    if (!read_hex(sz_sub(s, 0, 2), &version, &zero) || version == 0xff)
        return false;
    out->later_version = version != 0;
    if (s.n > SZ_TRACEPARENT && (version == 0 || s.p[SZ_TRACEPARENT] != '-'))
        return false;
    if (!read_hex(sz_sub(s, 3, 32), out->trace_id, &zero) || zero)
        return false;
    if (!read_hex(sz_sub(s, 36, 16), out->span_id, &zero) || zero)
        return false;
    return read_hex(sz_sub(s, 53, 2), &out->flags, &zero);
}

void sz_traceparent_write(const struct sz_trace_parent *parent, char *out)
{
    static const char digits[] = "0123456789abcdef";
    memcpy(out, "00-", 3);
    for (unsigned i = 0; i < SZ_TRACE_ID; i++) {
        out[3 + 2 * i] = digits[parent->trace_id[i] >> 4];
        out[4 + 2 * i] = digits[parent->trace_id[i] & 15];
    }
    out[35] = '-';
    for (unsigned i = 0; i < SZ_TRACE_SPAN_ID; i++) {
        out[36 + 2 * i] = digits[parent->span_id[i] >> 4];
        out[37 + 2 * i] = digits[parent->span_id[i] & 15];
    }
    memcpy(out + 52, (parent->flags & SZ_TRACE_SAMPLED) != 0 ? "-01" : "-00", 3);
}

/* ---- tracestate -------------------------------------------------------------------------------------------------- */

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One part of a key: begins with a letter (a tenant's also with a digit), then up to `max` - 1 of a small alphabet. */
static bool is_key_part(struct sz_slice s, size_t max, bool digit_first)
{
    if (s.n == 0 || s.n > max || !(is_lower(s.p[0]) || (digit_first && is_digit(s.p[0]))))
        return false;
    for (size_t i = 1; i < s.n; i++) {
        char c = s.p[i];
        if (!is_lower(c) && !is_digit(c) && c != '_' && c != '-' && c != '*' && c != '/')
            return false;
    }
    return true;
}

/* A simple key, or tenant@system. */
static bool is_key(struct sz_slice key)
{
    ptrdiff_t at = sz_find_byte(key, '@');
    if (at < 0)
        return is_key_part(key, 256, false);
    return is_key_part(sz_sub(key, 0, (size_t)at), 241, true) && is_key_part(sz_from(key, (size_t)at + 1), 14, false);
}

/* Printable ASCII without "," and "=", not ending in a blank (those around a member are trimmed). */
static bool is_value(struct sz_slice value)
{
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c < ' ' || c > '~' || c == ',' || c == '=')
            return false;
    }
    return value.n > 0 && value.n <= 256;
}

static bool add_member(struct sz_tracestate *state, struct sz_slice member)
{
    ptrdiff_t equals = sz_find_byte(member, '=');
    if (equals < 0 || state->n == SZ_COUNT(state->keys))
        return false;
    struct sz_slice key = sz_sub(member, 0, (size_t)equals);
    if (!is_key(key) || !is_value(sz_from(member, (size_t)equals + 1)))
        return false;
    for (unsigned i = 0; i < state->n; i++) {
        if (sz_eq(state->keys[i], key))
            return false;
    }
    state->keys[state->n++] = key;
    return true;
}

/* Blanks and tabs around a member, and members of nothing else, are allowed. */
static struct sz_slice trim(struct sz_slice s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = sz_from(s, 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

bool sz_tracestate_add(struct sz_tracestate *state, struct sz_slice value)
{
    struct sz_slice member;
    while (value.n > 0 && sz_split(&value, ',', &member)) {
        member = trim(member);
        if (member.n > 0 && !add_member(state, member))
            return false;
    }
    return true;
}

/* ---- sampling and ids -------------------------------------------------------------------------------------------- */

bool sz_trace_in_share(const uint8_t trace_id[SZ_TRACE_ID], uint64_t share)
{
    uint64_t low = 0;
    for (unsigned i = 8; i < SZ_TRACE_ID; i++)
        low = low << 8 | trace_id[i];
    return low >> 1 < share;
}

/* splitmix64: a full period over 2^64, and every bit of the counter reaches every bit of the result. */
uint64_t sz_trace_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}
