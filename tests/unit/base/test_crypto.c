/* secret.c, hash.c: published vectors, edges, and that field lists cannot collide. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "subzero/crypto.h"

static void expect_hex(const uint8_t *got, size_t n, const char *want)
{
    char hex[129] = {0};
    sz_hex_encode(got, n, hex);
    cr_expect_str_eq(hex, want);
}

Test(crypto, sha256_vectors)
{
    uint8_t out[32];
    sz_sha256(SZ_NONE, out);
    expect_hex(out, 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    sz_sha256(SZ_S("abc"), out);
    expect_hex(out, 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* Cut anywhere, and gone on with twice from a copy. */
Test(crypto, sha256_in_parts)
{
    char bytes[200];
    uint8_t whole[32], parts[32], again[32];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 7);
    sz_sha256(sz_slice(bytes, sizeof(bytes)), whole);
    for (size_t at = 0; at <= sizeof(bytes); at++) {
        struct sz_sha256_state state, copy;
        sz_sha256_begin(&state);
        sz_sha256_add(&state, sz_slice(bytes, at));
        copy = state;
        sz_sha256_add(&copy, SZ_S("another end"));
        sz_sha256_end(&copy, again);
        sz_sha256_add(&state, sz_slice(bytes + at, sizeof(bytes) - at));
        sz_sha256_end(&state, parts);
        cr_assert_arr_eq(parts, whole, 32, "cut at %zu", at);
        cr_assert_arr_neq(again, whole, 32);
    }
}

Test(crypto, an_hmac_key_serves_again_and_again)
{
    struct sz_hmac_key key;
    uint8_t want[32], got[32];
    sz_hmac_key_set(&key, SZ_S("Jefe"));
    sz_hmac_sha256(SZ_S("Jefe"), SZ_S("what do ya want for nothing?"), want);
    for (int i = 0; i < 3; i++) {
        sz_hmac_with(&key, SZ_S("something else"), got);
        cr_expect_arr_neq(got, want, 32);
        sz_hmac_with(&key, SZ_S("what do ya want for nothing?"), got);
        cr_expect_arr_eq(got, want, 32);
    }
    const struct sz_slice pieces[] = {SZ_S("what do ya "), SZ_S(""), SZ_NONE, SZ_S("want for nothing?")};
    sz_hmac_pieces(&key, pieces, SZ_COUNT(pieces), got);
    cr_expect_arr_eq(got, want, 32);
}

Test(crypto, hmac_vectors_of_rfc_4231)
{
    char long_key[131];
    memset(long_key, 0xAA, sizeof(long_key));
    static const char key4[] =
        "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19";
    char cd[50];
    memset(cd, 0xCD, sizeof(cd));
    const struct {
        struct sz_slice key, data;
        const char *mac;
    } rows[] = {
        {sz_slice("\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", 20),
         SZ_S("Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {SZ_S("Jefe"), SZ_S("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {sz_slice(key4, 25), sz_slice(cd, 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {sz_slice(long_key, 131), SZ_S("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        uint8_t out[32];
        sz_hmac_sha256(rows[i].key, rows[i].data, out);
        expect_hex(out, 32, rows[i].mac);
    }
    uint8_t a[32], b[32];
    sz_hmac_sha256(SZ_NONE, SZ_NONE, a);
    sz_hmac_sha256(SZ_S(""), SZ_S(""), b);
    cr_expect_arr_eq(a, b, 32);
}

Test(crypto, siphash_vectors)
{
    struct sz_key128 key;
    char in[15];
    for (int i = 0; i < 16; i++)
        key.b[i] = (uint8_t)i;
    for (int i = 0; i < 15; i++)
        in[i] = (char)i;
    /* The reference implementation's vectors for the empty and the 15-byte input. */
    struct sz_hash128 h = sz_hash128(&key, SZ_NONE);
    expect_hex((uint8_t *)h.w, 16, "a3817f04ba25a8e66df67214c7550293");
    uint64_t h64 = sz_hash64(&key, sz_slice(in, 15));
    expect_hex((uint8_t *)&h64, 8, "e545be4961ca29a1");
    cr_expect(sz_hash128_eq(h, sz_hash128(&key, SZ_S(""))));
    cr_expect_not(sz_hash128_eq(h, sz_hash128(&key, SZ_S("x"))));
}

Test(crypto, field_lists_cannot_collide)
{
    static const struct {
        uint8_t type;
        struct sz_slice value;
    } lists[][3] = {
        {{1, SZ_S("a")}, {2, SZ_S("bc")}, {3, SZ_S("")}},           {{1, SZ_S("ab")}, {2, SZ_S("c")}, {3, SZ_S("")}},
        {{1, SZ_S("")}, {2, SZ_S("abc")}, {3, SZ_S("")}},           {{1, SZ_NONE}, {2, SZ_S("abc")}, {3, SZ_S("")}},
        {{1, SZ_S("abc")}, {2, SZ_S("")}, {3, SZ_S("")}},           {{1, SZ_S("a")}, {3, SZ_S("bc")}, {2, SZ_S("")}},
        {{1, SZ_S("a\2\2\0\0\0bc")}, {3, SZ_S("")}, {3, SZ_S("")}},
    };
    struct sz_buf keys[SZ_COUNT(lists)] = {{0}};
    for (size_t i = 0; i < SZ_COUNT(lists); i++) {
        for (size_t k = 0; k < 3; k++)
            sz_key_field(&keys[i], lists[i][k].type, lists[i][k].value);
        for (size_t k = 0; k < i; k++)
            cr_expect_not(sz_eq(sz_buf_slice(&keys[i]), sz_buf_slice(&keys[k])), "%zu and %zu", i, k);
    }
    for (size_t i = 0; i < SZ_COUNT(lists); i++)
        sz_buf_fini(&keys[i]);
}

Test(crypto, secrets)
{
    sz_crypto_init();
    cr_expect(sz_secret_eq(SZ_S("same"), SZ_S("same")));
    cr_expect_not(sz_secret_eq(SZ_S("same"), SZ_S("samE")));
    cr_expect_not(sz_secret_eq(SZ_S("same"), SZ_S("sam")));
    cr_expect(sz_secret_eq(SZ_NONE, SZ_S("")));
    char a[32] = {0}, b[32] = {0};
    sz_random(a, sizeof(a));
    sz_random(b, sizeof(b));
    cr_expect_arr_neq(a, b, sizeof(a));
    sz_wipe(a, sizeof(a));
    cr_expect_eq(a[0] | a[31], 0);
    sz_wipe(NULL, 0);
}

static void *hash_some(void *arg)
{
    uint8_t *out = arg;
    for (int i = 0; i < 100; i++)
        sz_sha256(SZ_S("abc"), out);
    return NULL;
}

Test(crypto, each_thread_has_its_own_context)
{
    pthread_t threads[4];
    uint8_t out[4][32];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, hash_some, out[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        expect_hex(out[i], 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}

Test(crypto, a_field_is_its_head_and_its_value)
{
    static const struct sz_slice values[] = {SZ_NONE, SZ_S(""), SZ_S("value")};
    for (size_t i = 0; i < SZ_COUNT(values); i++) {
        struct sz_buf field = {0};
        uint8_t head[SZ_KEY_HEAD];
        sz_key_field(&field, 7, values[i]);
        cr_expect(sz_eq(sz_sub(sz_buf_slice(&field), 0, SZ_KEY_HEAD), sz_key_head(7, values[i], head)));
        cr_expect(sz_eq(sz_from(sz_buf_slice(&field), SZ_KEY_HEAD), sz_slice("value", values[i].n)));
        sz_buf_fini(&field);
    }
}
