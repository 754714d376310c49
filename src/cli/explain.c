/*
 * subzero explain: one request through every stage, without sending it.  The same code judges it that would in a
 * gateway with this configuration, from the strict reading of its head to the decision; what each stage saw and said is
 * printed.  The token is read from a file or standard input, where no other user sees it, and is never shown.
 */
#include "cli/explain.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/mistakes.h"
#include "subzero/crypto.h"

enum { TOKEN_MAX = 64 * 1024, HEAD_MAX = 256 * 1024 };

static const char usage_text[] =
    "usage: subzero explain -c FILE [--token-file F] [--header 'Name: value']... [--address IP] METHOD URL\n"
    "\n"
    "Judges one request as a gateway with this configuration would, without sending it, and prints what every stage "
    "saw\n"
    "and said.  Providers and a remote relation store are asked; limits are counted afresh, nothing is recorded.\n"
    "Exit code 0: allowed, 1: denied or bad input, 2: usage, 3: could not ask.\n"
    "\n"
    "  -c, --config FILE      the configuration\n"
    "  --token-file F         the bearer token; - reads it from standard input\n"
    "  --header 'Name: value' one more request header\n"
    "  --address IP           the client's address; 127.0.0.1 otherwise\n"
    "\n"
    "URL is http(s)://host/path or a path alone.\n";

static int fail(const char *why)
{
    fprintf(stderr, "subzero explain: %s\n", why);
    return SZ_EXIT_NO;
}

/* What would end a line, or the word that it is part of. */
static bool is_word(const char *text, unsigned char from)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < from || *text == 0x7f)
            return false;
    }
    return true;
}

static bool add_header(struct sz_explain *x, const char *text)
{
    struct sz_slice line = sz_cstr(text);
    ptrdiff_t colon = sz_find_byte(line, ':');
    if (!is_word(text, ' '))
        return false;
    if (colon > 0)
        sz_headers_add(&x->fields, &x->arena.pool, sz_sub(line, 0, (size_t)colon),
                       sz_trim(sz_from(line, (size_t)colon + 1)));
    return colon > 0;
}

static bool parse(int argc, char **argv, struct sz_explain *x, bool *help)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"token-file", required_argument, NULL, 't'},
        {"header", required_argument, NULL, 'H'}, {"address", required_argument, NULL, 'a'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "c:H:h", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            x->file = optarg;
            break;
        case 't':
            x->token_file = optarg;
            break;
        case 'a':
            x->address = optarg;
            break;
        case 'H':
            if (!add_header(x, optarg))
                return false;
            break;
        case 'h':
            *help = true;
            return true;
        default:
            return false;
        }
    }
    x->method = argc - optind == 2 ? argv[optind] : NULL;
    x->url = argc - optind == 2 ? argv[optind + 1] : NULL;
    return x->file != NULL && x->method != NULL;
}

static int read_token(struct sz_explain *x, struct sz_buf *input)
{
    if (x->token_file == NULL)
        return 0;
    int rc = sz_cli_read(x->token_file, TOKEN_MAX, input);
    struct sz_slice token = sz_trim(sz_buf_slice(input));
    while (token.n > 0 && (token.p[token.n - 1] == '\n' || token.p[token.n - 1] == '\r'))
        token.n--;
    if (sz_ieq(sz_sub(token, 0, 7), SZ_S("Bearer ")))
        token = sz_trim(sz_from(token, 7));
    x->token = token;
    return rc;
}

/* The first listener that takes requests: a decide listener's caller is one of the trusted proxies. */
static bool choose_listener(struct sz_explain *x)
{
    const struct sz_conf *conf = x->snapshot->conf;
    for (size_t i = 0; i < conf->listeners_n; i++) {
        if (conf->listeners[i].mode == SZ_MODE_API)
            continue;
        x->listener = conf->listeners[i];
        return true;
    }
    return false;
}

static bool set_peer(struct sz_explain *x, const char **why)
{
    const struct sz_conf *conf = x->snapshot->conf;
    struct sz_addr client;
    *why = "--address is no IP address";
    if (sz_addr_parse(sz_cstr(x->address != NULL ? x->address : "127.0.0.1"), &client) != 0)
        return false;
    x->txn.req.peer = client;
    if (x->listener.mode != SZ_MODE_DECIDE)
        return true;
    x->txn.req.peer = conf->trusted_proxies.v[0].net;
    if (x->address != NULL)
        sz_headers_add(&x->fields, &x->arena.pool, SZ_S("x-forwarded-for"), sz_cstr(x->address));
    return true;
}

/* The head as a client would send it; what the edge would refuse is refused here. */
static bool make_head(struct sz_explain *x, const char **why)
{
    const struct sz_conf_limits *limits = &x->snapshot->conf->limits;
    struct sz_head_limits most = {.bytes = limits->request_head, .fields = limits->headers};
    struct sz_slice url = sz_cstr(x->url), host = SZ_S("localhost"), target = url;
    *why = "a method and a url have no blanks and control characters";
    if (!is_word(x->method, '!') || !is_word(x->url, '!'))
        return false;
    size_t scheme = sz_starts_with(url, SZ_S("https://")) ? 8 : sz_starts_with(url, SZ_S("http://")) ? 7 : 0;
    if (scheme > 0) {
        ptrdiff_t slash = sz_find_byte(sz_from(url, scheme), '/');
        host = slash < 0 ? sz_from(url, scheme) : sz_sub(url, scheme, (size_t)slash);
        target = slash < 0 ? SZ_S("/") : sz_from(url, scheme + (size_t)slash);
    }
    x->https = scheme == 8;
    x->bytes.limit = HEAD_MAX;
    x->bytes.p = sz_xmalloc(HEAD_MAX); /* does not move: nothing of the token stays behind */
    x->bytes.cap = HEAD_MAX;
    sz_buf_printf(&x->bytes, "%s %.*s HTTP/1.1\r\nHost: %.*s\r\n", x->method, SZ_FMT(target), SZ_FMT(host));
    if (x->token.n > 0) {
        sz_buf_adds(&x->bytes, SZ_S("Authorization: Bearer "));
        sz_buf_adds(&x->bytes, x->token);
        sz_buf_adds(&x->bytes, SZ_S("\r\n"));
    }
    for (size_t i = 0; i < x->fields.n; i++)
        sz_buf_printf(&x->bytes, "%.*s: %.*s\r\n", SZ_FMT(x->fields.v[i].name), SZ_FMT(x->fields.v[i].value));
    sz_buf_adds(&x->bytes, SZ_S("\r\n"));
    *why = "the request is larger than limits.request_head and limits.headers allow (431)";
    return !x->bytes.overflow && sz_head_check(sz_buf_slice(&x->bytes), &most, &x->head, why) == 0;
}

static int explain(struct sz_explain *x)
{
    struct sz_text trouble = {""};
    const char *why = "no listener of the configuration takes requests (all are of mode api)";
    if (!choose_listener(x) || !set_peer(x, &why) || !make_head(x, &why)) {
        printf("%s\n\nhead       -> refused: %s\n", x->method, why);
        return SZ_EXIT_NO;
    }
    int rc = sz_explain_run(x, &trouble);
    return rc < 0 ? fail(trouble.s) : rc;
}

static int with_configuration(struct sz_explain *x)
{
    struct sz_mistakes m;
    struct sz_conf *conf = sz_cli_load(x->file);
    if (conf == NULL)
        return SZ_EXIT_NO;
    sz_metrics_init(2);
    sz_mistakes_init(&m);
    x->snapshot = sz_snapshot_new(conf, NULL, &m);
    sz_cli_print_mistakes(&m, stderr);
    sz_mistakes_fini(&m);
    int rc = x->snapshot == NULL ? SZ_EXIT_NO : explain(x);
    if (x->snapshot != NULL)
        sz_snapshot_unref(x->snapshot);
    sz_metrics_fini();
    return rc;
}

int sz_cmd_explain(int argc, char **argv)
{
    struct sz_explain *x = sz_xcalloc(1, sizeof(*x));
    struct sz_buf input = {0};
    bool help = false;
    int rc = SZ_EXIT_USAGE, error;
    sz_crypto_init();
    sz_arena_init(&x->arena);
    if (!parse(argc, argv, x, &help))
        fputs(usage_text, stderr);
    else if (help)
        rc = fputs(usage_text, stdout) < 0 ? SZ_EXIT_NO : SZ_EXIT_OK;
    else if ((error = read_token(x, &input)) != 0)
        rc = fail(error == -EFBIG ? "the token is too long" : strerror(-error));
    else
        rc = with_configuration(x);
    if (input.p != NULL)
        sz_wipe(input.p, input.cap);
    if (x->bytes.p != NULL)
        sz_wipe(x->bytes.p, x->bytes.cap);
    sz_buf_fini(&input);
    sz_buf_fini(&x->bytes);
    sz_arena_fini(&x->arena);
    free(x);
    return rc;
}
