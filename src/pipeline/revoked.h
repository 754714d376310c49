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

/*
 * What revocations know a fact by that is not in it.  A fact that outlives its request (a stream's) must remember them:
 * the token is gone by then, and the key may have left its issuer's set.
 */
struct sz_revoked_names {
    struct sz_slice token; /* where its name is 0: to work it out of, if it comes to that */
    uint64_t token_name;
    uint64_t key_name; /* 0: the key is looked up in its issuer's set */
    bool key_lost;     /* and is not there: whose `kid` is revoked cannot be told any more, so each may be meant */
};
struct sz_revoked_names sz_revoked_remember(const struct sz_snapshot *snapshot, const struct sz_identity *id,
                                            struct sz_slice token);

/* By anything newer than `since`; `id` is of an issuer of the snapshot. */
bool sz_identity_revoked(const struct sz_gate *gate, const struct sz_snapshot *snapshot, const struct sz_identity *id,
                         uint64_t since, const struct sz_revoked_names *names);

/* How long a fact may be kept: shorter while what others revoke cannot be heard. */
struct sz_span sz_fact_ttl(const struct sz_gate *gate, const struct sz_conf_cache *conf, enum sz_credential_kind kind);

/* `allowed`, or why this request is refused. */
enum sz_reason sz_revoked(struct sz_txn *txn);

#endif
