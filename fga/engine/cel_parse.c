/*
 * CEL text -> tree.  Precedence climbing over a scanner that looks one token ahead.
 */
#include <stdlib.h>

#include "fga/engine/cel_tree.h"

enum tok { K_END, K_IDENT, K_INT, K_UINT, K_DOUBLE, K_STRING, K_OP };

struct parser {
    struct sz_celc *c;
    struct sz_slice s;
    size_t at, start; /* start: of the current token */
    enum tok tok;
    struct sz_slice text; /* IDENT, OP: as written */
    struct sz_cv value;
    unsigned depth;
};

enum { MAX_DEPTH = 64, MAX_ARGS = 250 };

static const char *const fn_names[] = {
#define X(id, name, receiver) name,
    SZ_CEL_FUNCTIONS(X)
#undef X
};
static const bool fn_receiver[] = {
#define X(id, name, receiver) receiver,
    SZ_CEL_FUNCTIONS(X)
#undef X
};

const char *sz_fn_name(enum sz_fn fn)
{
    return fn_names[fn];
}

int sz_fn_find(struct sz_slice name, bool receiver)
{
    for (int i = FN_SIZE; i < FN_COUNT; i++)
        if (fn_receiver[i] == receiver && sz_eq(name, sz_cstr(fn_names[i])))
            return i;
    return -1;
}

/* ---- scanner ---- */

static char peek(const struct parser *p, size_t ahead)
{
    return p->at + ahead < p->s.n ? p->s.p[p->at + ahead] : '\0';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex(char c)
{
    return digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static void skip_blanks(struct parser *p)
{
    for (;;) {
        char c = peek(p, 0);
        if (c == '/' && peek(p, 1) == '/')
            while (p->at < p->s.n && peek(p, 0) != '\n')
                p->at++;
        else if (c != '\0' && strchr(" \t\r\n\f", c) != NULL)
            p->at++;
        else
            return;
    }
}

static void scan_number(struct parser *p)
{
    char text[64];
    bool is_hex = peek(p, 0) == '0' && (peek(p, 1) == 'x' || peek(p, 1) == 'X'), real = false;
    p->at += is_hex ? 2 : 0;
    size_t first = p->at;
    while (is_hex ? hex(peek(p, 0)) >= 0 : digit(peek(p, 0)))
        p->at++;
    if (!is_hex && peek(p, 0) == '.' && digit(peek(p, 1))) {
        real = true;
        for (p->at++; digit(peek(p, 0)); p->at++)
            ;
    }
    char sign = peek(p, 1);
    if (!is_hex && (peek(p, 0) == 'e' || peek(p, 0) == 'E') &&
        (digit(sign) || ((sign == '+' || sign == '-') && digit(peek(p, 2))))) {
        real = true;
        for (p->at += 2; digit(peek(p, 0)); p->at++)
            ;
    }
    size_t n = p->at - first;
    if (n == 0 || n >= sizeof(text)) {
        sz_celc_fail(p->c, p->start, "bad number");
        return;
    }
    memcpy(text, p->s.p + first, n);
    text[n] = '\0';
    if (real) {
        p->tok = K_DOUBLE;
        p->value = (struct sz_cv){.kind = CV_DOUBLE, .d = strtod(text, NULL)};
        return;
    }
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(v, is_hex ? 16U : 10U, &v) || __builtin_add_overflow(v, (uint64_t)hex(text[i]), &v))
            sz_celc_fail(p->c, p->start, "number is out of range");
    bool is_unsigned = peek(p, 0) == 'u' || peek(p, 0) == 'U';
    p->at += is_unsigned;
    p->tok = is_unsigned ? K_UINT : K_INT;
    p->value =
        (struct sz_cv){.kind = is_unsigned ? CV_UINT : CV_INT, .u = v}; /* an int's range is checked by the caller */
}

static void put_rune(struct sz_buf *b, uint32_t r)
{
    char out[4];
    size_t n = r < 0x80 ? 1 : r < 0x800 ? 2 : r < 0x10000 ? 3 : 4;
    if (n == 1) {
        out[0] = (char)r;
    } else {
        for (size_t i = n - 1; i > 0; i--, r >>= 6)
            out[i] = (char)(0x80 | (r & 0x3f));
        out[0] = (char)((0xf00U >> n & 0xff) | r);
    }
    sz_buf_add(b, out, n);
}

/* n hexadecimal (or 3 octal) digits as a code point. */
static void scan_code(struct parser *p, struct sz_buf *b, size_t n, unsigned base)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++, p->at++) {
        int d = hex(peek(p, 0));
        if (d < 0 || (unsigned)d >= base)
            sz_celc_fail(p->c, p->at, "bad escape in a string");
        v = v * base + (uint32_t)(d < 0 ? 0 : d);
    }
    if (v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        sz_celc_fail(p->c, p->at, "an escape is no code point");
    else
        put_rune(b, v);
}

static void scan_escape(struct parser *p, struct sz_buf *b)
{
    static const char letters[] = "abfnrtv\"'\\?`", values[] = "\a\b\f\n\r\t\v\"'\\?`";
    char c = peek(p, 1);
    const char *known = c != '\0' ? strchr(letters, c) : NULL;
    p->at += 2;
    if (known != NULL)
        sz_buf_add(b, &values[known - letters], 1);
    else if (c == 'x' || c == 'X')
        scan_code(p, b, 2, 16);
    else if (c == 'u')
        scan_code(p, b, 4, 16);
    else if (c == 'U')
        scan_code(p, b, 8, 16);
    else if (c >= '0' && c <= '3') {
        p->at--;
        scan_code(p, b, 3, 8);
    } else
        sz_celc_fail(p->c, p->at - 2, "bad escape in a string");
}

static void scan_string(struct parser *p, bool raw)
{
    char q = peek(p, 0);
    bool triple = peek(p, 1) == q && peek(p, 2) == q;
    struct sz_buf b = {0};
    p->at += triple ? 3 : 1;
    for (;;) {
        char c = peek(p, 0);
        if (p->at >= p->s.n || (!triple && (c == '\n' || c == '\r'))) {
            sz_celc_fail(p->c, p->start, "a string does not end");
            break;
        }
        if (c == q && (!triple || (peek(p, 1) == q && peek(p, 2) == q))) {
            p->at += triple ? 3 : 1;
            break;
        }
        if (c == '\\' && !raw)
            scan_escape(p, &b);
        else
            sz_buf_add(&b, &p->s.p[p->at++], 1);
        if (p->c->failed)
            break;
    }
    p->tok = K_STRING;
    p->value = sz_cv_string(sz_pool_dup(&p->c->arena.pool, sz_buf_slice(&b)));
    sz_buf_fini(&b);
}

static void scan_op(struct parser *p)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*",
                                      "/",  "%",  "?",  ":",  "(",  ")",  "[", "]", "{", "}", ".", ","};
    p->tok = K_OP;
    for (size_t i = 0; i < SZ_COUNT(ops); i++)
        if (sz_starts_with(sz_from(p->s, p->at), sz_cstr(ops[i]))) {
            p->text = sz_cstr(ops[i]);
            p->at += p->text.n;
            return;
        }
    sz_celc_fail(p->c, p->at, "unexpected character");
}

static void advance(struct parser *p)
{
    skip_blanks(p);
    p->start = p->at;
    p->text = SZ_NONE;
    char c = peek(p, 0), next = peek(p, 1);
    if (p->at >= p->s.n || p->c->failed) {
        p->tok = K_END;
    } else if (digit(c) || (c == '.' && digit(next))) {
        scan_number(p);
    } else if (c == '"' || c == '\'') {
        scan_string(p, false);
    } else if ((c == 'r' || c == 'R') && (next == '"' || next == '\'')) {
        p->at++;
        scan_string(p, true);
    } else if (name_start(c)) {
        while (name_start(peek(p, 0)) || digit(peek(p, 0)))
            p->at++;
        p->tok = K_IDENT;
        p->text = sz_sub(p->s, p->start, p->at - p->start);
    } else {
        scan_op(p);
    }
}

static bool is(const struct parser *p, const char *op)
{
    return (p->tok == K_OP || p->tok == K_IDENT) && sz_eq(p->text, sz_cstr(op));
}

static bool take(struct parser *p, const char *op)
{
    if (!is(p, op))
        return false;
    advance(p);
    return true;
}

static void expect(struct parser *p, const char *op)
{
    if (!take(p, op))
        sz_celc_fail(p->c, p->start, "expected '%s'", op);
}

/* ---- grammar ---- */

static struct sz_ex *node(struct parser *p, enum sz_ex_kind kind, size_t at)
{
    struct sz_ex *e = sz_pool_zalloc(&p->c->arena.pool, sizeof(*e));
    e->kind = kind;
    e->at = at;
    return e;
}

static void push(struct parser *p, struct sz_ex *e, struct sz_ex *arg)
{
    if (e->n >= MAX_ARGS)
        sz_celc_fail(p->c, arg->at, "too many elements");
    else if (e->n == 0 || (e->n & (e->n - 1)) == 0) {
        struct sz_ex **more = sz_pool_alloc(&p->c->arena.pool, (e->n == 0 ? 1 : e->n * 2) * sizeof(*more));
        if (e->n > 0)
            memcpy(more, e->args, e->n * sizeof(*more));
        e->args = more;
    }
    if (!p->c->failed)
        e->args[e->n++] = arg;
}

static struct sz_ex *call(struct parser *p, enum sz_fn fn, size_t at, struct sz_ex *a, struct sz_ex *b)
{
    struct sz_ex *e = node(p, EX_CALL, at);
    e->fn = fn;
    push(p, e, a);
    if (b != NULL)
        push(p, e, b);
    return e;
}

static struct sz_ex *parse_expr(struct parser *p);

static void parse_args(struct parser *p, struct sz_ex *e, const char *close)
{
    while (!p->c->failed && !take(p, close)) {
        push(p, e, parse_expr(p));
        if (!take(p, ",")) {
            expect(p, close);
            return;
        }
    }
}

static void parse_entries(struct parser *p, struct sz_ex *e)
{
    while (!p->c->failed && !take(p, "}")) {
        push(p, e, parse_expr(p));
        expect(p, ":");
        push(p, e, parse_expr(p));
        if (!take(p, ",")) {
            expect(p, "}");
            return;
        }
    }
}

static struct sz_ex *constant(struct parser *p, struct sz_cv value)
{
    struct sz_ex *e = node(p, EX_CONST, p->start);
    e->value = value;
    advance(p);
    return e;
}

/* has(a.b): whether the field is there. */
static struct sz_ex *parse_has(struct parser *p, size_t at)
{
    struct sz_ex *e = parse_expr(p);
    expect(p, ")");
    if (p->c->failed || e->kind != EX_SELECT)
        return sz_celc_fail(p->c, at, "has() takes a field, as in has(a.b)");
    e->kind = EX_HAS;
    return e;
}

static struct sz_ex *parse_name(struct parser *p)
{
    size_t at = p->start;
    struct sz_slice name = p->text;
    advance(p);
    if (!take(p, "(")) {
        struct sz_ex *e = node(p, EX_VAR, at);
        e->name = name;
        return e;
    }
    if (sz_eq(name, SZ_S("has")))
        return parse_has(p, at);
    int fn = sz_fn_find(name, false);
    if (fn < 0)
        return sz_celc_fail(p->c, at, "unknown function '%.*s'", SZ_FMT(name));
    struct sz_ex *e = node(p, EX_CALL, at);
    e->fn = (enum sz_fn)fn;
    parse_args(p, e, ")");
    return e;
}

static struct sz_ex *parse_primary(struct parser *p)
{
    size_t at = p->start;
    if (take(p, "(")) {
        struct sz_ex *e = parse_expr(p);
        expect(p, ")");
        return e;
    }
    if (take(p, "[")) {
        struct sz_ex *e = node(p, EX_LIST, at);
        parse_args(p, e, "]");
        return e;
    }
    if (take(p, "{")) {
        struct sz_ex *e = node(p, EX_MAP, at);
        parse_entries(p, e);
        return e;
    }
    if (p->tok == K_INT && p->value.u > INT64_MAX)
        return sz_celc_fail(p->c, at, "number is out of range");
    if (p->tok == K_INT || p->tok == K_UINT || p->tok == K_DOUBLE || p->tok == K_STRING)
        return constant(p, p->value);
    if (is(p, "true") || is(p, "false"))
        return constant(p, sz_cv_bool(is(p, "true")));
    if (is(p, "null"))
        return constant(p, (struct sz_cv){.kind = CV_NULL});
    if (p->tok == K_IDENT && !is(p, "in"))
        return parse_name(p);
    return sz_celc_fail(p->c, at, p->tok == K_END ? "the expression is incomplete" : "unexpected '%.*s'",
                        SZ_FMT(sz_sub(p->s, at, p->at - at)));
}

/* range.all(x, predicate) and its kind. */
static struct sz_ex *parse_macro(struct parser *p, enum sz_ex_kind kind, struct sz_ex *range, size_t at)
{
    struct sz_ex *e = node(p, kind, at);
    if (p->tok != K_IDENT)
        return sz_celc_fail(p->c, p->start, "expected the name of a loop variable");
    e->name = p->text;
    advance(p);
    expect(p, ",");
    push(p, e, range);
    push(p, e, parse_expr(p));
    expect(p, ")");
    return e;
}

static struct sz_ex *parse_method(struct parser *p, struct sz_ex *on)
{
    size_t at = p->start;
    struct sz_slice name = p->text;
    if (p->tok != K_IDENT)
        return sz_celc_fail(p->c, at, "expected a name after '.'");
    advance(p);
    if (!take(p, "(")) {
        struct sz_ex *e = node(p, EX_SELECT, at);
        e->name = name;
        push(p, e, on);
        return e;
    }
    if (sz_eq(name, SZ_S("all")))
        return parse_macro(p, EX_ALL, on, at);
    if (sz_eq(name, SZ_S("exists")))
        return parse_macro(p, EX_EXISTS, on, at);
    if (sz_eq(name, SZ_S("exists_one")))
        return parse_macro(p, EX_EXISTS_ONE, on, at);
    int fn = sz_fn_find(name, true);
    if (fn < 0)
        return sz_celc_fail(p->c, at, "unknown method '%.*s'", SZ_FMT(name));
    struct sz_ex *e = node(p, EX_CALL, at);
    e->fn = (enum sz_fn)fn;
    push(p, e, on);
    parse_args(p, e, ")");
    return e;
}

static struct sz_ex *parse_member(struct parser *p)
{
    struct sz_ex *e = parse_primary(p);
    for (unsigned links = 0; !p->c->failed; links++) {
        size_t at = p->start;
        if (links > MAX_DEPTH)
            return sz_celc_fail(p->c, at, "nested too deeply");
        if (take(p, ".")) {
            e = parse_method(p, e);
        } else if (take(p, "[")) {
            e = call(p, FN_INDEX, at, e, parse_expr(p));
            expect(p, "]");
        } else {
            break;
        }
    }
    return e;
}

static struct sz_ex *parse_unary(struct parser *p)
{
    size_t at = p->start;
    if (++p->depth > MAX_DEPTH * 4)
        return sz_celc_fail(p->c, at, "nested too deeply");
    struct sz_ex *e;
    if (take(p, "!")) {
        e = call(p, FN_NOT, at, parse_unary(p), NULL);
    } else if (take(p, "-")) {
        if (p->tok == K_INT && p->value.u <= (uint64_t)INT64_MAX + 1) /* so that the least int can be written */
            e = constant(p, sz_cv_int((int64_t)(0 - p->value.u)));
        else if (p->tok == K_DOUBLE)
            e = constant(p, (struct sz_cv){.kind = CV_DOUBLE, .d = -p->value.d});
        else
            e = call(p, FN_NEGATE, at, parse_unary(p), NULL);
    } else {
        e = parse_member(p);
    }
    p->depth--;
    return e;
}

static const struct {
    const char *op;
    enum sz_fn fn;
    int level; /* 0 relations, 1 sums, 2 products */
} binary[] = {
    {"==", FN_EQ, 0}, {"!=", FN_NE, 0}, {"<", FN_LT, 0},  {"<=", FN_LE, 0}, {">", FN_GT, 0},  {">=", FN_GE, 0},
    {"in", FN_IN, 0}, {"+", FN_ADD, 1}, {"-", FN_SUB, 1}, {"*", FN_MUL, 2}, {"/", FN_DIV, 2}, {"%", FN_MOD, 2},
};

static struct sz_ex *parse_binary(struct parser *p, int level)
{
    struct sz_ex *e = level > 2 ? parse_unary(p) : parse_binary(p, level + 1);
    for (unsigned links = 0; level <= 2 && !p->c->failed; links++) {
        size_t at = p->start, i = 0;
        while (i < SZ_COUNT(binary) && (binary[i].level != level || !is(p, binary[i].op)))
            i++;
        if (i == SZ_COUNT(binary))
            break;
        if (links > MAX_DEPTH)
            return sz_celc_fail(p->c, at, "nested too deeply");
        advance(p);
        e = call(p, binary[i].fn, at, e, parse_binary(p, level + 1));
    }
    return e;
}

/* a && b && c, a || b || c. */
static struct sz_ex *parse_logic(struct parser *p, bool and)
{
    struct sz_ex *e = and? parse_binary(p, 0) : parse_logic(p, true);
    for (unsigned links = 0; !p->c->failed; links++) {
        size_t at = p->start;
        if (!take(p, and? "&&" : "||"))
            break;
        if (links > MAX_DEPTH)
            return sz_celc_fail(p->c, at, "nested too deeply");
        struct sz_ex *both = node(p, and? EX_AND : EX_OR, at);
        push(p, both, e);
        push(p, both, and? parse_binary(p, 0) : parse_logic(p, true));
        e = both;
    }
    return e;
}

static struct sz_ex *parse_expr(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return sz_celc_fail(p->c, p->start, "nested too deeply");
    struct sz_ex *e = parse_logic(p, false);
    size_t at = p->start;
    if (!p->c->failed && take(p, "?")) {
        struct sz_ex *cond = node(p, EX_COND, at);
        push(p, cond, e);
        push(p, cond, parse_logic(p, false));
        expect(p, ":");
        push(p, cond, parse_expr(p));
        e = cond;
    }
    p->depth--;
    return e;
}

struct sz_ex *sz_celc_parse(struct sz_celc *c)
{
    struct parser p = {.c = c, .s = c->text};
    if (!sz_utf8_valid(c->text))
        return sz_celc_fail(c, 0, "not UTF-8");
    advance(&p);
    struct sz_ex *e = parse_expr(&p);
    if (!c->failed && p.tok != K_END)
        return sz_celc_fail(c, p.start, "unexpected '%.*s'", SZ_FMT(sz_sub(p.s, p.start, p.at - p.start)));
    return c->failed ? NULL : e;
}
