/* Reads line by line, remembering the current metric and every series seen: see exposition.h. */
#include "fake/exposition.h"

#include <math.h>
#include <stdlib.h>

enum { SERIES_MAX = 200000 };

struct reader {
    struct sz_text *why;
    struct sz_slice metric; /* named by the last HELP */
    struct sz_slice type;   /* of the last TYPE; NULL between HELP and TYPE */
    bool sampled;           /* the current metric had a sample */
    struct sz_slice *metrics, *series;
    size_t metrics_n, series_n;
    /* The histogram series that is being read. */
    struct sz_slice base; /* labels before le */
    double bound, count;
};

static bool fail(struct reader *r, const char *what, struct sz_slice line)
{
    sz_text_set(r->why, "%s: %.*s", what, SZ_FMT(line));
    return false;
}

static bool is_name_char(char c, bool first, bool colon)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':') ||
           (!first && c >= '0' && c <= '9');
}

static struct sz_slice take_name(struct sz_slice *rest, bool colon)
{
    size_t n = 0;
    while (n < rest->n && is_name_char(rest->p[n], n == 0, colon))
        n++;
    struct sz_slice name = sz_sub(*rest, 0, n);
    *rest = sz_from(*rest, n);
    return name;
}

static bool take_char(struct sz_slice *rest, char c)
{
    if (rest->n == 0 || rest->p[0] != c)
        return false;
    *rest = sz_from(*rest, 1);
    return true;
}

static bool take_value_text(struct sz_slice *rest, struct sz_slice *value)
{
    if (!take_char(rest, '"'))
        return false;
    size_t n = 0;
    while (n < rest->n && rest->p[n] != '"') {
        if (rest->p[n] == '\\') {
            n++;
            if (n == rest->n || memchr("\\\"n", rest->p[n], 3) == NULL)
                return false;
        }
        n++;
    }
    *value = sz_sub(*rest, 0, n);
    *rest = sz_from(*rest, n);
    return take_char(rest, '"') && sz_utf8_valid(*value);
}

/* {a="x",le="1"}: *le is the last label's value when it is named le, *base what stands before it. */
static bool take_labels(struct sz_slice *rest, struct sz_slice *base, struct sz_slice *le)
{
    *base = *le = SZ_NONE;
    struct sz_slice whole = *rest, names[16];
    size_t n = 0;
    if (!take_char(rest, '{'))
        return true;
    do {
        size_t before = (size_t)(rest->p - whole.p);
        struct sz_slice name = take_name(rest, false), value;
        if (name.n == 0 || !take_char(rest, '=') || !take_value_text(rest, &value) || n == SZ_COUNT(names))
            return false;
        for (size_t i = 0; i < n; i++)
            if (sz_eq(names[i], name))
                return false;
        names[n++] = name;
        *le = sz_eq(name, SZ_S("le")) ? value : SZ_NONE;
        *base = sz_sub(whole, 0, before);
    } while (take_char(rest, ','));
    return take_char(rest, '}');
}

static bool number(struct sz_slice s, double *out)
{
    char text[64], *end;
    if (sz_eq(s, SZ_S("+Inf"))) {
        *out = INFINITY;
        return true;
    }
    if (s.n == 0 || s.n >= sizeof(text) || !(s.p[0] == '-' || (s.p[0] >= '0' && s.p[0] <= '9')))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    *out = strtod(text, &end);
    return *end == '\0';
}

static bool seen_before(struct sz_slice *seen, size_t *n, struct sz_slice what)
{
    for (size_t i = 0; i < *n; i++)
        if (sz_eq(seen[i], what))
            return true;
    SZ_ASSERT(*n < SERIES_MAX);
    seen[(*n)++] = what;
    return false;
}

static bool read_comment(struct reader *r, struct sz_slice line)
{
    bool help = sz_starts_with(line, SZ_S("# HELP ")), type = sz_starts_with(line, SZ_S("# TYPE "));
    struct sz_slice rest = sz_from(line, 7), name = take_name(&rest, true);
    if (!(help || type) || name.n == 0 || !take_char(&rest, ' ') || rest.n == 0)
        return fail(r, "neither HELP nor TYPE", line);
    if (help) {
        if (seen_before(r->metrics, &r->metrics_n, name))
            return fail(r, "a metric in two places", line);
        r->metric = name;
        r->type = SZ_NONE;
        r->sampled = false;
        return true;
    }
    if (!sz_eq(name, r->metric) || r->type.p != NULL || r->sampled)
        return fail(r, "TYPE not right behind its HELP", line);
    r->type = rest;
    r->base = SZ_NONE;
    bool known = sz_eq(rest, SZ_S("counter")) || sz_eq(rest, SZ_S("gauge")) || sz_eq(rest, SZ_S("histogram"));
    bool total = name.n > 6 && sz_eq(sz_from(name, name.n - 6), SZ_S("_total"));
    if (!known || total != sz_eq(rest, SZ_S("counter")))
        return fail(r, "unknown type, or _total where it does not belong", line);
    return true;
}

/* One line of a histogram: buckets, then sum, then count, for one set of labels after the other. */
static bool read_histogram(struct reader *r, struct sz_slice suffix, struct sz_slice base, struct sz_slice le,
                           double value)
{
    double bound;
    if (sz_eq(suffix, SZ_S("_bucket"))) {
        if (!number(le, &bound))
            return false;
        bool next = r->base.p != NULL && sz_eq(r->base, base);
        if (next && (bound <= r->bound || value < r->count))
            return false;
        r->base = base;
        r->bound = bound;
        r->count = value;
        return true;
    }
    if (le.p != NULL || r->base.p == NULL || !isinf(r->bound))
        return false;
    if (sz_eq(suffix, SZ_S("_count"))) {
        r->base = SZ_NONE;
        return value == r->count;
    }
    return sz_eq(suffix, SZ_S("_sum"));
}

static bool read_sample(struct reader *r, struct sz_slice line)
{
    struct sz_slice rest = line, name = take_name(&rest, true), base, le;
    double value;
    if (name.n == 0 || !take_labels(&rest, &base, &le))
        return fail(r, "bad name or labels", line);
    struct sz_slice series = sz_sub(line, 0, (size_t)(rest.p - line.p));
    if (!take_char(&rest, ' ') || !number(rest, &value))
        return fail(r, "bad value", line);
    if (r->type.p == NULL || !sz_starts_with(name, r->metric))
        return fail(r, "a sample away from its metric", line);
    if (seen_before(r->series, &r->series_n, series))
        return fail(r, "a series twice", line);
    r->sampled = true;
    struct sz_slice suffix = sz_from(name, r->metric.n);
    if (sz_eq(r->type, SZ_S("histogram")))
        return read_histogram(r, suffix, base, le, value) || fail(r, "histogram out of order", line);
    return suffix.n == 0 || fail(r, "a sample away from its metric", line);
}

bool exposition_valid(struct sz_slice text, struct sz_text *why)
{
    struct reader r = {.why = why};
    r.metrics = sz_xcalloc(SERIES_MAX, sizeof(*r.metrics));
    r.series = sz_xcalloc(SERIES_MAX, sizeof(*r.series));
    struct sz_slice rest = text, line;
    bool ok = text.n > 0 && text.p[text.n - 1] == '\n';
    if (!ok)
        fail(&r, "no newline at the end", SZ_NONE);
    while (ok && sz_split(&rest, '\n', &line) && rest.p != NULL)
        ok = sz_starts_with(line, SZ_S("#")) ? read_comment(&r, line) : read_sample(&r, line);
    free(r.metrics);
    free(r.series);
    return ok;
}

double exposition_value(struct sz_slice text, const char *series)
{
    struct sz_slice want = sz_cstr(series), line;
    while (sz_split(&text, '\n', &line)) {
        double value;
        if (line.n > want.n && sz_starts_with(line, want) && line.p[want.n] == ' ' &&
            number(sz_from(line, want.n + 1), &value))
            return value;
    }
    return NAN;
}
