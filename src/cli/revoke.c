/*
 * revoke: tells a running gateway, and through it all that share its Redis, what to refuse from now on.  A token comes
 * on standard input alone: an argument could be read by everybody on the machine.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin_client.h"
#include "cli/cli.h"
#include "cli/input.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

static const char usage_text[] =
    "usage: subzero revoke --token-stdin [options]\n"
    "       subzero revoke --jti|--sid|--subject|--client|--kid VALUE [--issuer ISSUER] [options]\n"
    "       subzero revoke --issuer ISSUER [options]\n"
    "\n"
    "Asks the admin listener to refuse it from now on, and waits until disk and Redis know.\n"
    "\n"
    "  --token-stdin            the token on standard input\n"
    "  --jti, --sid VALUE       tokens with this id; of this session\n"
    "  --subject, --client V    tokens of this subject or client, issued before --before\n"
    "  --kid VALUE              everything that this key of the issuer signed\n"
    "  --issuer ISSUER          whose, by its name in the configuration or its iss; alone: all of its tokens\n"
    "  --before TIME            RFC 3339 or unix seconds; now when not given\n"
    "  --admin ADDRESS:PORT     the admin listener (" SZ_CLI_ADMIN ")\n"
    "  --admin-token-file FILE  its bearer token\n"
    "\n"
    "Exit 0: done; 1: the gateway says no; 2: usage; 3: it could not be asked, or disk or Redis does not know yet.\n";

struct wish {
    const char *kind, *value, *issuer, *before, *address, *token_file;
    bool token, bad;
};

enum { OPT_TOKEN = 1, OPT_ISSUER, OPT_BEFORE, OPT_ADMIN, OPT_TOKEN_FILE, OPT_HELP, OPT_KIND };

static void set_kind(struct wish *w, const char *kind, const char *value)
{
    w->bad |= w->kind != NULL; /* one thing at a time */
    w->kind = kind;
    w->value = value;
}

/* False: usage, or help was asked for. */
static bool parse(int argc, char **argv, struct wish *w, bool *help)
{
    static const struct option options[] = {{"token-stdin", no_argument, NULL, OPT_TOKEN},
                                            {"issuer", required_argument, NULL, OPT_ISSUER},
                                            {"before", required_argument, NULL, OPT_BEFORE},
                                            {"admin", required_argument, NULL, OPT_ADMIN},
                                            {"admin-token-file", required_argument, NULL, OPT_TOKEN_FILE},
                                            {"help", no_argument, NULL, OPT_HELP},
                                            {"jti", required_argument, NULL, OPT_KIND},
                                            {"sid", required_argument, NULL, OPT_KIND},
                                            {"subject", required_argument, NULL, OPT_KIND},
                                            {"client", required_argument, NULL, OPT_KIND},
                                            {"kid", required_argument, NULL, OPT_KIND},
                                            {NULL, 0, NULL, 0}};
    int index = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, &index)) != -1;) {
        switch (c) {
        case OPT_TOKEN:
            set_kind(w, "token", "");
            w->token = true;
            break;
        case OPT_KIND:
            set_kind(w, options[index].name, optarg);
            break;
        case OPT_ISSUER:
            w->issuer = optarg;
            break;
        case OPT_BEFORE:
            w->before = optarg;
            break;
        case OPT_ADMIN:
            w->address = optarg;
            break;
        case OPT_TOKEN_FILE:
            w->token_file = optarg;
            break;
        default:
            *help = c == OPT_HELP || c == 'h';
            return false;
        }
    }
    if (w->kind == NULL && w->issuer != NULL)
        set_kind(w, "issuer", w->issuer);
    return !w->bad && w->kind != NULL && optind == argc;
}

static void add_member(struct sz_buf *b, const char *name, struct sz_slice value)
{
    sz_buf_printf(b, ",\"%s\":", name);
    sz_buf_json(b, value);
}

static void write_body(const struct wish *w, struct sz_slice token, struct sz_buf *b)
{
    uint64_t seconds;
    sz_buf_printf(b, "{\"kind\":\"%s\"", w->kind);
    add_member(b, "value", w->token ? token : sz_cstr(w->value));
    if (w->issuer != NULL)
        add_member(b, "issuer", sz_cstr(w->issuer));
    if (w->before != NULL && sz_parse_u64(sz_cstr(w->before), INT64_MAX, &seconds) == 0)
        sz_buf_printf(b, ",\"before\":%s", w->before);
    else if (w->before != NULL)
        add_member(b, "before", sz_cstr(w->before));
    sz_buf_printf(b, "}");
}

static bool read_secret(const char *path, struct sz_buf *out, struct sz_slice *value)
{
    int rc = sz_cli_read(path, SZ_TOKEN_MAX + 2, out);
    struct sz_slice text = sz_buf_slice(out);
    if (rc != 0)
        fprintf(stderr, "subzero revoke: %s: %s\n", strcmp(path, "-") == 0 ? "standard input" : path, strerror(-rc));
    while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
        text.n--;
    *value = text;
    return rc == 0;
}

static int ask(const struct wish *w, struct sz_cli_admin *admin, struct sz_slice token)
{
    struct sz_buf body = {0}, answer = {0};
    write_body(w, token, &body);
    int status = sz_cli_admin_ask(admin, "POST", "/revocations", sz_buf_slice(&body), &answer);
    sz_wipe(body.p, body.n);
    sz_buf_fini(&body);
    bool good = status == 200 || status == 201;
    if (status == 0)
        fprintf(stderr,
                "subzero revoke: %s: nobody answered; --admin says where the admin listener is (admin.address)\n",
                w->address);
    else
        fprintf(good ? stdout : stderr, "%.*s%s", SZ_FMT(sz_buf_slice(&answer)),
                answer.n > 0 && answer.p[answer.n - 1] == '\n' ? "" : "\n");
    sz_buf_fini(&answer);
    return good ? SZ_EXIT_OK : status == 0 || status >= 500 ? SZ_EXIT_UNAVAILABLE : SZ_EXIT_NO;
}

int sz_cmd_revoke(int argc, char **argv)
{
    struct wish w = {.address = SZ_CLI_ADMIN};
    struct sz_cli_admin admin = {0};
    struct sz_buf secret = {0}, token = {0};
    struct sz_slice value = SZ_NONE;
    bool help = false;
    if (!parse(argc, argv, &w, &help) || !sz_cli_admin_parse(w.address, &admin)) {
        fputs(usage_text, help ? stdout : stderr);
        return help ? SZ_EXIT_OK : SZ_EXIT_USAGE;
    }
    int rc = SZ_EXIT_NO;
    if ((w.token_file == NULL || read_secret(w.token_file, &secret, &admin.token)) &&
        (!w.token || read_secret("-", &token, &value)))
        rc = ask(&w, &admin, value);
    if (secret.p != NULL)
        sz_wipe(secret.p, secret.n);
    if (token.p != NULL)
        sz_wipe(token.p, token.n);
    sz_buf_fini(&secret);
    sz_buf_fini(&token);
    return rc;
}
