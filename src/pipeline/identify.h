/* The waiting half of identify: identify_wait.c (keys), identify_ask.c (opaque tokens). */
#ifndef SZ_PIPELINE_IDENTIFY_H
#define SZ_PIPELINE_IDENTIFY_H

#include "pipeline/stages.h"
#include "subzero/provider.h"

/* Parks until the issuer's keys have been fetched (flight_status), or the deadline. */
enum sz_step sz_wait_for_keys(struct sz_txn *txn, int issuer);
/* 503, and when to come again. */
enum sz_step sz_identity_unavailable(struct sz_txn *txn, struct sz_mono again);

/* Parks until issuer `issuer` has been asked about the token; the answer is txn->flight_status and txn->identity. */
enum sz_step sz_ask_about_token(struct sz_txn *txn, int issuer);
/* At the end of a worker: questions that wait for another instance end.  Its http and redis are gone already. */
void sz_ask_abandon(struct sz_worker *worker);
/* The route's issuer that an opaque token belongs to; -1: none. */
int sz_opaque_issuer(const struct sz_txn *txn);

#endif
