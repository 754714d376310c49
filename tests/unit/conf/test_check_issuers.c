/* Two issuers with one `issuer` string: refused unless every route says that it does not matter. */
#include <criterion/criterion.h>

#include "subzero/conf.h"

#define HEAD                                                                            \
    "listen: [{address: \"127.0.0.1:1\"}]\n"                                            \
    "issuers:\n"                                                                        \
    "  a: {issuer: x, audiences: [api], algorithms: [ES256], jwks_file: " SZ_SOURCE_DIR \
    "/deploy/examples/jwks.json}\n"                                                     \
    "  b: {issuer: x, audiences: [api], algorithms: [ES256], jwks_file: " SZ_SOURCE_DIR \
    "/deploy/examples/jwks.json}\n"                                                     \
    "upstreams: {u: {urls: [\"http://127.0.0.1:2\"]}}\n"                                \
    "routes:\n"
#define BOTH "  - {id: both, match: {path: /both}, auth: {issuers: [a, b]}, shared_subjects: true, upstream: u}\n"

/* NULL: loads without a mistake. */
static void check(const char *text, const char *want)
{
    struct sz_mistakes m;
    sz_mistakes_init(&m);
    struct sz_conf *conf = sz_conf_load_text(sz_cstr(text), "test.yaml", &m);
    bool found = want == NULL && conf != NULL;
    for (size_t i = 0; i < m.n; i++) {
        char *message = sz_pool_strdup(&m.arena.pool, m.v[i].message);
        found |= want != NULL && strstr(message, want) != NULL;
        cr_expect(want != NULL || m.v[i].warning, "%s", message);
    }
    cr_expect(found, "no '%s' for\n%s", want != NULL ? want : "success", text);
    sz_conf_free(&conf);
    sz_mistakes_fini(&m);
}

Test(check_issuers, one_string_needs_shared_subjects_everywhere)
{
    check(HEAD BOTH, NULL);
    check(HEAD "  - {id: one, match: {path: /one}, auth: {issuers: [a]}, upstream: u}\n", "same 'issuer'");
    check(HEAD BOTH "  - {id: one, match: {path: /one}, auth: {issuers: [b]}, upstream: u}\n", "not so one");
    check(HEAD "  - {id: both, match: {path: /both}, auth: {issuers: [a, b]}, upstream: u}\n", "not so both");
}
