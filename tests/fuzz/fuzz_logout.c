/*
 * What strangers may send: the form of a logout, and the claims of a logout token behind a good signature; and what
 * Redis or a disk may hold as a record of a revocation.  The first byte chooses.
 */
#include "cache/revocation_file.h"
#include "edge/logout.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char secret[] = "0123456789abcdef0123456789abcdef";
static const struct sz_slice client = {"rp", 2};
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
        .audiences = {&client, 1},
        .algorithms = (1u << SZ_ALG_COUNT) - 1,
        .secret = {{secret, sizeof(secret) - 1}, true},
        .leeway = SZ_SEC(60),
        .logout = {.path = SZ_S("/out"), .client_ids = {&client, 1}},
        .settings = 1,
    };
    conf.issuers = &issuer;
    conf.issuers_n = 1;
    sz_mistakes_init(&mistakes);
    issuers = sz_issuers_new(&conf, &mistakes);
    SZ_ASSERT(issuers != NULL);
    sz_mistakes_fini(&mistakes);
    return 0;
}

static void verify(struct sz_slice token)
{
    struct sz_logout out;
    struct sz_verified verdict;
    if (sz_logout_verify(issuers, SZ_S("/out"), token, (struct sz_wall){INT64_C(1767225600000000)}, &out, &verdict) ==
            0 &&
        verdict.reason == SZ_REASON_allowed)
        SZ_ASSERT(out.sub_n + out.sid_n > 0 && out.sub_n <= SZ_LOGOUT_TEXT && out.sid_n <= SZ_LOGOUT_TEXT &&
                  out.until > 1767225600 && verdict.issuer == 0);
}

/* {"alg":"HS256"} and these claims under the secret. */
static void verify_signed(struct sz_slice claims)
{
    static const struct sz_slice header = SZ_S("eyJhbGciOiJIUzI1NiJ9.");
    uint8_t mac[32];
    char token[SZ_TOKEN_MAX];
    if (claims.n > 8 * 1024)
        return;
    memcpy(token, header.p, header.n);
    size_t n = header.n + sz_b64url_encode(claims.p, claims.n, token + header.n);
    sz_hmac_sha256(sz_slice(secret, sizeof(secret) - 1), sz_slice(token, n), mac);
    token[n++] = '.';
    n += sz_b64url_encode(mac, sizeof(mac), token + n);
    verify(sz_slice(token, n));
}

static void read_form(struct sz_slice body)
{
    struct sz_arena arena;
    sz_arena_init(&arena);
    struct sz_slice token = sz_logout_form(body, &arena.pool);
    SZ_ASSERT(token.n <= SZ_TOKEN_MAX);
    if (token.p != NULL)
        verify(token);
    sz_arena_fini(&arena);
}

static void read_record(struct sz_slice bytes)
{
    struct sz_revocation r;
    struct sz_buf again = {0};
    size_t within;
    if (sz_revocation_decode(bytes, &r, &within) && within < SZ_REVOCATION_BATCH) {
        sz_revocation_encode(&r, within, &again);
        SZ_ASSERT(r.kind < SZ_REVOKE_KINDS &&
                  sz_starts_with(sz_buf_slice(&again), sz_sub(bytes, 0, SZ_REVOCATION_PLAIN)));
    }
    sz_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct sz_slice rest = sz_slice(data + 1, size - 1);
    switch (data[0] % 3) {
    case 0:
        read_form(rest);
        break;
    case 1:
        verify_signed(rest);
        break;
    default:
        read_record(rest);
        break;
    }
    return 0;
}
