/*
 * Canonical targets.  Most paths are canonical already: one pass over a byte-class table finds
 * that out and borrows the input.  Everything else takes the slow way, which writes the
 * canonical form segment by segment and refuses whatever another parser could read differently.
 *
 * Order matters: octets are decoded once, slashes merged, then dot segments removed; doing it in any
 * other order lets "/a//../b" or "/%2e%2e/b" mean two things.
 */
#include "pipeline/target.h"

#include "subzero/crypto.h"

enum { BAD, PLAIN, DOT, SLASH, SEMI, PERCENT, QUESTION }; /* byte classes in a path */

/* RFC 3986 pchar and "/"; BAD covers controls, blanks, delimiters such as " < > \ ^ ` { | } [ ] # and 8-bit octets. */
static const uint8_t classes[256] = {
    ['a' ... 'z'] = PLAIN, ['A' ... 'Z'] = PLAIN, ['0' ... '9'] = PLAIN, ['-'] = PLAIN, ['_'] = PLAIN,
    ['~'] = PLAIN,         ['!'] = PLAIN,         ['$'] = PLAIN,         ['&'] = PLAIN, ['\''] = PLAIN,
    ['('] = PLAIN,         [')'] = PLAIN,         ['*'] = PLAIN,         ['+'] = PLAIN, [','] = PLAIN,
    ['='] = PLAIN,         [':'] = PLAIN,         ['@'] = PLAIN,         ['.'] = DOT,   ['/'] = SLASH,
    [';'] = SEMI,          ['%'] = PERCENT,       ['?'] = QUESTION,
};

static bool is_unreserved(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/* Value of the escape "%XX" whose first digit is s[0]; -1 when it is none. */
static int escape_value(const char *s, const char *end)
{
    if (end - s < 2)
        return -1;
    int high = sz_hex_digit(s[0]), low = sz_hex_digit(s[1]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Octets that some later decoder would act on: never allowed behind an escaped percent sign. */
static bool is_dangerous(int c)
{
    return c < 0x20 || c == 0x7f || c == '.' || c == '/' || c == '\\' || c == '%' || c == ';' || c == '?' || c == '#';
}

/* ---- the slow way ---------------------------------------------------------------------------- */

struct canon {
    char *out; /* worst case: as long as the input */
    size_t n;
    size_t segment; /* where the current segment starts in out, after its slash */
    const char *why;
};

static int refuse(struct canon *c, int code, const char *why)
{
    c->why = why;
    return code;
}

/* One escape: decoded when unreserved, upper-cased otherwise, refused when it hides structure. */
static int put_escape(struct canon *c, int octet)
{
    static const char digits[] = "0123456789ABCDEF";
    if (octet < 0x20 || octet == 0x7f)
        return refuse(c, SZ_TARGET_AMBIGUOUS, "an escaped control character in the path");
    if (octet == '/' || octet == '\\')
        return refuse(c, SZ_TARGET_AMBIGUOUS, "an escaped slash or backslash in the path");
    if (is_unreserved((uint8_t)octet)) {
        c->out[c->n++] = (char)octet;
        return 0;
    }
    c->out[c->n++] = '%';
    c->out[c->n++] = digits[octet >> 4];
    c->out[c->n++] = digits[octet & 15];
    return 0;
}

/*
 * Ends the segment out[segment, n): dot segments act, path parameters on nothing or on dots are refused,
 * and so is a double encoding, which may only have come together by decoding ("%25%32e").
 */
static int end_segment(struct canon *c, bool last)
{
    const char *s = c->out + c->segment;
    size_t n = c->n - c->segment, name = n;
    for (size_t i = 0; i < n; i++) {
        if (name == n && (s[i] == ';' || (s[i] == '%' && s[i + 1] == '3' && s[i + 2] == 'B')))
            name = i;
        if (s[i] == '%' && s[i + 1] == '2' && s[i + 2] == '5') {
            int hidden = escape_value(s + i + 3, s + n);
            if (hidden >= 0 && is_dangerous(hidden))
                return refuse(c, SZ_TARGET_AMBIGUOUS, "a doubly encoded octet in the path");
        }
    }
    bool dot = name == 1 && s[0] == '.', dots = name == 2 && s[0] == '.' && s[1] == '.';
    if (name < n && (name == 0 || dot || dots))
        return refuse(c, SZ_TARGET_AMBIGUOUS, "path parameters on an empty or dot segment");
    if (n == 0 || dot) { /* "//" and "/./" vanish */
        c->n = c->segment;
        return 0;
    }
    if (dots) {
        if (c->segment == 1)
            return refuse(c, SZ_TARGET_AMBIGUOUS, "dot segments climb above the root");
        size_t at = c->segment - 1; /* the slash before ".." */
        while (c->out[at - 1] != '/')
            at--;
        c->n = c->segment = at;
        return 0;
    }
    if (!last) {
        c->out[c->n++] = '/';
        c->segment = c->n;
    }
    return 0;
}

static int canonicalise(struct canon *c, const char *s, const char *end)
{
    c->out[0] = '/';
    c->n = c->segment = 1;
    for (s++; s < end; s++) {
        int rc = 0, octet;
        switch (classes[(uint8_t)*s]) {
        case SLASH:
            rc = end_segment(c, false);
            break;
        case PERCENT:
            octet = escape_value(s + 1, end);
            if (octet < 0)
                return refuse(c, SZ_TARGET_BAD, "a broken percent-escape in the path");
            rc = put_escape(c, octet);
            s += 2;
            break;
        case BAD:
            return refuse(c, SZ_TARGET_BAD, "a character in the path that must be escaped");
        default:
            c->out[c->n++] = *s;
        }
        if (rc != 0)
            return rc;
    }
    return end_segment(c, true);
}

/* The octets behind the escapes must be UTF-8: what is not is read differently by different upstreams. */
static bool decodes_to_utf8(struct sz_slice path, struct sz_pool *pool)
{
    if (sz_find_byte(path, '%') < 0)
        return true;
    char *octets = sz_pool_alloc(pool, path.n);
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++) {
        if (path.p[i] == '%') {
            octets[n++] = (char)escape_value(path.p + i + 1, path.p + path.n);
            i += 2;
        } else {
            octets[n++] = path.p[i];
        }
    }
    return sz_utf8_valid(sz_slice(octets, n));
}

/* Same bytes but for the case of escape digits. */
static bool same_but_case(struct sz_slice raw, struct sz_slice canonical)
{
    if (raw.n != canonical.n)
        return false;
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] == canonical.p[i])
            continue;
        bool in_escape = (i >= 1 && canonical.p[i - 1] == '%') || (i >= 2 && canonical.p[i - 2] == '%');
        if (!in_escape || (raw.p[i] | 0x20) != (canonical.p[i] | 0x20))
            return false;
    }
    return true;
}

static int parse_slowly(struct sz_slice raw, struct sz_pool *pool, struct sz_target *out, const char **why)
{
    struct canon c = {.out = sz_pool_alloc(pool, raw.n + 1)};
    int rc = canonicalise(&c, raw.p, raw.p + raw.n);
    if (rc != 0) {
        *why = c.why;
        return rc;
    }
    out->path = sz_slice(c.out, c.n);
    if (!decodes_to_utf8(out->path, pool)) {
        *why = "escapes in the path that are not UTF-8";
        return SZ_TARGET_BAD;
    }
    out->was_canonical = same_but_case(raw, out->path);
    return 0;
}

/* ---- the other reading ------------------------------------------------------------------------- */

/* Octets that a path may hold both escaped and as they are, and that no segment ends with. */
static bool is_optional_escape(int octet)
{
    return octet > 0 && strchr("!$&'()+,=:@", octet) != NULL;
}

/* Patterns are written in this form too (src/conf/pattern.c): optional escapes decoded, but '*' escaped. */
struct sz_slice sz_target_other_reading(struct sz_slice path, struct sz_pool *pool)
{
    bool changes = false;
    for (size_t i = 0; i < path.n && !changes; i++)
        changes = path.p[i] == '%' || path.p[i] == ';' || path.p[i] == '*';
    if (!changes)
        return path;
    char *out = sz_pool_alloc(pool, path.n * 3);
    size_t n = 0;
    bool dropping = false;
    for (size_t i = 0; i < path.n; i++) {
        int octet = path.p[i] == '%' ? escape_value(path.p + i + 1, path.p + path.n) : -1;
        dropping = path.p[i] != '/' && (dropping || path.p[i] == ';' || octet == ';');
        if (dropping)
            continue;
        if (path.p[i] == '*') {
            memcpy(out + n, "%2A", 3);
            n += 3;
        } else if (is_optional_escape(octet)) {
            out[n++] = (char)octet;
            i += 2;
        } else {
            out[n++] = path.p[i];
        }
    }
    struct sz_slice read = sz_slice(out, n);
    return sz_eq(read, path) ? path : read;
}

/* ---- entry ------------------------------------------------------------------------------------- */

/* Length of the leading run that is canonical as it stands; stops at the first byte that needs a second look. */
static size_t canonical_prefix(const char *s, size_t n)
{
    size_t i = 1;
    for (uint8_t before = SLASH; i < n; i++) {
        uint8_t class = classes[(uint8_t)s[i]];
        if (class != PLAIN && (class == DOT || class == SLASH ? before == SLASH : true))
            break;
        before = class;
    }
    return i;
}

/* Visible ASCII but '#': a fragment never belongs on the wire, and other bytes must be escaped. */
static bool query_is_clean(struct sz_slice q)
{
    for (size_t i = 0; i < q.n; i++) {
        uint8_t c = (uint8_t)q.p[i];
        if (c <= 0x20 || c >= 0x7f || c == '#')
            return false;
    }
    return true;
}

int sz_target_parse(struct sz_slice raw, struct sz_pool *pool, struct sz_target *out, const char **why)
{
    *out = (struct sz_target){.path = SZ_NONE, .query = SZ_NONE};
    if (raw.n == 1 && raw.p[0] == '*') {
        *out = (struct sz_target){.path = SZ_S("/"), .query = SZ_NONE, .asterisk = true, .was_canonical = true};
        return 0;
    }
    if (raw.n == 0 || raw.p[0] != '/') {
        *why = "the request target does not start with a slash";
        return SZ_TARGET_BAD;
    }
    size_t clean = canonical_prefix(raw.p, raw.n);
    size_t path_n = clean;
    while (path_n < raw.n && raw.p[path_n] != '?')
        path_n++;
    if (path_n < raw.n) {
        out->query = sz_from(raw, path_n + 1);
        if (!query_is_clean(out->query)) {
            *why = "a character in the query that must be escaped";
            return SZ_TARGET_BAD;
        }
    }
    struct sz_slice path = sz_sub(raw, 0, path_n);
    if (clean < path_n)
        return parse_slowly(path, pool, out, why);
    out->path = path;
    out->was_canonical = true;
    return 0;
}
