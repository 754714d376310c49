/*
 * A question to the journal: filters, order, limit, where to go on.  Values are kept as they stand in a line, escapes
 * included, so that a look is a search for bytes and nothing is parsed.  That cannot be fooled: a quote inside a value
 * has a backslash before it, so `,"subject":"x"` is nowhere but where that member is.
 */
#ifndef SZ_OBS_AUDIT_QUERY_H
#define SZ_OBS_AUDIT_QUERY_H

#include "obs/audit/index.h"
#include "subzero/conf.h"

enum { SZ_AUDIT_LIMIT_MAX = 1000, SZ_AUDIT_LIMIT = 100, SZ_AUDIT_CURSOR = 24 /* characters */ };

struct sz_audit_query {
    struct sz_slice value[SZ_AUDIT_FIELDS];  /* escaped; SZ_NONE: any */
    struct sz_slice needle[SZ_AUDIT_FIELDS]; /* ,"name":"value" */
    struct sz_slice text;                    /* q, escaped */
    int64_t since, until;                    /* since <= time < until */
    bool timed, ascending, csv;
    uint32_t limit; /* 0: none */
    bool has_cursor;
    uint64_t from; /* of the cursor: the first sequence number to look at, in the order asked for */
    uint64_t told; /* of the cursor: the question it belongs to */
    const struct sz_secret *pseudonyms;
    struct sz_arena arena; /* owns the bytes */
};
void sz_audit_query_init(struct sz_audit_query *query);
void sz_audit_query_fini(struct sz_audit_query *query);
/* One parameter by its name in the query string.  -EINVAL and *why. */
int sz_audit_query_set(struct sz_audit_query *query, struct sz_slice name, struct sz_slice value,
                       struct sz_text *why) SZ_MUST_CHECK;
/* A whole query string (RFC 3986, with + for a blank).  Unknown and doubled parameters are refused. */
int sz_audit_query_parse(struct sz_audit_query *query, struct sz_slice string, struct sz_text *why) SZ_MUST_CHECK;
/* After the last parameter: what does not go together. */
int sz_audit_query_finish(struct sz_audit_query *query, struct sz_text *why) SZ_MUST_CHECK;

bool sz_audit_query_matches(const struct sz_audit_query *query, struct sz_slice line);
/* Some record of a segment with this index may match. */
bool sz_audit_query_may_match(const struct sz_audit_query *query, const struct sz_audit_index *index);
/* The cursor that goes on at `seq`; no NUL. */
void sz_audit_query_cursor(const struct sz_audit_query *query, uint64_t seq, char out[SZ_AUDIT_CURSOR]);

#endif
