/*
 * HTTP/2 requests held to the rules of HTTP/1 before anything is made of them: h2o lets through blanks in :path, empty
 * names, absolute and empty paths, a content-length without data, and header lists that HPACK expanded from a few
 * bytes.
 */
#ifndef SZ_EDGE_H2_CHECK_H
#define SZ_EDGE_H2_CHECK_H

#include <h2o.h>

#include "edge/head_check.h"

/* As sz_head_check: 0, SZ_HEAD_BAD or SZ_HEAD_TOO_LARGE with a literal in *why. */
int sz_h2_check(const h2o_req_t *req, const struct sz_head_limits *limits, const char **why) SZ_MUST_CHECK;

#endif
