/* The waiting half of identify: identify_wait.c. */
#ifndef SZ_PIPELINE_IDENTIFY_H
#define SZ_PIPELINE_IDENTIFY_H

#include "pipeline/stages.h"
#include "subzero/provider.h"

/* Parks until the issuer's keys have been fetched (flight_status), or the deadline. */
enum sz_step sz_wait_for_keys(struct sz_txn *txn, int issuer);
/* 503, and when to come again. */
enum sz_step sz_identity_unavailable(struct sz_txn *txn, struct sz_mono again);

#endif
