/* Conditions of tuples: a context cast to the parameters of one model's condition. */
#ifndef SZ_ENGINE_CONDITION_H
#define SZ_ENGINE_CONDITION_H

#include "fga/engine/program.h"

struct sz_typed_context {
    const struct sz_program *p;
    bool valid; /* only declared keys, all of them castable */
    struct sz_arena arena;
    bool *given;
    struct sz_cv *v;
};
void sz_typed_context_free(struct sz_typed_context *t); /* NULL is fine */

/* The context (json_t *, NULL: empty) for a condition; *why says what is wrong when it is not valid.  In `pool`. */
struct sz_typed_context *sz_typed_context_make(const struct sz_program *p, const struct sz_ccond *c, const void *json,
                                               struct sz_pool *pool, struct sz_text *why);

/* NULL: the model has no such condition. */
static inline const struct sz_ccond *sz_program_cond(const struct sz_program *p, uint16_t name)
{
    uint16_t at = name < p->n_cond_index ? p->cond_index[name] : 0;
    return at == 0 ? NULL : &p->conds[at - 1];
}

#endif
