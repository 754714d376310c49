/*
 * A service that we depend on, as its callers see it: HTTP calls behind a breaker, measured.  When it has failed a few
 * times in a row it is not asked for a while; who would have asked is told at once, and when to come back.
 *
 * What counts as a failure (sz_dependency_outcome):
 *
 *   success   an answer below 500 other than 408 and 429, whatever it says: a 401 from introspection means that our
 *             credentials are wrong and a 404 that its URL is; neither is an outage
 *   failure   no connection, no name, TLS, a timeout, an answer cut off, too large, a redirect or no HTTP; 408; 5xx
 *   neither   429: it is there, and has had enough of us; and what never left this process (busy, cancelled)
 *
 * A caller that finds nonsense in a good answer (HTML where JSON belongs) says failure itself.  A timeout is held
 * against the service, so give a call the time that a good answer takes: do not start one with a few milliseconds
 * left.
 */
#ifndef SUBZERO_DEPENDENCY_H
#define SUBZERO_DEPENDENCY_H

#include "subzero/breakers.h"
#include "subzero/http.h"

struct sz_dependency;

/*
 * Counted; one per name in the process, so that a reload that changes nothing about it keeps what the breaker has
 * learnt.  Other settings make a new one, closed.  name: see subzero/breakers.h.  Any thread; not on a hot path.
 */
struct sz_dependency *sz_dependency_get(const char *name, const struct sz_conf_breaker *conf, struct sz_mono now);
struct sz_dependency *sz_dependency_ref(struct sz_dependency *d);
void sz_dependency_put(struct sz_dependency **d);
const char *sz_dependency_name(const struct sz_dependency *d);

/* Embedded in the caller's struct; zero-initialise, set on_done. */
struct sz_dependency_call {
    /* As sz_http_call.on_done; returns what the breaker is told, sz_dependency_outcome(answer) or worse. */
    enum sz_breaker_outcome (*on_done)(struct sz_dependency_call *call, const struct sz_http_answer *answer);
    struct sz_http_call http;
    struct sz_dependency *dependency; /* NULL: not under way */
    struct sz_loop *loop;
    struct sz_breaker_ticket ticket;
};

enum { SZ_DEPENDENCY_OPEN = 2 };
/* As sz_http_start; SZ_DEPENDENCY_OPEN: the breaker is open, nothing will be called. */
int sz_dependency_start(struct sz_dependency *d, struct sz_http *http, const struct sz_http_request *request,
                        struct sz_dependency_call *call) SZ_MUST_CHECK;
void sz_dependency_cancel(struct sz_dependency_call *call); /* as sz_http_cancel */

enum sz_breaker_outcome sz_dependency_outcome(const struct sz_http_answer *answer);
/* For Retry-After: until it may be asked again; 0: it may now. */
struct sz_span sz_dependency_retry(const struct sz_dependency *d, struct sz_mono now);

#endif
