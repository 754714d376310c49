/* Pages and exports: see the header. */
#include "obs/audit/page.h"

#include <errno.h>

static int explain(const struct sz_audit_scan *scan, int rc, struct sz_text *why)
{
    if (rc == -EBADMSG)
        *why = scan->damage;
    else if (rc < 0)
        sz_text_set(why, "cannot read: %s", strerror(-rc));
    return rc;
}

static void add_end(struct sz_buf *out, const struct sz_audit_scan *scan, bool complete)
{
    char cursor[SZ_AUDIT_CURSOR];
    sz_buf_printf(out, "],\"next_cursor\":");
    if (complete && !scan->query->ascending) {
        sz_buf_printf(out, "null");
    } else {
        sz_audit_query_cursor(scan->query, sz_audit_scan_position(scan), cursor);
        sz_buf_printf(out, "\"%.*s\"", SZ_AUDIT_CURSOR, cursor);
    }
    sz_buf_printf(out, ",\"scanned_bytes\":%llu,\"complete\":%s}\n", (unsigned long long)scan->scanned,
                  complete ? "true" : "false");
}

int sz_audit_page(const struct sz_audit_view *view, const struct sz_audit_query *query, uint64_t scan_bytes,
                  struct sz_buf *out, struct sz_text *why)
{
    struct sz_audit_scan scan;
    struct sz_slice line;
    uint32_t most = query->limit != 0 ? query->limit : SZ_AUDIT_LIMIT;
    int rc = 1;
    sz_audit_scan_init(&scan, view, query);
    sz_buf_printf(out, "{\"records\":[");
    for (uint32_t n = 0; n < most && (rc = sz_audit_scan_next(&scan, scan_bytes, &line)) == 1; n++) {
        if (n > 0)
            sz_buf_add(out, ",", 1);
        sz_buf_adds(out, line);
    }
    if (rc >= 0)
        add_end(out, &scan, rc == 0);
    rc = explain(&scan, rc, why);
    sz_audit_scan_fini(&scan);
    return rc < 0 ? rc : 0;
}

void sz_audit_export_init(struct sz_audit_export *x, struct sz_audit_view *view, struct sz_audit_query *query,
                          uint64_t scan_bytes)
{
    *x = (struct sz_audit_export){.view = *view, .query = query, .left = query->limit};
    *view = (struct sz_audit_view){0};
    x->scan_bytes = query->limit != 0 ? scan_bytes : UINT64_MAX;
    sz_audit_scan_init(&x->scan, &x->view, query);
}

void sz_audit_export_fini(struct sz_audit_export *x)
{
    sz_audit_scan_fini(&x->scan);
    sz_audit_view_release(&x->view);
}

int sz_audit_export_next(struct sz_audit_export *x, size_t size, uint64_t work, struct sz_buf *out, struct sz_text *why)
{
    uint64_t until = x->scan.scanned + work;
    struct sz_slice line;
    int rc = 1;
    if (!x->begun && x->query->csv)
        sz_audit_csv_head(out);
    x->begun = true;
    while (out->n < size) {
        rc = sz_audit_scan_next(&x->scan, until < x->scan_bytes ? until : x->scan_bytes, &line);
        if (rc != 1)
            break;
        if (x->query->csv)
            sz_audit_csv_row(out, line);
        else
            sz_buf_adds(out, line), sz_buf_add(out, "\n", 1);
        if (x->left > 0 && --x->left == 0)
            return 0;
    }
    if (rc == SZ_AUDIT_SPENT)
        rc = until < x->scan_bytes; /* this piece is over, or all that a page may read */
    return explain(&x->scan, rc, why);
}
