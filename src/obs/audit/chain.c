/* Hashing lines, and reading the few members that the chain needs: see the header for the layout. */
#include "obs/audit/chain.h"

#include "subzero/crypto.h"

static const struct sz_slice prev_open = {",\"prev\":\"", 9}, hash_open = {"\",\"hash\":\"", 10};
enum {
    HEX = 64,
    PREV_AT = SZ_AUDIT_TAIL - 9,
    HASH_AT = HEX + 2,
    OWN = 10 + HEX + 2 /* from the quote that ends prev */
};

struct sz_audit_hash sz_audit_line_hash(struct sz_slice line)
{
    struct sz_audit_hash h;
    sz_sha256(line, h.b);
    return h;
}

/* Of the line without its own hash: up to the quote that ends `prev`, and the brace. */
static struct sz_audit_hash own_hash(struct sz_sha256_state before)
{
    struct sz_audit_hash h;
    sz_sha256_add(&before, sz_slice("\"}", 2));
    sz_sha256_end(&before, h.b);
    return h;
}

static char *put(char *at, struct sz_slice s)
{
    memcpy(at, s.p, s.n);
    return at + s.n;
}

static char *put_hex(char *at, const struct sz_audit_hash *h)
{
    sz_hex_encode(h->b, sizeof(h->b), at);
    return at + HEX;
}

/* Both hashes of a line begin with the same bytes, nearly all of it: these are hashed once. */
void sz_audit_seal(struct sz_buf *lines, size_t from, struct sz_audit_hash *head)
{
    struct sz_sha256_state state;
    SZ_ASSERT(lines->n - from + SZ_AUDIT_TAIL + 1 <= SZ_AUDIT_LINE_MAX);
    char *tail = sz_buf_room(lines, SZ_AUDIT_TAIL + 1);
    char *at = put_hex(put(tail, prev_open), head);
    sz_sha256_begin(&state);
    sz_sha256_add(&state, sz_slice(lines->p + from, (size_t)(at - (lines->p + from))));
    struct sz_audit_hash own = own_hash(state);
    char *rest = at;
    at = put(put_hex(put(at, hash_open), &own), sz_slice("\"}", 2));
    sz_sha256_add(&state, sz_slice(rest, (size_t)(at - rest)));
    sz_sha256_end(&state, head->b);
    *at = '\n';
}

bool sz_audit_hash_parse(struct sz_slice hex, struct sz_audit_hash *out)
{
    if (hex.n != HEX)
        return false;
    for (size_t i = 0; i < sizeof(out->b); i++) {
        int high = sz_hex_digit(hex.p[2 * i]), low = sz_hex_digit(hex.p[2 * i + 1]);
        bool upper =
            (hex.p[2 * i] >= 'A' && hex.p[2 * i] <= 'F') || (hex.p[2 * i + 1] >= 'A' && hex.p[2 * i + 1] <= 'F');
        if (high < 0 || low < 0 || upper)
            return false;
        out->b[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool has_tail(struct sz_slice line)
{
    if (line.n <= SZ_AUDIT_TAIL || line.n >= SZ_AUDIT_LINE_MAX)
        return false;
    const char *tail = line.p + line.n - SZ_AUDIT_TAIL;
    return sz_starts_with(sz_slice(tail, SZ_AUDIT_TAIL), prev_open) &&
           sz_eq(sz_slice(tail + prev_open.n + HEX, hash_open.n), hash_open) && tail[SZ_AUDIT_TAIL - 2] == '"' &&
           tail[SZ_AUDIT_TAIL - 1] == '}';
}

bool sz_audit_line_prev(struct sz_slice line, struct sz_audit_hash *prev)
{
    return has_tail(line) && sz_audit_hash_parse(sz_slice(line.p + line.n - PREV_AT, HEX), prev);
}

bool sz_audit_line_whole(struct sz_slice line)
{
    struct sz_audit_hash told, own;
    struct sz_sha256_state state;
    if (!has_tail(line) || !sz_audit_hash_parse(sz_slice(line.p + line.n - HASH_AT, HEX), &told))
        return false;
    sz_sha256_begin(&state);
    sz_sha256_add(&state, sz_slice(line.p, line.n - OWN));
    own = own_hash(state);
    return sz_audit_hash_eq(&told, &own);
}

bool sz_audit_line_head(struct sz_slice line, uint64_t *seq, struct sz_slice *time)
{
    static const struct sz_slice open = {"{\"v\":1,\"seq\":", 13}, time_open = {",\"time\":\"", 9};
    if (!sz_starts_with(line, open))
        return false;
    struct sz_slice rest = sz_from(line, open.n);
    size_t digits = 0;
    while (digits < rest.n && digits < 20 && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    if (digits == 0 || sz_parse_u64(sz_sub(rest, 0, digits), UINT64_MAX, seq) != 0)
        return false;
    rest = sz_from(rest, digits);
    if (!sz_starts_with(rest, time_open) || rest.n < time_open.n + SZ_AUDIT_TIME + 1)
        return false;
    *time = sz_sub(rest, time_open.n, SZ_AUDIT_TIME);
    return true;
}

/* `,"name":`: no value can hold it, since a quote inside a value has a backslash before it. */
static bool find_member(struct sz_slice line, struct sz_slice name, struct sz_slice *rest)
{
    char needle[40];
    if (name.n > sizeof(needle) - 4)
        return false;
    needle[0] = ',';
    needle[1] = '"';
    memcpy(needle + 2, name.p, name.n);
    memcpy(needle + 2 + name.n, "\":", 2);
    const char *at = memmem(line.p, line.n, needle, name.n + 4);
    if (at == NULL)
        return false;
    *rest = sz_from(line, (size_t)(at - line.p) + name.n + 4);
    return true;
}

bool sz_audit_line_text(struct sz_slice line, struct sz_slice name, struct sz_slice *value)
{
    struct sz_slice rest;
    if (!find_member(line, name, &rest) || rest.n < 2 || rest.p[0] != '"')
        return false;
    for (size_t i = 1; i < rest.n; i++) {
        if (rest.p[i] == '\\') {
            i++;
        } else if (rest.p[i] == '"') {
            *value = sz_sub(rest, 1, i - 1);
            return true;
        }
    }
    return false;
}

uint64_t sz_audit_line_number(struct sz_slice line, struct sz_slice name)
{
    struct sz_slice rest;
    uint64_t value = 0;
    size_t digits = 0;
    if (!find_member(line, name, &rest))
        return 0;
    while (digits < rest.n && rest.p[digits] >= '0' && rest.p[digits] <= '9')
        digits++;
    return digits > 0 && sz_parse_u64(sz_sub(rest, 0, digits), UINT64_MAX, &value) == 0 ? value : 0;
}

static bool digits_of(struct sz_slice s, size_t at, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t i = at; i < at + n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        *out = *out * 10 + (s.p[i] - '0');
    }
    return true;
}

/* Days since 1970 of a Gregorian date; years are counted from March so that the leap day comes last. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, in_era = year - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

bool sz_audit_time_parse(struct sz_slice s, int64_t *us)
{
    int64_t year, month, day, hour, minute, second, micro = 0;
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    if (s.n < sizeof(shape) || s.p[s.n - 1] != 'Z')
        return false;
    for (size_t i = 0; i < sizeof(shape) - 1; i++) {
        if (shape[i] != 'd' && s.p[i] != shape[i])
            return false;
    }
    if (!digits_of(s, 0, 4, &year) || !digits_of(s, 5, 2, &month) || !digits_of(s, 8, 2, &day) ||
        !digits_of(s, 11, 2, &hour) || !digits_of(s, 14, 2, &minute) || !digits_of(s, 17, 2, &second))
        return false;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
        return false;
    size_t fraction = s.n - sizeof(shape); /* without the Z */
    if (fraction == 1 || fraction > 10 || (fraction > 0 && s.p[19] != '.'))
        return false;
    for (size_t i = 0; fraction > 0 && i < 6; i++) {
        int64_t digit = 0;
        if (i + 1 < fraction && !digits_of(s, 20 + i, 1, &digit))
            return false;
        micro = micro * 10 + digit;
    }
    *us = ((days_of(year, month, day) * 24 + hour) * 60 + minute) * 60000000 + second * 1000000 + micro;
    return true;
}
