/*
 * The YAML document as a tree with positions: what the schema reads and what messages point at.
 * Lives in the configuration's arena and stays for its whole life, so that later checks
 * (keys, certificates) can still name the line.
 */
#ifndef SZ_CONF_NODE_H
#define SZ_CONF_NODE_H

#include "conf/loader.h"
#include "subzero/base.h"

#define SZ_YAML_BYTES_MAX (8u * 1024 * 1024)
#define SZ_YAML_DEPTH_MAX 16
#define SZ_YAML_NODES_MAX 1000000

enum sz_node_kind { SZ_NODE_TEXT, SZ_NODE_LIST, SZ_NODE_MAP };

struct sz_node;
struct sz_pair {
    struct sz_node *key, *value;
};
struct sz_node {
    enum sz_node_kind kind;
    bool quoted;   /* TEXT: written in quotes or as a block: never a number, a boolean or null */
    bool expanded; /* TEXT: a ${...} was replaced */
    bool broken;   /* a mistake was already reported for it: nothing more about its value */
    unsigned line, column;
    struct sz_slice text;   /* TEXT: NUL-terminated */
    struct sz_node **items; /* LIST */
    struct sz_pair *pairs;  /* MAP: keys are TEXT, each once */
    size_t n;
};

/* NULL, and mistakes: not YAML, or something that is refused (anchors, aliases, tags, two documents, duplicate keys).
 */
struct sz_node *sz_yaml_parse(struct sz_loader *l, struct sz_slice text);
/* Replaces ${NAME} and ${NAME:-default} in every value below `node`; $${ stands for ${. */
void sz_env_expand(struct sz_loader *l, struct sz_node *node);

/* The value under a key of a map, NULL when node is no map or has no such key. */
struct sz_node *sz_node_get(const struct sz_node *node, const char *key);
/* The key's own node (its position), else `node`. */
const struct sz_node *sz_node_key(const struct sz_node *node, const char *key);
/* Entry i of the list under a key (its position), else the list, else `node`. */
const struct sz_node *sz_node_item(const struct sz_node *node, const char *key, size_t i);
/* "a list", "text", "a mapping". */
const char *sz_node_kind_name(const struct sz_node *node);

#endif
