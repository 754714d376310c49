/*
 * Problems of a model are found in its tree, which knows no places.  They are looked up in the text
 * afterwards, line by line and by the word that the problem is about.
 */
#include "fga/engine/lint.h"

static bool space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\n';
}

static struct sz_slice trim(struct sz_slice s)
{
    while (s.n > 0 && space(s.p[0]))
        s = sz_from(s, 1);
    while (s.n > 0 && space(s.p[s.n - 1]))
        s.n--;
    return s;
}

void sz_lines_init(struct sz_lines *lines, struct sz_slice text, struct sz_pool *pool)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    lines->v = sz_pool_alloc(pool, n * sizeof(*lines->v));
    lines->n = 0;
    struct sz_slice line;
    while (sz_split(&text, '\n', &line))
        lines->v[lines->n++] = line;
}

/* "word name": the rest behind it, or absent. */
static struct sz_slice after(struct sz_slice line, const char *word, struct sz_slice name)
{
    struct sz_slice prefix = sz_cstr(word);
    if (!sz_starts_with(line, prefix))
        return SZ_NONE;
    line = sz_from(line, prefix.n);
    return sz_starts_with(line, name) ? sz_from(line, name.n) : SZ_NONE;
}

/* Nothing more on the line but a comment. */
static bool ends(struct sz_slice rest)
{
    if (rest.p == NULL || rest.n == 0)
        return rest.p != NULL;
    return space(rest.p[0]) && sz_starts_with(trim(rest), SZ_S("#"));
}

static bool next_is(struct sz_slice rest, char c)
{
    if (rest.p == NULL)
        return false;
    rest = trim(rest);
    return rest.n > 0 && rest.p[0] == c;
}

static size_t first(size_t skip)
{
    return skip == SZ_NO_LINE ? 0 : skip;
}

size_t sz_lines_type(const struct sz_lines *lines, struct sz_slice name, size_t skip, bool extension)
{
    for (size_t i = first(skip); i < lines->n; i++)
        if (ends(after(trim(lines->v[i]), extension ? "extend type " : "type ", name)))
            return i;
    return SZ_NO_LINE;
}

/* Runs of blanks between the two words count as one. */
static struct sz_slice after_word(struct sz_slice line, const char *word, struct sz_slice name)
{
    struct sz_slice rest = after(trim(line), word, SZ_S(" "));
    while (rest.n > 0 && rest.p[0] == ' ')
        rest = sz_from(rest, 1);
    return rest.p != NULL && sz_starts_with(rest, name) ? sz_from(rest, name.n) : SZ_NONE;
}

size_t sz_lines_relation(const struct sz_lines *lines, struct sz_slice name, size_t skip)
{
    for (size_t i = first(skip); i < lines->n; i++)
        if (next_is(after_word(lines->v[i], "define", name), ':'))
            return i;
    return SZ_NO_LINE;
}

size_t sz_lines_condition(const struct sz_lines *lines, struct sz_slice name)
{
    for (size_t i = 0; i < lines->n; i++)
        if (next_is(after(trim(lines->v[i]), "condition ", name), '('))
            return i;
    return SZ_NO_LINE;
}

size_t sz_lines_schema(const struct sz_lines *lines, struct sz_slice version)
{
    for (size_t i = 0; i < lines->n; i++)
        if (ends(after_word(lines->v[i], "schema", version)))
            return i;
    return 0;
}

static bool word_char(struct sz_slice s, size_t i)
{
    if (i >= s.n)
        return false;
    char c = s.p[i];
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool boundary(struct sz_slice s, size_t i)
{
    return (i > 0 && word_char(s, i - 1)) != word_char(s, i);
}

/* The symbol as a pattern: '.' is any character, 'x*' any number of x (so "user:*" also finds "user"). */
static bool pattern_at(struct sz_slice s, size_t i, struct sz_slice pattern)
{
    if (pattern.n == 0)
        return boundary(s, i);
    if (pattern.n > 1 && pattern.p[1] == '*') {
        struct sz_slice rest = sz_from(pattern, 2);
        for (size_t k = i;; k++) {
            if (pattern_at(s, k, rest))
                return true;
            if (k >= s.n || (pattern.p[0] != '.' && s.p[k] != pattern.p[0]))
                return false;
        }
    }
    return i < s.n && (pattern.p[0] == '.' || s.p[i] == pattern.p[0]) && pattern_at(s, i + 1, sz_from(pattern, 1));
}

static size_t find_word(struct sz_slice s, struct sz_slice symbol)
{
    for (size_t i = 0; i <= s.n; i++)
        if (boundary(s, i) && pattern_at(s, i, symbol))
            return i;
    return SIZE_MAX;
}

static size_t find_text(struct sz_slice s, struct sz_slice needle)
{
    for (size_t i = 0; i + needle.n <= s.n; i++)
        if (sz_starts_with(sz_from(s, i), needle))
            return i;
    return SIZE_MAX;
}

/* Behind the ':' of the definition: the value is wrong, not a relation of the same name. */
static size_t column_of_type(struct sz_slice line, struct sz_slice symbol)
{
    struct sz_slice rest = line, name, value = SZ_NONE;
    sz_split(&rest, ':', &name);
    sz_split(&rest, ':', &value);
    size_t found = find_word(value, symbol);
    return name.n + (found == SIZE_MAX ? 0 : found + 1);
}

static size_t column_of_tupleset(struct sz_slice line, struct sz_slice symbol)
{
    size_t from = find_text(line, SZ_S("from"));
    from = from == SIZE_MAX ? 3 : from + 4;
    size_t found = find_text(sz_from(line, from), symbol);
    return found == SIZE_MAX ? from - 1 : from + found;
}

void sz_lint_place(struct sz_problem *p, const struct sz_lines *lines, size_t line)
{
    if (p == NULL || lines == NULL || line >= lines->n)
        return;
    struct sz_slice text = lines->v[line];
    size_t column;
    if (strcmp(p->kind, "invalid-type") == 0) {
        column = column_of_type(text, p->symbol);
    } else if (strcmp(p->kind, "tupleuserset-not-direct") == 0) {
        column = column_of_tupleset(text, p->symbol);
    } else {
        column = find_word(text, p->symbol);
        column = column == SIZE_MAX ? 0 : column;
    }
    sz_problem_place(p, line, column, column + p->symbol.n);
}
