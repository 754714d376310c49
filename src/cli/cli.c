/*
 * Finds the command in the table and calls it.  --help lists the table, so a command that
 * exists is a command that is documented.
 */
#include "cli/cli.h"

#include <stdio.h>

#include "subzero/base.h"

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
#define SZ_COMMAND(name, id, help) {name, sz_cmd_##id, help},
#include "cli/commands.h"
};

static void usage(FILE *out)
{
    fputs("usage: subzero COMMAND [OPTION...]\n\n", out);
    for (size_t i = 0; i < SZ_COUNT(commands); i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].help);
    fputs("\n'subzero COMMAND --help' explains one command.\n", out);
}

int sz_cmd_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("subzero %s\n", SZ_VERSION);
    return SZ_EXIT_OK;
}

int sz_cli_main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
    if (sz_cli_is_help(argv[1]) || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return SZ_EXIT_OK;
    }
    for (size_t i = 0; i < SZ_COUNT(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "subzero: unknown command '%s'; 'subzero --help' lists them\n", argv[1]);
    return SZ_EXIT_USAGE;
}
