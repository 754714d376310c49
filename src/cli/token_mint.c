/*
 * subzero token mint: a signed access token (RFC 9068) from the demo's key or one of your own.  Claims are written
 * in the order given; a claim that is given twice is refused, since readers would disagree on it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/input.h"
#include "cli/token.h"
#include "subzero/crypto.h"
#include "subzero/demo.h"
#include "subzero/issuers.h"

enum { KEY_MAX = 64 * 1024, CLAIMS_MAX = 64, TTL_MAX = 10 * 365 * 86400 };

struct mint {
    bool demo;
    const char *key, *iss, *sub, *scope, *client;
    enum sz_alg alg;                                          /* SZ_ALG_COUNT: the key's own */
    int64_t ttl;                                              /* seconds */
    struct sz_slice audiences[CLAIMS_MAX], extra[CLAIMS_MAX]; /* extra: name=value */
    size_t audiences_n, extra_n;
};

static void usage(FILE *out)
{
    fputs("usage: subzero token mint [--demo | --key FILE --iss ISSUER] [OPTION...]\n\n"
          "Signs an access token and prints it, alone, on standard output.\n\n"
          "  --demo           with the key of 'subzero serve --demo', for its issuer and audience\n"
          "  --key FILE       with a private JWK or PEM ('subzero key new --jwk ES256' makes one; -: standard input)\n"
          "  --alg ALG        RS256 ... EdDSA; by default the one that the key is for\n"
          "  --iss ISSUER     who issues it\n"
          "  --aud AUDIENCE   whom it is for; may be repeated\n"
          "  --sub SUBJECT    whom it speaks of\n"
          "  --scope SCOPES   in one string, blanks between them\n"
          "  --ttl TIME       how long it lives: 30s, 5m, 1h (default), 7d\n"
          "  --claim K=V      any other claim; V is JSON if it reads as JSON, else a string; may be repeated\n",
          out);
}

SZ_PRINTF(1, 2) static int fail(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("subzero token mint: ", stderr);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return SZ_EXIT_USAGE;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static int read_ttl(const char *text, int64_t *seconds)
{
    static const struct {
        char unit;
        int64_t length;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    struct sz_slice s = sz_cstr(text);
    uint64_t count;
    for (size_t i = 0; i < SZ_COUNT(units) && s.n > 1; i++) {
        if (s.p[s.n - 1] != units[i].unit)
            continue;
        if (sz_parse_u64(sz_sub(s, 0, s.n - 1), (uint64_t)(TTL_MAX / units[i].length), &count) != 0)
            return -EINVAL;
        *seconds = (int64_t)count * units[i].length;
        return 0;
    }
    return -EINVAL;
}

static int take(struct sz_slice *list, size_t *n, const char *value)
{
    if (*n == CLAIMS_MAX)
        return -E2BIG;
    list[(*n)++] = sz_cstr(value);
    return 0;
}

/* 0: taken; otherwise an exit code. */
static int read_option(struct mint *m, int option, const char *value)
{
    switch (option) {
    case 'd':
        m->demo = true;
        return 0;
    case 'k':
        m->key = value;
        return 0;
    case 'i':
        m->iss = value;
        return 0;
    case 's':
        m->sub = value;
        return 0;
    case 'p':
        m->scope = value;
        return 0;
    case 'g':
        m->alg = sz_alg_from(sz_cstr(value));
        return m->alg != SZ_ALG_COUNT ? 0
                                      : fail("--alg %s: not one of HS, RS, PS, ES with 256, 384, 512, or EdDSA", value);
    case 't':
        return read_ttl(value, &m->ttl) == 0
                   ? 0
                   : fail("--ttl %s: write a time of at most ten years, like 30s, 5m, 1h, 7d", value);
    case 'a':
        return take(m->audiences, &m->audiences_n, value) == 0 ? 0 : fail("--aud %s: too many", value);
    case 'c':
        if (strchr(value, '=') == NULL || value[0] == '=')
            return fail("--claim %s: write NAME=VALUE", value);
        return take(m->extra, &m->extra_n, value) == 0 ? 0 : fail("--claim %s: too many", value);
    default:
        usage(stderr);
        return SZ_EXIT_USAGE;
    }
}

static int read_options(struct mint *m, int argc, char **argv, bool *help)
{
    static const struct option options[] = {
        {"demo", no_argument, NULL, 'd'},
        {"key", required_argument, NULL, 'k'},
        {"alg", required_argument, NULL, 'g'},
        {"iss", required_argument, NULL, 'i'},
        {"aud", required_argument, NULL, 'a'},
        {"sub", required_argument, NULL, 's'},
        {"scope", required_argument, NULL, 'p'},
        {"ttl", required_argument, NULL, 't'},
        {"claim", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h') {
            *help = true;
            return 0;
        }
        int rc = read_option(m, c, optarg);
        if (rc != 0)
            return rc;
    }
    if (optind != argc)
        return fail("unexpected argument '%s'", argv[optind]);
    if (m->demo == (m->key != NULL))
        return fail("give either --demo or --key FILE");
    if (m->demo) {
        m->iss = m->iss != NULL ? m->iss : SZ_DEMO_ISSUER;
        m->client = SZ_DEMO_CLIENT;
        if (m->audiences_n == 0)
            (void)take(m->audiences, &m->audiences_n, SZ_DEMO_AUDIENCE);
    }
    return m->iss != NULL ? 0 : fail("--iss is needed with --key");
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

struct claims {
    struct sz_buf json;
    struct sz_slice names[CLAIMS_MAX + 16];
    size_t n;
};

/* Starts a member; false: the name is there already. */
static bool add_name(struct claims *c, struct sz_slice name)
{
    for (size_t i = 0; i < c->n; i++) {
        if (sz_eq(c->names[i], name))
            return false;
    }
    c->names[c->n++] = name;
    sz_buf_printf(&c->json, c->n == 1 ? "{" : ",");
    sz_buf_json(&c->json, name);
    sz_buf_printf(&c->json, ":");
    return true;
}

static void add_string(struct claims *c, const char *name, const char *value)
{
    if (value != NULL && add_name(c, sz_cstr(name)))
        sz_buf_json(&c->json, sz_cstr(value));
}

static void add_time(struct claims *c, const char *name, int64_t value)
{
    if (add_name(c, sz_cstr(name)))
        sz_buf_printf(&c->json, "%lld", (long long)value);
}

static void add_audiences(struct claims *c, const struct mint *m)
{
    if (m->audiences_n == 0 || !add_name(c, SZ_S("aud")))
        return;
    if (m->audiences_n > 1)
        sz_buf_printf(&c->json, "[");
    for (size_t i = 0; i < m->audiences_n; i++) {
        sz_buf_printf(&c->json, i == 0 ? "" : ",");
        sz_buf_json(&c->json, m->audiences[i]);
    }
    if (m->audiences_n > 1)
        sz_buf_printf(&c->json, "]");
}

static int add_extra(struct claims *c, struct sz_slice pair)
{
    size_t at, cut = (size_t)sz_find_byte(pair, '=');
    struct sz_slice name = sz_sub(pair, 0, cut), value = sz_from(pair, cut + 1);
    if (!add_name(c, name))
        return fail("--claim %s: that claim is set already", pair.p);
    if (sz_json_check(value, 32, &at) == 0)
        sz_buf_adds(&c->json, value);
    else
        sz_buf_json(&c->json, value);
    return 0;
}

static int build_claims(const struct mint *m, struct claims *c)
{
    uint8_t random[16];
    char jti[33] = "";
    int64_t now = sz_wall_seconds(sz_wall_read());
    sz_random(random, sizeof(random));
    sz_hex_encode(random, sizeof(random), jti);
    add_string(c, "iss", m->iss);
    add_string(c, "sub", m->sub);
    add_audiences(c, m);
    add_time(c, "iat", now);
    add_time(c, "exp", now + m->ttl);
    add_string(c, "jti", jti);
    add_string(c, "client_id", m->client);
    add_string(c, "scope", m->scope);
    for (size_t i = 0; i < m->extra_n; i++) {
        int rc = add_extra(c, m->extra[i]);
        if (rc != 0)
            return rc;
    }
    sz_buf_printf(&c->json, "}");
    return 0;
}

/* ---- signing ----------------------------------------------------------------------------------------------------- */

static struct sz_signer *load_signer(const struct mint *m)
{
    struct sz_buf key = {0};
    struct sz_text why = {""};
    struct sz_signer *signer = NULL;
    int rc = m->demo ? sz_demo_key_load(SZ_DEMO_KEY_FIND, &key, &why) : sz_cli_read(m->key, KEY_MAX, &key);
    if (rc == 0)
        signer = sz_signer_new(sz_buf_slice(&key), &why);
    else if (!m->demo)
        sz_text_set(&why, "%s", strerror(-rc));
    if (signer == NULL)
        fprintf(stderr, "subzero token mint: %s%s%s\n", m->demo ? "" : m->key, m->demo ? "" : ": ", why.s);
    if (key.p != NULL)
        sz_wipe(key.p, key.n);
    sz_buf_fini(&key);
    return signer;
}

static int sign_and_print(const struct mint *m, struct sz_signer *signer, struct sz_slice claims)
{
    enum sz_alg alg = m->alg != SZ_ALG_COUNT ? m->alg : sz_signer_default_alg(signer);
    struct sz_arena arena;
    struct sz_slice token;
    sz_arena_init(&arena);
    int rc = sz_signer_sign(signer, alg, "at+jwt", claims, &arena.pool, &token);
    if (rc == 0)
        printf("%.*s\n", SZ_FMT(token));
    else if (rc == -EINVAL)
        fprintf(stderr, "subzero token mint: the key cannot sign with %s, or a claim is nested too deep\n",
                sz_alg_name(alg));
    else
        fprintf(stderr, "subzero token mint: signing failed: %s\n", strerror(-rc));
    sz_arena_fini(&arena);
    return rc == 0 && fflush(stdout) == 0 ? SZ_EXIT_OK : SZ_EXIT_NO;
}

int sz_token_mint(int argc, char **argv)
{
    struct mint m = {.alg = SZ_ALG_COUNT, .ttl = 3600};
    struct claims claims = {0};
    bool help = false;
    int rc = read_options(&m, argc, argv, &help);
    if (help) {
        usage(stdout);
        return SZ_EXIT_OK;
    }
    if (rc == 0)
        rc = build_claims(&m, &claims);
    if (rc == 0) {
        struct sz_signer *signer = load_signer(&m);
        rc = signer == NULL ? SZ_EXIT_NO : sign_and_print(&m, signer, sz_buf_slice(&claims.json));
        sz_signer_free(&signer);
    }
    sz_buf_fini(&claims.json);
    return rc;
}
