/*
 * Route patterns: a host pattern and a path pattern, parsed once, and the three questions
 * about two of them: the same requests?  does one cover the other?  does one come before the other by its host alone?
 *
 *   /docs/{id}/pages/ and a star   literal "docs", parameter "id", literal "pages", star
 *   /a/                            literal "a", literal "" (a trailing slash is a segment of its own)
 */
#ifndef SZ_CONF_PATTERN_H
#define SZ_CONF_PATTERN_H

#include "subzero/base.h"

#define SZ_PATTERN_SEGMENTS_MAX 32
#define SZ_PATTERN_BYTES_MAX    1024

struct sz_segment {
    struct sz_slice text; /* literal bytes, or the parameter's name */
    bool param;           /* {x}: one non-empty segment */
};
struct sz_pattern {
    struct sz_slice host; /* lower-case; exact, or a suffix with its dot (".example.com"); SZ_NONE: any */
    bool wildcard;        /* host is a suffix */
    const struct sz_segment *seg;
    unsigned n;
    bool star; /* and zero or more segments behind them */
};

/* Path part.  Only canonical paths: a pattern in another form would never match.  -EINVAL: *why with the remedy. */
int sz_pattern_path(struct sz_pool *pool, struct sz_slice path, struct sz_pattern *out,
                    struct sz_text *why) SZ_MUST_CHECK;
/* Host part, SZ_NONE for any; *canonical gets the lower-case form as it is written in a configuration. */
int sz_pattern_host(struct sz_pool *pool, struct sz_slice host, struct sz_pattern *out, struct sz_slice *canonical,
                    struct sz_text *why) SZ_MUST_CHECK;

/* Index of a parameter in order of appearance, -1: no such one. */
int sz_pattern_param(const struct sz_pattern *p, struct sz_slice name);
/* The same pattern: parameters' names aside. */
bool sz_pattern_equal(const struct sz_pattern *a, const struct sz_pattern *b);
/* Every request that `inner` matches, `outer` matches too (an equal one does). */
bool sz_pattern_covers(const struct sz_pattern *outer, const struct sz_pattern *inner);
/*
 * `first` has the narrower host and is therefore asked first, and takes requests away from `second`, whose path is the
 * more specific one for them.
 */
bool sz_pattern_shadows(const struct sz_pattern *first, const struct sz_pattern *second);

/* A method name: an RFC 9110 token that we route, upper-case letters and '-', up to 32. */
bool sz_method_ok(struct sz_slice method);

#endif
