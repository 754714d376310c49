/* Fingerprints: what must differ differs, and nobody outside can compute one. */
#include <criterion/criterion.h>

#include "subzero/cache.h"

static bool same(struct sz_fingerprint a, struct sz_fingerprint b)
{
    return sz_hash128_eq(a.h, b.h);
}

Test(fingerprint, the_same_bytes_mean_something_else_elsewhere)
{
    const struct {
        enum sz_credential_kind kind;
        uint32_t scope;
        struct sz_slice token;
    } rows[] = {
        {SZ_CREDENTIAL_JWT, 0, SZ_S("abc")},          {SZ_CREDENTIAL_JWT, 1, SZ_S("abc")},
        {SZ_CREDENTIAL_OPAQUE, 0, SZ_S("abc")},       {SZ_CREDENTIAL_OPAQUE, 1, SZ_S("abc")},
        {SZ_CREDENTIAL_OPAQUE, 256, SZ_S("abc")},     {SZ_CREDENTIAL_OPAQUE, 1 << 24, SZ_S("abc")},
        {SZ_CREDENTIAL_OPAQUE, 1, SZ_S("abd")},       {SZ_CREDENTIAL_OPAQUE, 1, SZ_S("ab")},
        {SZ_CREDENTIAL_OPAQUE, 1, SZ_S("abc\0")},     {SZ_CREDENTIAL_OPAQUE, 1, SZ_S("\1abc")},
        {SZ_CREDENTIAL_OPAQUE, UINT32_MAX, SZ_S("")}, {SZ_CREDENTIAL_JWT, UINT32_MAX, SZ_S("")},
        {SZ_CREDENTIAL_NONE, 0, SZ_S("abc")},
    };
    struct sz_fingerprint fp[SZ_COUNT(rows)];

    for (int round = 0; round < 2; round++) /* again, with another one's key remembered */
        for (size_t i = 0; i < SZ_COUNT(rows); i++) {
            struct sz_fingerprint now = sz_fingerprint(rows[i].kind, rows[i].scope, rows[i].token);
            cr_assert(round == 0 || same(now, fp[i]), "row %zu", i);
            fp[i] = now;
            for (size_t j = 0; j < i; j++)
                cr_assert_not(same(fp[i], fp[j]), "rows %zu and %zu", i, j);
        }
}

Test(fingerprint, every_byte_counts)
{
    char token[900];
    struct sz_fingerprint whole;

    memset(token, 'x', sizeof(token));
    whole = sz_fingerprint(SZ_CREDENTIAL_JWT, 0, sz_slice(token, sizeof(token)));
    for (size_t i = 0; i < sizeof(token); i++) {
        token[i] ^= 1;
        cr_assert_not(same(whole, sz_fingerprint(SZ_CREDENTIAL_JWT, 0, sz_slice(token, sizeof(token)))), "byte %zu", i);
        token[i] ^= 1;
    }
    cr_assert(same(whole, sz_fingerprint(SZ_CREDENTIAL_JWT, 0, sz_slice(token, sizeof(token)))));
}

Test(fingerprint, is_keyed)
{
    static const struct sz_key128 zero;
    struct sz_fingerprint fp = sz_fingerprint(SZ_CREDENTIAL_JWT, 0, SZ_S("abc"));

    cr_assert_not(sz_hash128_eq(fp.h, sz_hash128(&zero, SZ_S("abc"))));
    cr_assert_not(fp.h.w[0] == 0 && fp.h.w[1] == 0);
}
