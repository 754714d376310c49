/*
 * libyaml's document tree -> jansson.  Aliases are expanded, so the number of values made is bounded
 * (a small text can name an exponential tree).
 */
#include "fga/engine/yaml.h"

#include <jansson.h>
#include <stdlib.h>
#include <yaml.h>

enum { NEST = 100 };

struct converter {
    yaml_document_t doc;
    size_t left;
    struct sz_text *why;
};

static json_t *fail(struct converter *c, const yaml_node_t *node, const char *what)
{
    if (c->why->s[0] == '\0')
        sz_text_set(c->why, "line %zu, column %zu: %s", node->start_mark.line + 1, node->start_mark.column + 1, what);
    return NULL;
}

static bool one_of(const char *s, const char *a, const char *b, const char *d)
{
    return strcmp(s, a) == 0 || strcmp(s, b) == 0 || strcmp(s, d) == 0;
}

static bool only(const char *s, const char *set)
{
    return s[strspn(s, set)] == '\0';
}

/* A plain scalar by the core schema. */
static json_t *plain(const char *s, size_t n)
{
    if (n == 0 || strcmp(s, "~") == 0 || one_of(s, "null", "Null", "NULL"))
        return json_null();
    if (one_of(s, "true", "True", "TRUE"))
        return json_true();
    if (one_of(s, "false", "False", "FALSE"))
        return json_false();
    const char *digits = s + (*s == '-' || *s == '+');
    char *end = NULL;
    if (*digits >= '0' && *digits <= '9' && only(digits, "0123456789") && strlen(digits) <= 18)
        return json_integer(strtoll(s, NULL, 10));
    if (strncmp(s, "0x", 2) == 0 && s[2] != '\0' && only(s + 2, "0123456789abcdefABCDEF") && n <= 17)
        return json_integer(strtoll(s, NULL, 16));
    if (strncmp(s, "0o", 2) == 0 && s[2] != '\0' && only(s + 2, "01234567") && n <= 22)
        return json_integer(strtoll(s + 2, NULL, 8));
    if (((*digits >= '0' && *digits <= '9') || (*digits == '.' && digits[1] >= '0' && digits[1] <= '9')) &&
        only(digits, "0123456789.eE+-")) {
        double d = strtod(s, &end);
        json_t *v = *end == '\0' ? json_real(d) : NULL;
        if (v != NULL)
            return v;
    }
    return json_stringn(s, n);
}

static json_t *scalar(struct converter *c, const yaml_node_t *node)
{
    const char *s = (const char *)node->data.scalar.value;
    size_t n = node->data.scalar.length;
    json_t *v = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                        strcmp((const char *)node->tag, YAML_STR_TAG) == 0 && strlen(s) == n
                    ? plain(s, n)
                    : json_stringn(s, n);
    return v != NULL ? v : fail(c, node, "text is not UTF-8");
}

static json_t *convert(struct converter *c, int index, unsigned depth);

static json_t *mapping(struct converter *c, const yaml_node_t *node, unsigned depth)
{
    json_t *o = json_object();
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
        const yaml_node_t *key = yaml_document_get_node(&c->doc, p->key);
        json_t *v = NULL;
        if (key->type != YAML_SCALAR_NODE)
            fail(c, key, "a key must be plain text");
        else if (json_object_get(o, (const char *)key->data.scalar.value) != NULL)
            fail(c, key, "this key was there already");
        else
            v = convert(c, p->value, depth + 1);
        if (v == NULL || json_object_set_new(o, (const char *)key->data.scalar.value, v) != 0) {
            fail(c, key, "a key must be UTF-8");
            json_decref(o);
            return NULL;
        }
    }
    return o;
}

static json_t *convert(struct converter *c, int index, unsigned depth)
{
    const yaml_node_t *node = yaml_document_get_node(&c->doc, index);
    if (depth > NEST || c->left == 0)
        return fail(c, node, depth > NEST ? "nested too deeply" : "too many values (aliases are expanded)");
    c->left--;
    if (node->type == YAML_SCALAR_NODE)
        return scalar(c, node);
    if (node->type == YAML_MAPPING_NODE)
        return mapping(c, node, depth);
    json_t *list = json_array();
    for (yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
        json_t *v = convert(c, *i, depth + 1);
        if (v == NULL) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, v);
    }
    return list;
}

void *sz_yaml_json(struct sz_slice text, size_t max_nodes, struct sz_text *why)
{
    yaml_parser_t parser;
    struct converter c = {.left = max_nodes, .why = why};
    json_t *out = NULL;
    why->s[0] = '\0';
    if (!yaml_parser_initialize(&parser)) {
        sz_text_set(why, "out of memory");
        return NULL;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p != NULL ? text.p : ""), text.n);
    if (!yaml_parser_load(&parser, &c.doc)) {
        sz_text_set(why, "line %zu, column %zu: %s", parser.problem_mark.line + 1, parser.problem_mark.column + 1,
                    parser.problem != NULL ? parser.problem : "not YAML");
    } else {
        if (yaml_document_get_root_node(&c.doc) == NULL)
            sz_text_set(why, "the file is empty");
        else
            out = convert(&c, 1, 0);
        yaml_document_delete(&c.doc);
    }
    yaml_parser_delete(&parser);
    return out;
}
