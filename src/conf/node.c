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
