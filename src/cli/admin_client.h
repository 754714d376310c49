/* One question to the admin listener of a running gateway. */
#ifndef SZ_CLI_ADMIN_CLIENT_H
#define SZ_CLI_ADMIN_CLIENT_H

#include "subzero/addr.h"

#define SZ_CLI_ADMIN "127.0.0.1:9901"

struct sz_cli_admin {
    struct sz_addr ip;
    uint16_t port;
    struct sz_slice token; /* of admin.token_file; SZ_NONE: none */
};

/* "127.0.0.1:9901" or "[::1]:9901"; false: neither. */
bool sz_cli_admin_parse(const char *s, struct sz_cli_admin *out);
/* The status, 0: nobody answered.  The body is appended to `answer` (at most 64 KiB), which may be NULL.  json SZ_NONE:
 * no body. */
int sz_cli_admin_ask(const struct sz_cli_admin *admin, const char *method, const char *path, struct sz_slice json,
                     struct sz_buf *answer);

#endif
