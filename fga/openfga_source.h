/* A client's check, for the sources made of it. */
#ifndef SZ_FGA_OPENFGA_SOURCE_H
#define SZ_FGA_OPENFGA_SOURCE_H

#include "fga/openfga.h"

/* As sz_authz.start and cancel. */
int sz_fga_client_check(struct sz_fga_client *client, struct sz_loop *loop, const struct sz_check *check,
                        struct sz_mono deadline, struct sz_authz_op *op) SZ_MUST_CHECK;
void sz_fga_client_cancel(struct sz_authz_op *op);

#endif
