/*
 * The driver: calls the stage the transaction stands on until it parks or is done.  Stage numbers only
 * grow, so the loop ends after at most SZ_STAGE_COUNT turns; a stage that went backwards would be our own
 * mistake and stops the process rather than answer something nobody decided.
 */
#include "pipeline/txn.h"

#include "pipeline/stages.h"
#include "pipeline/threat.h"
#include "pipeline/trace.h"
#include "pipeline/verify_queue.h"
#include "pipeline/worker.h"

#define MAGIC 0x54584e31u /* "TXN1" */

static enum sz_step (*const stages[SZ_STAGE_COUNT])(struct sz_txn *txn) = {
#define SZ_STAGE(name, help) sz_stage_##name,
#include "subzero/tbl/stages.h"
};

/* The same for a recorded request, with the time taken around each stage. */
static enum sz_step drive_recorded(struct sz_txn *txn)
{
    for (;;) {
        enum sz_stage before = txn->stage;
        sz_trace_enter(txn);
        enum sz_step step = stages[before](txn);
        sz_trace_leave(txn, before, step);
        if (step != SZ_STEP_GO_ON)
            return step;
        SZ_ASSERT(txn->stage > before);
    }
}

static enum sz_step drive(struct sz_txn *txn)
{
    if (SZ_UNLIKELY(txn->trace != NULL))
        return drive_recorded(txn);
    for (;;) {
        enum sz_stage before = txn->stage;
        enum sz_step step = stages[before](txn);
        if (step != SZ_STEP_GO_ON)
            return step;
        SZ_ASSERT(txn->stage > before);
    }
}

static void begin(struct sz_txn *txn)
{
    SZ_ASSERT(txn->magic == 0);
    txn->magic = MAGIC;
    txn->held = sz_local_ref(txn->worker->current);
    txn->snapshot = txn->held->snapshot;
    txn->started = sz_loop_now(txn->worker->loop);
    if (SZ_UNLIKELY(txn->worker->tracer != NULL))
        sz_trace_begin(txn);
}

enum sz_step sz_txn_start(struct sz_txn *txn)
{
    begin(txn);
    txn->stage = SZ_STAGE_admit;
    return drive(txn);
}

enum sz_reason sz_txn_open(struct sz_txn *txn, const char **why)
{
    begin(txn);
    txn->stage = SZ_STAGE_done;
    return sz_admit_target(txn, why);
}

void sz_txn_resume(struct sz_txn *txn)
{
    SZ_ASSERT(txn->magic == MAGIC);
    txn->resumed = true;
    if (drive(txn) == SZ_STEP_FINISHED)
        txn->on_finished(txn);
}

void sz_txn_end(struct sz_txn *txn)
{
    if (txn->magic != MAGIC)
        return;
    sz_verify_queue_leave(txn->worker->verify, txn);
    sz_l2_cancel(&txn->l2);
    sz_flight_leave(&txn->flight);
    sz_authorize_cancel(txn);
    sz_limit_cancel(txn);
    sz_address_leave(txn);
    sz_commit_cancel(txn);
    if (txn->identity != NULL)
        sz_wipe(txn->identity, sz_identity_size(txn->identity));
    sz_local_unref(txn->held);
    txn->magic = 0;
}

void sz_txn_problem_as(struct sz_txn *txn, enum sz_reason reason, unsigned status, const char *detail)
{
    bool begun = txn->magic == MAGIC;
    bool refused = !begun || txn->req.listener->mode == SZ_MODE_API; /* no stage does it */
    if (!begun) {
        begin(txn);
        txn->stage = SZ_STAGE_done;
        sz_request_id(txn);
    }
    if (refused)
        sz_threat_observe(txn, reason);
    txn->decision.made = true;
    txn->decision.reason = reason;
    txn->decision.route = txn->match.route;
    txn->proxy = false;
    sz_answer_problem_as(txn, reason, status, detail);
    if (refused)
        sz_commit_refusal(txn);
}

void sz_txn_problem(struct sz_txn *txn, enum sz_reason reason, const char *detail)
{
    sz_txn_problem_as(txn, reason, sz_reason_row(reason)->status, detail);
}
