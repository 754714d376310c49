/*
 * Keyed fingerprints (SipHash-2-4, libsodium) and digests (SHA-256, OpenSSL for its SHA-NI
 * code).  OpenSSL 3 spends more on finding an algorithm and making a context than on
 * hashing a token, so the algorithm is fetched once and every thread keeps one context.
 * Digests cannot fail at run time: the one failure is a broken OpenSSL, met at the first call.
 */
#include <openssl/evp.h>
#include <pthread.h>
#include <sodium.h>

#include "subzero/crypto.h"

_Static_assert(sizeof(struct sz_key128) == crypto_shorthash_siphashx24_KEYBYTES, "SipHash key");
_Static_assert(sizeof(struct sz_hash128) == crypto_shorthash_siphashx24_BYTES, "SipHash-128");

enum { BLOCK = 64, DIGEST = 32 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_thread_end; /* frees the thread's context */
static EVP_MD *sha256;
static __thread EVP_MD_CTX *context;

struct sz_hash128 sz_hash128(const struct sz_key128 *key, struct sz_slice s)
{
    struct sz_hash128 h;
    crypto_shorthash_siphashx24((unsigned char *)h.w, (const unsigned char *)(s.p != NULL ? s.p : ""), s.n, key->b);
    return h;
}

uint64_t sz_hash64(const struct sz_key128 *key, struct sz_slice s)
{
    uint64_t h;
    crypto_shorthash_siphash24((unsigned char *)&h, (const unsigned char *)(s.p != NULL ? s.p : ""), s.n, key->b);
    return h;
}

static void free_context(void *p)
{
    EVP_MD_CTX_free(p);
}

static void init_once(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    SZ_ASSERT(sha256 != NULL);
    SZ_ASSERT(pthread_key_create(&at_thread_end, free_context) == 0);
}

static EVP_MD_CTX *begin(void)
{
    pthread_once(&once, init_once);
    if (SZ_UNLIKELY(context == NULL)) {
        context = EVP_MD_CTX_new();
        SZ_ASSERT(context != NULL && pthread_setspecific(at_thread_end, context) == 0);
    }
    SZ_ASSERT(EVP_DigestInit_ex2(context, sha256, NULL) == 1);
    return context;
}

static void update(EVP_MD_CTX *ctx, struct sz_slice s)
{
    SZ_ASSERT(s.n == 0 || EVP_DigestUpdate(ctx, s.p, s.n) == 1);
}

static void finish(EVP_MD_CTX *ctx, uint8_t out[DIGEST])
{
    SZ_ASSERT(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
}

void sz_sha256(struct sz_slice s, uint8_t out[32])
{
    EVP_MD_CTX *ctx = begin();
    update(ctx, s);
    finish(ctx, out);
}

void sz_sha1(struct sz_slice s, uint8_t out[20])
{
    SZ_ASSERT(EVP_Digest(s.p != NULL ? s.p : "", s.n, out, NULL, EVP_sha1(), NULL) == 1);
}

/* RFC 2104 on the same context: OpenSSL's own HMAC would allocate a second kind of context. */
void sz_hmac_sha256(struct sz_slice key, struct sz_slice s, uint8_t out[32])
{
    uint8_t pad[BLOCK] = {0};
    if (key.n > BLOCK)
        sz_sha256(key, pad);
    else if (key.n != 0)
        memcpy(pad, key.p, key.n);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    EVP_MD_CTX *ctx = begin();
    update(ctx, sz_slice(pad, BLOCK));
    update(ctx, s);
    uint8_t inner[DIGEST];
    finish(ctx, inner);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5C;
    ctx = begin();
    update(ctx, sz_slice(pad, BLOCK));
    update(ctx, sz_slice(inner, DIGEST));
    finish(ctx, out);
    sz_wipe(pad, sizeof(pad));
    sz_wipe(inner, sizeof(inner));
}

/* type, length (32 bits, little-endian), bytes.  An absent value has a length of its own: it is not "". */
void sz_key_field(struct sz_buf *b, uint8_t type, struct sz_slice value)
{
    SZ_ASSERT(value.n < UINT32_MAX);
    uint32_t n = value.p == NULL ? UINT32_MAX : (uint32_t)value.n;
    uint8_t head[5] = {type, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), (uint8_t)(n >> 24)};
    sz_buf_add(b, head, sizeof(head));
    sz_buf_adds(b, value);
}
