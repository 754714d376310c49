/*
 * Revocations at the rim: what an operator or a provider says becomes one of the set; what the set says reaches streams
 * that are open, and the cache.
 */
#ifndef SZ_EDGE_REVOKING_H
#define SZ_EDGE_REVOKING_H

#include "edge/admin.h"
#include "subzero/revocation.h"

struct sz_server;
struct sz_conf_issuer;

/* Service thread.  Opens the set (*why when it cannot), starts it, ends it. */
int sz_revoking_open(struct sz_server *server, struct sz_text *why) SZ_MUST_CHECK;
int sz_revoking_start(struct sz_server *server) SZ_MUST_CHECK;
void sz_revoking_stop(struct sz_server *server);

/*
 * Until when a revocation is kept: nothing that it ends can be valid then.  issuer NULL: unknown; `last`: the latest
 * moment (unix seconds) at which a token that it ends may have been issued.
 */
int64_t sz_revoking_until(const struct sz_conf_issuer *issuer, int64_t last);

/* POST /revocations */
void sz_admin_revoke(struct sz_admin_call *call);
/* The component of /health.  False: not well. */
bool sz_revoking_health(struct sz_server *server, struct sz_buf *out);

#endif
