/*
 * The runner for vector classes: $SUBZERO_CONFORMANCE/vectors/CLASS.jsonl (default ../shared/conformance
 * beside the checkout).  A `must` mismatch fails the test; a `policy` mismatch is printed and counted; an absent
 * class is skipped.
 */
#ifndef SZ_TESTS_VECTORS_H
#define SZ_TESTS_VECTORS_H

#include <jansson.h>
#include <stdbool.h>

#include "subzero/base.h"

/* True when the verdict is right; *got says what came out, for the message.  pool dies with the vector. */
typedef bool vector_fn(json_t *vector, struct sz_pool *pool, struct sz_text *got);

/* Runs every vector of the class; cr_skip_test when the file is absent. */
void vectors_run(const char *class_name, vector_fn *passes);
/* The same under another name in the messages, for a class that is run in several ways. */
void vectors_run_as(const char *label, const char *class_name, vector_fn *passes);
bool vectors_present(const char *class_name);

/* Bytes of a standard-base64 member, or of a string value. */
struct sz_slice vector_bytes(json_t *vector, const char *member, struct sz_pool *pool);
struct sz_slice vector_b64(json_t *value, struct sz_pool *pool);
/* A string member; fails the test when it is missing. */
const char *vector_text(json_t *vector, const char *member);
/* expect is "accept"; and `either` answers true in *either. */
bool vector_expects_accept(json_t *vector, bool *either);

#endif
