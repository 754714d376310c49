/* Identities and fingerprints for the cache tests: made from a number, so that what comes back can be checked whole. */
#ifndef UNIT_CACHE_FACTS_H
#define UNIT_CACHE_FACTS_H

#include "subzero/cache.h"

/* Any two with the same `set` share a set in every table, and a tag when `tag` is the same too; `n` tells them apart.
 */
struct sz_fingerprint fact_fp(uint32_t set, uint16_t tag, uint32_t n);
/* Filled from `seed`, `text` bytes of text in use (at least 1); `wide`: scope words beyond the first and x5t as well.
 */
void fact_identity(struct sz_identity *id, uint64_t seed, size_t text, bool wide, int64_t exp);
bool fact_same(const struct sz_identity *a, const struct sz_identity *b); /* in all used bytes */
uint64_t fact_random(uint64_t *state);

#endif
