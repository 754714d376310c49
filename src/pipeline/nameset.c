/*
 * The hash is weak on purpose: the set is fixed by the configuration, so a client can only choose to
 * collide with one of our names, and then a comparison answers.
 */
#include "pipeline/nameset.h"

static size_t spot(struct sz_slice name)
{
    const uint8_t *p = (const uint8_t *)name.p;
    if (name.n == 0)
        return 0;
    return name.n * 31 + p[0] * 7 + p[name.n / 2] * 131 + p[name.n - 1] * 17;
}

bool sz_nameset_has(const struct sz_nameset *set, struct sz_slice name)
{
    for (size_t at = spot(name) & set->mask; set->slots[at].p != NULL; at = (at + 1) & set->mask) {
        if (sz_eq(set->slots[at], name))
            return true;
    }
    return false;
}

void sz_nameset_build(struct sz_nameset *set, const struct sz_slice *names, size_t n, struct sz_pool *pool)
{
    size_t size = 16;
    while (size < n * 4)
        size *= 2;
    set->slots = sz_pool_zalloc(pool, size * sizeof(*set->slots));
    set->mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        if (names[i].n == 0 || sz_nameset_has(set, names[i]))
            continue;
        size_t at = spot(names[i]) & set->mask;
        while (set->slots[at].p != NULL)
            at = (at + 1) & set->mask;
        set->slots[at] = names[i];
    }
}
