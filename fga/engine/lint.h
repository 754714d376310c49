/* Finding the line and columns of a model problem in the text it came from. */
#ifndef SZ_ENGINE_LINT_H
#define SZ_ENGINE_LINT_H

#include "fga/engine/model.h"

struct sz_lines { /* borrowed from the text */
    struct sz_slice *v;
    size_t n;
};
void sz_lines_init(struct sz_lines *lines, struct sz_slice text, struct sz_pool *pool);

#define SZ_NO_LINE SIZE_MAX
/* The first line from `skip` on (SZ_NO_LINE counts as 0) that declares the name; SZ_NO_LINE when none does. */
size_t sz_lines_type(const struct sz_lines *lines, struct sz_slice name, size_t skip, bool extension);
size_t sz_lines_relation(const struct sz_lines *lines, struct sz_slice name, size_t skip);
size_t sz_lines_condition(const struct sz_lines *lines, struct sz_slice name);
size_t sz_lines_schema(const struct sz_lines *lines, struct sz_slice version);

/* Puts the problem on that line, at its symbol as its kind demands.  No line: nothing happens. */
void sz_lint_place(struct sz_problem *p, const struct sz_lines *lines, size_t line);

/* Which relations no user can ever have.  entry[i] for the i-th relation, counted through all types in order. */
struct sz_entry {
    bool reachable, loop; /* loop: the reason is a cycle of computed usersets */
};
struct sz_entry *sz_model_entries(const struct sz_model *m, struct sz_pool *pool);

#endif
