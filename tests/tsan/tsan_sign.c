/*
 * Four threads sign with one signer, as all workers do with their snapshot's: through libjwt (RS256, ES256) and past it
 * (EdDSA).  Every token must verify; ThreadSanitizer watches what is ours.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/issuer.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { SIGNERS = 4, ROUNDS = 60 };

const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libcrypto.so\nrace:libcrypto.so\n";
}

#define CLAIMS SZ_S("{\"iss\":\"https://issuer.test/\",\"exp\":4102444800,\"sub\":\"a\"}")
static struct sz_signer *signers[3];
static struct sz_issuers *issuers;

static void fail(const char *what)
{
    fprintf(stderr, "tsan_sign: %s\n", what);
    abort();
}

static void sign_one(struct sz_signer *signer, enum sz_alg alg, struct sz_arena *arena)
{
    static const struct sz_wall now = {INT64_C(1767225600) * 1000000};
    struct sz_slice token;
    struct sz_identity id;
    struct sz_verified verified;
    if (sz_signer_sign(signer, alg, "JWT", CLAIMS, &arena->pool, &token) != 0)
        fail("cannot sign");
    if (sz_jwt_verify(issuers, token, now, &id, &verified) != 0 || verified.reason != SZ_REASON_allowed)
        fail(verified.detail.s);
}

static void *work(void *arg)
{
    struct sz_arena arena;
    (void)arg;
    sz_arena_init(&arena);
    for (unsigned i = 0; i < ROUNDS; i++) {
        sign_one(signers[0], SZ_ALG_ES256, &arena);
        sign_one(signers[2], SZ_ALG_EDDSA, &arena);
        if (i % 4 == 0)
            sign_one(signers[1], SZ_ALG_RS256, &arena);
    }
    sz_arena_fini(&arena);
    return NULL;
}

/* Both public keys into one set of the only issuer. */
static void start(struct sz_conf *conf)
{
    static const enum sz_alg algs[3] = {SZ_ALG_ES256, SZ_ALG_RS256, SZ_ALG_EDDSA};
    struct sz_buf set = {0};
    struct sz_mistakes mistakes;
    struct sz_jwks *keys;
    struct sz_text why;
    sz_mistakes_init(&mistakes);
    issuers = sz_issuers_new(conf, &mistakes);
    if (issuers == NULL)
        fail("no issuers");
    sz_mistakes_fini(&mistakes);
    sz_buf_printf(&set, "{\"keys\":[");
    for (int i = 0; i < 3; i++) {
        struct sz_buf private = {0}, document = {0};
        if (sz_key_generate(algs[i], &private) != 0)
            fail("no key");
        signers[i] = sz_signer_new(sz_buf_slice(&private), &why);
        if (signers[i] == NULL || sz_signer_jwks(signers[i], &document) != 0)
            fail("no signer");
        sz_buf_printf(&set, "%s%.*s", i > 0 ? "," : "", SZ_FMT(sz_sub(sz_buf_slice(&document), 9, document.n - 11)));
        sz_buf_fini(&private);
        sz_buf_fini(&document);
    }
    sz_buf_printf(&set, "]}");
    if (sz_jwks_parse(sz_buf_slice(&set), issuers->v[0].id, SZ_JWKS_PUBLIC, NULL, &keys, &why) != 0 || keys->n != 3)
        fail(why.s);
    sz_key_slot_set(issuers->v[0].slot, keys);
    sz_buf_fini(&set);
}

int main(void)
{
    struct sz_conf_issuer issuer = {.name = SZ_S("tsan"),
                                    .issuer = SZ_S("https://issuer.test/"),
                                    .any_audience = true,
                                    .algorithms = 1u << SZ_ALG_ES256 | 1u << SZ_ALG_RS256 | 1u << SZ_ALG_EDDSA,
                                    .secret = {SZ_S("0123456789abcdef0123456789abcdef"), true},
                                    .settings = 1};
    struct sz_conf conf = {.issuers = &issuer, .issuers_n = 1};
    pthread_t threads[SIGNERS];
    sz_crypto_init();
    start(&conf);
    for (int i = 0; i < SIGNERS; i++) {
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            fail("no thread");
    }
    for (int i = 0; i < SIGNERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++)
        sz_signer_free(&signers[i]);
    sz_issuers_free(&issuers);
    puts("tsan_sign: ok");
    return 0;
}
