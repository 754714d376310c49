/*
 * The fake provider as a program, for demonstrations and by hand.
 *
 *   fake_provider [--address A] [--port N] [--url URL] [--tls] [--h2] [--issuer URL] [--opaque] [--quiet]
 *
 * Prints where it listens and runs until it is interrupted.  provider.h lists its endpoints.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/process.h"
#include "fake/provider.h"

static int usage(const char *wrong)
{
    fprintf(
        stderr,
        "fake_provider: %s\nusage: fake_provider [--address A] [--port N] [--url URL] [--tls] [--h2] [--issuer URL] "
        "[--opaque] [--quiet]\n",
        wrong);
    return 2;
}

static void introduce(struct provider *p, const struct provider_options *options)
{
    const char *url = provider_url(p), *curl = options->tls ? "curl -sk" : "curl -s";
    printf("issuer   %s\nclient   %s / %s\n", options->issuer != NULL ? options->issuer : url, PROVIDER_CLIENT,
           PROVIDER_SECRET);
    if (options->tls)
        printf("ca_file  %s\n", provider_ca_file(p));
    printf("\n  %s %s/control/calls\n", curl, url);
    printf("  %s %s/control/token -d '{\"format\": \"opaque\", \"sub\": \"alice\", \"ttl\": 600}'\n", curl, url);
    printf("  %s %s/control/script -d '{\"endpoint\": \"jwks\", \"fault\": \"status\", \"status\": 500}'\n", curl, url);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct provider_options options = {0};
    bool quiet = false;
    sigset_t set;
    int sig;
    for (int i = 1; i < argc; i++) {
        uint64_t port = 0;
        if (strcmp(argv[i], "--port") == 0 && i + 1 < argc && sz_parse_u64(sz_cstr(argv[i + 1]), 65535, &port) == 0)
            options.port = (uint16_t)port, i++;
        else if (strcmp(argv[i], "--address") == 0 && i + 1 < argc)
            options.address = argv[++i];
        else if (strcmp(argv[i], "--url") == 0 && i + 1 < argc)
            options.url = argv[++i];
        else if (strcmp(argv[i], "--issuer") == 0 && i + 1 < argc)
            options.issuer = argv[++i];
        else if (strcmp(argv[i], "--tls") == 0)
            options.tls = true;
        else if (strcmp(argv[i], "--h2") == 0)
            options.tls = options.h2 = true;
        else if (strcmp(argv[i], "--opaque") == 0)
            options.opaque = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            quiet = true;
        else
            return usage(argv[i]);
    }
    /* Before the threads, which inherit it: the signals are for this one. */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct provider *p = provider_start(&options);
    if (!quiet)
        introduce(p, &options);
    sigwait(&set, &sig);
    provider_stop(&p);
    scratch_remove();
    return 0;
}
