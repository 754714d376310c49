/*
 * What is wrong with a model or a file, all of it at once.  Places count from zero, as the
 * ecosystem's own tools do; whoever prints for people adds one.
 */
#ifndef SZ_ENGINE_PROBLEMS_H
#define SZ_ENGINE_PROBLEMS_H

#include "subzero/base.h"

struct sz_problem {
    const char *kind; /* "syntax", "invalid-type" ...: the ecosystem's names, static */
    struct sz_slice message, symbol;
    struct sz_slice file, module;                   /* set for models made of modules */
    struct sz_slice type, relation, offending_type; /* where in the model, for problems found without text */
    bool placed;                                    /* line and columns are set */
    unsigned line, column, end_column;
};

struct sz_problems {
    struct sz_arena arena; /* owns every text below */
    struct sz_problem *v;
    size_t n, cap;
};

/* A list that stops growing here: nobody reads further, and a hostile file must not fill the memory. */
#define SZ_PROBLEMS_MAX 1000

void sz_problems_init(struct sz_problems *list);
void sz_problems_fini(struct sz_problems *list);
/* A new, zeroed entry with its message; NULL when the list is full.  Valid until the next add. */
struct sz_problem *sz_problems_add(struct sz_problems *list, const char *kind, const char *fmt, ...) SZ_PRINTF(3, 4);
static inline void sz_problem_place(struct sz_problem *p, size_t line, size_t column, size_t end)
{
    if (p == NULL)
        return;
    p->placed = true;
    p->line = (unsigned)line;
    p->column = (unsigned)column;
    p->end_column = (unsigned)end;
}
/* The first problem as one sentence "line 3, column 7: message"; empty when there is none. */
void sz_problems_first(const struct sz_problems *list, struct sz_text *out);

#endif
