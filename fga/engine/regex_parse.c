/*
 * Pattern -> tree: RE2's syntax.  Greediness and captures change no yes or no and are read over.
 */
#include "fga/engine/regex.h"

#include <stdlib.h>

enum { MAX_REPEAT = 1000, MAX_NEST = 100 };

void *sz_re_fail(struct sz_re_parser *p, const char *what)
{
    if (!p->failed)
        sz_text_set(p->why, "regular expression: %s at offset %zu", what, p->at);
    p->failed = true;
    return NULL;
}

static struct sz_re_node *new_node(struct sz_re_parser *p, enum sz_re_kind kind)
{
    struct sz_re_node *n = sz_pool_zalloc(&p->arena.pool, sizeof(*n));
    n->kind = kind;
    return n;
}

static bool more(const struct sz_re_parser *p)
{
    return p->at < p->s.n;
}

static bool take(struct sz_re_parser *p, char c)
{
    if (!more(p) || p->s.p[p->at] != c)
        return false;
    p->at++;
    return true;
}

static bool take_text(struct sz_re_parser *p, const char *text)
{
    if (!sz_starts_with(sz_from(p->s, p->at), sz_cstr(text)))
        return false;
    p->at += strlen(text);
    return true;
}

static uint32_t take_rune(struct sz_re_parser *p)
{
    return sz_regex_rune(p->s, &p->at);
}

/* ---- classes ---- */

static void add_range(struct sz_re_parser *p, struct sz_regex_class *c, uint32_t lo, uint32_t hi)
{
    if (c->n == c->cap) {
        size_t cap = c->cap == 0 ? 4 : c->cap * 2;
        struct sz_regex_range *r = sz_pool_alloc(&p->arena.pool, cap * sizeof(*r));
        if (c->n > 0)
            memcpy(r, c->v, c->n * sizeof(*r));
        c->v = r;
        c->cap = cap;
    }
    c->v[c->n++] = (struct sz_regex_range){lo, hi};
}

/* Both cases of the ASCII letters in the range. */
static void add_folded(struct sz_re_parser *p, struct sz_regex_class *c, uint32_t lo, uint32_t hi)
{
    add_range(p, c, lo, hi);
    for (uint32_t r = lo; p->fold && r <= hi && r < 128; r++) {
        if (r >= 'a' && r <= 'z')
            add_range(p, c, r - 32, r - 32);
        else if (r >= 'A' && r <= 'Z')
            add_range(p, c, r + 32, r + 32);
    }
}

static int by_lo(const void *a, const void *b)
{
    const struct sz_regex_range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Everything that is not in `from` is added to `to`. */
static void add_inverse(struct sz_re_parser *p, struct sz_regex_class *to, struct sz_regex_class *from)
{
    uint32_t next = 0;
    if (from->n > 0)
        qsort(from->v, from->n, sizeof(*from->v), by_lo);
    for (size_t i = 0; i < from->n; i++) {
        if (from->v[i].lo > next)
            add_range(p, to, next, from->v[i].lo - 1);
        if (from->v[i].hi + 1 > next)
            next = from->v[i].hi + 1;
    }
    if (next <= 0x10ffff)
        add_range(p, to, next, 0x10ffff);
}

static const struct {
    const char *name, *ranges; /* pairs of bytes */
} named[] = {
    {"d", "09"},
    {"s", "\t\n\f\r  "},
    {"w", "09AZ__az"},
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"blank", "\t\t  "},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"upper", "AZ"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"word", "09AZ__az"},
    {"xdigit", "09AFaf"},
    {"ascii", "\1\x7f"},
    {"cntrl", "\1\x1f\x7f\x7f"},
};

static bool add_named(struct sz_re_parser *p, struct sz_regex_class *c, struct sz_slice name, bool inverse)
{
    for (size_t i = 0; i < SZ_COUNT(named); i++) {
        if (!sz_eq(name, sz_cstr(named[i].name)))
            continue;
        struct sz_regex_class set = {0};
        for (const char *r = named[i].ranges; *r != '\0'; r += 2)
            add_range(p, &set, (unsigned char)r[0], (unsigned char)r[1]);
        if (named[i].ranges[0] == '\1') /* NUL cannot stand in the table */
            add_range(p, &set, 0, 0);
        if (inverse)
            add_inverse(p, c, &set);
        else
            for (size_t k = 0; k < set.n; k++)
                add_folded(p, c, set.v[k].lo, set.v[k].hi);
        return true;
    }
    return false;
}

/* \d and its kind: adds to c and says so; the backslash is taken already. */
static bool perl_class(struct sz_re_parser *p, struct sz_regex_class *c)
{
    if (!more(p))
        return false;
    char ch = p->s.p[p->at], lower = (char)(ch | 0x20);
    if (strchr("dsw", lower) == NULL)
        return false;
    p->at++;
    return add_named(p, c, sz_slice(&lower, 1), ch != lower);
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static uint32_t hex_escape(struct sz_re_parser *p)
{
    bool braces = take(p, '{');
    uint32_t v = 0;
    size_t digits = 0;
    while (more(p) && hex(p->s.p[p->at]) >= 0 && digits < (braces ? 6 : 2)) {
        v = v * 16 + (uint32_t)hex(p->s.p[p->at++]);
        digits++;
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take(p, '}')) || v > 0x10ffff)
        sz_re_fail(p, "bad hexadecimal escape");
    return v;
}

/* One character after a backslash. */
static uint32_t escape(struct sz_re_parser *p)
{
    static const char letters[] = "aftnrv", values[] = "\a\f\t\n\r\v";
    if (!more(p)) {
        sz_re_fail(p, "trailing backslash");
        return 0;
    }
    char c = p->s.p[p->at];
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    if (letter != NULL) {
        p->at++;
        return (unsigned char)values[letter - letters];
    }
    if (take(p, 'x'))
        return hex_escape(p);
    if ((c >= '0' && c <= '7')) {
        uint32_t v = 0;
        if (c != '0')
            sz_re_fail(p, "back references are not supported");
        for (int i = 0; i < 3 && more(p) && p->s.p[p->at] >= '0' && p->s.p[p->at] <= '7'; i++)
            v = v * 8 + (uint32_t)(p->s.p[p->at++] - '0');
        return v;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '8' && c <= '9')) {
        sz_re_fail(p, "unknown escape");
        return 0;
    }
    return take_rune(p);
}

static struct sz_re_node *class_node(struct sz_re_parser *p)
{
    struct sz_re_node *n = new_node(p, N_CLASS);
    n->class = sz_pool_zalloc(&p->arena.pool, sizeof(*n->class));
    return n;
}

static bool posix_class(struct sz_re_parser *p, struct sz_regex_class *c)
{
    struct sz_slice rest = sz_from(p->s, p->at);
    if (!sz_starts_with(rest, SZ_S("[:")))
        return false;
    rest = sz_from(rest, 2);
    bool inverse = rest.n > 0 && rest.p[0] == '^';
    struct sz_slice name = sz_from(rest, inverse);
    size_t n = 0;
    while (n < name.n && name.p[n] >= 'a' && name.p[n] <= 'z')
        n++;
    if (!sz_starts_with(sz_from(name, n), SZ_S(":]")))
        return false;
    if (!add_named(p, c, sz_sub(name, 0, n), inverse))
        sz_re_fail(p, "unknown character class");
    p->at += 2 + (size_t)inverse + n + 2;
    return true;
}

static uint32_t class_char(struct sz_re_parser *p)
{
    return take(p, '\\') ? escape(p) : take_rune(p);
}

static struct sz_re_node *parse_class(struct sz_re_parser *p)
{
    struct sz_re_node *n = class_node(p);
    struct sz_regex_class set = {0};
    bool inverse = take(p, '^');
    for (bool first = true; !p->failed; first = false) {
        if (!more(p))
            return sz_re_fail(p, "missing ]");
        if (!first && take(p, ']'))
            break;
        if (posix_class(p, &set))
            continue;
        size_t back = p->at;
        if (take(p, '\\') && perl_class(p, &set))
            continue;
        p->at = back;
        uint32_t lo = class_char(p), hi = lo;
        struct sz_slice rest = sz_from(p->s, p->at);
        if (rest.n > 1 && rest.p[0] == '-' && rest.p[1] != ']') {
            p->at++;
            hi = class_char(p);
        }
        if (hi < lo)
            return sz_re_fail(p, "bad character range");
        add_folded(p, &set, lo, hi);
    }
    if (inverse)
        add_inverse(p, n->class, &set);
    else
        *n->class = set;
    return n;
}

static struct sz_re_node *one(struct sz_re_parser *p, uint32_t rune)
{
    struct sz_re_node *n = class_node(p);
    add_folded(p, n->class, rune, rune);
    return n;
}

static struct sz_re_node *assertion(struct sz_re_parser *p, enum sz_regex_op op)
{
    struct sz_re_node *n = new_node(p, N_ASSERT);
    n->assert = op;
    return n;
}

/* ---- grammar ---- */

static struct sz_re_node *parse_alternatives(struct sz_re_parser *p);

/* After "(?": flags, maybe a group. */
static struct sz_re_node *parse_flags(struct sz_re_parser *p)
{
    bool fold = p->fold, multiline = p->multiline, dot_all = p->dot_all, on = true;
    if (take_text(p, "P<") || take_text(p, "<")) { /* a named group is a group */
        while (more(p) && p->s.p[p->at] != '>')
            p->at++;
        p->at++;
    } else {
        for (; more(p) && p->s.p[p->at] != ':' && p->s.p[p->at] != ')'; p->at++) {
            char c = p->s.p[p->at];
            if (c == '-' && on)
                on = false;
            else if (c == 'i')
                p->fold = on;
            else if (c == 'm')
                p->multiline = on;
            else if (c == 's')
                p->dot_all = on;
            else if (c != 'U') /* greediness changes no yes or no */
                return sz_re_fail(p, "unknown group");
        }
        if (take(p, ')')) /* holds for the rest of the group around it */
            return new_node(p, N_EMPTY);
        p->at++;
    }
    struct sz_re_node *n = p->failed ? NULL : parse_alternatives(p);
    p->fold = fold;
    p->multiline = multiline;
    p->dot_all = dot_all;
    return n != NULL && !take(p, ')') ? sz_re_fail(p, "missing )") : n;
}

static struct sz_re_node *parse_group(struct sz_re_parser *p)
{
    if (take(p, '?'))
        return parse_flags(p);
    bool fold = p->fold, multiline = p->multiline, dot_all = p->dot_all;
    struct sz_re_node *n = parse_alternatives(p);
    p->fold = fold;
    p->multiline = multiline;
    p->dot_all = dot_all;
    return n != NULL && !take(p, ')') ? sz_re_fail(p, "missing )") : n;
}

static struct sz_re_node *parse_escape(struct sz_re_parser *p)
{
    struct sz_re_node *n = class_node(p);
    if (perl_class(p, n->class))
        return n;
    if (take(p, 'b'))
        return assertion(p, RE_WORD);
    if (take(p, 'B'))
        return assertion(p, RE_NOT_WORD);
    if (take(p, 'A'))
        return assertion(p, RE_TEXT_START);
    if (take(p, 'z'))
        return assertion(p, RE_TEXT_END);
    if (take(p, 'Q')) { /* literal up to \E */
        struct sz_re_node *all = new_node(p, N_EMPTY);
        while (more(p) && !take_text(p, "\\E")) {
            struct sz_re_node *cat = new_node(p, N_CAT);
            cat->a = all;
            cat->b = one(p, take_rune(p));
            all = cat;
        }
        return all;
    }
    return one(p, escape(p));
}

static struct sz_re_node *parse_atom(struct sz_re_parser *p)
{
    if (take(p, '('))
        return parse_group(p);
    if (take(p, '['))
        return parse_class(p);
    if (take(p, '\\'))
        return parse_escape(p);
    if (take(p, '^'))
        return assertion(p, p->multiline ? RE_LINE_START : RE_TEXT_START);
    if (take(p, '$'))
        return assertion(p, p->multiline ? RE_LINE_END : RE_TEXT_END);
    if (take(p, '.')) {
        struct sz_re_node *n = class_node(p);
        add_range(p, n->class, 0, p->dot_all ? 0x10ffff : '\n' - 1);
        if (!p->dot_all)
            add_range(p, n->class, '\n' + 1, 0x10ffff);
        return n;
    }
    if (p->s.p[p->at] == '*' || p->s.p[p->at] == '+' || p->s.p[p->at] == '?')
        return sz_re_fail(p, "nothing to repeat");
    return one(p, take_rune(p));
}

static int count(struct sz_re_parser *p)
{
    int v = 0;
    size_t start = p->at;
    for (; more(p) && p->s.p[p->at] >= '0' && p->s.p[p->at] <= '9'; p->at++)
        v = v > MAX_REPEAT ? v : v * 10 + (p->s.p[p->at] - '0');
    return p->at > start ? v : -1;
}

/* {n} {n,} {n,m}; anything else is literal text. */
static bool take_braces(struct sz_re_parser *p, int *min, int *max)
{
    size_t back = p->at;
    if (!take(p, '{'))
        return false;
    *min = *max = count(p);
    if (*min >= 0 && take(p, ','))
        *max = count(p);
    if (*min >= 0 && take(p, '}')) {
        if (*min > MAX_REPEAT || *max > MAX_REPEAT || (*max >= 0 && *max < *min))
            sz_re_fail(p, "bad repeat count");
        return true;
    }
    p->at = back;
    return false;
}

static bool take_repeat(struct sz_re_parser *p, int *min, int *max)
{
    *min = 0;
    *max = -1;
    if (take(p, '*'))
        return true;
    if (take(p, '+')) {
        *min = 1;
        return true;
    }
    if (take(p, '?')) {
        *max = 1;
        return true;
    }
    return take_braces(p, min, max);
}

static struct sz_re_node *parse_repeat(struct sz_re_parser *p)
{
    struct sz_re_node *n = parse_atom(p);
    int min, max;
    bool repeated = false;
    while (!p->failed && take_repeat(p, &min, &max)) {
        if (repeated)
            return sz_re_fail(p, "repeat of a repeat");
        struct sz_re_node *r = new_node(p, N_REPEAT);
        r->a = n;
        r->min = min;
        r->max = max;
        n = r;
        repeated = true;
        take(p, '?'); /* lazy: the same answer */
    }
    return n;
}

static struct sz_re_node *parse_sequence(struct sz_re_parser *p)
{
    struct sz_re_node *all = new_node(p, N_EMPTY);
    while (!p->failed && more(p) && p->s.p[p->at] != '|' && p->s.p[p->at] != ')') {
        struct sz_re_node *cat = new_node(p, N_CAT);
        cat->a = all;
        cat->b = parse_repeat(p);
        all = cat;
    }
    return all;
}

static struct sz_re_node *parse_alternatives(struct sz_re_parser *p)
{
    if (++p->depth > MAX_NEST)
        return sz_re_fail(p, "nested too deeply");
    struct sz_re_node *all = parse_sequence(p);
    while (!p->failed && take(p, '|')) {
        struct sz_re_node *alt = new_node(p, N_ALT);
        alt->a = all;
        alt->b = parse_sequence(p);
        all = alt;
    }
    p->depth--;
    return p->failed ? NULL : all;
}

struct sz_re_node *sz_re_parse(struct sz_re_parser *p)
{
    if (!sz_utf8_valid(p->s))
        return sz_re_fail(p, "not UTF-8");
    struct sz_re_node *root = parse_alternatives(p);
    if (!p->failed && more(p))
        return sz_re_fail(p, "unexpected )");
    return root;
}
