/* The table of reasons, from subzero/tbl/reasons.h: once there, never twice. */
#include "subzero/reason.h"

static const struct sz_reason_row rows[SZ_REASON_COUNT] = {
#define SZ_REASON(name, status, title, component, where, why, remedy) {#name, status, title, component},
#include "subzero/tbl/reasons.h"
};

const struct sz_reason_row *sz_reason_row(enum sz_reason reason)
{
    SZ_ASSERT((unsigned)reason < SZ_REASON_COUNT);
    return &rows[reason];
}
