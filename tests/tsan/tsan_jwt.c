/*
 * Three threads verify tokens of two keys while one swaps the issuer's key set between {a}, {a, b} and {b}, and a
 * fourth kind of thread comes and goes, so that what threads keep prepared is dropped in every way there is.
 * ThreadSanitizer watches; the program itself checks that a token verifies exactly as far as some set
 * that was there meanwhile allows: never with a broken signature, and by the key that signed it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fga/issuer.h"
#include "subzero/crypto.h"

enum { VERIFIERS = 3, ROUNDS = 1500, SWAPS = 600 };

/* Not instrumented: its reference counts are atomic, but ThreadSanitizer cannot see them order a free behind a last
 * use. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libcrypto.so\nrace:libcrypto.so\n";
}

static struct sz_conf_issuer issuer;
static struct sz_conf conf;
static struct sz_issuers *issuers;
static struct sz_slice documents[3]; /* {a}, {a, b}, {b} */
static struct sz_slice good[2], bad;
static struct sz_arena arena;
static atomic_bool done;

static void fail(const char *what)
{
    fprintf(stderr, "tsan_jwt: %s\n", what);
    abort();
}

static struct sz_signer *new_key(struct sz_slice *jwk)
{
    struct sz_buf private = {0}, document = {0};
    struct sz_text why;
    if (sz_key_generate(SZ_ALG_ES256, &private) != 0)
        fail("no key");
    struct sz_signer *signer = sz_signer_new(sz_buf_slice(&private), &why);
    if (signer == NULL || sz_signer_jwks(signer, &document) != 0)
        fail("no signer");
    struct sz_slice set = sz_buf_slice(&document); /* {"keys":[...]} */
    *jwk = sz_pool_dup(&arena.pool, sz_sub(set, 9, set.n - 11));
    sz_buf_fini(&private);
    sz_buf_fini(&document);
    return signer;
}

static void make_tokens(void)
{
    struct sz_slice jwk[2], claims = SZ_S("{\"iss\":\"https://issuer.test/\",\"exp\":4102444800,\"sub\":\"a\"}");
    for (int i = 0; i < 2; i++) {
        struct sz_signer *signer = new_key(&jwk[i]);
        if (sz_signer_sign(signer, SZ_ALG_ES256, "at+jwt", claims, &arena.pool, &good[i]) != 0)
            fail("cannot sign");
        sz_signer_free(&signer);
    }
    struct sz_slice copy = sz_pool_dup(&arena.pool, good[0]);
    char *last = (char *)copy.p + copy.n - 10;
    *last = *last == 'A' ? 'B' : 'A';
    bad = copy;
    documents[0] = sz_pool_printf(&arena.pool, "{\"keys\":[%.*s]}", SZ_FMT(jwk[0]));
    documents[1] = sz_pool_printf(&arena.pool, "{\"keys\":[%.*s,%.*s]}", SZ_FMT(jwk[0]), SZ_FMT(jwk[1]));
    documents[2] = sz_pool_printf(&arena.pool, "{\"keys\":[%.*s]}", SZ_FMT(jwk[1]));
}

static struct sz_jwks *parse(struct sz_slice document)
{
    struct sz_jwks *keys;
    struct sz_text why;
    if (sz_jwks_parse(document, issuers->v[0].id, SZ_JWKS_PUBLIC, NULL, &keys, &why) != 0)
        fail(why.s);
    return keys;
}

static void verify_rounds(unsigned rounds)
{
    static const struct sz_wall now = {INT64_C(1767225600) * 1000000};
    struct sz_identity id;
    struct sz_verified verified;
    for (unsigned i = 0; i < rounds; i++) {
        if (sz_jwt_verify(issuers, i % 3 == 2 ? bad : good[i % 3], now, &id, &verified) != 0)
            fail("broke");
        if (verified.reason == SZ_REASON_allowed && i % 3 == 2)
            fail("a broken signature verified");
        if (verified.reason != SZ_REASON_allowed && verified.reason != SZ_REASON_invalid_token)
            fail(verified.detail.s);
        if (verified.reason == SZ_REASON_allowed) /* may have been swapped out since: either answer is right */
            (void)sz_issuer_key_alive(issuers, id.issuer, id.key_id);
        (void)sz_issuers_generation(issuers);
        (void)sz_issuers_usable(issuers);
    }
}

static void *verifier(void *arg)
{
    (void)arg;
    verify_rounds(ROUNDS);
    return NULL;
}

static void *passer_by(void *arg)
{
    (void)arg;
    verify_rounds(4);
    return NULL;
}

static void *visitors(void *arg)
{
    (void)arg;
    while (!atomic_load(&done)) {
        pthread_t id;
        if (pthread_create(&id, NULL, passer_by, NULL) != 0)
            fail("no thread");
        pthread_join(id, NULL);
    }
    return NULL;
}

static void *swapper(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < SWAPS; i++)
        sz_key_slot_set(issuers->v[0].slot, parse(documents[i % 3]));
    return NULL;
}

static void start(void)
{
    struct sz_mistakes mistakes;
    issuer = (struct sz_conf_issuer){.name = SZ_S("tsan"),
                                     .issuer = SZ_S("https://issuer.test/"),
                                     .any_audience = true,
                                     .algorithms = 1u << SZ_ALG_ES256,
                                     .secret = {SZ_S("0123456789abcdef0123456789abcdef"), true},
                                     .settings = 1};
    conf.issuers = &issuer;
    conf.issuers_n = 1;
    sz_mistakes_init(&mistakes);
    issuers = sz_issuers_new(&conf, &mistakes);
    if (issuers == NULL)
        fail("no issuers");
    sz_mistakes_fini(&mistakes);
    sz_key_slot_set(issuers->v[0].slot, parse(documents[1]));
}

int main(void)
{
    pthread_t ids[VERIFIERS], swap, visit;
    sz_crypto_init();
    sz_arena_init(&arena);
    make_tokens();
    start();
    bool ok = pthread_create(&swap, NULL, swapper, NULL) == 0 && pthread_create(&visit, NULL, visitors, NULL) == 0;
    for (int i = 0; i < VERIFIERS && ok; i++)
        ok = pthread_create(&ids[i], NULL, verifier, NULL) == 0;
    if (!ok)
        fail("no thread");
    for (int i = 0; i < VERIFIERS; i++)
        pthread_join(ids[i], NULL);
    pthread_join(swap, NULL);
    atomic_store(&done, true);
    pthread_join(visit, NULL);
    sz_issuers_free(&issuers);
    sz_arena_fini(&arena);
    puts("tsan_jwt: ok");
    return 0;
}
