/*
 * Keyed hashes, digests, secrets and text encodings.  Implemented on libsodium
 * and OpenSSL inside src/base; no library type shows here.
 */
#ifndef SUBZERO_CRYPTO_H
#define SUBZERO_CRYPTO_H

#include "subzero/base.h"

struct sz_key128 { /* SipHash key */
    uint8_t b[16];
};
struct sz_hash128 { /* a keyed fingerprint; as words for comparing */
    uint64_t w[2];
};

/* Once per process, before threads; aborts when the system has no randomness. */
void sz_crypto_init(void);
void sz_random(void *out, size_t n);
void sz_wipe(void *p, size_t n); /* not optimised away */
/* Constant time in the content; the lengths are public. */
bool sz_secret_eq(struct sz_slice a, struct sz_slice b);

/* SipHash-2-4-128 (libsodium); 250 ns for 900 bytes. */
struct sz_hash128 sz_hash128(const struct sz_key128 *key, struct sz_slice s);
uint64_t sz_hash64(const struct sz_key128 *key, struct sz_slice s);
static inline bool sz_hash128_eq(struct sz_hash128 a, struct sz_hash128 b)
{
    return ((a.w[0] ^ b.w[0]) | (a.w[1] ^ b.w[1])) == 0;
}

/* Any thread; 0.5 us for 900 bytes with SHA-NI. */
void sz_sha256(struct sz_slice s, uint8_t out[32]);
void sz_sha1(struct sz_slice s, uint8_t out[20]); /* to name Redis's scripts; for nothing else */
void sz_hmac_sha256(struct sz_slice key, struct sz_slice s, uint8_t out[32]);

/* SHA-256 of what comes in parts.  A value: an assignment copies it, and texts that begin alike share that work. */
struct sz_sha256_state {
    uint64_t opaque[14];
};
void sz_sha256_begin(struct sz_sha256_state *state);
void sz_sha256_add(struct sz_sha256_state *state, struct sz_slice s);
void sz_sha256_end(struct sz_sha256_state *state, uint8_t out[32]);

/* An HMAC key that is used often: both its blocks are worked in once.  A secret: wiped by whoever holds it. */
struct sz_hmac_key {
    struct sz_sha256_state inner, outer;
};
void sz_hmac_key_set(struct sz_hmac_key *hmac, struct sz_slice key);
void sz_hmac_with(const struct sz_hmac_key *hmac, struct sz_slice s, uint8_t out[32]);
/* The same of what stands in pieces. */
void sz_hmac_pieces(const struct sz_hmac_key *hmac, const struct sz_slice *pieces, size_t n, uint8_t out[32]);

/* Ed25519 (RFC 8032).  The seed is the private key as a JWK holds it in `d`. */
struct sz_ed25519 {
    uint8_t seed_and_public[64]; /* a secret: wiped by whoever holds it */
};
void sz_ed25519_from_seed(const uint8_t seed[32], struct sz_ed25519 *key);
void sz_ed25519_public(const struct sz_ed25519 *key, uint8_t out[32]);
void sz_ed25519_sign(const struct sz_ed25519 *key, struct sz_slice s, uint8_t out[64]);
bool sz_ed25519_verify(const uint8_t public_key[32], struct sz_slice s, const uint8_t signature[64]);

/*
 * Key builder: typed, length-prefixed fields so that no two different field lists
 * give the same bytes.  A cache key is the keyed hash of such a buffer.
 */
void sz_key_field(struct sz_buf *b, uint8_t type, struct sz_slice value);
/* What stands before the value, for a value that is too long to be copied: sz_hmac_pieces. */
enum { SZ_KEY_HEAD = 5 };
struct sz_slice sz_key_head(uint8_t type, struct sz_slice value, uint8_t out[SZ_KEY_HEAD]);

/* base64url without padding, canonical (RFC 4648 section 5; unused bits must be 0).  Sizes: */
#define SZ_B64_LEN(n)   (((n)*4 + 2) / 3)
#define SZ_B64_BYTES(n) ((n) / 4 * 3 + ((n) % 4 == 3 ? 2 : (n) % 4 == 2 ? 1 : 0))
size_t sz_b64url_encode(const void *in, size_t n, char *out); /* writes SZ_B64_LEN(n), no NUL */
/* -EINVAL: not canonical base64url.  out holds SZ_B64_BYTES(s.n). */
int sz_b64url_decode(struct sz_slice s, void *out, size_t *out_n) SZ_MUST_CHECK;
/* Standard padded base64, canonical. */
int sz_b64_decode(struct sz_slice s, void *out, size_t *out_n) SZ_MUST_CHECK;
size_t sz_b64_encode(const void *in, size_t n, char *out);
/* 0..15, or -1 when c is no hex digit. */
static inline int sz_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
void sz_hex_encode(const void *in, size_t n, char *out); /* 2n lower-case digits, no NUL */

/*
 * Strict JSON text check, before a parser sees it: UTF-8 valid, no BOM, one value,
 * nesting <= depth, no lone surrogate escape, no escaped NUL in a key.  jansson then parses (with
 * JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL); its own depth limit is 2,048.
 * 0, or -EINVAL with *at = the offending offset.
 */
int sz_json_check(struct sz_slice text, unsigned depth, size_t *at) SZ_MUST_CHECK;

#endif
