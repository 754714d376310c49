/* Identities as they come out of Redis, were a seal ever to open over something else. */
#include <stdint.h>

#include "subzero/l2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sz_identity id;
    uint8_t thumbprint[32];
    struct sz_buf again = {0};
    if (!sz_l2_unpack(sz_slice(data, size), &id, thumbprint))
        return 0;
    for (unsigned slot = 0; slot < SZ_CLAIMS_MAX; slot++) {
        struct sz_claim claim = sz_identity_claim(&id, slot);
        struct sz_slice rest = claim.text, item;
        while (claim.type == SZ_CLAIM_STRINGS && sz_claim_next(&rest, &item))
            SZ_ASSERT(item.n <= claim.text.n);
    }
    sz_l2_pack(&id, thumbprint, &again);
    SZ_ASSERT(again.n <= size);
    sz_buf_fini(&again);
    return 0;
}
