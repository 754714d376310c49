/* Identifiers and tuples against a model. */
#ifndef SZ_ENGINE_VALIDATE_H
#define SZ_ENGINE_VALIDATE_H

#include "fga/engine/condition.h"

/* "type:id" split; relation: of a userset, else absent; wild: the id is '*'. */
struct sz_user_parts {
    struct sz_slice object, type, id, relation;
    bool wild;
};
bool sz_object_valid(struct sz_slice object, struct sz_slice *type); /* one ':', both sides, no '#', blank, control */
bool sz_relation_valid(struct sz_slice relation);
bool sz_user_split(struct sz_slice user, struct sz_user_parts *out); /* false: malformed */

/* A user string as the model sees it. */
struct sz_user_ids {
    struct sz_user_parts parts;
    uint16_t type, relation; /* relation: 0, SZ_WILD, or the userset's name */
};
/* -EINVAL: *why says what (no fault code: the caller knows which). */
int sz_user_check(const struct sz_program *p, struct sz_slice user, struct sz_user_ids *out, struct sz_text *why);

/* A tuple that the model admits. */
struct sz_tuple_ids {
    struct sz_user_ids user;
    uint16_t type, rel; /* rel: index into the program's relations */
    const struct sz_direct *direct;
};
enum sz_tuple_fault { SZ_TUPLE_OK, SZ_TUPLE_INVALID, SZ_TUPLE_CONDITION }; /* the two have different codes */

/* Object, relation and user are well-formed and known (what a check's own key must be). */
enum sz_tuple_fault sz_key_check(const struct sz_program *p, const struct sz_tuple_key *k, struct sz_tuple_ids *out,
                                 struct sz_text *why);
/* And the model lets it be written.  *context: the parsed condition context (json_t *, to be freed), NULL: none. */
enum sz_tuple_fault sz_tuple_check(const struct sz_program *p, const struct sz_tuple_key *k, struct sz_tuple_ids *out,
                                   void **context, struct sz_text *why);
/*
 * After it: "o#r@o#r", which says nothing.  It is not written (*why); one that is there already, or comes along with a
 * question, counts.
 */
bool sz_tuple_is_implicit(const struct sz_program *p, const struct sz_tuple_key *k, const struct sz_tuple_ids *t,
                          struct sz_text *why);

/* A JSON object, strictly: NULL on failure with *why.  {NULL, 0} and "" are no context: NULL with why->s empty. */
void *sz_context_parse(struct sz_slice text, struct sz_text *why);

#endif
