/* What a provider answered about a token, judged. */
#ifndef SZ_FGA_INTROSPECT_H
#define SZ_FGA_INTROSPECT_H

#include "fga/issuer.h"

#define SZ_INTROSPECTION_MAX (16 * 1024) /* bytes of an answer */

struct sz_introspected {
    int status;
    struct sz_slice content_type, body;
};

/*
 * 0: out->reason says what the provider's answer means for this issuer, and *id is filled when that is `allowed`.
 * -EAGAIN, -EPROTO: no answer, or nonsense; the reason is identity_unavailable.  Any thread.
 */
int sz_introspection_read(const struct sz_issuers *issuers, int index, const struct sz_introspected *answer,
                          struct sz_wall now, struct sz_identity *id, struct sz_verified *out) SZ_MUST_CHECK;

#endif
