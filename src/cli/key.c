/*
 * subzero key new: fresh secrets.  By default 32 random bytes in base64, as key_file options want them; with --jwk a
 * private signing key.  Printed and nowhere else: redirect it into a file that only the gateway reads.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

static void usage(FILE *out)
{
    fputs("usage: subzero key new [--jwk ALG]\n\n"
          "Prints a new secret on standard output: 32 random bytes in base64, or a private JWK.\n\n"
          "  --jwk ALG   a signing key for this algorithm: ES256, EdDSA, RS256, PS256, HS256 ...\n\n"
          "  (umask 077; subzero key new > /run/secrets/fleet)\n",
          out);
}

static int print_bytes(void)
{
    uint8_t bytes[32];
    char text[48];
    sz_random(bytes, sizeof(bytes));
    size_t n = sz_b64_encode(bytes, sizeof(bytes), text);
    printf("%.*s\n", (int)n, text);
    sz_wipe(bytes, sizeof(bytes));
    sz_wipe(text, sizeof(text));
    return fflush(stdout) == 0 ? SZ_EXIT_OK : SZ_EXIT_NO;
}

static int print_jwk(const char *name)
{
    enum sz_alg alg = sz_alg_from(sz_cstr(name));
    struct sz_buf jwk = {0};
    if (alg == SZ_ALG_COUNT) {
        fprintf(stderr, "subzero key new: --jwk %s: not one of HS, RS, PS, ES with 256, 384, 512, or EdDSA\n", name);
        return SZ_EXIT_USAGE;
    }
    int rc = sz_key_generate(alg, &jwk);
    if (rc == 0)
        printf("%.*s\n", (int)jwk.n, jwk.p);
    else
        fprintf(stderr, "subzero key new: %s\n", strerror(-rc));
    if (jwk.p != NULL)
        sz_wipe(jwk.p, jwk.n);
    sz_buf_fini(&jwk);
    return rc == 0 && fflush(stdout) == 0 ? SZ_EXIT_OK : SZ_EXIT_NO;
}

int sz_cmd_key(int argc, char **argv)
{
    static const struct option options[] = {
        {"jwk", required_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *jwk = NULL;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c != 'j') {
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? SZ_EXIT_OK : SZ_EXIT_USAGE;
        }
        jwk = optarg;
    }
    if (optind + 1 != argc || strcmp(argv[optind], "new") != 0) {
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
    return jwk != NULL ? print_jwk(jwk) : print_bytes();
}
