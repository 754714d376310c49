/* The closed list of reasons, generated from subzero/tbl/reasons.h. */
#ifndef SUBZERO_REASON_H
#define SUBZERO_REASON_H

#include "subzero/base.h"

enum sz_reason {
#define SZ_REASON(name, status, title, component, where, why, remedy) SZ_REASON_##name,
#include "subzero/tbl/reasons.h"
    SZ_REASON_COUNT
};

struct sz_reason_row {
    const char *name;      /* on the wire: `reason`, X-Subzero-Reason, urn:subzero:problem:NAME */
    uint16_t status;       /* HTTP status of a denial for this reason */
    const char *title;     /* RFC 9457 title */
    const char *component; /* label of subzero_errors_total when a request is answered so; "": no fault */
};
const struct sz_reason_row *sz_reason_row(enum sz_reason reason); /* never NULL; asserts on a bad value */

#endif
