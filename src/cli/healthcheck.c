/*
 * healthcheck: asks the admin listener whether the gateway is ready.  For containers, whose images have no curl.
 * Exit 0 ready, 1 not ready, 3 nobody answered.
 */
#include <stdio.h>

#include "cli/admin_client.h"
#include "cli/cli.h"

static const char usage_text[] = "usage: subzero healthcheck [--admin ADDRESS:PORT]\n"
                                 "\n"
                                 "Asks /readyz of the admin listener (127.0.0.1:9901).  Exit 0: ready, 1: not ready,\n"
                                 "3: nobody answered.\n";

int sz_cmd_healthcheck(int argc, char **argv)
{
    const char *address = SZ_CLI_ADMIN;
    struct sz_cli_admin admin = {0};

    if (argc == 2 && sz_cli_is_help(argv[1])) {
        fputs(usage_text, stdout);
        return SZ_EXIT_OK;
    }
    if (argc == 3 && strcmp(argv[1], "--admin") == 0)
        address = argv[2];
    if ((argc != 1 && argc != 3) || (argc == 3 && address != argv[2]) || !sz_cli_admin_parse(address, &admin)) {
        fputs(usage_text, stderr);
        return SZ_EXIT_USAGE;
    }
    int status = sz_cli_admin_ask(&admin, "GET", "/readyz", SZ_NONE, NULL);
    if (status == 200)
        return SZ_EXIT_OK;
    fprintf(stderr, "subzero: %s: %s\n", address, status == 0 ? "nobody answered" : "not ready");
    return status == 0 ? SZ_EXIT_UNAVAILABLE : SZ_EXIT_NO;
}
