/*
 * One parse, one truth: the request target in canonical form.  Route match, authorization, audit and
 * the bytes that go upstream all use this form.  What can be read in two ways is refused.
 *
 *   /a/%7Euser/./b//c?x=1   ->  path "/a/~user/b/c", query "x=1"
 *   /a%2Fb  /a%5cb  /a\b  /%00  /%252e  /a;/../b  ...  ->  refused (ambiguous_path)
 */
#ifndef SZ_PIPELINE_TARGET_H
#define SZ_PIPELINE_TARGET_H

#include "subzero/base.h"

struct sz_target {
    struct sz_slice path; /* canonical: unreserved octets decoded once, other escapes upper-cased, dot segments removed,
                             slashes merged */
    struct sz_slice query; /* without '?'; SZ_NONE when there is none */
    bool asterisk;         /* OPTIONS *: matched as "/", forwarded as "*" */
    bool was_canonical;    /* the input's path already was (hex digits in any case): decide mode needs it */
};

/* 0; SZ_TARGET_AMBIGUOUS or SZ_TARGET_BAD with *why a literal.  Memory from pool only when the path changes. */
enum { SZ_TARGET_AMBIGUOUS = 1, SZ_TARGET_BAD = 2 };
int sz_target_parse(struct sz_slice raw, struct sz_pool *pool, struct sz_target *out, const char **why) SZ_MUST_CHECK;

/*
 * A canonical path as upstreams read it that decode what may also stand unescaped (%3A, %40 ...) and drop path
 * parameters (";x" up to the next slash).  The same slice when that changes nothing; else memory from pool.
 */
struct sz_slice sz_target_other_reading(struct sz_slice path, struct sz_pool *pool);

/*
 * authority (host[:port], RFC 9110 7.2, no userinfo) -> lower-case host without port, brackets and final dot, and
 * the same with its port for forwarding.  Memory from pool only when something changes.  -EINVAL: malformed.
 */
struct sz_authority {
    struct sz_slice host;      /* "api.example.com", "192.0.2.1", "2001:db8::1" */
    struct sz_slice canonical; /* "api.example.com:8443", "[2001:db8::1]" */
};
int sz_authority_parse(struct sz_slice authority, struct sz_pool *pool, struct sz_authority *out) SZ_MUST_CHECK;

#endif
