/*
 * The JSON Schema (draft 2020-12) made from the schema's rows, for editors that check YAML while it is
 * typed.  It says what the rows say; what holds between keys is `subzero check`'s to find.
 */
#include <inttypes.h>

#include "conf/schema.h"
#include "conf/value.h"
#include "subzero/conf.h"

static void object_schema(const struct sz_object *object, unsigned indent, struct sz_buf *out);

static void line(struct sz_buf *out, unsigned indent)
{
    sz_buf_printf(out, "\n%*s", (int)indent, "");
}

static void choices(const struct sz_field *f, struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S("\"enum\": ["));
    bool first = true;
    for (const struct sz_choice *c = f->choices; c->name != NULL; c++) {
        if (c->later)
            continue;
        sz_buf_printf(out, "%s\"%s\"", first ? "" : ", ", c->name);
        first = false;
    }
    sz_buf_adds(out, SZ_S("]"));
}

/* ${...} may stand wherever a value does. */
static void or_variable(struct sz_buf *out, const char *type, const struct sz_field *f)
{
    sz_buf_printf(out, "\"anyOf\": [{\"type\": \"%s\"", type);
    if (f->type == SZ_F_COUNT)
        sz_buf_printf(out, ", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64, f->min, f->max);
    sz_buf_adds(out, SZ_S("}, {\"type\": \"string\", \"pattern\": \"\\\\$\\\\{\"}]"));
}

static void with_unit(const char *units, struct sz_buf *out)
{
    sz_buf_printf(out, "\"type\": \"string\", \"pattern\": \"^([0-9]+(%s)|.*\\\\$\\\\{.*)$\"", units);
}

static void text(uint64_t max, struct sz_buf *out)
{
    sz_buf_printf(out, "\"type\": [\"string\", \"number\", \"boolean\"], \"minLength\": 1, \"maxLength\": %" PRIu64,
                  max);
}

static void text_list(uint64_t max, struct sz_buf *out)
{
    sz_buf_printf(out, "\"type\": \"array\", \"minItems\": 1, \"maxItems\": %" PRIu64 ", \"items\": {", max);
    text(1024, out);
    sz_buf_adds(out, SZ_S("}"));
}

static void one_or_list(const struct sz_field *f, struct sz_buf *out)
{
    if ((f->flags & SZ_FIELD_ONE) == 0) {
        text_list(f->max, out);
        return;
    }
    sz_buf_adds(out, SZ_S("\"anyOf\": [{"));
    text(1024, out);
    sz_buf_adds(out, SZ_S("}, {"));
    text_list(f->max, out);
    sz_buf_adds(out, SZ_S("}]"));
}

static void entries(const struct sz_field *f, struct sz_buf *out)
{
    sz_buf_printf(
        out, "\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": %" PRIu64 ", \"additionalProperties\": {",
        f->max);
    if (f->type == SZ_F_TEXTS_MAP)
        sz_buf_adds(out, SZ_S("\"anyOf\": [{"));
    text(1024, out);
    if (f->type == SZ_F_TEXTS_MAP) {
        sz_buf_adds(out, SZ_S("}, {"));
        text_list(64, out);
        sz_buf_adds(out, SZ_S("}]"));
    }
    sz_buf_adds(out, SZ_S("}"));
}

static void nested(const struct sz_field *f, unsigned indent, struct sz_buf *out)
{
    if (f->type == SZ_F_OBJECT) {
        object_schema(f->object, indent, out);
        return;
    }
    if (f->type == SZ_F_LIST)
        sz_buf_printf(out, "\"type\": \"array\", \"minItems\": 1, \"maxItems\": %" PRIu64 ", \"items\": {", f->max);
    else
        sz_buf_printf(out,
                      "\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": %" PRIu64
                      ", \"propertyNames\": {\"pattern\": \"^[A-Za-z0-9_.-]{1,64}$\"}, \"additionalProperties\": {",
                      f->max);
    line(out, indent);
    object_schema(f->object, indent, out);
    sz_buf_adds(out, SZ_S("}"));
}

static void field_schema(const struct sz_field *f, unsigned indent, struct sz_buf *out)
{
    switch (f->type) {
    case SZ_F_BOOL:
        or_variable(out, "boolean", f);
        break;
    case SZ_F_COUNT:
        or_variable(out, "integer", f);
        break;
    case SZ_F_SIZE:
        with_unit("kB|KiB|MB|MiB|GB|GiB", out);
        break;
    case SZ_F_SPAN:
        with_unit("ms|s|m|h|d", out);
        break;
    case SZ_F_ENUM:
        choices(f, out);
        break;
    case SZ_F_TEXT:
    case SZ_F_FILE:
    case SZ_F_SECRET:
        text(f->max, out);
        break;
    case SZ_F_TEXT_OR_FILE:
        sz_buf_adds(out, SZ_S("\"type\": \"string\", \"minLength\": 1"));
        break;
    case SZ_F_TEXTS:
        one_or_list(f, out);
        break;
    case SZ_F_TEXT_MAP:
    case SZ_F_TEXTS_MAP:
        entries(f, out);
        break;
    case SZ_F_OBJECT:
    case SZ_F_LIST:
    case SZ_F_MAP:
        nested(f, indent, out);
        break;
    case SZ_F_LATER:
        break;
    }
}

static void required(const struct sz_object *object, unsigned indent, struct sz_buf *out)
{
    bool first = true;
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if ((f->flags & SZ_FIELD_REQUIRED) == 0)
            continue;
        if (first)
            line(out, indent);
        sz_buf_printf(out, "%s\"%s\"", first ? "\"required\": [" : ", ", f->name);
        first = false;
    }
    if (!first)
        sz_buf_adds(out, SZ_S("],"));
}

static void object_schema(const struct sz_object *object, unsigned indent, struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S("\"type\": \"object\", \"additionalProperties\": false,"));
    required(object, indent, out);
    line(out, indent);
    sz_buf_adds(out, SZ_S("\"properties\": {"));
    bool first = true;
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if (f->type == SZ_F_LATER)
            continue;
        sz_buf_adds(out, first ? SZ_NONE : SZ_S(","));
        first = false;
        line(out, indent + 2);
        sz_buf_printf(out, "\"%s\": {\"description\": ", f->name);
        sz_buf_json(out, sz_cstr(f->help));
        if (f->def != NULL) {
            sz_buf_adds(out, SZ_S(", \"default\": "));
            if (f->type == SZ_F_BOOL || f->type == SZ_F_COUNT)
                sz_buf_adds(out, sz_cstr(f->def));
            else
                sz_buf_json(out, sz_cstr(f->def));
        }
        sz_buf_adds(out, SZ_S(", "));
        field_schema(f, indent + 4, out);
        sz_buf_adds(out, SZ_S("}"));
    }
    line(out, indent);
    sz_buf_adds(out, SZ_S("}"));
}

void sz_conf_json_schema(struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S("{\n  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                          "  \"title\": \"Subzero configuration\",\n  "));
    object_schema(&sz_schema, 2, out);
    sz_buf_adds(out, SZ_S("\n}\n"));
}
