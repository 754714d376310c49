/* Class introspection: what a token is worth when its provider answers this. */
#include <criterion/criterion.h>

#include "conformance/issuer_fixture.h"
#include "conformance/vectors.h"
#include "fga/introspect.h"

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    bool either, want = vector_expects_accept(vector, &either);
    json_t *response = json_object_get(vector, "response"), *keys = json_pack("{s:[]}", "keys");
    struct issuer_fixture f;
    struct sz_identity id;
    struct sz_verified verified;
    struct sz_wall now = {json_integer_value(json_object_get(vector, "now")) * 1000000};
    struct sz_introspected answer = {
        .status = (int)json_integer_value(json_object_get(response, "status")),
        .content_type = sz_cstr(vector_text(response, "content_type")),
        .body = vector_bytes(response, "body_b64", pool),
    };
    issuer_fixture_asked(&f, json_object_get(vector, "policy"), keys);
    int rc = sz_introspection_read(f.issuers, 0, &answer, now, &id, &verified);
    /* A bound token is no bearer token: the route refuses it without the proof. */
    bool accepted = rc == 0 && verified.reason == SZ_REASON_allowed && (id.flags & SZ_ID_SENDER_BOUND) == 0;
    sz_text_set(got, "%d %s (%s)", rc, sz_reason_row(verified.reason)->name, verified.detail.s);
    issuer_fixture_fini(&f);
    json_decref(keys);
    /* What is no clear answer must be "could not ask", never "no" (and never yes). */
    return either || (accepted == want && (rc == 0 || verified.reason == SZ_REASON_identity_unavailable));
}

Test(vectors, introspection)
{
    vectors_run("introspection", passes);
}
