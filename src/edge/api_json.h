/* What the readers of api bodies share: objects with known members, and ids.  jansson inside; see api_body.h. */
#ifndef SZ_EDGE_API_JSON_H
#define SZ_EDGE_API_JSON_H

#include <jansson.h>

#include "subzero/fga.h"

/* The body as an object, freed with json_decref; NULL: *why. */
json_t *sz_api_json(struct sz_slice body, const char **why);
/* True when `object` is one and has no members but these (names ends with NULL); what: as messages call it. */
bool sz_api_members(const json_t *object, const char *what, const char *const *names, struct sz_pool *pool,
                    const char **why);
/* A member that is a non-empty string, as text with a NUL; SZ_NONE and *why when it is not. */
struct sz_slice sz_api_text(const json_t *object, const char *what, const char *name, struct sz_pool *pool,
                            const char **why);

/* type:id, the id written as templates write it.  False: *why. */
bool sz_api_entity(struct sz_slice type, struct sz_slice id, size_t max, struct sz_pool *pool, struct sz_slice *out,
                   const char **why);
bool sz_api_relation(struct sz_slice relation, const char **why);
/* Canonical bytes: members sorted, no blanks; the same object always gives the same bytes, which caches are keyed by.
 */
struct sz_slice sz_api_canonical(const json_t *object, struct sz_pool *pool);

#endif
