/*
 * A strict JSON reader for tokens: no heap, eight bytes a value.  Headers and payloads are read before the signature is
 * checked, so the cost of reading is what a flood of garbage gets for free: 1 to 7 ns a byte here, depending on the
 * shape, 10 to 36 with a tree of heap nodes (jansson).  Everything else reads JSON with jansson.
 */
#ifndef SZ_FGA_JSON_TREE_H
#define SZ_FGA_JSON_TREE_H

#include "subzero/base.h"

#define SZ_JSON_TEXT_MAX   16384                      /* bytes */
#define SZ_JSON_NODES_MAX  (SZ_JSON_TEXT_MAX / 2 + 1) /* names and values: two bytes each at the least */
#define SZ_JSON_TREE_DEPTH 64

enum sz_json_type {
    SZ_JSON_NULL,
    SZ_JSON_TRUE,
    SZ_JSON_FALSE,
    SZ_JSON_NUMBER,
    SZ_JSON_STRING,
    SZ_JSON_ARRAY,
    SZ_JSON_OBJECT,
};

/* In the order of the text: a container is followed by what it holds, in an object names and values in turn. */
struct sz_json_node {
    uint16_t at, n; /* NUMBER: the literal; STRING: the decoded bytes */
    uint16_t next;  /* index of the node behind this one and all it holds */
    uint8_t type;   /* enum sz_json_type */
};

struct sz_json_tree {
    const char *text;
    uint16_t n; /* nodes in use; v[0] is the root */
    struct sz_json_node v[SZ_JSON_NODES_MAX];
};

/*
 * Reads the whole text, which is borrowed for as long as the tree is used AND changed: escapes are decoded in place.
 * -EINVAL: not strict JSON (sz_json_check) or nested too deep, or an object has a name twice; -E2BIG: too long.
 */
int sz_json_read(struct sz_json_tree *tree, char *text, size_t n) SZ_MUST_CHECK;

static inline bool sz_json_is(const struct sz_json_node *node, enum sz_json_type type)
{
    return node != NULL && node->type == type;
}
/* The decoded bytes of a string, the literal of a number. */
static inline struct sz_slice sz_json_slice(const struct sz_json_tree *tree, const struct sz_json_node *node)
{
    return sz_slice(tree->text + node->at, node->n);
}

/* The member of an object by its decoded name; NULL: none, or not an object. */
const struct sz_json_node *sz_json_get(const struct sz_json_tree *tree, const struct sz_json_node *object,
                                       struct sz_slice name);
/* A string member's bytes; SZ_NONE: no such member, or no string. */
struct sz_slice sz_json_get_string(const struct sz_json_tree *tree, const struct sz_json_node *object,
                                   struct sz_slice name);
/* The items of an array: start with NULL, ends with NULL. */
const struct sz_json_node *sz_json_next(const struct sz_json_tree *tree, const struct sz_json_node *array,
                                        const struct sz_json_node *item);
/* How many members an object has. */
size_t sz_json_members(const struct sz_json_tree *tree, const struct sz_json_node *object);

/* The value as JSON text, members sorted by name, no blanks: the same value is the same bytes.  Bounded by out->limit.
 */
void sz_json_write(const struct sz_json_tree *tree, const struct sz_json_node *node, struct sz_buf *out);

/* A number without fraction and exponent that fits.  -EINVAL: it has; -ERANGE: it does not. */
int sz_json_integer(const struct sz_json_tree *tree, const struct sz_json_node *number, int64_t *out) SZ_MUST_CHECK;
/* Any number; -ERANGE when it is not finite or its literal is absurdly long. */
int sz_json_real(const struct sz_json_tree *tree, const struct sz_json_node *number, double *out) SZ_MUST_CHECK;

#endif
