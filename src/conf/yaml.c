/*
 * libyaml's events become a tree.  What a gateway's configuration does not need and an
 * attacker or a tired reader could trip over is refused: anchors and aliases (a kilobyte can
 * unfold to gigabytes), tags, merge keys, a second document, a key written twice.
 */
#include <stdlib.h>
#include <yaml.h>

#include "conf/node.h"

struct parse {
    struct sz_loader *l;
    yaml_parser_t yaml;
    yaml_event_t event; /* the current one; owned until the next */
    bool have;
    struct sz_slice text;
    size_t nodes;
};

/* Position of the current event: a node to point mistakes at. */
static const struct sz_node *here(struct parse *p, struct sz_node *out)
{
    *out = (struct sz_node){
        .line = (unsigned)p->event.start_mark.line + 1,
        .column = (unsigned)p->event.start_mark.column + 1,
    };
    return out;
}

static void syntax_mistake(struct parse *p)
{
    const yaml_parser_t *y = &p->yaml;
    struct sz_node at = {.line = (unsigned)y->problem_mark.line + 1, .column = (unsigned)y->problem_mark.column + 1};
    const char *problem = y->problem != NULL ? y->problem : "unreadable text";
    size_t index = y->problem_mark.index;
    bool tab = index < p->text.n && p->text.p[index] == '\t';
    bool brace = index > 0 && index < p->text.n && y->context != NULL && strstr(y->context, "flow") != NULL &&
                 strchr("{[", p->text.p[index]) != NULL && strchr(" ,:[{", p->text.p[index - 1]) == NULL;
    if (y->error == YAML_READER_ERROR) {
        unsigned line = 1, column = 1;
        for (size_t i = 0; i < y->problem_offset && i < p->text.n; i++, column++) {
            if (p->text.p[i] == '\n')
                line++, column = 0;
        }
        at = (struct sz_node){.line = line, .column = column};
        sz_mistake(p->l, &at, "%s: the file must be UTF-8 text without control characters", problem);
    } else if (brace) {
        sz_mistake(p->l, &at,
                   "a '%c' inside {...} or [...]: put the value in quotes, such as \"/documents/{id}\" or \"${NAME}\"",
                   p->text.p[index]);
    } else if (tab) {
        sz_mistake(p->l, &at, "a tab: YAML is indented with spaces");
    } else if (y->context != NULL) {
        sz_mistake(p->l, &at, "not YAML: %s %s that began in line %zu; check indentation, quotes and brackets", problem,
                   y->context, y->context_mark.line + 1);
    } else {
        sz_mistake(p->l, &at, "not YAML: %s; check indentation, quotes and brackets", problem);
    }
}

static bool next(struct parse *p)
{
    if (p->have)
        yaml_event_delete(&p->event);
    p->have = yaml_parser_parse(&p->yaml, &p->event) == 1;
    if (!p->have)
        syntax_mistake(p);
    return p->have;
}

/* Anchors and tags on the current event; true when it may be used. */
static bool plain_event(struct parse *p)
{
    struct sz_node at;
    const yaml_event_t *e = &p->event;
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (e->type == YAML_ALIAS_EVENT) {
        sz_mistake(p->l, here(p, &at), "aliases (*%s) are not supported; write the value out", e->data.alias.anchor);
        return false;
    }
    if (e->type == YAML_SCALAR_EVENT)
        anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
    else if (e->type == YAML_SEQUENCE_START_EVENT)
        anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
    else if (e->type == YAML_MAPPING_START_EVENT)
        anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
    if (anchor != NULL)
        sz_mistake(p->l, here(p, &at), "anchors (&%s) are not supported; write the value out", anchor);
    else if (tag != NULL)
        sz_mistake(p->l, here(p, &at), "tags (%s) are not supported; remove it", tag);
    return anchor == NULL && tag == NULL;
}

static struct sz_node *new_node(struct parse *p, enum sz_node_kind kind)
{
    struct sz_node *node = sz_pool_zalloc(p->l->pool, sizeof(*node));
    here(p, node);
    node->kind = kind;
    p->nodes++;
    return node;
}

static struct sz_node *build(struct parse *p, unsigned depth);

/* Doubles an array in the pool; the old one stays behind as slack, at most the size of the result. */
static void *grow(struct sz_pool *pool, void *old, size_t n, size_t size)
{
    if (n != 0 && (n & (n - 1)) != 0)
        return old;
    void *grown = sz_pool_alloc(pool, (n == 0 ? 1 : n * 2) * size);
    if (n > 0)
        memcpy(grown, old, n * size);
    return grown;
}

static struct sz_node *build_list(struct parse *p, unsigned depth)
{
    struct sz_node *list = new_node(p, SZ_NODE_LIST);
    for (;;) {
        if (!next(p))
            return NULL;
        if (p->event.type == YAML_SEQUENCE_END_EVENT)
            return list;
        struct sz_node *item = build(p, depth + 1);
        if (item == NULL)
            return NULL;
        list->items = grow(p->l->pool, list->items, list->n, sizeof(*list->items));
        list->items[list->n++] = item;
    }
}

static int by_key(const void *pa, const void *pb)
{
    const struct sz_node *a = *(struct sz_node *const *)pa, *b = *(struct sz_node *const *)pb;
    int c = sz_cmp(a->text, b->text);
    if (c != 0)
        return c;
    return a->line != b->line ? (a->line < b->line ? -1 : 1) : (a->column < b->column ? -1 : 1);
}

static void check_duplicates(struct parse *p, const struct sz_node *map)
{
    if (map->n < 2)
        return;
    struct sz_node **keys = sz_xmalloc(map->n * sizeof(*keys));
    for (size_t i = 0; i < map->n; i++)
        keys[i] = map->pairs[i].key;
    qsort(keys, map->n, sizeof(*keys), by_key);
    for (size_t i = 1; i < map->n; i++) {
        if (sz_eq(keys[i]->text, keys[i - 1]->text))
            sz_mistake(p->l, keys[i], "'%.*s' is written twice, first in line %u; keep one", SZ_FMT(keys[i]->text),
                       keys[i - 1]->line);
    }
    free(keys);
}

static struct sz_node *build_map(struct parse *p, unsigned depth)
{
    struct sz_node *map = new_node(p, SZ_NODE_MAP);
    for (;;) {
        if (!next(p))
            return NULL;
        if (p->event.type == YAML_MAPPING_END_EVENT)
            break;
        if (p->event.type != YAML_SCALAR_EVENT) {
            struct sz_node at;
            sz_mistake(p->l, here(p, &at), "a key must be a word; write 'key: value'");
            return NULL;
        }
        struct sz_node *key = build(p, depth + 1);
        if (key == NULL || !next(p))
            return NULL;
        struct sz_node *value = build(p, depth + 1);
        if (value == NULL)
            return NULL;
        map->pairs = grow(p->l->pool, map->pairs, map->n, sizeof(*map->pairs));
        map->pairs[map->n++] = (struct sz_pair){key, value};
    }
    check_duplicates(p, map);
    return map;
}

static struct sz_node *build_text(struct parse *p)
{
    struct sz_node *node = new_node(p, SZ_NODE_TEXT);
    struct sz_slice text = sz_slice(p->event.data.scalar.value, p->event.data.scalar.length);
    node->quoted = p->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (sz_find_byte(text, '\0') >= 0) {
        sz_mistake(p->l, node, "a NUL byte in a value; remove it");
        return NULL;
    }
    node->text = sz_slice(sz_pool_strdup(p->l->pool, text), text.n);
    return node;
}

/* The node that the current event begins; NULL after a mistake that ends the parse. */
static struct sz_node *build(struct parse *p, unsigned depth)
{
    struct sz_node at;
    if (!plain_event(p))
        return NULL;
    if (depth > SZ_YAML_DEPTH_MAX) {
        sz_mistake(p->l, here(p, &at), "nested deeper than %d levels", SZ_YAML_DEPTH_MAX);
        return NULL;
    }
    if (p->nodes >= SZ_YAML_NODES_MAX) {
        sz_mistake(p->l, here(p, &at), "more than %d values; split the configuration", SZ_YAML_NODES_MAX);
        return NULL;
    }
    if (p->event.type == YAML_SEQUENCE_START_EVENT)
        return build_list(p, depth);
    if (p->event.type == YAML_MAPPING_START_EVENT)
        return build_map(p, depth);
    return build_text(p);
}

static struct sz_node *document(struct parse *p)
{
    struct sz_node at;
    bool begun = next(p);   /* stream start */
    if (!begun || !next(p)) /* document start or stream end */
        return NULL;
    if (p->event.type == YAML_STREAM_END_EVENT) {
        sz_mistake(p->l, NULL, "the file is empty; docs/configuration.md shows a first one");
        return NULL;
    }
    if (!next(p))
        return NULL;
    struct sz_node *root = build(p, 0);
    if (root == NULL || !next(p) || !next(p)) /* document end; stream end or another document */
        return NULL;
    if (p->event.type != YAML_STREAM_END_EVENT) {
        sz_mistake(p->l, here(p, &at), "a second document begins here; one file holds one configuration");
        return NULL;
    }
    return root;
}

struct sz_node *sz_yaml_parse(struct sz_loader *l, struct sz_slice text)
{
    if (text.n > SZ_YAML_BYTES_MAX) {
        sz_mistake(l, NULL, "the file is larger than %u bytes", SZ_YAML_BYTES_MAX);
        return NULL;
    }
    struct parse p = {.l = l, .text = text};
    if (yaml_parser_initialize(&p.yaml) != 1)
        abort(); /* out of memory at start-up */
    yaml_parser_set_encoding(&p.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text.p, text.n);
    struct sz_node *root = document(&p);
    if (p.have)
        yaml_event_delete(&p.event);
    yaml_parser_delete(&p.yaml);
    return root;
}
