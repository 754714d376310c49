/*
 * Headers that claim to be ours, in every spelling, over HTTP/1 and HTTP/2, through a proxy and a decide listener: none
 * arrives.  Every spoofed value holds SPOOF, so one search of what arrived says whether any of them did.
 */
#include "integration/harness.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define SPOOF "spoofed"

static const char yaml[] =
    "listen:\n"
    "  - {address: \"127.0.0.1:{port}\"}\n"
    "  - {address: \"127.0.0.1:{port2}\", mode: decide, dialect: traefik}\n"
    "admin: {address: \"127.0.0.1:{admin}\"}\n"
    "workers: 1\n"
    "trusted_proxies: [127.0.0.2/32]\n" /* the decide listener's caller; the proxy listener's clients are nobody */
    "log: {access: off}\n"
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n" ISSUER_YAML "routes:\n"
    "  - {id: public, match: {path: \"/public/*\"}, public: true, upstream: up}\n"
    "  - {id: odd, match: {path: \"/odd/*\"}, public: true, keep_odd_headers: true, upstream: up}\n"
    "  - id: me\n"
    "    match: {path: /me}\n"
    "    auth: {issuers: [test], any_scope: [\"read:me\", \"write:me\"]}\n"
    "    set_headers: {x-department: \"{claims.department}\"}\n"
    "    upstream: up\n";

static struct gateway gateway;
static struct upstream *up;
static struct issuer issuer;
static char *token;

static void setup(void)
{
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 600, "\"scope\":\"read:me\",\"department\":\"legal\"");
    up = upstream_start(NULL);
    cr_assert(gateway_start(&gateway, yaml, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&gateway);
    upstream_stop(&up);
    sz_signer_free(&issuer.signer);
    free(token);
    scratch_remove();
}

/* What no client may say: ours, what routes set, what others use for the same, and second opinions about the request.
 */
static const char *const names[] = {
    "x-subzero-subject",
    "x-subzero-client",
    "x-subzero-scopes",
    "x-subzero-issuer",
    "x-subzero-tenant",
    "x-subzero-assertion",
    "x-subzero-anything",
    "x-department",
    "x-user",
    "x-forwarded-user",
    "x-remote-user",
    "remote-user",
    "proxy",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-accel-redirect",
    "x-forwarded-prefix",
    "x-forwarded-client-cert",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-request-id",
    "proxy-connection",
};

/* ---- spellings --------------------------------------------------------------------------------------------------- */

typedef void spell_fn(const char *name, char *out);

static void as_it_is(const char *name, char *out)
{
    snprintf(out, 128, "%s", name);
}

static void upper(const char *name, char *out)
{
    for (; *name != '\0'; name++)
        *out++ = (char)toupper((unsigned char)*name);
    *out = '\0';
}

static void every_other(const char *name, char *out)
{
    for (size_t i = 0; name[i] != '\0'; i++)
        out[i] = (char)(i % 2 == 0 ? toupper((unsigned char)name[i]) : name[i]);
    out[strlen(name)] = '\0';
}

static void replace(const char *name, char with, bool all, char *out)
{
    snprintf(out, 128, "%s", name);
    for (char *dash; (dash = strchr(out, '-')) != NULL;) {
        *dash = with;
        if (!all)
            return;
    }
}

static void underscores(const char *name, char *out)
{
    replace(name, '_', true, out);
}

static void one_underscore(const char *name, char *out)
{
    replace(name, '_', false, out);
}

static void dots(const char *name, char *out)
{
    replace(name, '.', true, out);
}

static void upper_underscores(const char *name, char *out)
{
    char low[128];

    underscores(name, low);
    upper(low, out);
}

static const struct {
    spell_fn *fn;
    bool http2; /* upper case is no HTTP/2 */
} spellings[] = {{as_it_is, true},       {upper, false}, {every_other, false},      {underscores, true},
                 {one_underscore, true}, {dots, true},   {upper_underscores, false}};

/* ---- what arrived ------------------------------------------------------------------------------------------------ */

static void expect_facts(const struct upstream_request *request, const char *what)
{
    static const struct {
        const char *name, *value;
    } facts[] = {{"x-subzero-subject", "alice"},
                 {"x-subzero-scopes", "read:me"},
                 {"x-subzero-issuer", ISSUER_NAME},
                 {"x-department", "legal"}};
    char value[128];

    for (size_t i = 0; i < SZ_COUNT(facts); i++) {
        cr_expect_eq(upstream_field_count(request, facts[i].name), 1, "%s: %s", what, facts[i].name);
        cr_expect(upstream_field(request, facts[i].name, value, sizeof(value)) && strcmp(value, facts[i].value) == 0,
                  "%s: %s is '%s'", what, facts[i].name, value);
    }
}

/* After one request for `target`: it arrived, or (may_refuse) was refused as malformed; nothing spoofed came with it.
 */
static void judge(int status, bool may_refuse, const char *target, const char *what)
{
    const struct upstream_request *request = upstream_at(up, 0);

    if (status != 200) {
        cr_expect(may_refuse && (status == 400 || status == 0) && request == NULL, "%s: %d", what, status);
        return;
    }
    cr_assert(request != NULL && upstream_wait(up, 1, SZ_SEC(5)), "%s: did not arrive", what);
    cr_expect_null(strcasestr(request->head.p, SPOOF), "%s arrived:\n%s", what, request->head.p);
    if (strcmp(target, "/me") == 0)
        expect_facts(request, what);
    else
        cr_expect_null(strcasestr(request->head.p, "x-subzero-"), "%s: an identity for nobody:\n%s", what,
                       request->head.p);
    upstream_clear(up);
}

static const char *const targets[] = {"/public/x", "/odd/x", "/me"};

static const char *token_for(const char *target)
{
    return strcmp(target, "/me") == 0 ? token : NULL;
}

/* ---- HTTP/1 ------------------------------------------------------------------------------------------------------ */

static void send_http1(const char *target, const char *fields, bool may_refuse)
{
    judge(http1_ask(gateway.port, "GET", target, token_for(target), fields, NULL, NULL), may_refuse, target, fields);
}

Test(spoofing, over_http1_no_spelling_arrives, .init = setup, .fini = teardown, .timeout = 120)
{
    char name[128], fields[512];

    for (size_t t = 0; t < SZ_COUNT(targets); t++) {
        for (size_t i = 0; i < SZ_COUNT(names) * SZ_COUNT(spellings); i++) {
            spellings[i % SZ_COUNT(spellings)].fn(names[i / SZ_COUNT(spellings)], name);
            snprintf(fields, sizeof(fields), "%s: " SPOOF "\r\n%s: " SPOOF ", " SPOOF "\r\n", name, name);
            send_http1(targets[t], fields, false);
        }
    }
}

Test(spoofing, over_http1_no_trick_of_the_line_helps, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *fields;
        bool may_refuse;
    } rows[] = {
        {"X-Subzero-Subject : " SPOOF "\r\n", true},
        {"X-Subzero-Subject\t: " SPOOF "\r\n", true},
        {" X-Subzero-Subject: " SPOOF "\r\n", true},
        {"X-Other: 1\r\n X-Subzero-Subject: " SPOOF "\r\n", true},
        {"X-Other: 1\r\n\tX-Subzero-Subject: " SPOOF "\r\n", true},
        {"X-Other: 1\nX-Subzero-Subject: " SPOOF "\r\n", true},
        {"X-Other: 1\rX-Subzero-Subject: " SPOOF "\r\n", true},
        {"X-Subzero\x80Subject: " SPOOF "\r\n", true},
        {"X-Subzero-Subject\x01: " SPOOF "\r\n", true},
        {"X-Subzero-Subject\\: " SPOOF "\r\n", true},
        {": " SPOOF "\r\n", true},
        {"X-Subzero!Subject: " SPOOF "\r\n", false},
        {"X~Subzero~Subject: " SPOOF "\r\n", false},
        /* Nominated: what is ours must stay ours, and what is the client's goes. */
        {"X-Own: " SPOOF "\r\nConnection: X-Own\r\n", false},
        {"X-Own: " SPOOF "\r\nConnection: keep-alive\r\nConnection: , x-own ,\r\n", false},
        {"X-Subzero-Subject: " SPOOF "\r\nConnection: X-Subzero-Subject, X-Subzero-Scopes\r\n", false},
        {"Connection: X-Subzero-Subject, X-Subzero-Scopes, X-Subzero-Issuer, X-Department\r\n", false},
        {"Connection: X_Subzero_Subject\r\nX_Subzero_Subject: " SPOOF "\r\n", false},
        {"Connection: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,x-own\r\nX-Own: " SPOOF "\r\n", true},
        {"Keep-Alive: " SPOOF "\r\nTE: " SPOOF "\r\nTrailer: " SPOOF "\r\n", false},
    };

    for (size_t t = 0; t < SZ_COUNT(targets); t++) {
        if (strcmp(targets[t], "/odd/x") == 0)
            continue; /* a name that is an alias of nobody's is kept there, with whatever value */
        for (size_t i = 0; i < SZ_COUNT(rows); i++)
            send_http1(targets[t], rows[i].fields, rows[i].may_refuse);
    }
}

/* ---- HTTP/2 ------------------------------------------------------------------------------------------------------ */

static void send_http2(const char *target, const struct h2_field *fields, size_t n, bool may_refuse)
{
    struct http2 c;
    char what[256];

    snprintf(what, sizeof(what), "HTTP/2 %s, '%.*s'", target, SZ_FMT(fields[0].name));
    cr_assert(h2_open(&c, gateway.port));
    const struct h2_response *r = h2_ask(&c, "GET", sz_cstr(target), token_for(target), fields, n, SZ_NONE);
    judge(r == NULL || !r->ended ? 0 : r->status, may_refuse, target, what);
    h2_close(&c);
}

Test(spoofing, over_http2_no_spelling_arrives, .init = setup, .fini = teardown, .timeout = 120)
{
    char name[128];

    for (size_t t = 0; t < SZ_COUNT(targets); t++) {
        for (size_t i = 0; i < SZ_COUNT(names) * SZ_COUNT(spellings); i++) {
            spellings[i % SZ_COUNT(spellings)].fn(names[i / SZ_COUNT(spellings)], name);
            struct h2_field fields[] = {{sz_cstr(name), SZ_S(SPOOF)}, {sz_cstr(name), SZ_S(SPOOF ", " SPOOF)}};
            bool illegal = !spellings[i % SZ_COUNT(spellings)].http2 || strcmp(name, "proxy-connection") == 0;
            send_http2(targets[t], fields, SZ_COUNT(fields), illegal);
        }
    }
}

Test(spoofing, over_http2_odd_names_and_values_are_refused_or_dropped, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct h2_field rows[] = {
        H2_FIELD("", SPOOF),
        H2_FIELD(" ", SPOOF),
        H2_FIELD(" x-subzero-subject", SPOOF),
        H2_FIELD("x-subzero-subject ", SPOOF),
        H2_FIELD("x-subzero-subject:", SPOOF),
        H2_FIELD("x-subzero-subject\0", SPOOF),
        H2_FIELD("x-subzero-subject\r\nx-a", SPOOF),
        H2_FIELD("x-a: 1\r\nx-subzero-subject", SPOOF),
        H2_FIELD("x-a\nx-subzero-subject", SPOOF),
        H2_FIELD("x-subzero\x80subject", SPOOF),
        H2_FIELD("x-subzero\tsubject", SPOOF),
        H2_FIELD("x-a", "1\r\nx-subzero-subject: " SPOOF),
        H2_FIELD("x-a", "1\nx-subzero-subject: " SPOOF),
        H2_FIELD("x-a", "1\rx-subzero-subject: " SPOOF),
        H2_FIELD("x-a", "1\0x-subzero-subject: " SPOOF),
        H2_FIELD("connection", "x-subzero-subject, " SPOOF),
        H2_FIELD("keep-alive", SPOOF),
        H2_FIELD("transfer-encoding", "chunked"),
        H2_FIELD("upgrade", SPOOF),
        H2_FIELD("te", SPOOF),
        H2_FIELD("host", SPOOF),
        H2_FIELD(":authority", SPOOF),
        H2_FIELD(":path", "/" SPOOF),
        H2_FIELD(":status", SPOOF),
        H2_FIELD(":x-subzero-subject", SPOOF),
    };

    for (size_t t = 0; t < SZ_COUNT(targets); t++) {
        for (size_t i = 0; i < SZ_COUNT(rows); i++)
            send_http2(targets[t], &rows[i], 1, true);
    }
}

/* ---- decide ------------------------------------------------------------------------------------------------------ */

/* A call of the front proxy with the client's fields in it. */
static int decide(const char *target, const char *fields, struct http1_response *r)
{
    struct http1 c;

    cr_assert(http1_open_from(&c, "127.0.0.2", gateway.port2));
    cr_assert(
        http1_printf(&c,
                     "GET /anything HTTP/1.1\r\nHost: front\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: %s\r\n"
                     "X-Forwarded-Host: gateway.test\r\nX-Forwarded-Proto: https\r\nX-Forwarded-For: 192.0.2.7\r\n"
                     "%s%s%s%s\r\n",
                     target, token_for(target) != NULL ? "Authorization: Bearer " : "",
                     token_for(target) != NULL ? token : "", token_for(target) != NULL ? "\r\n" : "", fields));
    int rc = http1_read(&c, "GET", SZ_SEC(5), r);
    http1_close(&c);
    return rc == 0 ? r->status : 0;
}

/* The front proxy copies these over what the client sent: each must be there once, with a fact or empty. */
static void expect_identity(const struct http1_response *r, bool somebody, const char *what)
{
    static const struct {
        const char *name, *value;
    } rows[] = {{"x-subzero-subject", "alice"},    {"x-subzero-client", ""}, {"x-subzero-scopes", "read:me"},
                {"x-subzero-issuer", ISSUER_NAME}, {"x-subzero-tenant", ""}, {"x-department", "legal"}};
    char value[128];

    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        cr_expect_eq(http1_field_count(r, rows[i].name), 1, "%s: %s", what, rows[i].name);
        cr_expect(http1_field(r, rows[i].name, value, sizeof(value)) &&
                      strcmp(value, somebody ? rows[i].value : "") == 0,
                  "%s: %s is '%s'", what, rows[i].name, value);
    }
}

Test(spoofing, a_decide_answer_says_facts_alone, .init = setup, .fini = teardown, .timeout = 120)
{
    struct http1_response r = {0};
    char name[128], fields[512];

    for (size_t i = 0; i < SZ_COUNT(names) * SZ_COUNT(spellings); i++) {
        const char *base = names[i / SZ_COUNT(spellings)];
        spellings[i % SZ_COUNT(spellings)].fn(base, name);
        snprintf(fields, sizeof(fields), "%s: " SPOOF "\r\n", name);
        /* The dialect's own headers, said twice, are an attempt to be read in two ways. */
        bool doubled = strcspn(name, "_.") == strlen(name) &&
                       (strcmp(base, "x-forwarded-host") == 0 || strcmp(base, "x-forwarded-proto") == 0);
        if (strcasecmp(name, "x-request-id") == 0)
            continue; /* believed from a trusted peer, which is who calls here */
        for (int somebody = 0; somebody < 2; somebody++) {
            int status = decide(somebody ? "/me" : "/public/x", fields, &r);
            if (doubled) {
                cr_expect_eq(status, 400, "%s: %d", fields, status);
                continue;
            }
            cr_expect_eq(status, 200, "%s: %d", fields, status);
            cr_expect_null(strcasestr(r.head.p, SPOOF), "%s came back:\n%s", fields, r.head.p);
            expect_identity(&r, somebody, fields);
        }
    }
    http1_response_fini(&r);
}

Test(spoofing, a_decide_denial_names_nobody, .init = setup, .fini = teardown, .timeout = 60)
{
    struct http1_response r = {0};

    cr_expect_eq(decide("/nowhere", "X-Subzero-Subject: " SPOOF "\r\n", &r), 404);
    cr_expect_null(strcasestr(r.head.p, SPOOF));
    cr_expect_eq(http1_field_count(&r, "x-subzero-subject"), 0);
    cr_expect_eq(upstream_count(up), 0);
    http1_response_fini(&r);
}
