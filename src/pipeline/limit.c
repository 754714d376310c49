/*
 * limit: rate limits of the validated tenant.  No configuration can name a limit yet (the loader refuses
 * `rate_limit`), so there is nothing to ask; the stage stands where the request will ask it.
 */
#include "pipeline/stages.h"

enum sz_step sz_stage_limit(struct sz_txn *txn)
{
    return sz_pass(txn);
}
