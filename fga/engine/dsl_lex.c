/*
 * Characters to tokens.  The longest match wins, and of equally long ones the first in the list; the
 * word `condition` switches to the words of a parameter list until its ')'.
 */
#include "fga/engine/dsl.h"

struct lexer {
    struct sz_slice text;
    size_t at;
    unsigned line, column;
    unsigned params; /* how many parameter lists are open */
};

struct literal {
    enum sz_tok type;
    const char *text;
};

static const struct literal literals[] = {
    {T_HASH, "#"},
    {T_COLON, ":"},
    {T_COMMA, ","},
    {T_AND, "and"},
    {T_OR, "or"},
    {T_BUT_NOT, "but not"},
    {T_FROM, "from"},
    {T_MODULE, "module"},
    {T_MODEL, "model"},
    {T_SCHEMA, "schema"},
    {T_EXTEND, "extend"},
    {T_TYPE, "type"},
    {T_CONDITION, "condition"},
    {T_RELATIONS, "relations"},
    {T_RELATION, "relation"},
    {T_DEFINE, "define"},
    {T_WITH, "with"},
    {T_EQ, "=="},
    {T_NE, "!="},
    {T_IN, "in"},
    {T_LESS, "<"},
    {T_LE, "<="},
    {T_GE, ">="},
    {T_GREATER, ">"},
    {T_LAND, "&&"},
    {T_LOR, "||"},
    {T_LBRACKET, "["},
    {T_RBRACKET, "]"},
    {T_LBRACE, "{"},
    {T_RBRACE, "}"},
    {T_LPAREN, "("},
    {T_RPAREN, ")"},
    {T_DOT, "."},
    {T_MINUS, "-"},
    {T_EXCLAM, "!"},
    {T_QUESTION, "?"},
    {T_PLUS, "+"},
    {T_STAR, "*"},
    {T_SLASH, "/"},
    {T_PERCENT, "%"},
    {T_TRUE, "true"},
    {T_FALSE, "false"},
    {T_NUL, "null"},
};
static const struct literal param_literals[] = {
    {T_RPAREN, ")"},       {T_CONTAINER, "map"},   {T_CONTAINER, "list"},  {T_PTYPE, "bool"},
    {T_PTYPE, "string"},   {T_PTYPE, "int"},       {T_PTYPE, "uint"},      {T_PTYPE, "double"},
    {T_PTYPE, "duration"}, {T_PTYPE, "timestamp"}, {T_PTYPE, "ipaddress"}, {T_LESS, "<"},
    {T_GREATER, ">"},      {T_LPAREN, "("},        {T_COLON, ":"},         {T_COMMA, ","},
};

/* A candidate: how long it matched (0: not at all) and how far it looked before it failed. */
struct match {
    enum sz_tok type;
    size_t n;
    size_t seen;
};

static int at(struct sz_slice s, size_t i)
{
    return i < s.n ? (unsigned char)s.p[i] : -1;
}

static bool letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool hex(int c)
{
    return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool blank(int c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static size_t blanks(struct sz_slice s, size_t i)
{
    while (blank(at(s, i)))
        i++;
    return i;
}

static void offer(struct match *best, enum sz_tok type, size_t n, size_t seen)
{
    if (n > best->n) {
        best->type = type;
        best->n = n;
    }
    if (seen > best->seen)
        best->seen = seen;
}

static void match_literals(struct sz_slice s, const struct literal *list, size_t n, struct match *best)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (list[i].text[k] != '\0' && at(s, k) == list[i].text[k])
            k++;
        offer(best, list[i].type, list[i].text[k] == '\0' ? k : 0, k);
    }
}

static void match_numbers(struct sz_slice s, struct match *best)
{
    size_t i = 0;
    while (digit(at(s, i)))
        i++;
    size_t whole = i;
    if (whole > 0) {
        offer(best, T_INT, whole, whole);
        if (at(s, whole) == 'u' || at(s, whole) == 'U')
            offer(best, T_UINT, whole + 1, whole + 1);
    }
    if (at(s, i) == '.' && digit(at(s, i + 1))) {
        for (i++; digit(at(s, i)); i++)
            ;
        if (whole > 0)
            offer(best, T_VERSION, i, i);
        offer(best, T_FLOAT, i, i);
    }
    if (i > 0 && (at(s, i) == 'e' || at(s, i) == 'E')) {
        size_t e = i + 1;
        if (at(s, e) == '+' || at(s, e) == '-')
            e++;
        size_t first = e;
        while (digit(at(s, e)))
            e++;
        offer(best, T_FLOAT, e > first ? e : 0, e);
    }
    if (at(s, 0) == '0' && at(s, 1) == 'x') {
        for (i = 2; hex(at(s, i)); i++)
            ;
        offer(best, T_INT, i > 2 ? i : 0, i);
        if (i > 2 && (at(s, i) == 'u' || at(s, i) == 'U'))
            offer(best, T_UINT, i + 1, i + 1);
    }
}

/* Length of the escape at s[i] (a backslash), 0 when it is none. */
static size_t escape(struct sz_slice s, size_t i)
{
    int c = at(s, i + 1);
    size_t digits = c == 'x' || c == 'X' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
        for (size_t k = 0; k < digits; k++)
            if (!hex(at(s, i + 2 + k)))
                return 0;
        return 2 + digits;
    }
    if (c >= '0' && c <= '3')
        return at(s, i + 2) >= '0' && at(s, i + 2) <= '7' && at(s, i + 3) >= '0' && at(s, i + 3) <= '7' ? 4 : 0;
    return c > 0 && strchr("abfnrtv\"'\\?`", c) != NULL ? 2 : 0;
}

/* A quoted text that starts at s[i]; its end, or 0 and how far it looked. */
static size_t quoted(struct sz_slice s, size_t i, bool raw, bool triple, size_t *seen)
{
    int q = at(s, i);
    size_t quotes = triple ? 3 : 1;
    for (size_t k = 0; k < quotes; k++, i++) {
        if (at(s, i) != q || (q != '"' && q != '\'')) {
            *seen = i;
            return 0;
        }
    }
    for (;;) {
        int c = at(s, i);
        *seen = i;
        if (c < 0 || (!triple && (c == '\n' || c == '\r')))
            return 0;
        if (c == q && (!triple || (at(s, i + 1) == q && at(s, i + 2) == q)))
            return i + quotes;
        if (c == '\\' && !raw) {
            size_t n = escape(s, i);
            if (n == 0) {
                *seen = i + 1;
                return 0;
            }
            i += n;
        } else {
            i++;
        }
    }
}

static void match_strings(struct sz_slice s, struct match *best)
{
    for (int form = 0; form < 8; form++) { /* bytes, raw, triple */
        bool bytes = (form & 1) != 0, raw = (form & 2) != 0, triple = (form & 4) != 0;
        size_t i = 0;
        if (bytes && at(s, i) != 'b' && at(s, i) != 'B')
            continue;
        i += bytes;
        if (raw && at(s, i) != 'r' && at(s, i) != 'R')
            continue;
        i += raw;
        size_t seen = 0;
        size_t end = quoted(s, i, raw, triple, &seen);
        offer(best, bytes ? T_BYTES : T_STRING, end, end > 0 ? end : seen);
    }
}

static void match_names(struct sz_slice s, struct match *best)
{
    if (!letter(at(s, 0)) && at(s, 0) != '_')
        return;
    size_t i = 1;
    while (letter(at(s, i)) || digit(at(s, i)) || at(s, i) == '_' || at(s, i) == '-')
        i++;
    offer(best, T_IDENT, i, i);
    for (i = 1;;) { /* separators one at a time, each followed by a word */
        int c = at(s, i);
        size_t k = i + (c == '/' || c == '.' || c == '-');
        size_t word = k;
        while (letter(at(s, k)) || digit(at(s, k)) || at(s, k) == '_')
            k++;
        if (k == word)
            break;
        i = k;
    }
    offer(best, T_EXT_IDENT, i, i);
}

static void match_blanks(struct sz_slice s, struct match *best)
{
    size_t n = blanks(s, 0);
    offer(best, T_WS, n, n);
    size_t end = 0;
    for (size_t i = 0;;) { /* blanks, line end, blanks, repeated */
        size_t k = blanks(s, i);
        int c = at(s, k);
        if (c == '\r' && at(s, k + 1) == '\n')
            k += 2;
        else if (c == '\n' || c == '\r')
            k++;
        else
            break;
        end = i = blanks(s, k);
    }
    offer(best, T_NL, end, end);
}

static struct match next_match(struct sz_slice s, bool params)
{
    struct match best = {T_EOF, 0, 0};
    if (params) {
        match_literals(s, param_literals, SZ_COUNT(param_literals), &best);
        size_t n = blanks(s, 0);
        offer(&best, T_WS, n, n);
        if (letter(at(s, 0)) || at(s, 0) == '_') {
            size_t i = 1;
            while (letter(at(s, i)) || digit(at(s, i)) || at(s, i) == '_' || at(s, i) == '-')
                i++;
            offer(&best, T_IDENT, i, i);
        }
        return best;
    }
    match_literals(s, literals, SZ_COUNT(literals), &best);
    match_blanks(s, &best);
    if (at(s, 0) == '/' && at(s, 1) == '/') {
        size_t i = 2;
        while (at(s, i) >= 0 && at(s, i) != '\n')
            i++;
        offer(&best, T_COMMENT, i, i);
    }
    match_numbers(s, &best);
    match_strings(s, &best);
    match_names(s, &best);
    return best;
}

static void advance(struct lexer *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)x->text.p[x->at++];
        if (c == '\n') {
            x->line++;
            x->column = 0;
        } else if ((c & 0xc0) != 0x80) { /* columns count characters, not bytes */
            x->column++;
        }
    }
}

/* Nothing starts here: one message for what was looked at, then go on behind it. */
static void unknown(struct lexer *x, struct sz_slice rest, size_t seen, struct sz_problems *problems)
{
    size_t n = seen + 1 <= rest.n ? seen + 1 : rest.n;
    while (n < rest.n && ((unsigned char)rest.p[n] & 0xc0) == 0x80)
        n++;
    struct sz_slice quoted_text = sz_dsl_quote(&problems->arena.pool, sz_sub(rest, 0, n));
    struct sz_problem *p = sz_problems_add(problems, "syntax", "token recognition error at: %.*s", SZ_FMT(quoted_text));
    sz_problem_place(p, x->line, x->column, x->column);
    advance(x, n);
}

void sz_dsl_lex(struct sz_slice text, struct sz_pool *pool, struct sz_tokens *out, struct sz_problems *problems)
{
    struct lexer x = {.text = text};
    size_t cap = 256;
    out->v = sz_pool_alloc(pool, cap * sizeof(*out->v));
    out->n = 0;
    for (;;) {
        struct sz_slice rest = sz_from(text, x.at);
        struct match m = rest.n == 0 ? (struct match){T_EOF, 0, 0} : next_match(rest, x.params > 0);
        if (m.n == 0 && rest.n > 0) {
            unknown(&x, rest, m.seen, problems);
            continue;
        }
        if (out->n == cap) {
            struct sz_token *bigger = sz_pool_alloc(pool, cap * 2 * sizeof(*out->v));
            memcpy(bigger, out->v, cap * sizeof(*out->v));
            out->v = bigger;
            cap *= 2;
        }
        if (m.type != T_COMMENT)
            out->v[out->n++] =
                (struct sz_token){m.type, m.type == T_EOF ? SZ_S("<EOF>") : sz_sub(rest, 0, m.n), x.line, x.column};
        if (m.type == T_CONDITION)
            x.params++;
        else if (m.type == T_RPAREN && x.params > 0)
            x.params--;
        if (m.type == T_EOF)
            return;
        advance(&x, m.n);
    }
}
