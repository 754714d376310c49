/* subzero audit query, export, tail: records on standard output. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/audit.h"
#include "cli/cli.h"

enum { POLL_MS = 250 };

int sz_audit_query_command(const struct sz_audit_args *args)
{
    struct sz_buf out = {0};
    struct sz_text why = {""};
    int rc = sz_audit_dir_page(args->path, args->params, args->n, &out, &why);
    if (rc == 0)
        rc = sz_audit_put_stdout(NULL, sz_buf_slice(&out));
    sz_buf_fini(&out);
    return rc == 0 && fflush(stdout) == 0 ? SZ_EXIT_OK : sz_audit_fail("query", rc, why.s);
}

int sz_audit_export_command(const struct sz_audit_args *args)
{
    struct sz_text why = {"cannot write"};
    int rc = sz_audit_dir_export(args->path, args->params, args->n, sz_audit_put_stdout, NULL, NULL, &why);
    return rc == 0 && fflush(stdout) == 0 ? SZ_EXIT_OK : sz_audit_fail("export", rc, why.s);
}

/* ---- tail ----------------------------------------------------------------------------------------------------------
 */

static int keep(void *arg, struct sz_slice bytes)
{
    sz_buf_adds(arg, bytes);
    return 0;
}

/* The newest come first: written the other way round. */
static void print_backwards(struct sz_slice lines)
{
    while (lines.n > 0) {
        const char *newline = lines.n < 2 ? NULL : memrchr(lines.p, '\n', lines.n - 1);
        size_t from = newline == NULL ? 0 : (size_t)(newline - lines.p) + 1;
        fwrite(lines.p + from, 1, lines.n - from, stdout);
        lines.n = from;
    }
}

static size_t filters_of(const struct sz_audit_args *args, struct sz_audit_param out[SZ_AUDIT_PARAMS + 3],
                         const char **limit)
{
    size_t n = 0;
    *limit = "10";
    for (size_t i = 0; i < args->n; i++) {
        if (strcmp(args->params[i].name, "limit") == 0)
            *limit = args->params[i].value;
        else
            out[n++] = args->params[i];
    }
    return n;
}

static int follow(const char *path, struct sz_audit_param *params, size_t n, char cursor[25], struct sz_text *why)
{
    for (;;) {
        char from[25];
        memcpy(from, cursor, sizeof(from));
        params[n] = (struct sz_audit_param){"order", "asc"};
        params[n + 1] = (struct sz_audit_param){"cursor", from};
        int rc = sz_audit_dir_export(path, params, n + 2, sz_audit_put_stdout, NULL, cursor, why);
        if (rc != 0 || fflush(stdout) != 0)
            return rc;
        poll(NULL, 0, POLL_MS);
    }
}

/* The last ones up to number `seq`. */
static int print_last(const char *path, struct sz_audit_param *params, size_t n, uint64_t seq, const char *limit,
                      struct sz_text *why)
{
    struct sz_buf lines = {0};
    char cursor[25];
    int rc = sz_audit_cursor_at(params, n, seq, cursor, why);
    params[n] = (struct sz_audit_param){"limit", limit};
    params[n + 1] = (struct sz_audit_param){"cursor", cursor};
    if (rc == 0)
        rc = sz_audit_dir_export(path, params, n + 2, keep, &lines, NULL, why);
    if (rc == 0)
        print_backwards(sz_buf_slice(&lines));
    sz_buf_fini(&lines);
    return rc == 0 && fflush(stdout) != 0 ? -EPIPE : rc;
}

int sz_audit_tail_command(const struct sz_audit_args *args)
{
    struct sz_audit_param params[SZ_AUDIT_PARAMS + 3];
    struct sz_text why = {""};
    const char *limit;
    char cursor[25];
    uint64_t last;
    size_t n = filters_of(args, params, &limit);
    int rc = sz_audit_dir_last(args->path, &last, &why);
    if (rc == 0)
        rc = print_last(args->path, params, n, last, limit, &why);
    params[n] = (struct sz_audit_param){"order", "asc"};
    if (rc == 0 && args->follow)
        rc = sz_audit_cursor_at(params, n + 1, last + 1, cursor, &why);
    if (rc == 0 && args->follow)
        rc = follow(args->path, params, n, cursor, &why);
    return rc == 0 ? SZ_EXIT_OK : sz_audit_fail("tail", rc, why.s);
}
