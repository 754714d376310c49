/* Reading a directory: see subzero/audit_read.h. */
#include <errno.h>
#include <stdlib.h>

#include "obs/audit/event.h"
#include "obs/audit/page.h"
#include "subzero/audit_read.h"

enum { PIECE = 64 * 1024 };

static int parse(struct sz_audit_query *query, const struct sz_audit_param *params, size_t n, struct sz_text *why)
{
    int rc = 0;
    sz_audit_query_init(query);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = sz_audit_query_set(query, sz_cstr(params[i].name), sz_cstr(params[i].value), why);
    if (rc == 0)
        rc = sz_audit_query_finish(query, why);
    if (rc != 0)
        sz_audit_query_fini(query);
    return rc;
}

static bool is_filtered(const struct sz_audit_query *query)
{
    for (unsigned f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (query->value[f].p != NULL)
            return true;
    }
    return query->timed;
}

static int open_view(struct sz_audit_view *view, const char *path, const struct sz_audit_query *query,
                     struct sz_text *why)
{
    int rc = sz_audit_view_open(view, path, why);
    if (rc == 0 && is_filtered(query))
        sz_audit_view_index(view, path, false);
    return rc;
}

static int pump(struct sz_audit_export *x, sz_audit_put_fn *put, void *arg, struct sz_text *why)
{
    struct sz_buf out = {0};
    int rc;
    do {
        out.n = 0;
        rc = sz_audit_export_next(x, PIECE, UINT64_MAX / 2, &out, why);
        int stop = rc >= 0 && out.n > 0 ? put(arg, sz_buf_slice(&out)) : 0;
        rc = stop != 0 ? stop : rc;
    } while (rc == 1);
    sz_buf_fini(&out);
    return rc;
}

int sz_audit_dir_export(const char *path, const struct sz_audit_param *params, size_t n, sz_audit_put_fn *put,
                        void *arg, char cursor[25], struct sz_text *why)
{
    struct sz_audit_query query;
    struct sz_audit_view view;
    struct sz_audit_export x;
    int rc = parse(&query, params, n, why);
    if (rc != 0)
        return rc;
    rc = open_view(&view, path, &query, why);
    if (rc == 0) {
        sz_audit_export_init(&x, &view, &query, UINT64_MAX);
        rc = pump(&x, put, arg, why);
        if (rc == 0 && cursor != NULL) {
            sz_audit_query_cursor(&query, sz_audit_scan_position(&x.scan), cursor);
            cursor[SZ_AUDIT_CURSOR] = '\0';
        }
        sz_audit_export_fini(&x);
    }
    sz_audit_query_fini(&query);
    return rc;
}

int sz_audit_dir_page(const char *path, const struct sz_audit_param *params, size_t n, struct sz_buf *out,
                      struct sz_text *why)
{
    struct sz_audit_query query;
    struct sz_audit_view view;
    int rc = parse(&query, params, n, why);
    if (rc != 0)
        return rc;
    rc = open_view(&view, path, &query, why);
    if (rc == 0) {
        rc = sz_audit_page(&view, &query, UINT64_MAX, out, why);
        sz_audit_view_release(&view);
    }
    sz_audit_query_fini(&query);
    return rc;
}

int sz_audit_dir_last(const char *path, uint64_t *seq, struct sz_text *why)
{
    struct sz_audit_view view;
    *seq = 0;
    int rc = sz_audit_view_open(&view, path, why);
    if (rc != 0)
        return rc;
    char *buffer = sz_xmalloc(SZ_AUDIT_LINES_BUFFER);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        size_t last = view.list->n[s] - 1;
        struct sz_audit_line line;
        struct sz_slice time;
        uint64_t found;
        if (view.list->n[s] == 0)
            continue;
        struct sz_audit_lines lines = {.fd = view.list->v[s][last]->fd, .end = view.sizes[s][last], .buffer = buffer};
        if (sz_audit_lines_previous(&lines, &line) == 1 && sz_audit_line_head(line.text, &found, &time) && found > *seq)
            *seq = found;
    }
    *seq = *seq < view.committed ? *seq : view.committed;
    free(buffer);
    sz_audit_view_release(&view);
    return 0;
}

int sz_audit_cursor_at(const struct sz_audit_param *params, size_t n, uint64_t seq, char cursor[25],
                       struct sz_text *why)
{
    struct sz_audit_query query;
    int rc = parse(&query, params, n, why);
    if (rc != 0)
        return rc;
    sz_audit_query_cursor(&query, seq, cursor);
    cursor[SZ_AUDIT_CURSOR] = '\0';
    sz_audit_query_fini(&query);
    return 0;
}

/* ---- stats --------------------------------------------------------------------------------------------------------
 */

struct tally {
    uint64_t records, bytes, allowed, denied, lost, counted, kinds[SZ_AUDIT_KINDS];
    char first[SZ_AUDIT_TIME], last[SZ_AUDIT_TIME];
};

static void count_line(struct tally *t, struct sz_slice line)
{
    struct sz_slice kind = SZ_NONE, decision = SZ_NONE, time;
    uint64_t seq;
    t->bytes += line.n + 1;
    (void)sz_audit_line_text(line, SZ_S("kind"), &kind);
    for (enum sz_audit_kind k = 0; k < SZ_AUDIT_KINDS; k++)
        t->kinds[k] += sz_eq(kind, sz_cstr(sz_audit_kind_name(k)));
    if (sz_audit_line_text(line, SZ_S("decision"), &decision)) {
        t->allowed += sz_eq(decision, SZ_S("allow"));
        t->denied += sz_eq(decision, SZ_S("deny"));
    }
    t->lost += sz_audit_line_number(line, SZ_S("lost"));
    t->counted += sz_audit_line_number(line, SZ_S("count"));
    if (!sz_audit_line_head(line, &seq, &time))
        return;
    if (t->records++ == 0)
        memcpy(t->first, time.p, sizeof(t->first));
    memcpy(t->last, time.p, sizeof(t->last));
}

static void add_tally(struct sz_buf *out, const struct tally *t, const struct sz_audit_view *view)
{
    sz_buf_printf(out,
                  "{\"records\":%llu,\"bytes\":%llu,\"segments\":{\"audit\":%zu,\"denied\":%zu},\"allowed\":%llu,"
                  "\"denied\":%llu,\"counted_denials\":%llu,\"lost\":%llu",
                  (unsigned long long)t->records, (unsigned long long)t->bytes, view->list->n[SZ_AUDIT_MAIN],
                  view->list->n[SZ_AUDIT_DENIED], (unsigned long long)t->allowed, (unsigned long long)t->denied,
                  (unsigned long long)t->counted, (unsigned long long)t->lost);
    if (t->records > 0)
        sz_buf_printf(out, ",\"first\":\"%.*s\",\"last\":\"%.*s\"", SZ_AUDIT_TIME, t->first, SZ_AUDIT_TIME, t->last);
    sz_buf_printf(out, ",\"kinds\":{");
    const char *comma = "";
    for (enum sz_audit_kind k = 0; k < SZ_AUDIT_KINDS; k++) {
        if (t->kinds[k] == 0)
            continue;
        sz_buf_printf(out, "%s\"%s\":%llu", comma, sz_audit_kind_name(k), (unsigned long long)t->kinds[k]);
        comma = ",";
    }
    sz_buf_printf(out, "}}\n");
}

int sz_audit_dir_stats(const char *path, struct sz_buf *out, struct sz_text *why)
{
    struct sz_audit_query query;
    struct sz_audit_view view;
    struct sz_audit_scan scan;
    struct sz_slice line;
    struct tally tally = {0};
    int rc = sz_audit_view_open(&view, path, why);
    if (rc != 0)
        return rc;
    sz_audit_query_init(&query);
    query.ascending = true;
    sz_audit_scan_init(&scan, &view, &query);
    while ((rc = sz_audit_scan_next(&scan, UINT64_MAX, &line)) == 1)
        count_line(&tally, line);
    if (rc == 0)
        add_tally(out, &tally, &view);
    else if (rc == -EBADMSG)
        *why = scan.damage;
    else
        sz_text_set(why, "cannot read %s: %s", path, strerror(-rc));
    sz_audit_scan_fini(&scan);
    sz_audit_view_release(&view);
    sz_audit_query_fini(&query);
    return rc;
}
