/*
 * Keyed fingerprints (SipHash-2-4, libsodium) and digests (SHA-256, OpenSSL for its SHA-NI code).
 *
 * SHA-256 goes past OpenSSL's EVP, to the functions that 3.0 calls old: their state is a plain value on the stack that
 * can be copied.  EVP spends more on finding an algorithm and making a context than on hashing a token, and a copy of
 * its context is an allocation each time.
 */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sodium.h>

#include "subzero/crypto.h"

_Static_assert(sizeof(struct sz_key128) == crypto_shorthash_siphashx24_KEYBYTES, "SipHash key");
_Static_assert(sizeof(struct sz_hash128) == crypto_shorthash_siphashx24_BYTES, "SipHash-128");
_Static_assert(sizeof(struct sz_sha256_state) >= sizeof(SHA256_CTX), "SHA-256 state");

enum { BLOCK = 64, DIGEST = 32 };

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

/* ---- SHA-256 -------------------------------------------------------------------------------------------------- */

static SHA256_CTX *context_of(struct sz_sha256_state *state)
{
    return (SHA256_CTX *)(void *)state->opaque;
}

void sz_sha256_begin(struct sz_sha256_state *state)
{
    SZ_ASSERT(SHA256_Init(context_of(state)) == 1);
}

void sz_sha256_add(struct sz_sha256_state *state, struct sz_slice s)
{
    SZ_ASSERT(s.n == 0 || SHA256_Update(context_of(state), s.p, s.n) == 1);
}

void sz_sha256_end(struct sz_sha256_state *state, uint8_t out[DIGEST])
{
    SZ_ASSERT(SHA256_Final(out, context_of(state)) == 1);
}

void sz_sha256(struct sz_slice s, uint8_t out[DIGEST])
{
    struct sz_sha256_state state;
    sz_sha256_begin(&state);
    sz_sha256_add(&state, s);
    sz_sha256_end(&state, out);
}

void sz_sha1(struct sz_slice s, uint8_t out[20])
{
    SZ_ASSERT(EVP_Digest(s.p != NULL ? s.p : "", s.n, out, NULL, EVP_sha1(), NULL) == 1);
}

/* ---- HMAC (RFC 2104) ------------------------------------------------------------------------------------------- */

void sz_hmac_key_set(struct sz_hmac_key *hmac, struct sz_slice key)
{
    uint8_t pad[BLOCK] = {0};
    if (key.n > BLOCK)
        sz_sha256(key, pad);
    else if (key.n != 0)
        memcpy(pad, key.p, key.n);
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36;
    sz_sha256_begin(&hmac->inner);
    sz_sha256_add(&hmac->inner, sz_slice(pad, BLOCK));
    for (size_t i = 0; i < BLOCK; i++)
        pad[i] ^= 0x36 ^ 0x5C;
    sz_sha256_begin(&hmac->outer);
    sz_sha256_add(&hmac->outer, sz_slice(pad, BLOCK));
    sz_wipe(pad, sizeof(pad));
}

void sz_hmac_pieces(const struct sz_hmac_key *hmac, const struct sz_slice *pieces, size_t n, uint8_t out[DIGEST])
{
    struct sz_sha256_state state = hmac->inner;
    for (size_t i = 0; i < n; i++)
        sz_sha256_add(&state, pieces[i]);
    sz_sha256_end(&state, out);
    state = hmac->outer;
    sz_sha256_add(&state, sz_slice(out, DIGEST));
    sz_sha256_end(&state, out);
    sz_wipe(&state, sizeof(state));
}

void sz_hmac_with(const struct sz_hmac_key *hmac, struct sz_slice s, uint8_t out[DIGEST])
{
    sz_hmac_pieces(hmac, &s, 1, out);
}

void sz_hmac_sha256(struct sz_slice key, struct sz_slice s, uint8_t out[DIGEST])
{
    struct sz_hmac_key hmac;
    sz_hmac_key_set(&hmac, key);
    sz_hmac_with(&hmac, s, out);
    sz_wipe(&hmac, sizeof(hmac));
}

/* type, length (32 bits, little-endian), bytes.  An absent value has a length of its own: it is not "". */
struct sz_slice sz_key_head(uint8_t type, struct sz_slice value, uint8_t out[SZ_KEY_HEAD])
{
    SZ_ASSERT(value.n < UINT32_MAX);
    uint32_t n = value.p == NULL ? UINT32_MAX : (uint32_t)value.n;
    out[0] = type;
    for (int i = 0; i < 4; i++)
        out[1 + i] = (uint8_t)(n >> 8 * i);
    return sz_slice(out, SZ_KEY_HEAD);
}

void sz_key_field(struct sz_buf *b, uint8_t type, struct sz_slice value)
{
    uint8_t head[SZ_KEY_HEAD];
    sz_buf_adds(b, sz_key_head(type, value, head));
    sz_buf_adds(b, value);
}
