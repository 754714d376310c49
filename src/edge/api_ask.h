/*
 * Asking relations for an api call: one question, or several of which all are under way at once or one after the other.
 * A question that was found malformed has its answer already and is passed over.  Lives in request memory; when the
 * client leaves, what is under way is cancelled and on_done never runs.
 */
#ifndef SZ_EDGE_API_ASK_H
#define SZ_EDGE_API_ASK_H

#include "edge/exchange.h"

struct sz_api_item {
    struct sz_check check;
    const char *wrong;     /* not asked: what is wrong with it; NULL: asked */
    enum sz_reason reason; /* once answered: allowed, not_permitted, bad_request (with `wrong`), authz_* */
    struct sz_authz_op op;
    struct sz_api_ask *ask;
    bool under_way;
};

/* When no more questions are asked: never before all, after the first that was not allowed, or that was. */
enum sz_api_until { SZ_API_ALL, SZ_API_FIRST_DENY, SZ_API_FIRST_PERMIT };

struct sz_api_ask {
    struct sz_exchange *x;
    struct sz_api_item *items;
    size_t n;
    enum sz_api_until until;
    void (*on_done)(struct sz_api_ask *ask); /* may run inside sz_api_ask_start */
    size_t answered;                         /* items with a reason; all in order where `until` is not ALL */
    size_t next, under_way;                  /* private */
    unsigned at_once;
    struct sz_defer hop;
};

/* x, items (check or wrong), n, until and on_done are set; the rest is zero. */
void sz_api_ask_start(struct sz_api_ask *ask);
void sz_api_ask_cancel(struct sz_api_ask *ask);

#endif
