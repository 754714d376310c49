/* subzero explain: one request through the stages, what each says, and never the token. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

#define HEAD                                    \
    "listen:\n  - {address: \"127.0.0.1:1\"}\n" \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:1\"]}\n"
#define ISSUERS                                                                                                 \
    "issuers:\n"                                                                                                \
    "  test: {issuer: \"https://issuer.test/\", audiences: [api], algorithms: [ES256], jwks_file: jwks.json}\n" \
    "  gone: {issuer: \"https://gone.test/\", audiences: [api], jwks_uri: \"http://127.0.0.1:1/keys\"}\n"
#define FGA                                                                            \
    "fga:\n"                                                                           \
    "  model: |\n"                                                                     \
    "    model\n"                                                                      \
    "      schema 1.1\n"                                                               \
    "    type user\n"                                                                  \
    "    type group\n"                                                                 \
    "      relations\n"                                                                \
    "        define member: [user]\n"                                                  \
    "    type folder\n"                                                                \
    "      relations\n"                                                                \
    "        define viewer: [group#member]\n"                                          \
    "    type document\n"                                                              \
    "      relations\n"                                                                \
    "        define parent: [folder]\n"                                                \
    "        define viewer: [user, user with lit] or viewer from parent\n"             \
    "    condition lit(on: bool) {\n"                                                  \
    "      on\n"                                                                       \
    "    }\n"                                                                          \
    "  tuples: |\n"                                                                    \
    "    - {user: \"group:eng#member\", relation: viewer, object: \"folder:specs\"}\n" \
    "    - {user: \"folder:specs\", relation: parent, object: \"document:plan\"}\n"    \
    "    - {user: \"user:dora\", relation: viewer, object: \"document:dark\", condition: {name: lit}}\n"
#define ROUTES                                                                                      \
    "routes:\n"                                                                                     \
    "  - {id: hello, match: {path: /hello}, public: true, upstream: up}\n"                          \
    "  - id: documents\n    match: {methods: [GET], path: \"/documents/{id}\"}\n    upstream: up\n" \
    "    auth: {issuers: [test, gone], scopes: [\"read:documents\"]}\n    shared_subjects: true\n"  \
    "    authorize:\n      user: \"user:{claims.sub}\"\n      relation: viewer\n      object: "     \
    "\"document:{path.id}\"\n"                                                                      \
    "      contextual_tuples: [{user: \"user:{claims.sub}\", relation: member, object: "            \
    "\"group:{claims.groups[]}\"}]\n"

static struct issuer issuer;
static char *token, *poor, *dora;
static const char *config;

static void setup(void)
{
    issuer_init(&issuer);
    token = issuer_token(&issuer, "alice", 60, "\"scope\":\"read:documents\",\"groups\":[\"eng\"]");
    poor = issuer_token(&issuer, "alice", 60, "\"groups\":[\"eng\"]");
    dora = issuer_token(&issuer, "dora", 60, "\"scope\":\"read:documents\"");
    config = scratch_write("explain.yaml", SZ_S(HEAD ISSUERS FGA ROUTES));
}

static void teardown(void)
{
    free(token);
    free(poor);
    free(dora);
    scratch_remove();
}

static void expect(const char *given, const char *method, const char *url, int code, const char *const *wants)
{
    static unsigned n;
    struct proc p;
    char name[32];
    size_t size;
    const char *path = scratch_write("token", sz_cstr(given));
    const char *argv[] = {SZ_BINARY, "explain", "-c", config, "--token-file", path, method, url, NULL};
    snprintf(name, sizeof(name), "explain%u", n++);
    cr_expect_eq(proc_run(&p, name, 20, argv), code, "%s %s", method, url);
    char *log = file_read(p.log, &size);
    for (; *wants != NULL; wants++)
        cr_expect(strstr(log, *wants) != NULL, "%s %s: wanted %s, got\n%s", method, url, *wants, log);
    /* Neither the whole nor its signature. */
    const char *signature = strrchr(given, '.');
    cr_expect(given[0] == '\0' || strstr(log, signature != NULL ? signature + 1 : given) == NULL,
              "the token is in the output:\n%s", log);
    cr_expect(strstr(log, "ERROR: ") == NULL, "%s", log);
    free(log);
}
#define EXPECT(given, method, url, code, ...) expect(given, method, url, code, (const char *const[]){__VA_ARGS__, NULL})

Test(explain, every_stage_says_what_it_saw, .init = setup, .fini = teardown, .timeout = 120)
{
    EXPECT(token, "GET", "https://api.example/documents/plan", 0, "route      documents: /documents/{id}",
           "issuer     test", "subject    alice", "scopes     read:documents", "is user:alice viewer of document:plan?",
           "user:alice member group:eng", "tuple document:plan#parent@folder:specs",
           "tuple group:eng#member@user:alice", "ALLOW", "upstream   up");
    EXPECT(token, "GET", "/documents/other", 1, "document:other has no parent", "403 not_permitted", "DENY");
    EXPECT(poor, "GET", "/documents/plan", 1, "403 insufficient_scope", "(no relation was asked)");
    EXPECT("", "GET", "/documents/plan", 1, "credential none", "401 missing_token");
    EXPECT("", "GET", "/hello", 0, "public", "ALLOW");
    EXPECT("eyJh.eyJz.zzqqzzqq", "GET", "/documents/plan", 1, "401 malformed_token");
    EXPECT(token, "POST", "/documents/plan", 1, "405 method_not_allowed");
    EXPECT(token, "GET", "/elsewhere", 1, "404 no_route");
    EXPECT(token, "GET", "/documents/a%2fb", 1, "400 ambiguous_path");
    EXPECT(token, "GET", "/documents/plan HTTP/1.1\r\nX: y", 1, "head       -> refused");
}

Test(explain, what_could_not_be_asked_is_no_no, .init = setup, .fini = teardown, .timeout = 120)
{
    struct sz_buf jwk = {0};
    struct sz_text why;
    struct sz_arena arena;
    struct sz_slice foreign;
    cr_assert_eq(sz_key_generate(SZ_ALG_RS256, &jwk), 0);
    struct sz_signer *signer = sz_signer_new(sz_buf_slice(&jwk), &why);
    sz_arena_init(&arena);
    cr_assert_eq(
        sz_signer_sign(signer, SZ_ALG_RS256, "JWT",
                       SZ_S("{\"iss\":\"https://gone.test/\",\"aud\":\"api\",\"sub\":\"x\",\"exp\":4102444800}"),
                       &arena.pool, &foreign),
        0);
    EXPECT(sz_pool_strdup(&arena.pool, foreign), "GET", "/documents/plan", 3, "503 identity_unavailable");
    EXPECT(dora, "GET", "/documents/dark", 3, "503 authz_error", "cannot be decided, 2000");
    sz_arena_fini(&arena);
    sz_signer_free(&signer);
    sz_buf_fini(&jwk);
}

/* Checks that are under way together, at a store that is not there. */
Test(explain, several_checks_of_a_remote_store, .init = setup, .fini = teardown, .timeout = 60)
{
    config = scratch_write(
        "explain.yaml",
        SZ_S(HEAD ISSUERS
             "fga: {mode: remote, api_url: \"http://127.0.0.1:1\", store_id: 01H0H015178Y2V4CX10C2KGHF4, model_id: "
             "01H0H015178Y2V4CX10C2KGHF5}\n"
             "routes:\n"
             "  - id: documents\n    match: {methods: [GET], path: \"/documents/{id}\"}\n    upstream: up\n"
             "    auth: {issuers: [test], scopes: [\"read:documents\"]}\n"
             "    authorize:\n      all:\n"
             "        - {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.id}\"}\n"
             "        - {user: \"user:{claims.sub}\", relation: viewer, object: \"folder:{path.id}\"}\n"
             "        - {user: \"user:{claims.sub}\", relation: viewer, object: \"shelf:{path.id}\"}\n"));
    EXPECT(token, "GET", "/documents/plan", 3, "is user:alice viewer of document:plan?",
           "is user:alice viewer of folder:plan?", "is user:alice viewer of shelf:plan?", "could not ask",
           "503 authz_unavailable");
}

Test(explain, wrong_usage_and_bad_configurations, .init = setup, .fini = teardown, .timeout = 60)
{
    struct proc p;
    const char *none[] = {SZ_BINARY, "explain", "-c", config, NULL};
    const char *header[] = {SZ_BINARY, "explain", "-c", config, "--header", "nocolon", "GET", "/", NULL};
    const char *address[] = {SZ_BINARY, "explain", "-c", config, "--address", "x", "GET", "/", NULL};
    const char *gone[] = {SZ_BINARY, "explain", "-c", "/none.yaml", "GET", "/", NULL};
    const char *secret[] = {SZ_BINARY, "explain", "-c", config, "--token-file", "/none", "GET", "/", NULL};
    cr_expect_eq(proc_run(&p, "none", 10, none), 2);
    cr_expect_eq(proc_run(&p, "header", 10, header), 2);
    cr_expect_eq(proc_run(&p, "address", 10, address), 1);
    cr_expect_eq(proc_run(&p, "gone", 10, gone), 1);
    cr_expect_eq(proc_run(&p, "secret", 10, secret), 1);
}
