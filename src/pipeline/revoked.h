/*
 * Whether a fact has been revoked.  Asked on every request, for what was cached and what was just learned alike, and
 * costs one load while nothing has been revoked since the fact was learned.
 */
#ifndef SZ_PIPELINE_REVOKED_H
#define SZ_PIPELINE_REVOKED_H

#include "pipeline/snapshot.h"
#include "pipeline/txn.h"

/* What revocations of the token itself know it by. */
uint64_t sz_token_name(struct sz_slice token);

/* By anything newer than `since`; `id` is of an issuer of the snapshot.  token_name 0: not known, work it out of token.
 */
bool sz_identity_revoked(const struct sz_gate *gate, const struct sz_snapshot *snapshot, const struct sz_identity *id,
                         uint64_t since, struct sz_slice token, uint64_t token_name);

/* How long a fact may be kept: shorter while what others revoke cannot be heard. */
struct sz_span sz_fact_ttl(const struct sz_gate *gate, const struct sz_conf_cache *conf, enum sz_credential_kind kind);

/* `allowed`, or why this request is refused. */
enum sz_reason sz_revoked(struct sz_txn *txn);

#endif
