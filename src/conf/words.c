/*
 * The vocabulary: which scopes and claims the configuration mentions at all.  Identities carry
 * these and nothing else, so its bounds are the bounds of an identity (subzero/identity.h).
 */
#include "conf/build.h"
#include "subzero/identity.h"

int sz_words_add(struct sz_builder *b, struct sz_words *words, struct sz_slice word)
{
    for (size_t i = 0; i < words->n; i++) {
        if (sz_eq(words->v[i], word))
            return (int)i;
    }
    if (words->n == words->max)
        return -1;
    if (words->v == NULL)
        words->v = sz_pool_alloc(b->l->pool, words->max * sizeof(*words->v));
    words->v[words->n] = word;
    return (int)words->n++;
}

int sz_claim_slot(struct sz_builder *b, const struct sz_node *at, struct sz_slice name)
{
    static const struct {
        struct sz_slice name;
        int slot;
    } built_in[] = {{{"sub", 3}, SZ_SLOT_SUB},
                    {{"client", 6}, SZ_SLOT_CLIENT},
                    {{"tenant", 6}, SZ_SLOT_TENANT},
                    {{"iss", 3}, SZ_SLOT_ISS}};
    for (size_t i = 0; i < SZ_COUNT(built_in); i++) {
        if (sz_eq(name, built_in[i].name))
            return built_in[i].slot;
    }
    int slot = sz_words_add(b, &b->claims, sz_slice(sz_pool_strdup(b->l->pool, name), name.n));
    if (slot < 0)
        sz_mistake(b->l, at, "more than %d different claims are mentioned; '%.*s' is one too many", SZ_CLAIMS_MAX,
                   SZ_FMT(at->expanded ? SZ_S("...") : name));
    return slot;
}
