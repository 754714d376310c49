/*
 * Parsing and comparing patterns.  A pattern must be in the canonical form that request paths are
 * brought into (escapes of unreserved octets decoded, others upper-case, no dot segments, no doubled
 * slashes): otherwise it silently never matches, and what it was to guard is open to a wider one.
 */
#include "conf/pattern.h"

#include <errno.h>

#include "subzero/addr.h"
#include "subzero/router.h"

static bool unreserved(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static bool pchar(unsigned char c)
{
    return unreserved(c) || (c != '\0' && strchr("!$&'()+,=:@", c) != NULL);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int parameters(struct sz_text *why)
{
    sz_text_set(why, "';' begins path parameters, without which requests are judged as well; leave it out");
    return -EINVAL;
}

/* One %XX; the request side refuses encoded slashes, backslashes and control characters. */
static int check_escape(struct sz_slice s, size_t at, struct sz_text *why)
{
    int high = at + 1 < s.n ? hex(s.p[at + 1]) : -1, low = at + 2 < s.n ? hex(s.p[at + 2]) : -1;
    if (high < 0 || low < 0) {
        sz_text_set(why, "'%%' begins an escape: two upper-case hex digits, or %%25 for itself");
        return -EINVAL;
    }
    unsigned char c = (unsigned char)(high * 16 + low);
    if (pchar(c)) { /* one spelling each, so that requests can be compared with it (sz_target_other_reading) */
        sz_text_set(why, "write '%c' instead of %%%02X", c, c);
        return -EINVAL;
    }
    if (c == ';')
        return parameters(why);
    if (c == '/' || c == '\\' || c < 0x20 || c == 0x7f) {
        sz_text_set(why, "requests with %%%02X are refused, so the pattern would never match", c);
        return -EINVAL;
    }
    return 0;
}

static int check_literal(struct sz_slice s, struct sz_text *why)
{
    if (sz_eq(s, SZ_S(".")) || sz_eq(s, SZ_S(".."))) {
        sz_text_set(why, "'.' and '..' are resolved before routing; write the path without them");
        return -EINVAL;
    }
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '%') {
            int rc = check_escape(s, i, why);
            if (rc != 0)
                return rc;
            i += 2;
        } else if (c == '*') {
            sz_text_set(why, "'*' stands alone at the end: /files/*");
            return -EINVAL;
        } else if (c == ';') {
            return parameters(why);
        } else if (c == '{' || c == '}') {
            sz_text_set(why, "a parameter is a whole segment: /{name}/");
            return -EINVAL;
        } else if (!pchar(c)) {
            sz_text_set(why, "%s%c%s is not allowed in a path; write it as %%%02X", c < 0x80 ? "'" : "byte ",
                        c < 0x80 ? c : '?', c < 0x80 ? "'" : "", c);
            return -EINVAL;
        }
    }
    return 0;
}

static int check_param(const struct sz_segment *seg, unsigned n, struct sz_slice name, struct sz_text *why)
{
    unsigned params = 0;
    bool ok = name.n > 0 && name.n <= 64 && !(name.p[0] >= '0' && name.p[0] <= '9');
    for (size_t i = 0; i < name.n && ok; i++)
        ok = unreserved((unsigned char)name.p[i]) && strchr("-.~", name.p[i]) == NULL;
    if (!ok) {
        sz_text_set(why, "a parameter's name has letters, digits and '_': {id}");
        return -EINVAL;
    }
    for (unsigned i = 0; i < n; i++) {
        params += seg[i].param;
        if (seg[i].param && sz_eq(seg[i].text, name)) {
            sz_text_set(why, "{%.*s} appears twice; give one another name", SZ_FMT(name));
            return -EINVAL;
        }
    }
    if (params == SZ_PATH_PARAMS_MAX) {
        sz_text_set(why, "more than %d parameters", SZ_PATH_PARAMS_MAX);
        return -EINVAL;
    }
    return 0;
}

/* One segment; `last` may be empty or a star. */
static int parse_segment(struct sz_slice s, bool last, struct sz_segment *seg, struct sz_pattern *out,
                         struct sz_text *why)
{
    if (last && sz_eq(s, SZ_S("*"))) {
        out->star = true;
        return 0;
    }
    if (s.n == 0 && !last) {
        sz_text_set(why, "'//' is merged before routing; write one '/'");
        return -EINVAL;
    }
    if (out->n == SZ_PATTERN_SEGMENTS_MAX) {
        sz_text_set(why, "more than %d segments", SZ_PATTERN_SEGMENTS_MAX);
        return -EINVAL;
    }
    bool param = s.n >= 2 && s.p[0] == '{' && s.p[s.n - 1] == '}';
    struct sz_slice text = param ? sz_sub(s, 1, s.n - 2) : s;
    int rc = param ? check_param(seg, out->n, text, why) : check_literal(text, why);
    if (rc == 0)
        seg[out->n++] = (struct sz_segment){text, param};
    return rc;
}

int sz_pattern_path(struct sz_pool *pool, struct sz_slice path, struct sz_pattern *out, struct sz_text *why)
{
    struct sz_segment seg[SZ_PATTERN_SEGMENTS_MAX];
    struct sz_slice rest, field;
    if (path.n == 0 || path.p[0] != '/') {
        sz_text_set(why, "a path begins with '/'");
        return -EINVAL;
    }
    if (path.n > SZ_PATTERN_BYTES_MAX) {
        sz_text_set(why, "longer than %d bytes", SZ_PATTERN_BYTES_MAX);
        return -EINVAL;
    }
    out->n = 0;
    out->star = false;
    rest = sz_from(path, 1);
    while (sz_split(&rest, '/', &field)) {
        int rc = parse_segment(field, rest.p == NULL, seg, out, why);
        if (rc != 0) {
            out->n = 0; /* half a pattern is none */
            out->star = false;
            return rc;
        }
    }
    struct sz_segment *kept = sz_pool_alloc(pool, out->n * sizeof(*kept));
    memcpy(kept, seg, out->n * sizeof(*kept));
    out->seg = kept;
    return 0;
}

/* ---- host ------------------------------------------------------------------------------------------- */

static bool label_ok(struct sz_slice label)
{
    for (size_t i = 0; i < label.n; i++) {
        char c = label.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return label.n > 0 && label.n <= 63;
}

/* [::1]: in the one form of RFC 5952, as requests bring it, and without brackets, as it is compared. */
static bool address_literal(struct sz_pool *pool, struct sz_slice s, struct sz_pattern *out, struct sz_slice *canonical)
{
    struct sz_addr ip;
    char text[SZ_ADDR_TEXT];
    if (s.n < 3 || s.p[0] != '[' || s.p[s.n - 1] != ']' || sz_addr_parse(sz_sub(s, 1, s.n - 2), &ip) != 0 ||
        sz_addr_is_v4(ip))
        return false;
    sz_addr_format(ip, text);
    *canonical = sz_pool_printf(pool, "[%s]", text);
    out->host = sz_sub(*canonical, 1, canonical->n - 2);
    return true;
}

int sz_pattern_host(struct sz_pool *pool, struct sz_slice host, struct sz_pattern *out, struct sz_slice *canonical,
                    struct sz_text *why)
{
    out->host = *canonical = SZ_NONE;
    out->wildcard = false;
    if (host.p == NULL || address_literal(pool, host, out, canonical))
        return 0;
    struct sz_slice s = sz_pool_lower(pool, host), label;
    out->wildcard = sz_starts_with(s, SZ_S("*."));
    struct sz_slice rest = out->wildcard ? sz_from(s, 2) : s;
    bool ok = rest.n > 0 && s.n <= 253;
    while (ok && sz_split(&rest, '.', &label))
        ok = label_ok(label);
    if (!ok) {
        sz_text_set(why, "'%.*s' is no host; write api.example.com, *.example.com or [::1], without a port",
                    SZ_FMT(host));
        return -EINVAL;
    }
    out->host = out->wildcard ? sz_from(s, 1) : s;
    *canonical = s;
    return 0;
}

/* ---- two of them ---------------------------------------------------------------------------------------- */

int sz_pattern_param(const struct sz_pattern *p, struct sz_slice name)
{
    int index = 0;
    for (unsigned i = 0; i < p->n; i++) {
        if (!p->seg[i].param)
            continue;
        if (sz_eq(p->seg[i].text, name))
            return index;
        index++;
    }
    return -1;
}

bool sz_pattern_equal(const struct sz_pattern *a, const struct sz_pattern *b)
{
    if (a->n != b->n || a->star != b->star || a->wildcard != b->wildcard || !sz_eq(a->host, b->host))
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (a->seg[i].param != b->seg[i].param || (!a->seg[i].param && !sz_eq(a->seg[i].text, b->seg[i].text)))
            return false;
    }
    return true;
}

static bool host_covers(const struct sz_pattern *outer, const struct sz_pattern *inner)
{
    if (outer->host.p == NULL)
        return true;
    if (inner->host.p == NULL)
        return false;
    if (!outer->wildcard)
        return !inner->wildcard && sz_eq(outer->host, inner->host);
    if (inner->host.n < outer->host.n)
        return false;
    /* ".example.com" covers ".example.com", ".a.example.com" and "a.example.com" (never "example.com" itself) */
    return sz_eq(sz_from(inner->host, inner->host.n - outer->host.n), outer->host) &&
           (inner->wildcard || inner->host.n > outer->host.n);
}

bool sz_pattern_covers(const struct sz_pattern *outer, const struct sz_pattern *inner)
{
    if (!host_covers(outer, inner) || outer->n > inner->n || (!outer->star && (inner->star || outer->n != inner->n)))
        return false;
    for (unsigned i = 0; i < outer->n; i++) {
        const struct sz_segment *o = &outer->seg[i], *s = &inner->seg[i];
        if (o->param ? !s->param && s->text.n == 0 : s->param || !sz_eq(o->text, s->text))
            return false;
    }
    return true;
}

/* Some path matches both. */
static bool paths_meet(const struct sz_pattern *a, const struct sz_pattern *b)
{
    for (unsigned i = 0; i < a->n && i < b->n; i++) {
        const struct sz_segment *s = &a->seg[i], *t = &b->seg[i];
        if (s->param ? !t->param && t->text.n == 0 : t->param ? s->text.n == 0 : !sz_eq(s->text, t->text))
            return false;
    }
    return (a->n >= b->n || a->star) && (b->n >= a->n || b->star);
}

/* What stands at a place: a literal or the end, a parameter, the star.  The router takes the greater. */
static int weight(const struct sz_pattern *p, unsigned i)
{
    return i < p->n ? (p->seg[i].param ? 2 : 3) : p->star ? 1 : 3;
}

bool sz_pattern_shadows(const struct sz_pattern *first, const struct sz_pattern *second)
{
    if (!host_covers(second, first) || host_covers(first, second) || !paths_meet(first, second))
        return false;
    unsigned i = 0;
    while (i < first->n && i < second->n && weight(first, i) == weight(second, i))
        i++;
    return weight(second, i) > weight(first, i);
}

bool sz_method_ok(struct sz_slice method)
{
    for (size_t i = 0; i < method.n; i++) {
        if (!(method.p[i] >= 'A' && method.p[i] <= 'Z') && method.p[i] != '-')
            return false;
    }
    return method.n > 0 && method.n <= 32;
}
