/*
 * The effective configuration as YAML: every key with the value that counts, defaults included.
 * Read back it gives the same configuration, and the hash of its whole form is the configuration's version.
 * Secrets live in files: their paths are here, their contents never.  Header values that came from the environment
 * may be secrets too: the whole form has them, the one that people see says "***" (which no load accepts).
 */
#include "conf/dump.h"

#include "conf/node.h"
#include "conf/raw.h"

static void dump_object(const struct sz_dump *d, const struct sz_object *object, const void *at, unsigned indent);

static void spaces(struct sz_buf *out, unsigned n)
{
    sz_buf_printf(out, "%*s", (int)n, "");
}

/* JSON strings are YAML's double-quoted ones.  A literal ${ must not be replaced when it is read back. */
void sz_dump_text(struct sz_slice s, struct sz_buf *out)
{
    struct sz_buf escaped = {0};
    for (size_t i = 0; i < s.n; i++) {
        if (sz_starts_with(sz_from(s, i), SZ_S("${")))
            sz_buf_adds(&escaped, SZ_S("$"));
        sz_buf_add(&escaped, s.p + i, 1);
    }
    sz_buf_json(out, sz_buf_slice(&escaped));
    sz_buf_fini(&escaped);
}

static void dump_texts(struct sz_strings list, struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S("["));
    for (size_t i = 0; i < list.n; i++) {
        if (i > 0)
            sz_buf_adds(out, SZ_S(", "));
        sz_dump_text(list.v[i], out);
    }
    sz_buf_adds(out, SZ_S("]"));
}

static const char *choice_name(const struct sz_field *f, uint64_t value)
{
    for (const struct sz_choice *c = f->choices; c->name != NULL; c++) {
        if ((uint64_t)(uint32_t)c->value == value)
            return c->name;
    }
    return "";
}

static void dump_number(const struct sz_field *f, const void *object, struct sz_buf *out)
{
    uint64_t value = sz_field_number(f, object);
    if (f->type == SZ_F_BOOL)
        sz_buf_printf(out, "%s", value != 0 ? "true" : "false");
    else if (f->type == SZ_F_ENUM)
        sz_buf_printf(out, "%s", choice_name(f, value));
    else
        sz_field_print(f, value, out);
}

static void dump_entries(const struct sz_dump *d, const struct sz_field *f, const void *at, unsigned indent)
{
    const struct sz_raw_list *list = at;
    const struct sz_raw_entry *entries = list->v;
    for (size_t i = 0; i < list->n; i++) {
        sz_buf_adds(d->out, SZ_S("\n"));
        spaces(d->out, indent + 2);
        sz_buf_json(d->out, entries[i].head.name);
        sz_buf_adds(d->out, SZ_S(": "));
        if (f->type == SZ_F_TEXTS_MAP)
            dump_texts(entries[i].values, d->out);
        else if (entries[i].plain)
            sz_buf_adds(d->out, entries[i].values.v[0]);
        else if (entries[i].expanded && !d->whole)
            sz_buf_adds(d->out, SZ_S("\"***\""));
        else
            sz_dump_text(entries[i].values.v[0], d->out);
    }
    sz_buf_adds(d->out, SZ_S("\n"));
}

static void dump_objects(const struct sz_dump *d, const struct sz_field *f, const void *at, unsigned indent)
{
    const struct sz_raw_list *list = at;
    sz_buf_adds(d->out, SZ_S("\n"));
    for (size_t i = 0; i < list->n; i++) {
        const char *object = (const char *)list->v + i * f->object->size;
        spaces(d->out, indent + 2);
        if (f->type == SZ_F_MAP) {
            sz_buf_json(d->out, ((const struct sz_raw_head *)(const void *)object)->name);
            sz_buf_adds(d->out, SZ_S(":\n"));
        } else {
            sz_buf_adds(d->out, SZ_S("-\n"));
        }
        dump_object(d, f->object, object, indent + 4);
    }
}

/* Lists and mappings, which begin on lines of their own. */
static void dump_nested(const struct sz_dump *d, const struct sz_field *f, const void *at, unsigned indent)
{
    const struct sz_raw_head *head = at;
    if (f->type == SZ_F_TEXT_MAP || f->type == SZ_F_TEXTS_MAP) {
        dump_entries(d, f, at, indent);
    } else if (f->type != SZ_F_OBJECT) {
        dump_objects(d, f, at, indent);
    } else if (head->node != NULL && head->node->n == 0) {
        sz_buf_adds(d->out, SZ_S(" {}\n")); /* there, and empty */
    } else {
        sz_buf_adds(d->out, SZ_S("\n"));
        dump_object(d, f->object, at, indent + 2);
    }
}

/* A url with its user and password left out: what stands between :// and the last @. */
static void dump_url(const struct sz_dump *d, struct sz_slice url)
{
    const char *scheme = memmem(url.p, url.n, "://", 3);
    const char *at = memrchr(url.p, '@', url.n);
    size_t n = scheme == NULL ? 0 : (size_t)(scheme - url.p) + 3;
    struct sz_buf shown = {0};
    if (at != NULL && !d->whole) {
        sz_buf_printf(&shown, "%.*s***", (int)n, url.p);
        sz_buf_adds(&shown, sz_from(url, (size_t)(at - url.p)));
        url = sz_buf_slice(&shown);
    }
    sz_dump_text(url, d->out);
    sz_buf_fini(&shown);
}

static void dump_scalar(const struct sz_dump *d, const struct sz_field *f, const void *object)
{
    const void *at = sz_field_at(f, object);
    const struct sz_slice *text = at;
    struct sz_buf *out = d->out;
    if ((f->flags & SZ_FIELD_LOGIN) != 0)
        dump_url(d, text[0]);
    else if (f->type == SZ_F_TEXT || f->type == SZ_F_FILE || f->type == SZ_F_SECRET) /* a secret's path comes first */
        sz_dump_text(text[0], out);
    else if (f->type == SZ_F_TEXT_OR_FILE)
        sz_dump_text(text[0].p != NULL ? text[0] : text[1], out);
    else if (f->type == SZ_F_TEXTS)
        dump_texts(*(const struct sz_strings *)at, out);
    else
        dump_number(f, object, out);
}

/* Written in the file, or filled in by a default. */
static bool there(const struct sz_field *f, const void *object)
{
    if (f->type == SZ_F_LATER)
        return false;
    if (f->def != NULL || (f->type == SZ_F_OBJECT && (f->flags & SZ_FIELD_OPTIONAL) == 0))
        return true;
    return sz_node_get(((const struct sz_raw_head *)object)->node, f->name) != NULL;
}

static bool nests(const struct sz_field *f)
{
    return f->object != NULL || f->type == SZ_F_TEXT_MAP || f->type == SZ_F_TEXTS_MAP;
}

void sz_dump_field(const struct sz_dump *d, const struct sz_field *f, const void *object, unsigned indent)
{
    if (!there(f, object))
        return;
    spaces(d->out, indent);
    sz_buf_printf(d->out, "%s:", f->name);
    if (nests(f)) {
        dump_nested(d, f, sz_field_at(f, object), indent);
    } else {
        sz_buf_adds(d->out, SZ_S(" "));
        dump_scalar(d, f, object);
        sz_buf_adds(d->out, SZ_S("\n"));
    }
}

static void dump_object(const struct sz_dump *d, const struct sz_object *object, const void *at, unsigned indent)
{
    for (const struct sz_field *f = object->fields; f->name != NULL; f++)
        sz_dump_field(d, f, at, indent);
}

void sz_dump_conf(const struct sz_dump *d, const struct sz_raw_conf *raw)
{
    dump_object(d, &sz_schema, raw, 0);
}

void sz_conf_dump(const struct sz_conf *conf, struct sz_buf *out)
{
    sz_dump_conf(&(struct sz_dump){.out = out}, conf->raw);
}
