/* A growing set of 64-bit keys, for lists. */
#ifndef SZ_ENGINE_SET_H
#define SZ_ENGINE_SET_H

#include <stdlib.h>

#include "subzero/base.h"

struct sz_set64 { /* zero-initialise; 0 is no key */
    uint64_t *slots;
    size_t n, cap;
};

static inline size_t sz_set64_slot(const struct sz_set64 *s, uint64_t key)
{
    size_t i = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (s->cap - 1);
    while (s->slots[i] != 0 && s->slots[i] != key)
        i = (i + 1) & (s->cap - 1);
    return i;
}

/* True: it is new. */
static inline bool sz_set64_add(struct sz_set64 *s, uint64_t key)
{
    if (s->n * 2 >= s->cap) {
        struct sz_set64 bigger = {.cap = s->cap == 0 ? 64 : s->cap * 2, .n = s->n};
        bigger.slots = sz_xcalloc(bigger.cap, sizeof(*bigger.slots));
        for (size_t i = 0; i < s->cap; i++)
            if (s->slots[i] != 0)
                bigger.slots[sz_set64_slot(&bigger, s->slots[i])] = s->slots[i];
        free(s->slots);
        *s = bigger;
    }
    size_t at = sz_set64_slot(s, key);
    if (s->slots[at] != 0)
        return false;
    s->slots[at] = key;
    s->n++;
    return true;
}

static inline void sz_set64_fini(struct sz_set64 *s)
{
    free(s->slots);
    *s = (struct sz_set64){0};
}

#endif
