/* The parts of the limit stage: limit.c (order and outcome), limit_key.c (whose bucket), limit_visitor.c,
 * limit_headers.c. */
#ifndef SZ_PIPELINE_LIMIT_H
#define SZ_PIPELINE_LIMIT_H

#include "pipeline/stages.h"
#include "pipeline/visitor.h"

struct sz_limit_run { /* of one request, in its memory */
    size_t at;        /* the limit being asked */
    bool under_way;   /* op is */
    struct sz_limit_op op;
    struct sz_txn *txn;
    enum sz_reason reason;                  /* allowed, or what the outcome of all of them is */
    const struct sz_conf_rate_limit *whose; /* ... and which of them made it so */
    struct sz_limit_answer *answers;        /* one per limit of the route, up to `at` */
    enum sz_reason failure;                 /* of the store, met by a dry run: it is not asked again; else allowed */
    struct sz_span open;                    /* ... and how long its breaker stays open */
    bool second;                            /* the address has been asked, and now the visitor is */
    bool visitor_known, visitor_new;        /* by the cookie; drawn for this request */
    uint8_t visitor[SZ_VISITOR_ID];
};

/* Of an identity of this kind; bad_request when the request can be read in more than one way. */
enum sz_reason sz_limit_key(struct sz_txn *txn, const struct sz_conf_route_limit *limit, enum sz_limit_by kind,
                            struct sz_slice *key);
/* Who the visitor is, from the cookie or somebody new. */
void sz_limit_visitor(struct sz_txn *txn);
/* RateLimit and RateLimit-Policy of what was asked, into txn->respond. */
void sz_limit_headers(struct sz_txn *txn);

#endif
