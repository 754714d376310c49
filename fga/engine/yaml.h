/*
 * YAML documents as JSON values, for tuple files, store tests and test suites.  Untagged plain
 * scalars follow the core schema (null, booleans, integers, floats); timestamps stay strings.
 */
#ifndef SZ_ENGINE_YAML_H
#define SZ_ENGINE_YAML_H

#include "subzero/base.h"

/*
 * The first document as a new json_t *; NULL: *why says where and what.  Bounded: nesting <= 100,
 * aliases are expanded up to a total of `max_nodes` values, duplicate keys refused.
 */
void *sz_yaml_json(struct sz_slice text, size_t max_nodes, struct sz_text *why);

#endif
