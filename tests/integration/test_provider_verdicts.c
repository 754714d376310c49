/* One policy, one verdict: by JWT, by introspection, by the cache; and nothing crosses from one issuer to another. */
#include "provider_kit.h"

TestSuite(provider_verdicts, .init = provider_kit_init, .fini = provider_kit_fini, .timeout = 120);

static int ask_at(const char *target, const char *token, char reason[64])
{
    struct http1_response r = {0};
    int status = http1_ask(kit_gateway.port, "GET", target, token, NULL, NULL, &r);
    if (!http1_field(&r, "x-subzero-reason", reason, 64))
        reason[0] = '\0';
    http1_response_fini(&r);
    return status;
}

static char *policy_yaml(void)
{
    char *yaml;
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "cache: {l1: {ttl_opaque: 60s}}\n"
                       "issuers:\n"
                       "  idp: {issuer: \"%s\", audiences: [api, other], algorithms: [ES256], discovery: auto, "
                       "introspection: {endpoint: \"%s/introspect\", client_id: gateway, client_secret_file: \"%s\"}}\n"
                       "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                       "routes:\n"
                       "  - id: policy\n"
                       "    match: {path: /x}\n"
                       "    auth: {issuers: [idp], audiences: [api], scopes: [read], claims: {tier: [gold]}}\n"
                       "    upstream: up\n",
                       provider_url(kit_provider), provider_url(kit_provider),
                       scratch_write("secret", sz_cstr(PROVIDER_SECRET))) > 0);
    return yaml;
}

Test(provider_verdicts, are_the_same_by_jwt_by_introspection_and_from_the_cache)
{
    static const struct {
        const char *claims;
        long ttl;
        int status;
    } cases[] = {
        {"\"scope\":\"read write\",\"tier\":\"gold\"", 600, 200},
        {"\"scp\":[\"read\"],\"tier\":\"gold\"", 600, 200},
        {"\"scope\":\"read\",\"tier\":[\"gold\",\"x\"]", 600, 200},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"aud\":[\"x\",\"api\"]", 600, 200},
        {"\"scope\":\"write\",\"tier\":\"gold\"", 600, 403},
        {"\"tier\":\"gold\"", 600, 403},
        {"\"scope\":\"READ\",\"tier\":\"gold\"", 600, 403},
        {"\"scope\":\"read\",\"tier\":\"silver\"", 600, 403},
        {"\"scope\":\"read\"", 600, 403},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"aud\":\"other\"", 600, 401},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"aud\":\"x\"", 600, 401},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"aud\":[]", 600, 401},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"nbf\":4102444800", 600, 401},
        {"\"scope\":\"read\",\"tier\":\"gold\",\"cnf\":{\"jkt\":\"x\"}", 600, 401},
        {"\"scope\":\"read\",\"tier\":\"gold\"", -3600, 401},
    };
    char *yaml = policy_yaml();
    cr_assert(gateway_start(&kit_gateway, yaml, upstream_port(kit_upstream)));
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        for (int order = 0; order < 2; order++) {
            char *jwt = provider_jwt(kit_provider, "alice", cases[i].ttl, cases[i].claims);
            char *opaque = provider_opaque(kit_provider, "alice", cases[i].ttl, cases[i].claims);
            const char *tokens[4] = {order ? opaque : jwt, order ? opaque : jwt, order ? jwt : opaque,
                                     order ? jwt : opaque};
            for (size_t k = 0; k < SZ_COUNT(tokens); k++) {
                char reason[64];
                int status = ask_at("/x", tokens[k], reason);
                cr_expect_eq(status, cases[i].status, "%s, %s, %s: %d %s", cases[i].claims,
                             tokens[k] == jwt ? "JWT" : "opaque", k % 2 ? "again" : "first", status, reason);
            }
            free(jwt);
            free(opaque);
        }
    }
    free(yaml);
}

Test(provider_verdicts, nothing_crosses_from_one_issuer_to_another)
{
    char *yaml, reason[64];
    struct provider *other = provider_start(&(struct provider_options){0});
    cr_assert(asprintf(&yaml,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "issuers:\n"
                       "  a: {issuer: \"%s\", audiences: [api], algorithms: [ES256]}\n"
                       "  b: {issuer: \"%s\", audiences: [api], algorithms: [ES256]}\n"
                       "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                       "routes:\n"
                       "  - {id: a, match: {path: /a}, auth: {issuers: [a]}, upstream: up}\n"
                       "  - {id: b, match: {path: /b}, auth: {issuers: [b]}, upstream: up}\n",
                       provider_url(kit_provider), provider_url(other)) > 0);
    cr_assert(gateway_start(&kit_gateway, yaml, upstream_port(kit_upstream)));
    char *of_a = provider_jwt(kit_provider, "alice", 600, NULL), *of_b = provider_jwt(other, "alice", 600, NULL);
    double end = kit_now() + 5; /* ready with the first key set: the other one may still be on its way */
    while (ask_at("/b", of_b, reason) != 200 && kit_now() < end)
        kit_sleep(20);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(ask_at("/a", of_a, reason), 200);
        cr_expect(ask_at("/b", of_a, reason) == 401 && strcmp(reason, "wrong_issuer") == 0, "%s", reason);
        cr_expect_eq(ask_at("/b", of_b, reason), 200);
        cr_expect(ask_at("/a", of_b, reason) == 401 && strcmp(reason, "wrong_issuer") == 0, "%s", reason);
    }
    provider_stop(&other);
    free(of_a);
    free(of_b);
    free(yaml);
}
