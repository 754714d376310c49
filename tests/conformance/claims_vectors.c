/* Class claims: a good signature (ES256), judged by the claims, at the time and under the policy of the vector. */
#include <criterion/criterion.h>

#include "conformance/issuer_fixture.h"
#include "conformance/vectors.h"

static bool has_scopes(const struct issuer_fixture *f, const struct sz_identity *id)
{
    for (unsigned bit = 0; bit < f->conf.vocabulary.scopes.n; bit++) {
        if (!sz_identity_has_scope(id, bit))
            return false;
    }
    return true;
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    (void)pool;
    bool either, want = vector_expects_accept(vector, &either);
    struct issuer_fixture f;
    struct sz_identity id;
    struct sz_verified verified;
    struct sz_wall now = {json_integer_value(json_object_get(vector, "now")) * 1000000};
    issuer_fixture_init(&f, json_object_get(vector, "policy"), json_object_get(vector, "jwks"));
    cr_assert_eq(sz_jwt_verify(f.issuers, sz_cstr(vector_text(vector, "token")), now, &id, &verified), 0);
    bool accepted = verified.reason == SZ_REASON_allowed && has_scopes(&f, &id);
    sz_text_set(got, "%s (%s)", sz_reason_row(verified.reason)->name, verified.detail.s);
    issuer_fixture_fini(&f);
    return either || accepted == want;
}

Test(vectors, claims, .timeout = 60)
{
    vectors_run("claims", passes);
}
