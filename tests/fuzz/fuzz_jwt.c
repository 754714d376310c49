/*
 * Tokens.  The first byte chooses how the rest is used: as a whole token; as header and payload (a newline between
 * them) that get a good signature under a shared secret, so that the claims behind it are reached; or as JSON text,
 * where the reader of tokens must agree with sz_json_check and jansson.
 *
 * Whatever comes out as allowed must be an identity that reads back within its bounds.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/json_tree.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "0123456789abcdef0123456789abcdef";
static const struct sz_slice audience = {"api", 3}, scopes[] = {{"read", 4}, {"write", 5}};
static const struct sz_slice claims[] = {{"role", 4}, {"groups", 6}};
static struct sz_conf_issuer issuer;
static struct sz_conf conf;
static struct sz_issuers *issuers;

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libFuzzer's */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    struct sz_mistakes mistakes;
    sz_crypto_init();
    issuer = (struct sz_conf_issuer){
        .name = SZ_S("fuzz"),
        .issuer = SZ_S("https://issuer.test/"),
        .audiences = {&audience, 1},
        .algorithms = (1u << SZ_ALG_COUNT) - 1,
        .secret = {{secret, sizeof(secret) - 1}, true},
        .leeway = SZ_SEC(60),
        .tenant_claim = SZ_S("org"),
        .permissions_claim = SZ_S("permissions"),
        .settings = 1,
    };
    conf.issuers = &issuer;
    conf.issuers_n = 1;
    conf.vocabulary.scopes = (struct sz_strings){scopes, SZ_COUNT(scopes)};
    conf.vocabulary.claims = (struct sz_strings){claims, SZ_COUNT(claims)};
    sz_mistakes_init(&mistakes);
    issuers = sz_issuers_new(&conf, &mistakes);
    SZ_ASSERT(issuers != NULL);
    sz_mistakes_fini(&mistakes);
    return 0;
}

static void check_identity(const struct sz_identity *id)
{
    SZ_ASSERT(id->text_n <= SZ_IDENTITY_TEXT && id->key_id != 0 && id->generation != 0 &&
              id->kind == SZ_CREDENTIAL_JWT);
    SZ_ASSERT((size_t)id->subject.at + id->subject.n <= id->text_n);
    SZ_ASSERT((size_t)id->client.at + id->client.n <= id->text_n);
    SZ_ASSERT((size_t)id->tenant.at + id->tenant.n <= id->text_n);
    for (unsigned slot = 0; slot < SZ_COUNT(claims); slot++) {
        struct sz_claim claim = sz_identity_claim(id, slot);
        struct sz_slice rest = claim.text, item;
        while (claim.type == SZ_CLAIM_STRINGS && sz_claim_next(&rest, &item))
            SZ_ASSERT(item.p >= id->text && item.p + item.n <= id->text + id->text_n);
    }
}

static void verify(struct sz_slice token)
{
    struct sz_identity id;
    struct sz_verified verified;
    struct sz_wall now = {INT64_C(1767225600) * 1000000};
    SZ_ASSERT(sz_jwt_verify(issuers, token, now, &id, &verified) == 0);
    if (verified.reason == SZ_REASON_allowed)
        check_identity(&id);
    SZ_ASSERT(verified.reason != SZ_REASON_allowed || sz_credential_kind(token) == SZ_CREDENTIAL_JWT);
}

static void describe(struct sz_slice token)
{
    struct sz_buf out = {0};
    struct sz_text why = {""};
    if (sz_jwt_describe(token, (struct sz_wall){0}, &out, &why) != 0)
        SZ_ASSERT(why.s[0] != '\0');
    sz_buf_fini(&out);
}

static void verify_signed(struct sz_slice input)
{
    struct sz_slice header, payload = input;
    uint8_t mac[32];
    if (!sz_split(&payload, '\n', &header) || payload.p == NULL || input.n > SZ_TOKEN_MAX)
        return;
    char *token = sz_xmalloc(2 * input.n + 64);
    size_t n = sz_b64url_encode(header.p, header.n, token);
    token[n++] = '.';
    n += sz_b64url_encode(payload.p, payload.n, token + n);
    sz_hmac_sha256(sz_cstr(secret), sz_slice(token, n), mac);
    token[n++] = '.';
    n += sz_b64url_encode(mac, sizeof(mac), token + n);
    verify(sz_slice(token, n));
    free(token);
}

/* jansson refuses numbers that overflow; we keep their literal. */
static bool is_number_overflow(const json_error_t *error)
{
    return json_error_code(error) == json_error_numeric_overflow;
}

static void compare_readers(struct sz_slice input)
{
    static struct sz_json_tree tree;
    json_error_t error;
    size_t at;
    char *text = sz_xmalloc(input.n + 1);
    memcpy(text, input.p, input.n);
    int rc = sz_json_read(&tree, text, input.n);
    if (rc != -E2BIG && sz_json_check(input, SZ_JSON_TREE_DEPTH, &at) == 0) {
        json_t *value = json_loadb(input.p, input.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
        SZ_ASSERT((rc == 0) == (value != NULL) || (value == NULL && is_number_overflow(&error)));
        SZ_ASSERT(rc != 0 || !json_is_object(value) || sz_json_members(&tree, tree.v) == json_object_size(value));
        json_decref(value);
    } else {
        SZ_ASSERT(rc != 0);
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct sz_slice input = sz_slice(data + 1, size - 1);
    switch (data[0] % 3) {
    case 0:
        verify(input);
        describe(input);
        break;
    case 1:
        verify_signed(input);
        break;
    default:
        compare_readers(input);
        break;
    }
    return 0;
}
