/*
 * Where a token may come from: the Authorization field, and a cookie or query parameter where a route
 * says so.  Extraction only; nothing is decoded here.
 */
#ifndef SZ_PIPELINE_CREDENTIAL_H
#define SZ_PIPELINE_CREDENTIAL_H

#include "pipeline/request.h"
#include "subzero/reason.h"

/*
 * The bearer token of a list of Authorization field values (RFC 6750 2.1, RFC 9110 11.4):
 * allowed: *token is set; missing_token: no credential of ours; malformed_token: a Bearer that is none;
 * sender_constrained: a DPoP credential, whose proof is not verified here; bad_request: more than one field.
 */
enum sz_reason sz_bearer_token(const struct sz_slice *values, size_t n, struct sz_slice *token);

/* All places the route allows; two credentials are bad_request. query may be SZ_NONE. */
enum sz_reason sz_credential_find(const struct sz_headers *headers, struct sz_slice query,
                                  const struct sz_conf_route *route, struct sz_slice *token);

/* The same without a look at the token's characters: for who knows it by its fingerprint, and scans it otherwise. */
enum sz_reason sz_credential_locate(const struct sz_headers *headers, struct sz_slice query,
                                    const struct sz_conf_route *route, struct sz_slice *token);

/* The query without the credential parameter, a Cookie value without the credential cookie; the input without one. */
struct sz_slice sz_query_without(struct sz_slice query, struct sz_slice name, struct sz_pool *pool);
struct sz_slice sz_cookie_without(struct sz_slice cookie, struct sz_slice name, struct sz_pool *pool);

/* A cookie over all Cookie fields (HTTP/2 splits them); *count grows by its occurrences. */
struct sz_slice sz_cookie_find(const struct sz_headers *headers, struct sz_slice name, unsigned *count);

#endif
