/*
 * A frozen set of lower-case field names, built with a snapshot: one probe tells what to do with a
 * client's header.  Names that are not in it cost one hash of length and three bytes.
 */
#ifndef SZ_PIPELINE_NAMESET_H
#define SZ_PIPELINE_NAMESET_H

#include "subzero/base.h"

struct sz_nameset {
    struct sz_slice *slots; /* power of two, at most half full */
    size_t mask;
};
void sz_nameset_build(struct sz_nameset *set, const struct sz_slice *names, size_t n, struct sz_pool *pool);
bool sz_nameset_has(const struct sz_nameset *set, struct sz_slice name);

#endif
