/*
 * From the tree to the raw structs, driven by the schema's rows.  Knows types, ranges,
 * defaults and names, and nothing about what a key means.
 */
#include <inttypes.h>

#include "conf/node.h"
#include "conf/schema.h"
#include "conf/value.h"

uint64_t sz_field_number(const struct sz_field *field, const void *object)
{
    const void *at = sz_field_at(field, object);
    switch (field->size) {
    case 1:
        return *(const bool *)at ? 1 : 0;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

static void store(const struct sz_field *field, void *object, uint64_t value)
{
    void *at = (char *)object + field->offset;
    if (field->size == 1)
        *(bool *)at = value != 0;
    else if (field->size == 4)
        *(uint32_t *)at = (uint32_t)value;
    else
        *(uint64_t *)at = value;
}

/* ---- scalars --------------------------------------------------------------------------------------- */

static bool is_null(const struct sz_node *node)
{
    return node->kind == SZ_NODE_TEXT && !node->quoted && !node->expanded &&
           (node->text.n == 0 || sz_eq(node->text, SZ_S("~")) || sz_eq(node->text, SZ_S("null")) ||
            sz_eq(node->text, SZ_S("Null")) || sz_eq(node->text, SZ_S("NULL")));
}

/* A node that is usable text of at most `max` bytes; NULL after a mistake. */
static const struct sz_node *text_of(struct sz_loader *l, const char *name, const struct sz_node *node, uint64_t max,
                                     bool lines)
{
    if (node->broken)
        return NULL;
    if (node->kind != SZ_NODE_TEXT) {
        sz_mistake(l, node, "'%s' is %s; it takes one value", name, sz_node_kind_name(node));
        return NULL;
    }
    if (node->text.n == 0 || is_null(node)) {
        sz_mistake(l, node, "'%s' is empty; give it a value or remove it", name);
        return NULL;
    }
    if (node->text.n > max) {
        sz_mistake(l, node, "'%s' is longer than %" PRIu64 " bytes", name, max);
        return NULL;
    }
    for (size_t i = 0; i < node->text.n; i++) {
        unsigned char c = (unsigned char)node->text.p[i];
        if ((c < 0x20 && !(lines && (c == '\n' || c == '\t'))) || c == 0x7f) {
            sz_mistake(l, node, "'%s' holds a control character (0x%02x); remove it", name, c);
            return NULL;
        }
    }
    return node;
}

static void read_bool(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    if (text_of(l, f->name, node, 1024, false) == NULL)
        return;
    bool yes = sz_eq(node->text, SZ_S("true"));
    if ((!yes && !sz_eq(node->text, SZ_S("false"))) || (node->quoted && !node->expanded))
        sz_mistake(l, node, "'%s' is '%.*s'; write true or false, without quotes", f->name, SZ_FMT(node->text));
    else
        store(f, out, yes);
}

static int parse_number(const struct sz_field *f, struct sz_slice s, uint64_t *value, struct sz_text *why)
{
    if (f->type == SZ_F_SPAN)
        return sz_value_span(s, value, why);
    if (f->type == SZ_F_SIZE)
        return sz_value_size(s, value, why);
    return sz_value_count(s, value, why);
}

void sz_field_print(const struct sz_field *f, uint64_t value, struct sz_buf *out)
{
    if (f->type == SZ_F_SPAN)
        sz_value_print_span(out, value);
    else if (f->type == SZ_F_SIZE)
        sz_value_print_size(out, value);
    else
        sz_buf_printf(out, "%" PRIu64, value);
}

static void range_mistake(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, bool below)
{
    struct sz_buf bound = {0};
    sz_field_print(f, below ? f->min : f->max, &bound);
    sz_mistake(l, node, "'%s' is %.*s; the %s is %.*s", f->name, SZ_FMT(node->text), below ? "least" : "most",
               SZ_FMT(sz_buf_slice(&bound)));
    sz_buf_fini(&bound);
}

static void read_number(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    uint64_t value;
    struct sz_text why;
    if (text_of(l, f->name, node, 1024, false) == NULL)
        return;
    if (parse_number(f, node->text, &value, &why) != 0)
        sz_mistake(l, node, "'%s': %s", f->name, why.s);
    else if (value < f->min || value > f->max)
        range_mistake(l, f, node, value < f->min);
    else
        store(f, out, value);
}

static void read_enum(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    const char *names[32];
    struct sz_text list = {{0}};
    size_t n = 0;
    if (text_of(l, f->name, node, 1024, false) == NULL)
        return;
    for (const struct sz_choice *c = f->choices; c->name != NULL; c++) {
        if (sz_eq(node->text, sz_cstr(c->name))) {
            if (c->later)
                sz_mistake(l, node, "'%s: %s' is not available in this version", f->name, c->name);
            else
                store(f, out, (uint64_t)c->value);
            return;
        }
        if (!c->later)
            sz_text_add(&list, "%s%s", n == 0 ? "" : ", ", c->name);
        names[n++] = c->name;
    }
    const char *meant = sz_suggest(node->text, names, n);
    sz_mistake(l, node, "'%s' is '%.*s'; %s%s%sit takes %s", f->name, SZ_FMT(node->text), meant ? "did you mean '" : "",
               meant ? meant : "", meant ? "'? " : "", list.s);
}

static void read_text(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    if (text_of(l, f->name, node, f->max, false) != NULL)
        *(struct sz_slice *)(void *)((char *)out + f->offset) = node->text;
}

/* ---- files -------------------------------------------------------------------------------------------- */

static void read_file(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, struct sz_slice *out)
{
    struct sz_text why;
    if (text_of(l, f->name, node, f->max, false) == NULL)
        return;
    struct sz_slice path = sz_path_resolve(l, node->text);
    if (sz_file_check(path, &why) != 0)
        sz_mistake(l, node, "'%s': %s", f->name, why.s);
    else
        *out = path;
}

static void read_text_or_file(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    struct sz_slice *both = (void *)((char *)out + f->offset);
    bool lines = node->kind == SZ_NODE_TEXT && sz_find_byte(node->text, '\n') >= 0;
    if (!lines)
        read_file(l, f, node, &both[0]);
    else if (text_of(l, f->name, node, SZ_YAML_BYTES_MAX, true) != NULL)
        both[1] = node->text;
}

static void read_secret(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    struct sz_raw_secret *secret = (void *)((char *)out + f->offset);
    if (text_of(l, f->name, node, f->max, false) == NULL)
        return;
    if (sz_eq(l->file, SZ_S("environment")) && sz_starts_with(node->text, SZ_S("env:"))) {
        secret->path = node->text; /* conf/environ.c: the variable that holds it */
        sz_secret_take(l, node, sz_from(node->text, 4), &secret->secret);
        return;
    }
    secret->path = sz_path_resolve(l, node->text);
    sz_secret_read(l, node, secret->path, &secret->secret);
}

/* ---- lists and maps -------------------------------------------------------------------------------------- */

/* A list or map within its bounds, of the wanted kind; false after a mistake. */
static bool many_of(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, enum sz_node_kind kind)
{
    if (node->broken)
        return false;
    if (is_null(node) || (node->kind == kind && node->n == 0)) {
        sz_mistake(l, node, "'%s' is empty; name at least one, or remove it", f->name);
        return false;
    }
    if (node->kind != kind) {
        sz_mistake(l, node, "'%s' is %s; it takes %s", f->name, sz_node_kind_name(node),
                   kind == SZ_NODE_LIST ? "a list: [one, two]" : "a mapping of names: {name: ...}");
        return false;
    }
    if (node->n > f->max) {
        sz_mistake(l, node, "'%s' has %zu entries; the most is %" PRIu64, f->name, node->n, f->max);
        return false;
    }
    return true;
}

static void check_twice(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (node->items[i]->kind == SZ_NODE_TEXT && sz_eq(node->items[i]->text, node->items[at]->text)) {
            sz_mistake(l, node->items[at], "'%s' names '%.*s' twice; keep one", f->name, SZ_FMT(node->items[at]->text));
            return;
        }
    }
}

static void texts_of(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, struct sz_strings *out)
{
    struct sz_slice *v = sz_pool_alloc(l->pool, node->n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < node->n; i++) {
        if (text_of(l, f->name, node->items[i], 1024, false) == NULL)
            continue;
        if ((f->flags & SZ_FIELD_MANY) == 0)
            check_twice(l, f, node, i);
        v[n++] = node->items[i]->text;
    }
    *out = (struct sz_strings){v, n};
}

static void read_texts(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    struct sz_node *one = (struct sz_node *)(uintptr_t)node, alone = {.items = &one, .n = 1};
    if ((f->flags & SZ_FIELD_ONE) != 0 && node->kind == SZ_NODE_TEXT)
        texts_of(l, f, &alone, (void *)((char *)out + f->offset));
    else if (many_of(l, f, node, SZ_NODE_LIST))
        texts_of(l, f, node, (void *)((char *)out + f->offset));
}

/* A number or boolean of YAML that JSON writes alike. */
static bool is_plain(const struct sz_node *node)
{
    struct sz_slice s = node->text;
    size_t i = s.n > 0 && s.p[0] == '-' ? 1 : 0, digits = i;
    if (node->quoted || node->expanded)
        return false;
    if (sz_eq(s, SZ_S("true")) || sz_eq(s, SZ_S("false")))
        return true;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    bool ok = i > digits && i - digits <= 15 && (s.p[digits] != '0' || i == digits + 1);
    if (ok && i + 1 < s.n && s.p[i] == '.') {
        for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9';)
            i++;
    }
    return ok && i == s.n;
}

/* name: value, or name: [values] where the row allows several. */
static void read_entries(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    if (!many_of(l, f, node, SZ_NODE_MAP))
        return;
    struct sz_raw_entry *v = sz_pool_zalloc(l->pool, node->n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < node->n; i++) {
        const struct sz_pair *pair = &node->pairs[i];
        struct sz_raw_entry *entry = &v[n];
        struct sz_field one = {.name = pair->key->text.p, .type = SZ_F_TEXTS, .min = 1, .max = 64};
        if (text_of(l, f->name, pair->key, 256, false) == NULL)
            continue;
        if (f->type == SZ_F_TEXTS_MAP && pair->value->kind == SZ_NODE_LIST) {
            if (!many_of(l, &one, pair->value, SZ_NODE_LIST))
                continue;
            texts_of(l, &one, pair->value, &entry->values);
        } else {
            if (text_of(l, one.name, pair->value, 1024, false) == NULL)
                continue;
            entry->values = (struct sz_strings){&pair->value->text, 1};
            entry->expanded = pair->value->expanded;
            entry->plain = is_plain(pair->value);
        }
        entry->head = (struct sz_raw_head){pair->key, pair->key->text};
        n++;
    }
    *(struct sz_raw_list *)(void *)((char *)out + f->offset) = (struct sz_raw_list){v, n};
}

static void read_list(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    if (!many_of(l, f, node, SZ_NODE_LIST))
        return;
    char *v = sz_pool_zalloc(l->pool, node->n * f->object->size);
    for (size_t i = 0; i < node->n; i++)
        sz_read_object(l, f->object, node->items[i], node->items[i], v + i * f->object->size);
    *(struct sz_raw_list *)(void *)((char *)out + f->offset) = (struct sz_raw_list){v, node->n};
}

static bool name_ok(struct sz_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              c == '.'))
            return false;
    }
    return name.n > 0 && name.n <= 64;
}

static void read_map(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    if (!many_of(l, f, node, SZ_NODE_MAP))
        return;
    char *v = sz_pool_zalloc(l->pool, node->n * f->object->size);
    for (size_t i = 0; i < node->n; i++) {
        struct sz_raw_head *head = (void *)(v + i * f->object->size);
        const struct sz_pair *pair = &node->pairs[i];
        if (!name_ok(pair->key->text))
            sz_mistake(l, pair->key, "a name in '%s' has 1 to 64 letters, digits, '.', '_' or '-'", f->name);
        sz_read_object(l, f->object, pair->value, pair->key, head);
        head->name = pair->key->text;
    }
    *(struct sz_raw_list *)(void *)((char *)out + f->offset) = (struct sz_raw_list){v, node->n};
}

/* ---- objects ------------------------------------------------------------------------------------------------ */

static const struct sz_field *field_of(const struct sz_object *object, struct sz_slice name)
{
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        if (sz_eq(name, sz_cstr(f->name)))
            return f;
    }
    return NULL;
}

static void check_keys(struct sz_loader *l, const struct sz_object *object, const struct sz_node *node)
{
    const char *names[64];
    size_t n = 0;
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        SZ_ASSERT(n < SZ_COUNT(names));
        names[n++] = f->name;
    }
    for (size_t i = 0; i < node->n; i++) {
        const struct sz_node *key = node->pairs[i].key;
        const struct sz_field *f = field_of(object, key->text);
        if (f != NULL && f->type == SZ_F_LATER)
            sz_mistake(l, key, "'%s' (%s) is not available in this version; remove it", f->name, f->help);
        if (f != NULL)
            continue;
        const char *meant = sz_suggest(key->text, names, n);
        if (meant != NULL)
            sz_mistake(l, key, "unknown key '%.*s' in %s; did you mean '%s'?", SZ_FMT(key->text), object->what, meant);
        else
            sz_mistake(l, key, "unknown key '%.*s' in %s; remove it", SZ_FMT(key->text), object->what);
    }
}

static void read_nested(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node,
                        const struct sz_node *parent, void *out)
{
    void *at = (char *)out + f->offset;
    if (node == NULL && (f->flags & (SZ_FIELD_OPTIONAL | SZ_FIELD_REQUIRED)) != 0)
        return;
    if (node != NULL && node->kind == SZ_NODE_MAP && node->n == 0 && (f->flags & SZ_FIELD_BLANK) == 0) {
        sz_mistake(l, node, "'%s' is empty; give it a key or remove it", f->name);
        return;
    }
    sz_read_object(l, f->object, node, node != NULL ? node : parent, at);
}

static void read_present(struct sz_loader *l, const struct sz_field *f, const struct sz_node *node, void *out)
{
    switch (f->type) {
    case SZ_F_BOOL:
        read_bool(l, f, node, out);
        break;
    case SZ_F_COUNT:
    case SZ_F_SIZE:
    case SZ_F_SPAN:
        read_number(l, f, node, out);
        break;
    case SZ_F_ENUM:
        read_enum(l, f, node, out);
        break;
    case SZ_F_TEXT:
        read_text(l, f, node, out);
        break;
    case SZ_F_FILE:
        read_file(l, f, node, (void *)((char *)out + f->offset));
        break;
    case SZ_F_TEXT_OR_FILE:
        read_text_or_file(l, f, node, out);
        break;
    case SZ_F_SECRET:
        read_secret(l, f, node, out);
        break;
    case SZ_F_TEXTS:
        read_texts(l, f, node, out);
        break;
    case SZ_F_TEXT_MAP:
    case SZ_F_TEXTS_MAP:
        read_entries(l, f, node, out);
        break;
    case SZ_F_LIST:
        read_list(l, f, node, out);
        break;
    case SZ_F_MAP:
        read_map(l, f, node, out);
        break;
    case SZ_F_OBJECT: /* read_nested */
    case SZ_F_LATER:  /* check_keys reported it */
        break;
    }
}

/* The row's default, read like a value from the file: a default outside its own range is a mistake of ours. */
static void read_default(struct sz_loader *l, const struct sz_field *f, void *out)
{
    size_t before = l->m->errors;
    struct sz_node node = {.kind = SZ_NODE_TEXT, .text = sz_cstr(f->def)};
    read_present(l, f, &node, out);
    SZ_ASSERT(l->m->errors == before);
}

void sz_read_object(struct sz_loader *l, const struct sz_object *object, const struct sz_node *node,
                    const struct sz_node *parent, void *out)
{
    memset(out, 0, object->size);
    if (node != NULL && node->kind != SZ_NODE_MAP) {
        if (!node->broken)
            sz_mistake(l, node, "%s is a mapping: {key: value}; this is %s", object->what, sz_node_kind_name(node));
        node = NULL;
        parent = NULL; /* one mistake is enough */
    }
    if (node != NULL)
        check_keys(l, object, node);
    ((struct sz_raw_head *)out)->node = node;
    for (const struct sz_field *f = object->fields; f->name != NULL; f++) {
        const struct sz_node *value = sz_node_get(node, f->name);
        if (f->def != NULL)
            read_default(l, f, out);
        if (f->type == SZ_F_OBJECT)
            read_nested(l, f, value, parent, out);
        else if (value != NULL)
            read_present(l, f, value, out);
        if (value == NULL && (f->flags & SZ_FIELD_REQUIRED) != 0 && parent != NULL)
            sz_mistake(l, parent, "%s needs '%s': %s", object->what, f->name, f->help);
    }
}
