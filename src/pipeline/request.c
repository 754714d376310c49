/*
 * Header lists: a plain array in request memory.  Requests carry a dozen fields, so a linear
 * scan that compares lengths first beats any index.
 */
#include "pipeline/request.h"

void sz_headers_add(struct sz_headers *h, struct sz_pool *pool, struct sz_slice name, struct sz_slice value)
{
    if (h->n == h->cap) {
        size_t cap = h->cap == 0 ? 16 : h->cap * 2;
        struct sz_header *grown = sz_pool_alloc(pool, cap * sizeof(*grown));
        if (h->n != 0)
            memcpy(grown, h->v, h->n * sizeof(*grown));
        h->v = grown;
        h->cap = cap;
    }
    h->v[h->n++] = (struct sz_header){name, value};
}

struct sz_slice sz_headers_get(const struct sz_headers *h, struct sz_slice name, unsigned *count)
{
    struct sz_slice first = SZ_NONE;
    unsigned n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (!sz_eq(h->v[i].name, name))
            continue;
        if (n++ == 0)
            first = h->v[i].value;
        if (count == NULL)
            break;
    }
    if (count != NULL)
        *count = n;
    return first;
}
