/* Routes whose checks bring values and tuples along, against the engine in the gateway. */
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

#define HEAD                                         \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"      \
    "workers: 2\n"                                   \
    "trusted_proxies: [127.0.0.1]\n"                 \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n" ISSUER_YAML
#define FGA                                                                                                         \
    "fga:\n"                                                                                                        \
    "  model: |\n"                                                                                                  \
    "    model\n"                                                                                                   \
    "      schema 1.1\n"                                                                                            \
    "    type user\n"                                                                                               \
    "    type group\n"                                                                                              \
    "      relations\n"                                                                                             \
    "        define member: [user]\n"                                                                               \
    "    type folder\n"                                                                                             \
    "      relations\n"                                                                                             \
    "        define viewer: [user, group#member]\n"                                                                 \
    "    type document\n"                                                                                           \
    "      relations\n"                                                                                             \
    "        define parent: [folder]\n"                                                                             \
    "        define blocked: [user, group#member]\n"                                                                \
    "        define viewer: [user, user with at_home, user with cleared, group#member] or viewer from parent\n"     \
    "        define reader: viewer but not blocked\n"                                                               \
    "    condition at_home(ip: ipaddress, now: timestamp) {\n"                                                      \
    "      ip.in_cidr(\"10.0.0.0/8\") && now < timestamp(\"2200-01-01T00:00:00Z\")\n"                               \
    "    }\n"                                                                                                       \
    "    condition cleared(level: int, roles: list<string>, mfa: bool, need: double) {\n"                           \
    "      double(level) >= need && \"doctor\" in roles && mfa\n"                                                   \
    "    }\n"                                                                                                       \
    "  tuples: |\n"                                                                                                 \
    "    - {user: \"group:eng#member\", relation: viewer, object: \"folder:specs\"}\n"                              \
    "    - {user: \"folder:specs\", relation: parent, object: \"document:plan\"}\n"                                 \
    "    - {user: \"group:guests#member\", relation: blocked, object: \"document:plan\"}\n"                         \
    "    - {user: \"user:bob\", relation: viewer, object: \"document:plan\"}\n"                                     \
    "    - {user: \"user:carol\", relation: viewer, object: \"document:home\", condition: {name: at_home}}\n"       \
    "    - {user: \"user:dave\", relation: viewer, object: \"document:file\", condition: {name: cleared, context: " \
    "{need: 3}}}\n"
#define ROUTE(id, path, rule)                                                                          \
    "  - id: " id "\n    match: {path: \"" path "\"}\n    auth: {issuers: [test]}\n    upstream: up\n" \
    "    authorize:\n" rule
#define ROUTES                                                                                                        \
    "routes:\n" ROUTE(                                                                                                \
        "groups", "/groups/{id}",                                                                                     \
        "      user: \"user:{claims.sub}\"\n      relation: reader\n      object: \"document:{path.id}\"\n"           \
        "      contextual_tuples:\n"                                                                                  \
        "        - {user: \"user:{claims.sub}\", relation: member, object: \"group:{claims.groups[]}\"}\n")           \
        ROUTE("home", "/home/{id}",                                                                                   \
              "      user: \"user:{claims.sub}\"\n      relation: viewer\n      object: \"document:{path.id}\"\n"     \
              "      context: {ip: \"{client.ip}\", now: \"{now}\"}\n      consistency: higher_consistency\n")        \
            ROUTE("cleared", "/cleared/{id}",                                                                         \
                  "      user: \"user:{claims.sub}\"\n      relation: viewer\n      object: \"document:{path.id}\"\n" \
                  "      context: {level: \"{claims.level}\", roles: \"{claims.roles}\", mfa: \"{claims.mfa}\"}\n")   \
                ROUTE("query", "/query",                                                                              \
                      "      user: \"user:{claims.sub}\"\n      relation: reader\n      object: "                     \
                      "\"document:{query.id}\"\n") ROUTE("header", "/header",                                         \
                                                         "      user: \"user:{claims.sub}\"\n      relation: "        \
                                                         "reader\n      object: \"document:{header.x-doc}\"\n")

static struct gateway g;
static struct upstream *up;
static struct issuer issuer;

static void setup(void)
{
    cr_assert_not_null(up = upstream_start(NULL));
    issuer_init(&issuer);
    cr_assert(gateway_start(&g, HEAD FGA ROUTES, upstream_port(up)));
}

static void teardown(void)
{
    stop_gateway(&g);
    upstream_stop(&up);
    scratch_remove();
}

static void expect(const char *target, const char *sub, const char *claims, const char *fields, int status,
                   const char *reason)
{
    struct http1_response r = {0};
    char what[512], *token = issuer_token(&issuer, sub, 60, claims);
    snprintf(what, sizeof(what), "%s of %s with %.200s, %s", target, sub, claims != NULL ? claims : "nothing",
             fields != NULL ? fields : "");
    for (int hit = 0; hit < 2; hit++) { /* the second from the caches */
        http1_ask(g.port, "GET", target, token, fields, NULL, &r);
        expect_answer(&r, status, reason, what);
    }
    http1_response_fini(&r);
    free(token);
}

Test(authorize, groups_of_the_token_are_tuples_of_the_question, .init = setup, .fini = teardown, .timeout = 60)
{
    expect("/groups/plan", "alice", "\"groups\":[\"eng\",\"sales\"]", NULL, 200, "");
    expect("/groups/plan", "alice", "\"groups\":\"eng\"", NULL, 200, "");
    expect("/groups/plan", "alice", "\"groups\":[\"sales\"]", NULL, 403, "not_permitted");
    expect("/groups/plan", "alice", NULL, NULL, 403, "not_permitted");
    expect("/groups/plan", "bob", NULL, NULL, 200, "");
    /* Another token of hers keeps nothing of the first one's. */
    expect("/groups/plan", "alice", "\"groups\":[]", NULL, 403, "not_permitted");
    /* A group that excludes: were a tuple left out, this would be a yes. */
    expect("/groups/plan", "bob", "\"groups\":[\"guests\"]", NULL, 403, "not_permitted");
    expect("/groups/plan", "bob", "\"groups\":{\"guests\":1}", NULL, 403, "not_permitted");
    /* A value cannot become another type, relation or everybody. */
    expect("/groups/plan", "mallory", "\"groups\":[\"eng#member\",\"*\",\"x group:eng\",\"eng@\"]", NULL, 403,
           "not_permitted");
}

Test(authorize, values_reach_the_conditions, .init = setup, .fini = teardown, .timeout = 60)
{
    expect("/home/home", "carol", NULL, "X-Forwarded-For: 10.1.2.3\r\n", 200, "");
    expect("/home/home", "carol", NULL, "X-Forwarded-For: 192.0.2.1\r\n", 403, "not_permitted");
    expect("/home/home", "carol", NULL, "X-Forwarded-For: 10.1.2.3, 192.0.2.1\r\n", 403, "not_permitted");
    expect("/cleared/file", "dave", "\"level\":3,\"roles\":[\"nurse\",\"doctor\"],\"mfa\":true", NULL, 200, "");
    expect("/cleared/file", "dave", "\"level\":2,\"roles\":[\"nurse\",\"doctor\"],\"mfa\":true", NULL, 403,
           "not_permitted");
    expect("/cleared/file", "dave", "\"level\":3,\"roles\":[\"nurse\"],\"mfa\":true", NULL, 403, "not_permitted");
    expect("/cleared/file", "dave", "\"level\":3,\"roles\":[\"doctor\"],\"mfa\":false", NULL, 403, "not_permitted");
    expect("/cleared/file", "dave", "\"level\":3,\"roles\":[\"doctor\"]", NULL, 403, "not_permitted");
    /* Not of the type that the condition declares: cannot be decided, which is no no. */
    expect("/cleared/file", "dave", "\"level\":3,\"roles\":7,\"mfa\":true", NULL, 503, "authz_error");
}

/* Two readers of one request could pick different values: the client is told to write one. */
Test(authorize, query_and_header_occur_exactly_once, .init = setup, .fini = teardown, .timeout = 60)
{
    static const struct {
        const char *target, *fields;
        int status;
        const char *reason;
    } rows[] = {
        {"/query?id=plan", NULL, 200, ""},
        {"/query?x=1&id=plan&y=2", NULL, 200, ""},
        {"/query?id=other", NULL, 403, "not_permitted"},
        {"/query?id=", NULL, 403, "not_permitted"},
        {"/query", NULL, 400, "bad_request"},
        {"/query?ID=plan", NULL, 400, "bad_request"},
        {"/query?id=plan&id=plan", NULL, 400, "bad_request"},
        {"/query?id=plan&id=other", NULL, 400, "bad_request"},
        {"/query?id=plan&id[]=other", NULL, 400, "bad_request"},
        {"/query?id[]=plan", NULL, 200, ""},
        {"/query?id=plan&%69d=other", NULL, 400, "bad_request"},
        {"/query?id=plan;id=other", NULL, 400, "bad_request"},
        {"/header", "X-Doc: plan\r\n", 200, ""},
        {"/header", "x-doc: plan\r\n", 200, ""},
        {"/header", "X-Doc: other\r\n", 403, "not_permitted"},
        {"/header", NULL, 400, "bad_request"},
        {"/header", "X-Doc: plan\r\nX-Doc: plan\r\n", 400, "bad_request"},
        {"/header", "X-Doc: plan\r\nx-doc: other\r\n", 400, "bad_request"},
        {"/header", "X-Doc: other, plan\r\n", 403, "not_permitted"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++)
        expect(rows[i].target, "bob", NULL, rows[i].fields, rows[i].status, rows[i].reason);
}

/* A rule that the model cannot answer is a mistake at the load, with its place, and not a 503 of every request. */
Test(authorize, rules_that_the_model_does_not_know_are_mistakes, .timeout = 60)
{
    static const struct {
        const char *rule, *message;
    } rows[] = {
        {"      {user: \"user:{claims.sub}\", relation: editor, object: \"document:{path.id}\"}\n", "editor"},
        {"      {user: \"user:{claims.sub}\", relation: viewer, object: \"dokument:{path.id}\"}\n", "dokument"},
        {"      {user: \"robot:{claims.sub}\", relation: viewer, object: \"document:{path.id}\"}\n", "robot"},
        {"      {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.id}\", contextual_tuples: "
         "[{user: "
         "\"user:{claims.sub}\", relation: boss, object: \"group:x\"}]}\n",
         "boss"},
        {"      {user: \"user:{claims.sub}\", relation: viewer, object: \"document:{path.id}\", contextual_tuples: "
         "[{user: "
         "\"user:{claims.sub}\", relation: parent, object: \"document:x\"}]}\n",
         "does not take this tuple"},
    };
    issuer_init(&issuer);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_buf yaml = {0};
        struct proc p;
        size_t n;
        char place[64];
        sz_buf_printf(
            &yaml,
            "listen:\n  - {address: \"127.0.0.1:1\"}\nupstreams:\n  up: {urls: [\"http://127.0.0.1:1\"]}\n"
            "issuers:\n  test: {issuer: x, audiences: [a], algorithms: [ES256], jwks_file: jwks.json}\n" FGA
            "routes:\n  - id: one\n    match: {path: \"/x/{id}\"}\n    auth: {issuers: [test]}\n    upstream: up\n"
            "    authorize:\n%s",
            rows[i].rule);
        const char *path = scratch_write("rule.yaml", sz_buf_slice(&yaml));
        const char *argv[] = {SZ_BINARY, "check", "-c", path, NULL};
        char name[16];
        snprintf(name, sizeof(name), "check%zu", i);
        cr_expect_eq(proc_run(&p, name, 10, argv), 1);
        char *log = file_read(p.log, &n);
        unsigned line = 0;
        for (size_t k = 0; k < yaml.n; k++)
            line += yaml.p[k] == '\n';
        snprintf(place, sizeof(place), "rule.yaml:%u:", line); /* the last one */
        cr_expect(strstr(log, rows[i].message) != NULL && strstr(log, place) != NULL, "wanted %s %s, got %s", place,
                  rows[i].message, log);
        free(log);
        sz_buf_fini(&yaml);
    }
    scratch_remove();
}
