/* Finding one's way in the tree. */
#include "conf/node.h"

static const struct sz_pair *pair_of(const struct sz_node *node, const char *key)
{
    if (node == NULL || node->kind != SZ_NODE_MAP)
        return NULL;
    for (size_t i = 0; i < node->n; i++) {
        if (sz_eq(node->pairs[i].key->text, sz_cstr(key)))
            return &node->pairs[i];
    }
    return NULL;
}

struct sz_node *sz_node_get(const struct sz_node *node, const char *key)
{
    const struct sz_pair *pair = pair_of(node, key);
    return pair == NULL ? NULL : pair->value;
}

const struct sz_node *sz_node_key(const struct sz_node *node, const char *key)
{
    const struct sz_pair *pair = pair_of(node, key);
    return pair == NULL ? node : pair->key;
}

const struct sz_node *sz_node_item(const struct sz_node *node, const char *key, size_t i)
{
    const struct sz_node *list = sz_node_get(node, key);
    if (list == NULL)
        return node;
    return list->kind == SZ_NODE_LIST && i < list->n ? list->items[i] : list;
}

/* The longest key of `map` that `rest` begins with, up to a dot or the end. */
static const struct sz_pair *step_into(const struct sz_node *map, struct sz_slice *rest)
{
    const struct sz_pair *found = NULL;
    for (size_t i = 0; i < map->n; i++) {
        struct sz_slice key = map->pairs[i].key->text;
        if (sz_starts_with(*rest, key) && (rest->n == key.n || rest->p[key.n] == '.') &&
            (found == NULL || key.n > found->key->text.n))
            found = &map->pairs[i];
    }
    if (found != NULL)
        *rest = sz_from(*rest, found->key->text.n + 1);
    return found;
}

void sz_conf_where(const struct sz_conf *conf, const char *path, unsigned *line, unsigned *column)
{
    const struct sz_node *node = conf->tree, *at = NULL;
    struct sz_slice rest = sz_cstr(path), field;
    uint64_t index;
    while (node != NULL && rest.n > 0) {
        if (node->kind == SZ_NODE_MAP) {
            const struct sz_pair *pair = step_into(node, &rest);
            at = pair == NULL ? at : pair->value;
            node = pair == NULL ? NULL : pair->value;
        } else if (node->kind == SZ_NODE_LIST && sz_split(&rest, '.', &field) &&
                   sz_parse_u64(field, UINT32_MAX, &index) == 0 && index < node->n) {
            at = node = node->items[index];
        } else {
            node = NULL;
        }
    }
    *line = at == NULL ? 0 : at->line;
    *column = at == NULL ? 0 : at->column;
}

const char *sz_node_kind_name(const struct sz_node *node)
{
    switch (node->kind) {
    case SZ_NODE_LIST:
        return "a list";
    case SZ_NODE_MAP:
        return "a mapping";
    case SZ_NODE_TEXT:
        break;
    }
    return "text";
}
