/*
 * Every row of the schema, tested from the row itself: a value of the wrong type, below the least, above the
 * most, without its unit, empty, unknown.  A new row is tested the moment it is written.
 */
#include "conf_test.h"

#include <inttypes.h>

#include "conf/schema.h"
#include "conf/value.h"

/* One place in a configuration: what stands before a field's value, and behind it. */
struct place {
    char before[512], after[64];
};

static unsigned rows, values;

static void expect(const struct place *p, const struct sz_field *f, const char *value, const char *message, bool wanted)
{
    struct sz_buf text = {0};
    struct conf_try t;
    sz_buf_printf(&text, "{%s%s: ", p->before, f->name);
    sz_buf_adds(&text, sz_cstr(value));
    sz_buf_printf(&text, "%s}\n", p->after);
    sz_buf_add(&text, "", 1);
    conf_try(&t, text.p);
    cr_expect_eq(conf_has(&t, 1, 0, message), wanted, "%.300s: wanted %s%s, got%s", text.p, wanted ? "" : "no ",
                 message, conf_messages(&t));
    conf_done(&t);
    sz_buf_fini(&text);
    values++;
}

static void print(const struct sz_field *f, uint64_t value, char out[32])
{
    static const char *const units[] = {[SZ_F_COUNT] = "", [SZ_F_SIZE] = "kB", [SZ_F_SPAN] = "ms"};
    uint64_t unit = f->type == SZ_F_COUNT ? 1 : 1000;
    snprintf(out, 32, "%" PRIu64 "%s", value / unit, units[f->type]);
}

static void numbers(const struct place *p, const struct sz_field *f)
{
    char text[32], message[128];
    uint64_t unit = f->type == SZ_F_COUNT ? 1 : 1000;
    if (f->min > 0) {
        print(f, f->min - 1, text);
        snprintf(message, sizeof(message), "'%s' is %s; the least is ", f->name, text);
        expect(p, f, text, message, true);
    }
    print(f, f->max + unit, text);
    snprintf(message, sizeof(message), "'%s' is %s; the most is ", f->name, text);
    expect(p, f, text, message, true);
    snprintf(message, sizeof(message), "'%s' is ", f->name);
    print(f, f->min + unit - 1, text);
    expect(p, f, text, message, false);
    expect(p, f, "-1", f->type == SZ_F_COUNT ? "no whole number" : "no number with a unit", true);
    expect(p, f, "many", f->type == SZ_F_COUNT ? "no whole number" : "no number with a unit", true);
    expect(p, f, "1.5", f->type == SZ_F_COUNT ? "no whole number" : "unknown unit", true);
    expect(p, f, "99999999999999999999d",
           f->type == SZ_F_SPAN   ? "too large"
           : f->type == SZ_F_SIZE ? "unknown unit"
                                  : "no whole number",
           true);
    if (f->type != SZ_F_COUNT)
        expect(p, f, "30", "has no unit", true);
}

static void texts(const struct place *p, const struct sz_field *f)
{
    char *longer = malloc(f->max + 2), message[128];
    memset(longer, 'x', f->max + 1);
    longer[f->max + 1] = '\0';
    snprintf(message, sizeof(message), "'%s' is longer than %" PRIu64 " bytes", f->name, f->max);
    expect(p, f, longer, message, true);
    free(longer);
    expect(p, f, "\"a\\nb\"", f->type == SZ_F_TEXT_OR_FILE ? "needs 'listen'" : "control character", true);
    expect(p, f, "\"a\\u007f\"", "control character", true);
    if (f->type == SZ_F_FILE || f->type == SZ_F_SECRET || f->type == SZ_F_TEXT_OR_FILE) {
        expect(p, f, "/no/such/file", "No such file", true);
        expect(p, f, "/dev/null", "no regular file", true);
        expect(p, f, "/", "no regular file", true);
    }
}

static void scalars(const struct place *p, const struct sz_field *f)
{
    char message[128];
    snprintf(message, sizeof(message), "'%s' is a list; it takes one value", f->name);
    expect(p, f, "[x]", message, true);
    snprintf(message, sizeof(message), "'%s' is a mapping; it takes one value", f->name);
    expect(p, f, "{x: y}", message, true);
    snprintf(message, sizeof(message), "'%s' is empty", f->name);
    expect(p, f, "", message, true);
    expect(p, f, "\"\"", message, true);
    expect(p, f, "~", message, true);
    expect(p, f, "null", message, true);
    if (f->type == SZ_F_BOOL) {
        expect(p, f, "yes", "write true or false", true);
        expect(p, f, "1", "write true or false", true);
        expect(p, f, "\"true\"", "without quotes", true);
    } else if (f->type == SZ_F_ENUM) {
        expect(p, f, "nonsense-value", "it takes", true);
    } else if (f->type == SZ_F_COUNT || f->type == SZ_F_SIZE || f->type == SZ_F_SPAN) {
        numbers(p, f);
    } else {
        texts(p, f);
    }
}

static void lists(const struct place *p, const struct sz_field *f)
{
    char message[128];
    bool list = f->type == SZ_F_TEXTS || f->type == SZ_F_LIST;
    snprintf(message, sizeof(message), "'%s' is text; it takes %s", f->name, list ? "a list" : "a mapping");
    expect(p, f, "x", message, (f->flags & SZ_FIELD_ONE) == 0);
    snprintf(message, sizeof(message), "'%s' is empty", f->name);
    expect(p, f, list ? "[]" : "{}", message, true);
    expect(p, f, "", message, true);
    if (f->max <= 64) {
        struct sz_buf many = {0};
        for (uint64_t i = 0; i <= f->max; i++)
            sz_buf_printf(&many, list ? "%sx%" PRIu64 : "%sx%" PRIu64 ": x", i == 0 ? (list ? "[" : "{") : ", ", i);
        sz_buf_printf(&many, "%s%c", list ? "]" : "}", 0);
        snprintf(message, sizeof(message), "'%s' has %" PRIu64 " entries; the most is %" PRIu64, f->name, f->max + 1,
                 f->max);
        expect(p, f, many.p, message, true);
        sz_buf_fini(&many);
    }
    if (f->type == SZ_F_TEXTS) {
        expect(p, f, "[[x]]", "it takes one value", true);
        expect(p, f, "[\"\"]", "is empty", true);
    }
}

static void every_row(const struct place *p, const struct sz_object *object);

static void below(const struct place *p, const struct sz_field *f)
{
    struct place inner;
    const char *open = f->type == SZ_F_LIST ? "[{" : f->type == SZ_F_MAP ? "{name: {" : "{";
    const char *close = f->type == SZ_F_LIST ? "}]" : f->type == SZ_F_MAP ? "}}" : "}";
    cr_assert_lt(snprintf(inner.before, sizeof(inner.before), "%s%s: %s", p->before, f->name, open),
                 (int)sizeof(inner.before));
    cr_assert_lt(snprintf(inner.after, sizeof(inner.after), "%s%s", close, p->after), (int)sizeof(inner.after));
    every_row(&inner, f->object);
}

static void row(const struct place *p, const struct sz_field *f)
{
    rows++;
    cr_assert_not_null(f->help, "%s has no help", f->name);
    cr_assert_gt(strlen(f->help), 2, "%s has no help", f->name);
    switch (f->type) {
    case SZ_F_LATER:
        expect(p, f, "x", "is not available in this version; remove it", true);
        break;
    case SZ_F_OBJECT:
        expect(p, f, "x", " is a mapping", true);
        if ((f->flags & SZ_FIELD_BLANK) == 0)
            expect(p, f, "{}", "is empty", true);
        below(p, f);
        break;
    case SZ_F_TEXTS:
    case SZ_F_TEXT_MAP:
    case SZ_F_TEXTS_MAP:
        lists(p, f);
        break;
    case SZ_F_LIST:
    case SZ_F_MAP:
        lists(p, f);
        below(p, f);
        break;
    default:
        scalars(p, f);
        break;
    }
}

static void every_row(const struct place *p, const struct sz_object *object)
{
    for (const struct sz_field *f = object->fields; f->name != NULL; f++)
        row(p, f);
}

Test(schema, every_row_refuses_what_it_must, .timeout = 60)
{
    struct place top = {"", ""};
    every_row(&top, &sz_schema);
    cr_log_info("%u rows, %u values", rows, values);
    cr_assert_gt(rows, 150);
}

/* A name that differs by one letter is suggested, for every row. */
static void misspell(const struct place *p, const struct sz_object *object)
{
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        char wrong[64], message[128];
        struct sz_field other = *f;
        if (strlen(f->name) < 5)
            continue;
        snprintf(wrong, sizeof(wrong), "%sq", f->name);
        snprintf(message, sizeof(message), "unknown key '%s' in %s; did you mean '%s'?", wrong, object->what, f->name);
        other.name = wrong;
        expect(p, &other, "x", message, true);
    }
}

Test(schema, misspelt_keys_are_recognised)
{
    static const struct place top = {"", ""}, limits = {"limits: {", "}"}, route = {"routes: [{", "}]"};
    misspell(&top, &sz_schema);
    for (const struct sz_field *f = sz_schema.fields; f->name != NULL; f++) {
        if (strcmp(f->name, "limits") == 0)
            misspell(&limits, f->object);
        if (strcmp(f->name, "routes") == 0)
            misspell(&route, f->object);
    }
}

/* ---- what is made from the rows ------------------------------------------------------------------------- */

Test(schema, the_reference_page_is_fresh)
{
    struct sz_buf page = {0}, committed = {0};
    char chunk[4096];
    size_t n;
    FILE *f = fopen(SZ_SOURCE_DIR "/"
                                  "docs/configuration.md",
                    "r");
    cr_assert_not_null(f);
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        sz_buf_add(&committed, chunk, n);
    fclose(f);
    sz_conf_reference(&page);
    cr_assert(sz_eq(sz_buf_slice(&page), sz_buf_slice(&committed)),
              "docs/configuration.md is stale: subzero config reference > docs/configuration.md");
    sz_buf_fini(&page);
    sz_buf_fini(&committed);
}

Test(schema, the_json_schema_is_json)
{
    struct sz_buf text = {0};
    size_t at = 0;
    sz_conf_json_schema(&text);
    cr_assert_eq(sz_json_check(sz_buf_slice(&text), 64, &at), 0, "offset %zu", at);
    sz_buf_fini(&text);
}
