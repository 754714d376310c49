/*
 * subzero check: reads a configuration as `serve` would and prints every mistake, one a line, so
 * that editors and CI can jump to it.  Nothing is bound and nothing is asked over the network.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/mistakes.h"
#include "edge/proxy.h"
#include "edge/tls.h"
#include "pipeline/snapshot.h"

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

/* What the start makes of the files that the configuration names: keys, certificates, models.  Takes conf over. */
static bool files_are_good(struct sz_conf *conf)
{
    struct sz_mistakes m;
    sz_mistakes_init(&m);
    bool tls = sz_tls_check(conf, &m);
    struct sz_upstream_tls *upstreams = sz_upstream_tls_new(conf, &m);
    struct sz_snapshot *snapshot = sz_snapshot_new(conf, NULL, &m);
    bool good = tls && upstreams != NULL && snapshot != NULL;
    if (upstreams != NULL)
        sz_upstream_tls_unref(upstreams);
    if (snapshot != NULL)
        sz_snapshot_unref(snapshot);
    sz_cli_print_mistakes(&m, stderr);
    sz_mistakes_fini(&m);
    return good;
}

/* How near the arithmetic of each rate limit comes to where Redis's is no longer exact. */
static void say_products(const struct sz_conf *conf, struct sz_buf *out)
{
    for (size_t i = 0; i < conf->rate_limits_n; i++) {
        const struct sz_conf_rate_limit *limit = &conf->rate_limits[i];
        sz_buf_printf(out, "rate limit %.*s: largest product %" PRIu64 ", below 2^52 = %" PRIu64 "\n",
                      SZ_FMT(limit->name),
                      limit->rule.largest > limit->emergency.largest ? limit->rule.largest : limit->emergency.largest,
                      SZ_LIMIT_PRODUCT_MAX);
    }
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
    if (conf == NULL)
        return SZ_EXIT_NO;
    size_t routes = conf->routes_n, issuers = conf->issuers_n, upstreams = conf->upstreams_n;
    struct sz_buf products = {0};
    say_products(conf, &products);
    bool good = files_are_good(conf);
    if (good && !quiet)
        printf("%.*s", SZ_FMT(sz_buf_slice(&products)));
    sz_buf_fini(&products);
    if (good && !quiet)
        printf("%s: %zu routes, %zu issuers, %zu upstreams: good\n", path, routes, issuers, upstreams);
    return good ? SZ_EXIT_OK : SZ_EXIT_NO;
}
