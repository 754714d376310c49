/* What somebody with full access to Redis could try with sealed values and names; then that seals open. */
#include <criterion/criterion.h>

#include "subzero/crypto.h"
#include "subzero/fleet.h"

static const char key_a[33] = "0123456789abcdef0123456789abcdef";
static const char key_b[33] = "0123456789abcdef0123456789abcdeF";
static const char key_c[33] = "fedcba9876543210fedcba9876543210";
static const struct sz_seal_bind bind = {"identity", SZ_S("subzero:id:v1:alice"), 7};
static const int64_t NOW = 1000, LATER = 2000;

static struct sz_slice key_of(const char *key)
{
    return sz_slice(key, 32);
}

static struct sz_fleet *fleet_of(const char *key)
{
    struct sz_fleet *fleet = sz_fleet_new(key_of(key), NULL, 0);
    cr_assert_not_null(fleet);
    return fleet;
}

static enum sz_unseal opened(const struct sz_fleet *fleet, const struct sz_seal_bind *as, struct sz_slice sealed,
                             int64_t now, struct sz_slice plain)
{
    struct sz_buf out = {0};
    int64_t expires = -1;
    sz_buf_adds(&out, SZ_S("before"));
    enum sz_unseal answer = sz_unseal(fleet, as, now, sealed, &out, &expires);
    struct sz_slice after = sz_from(sz_buf_slice(&out), 6);
    cr_assert(sz_starts_with(sz_buf_slice(&out), SZ_S("before")));
    if (answer == SZ_UNSEAL_OK)
        cr_assert(sz_eq(after, plain));
    else
        cr_assert_eq(after.n, 0, "nothing is appended unless it opened");
    sz_buf_fini(&out);
    return answer;
}

Test(seal, a_flipped_bit_anywhere_does_not_open)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    struct sz_buf sealed = {0};
    sz_seal(fleet, &bind, LATER, SZ_S("alice"), &sealed);
    for (size_t i = 0; i < sealed.n * 8; i++) {
        sealed.p[i / 8] ^= (char)(1 << i % 8);
        cr_assert_eq(opened(fleet, &bind, sz_buf_slice(&sealed), NOW, SZ_NONE), SZ_UNSEAL_BAD, "bit %zu", i);
        sealed.p[i / 8] ^= (char)(1 << i % 8);
    }
    cr_assert_eq(opened(fleet, &bind, sz_buf_slice(&sealed), NOW, SZ_S("alice")), SZ_UNSEAL_OK);
    sz_buf_fini(&sealed);
    sz_fleet_free(&fleet);
}

Test(seal, a_cut_or_grown_value_does_not_open)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    struct sz_buf sealed = {0};
    sz_seal(fleet, &bind, LATER, SZ_S("alice"), &sealed);
    for (size_t n = 0; n < sealed.n; n++)
        cr_assert_eq(opened(fleet, &bind, sz_sub(sz_buf_slice(&sealed), 0, n), NOW, SZ_NONE), SZ_UNSEAL_BAD, "%zu", n);
    sz_buf_adds(&sealed, sz_slice("\0", 1));
    cr_assert_eq(opened(fleet, &bind, sz_buf_slice(&sealed), NOW, SZ_NONE), SZ_UNSEAL_BAD);
    cr_assert_eq(opened(fleet, &bind, SZ_NONE, NOW, SZ_NONE), SZ_UNSEAL_BAD);
    sz_buf_fini(&sealed);
    sz_fleet_free(&fleet);
}

Test(seal, moved_to_another_place_it_does_not_open)
{
    struct sz_fleet *fleet = fleet_of(key_a), *other = fleet_of(key_b);
    struct sz_buf sealed = {0};
    const struct sz_seal_bind places[] = {
        {"identity", SZ_S("subzero:id:v1:bob"), 7},   /* alice's entry over bob's key */
        {"decision", SZ_S("subzero:id:v1:alice"), 7}, /* of another kind */
        {"identity", SZ_S("subzero:id:v1:alice"), 8}, /* another generation of settings */
        {"identity", SZ_S("subzero:id:v1:alice\0"), 7} /* what begins alike is not alike */,
        {"identitys", SZ_S("ubzero:id:v1:alice"), 7}, /* fields do not run into each other */
        {"", SZ_S(""), 0},
    };
    sz_seal(fleet, &bind, LATER, SZ_S("alice"), &sealed);
    for (size_t i = 0; i < SZ_COUNT(places); i++)
        cr_assert_eq(opened(fleet, &places[i], sz_buf_slice(&sealed), NOW, SZ_NONE), SZ_UNSEAL_BAD, "place %zu", i);
    cr_assert_eq(opened(other, &bind, sz_buf_slice(&sealed), NOW, SZ_NONE), SZ_UNSEAL_BAD, "another fleet's");
    sz_buf_fini(&sealed);
    sz_fleet_free(&fleet);
    sz_fleet_free(&other);
}

Test(seal, ends_when_it_says_and_not_when_redis_says)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    const struct {
        int64_t expires, now;
        enum sz_unseal answer;
    } rows[] = {
        {1000, 999, SZ_UNSEAL_OK},
        {1000, 1000, SZ_UNSEAL_EXPIRED},
        {1000, 1001, SZ_UNSEAL_EXPIRED},
        {0, 1, SZ_UNSEAL_EXPIRED},
        {-1, 0, SZ_UNSEAL_EXPIRED},
        {INT64_MIN, 0, SZ_UNSEAL_EXPIRED},
        {INT64_MAX, INT64_MAX - 1, SZ_UNSEAL_OK},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_buf sealed = {0};
        sz_seal(fleet, &bind, rows[i].expires, SZ_S("x"), &sealed);
        cr_assert_eq(opened(fleet, &bind, sz_buf_slice(&sealed), rows[i].now, SZ_S("x")), rows[i].answer, "row %zu", i);
        sz_buf_fini(&sealed);
    }
    sz_fleet_free(&fleet);
}

Test(seal, the_same_value_is_never_sealed_alike_and_shows_nothing)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    struct sz_buf one = {0}, two = {0};
    sz_seal(fleet, &bind, LATER, SZ_S("alice of the sales department"), &one);
    sz_seal(fleet, &bind, LATER, SZ_S("alice of the sales department"), &two);
    cr_assert_eq(one.n, 29 + SZ_SEAL_OVERHEAD);
    cr_assert_not(sz_eq(sz_from(sz_buf_slice(&one), 8), sz_from(sz_buf_slice(&two), 8)));
    cr_assert_null(memmem(one.p, one.n, "alice", 5));
    sz_buf_fini(&one);
    sz_buf_fini(&two);
    sz_fleet_free(&fleet);
}

Test(seal, every_length_opens_in_place)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    char plain[3000];
    memset(plain, 'p', sizeof(plain));
    for (size_t n = 0; n <= sizeof(plain); n += n < 70 ? 1 : 293) {
        struct sz_buf sealed = {0};
        sz_buf_adds(&sealed, SZ_S("in front"));
        sz_seal(fleet, &bind, INT64_MAX, sz_slice(plain, n), &sealed);
        cr_assert_eq(opened(fleet, &bind, sz_from(sz_buf_slice(&sealed), 8), NOW, sz_slice(plain, n)), SZ_UNSEAL_OK);
        sz_buf_fini(&sealed);
    }
    sz_fleet_free(&fleet);
}

Test(seal, what_does_not_fit_is_not_appended)
{
    struct sz_fleet *fleet = fleet_of(key_a);
    struct sz_buf small = {.limit = SZ_SEAL_OVERHEAD}, sealed = {0}, out = {.limit = 4};
    int64_t expires;
    sz_seal(fleet, &bind, LATER, SZ_S("alice"), &small);
    cr_assert(small.overflow && small.n == 0);
    sz_seal(fleet, &bind, LATER, SZ_S("alice"), &sealed);
    cr_assert_eq(sz_unseal(fleet, &bind, NOW, sz_buf_slice(&sealed), &out, &expires), SZ_UNSEAL_BAD);
    cr_assert(out.overflow && out.n == 0);
    sz_buf_fini(&small);
    sz_buf_fini(&sealed);
    sz_buf_fini(&out);
    sz_fleet_free(&fleet);
}

/* The first key seals, all open: a fleet changes its keys one instance after another. */
Test(seal, keys_rotate_without_a_flush)
{
    const struct sz_slice with_b[] = {key_of(key_b), key_of(key_a)}, with_c[] = {key_of(key_c), key_of(key_b)};
    struct sz_fleet *first = fleet_of(key_a), *second = sz_fleet_new(key_of(key_a), with_b, 2),
                    *third = sz_fleet_new(key_of(key_a), with_c, 2);
    struct sz_buf by_a = {0}, by_b = {0};
    sz_seal(first, &bind, LATER, SZ_S("a"), &by_a);
    sz_seal(second, &bind, LATER, SZ_S("b"), &by_b);
    cr_assert_eq(opened(second, &bind, sz_buf_slice(&by_a), NOW, SZ_S("a")), SZ_UNSEAL_OK, "the old key still opens");
    cr_assert_eq(opened(third, &bind, sz_buf_slice(&by_b), NOW, SZ_S("b")), SZ_UNSEAL_OK);
    cr_assert_eq(opened(first, &bind, sz_buf_slice(&by_b), NOW, SZ_NONE), SZ_UNSEAL_BAD, "a key that it does not have");
    cr_assert_eq(opened(third, &bind, sz_buf_slice(&by_a), NOW, SZ_NONE), SZ_UNSEAL_BAD, "a key that is gone");
    sz_buf_fini(&by_a);
    sz_buf_fini(&by_b);
    sz_fleet_free(&first);
    sz_fleet_free(&second);
    sz_fleet_free(&third);
}

Test(fleet, refuses_keys_of_another_length)
{
    const struct sz_slice odd[] = {key_of(key_a), SZ_S("short")};
    struct sz_slice many[SZ_SEAL_KEYS_MAX + 1];
    for (size_t i = 0; i < SZ_COUNT(many); i++)
        many[i] = key_of(key_a);
    cr_assert_null(sz_fleet_new(SZ_NONE, NULL, 0));
    cr_assert_null(sz_fleet_new(sz_slice(key_a, 31), NULL, 0));
    cr_assert_null(sz_fleet_new(sz_slice(key_a, 33), NULL, 0));
    cr_assert_null(sz_fleet_new(key_of(key_a), odd, 2));
    cr_assert_null(sz_fleet_new(key_of(key_a), many, SZ_COUNT(many)));
}

Test(fleet, names_are_the_same_on_every_instance_and_nowhere_else)
{
    struct sz_fleet *one = fleet_of(key_a), *two = fleet_of(key_a), *other = fleet_of(key_b), *drawn = sz_fleet_draw();
    const struct sz_slice seals[] = {key_of(key_c)};
    struct sz_fleet *rotated = sz_fleet_new(key_of(key_a), seals, 1);
    uint8_t a[32], b[32], hash[32];
    sz_fleet_name(one, "token", SZ_S("abc"), a);
    sz_fleet_name(two, "token", SZ_S("abc"), b);
    cr_assert_arr_eq(a, b, 32);
    sz_fleet_name(rotated, "token", SZ_S("abc"), b);
    cr_assert_arr_eq(a, b, 32, "new seals make no new names");
    sz_fleet_name(other, "token", SZ_S("abc"), b);
    cr_assert_arr_neq(a, b, 32);
    sz_fleet_name(drawn, "token", SZ_S("abc"), b);
    cr_assert_arr_neq(a, b, 32);
    sz_fleet_name(one, "toke", SZ_S("nabc"), b);
    cr_assert_arr_neq(a, b, 32);
    sz_fleet_name(one, "subject", SZ_S("abc"), b);
    cr_assert_arr_neq(a, b, 32);
    struct sz_hmac_key namer;
    sz_fleet_namer(one, "token", &namer);
    sz_hmac_with(&namer, SZ_S("abc"), b);
    cr_assert_arr_eq(a, b, 32, "prepared, it gives the same names");
    sz_sha256(SZ_S("abc"), hash);
    cr_assert_arr_neq(a, hash, 32, "nor a hash that anybody could guess");
    sz_hmac_sha256(key_of(key_a), SZ_S("abc"), hash);
    cr_assert_arr_neq(a, hash, 32, "nor one under the key as it lies in its file");
    sz_fleet_free(&one);
    sz_fleet_free(&two);
    sz_fleet_free(&other);
    sz_fleet_free(&drawn);
    sz_fleet_free(&rotated);
}
