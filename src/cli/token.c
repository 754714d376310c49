/* subzero token: tokens for the demo and for tests, and a look into any token.  One file per verb. */
#include "cli/token.h"

#include <stdio.h>

#include "cli/cli.h"

static void usage(FILE *out)
{
    fputs("usage: subzero token mint    [--demo | --key FILE --iss ISSUER] [OPTION...]\n"
          "       subzero token inspect [-c FILE] [TOKEN]\n\n"
          "  mint      sign a token and print it, alone, on standard output\n"
          "  inspect   show what is in a token; with -c, verify it as a gateway of that configuration would\n\n"
          "'subzero token VERB --help' explains one of them.\n",
          out);
}

int sz_cmd_token(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "mint") == 0)
        return sz_token_mint(argc - 1, argv + 1);
    if (argc >= 2 && strcmp(argv[1], "inspect") == 0)
        return sz_token_inspect(argc - 1, argv + 1);
    bool help = argc >= 2 && sz_cli_is_help(argv[1]);
    usage(help ? stdout : stderr);
    return help ? SZ_EXIT_OK : SZ_EXIT_USAGE;
}
