/*
 * subzero audit send: records to a collector, as NDJSON in batches of at most 1 MiB.  The cursor is saved after the
 * collector has acknowledged a batch, so every record arrives at least once.  One batch is in memory at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/audit.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "subzero/crypto.h"
#include "subzero/http.h"

enum { POLL_MS = 1000, CURSOR = 24 };
#define BATCH "255" /* records of at most 4 KiB each: below 1 MiB */

struct send {
    const struct sz_audit_args *args;
    struct sz_loop *loop;
    struct sz_http_shared *shared;
    struct sz_http *http;
    struct sz_http_trust *trust;
    struct sz_http_call call;
    struct sz_buf batch, authorization;
    int status; /* of the collector's answer; 0: it could not be asked */
    struct sz_text why;
};

/* ---- the cursor -------------------------------------------------------------------------------------------------- */

/* False: there is none yet. */
static bool load_cursor(const char *path, char cursor[25])
{
    struct sz_buf text = {0};
    int rc = sz_cli_read(path, 64, &text);
    bool good = rc == 0 && text.n >= CURSOR;
    if (good)
        memcpy(cursor, text.p, CURSOR);
    cursor[CURSOR] = '\0';
    sz_buf_fini(&text);
    return good;
}

static int save_cursor(const char *path, const char cursor[25])
{
    char temporary[4200];
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    bool good = write(fd, cursor, CURSOR) == CURSOR && write(fd, "\n", 1) == 1 && fsync(fd) == 0;
    int rc = good ? 0 : errno != 0 ? -errno : -EIO;
    close(fd);
    if (rc == 0 && rename(temporary, path) != 0)
        rc = -errno;
    return rc;
}

/* ---- a batch --------------------------------------------------------------------------------------------------------
 */

static int keep(void *arg, struct sz_slice bytes)
{
    sz_buf_adds(arg, bytes);
    return 0;
}

static void on_answer(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    struct send *s = SZ_CONTAINER(call, struct send, call);
    s->status = answer->result == SZ_HTTP_ANSWERED ? answer->status : 0;
    if (s->status == 0)
        s->why = answer->why;
    else
        sz_text_set(&s->why, "the collector answers %d", s->status);
    sz_loop_stop(s->loop);
}

static int post(struct send *s)
{
    struct sz_http_field fields[] = {{SZ_S("content-type"), SZ_S("application/x-ndjson")},
                                     {SZ_S("authorization"), sz_buf_slice(&s->authorization)}};
    struct sz_http_request request = {
        .method = SZ_HTTP_POST,
        .url = sz_cstr(s->args->to),
        .trust = s->trust,
        .fields = fields,
        .fields_n = s->authorization.n > 0 ? 2 : 1,
        .body = sz_buf_slice(&s->batch),
        .credentials = s->authorization.n > 0,
        .idempotent = true, /* at least once is what is promised */
        .retries = 3,
        .deadline = sz_after(sz_loop_tick(s->loop), SZ_SEC(60)),
    };
    s->call = (struct sz_http_call){.on_done = on_answer};
    int rc = sz_http_start(s->http, &request, &s->call);
    if (rc != 0) {
        sz_text_set(&s->why, "cannot ask: %s", rc < 0 ? strerror(-rc) : "too many calls");
        return -EIO;
    }
    sz_loop_run(s->loop);
    return s->status >= 200 && s->status < 300 ? 0 : -EIO;
}

/* Reads and sends one batch; 1: there may be more; 0: nothing was there. */
static int send_batch(struct send *s, char cursor[25], bool first)
{
    struct sz_audit_param params[SZ_AUDIT_PARAMS + 3];
    char from[25];
    size_t n = s->args->n;
    memcpy(from, cursor, sizeof(from));
    memcpy(params, s->args->params, n * sizeof(*params));
    params[n++] = (struct sz_audit_param){"order", "asc"};
    params[n++] = (struct sz_audit_param){"limit", BATCH};
    if (!first)
        params[n++] = (struct sz_audit_param){"cursor", from};
    s->batch.n = 0;
    int rc = sz_audit_dir_export(s->args->path, params, n, keep, &s->batch, cursor, &s->why);
    if (rc != 0 || s->batch.n == 0)
        return rc;
    rc = post(s);
    if (rc == 0) {
        rc = save_cursor(s->args->cursor, cursor);
        if (rc != 0)
            sz_text_set(&s->why, "cannot save the cursor in %s: %s", s->args->cursor, strerror(-rc));
    }
    return rc != 0 ? rc : 1;
}

static int send_all(struct send *s)
{
    char cursor[25];
    bool first = !load_cursor(s->args->cursor, cursor);
    for (;;) {
        int rc = send_batch(s, cursor, first);
        if (rc < 0 || (rc == 0 && !s->args->follow))
            return rc;
        first = first && rc == 0;
        if (rc == 0)
            poll(NULL, 0, POLL_MS);
    }
}

/* ---- the command
 * -------------------------------------------------------------------------------------------------------- */

static int read_token(struct send *s)
{
    struct sz_buf token = {0};
    if (s->args->token == NULL)
        return 0;
    int rc = sz_cli_read(s->args->token, 8192, &token);
    if (rc != 0)
        sz_text_set(&s->why, "cannot read %s: %s", s->args->token, strerror(-rc));
    while (token.n > 0 && (token.p[token.n - 1] == '\n' || token.p[token.n - 1] == '\r'))
        token.n--;
    sz_buf_printf(&s->authorization, "Bearer %.*s", SZ_FMT(sz_buf_slice(&token)));
    if (token.p != NULL)
        sz_wipe(token.p, token.n);
    sz_buf_fini(&token);
    return rc;
}

static int prepare(struct send *s)
{
    static const struct sz_conf_http conf = {
        .connections = 1, .per_host = 1, .dns_ttl = {60000000}, .idle = {60000000}};
    int rc = sz_http_url_check(sz_cstr(s->args->to), false, &s->why);
    if (rc == 0)
        rc = read_token(s);
    if (rc != 0)
        return rc;
    s->trust = sz_http_trust_new(s->args->ca, &s->why);
    s->loop = s->trust == NULL ? NULL : sz_loop_new(0);
    s->shared = s->loop == NULL ? NULL : sz_http_shared_new(&conf, 1);
    s->http = s->shared == NULL ? NULL : sz_http_new(s->shared, s->loop);
    return s->http == NULL ? -ENOMEM : 0;
}

static void finish(struct send *s)
{
    if (s->http != NULL)
        sz_http_free(&s->http);
    if (s->shared != NULL)
        sz_http_shared_free(&s->shared);
    if (s->trust != NULL)
        sz_http_trust_unref(&s->trust);
    if (s->loop != NULL)
        sz_loop_free(&s->loop);
    if (s->authorization.p != NULL)
        sz_wipe(s->authorization.p, s->authorization.n);
    sz_buf_fini(&s->authorization);
    sz_buf_fini(&s->batch);
}

int sz_audit_send_command(const struct sz_audit_args *args)
{
    struct send s = {.args = args};
    if (args->to == NULL || args->cursor == NULL) {
        fputs("subzero audit send: --to URL and --cursor FILE are needed\n", stderr);
        return SZ_EXIT_USAGE;
    }
    int rc = prepare(&s);
    if (rc == 0)
        rc = send_all(&s);
    finish(&s);
    return rc == 0 ? SZ_EXIT_OK : sz_audit_fail("send", rc, s.why.s);
}
