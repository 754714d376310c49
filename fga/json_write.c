/* A value that was read, as text again.  Objects are small where this is asked for: members are picked in order of
 * name. */
#include "fga/json_tree.h"

/* The member whose name comes next behind `last` (NULL: the first); NULL: none does. */
static const struct sz_json_node *next_member(const struct sz_json_tree *tree, const struct sz_json_node *object,
                                              const struct sz_json_node *last)
{
    const struct sz_json_node *best = NULL;
    for (uint16_t at = (uint16_t)(object - tree->v + 1); at < object->next; at = tree->v[at + 1].next) {
        const struct sz_json_node *name = &tree->v[at];
        struct sz_slice text = sz_json_slice(tree, name);
        if ((last == NULL || sz_cmp(text, sz_json_slice(tree, last)) > 0) &&
            (best == NULL || sz_cmp(text, sz_json_slice(tree, best)) < 0))
            best = name;
    }
    return best;
}

static void write_object(const struct sz_json_tree *tree, const struct sz_json_node *object, struct sz_buf *out)
{
    const struct sz_json_node *name = NULL;
    bool first = true;
    sz_buf_adds(out, SZ_S("{"));
    while (!out->overflow && (name = next_member(tree, object, name)) != NULL) {
        sz_buf_adds(out, first ? SZ_S("") : SZ_S(","));
        first = false;
        sz_buf_json(out, sz_json_slice(tree, name));
        sz_buf_adds(out, SZ_S(":"));
        sz_json_write(tree, name + 1, out);
    }
    sz_buf_adds(out, SZ_S("}"));
}

static void write_array(const struct sz_json_tree *tree, const struct sz_json_node *array, struct sz_buf *out)
{
    const struct sz_json_node *item = NULL;
    sz_buf_adds(out, SZ_S("["));
    while (!out->overflow && (item = sz_json_next(tree, array, item)) != NULL) {
        sz_buf_adds(out, item == array + 1 ? SZ_S("") : SZ_S(","));
        sz_json_write(tree, item, out);
    }
    sz_buf_adds(out, SZ_S("]"));
}

void sz_json_write(const struct sz_json_tree *tree, const struct sz_json_node *node, struct sz_buf *out)
{
    switch ((enum sz_json_type)node->type) {
    case SZ_JSON_NULL:
        sz_buf_adds(out, SZ_S("null"));
        break;
    case SZ_JSON_TRUE:
        sz_buf_adds(out, SZ_S("true"));
        break;
    case SZ_JSON_FALSE:
        sz_buf_adds(out, SZ_S("false"));
        break;
    case SZ_JSON_NUMBER:
        sz_buf_adds(out, sz_json_slice(tree, node));
        break;
    case SZ_JSON_STRING:
        sz_buf_json(out, sz_json_slice(tree, node));
        break;
    case SZ_JSON_ARRAY:
        write_array(tree, node, out);
        break;
    case SZ_JSON_OBJECT:
        write_object(tree, node, out);
        break;
    }
}
