/*
 * Waiting for a provider.  Whoever misses first starts the work, which lives on its own; all wait on their own loops
 * until their own deadlines.  "Could not ask" is 503 and never kept.
 */
#include <stdlib.h>

#include "pipeline/identify.h"

enum sz_step sz_identity_unavailable(struct sz_txn *txn, struct sz_mono again)
{
    struct sz_mono now = sz_loop_now(txn->worker->loop);
    struct sz_span most = SZ_SEC(60);
    struct sz_span left = again.us > now.us ? sz_between(now, again) : SZ_SEC(1);
    txn->retry_after = left.us > most.us ? most : left;
    txn->identity = NULL;
    return sz_refuse(txn, SZ_REASON_identity_unavailable);
}

static void on_flight(struct sz_flight_wait *wait, int status, struct sz_slice result)
{
    struct sz_txn *txn = SZ_CONTAINER(wait, struct sz_txn, flight);
    (void)result;
    txn->flight_status = status;
    sz_txn_resume(txn);
}

/* ---- keys -------------------------------------------------------------------------------------------- */

struct fetch { /* the work of one flight */
    struct sz_keys_op op;
    struct sz_flight *lead;
};

static void on_fetched(struct sz_keys_op *op, int status)
{
    struct fetch *fetch = SZ_CONTAINER(op, struct fetch, op);
    sz_flight_finish(&fetch->lead, status, SZ_NONE);
    free(fetch);
}

enum sz_step sz_wait_for_keys(struct sz_txn *txn, int issuer)
{
    struct sz_hash128 key = {{sz_keys_source(txn->snapshot->issuers, issuer), 0}};
    struct sz_flight *lead;
    txn->flight.on_done = on_flight;
    switch (
        sz_flight_join(txn->worker->gate->key_flights, key, txn->worker->loop, txn->deadline, &txn->flight, &lead)) {
    case SZ_FLIGHT_FULL:
        txn->identity = NULL;
        return sz_refuse(txn, SZ_REASON_overloaded);
    case SZ_FLIGHT_LEAD: {
        struct fetch *fetch = sz_xcalloc(1, sizeof(*fetch));
        fetch->op.on_done = on_fetched;
        fetch->lead = lead;
        sz_keys_fetch(txn->snapshot->issuers, issuer, &fetch->op);
        break;
    }
    default:
        sz_count(txn->worker->index, txn->worker->gate->series.coalesced_keys, 1);
        break;
    }
    txn->identify_at = SZ_IDENTIFY_KEYS;
    return SZ_STEP_PARKED;
}
