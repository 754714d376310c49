/*
 * OpenID Connect Back-Channel Logout: the provider posts logout_token=... as a form to the path that the configuration
 * names, on listeners of mode `api` and on the admin listener.  Whoever may connect may post: the token proves itself.
 */
#ifndef SZ_EDGE_LOGOUT_H
#define SZ_EDGE_LOGOUT_H

#include "edge/admin.h"
#include "edge/api.h"

/* Any issuer of the configuration has its logout endpoint there. */
bool sz_logout_owns(const struct sz_conf *conf, struct sz_slice path);
void sz_logout_serve_api(struct sz_exchange *x);
void sz_logout_serve_admin(struct sz_admin_call *call);

/* The logout token of a form body, decoded into pool; SZ_NONE: there is not exactly one, or it is too long. */
struct sz_slice sz_logout_form(struct sz_slice body, struct sz_pool *pool);

struct sz_logouts; /* the service thread's: tokens seen, questions under way */
struct sz_logouts *sz_logouts_new(struct sz_server *server);
void sz_logouts_free(struct sz_logouts **logouts);

#endif
