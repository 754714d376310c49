/* subzero audit verify and stats. */
#include <errno.h>
#include <stdio.h>

#include "cli/audit.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "subzero/audit.h"
#include "subzero/crypto.h"

static int read_key(const char *path, uint8_t key[32], struct sz_text *why)
{
    struct sz_buf text = {0};
    int rc = sz_cli_read(path, 16384, &text);
    if (rc != 0)
        sz_text_set(why, "cannot read %s: %s", path, strerror(-rc));
    else
        rc = sz_audit_key_public(sz_buf_slice(&text), key, why);
    if (text.p != NULL)
        sz_wipe(text.p, text.n);
    sz_buf_fini(&text);
    return rc;
}

static int say(const struct sz_audit_verdict *v)
{
    if (!v->good) {
        fprintf(stderr, "subzero audit verify: %s\n", v->what.s);
        return SZ_EXIT_NO;
    }
    printf("%llu records in %llu segments, %llu to %llu: unaltered; %llu checkpoints, %llu of them signed\n",
           (unsigned long long)v->records, (unsigned long long)v->segments, (unsigned long long)v->first,
           (unsigned long long)v->last, (unsigned long long)v->checkpoints, (unsigned long long)v->signed_checkpoints);
    return SZ_EXIT_OK;
}

int sz_audit_verify_command(const struct sz_audit_args *args)
{
    struct sz_audit_verdict verdict = {.good = false};
    uint8_t key[32];
    int rc = args->key != NULL ? read_key(args->key, key, &verdict.what) : 0;
    if (rc == 0)
        rc = sz_audit_verify(args->path, args->key != NULL ? key : NULL, args->anchor, &verdict);
    return rc == 0 ? say(&verdict) : sz_audit_fail("verify", rc, verdict.what.s);
}

int sz_audit_stats_command(const struct sz_audit_args *args)
{
    struct sz_buf out = {0};
    struct sz_text why = {""};
    int rc = sz_audit_dir_stats(args->path, &out, &why);
    if (rc == 0)
        rc = sz_audit_put_stdout(NULL, sz_buf_slice(&out));
    sz_buf_fini(&out);
    return rc == 0 && fflush(stdout) == 0 ? SZ_EXIT_OK : sz_audit_fail("stats", rc, why.s);
}
