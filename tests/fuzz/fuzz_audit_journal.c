/*
 * The journal's reader over any bytes: up and down, pages, CSV, side-file filters.  It ends, stays inside, and what it
 * tells are lines of the file whose chain holds.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "obs/audit/page.h"

static struct sz_audit_view make_view(const uint8_t *data, size_t size)
{
    struct sz_audit_view view = {.committed = UINT64_MAX};
    int fd = memfd_create("journal", MFD_CLOEXEC);
    SZ_ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    struct sz_audit_segment *segment = sz_audit_segment_new(fd, SZ_AUDIT_MAIN, 1);
    struct sz_audit_segment *v[1] = {segment};
    struct sz_audit_segment *const *const all[SZ_AUDIT_STREAMS] = {v, NULL};
    const size_t n[SZ_AUDIT_STREAMS] = {1, 0};
    view.list = sz_audit_list_new(all, n);
    sz_audit_segment_unref(segment);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++)
        view.sizes[s] = sz_xcalloc(2, sizeof(uint64_t));
    view.sizes[SZ_AUDIT_MAIN][0] = size;
    return view;
}

static void read_all(const struct sz_audit_view *view, bool up, uint64_t from, bool csv)
{
    struct sz_audit_query query;
    struct sz_audit_scan scan;
    struct sz_slice line;
    struct sz_buf out = {0};
    int rc;
    sz_audit_query_init(&query);
    query.ascending = up;
    query.has_cursor = from != 0;
    query.from = from;
    sz_audit_scan_init(&scan, view, &query);
    while ((rc = sz_audit_scan_next(&scan, UINT64_MAX, &line)) == 1) {
        SZ_ASSERT(line.n < SZ_AUDIT_LINE_MAX && (!up || sz_audit_line_whole(line)));
        if (csv)
            sz_audit_csv_row(&out, line);
    }
    SZ_ASSERT(rc == 0 || (rc == -EBADMSG && scan.damage.s[0] != '\0'));
    sz_audit_scan_fini(&scan);
    sz_audit_query_fini(&query);
    sz_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct sz_audit_view view = make_view(data + 1, size - 1);
    read_all(&view, true, 0, true);
    read_all(&view, false, 0, false);
    read_all(&view, true, 1 + data[0], false);
    read_all(&view, false, 1 + data[0], false);
    sz_audit_view_release(&view);
    struct sz_buf row = {0};
    sz_audit_csv_row(&row, sz_slice(data, size));
    sz_buf_fini(&row);
    return 0;
}
