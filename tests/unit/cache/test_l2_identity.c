/* Identities as bytes: what goes in comes out, and whatever else is refused, byte by byte. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "subzero/l2.h"

static void add(struct sz_identity *id, const char *text, struct sz_text_ref *ref)
{
    cr_assert_eq(sz_identity_add_text(id, sz_cstr(text), ref), 0);
}

static void fill(struct sz_identity *id)
{
    sz_identity_init(id);
    id->kind = SZ_CREDENTIAL_JWT;
    id->generation = 0x1122334455667788u;
    id->exp = 4102444800;
    id->iat = -5;
    id->flags = SZ_ID_HAS_IAT | SZ_ID_HAS_JTI | SZ_ID_HAS_SID | SZ_ID_HAS_X5T | SZ_ID_SENDER_BOUND;
    id->jti = 42;
    id->sid = 43;
    id->audiences = 0x81;
    id->scopes[0] = 5;
    id->scopes[2] = 1;
    memset(id->x5t, 7, sizeof(id->x5t));
    add(id, "alice", &id->subject);
    add(id, "", &id->client);
    add(id, "acme", &id->tenant);
    cr_assert_eq(sz_identity_add_claim(id, 3, SZ_CLAIM_STRING, SZ_S("gold")), 0);
    cr_assert_eq(sz_identity_add_claim(id, 9, SZ_CLAIM_BOOL, SZ_S("\1")), 0);
}

static const uint8_t thumb[32] = {1, 2, 3};

Test(l2_identity, comes_back_the_same)
{
    struct sz_identity in, out;
    struct sz_buf bytes = {0};
    uint8_t got[32];
    fill(&in);
    sz_l2_pack(&in, thumb, &bytes);
    cr_assert(sz_l2_unpack(sz_buf_slice(&bytes), &out, got));
    cr_expect(sz_eq(sz_slice(got, 32), sz_slice(thumb, 32)));
    cr_expect_eq(sz_identity_size(&in), sz_identity_size(&out));
    cr_expect(sz_eq(sz_slice(&in, sz_identity_size(&in)), sz_slice(&out, sz_identity_size(&out))));
    cr_expect_lt(bytes.n, 220, "%zu bytes", bytes.n);
    sz_buf_fini(&bytes);
}

Test(l2_identity, what_a_process_counts_for_itself_stays_out)
{
    struct sz_identity in, out;
    struct sz_buf bytes = {0};
    uint8_t got[32];
    fill(&in);
    in.key_id = 7;
    in.issuer = 3;
    in.revocation = 99;
    sz_l2_pack(&in, thumb, &bytes);
    cr_assert(sz_l2_unpack(sz_buf_slice(&bytes), &out, got));
    cr_expect(out.key_id == 0 && out.issuer == 0 && out.revocation == 0);
    sz_buf_fini(&bytes);
}

/* Whatever is read must be safe to use: every text and claim within its bounds. */
static void use(const struct sz_identity *id)
{
    size_t sum = sz_identity_text(id, id->subject).n + sz_identity_text(id, id->tenant).n;
    for (unsigned slot = 0; slot < SZ_CLAIMS_MAX; slot++)
        sum += sz_identity_claim(id, slot).text.n;
    cr_assert_leq(sum, 40u * SZ_IDENTITY_TEXT);
}

Test(l2_identity, cut_longer_and_changed_bytes)
{
    struct sz_identity in, out;
    struct sz_buf bytes = {0};
    uint8_t got[32];
    fill(&in);
    sz_l2_pack(&in, thumb, &bytes);
    for (size_t n = 0; n < bytes.n; n++) {
        char *copy = sz_xmalloc(n + 1); /* exact, so that a sanitizer sees a byte too many */
        memcpy(copy, bytes.p, n);
        cr_expect_not(sz_l2_unpack(sz_slice(copy, n), &out, got), "%zu of %zu", n, bytes.n);
        free(copy);
    }
    for (size_t i = 0; i < bytes.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes.p[i] = (char)(bytes.p[i] ^ 1 << bit);
            if (sz_l2_unpack(sz_buf_slice(&bytes), &out, got))
                use(&out);
            bytes.p[i] = (char)(bytes.p[i] ^ 1 << bit);
        }
    }
    sz_buf_add(&bytes, "x", 1);
    cr_expect_not(sz_l2_unpack(sz_buf_slice(&bytes), &out, got), "one byte more");
    sz_buf_fini(&bytes);
}
