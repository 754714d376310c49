/*
 * One configured issuer as verification sees it.  Everything but the key set is fixed when the
 * configuration is loaded; the key set is swapped whole by whoever fetches keys.
 */
#ifndef SZ_FGA_ISSUER_H
#define SZ_FGA_ISSUER_H

#include "fga/key_slot.h"
#include "subzero/http.h"
#include "subzero/issuers.h"
#include "subzero/provider.h"

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
    uint16_t id;                 /* process-wide: key_registry.h */
    uint64_t generation;         /* of its settings, and of those it shares `iss` with; never 0 */
    bool shares_iss;             /* another issuer has the same `iss` (shared_subjects) */
    struct sz_key_slot *slot;    /* its keys; shared with other configurations when they are fetched */
    struct sz_http_trust *trust; /* issuers that are asked over the network */
    /* opaque tokens */
    struct sz_dependency *dependency; /* NULL until adopted */
    _Atomic uint32_t calls;           /* under way */
    struct sz_signer *signer;         /* private_key_jwt */
    pthread_mutex_t sign;             /* the signer's: held for one signature */
};

struct sz_issuers {
    const struct sz_conf *conf;
    struct sz_issuer *v; /* in configuration order */
    uint16_t *by_iss;    /* indices, sorted by `iss`, then by configuration order */
    size_t n;
    int16_t *index_of; /* registry id to index, -1: not here; index_n of them */
    size_t index_n;
    struct sz_names scopes, claims;
    uint64_t generation; /* settings, vocabulary and key sets of all, as loaded */
};

/* A hash of two hashes, never 0; the same on every instance. */
uint64_t sz_mix(uint64_t a, uint64_t b);

/* What a fact of this issuer must carry to be believed now. */
uint64_t sz_issuer_generation_now(const struct sz_issuer *issuer);

/* The issuers with exactly this `iss`: *first is a position in by_iss; returns how many follow each other there. */
size_t sz_issuers_find(const struct sz_issuers *issuers, struct sz_slice iss, size_t *first);

#endif
