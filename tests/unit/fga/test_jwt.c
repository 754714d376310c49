/* fga/jwt.c: shape, order and reasons, through the public face. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "subzero/crypto.h"
#include "unit/fga/issuer_world.h"

TestSuite(jwt);

#define GOOD "{\"iss\":\"https://issuer.test/\",\"aud\":\"api\",\"sub\":\"alice\",\"exp\":" WORLD_LATER "}"

static const struct {
    const char *header, *payload;
    enum sz_reason reason;
} rows[] = {
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"JWT\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"jwt\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"application/AT+JWT\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"dpop+jwt\"}", GOOD, SZ_REASON_invalid_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"typ\":\"\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"cty\":\"JWT\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"jku\":\"http://127.0.0.1:1/\"}", GOOD, SZ_REASON_allowed},
    {"{\"alg\":\"none\",\"kid\":\"k1\"}", GOOD, SZ_REASON_algorithm_not_allowed},
    {"{\"alg\":\"es256\",\"kid\":\"k1\"}", GOOD, SZ_REASON_algorithm_not_allowed},
    {"{\"alg\":\"HS256\",\"kid\":\"k1\"}", GOOD, SZ_REASON_algorithm_not_allowed},
    {"{\"alg\":\"RS256\",\"kid\":\"k1\"}", GOOD, SZ_REASON_algorithm_not_allowed},
    {"{\"alg\":\"ES256\",\"kid\":\"k2\"}", GOOD, SZ_REASON_invalid_token},
    {"{\"kid\":\"k1\"}", GOOD, SZ_REASON_malformed_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\",\"crit\":[\"exp\"]}", GOOD, SZ_REASON_malformed_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"", GOOD, SZ_REASON_malformed_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "", SZ_REASON_malformed_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "[]", SZ_REASON_malformed_token},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "{\"iss\":1}", SZ_REASON_wrong_issuer},
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "{}", SZ_REASON_wrong_issuer},
    {"{\"alg\":\"none\"}", "{}", SZ_REASON_wrong_issuer}, /* the issuer's list decides, so the issuer comes first */
    {"{\"alg\":\"ES256\",\"kid\":\"k1\"}", "{\"iss\":\"https://issuer.test/\",\"iss\":\"x\"}",
     SZ_REASON_malformed_token},
};

Test(jwt, every_row_has_its_reason)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        struct sz_slice token = world_sign(&w, sz_cstr(rows[i].header), sz_cstr(rows[i].payload));
        enum sz_reason reason = world_judge(&w, token);
        cr_expect_eq(reason, rows[i].reason, "%s %s: %s", rows[i].header, rows[i].payload, sz_reason_row(reason)->name);
    }
    world_fini(&w);
}

Test(jwt, length_is_bounded_before_decoding)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    char *text = malloc(SZ_TOKEN_MAX + 1);
    memset(text, 'A', SZ_TOKEN_MAX + 1);
    cr_expect_eq(world_judge(&w, sz_slice(text, SZ_TOKEN_MAX + 1)), SZ_REASON_malformed_token);
    cr_expect_eq(world_judge(&w, sz_slice(text, SZ_TOKEN_MAX)), SZ_REASON_malformed_token);
    text[10] = text[20] = '.';
    cr_expect_eq(world_judge(&w, sz_slice(text, SZ_TOKEN_MAX)), SZ_REASON_malformed_token);
    cr_expect_eq(world_judge(&w, SZ_S("")), SZ_REASON_malformed_token);
    free(text);
    world_fini(&w);
}

/* Any byte of a good token changed: refused, and nothing worse. */
Test(jwt, no_changed_byte_passes)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    struct sz_slice token = world_token(&w, GOOD);
    char *copy = malloc(token.n);
    static const unsigned char flips[] = {0x01, 0x20, 0x80, 0xff};
    for (size_t i = 0; i < token.n; i++) {
        for (size_t j = 0; j < SZ_COUNT(flips); j++) {
            memcpy(copy, token.p, token.n);
            copy[i] = (char)(copy[i] ^ flips[j]);
            cr_expect_neq(world_judge(&w, sz_slice(copy, token.n)), SZ_REASON_allowed, "byte %zu", i);
        }
        cr_expect_neq(world_judge(&w, sz_sub(token, 0, i)), SZ_REASON_allowed);
    }
    free(copy);
    world_fini(&w);
}

Test(jwt, only_canonical_base64url_passes_though_signed)
{
    struct world w;
    world_init(&w);
    world_open(&w);
    struct sz_slice token = world_token(&w, GOOD), rest = token, header, payload;
    cr_assert(sz_split(&rest, '.', &header) && sz_split(&rest, '.', &payload));
    static const char *const tails[] = {"=", "==", " ", "\n", "%3D", "\xc3\xa9"};
    for (size_t i = 0; i < SZ_COUNT(tails); i++) {
        struct sz_slice odd = sz_pool_printf(&w.arena.pool, "%.*s%s", SZ_FMT(payload), tails[i]);
        cr_expect_eq(world_judge(&w, world_sign_encoded(&w, header, odd)), SZ_REASON_malformed_token, "%s", tails[i]);
        odd = sz_pool_printf(&w.arena.pool, "%.*s%s", SZ_FMT(header), tails[i]);
        cr_expect_eq(world_judge(&w, world_sign_encoded(&w, odd, payload)), SZ_REASON_malformed_token, "%s", tails[i]);
    }
    world_fini(&w);
}

Test(jwt, a_secret_issuer_takes_its_secret_and_nothing_else)
{
    static const char secret[] = "0123456789abcdef0123456789abcdef";
    struct world w;
    world_init(&w);
    w.issuer[0].algorithms = 1u << SZ_ALG_HS256;
    w.issuer[0].jwks_file = SZ_NONE;
    w.issuer[0].secret = (struct sz_secret){sz_cstr(secret), true};
    world_open(&w);
    char room[512];
    uint8_t mac[32];
    size_t n = sz_b64url_encode("{\"alg\":\"HS256\"}", 15, room);
    room[n++] = '.';
    n += sz_b64url_encode(GOOD, sizeof(GOOD) - 1, room + n);
    sz_hmac_sha256(sz_cstr(secret), sz_slice(room, n), mac);
    room[n] = '.';
    size_t whole = n + 1 + sz_b64url_encode(mac, 32, room + n + 1);
    cr_expect_eq(world_judge(&w, sz_slice(room, whole)), SZ_REASON_allowed);
    cr_expect_eq(world_judge(&w, sz_slice(room, n + 1)), SZ_REASON_invalid_token, "empty signature");
    sz_hmac_sha256(SZ_S("another secret of thirty-two byte"), sz_slice(room, n), mac);
    sz_b64url_encode(mac, 32, room + n + 1);
    cr_expect_eq(world_judge(&w, sz_slice(room, whole)), SZ_REASON_invalid_token);
    cr_expect_eq(world_judge(&w, world_token(&w, GOOD)), SZ_REASON_algorithm_not_allowed);
    world_fini(&w);
}

static const struct {
    const char *token;
    enum sz_credential_kind kind;
} kinds[] = {
    {"", SZ_CREDENTIAL_NONE},
    {"opaque", SZ_CREDENTIAL_OPAQUE},
    {"a.b.c", SZ_CREDENTIAL_OPAQUE},
    {"e30.e30.", SZ_CREDENTIAL_JWT}, /* {} */
    {"e30.!.!", SZ_CREDENTIAL_JWT},  /* a malformed JWT, not an opaque token */
    {"e30.e30.x.y", SZ_CREDENTIAL_OPAQUE},
    {"e30.e30.x.y.z", SZ_CREDENTIAL_OPAQUE}, /* JWE */
    {"W10.e30.x", SZ_CREDENTIAL_OPAQUE},     /* [] */
    {"e30=.e30.x", SZ_CREDENTIAL_OPAQUE},
    {"eyJhbGciOiJub25lIn0.e30.", SZ_CREDENTIAL_JWT}, /* alg none must be refused as a JWT, not asked about elsewhere */
};

Test(jwt, kinds_of_credentials)
{
    sz_crypto_init();
    for (size_t i = 0; i < SZ_COUNT(kinds); i++)
        cr_expect_eq(sz_credential_kind(sz_cstr(kinds[i].token)), kinds[i].kind, "%s", kinds[i].token);
}

Test(jwt, a_description_is_ascii_and_says_nothing_of_trust)
{
    struct world w;
    struct sz_buf text = {0};
    struct sz_text why = {""};
    world_init(&w);
    struct sz_slice token =
        world_token(&w, "{\"sub\":\"\\u001b[2J\xe2\x80\xae\",\"exp\":" WORLD_LATER ",\"iat\":1e300}");
    cr_assert_eq(sz_jwt_describe(token, (struct sz_wall){WORLD_NOW * 1000000}, &text, &why), 0, "%s", why.s);
    for (size_t i = 0; i < text.n; i++)
        cr_expect((text.p[i] >= 0x20 && text.p[i] < 0x7f) || text.p[i] == '\n');
    cr_expect(memmem(text.p, text.n, "in 1h", 5) != NULL);
    cr_expect(sz_jwt_describe(SZ_S("a.b.c"), (struct sz_wall){0}, &text, &why) != 0);
    cr_expect(sz_jwt_describe(SZ_S("x"), (struct sz_wall){0}, &text, &why) != 0);
    sz_buf_fini(&text);
    world_fini(&w);
}
