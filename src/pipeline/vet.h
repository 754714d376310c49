/*
 * The routes' relation checks against the model that will answer them: a type or relation that it does not have would
 * make every request of the route a 503, and is found here, with its line.
 */
#ifndef SZ_PIPELINE_VET_H
#define SZ_PIPELINE_VET_H

#include "subzero/conf.h"
#include "subzero/fga.h"

/* True: none, or the model is not in this process.  Else every mistake is in m. */
bool sz_vet_routes(const struct sz_conf *conf, struct sz_authz *authz, struct sz_mistakes *m);

#endif
