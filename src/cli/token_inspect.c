/*
 * subzero token inspect: header and claims of a token.  Without a configuration nothing is verified, and the output
 * says so; with one, the token is judged exactly as the gateway would judge it now.
 */
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/mistakes.h"
#include "cli/token.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { INPUT_MAX = 64 * 1024 };

static void usage(FILE *out)
{
    fputs("usage: subzero token inspect [-c FILE] [TOKEN]\n\n"
          "Shows header and claims.  Without TOKEN (or with -) it is read from standard input, where no other user can "
          "see it.\n"
          "Exit code 0: it reads as a JWT and, with -c, is valid now; 1: it does not, or is refused; 3: could not "
          "tell.\n\n"
          "  -c, --config FILE   verify it as a gateway with this configuration would, and say why it is refused\n",
          out);
}

static void print_scopes(const struct sz_vocabulary *vocabulary, const struct sz_identity *id)
{
    printf("scopes:");
    for (unsigned bit = 0; bit < vocabulary->scopes.n; bit++) {
        if (sz_identity_has_scope(id, bit))
            printf(" %.*s", SZ_FMT(vocabulary->scopes.v[bit]));
    }
    printf(" (of those that the configuration knows)\n");
}

static void print_refusal(const struct sz_verified *verified)
{
    const struct sz_reason_row *row = sz_reason_row(verified->reason);
    printf("\nREFUSED: %s: %s", row->name, row->title);
    if (verified->detail.s[0] != '\0')
        printf(" (%s)", verified->detail.s);
    printf("\n");
}

static int judge(const struct sz_conf *conf, const struct sz_issuers *issuers, struct sz_slice token)
{
    struct sz_identity id;
    struct sz_verified verified;
    if (sz_jwt_verify(issuers, token, sz_wall_read(), &id, &verified) != 0) {
        fputs("subzero token inspect: out of memory\n", stderr);
        return SZ_EXIT_UNAVAILABLE;
    }
    if (verified.reason != SZ_REASON_allowed) {
        print_refusal(&verified);
        return verified.reason == SZ_REASON_identity_unavailable ? SZ_EXIT_UNAVAILABLE : SZ_EXIT_NO;
    }
    const struct sz_conf_issuer *issuer = &conf->issuers[sz_issuer_index(issuers, id.issuer)];
    printf("\nVERIFIED: issuer '%.*s'", SZ_FMT(issuer->name));
    printf("%s\n", (id.flags & SZ_ID_SENDER_BOUND) != 0 ? "; bound to a key that each request must prove" : "");
    print_scopes(&conf->vocabulary, &id);
    return SZ_EXIT_OK;
}

static int verify(const char *path, struct sz_slice token)
{
    struct sz_mistakes mistakes;
    struct sz_conf *conf = sz_cli_load(path);
    if (conf == NULL)
        return SZ_EXIT_NO;
    sz_mistakes_init(&mistakes);
    struct sz_issuers *issuers = sz_issuers_new(conf, &mistakes);
    sz_cli_print_mistakes(&mistakes, stderr);
    sz_mistakes_fini(&mistakes);
    int rc = issuers != NULL ? judge(conf, issuers, token) : SZ_EXIT_NO;
    sz_issuers_free(&issuers);
    sz_conf_free(&conf);
    return rc;
}

static int inspect(struct sz_slice token, const char *config)
{
    struct sz_buf text = {0};
    struct sz_text why;
    token = sz_trim(token);
    while (token.n != 0 && (token.p[token.n - 1] == '\n' || token.p[token.n - 1] == '\r'))
        token.n--;
    if (sz_ieq(sz_sub(token, 0, 7), SZ_S("Bearer ")))
        token = sz_trim(sz_from(token, 7));
    if (sz_jwt_describe(token, sz_wall_read(), &text, &why) != 0) {
        fprintf(stderr, "subzero token inspect: %s\n", why.s);
        sz_buf_fini(&text);
        return SZ_EXIT_NO;
    }
    (void)fwrite(text.p, 1, text.n, stdout);
    sz_buf_fini(&text);
    if (config != NULL)
        return verify(config, token);
    printf("\nNOT VERIFIED: anyone can write such a token; -c FILE checks it as a gateway would\n");
    return SZ_EXIT_OK;
}

int sz_token_inspect(int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    const char *config = NULL;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
        if (c != 'c') {
            usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? SZ_EXIT_OK : SZ_EXIT_USAGE;
        }
        config = optarg;
    }
    if (optind + 1 < argc) {
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
    if (optind < argc && strcmp(argv[optind], "-") != 0)
        return inspect(sz_cstr(argv[optind]), config);
    struct sz_buf input = {0};
    int rc = sz_cli_read("-", INPUT_MAX, &input);
    if (rc != 0)
        fprintf(stderr, "subzero token inspect: standard input: %s\n", strerror(-rc));
    int code = rc != 0 ? SZ_EXIT_NO : inspect(sz_buf_slice(&input), config);
    sz_wipe(input.p, input.n);
    sz_buf_fini(&input);
    return code;
}
