/* One request of our own to a remote store, with its credentials: what following a store is made of. */
#ifndef SZ_FGA_OPENFGA_ASK_H
#define SZ_FGA_OPENFGA_ASK_H

#include "fga/openfga.h"

struct sz_fga_ask { /* the asker's memory; zeroed with on_done set */
    /*
     * Once, later.  answer NULL: it was never asked, *why.  Returns what the breaker is told (sz_dependency_outcome, or
     * worse); without an answer nothing is.
     */
    enum sz_breaker_outcome (*on_done)(struct sz_fga_ask *ask, const struct sz_http_answer *answer, const char *why);
    struct sz_dependency_call http;
    struct sz_fga_client *client; /* counted; NULL: not under way */
    struct sz_fga_lane *lane;
    struct sz_fga_token_wait *token_wait;
    struct sz_defer failing; /* on_done never runs inside the start */
    uint64_t token;
    bool again;
    struct sz_mono deadline;
    enum sz_http_method method;
    struct sz_buf url, body;
    struct sz_text why;
};

/* path: below the store's url, with its query.  body: SZ_NONE for GET. */
void sz_fga_ask_start(struct sz_fga_ask *ask, struct sz_fga_lane *lane, struct sz_slice path, struct sz_slice body,
                      struct sz_mono deadline);
void sz_fga_ask_cancel(struct sz_fga_ask *ask); /* no-op when not under way */

#endif
