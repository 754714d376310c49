/* Dispatch, nothing else: every command lives in src/cli. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return sz_cli_main(argc, argv);
}
