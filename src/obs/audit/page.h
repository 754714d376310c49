/* What a question is answered with: a page as JSON, or an export piece by piece. */
#ifndef SZ_OBS_AUDIT_PAGE_H
#define SZ_OBS_AUDIT_PAGE_H

#include "obs/audit/scan.h"

/* {"records":[…],"next_cursor":…,"scanned_bytes":N,"complete":…}.  0, -EBADMSG with *why, -errno. */
int sz_audit_page(const struct sz_audit_view *view, const struct sz_audit_query *query, uint64_t scan_bytes,
                  struct sz_buf *out, struct sz_text *why) SZ_MUST_CHECK;

struct sz_audit_export {
    struct sz_audit_view view;
    struct sz_audit_query *query; /* the caller's */
    struct sz_audit_scan scan;
    uint64_t scan_bytes; /* of one with a limit: as a page's; UINT64_MAX: all */
    uint32_t left;       /* records, of one with a limit */
    bool begun;
};
/* Takes the view over. */
void sz_audit_export_init(struct sz_audit_export *export_, struct sz_audit_view *view, struct sz_audit_query *query,
                          uint64_t scan_bytes);
void sz_audit_export_fini(struct sz_audit_export *export_);
/* About `size` bytes more, at most `work` bytes read.  1: there is more; 0: that was the last; -EBADMSG with *why,
 * -errno. */
int sz_audit_export_next(struct sz_audit_export *export_, size_t size, uint64_t work, struct sz_buf *out,
                         struct sz_text *why) SZ_MUST_CHECK;

/* csv.c */
void sz_audit_csv_head(struct sz_buf *out);
void sz_audit_csv_row(struct sz_buf *out, struct sz_slice line);

#endif
