/* Identities in L2: under which name, and whether what was found there counts here and now. */
#ifndef SZ_PIPELINE_IDENTIFY_L2_H
#define SZ_PIPELINE_IDENTIFY_L2_H

#include "pipeline/txn.h"

/* issuer: index of the one that is asked about an opaque token; -1 for a JWT, which names its own. */
void sz_l2_identity_name(const struct sz_gate *gate, const struct sz_snapshot *snapshot, int issuer,
                         struct sz_slice token, struct sz_l2_name *out);
/*
 * The fact as this process knows it: registry ids of its issuer and key.  False: of other settings, of a key that is
 * gone, over, or not one of ours; *id means nothing then.  issuer as above.
 */
bool sz_l2_identity(const struct sz_snapshot *snapshot, struct sz_slice plain, int issuer, struct sz_wall wall,
                    struct sz_identity *id);
/* Behind the answer; never awaited. */
void sz_l2_identity_put(const struct sz_gate *gate, const struct sz_snapshot *snapshot, struct sz_redis *redis,
                        struct sz_loop *loop, const struct sz_l2_name *name, const struct sz_identity *id);

#endif
