/*
 * Tuple files.  YAML and JSON hold a list of {user, relation, object, condition: {name, context}}; JSON lines one
 * such object per line; CSV has the ecosystem's columns.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/engine/engine.h"
#include "fga/engine/yaml.h"

enum { VALUES_MAX = 100000000 };

int sz_tuple_format(struct sz_slice name, enum sz_tuple_format *out)
{
    static const struct {
        const char *end;
        enum sz_tuple_format format;
    } ends[] = {{".yaml", SZ_TUPLES_YAML},
                {".yml", SZ_TUPLES_YAML},
                {".json", SZ_TUPLES_JSON},
                {".jsonl", SZ_TUPLES_JSONL},
                {".csv", SZ_TUPLES_CSV}};
    for (size_t i = 0; i < SZ_COUNT(ends); i++) {
        struct sz_slice end = sz_cstr(ends[i].end);
        if (name.n >= end.n && sz_ieq(sz_from(name, name.n - end.n), end)) {
            *out = ends[i].format;
            return 0;
        }
    }
    return -EINVAL;
}

static struct sz_slice member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_string(v) ? sz_slice(json_string_value(v), json_string_length(v)) : SZ_NONE;
}

/* One tuple object to fn; `where` is for messages. */
static int give(const json_t *o, size_t where, const char *unit, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    if (json_object_get(o, "key") != NULL) /* as Read gives them */
        o = json_object_get(o, "key");
    const json_t *condition = json_object_get(o, "condition");
    struct sz_tuple_key k = {
        .user = member(o, "user"), .relation = member(o, "relation"), .object = member(o, "object")};
    if (k.user.p == NULL || k.relation.p == NULL || k.object.p == NULL) {
        sz_text_set(why, "%s %zu: a tuple needs user, relation and object", unit, where);
        return -EINVAL;
    }
    if (condition == NULL || json_is_null(condition))
        return fn(arg, &k, where);
    k.condition = member(condition, "name");
    if (k.condition.n == 0) {
        sz_text_set(why, "%s %zu: a condition needs a name", unit, where);
        return -EINVAL;
    }
    const json_t *context = json_object_get(condition, "context");
    char *text = context != NULL && !json_is_null(context) ? json_dumps(context, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    k.condition_context = sz_cstr(text);
    int err = fn(arg, &k, where);
    free(text);
    return err;
}

static int give_all(const json_t *root, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    const json_t *list = json_is_object(root) ? json_object_get(root, "tuples") : root;
    if (!json_is_array(list)) {
        sz_text_set(why, "a tuple file holds a list of tuples");
        return -EINVAL;
    }
    size_t i;
    json_t *o;
    json_array_foreach((json_t *)list, i, o)
    {
        int err = give(o, i + 1, "tuple", fn, arg, why);
        if (err != 0)
            return err;
    }
    return 0;
}

static int parse_yaml(struct sz_slice text, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    json_t *root = sz_yaml_json(text, VALUES_MAX, why);
    int err = root == NULL ? -EINVAL : give_all(root, fn, arg, why);
    json_decref(root);
    return err;
}

static int parse_json(struct sz_slice text, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    json_error_t e;
    json_t *root = json_loadb(text.p != NULL ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &e);
    if (root == NULL)
        sz_text_set(why, "line %d, column %d: %s", e.line, e.column, e.text);
    int err = root == NULL ? -EINVAL : give_all(root, fn, arg, why);
    json_decref(root);
    return err;
}

static int parse_jsonl(struct sz_slice text, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    struct sz_slice line;
    for (size_t n = 1; sz_split(&text, '\n', &line); n++) {
        json_error_t e;
        if (line.n > 0 && line.p[line.n - 1] == '\r')
            line.n--;
        if (sz_trim(line).n == 0)
            continue;
        json_t *o = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, &e);
        if (o == NULL)
            sz_text_set(why, "line %zu, column %d: %s", n, e.column, e.text);
        int err = o == NULL ? -EINVAL : give(o, n, "line", fn, arg, why);
        json_decref(o);
        if (err != 0)
            return err;
    }
    return 0;
}

/* ---- CSV (RFC 4180) ---- */

enum column {
    USER_TYPE,
    USER_ID,
    USER_RELATION,
    RELATION,
    OBJECT_TYPE,
    OBJECT_ID,
    CONDITION_NAME,
    CONDITION_CONTEXT,
    COLUMNS
};
static const char *const column_names[] = {"user_type",   "user_id",   "user_relation",  "relation",
                                           "object_type", "object_id", "condition_name", "condition_context"};

enum { FIELDS_MAX = 32 };

struct csv {
    struct sz_slice rest;
    size_t line;
    struct sz_buf fields[FIELDS_MAX];
    size_t n;
    struct sz_text *why;
};

static int csv_fail(struct csv *c, const char *what)
{
    sz_text_set(c->why, "line %zu: %s", c->line, what);
    return -EINVAL;
}

/* A quoted field; the opening quote is taken. */
static int quoted_field(struct csv *c, struct sz_buf *out)
{
    for (;;) {
        if (c->rest.n == 0)
            return csv_fail(c, "a quoted field does not end");
        char ch = c->rest.p[0];
        c->rest = sz_from(c->rest, 1);
        c->line += ch == '\n';
        if (ch == '"') {
            if (c->rest.n == 0 || c->rest.p[0] != '"')
                return 0;
            c->rest = sz_from(c->rest, 1);
        }
        sz_buf_add(out, &ch, 1);
    }
}

/* The next record; 1: the end of the text. */
static int next_record(struct csv *c)
{
    if (c->rest.n == 0)
        return 1;
    for (c->n = 0;;) {
        if (c->n == FIELDS_MAX)
            return csv_fail(c, "too many fields");
        struct sz_buf *f = &c->fields[c->n++];
        f->n = 0;
        if (c->rest.n > 0 && c->rest.p[0] == '"') {
            c->rest = sz_from(c->rest, 1);
            if (quoted_field(c, f) != 0)
                return -EINVAL;
        }
        size_t n = 0;
        while (n < c->rest.n && c->rest.p[n] != ',' && c->rest.p[n] != '\n')
            n++;
        struct sz_slice plain = sz_sub(c->rest, 0, n);
        if (plain.n > 0 && n < c->rest.n && c->rest.p[n] == '\n' && plain.p[plain.n - 1] == '\r')
            plain.n--;
        sz_buf_adds(f, plain);
        bool more = n < c->rest.n && c->rest.p[n] == ',';
        c->rest = sz_from(c->rest, n + 1);
        if (!more)
            return 0;
    }
}

static int read_header(struct csv *c, int at[COLUMNS])
{
    int err = next_record(c);
    if (err != 0)
        return err < 0 ? err : csv_fail(c, "the file is empty");
    for (size_t k = 0; k < COLUMNS; k++)
        at[k] = -1;
    for (size_t i = 0; i < c->n; i++) {
        size_t k = 0;
        while (k < COLUMNS && !sz_eq(sz_trim(sz_buf_slice(&c->fields[i])), sz_cstr(column_names[k])))
            k++;
        if (k == COLUMNS) {
            sz_text_set(c->why, "line 1: unknown column '%.*s'", SZ_FMT(sz_buf_slice(&c->fields[i])));
            return -EINVAL;
        }
        at[k] = (int)i;
    }
    for (size_t k = 0; k < COLUMNS; k++)
        if (at[k] < 0 && k != USER_RELATION && k != CONDITION_NAME && k != CONDITION_CONTEXT) {
            sz_text_set(c->why, "line 1: the column '%s' is missing", column_names[k]);
            return -EINVAL;
        }
    return 0;
}

static struct sz_slice column(const struct csv *c, const int at[COLUMNS], enum column k)
{
    return at[k] < 0 || (size_t)at[k] >= c->n ? SZ_S("") : sz_buf_slice(&c->fields[at[k]]);
}

static int give_record(struct csv *c, const int at[COLUMNS], sz_tuple_fn *fn, void *arg)
{
    struct sz_buf user = {0}, object = {0};
    struct sz_slice relation = column(c, at, USER_RELATION), condition = column(c, at, CONDITION_NAME),
                    context = column(c, at, CONDITION_CONTEXT);
    sz_buf_printf(&user, "%.*s:%.*s%s%.*s", SZ_FMT(column(c, at, USER_TYPE)), SZ_FMT(column(c, at, USER_ID)),
                  relation.n > 0 ? "#" : "", SZ_FMT(relation));
    sz_buf_printf(&object, "%.*s:%.*s", SZ_FMT(column(c, at, OBJECT_TYPE)), SZ_FMT(column(c, at, OBJECT_ID)));
    struct sz_tuple_key k = {.user = sz_buf_slice(&user),
                             .relation = column(c, at, RELATION),
                             .object = sz_buf_slice(&object),
                             .condition = condition.n > 0 ? condition : SZ_NONE,
                             .condition_context = condition.n > 0 && context.n > 0 ? context : SZ_NONE};
    int err = fn(arg, &k, c->line);
    sz_buf_fini(&user);
    sz_buf_fini(&object);
    return err;
}

static int parse_csv(struct sz_slice text, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    struct csv c = {.rest = text, .line = 1, .why = why};
    int at[COLUMNS], err = read_header(&c, at);
    while (err == 0) {
        c.line++;
        err = next_record(&c);
        if (err == 0 && (c.n > 1 || c.fields[0].n > 0))
            err = give_record(&c, at, fn, arg);
    }
    for (size_t i = 0; i < FIELDS_MAX; i++)
        sz_buf_fini(&c.fields[i]);
    return err == 1 ? 0 : err;
}

int sz_tuples_parse(struct sz_slice text, enum sz_tuple_format format, sz_tuple_fn *fn, void *arg, struct sz_text *why)
{
    if (sz_starts_with(text, SZ_S("\xef\xbb\xbf")))
        text = sz_from(text, 3);
    switch (format) {
    case SZ_TUPLES_YAML:
        return parse_yaml(text, fn, arg, why);
    case SZ_TUPLES_JSON:
        return parse_json(text, fn, arg, why);
    case SZ_TUPLES_JSONL:
        return parse_jsonl(text, fn, arg, why);
    case SZ_TUPLES_CSV:
        return parse_csv(text, fn, arg, why);
    }
    return -EINVAL;
}
