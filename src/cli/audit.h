/* subzero audit: what its subcommands share. */
#ifndef SZ_CLI_AUDIT_H
#define SZ_CLI_AUDIT_H

#include "subzero/audit_read.h"

enum { SZ_AUDIT_PARAMS = 24 };
struct sz_audit_args {
    struct sz_audit_param params[SZ_AUDIT_PARAMS];
    size_t n;
    const char *path, *key, *anchor;
    const char *to, *cursor, *token, *ca; /* send */
    bool follow;
};

/* Each with its arguments read; an exit code. */
int sz_audit_query_command(const struct sz_audit_args *args);
int sz_audit_export_command(const struct sz_audit_args *args);
int sz_audit_tail_command(const struct sz_audit_args *args);
int sz_audit_verify_command(const struct sz_audit_args *args);
int sz_audit_send_command(const struct sz_audit_args *args);
int sz_audit_stats_command(const struct sz_audit_args *args);

/* Says why on standard error; the exit code that goes with it. */
int sz_audit_fail(const char *command, int rc, const char *why);
int sz_audit_put_stdout(void *arg, struct sz_slice bytes);

#endif
