/*
 * OpenSSL 3 spends more on finding an algorithm and making a context than a MAC costs, and about a
 * fifth of an RSA verification.  So digests are fetched once, and each thread keeps one
 * context per key and algorithm.  A context holds its own reference to the key
 * and is found by the key's registered number, which is never reused: it can outlive the key set but
 * never speak for another key.
 */
#include "fga/verify_thread.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#include "fga/key_registry.h"
#include "subzero/crypto.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end;
static EVP_MD *digests[3];
static __thread struct sz_verify_thread *mine;

static const char *const digest_names[3] = {"SHA256", "SHA384", "SHA512"};

static unsigned digest_of(enum sz_alg alg)
{
    switch (alg) {
    case SZ_ALG_HS256:
    case SZ_ALG_RS256:
    case SZ_ALG_PS256:
    case SZ_ALG_ES256:
        return 0;
    case SZ_ALG_HS384:
    case SZ_ALG_RS384:
    case SZ_ALG_PS384:
    case SZ_ALG_ES384:
        return 1;
    case SZ_ALG_HS512:
    case SZ_ALG_RS512:
    case SZ_ALG_PS512:
    case SZ_ALG_ES512:
    case SZ_ALG_EDDSA: /* inside the primitive; asked by nobody */
    case SZ_ALG_COUNT:
        return 2;
    }
    return 2;
}

EVP_MD *sz_alg_md(enum sz_alg alg)
{
    return digests[digest_of(alg)];
}

const char *sz_alg_md_name(enum sz_alg alg)
{
    return digest_names[digest_of(alg)];
}

static void forget_keys(struct sz_verify_thread *t)
{
    for (size_t i = 0; i < SZ_PREPARED_MAX; i++) {
        EVP_PKEY_CTX_free(t->prepared[i].pkey);
        EVP_MAC_CTX_free(t->prepared[i].mac);
        t->prepared[i] = (struct sz_prepared){0};
    }
}

static void free_thread(void *p)
{
    struct sz_verify_thread *t = p;
    forget_keys(t);
    EVP_MD_CTX_free(t->digest);
    free(t);
    mine = NULL;
}

static void init_once(void)
{
    for (size_t i = 0; i < SZ_COUNT(digests); i++) {
        digests[i] = EVP_MD_fetch(NULL, digest_names[i], NULL);
        SZ_ASSERT(digests[i] != NULL);
    }
    SZ_ASSERT(pthread_key_create(&at_thread_end, free_thread) == 0);
}

struct sz_verify_thread *sz_verify_thread(void)
{
    if (SZ_UNLIKELY(mine == NULL)) {
        pthread_once(&once, init_once);
        mine = sz_xcalloc(1, sizeof(*mine));
        mine->digest = EVP_MD_CTX_new();
        mine->epoch = sz_keys_epoch();
        SZ_ASSERT(mine->digest != NULL && pthread_setspecific(at_thread_end, mine) == 0);
    }
    uint64_t epoch = sz_keys_epoch();
    if (SZ_UNLIKELY(mine->epoch != epoch)) {
        forget_keys(mine);
        mine->epoch = epoch;
    }
    return mine;
}
