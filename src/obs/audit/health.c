/* What /health says of the journal. */
#include <errno.h>

#include "obs/audit/journal.h"

static const char *status_of(int failing, bool low, bool anchor)
{
    return failing != 0 ? "failing" : low ? "low_space" : anchor ? "anchor_failing" : "ok";
}

bool sz_audit_health(struct sz_audit *audit, struct sz_buf *out)
{
    if (audit == NULL) {
        sz_buf_printf(out, "\"audit\":{\"status\":\"off\"}");
        return true;
    }
    int failing = atomic_load(&audit->failing);
    bool low = atomic_load(&audit->low_space), anchor = atomic_load(&audit->anchor_bad);
    uint64_t lost = atomic_load(&audit->lost_queue) + atomic_load(&audit->lost_disk);
    sz_buf_printf(out,
                  "\"audit\":{\"status\":\"%s\",\"required\":%s,\"lost\":%llu,\"queued_bytes\":%zu,\"free_bytes\":%lld",
                  status_of(failing, low, anchor), audit->conf->required ? "true" : "false", (unsigned long long)lost,
                  sz_ring_used(&audit->ring), (long long)atomic_load(&audit->free_bytes));
    if (failing != 0) {
        sz_buf_printf(out, ",\"error\":");
        sz_buf_json(out, sz_cstr(strerror(failing)));
    } else {
        sz_buf_printf(out, ",\"last_seq\":%llu", (unsigned long long)atomic_load(&audit->shelf.committed));
    }
    sz_buf_printf(out, "}");
    return failing == 0 && !low && !anchor;
}
