/*
 * Class mtls: tokens bound to a client certificate (RFC 8705), against the certificate of the connection.  What binds
 * is in the identity; the comparison is the one that the pipeline makes.
 */
#include <criterion/criterion.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "conformance/issuer_fixture.h"
#include "conformance/vectors.h"
#include "subzero/crypto.h"

static bool thumbprint(const json_t *pem, uint8_t out[32])
{
    if (!json_is_string(pem))
        return false;
    BIO *bio = BIO_new_mem_buf(json_string_value(pem), (int)json_string_length(pem));
    X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    cr_assert(cert != NULL && X509_digest(cert, EVP_sha256(), out, NULL) == 1);
    X509_free(cert);
    BIO_free(bio);
    return true;
}

static bool proven(const struct sz_identity *id, const json_t *vector)
{
    uint8_t presented[32];
    bool required = json_is_true(json_object_get(json_object_get(vector, "policy"), "require_mtls_bound"));
    if ((id->flags & SZ_ID_SENDER_BOUND) == 0)
        return !required;
    return (id->flags & SZ_ID_HAS_X5T) != 0 && (id->flags & SZ_ID_CNF_OTHER) == 0 &&
           thumbprint(json_object_get(vector, "client_cert_pem"), presented) &&
           sz_secret_eq(sz_slice(presented, 32), sz_slice(id->x5t, 32));
}

static bool passes(json_t *vector, struct sz_pool *pool, struct sz_text *got)
{
    (void)pool;
    bool either, want = vector_expects_accept(vector, &either);
    struct issuer_fixture f;
    struct sz_identity id;
    struct sz_verified verified;
    struct sz_wall now = {INT64_C(1767225600) * 1000000}; /* 2026; the tokens live until 2100 */
    issuer_fixture_init(&f, NULL, json_object_get(vector, "jwks"));
    cr_assert_eq(sz_jwt_verify(f.issuers, sz_cstr(vector_text(vector, "token")), now, &id, &verified), 0);
    bool accepted = verified.reason == SZ_REASON_allowed && proven(&id, vector);
    sz_text_set(got, "%s (%s)", sz_reason_row(verified.reason)->name, verified.detail.s);
    issuer_fixture_fini(&f);
    return either || accepted == want;
}

Test(vectors, mtls, .timeout = 60)
{
    vectors_run("mtls", passes);
}
