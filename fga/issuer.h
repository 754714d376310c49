/*
 * One configured issuer as verification sees it.  Everything but the key set is fixed when the
 * configuration is loaded; the key set is swapped whole by whoever fetches keys.
 */
#ifndef SZ_FGA_ISSUER_H
#define SZ_FGA_ISSUER_H

#include <pthread.h>

#include "fga/jwks.h"
#include "subzero/issuers.h"

/* The configuration's scope or claim names with a sorted index beside them. */
struct sz_names {
    const struct sz_slice *v;
    uint16_t *order;
    size_t n;
};
/* Position in the configuration's order, or -1. */
int sz_names_find(const struct sz_names *names, struct sz_slice name);

struct sz_issuer {
    const struct sz_conf_issuer *conf;
    uint16_t id;          /* process-wide: key_registry.h */
    uint64_t generation;  /* never 0 */
    pthread_mutex_t lock; /* guards `keys`, held for a pointer and a count only */
    struct sz_jwks *keys; /* never NULL */
    /*
     * The ids of the keys in `keys`, for sz_issuer_key_alive on every cache hit: read without the lock.  A reader that
     * crosses a swap may miss a key that is in both sets (a cache miss, no more) and sees no key that is in neither.
     */
    _Atomic uint32_t alive_n;
    _Atomic uint32_t alive[SZ_JWKS_KEYS_MAX + 1];
};

struct sz_issuers {
    const struct sz_conf *conf;
    struct sz_issuer *v; /* in configuration order */
    uint16_t *by_iss;    /* indices, sorted by `iss`, then by configuration order */
    size_t n;
    int16_t *index_of; /* registry id to index, -1: not here; index_n of them */
    size_t index_n;
    struct sz_names scopes, claims;
    _Atomic uint64_t generation; /* settings, vocabulary and key sets of all */
};

/* The current set with a reference of one's own. */
struct sz_jwks *sz_issuer_keys(struct sz_issuer *issuer);
/* Swaps the set in; takes over the reference.  The old one goes when its last reader is done.  One writer at a time. */
void sz_issuer_set_keys(struct sz_issuers *issuers, struct sz_issuer *issuer, struct sz_jwks *keys);

/* The issuers with exactly this `iss`: *first is a position in by_iss; returns how many follow each other there. */
size_t sz_issuers_find(const struct sz_issuers *issuers, struct sz_slice iss, size_t *first);

#endif
