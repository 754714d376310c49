/*
 * The commands.  Each is one function in a file of its own, called with argv[0] = its name.
 * Exit codes: 0 ok, 1 the answer is no or the input is bad, 2 usage, 3 could not ask.
 */
#ifndef SZ_CLI_H
#define SZ_CLI_H

#include <stdbool.h>
#include <string.h>

enum { SZ_EXIT_OK = 0, SZ_EXIT_NO = 1, SZ_EXIT_USAGE = 2, SZ_EXIT_UNAVAILABLE = 3 };

int sz_cli_main(int argc, char **argv);

static inline bool sz_cli_is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

#define SZ_COMMAND(name, id, help) int sz_cmd_##id(int argc, char **argv);
#include "cli/commands.h"

#endif
