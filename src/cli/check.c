/*
 * subzero check: reads a configuration as `serve` would and prints every mistake, one a line, so
 * that editors and CI can jump to it.  Nothing is bound and nothing is asked over the network.
 */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mistakes.h"
#include "subzero/conf.h"

static void usage(FILE *out)
{
    fputs("usage: subzero check -c FILE\n\n"
          "Reads a configuration and prints every mistake as file:line:column: message.\n"
          "Exit code 0: usable (there may be warnings), 1: it has mistakes, 2: usage.\n\n"
          "  -c, --config FILE   the configuration; - reads it from standard input\n"
          "  -q, --quiet         no word when all is well\n"
          "  -h, --help          this text\n",
          out);
}

int sz_cmd_check(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *path = NULL;
    bool quiet = false;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "c:qh", options, NULL)) != -1;) {
        if (c == 'h') {
            usage(stdout);
            return SZ_EXIT_OK;
        }
        if (c != 'c' && c != 'q') {
            usage(stderr);
            return SZ_EXIT_USAGE;
        }
        path = c == 'c' ? optarg : path;
        quiet = quiet || c == 'q';
    }
    if (path == NULL || optind != argc) {
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
    struct sz_conf *conf = sz_cli_load(path);
    bool good = conf != NULL;
    if (good && !quiet)
        printf("%s: %zu routes, %zu issuers, %zu upstreams: good\n", path, conf->routes_n, conf->issuers_n,
               conf->upstreams_n);
    sz_conf_free(&conf);
    return good ? SZ_EXIT_OK : SZ_EXIT_NO;
}
