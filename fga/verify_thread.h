/*
 * What one thread keeps prepared between verifications, freed when the thread ends.
 * Private to the JWS files.
 */
#ifndef SZ_FGA_VERIFY_THREAD_H
#define SZ_FGA_VERIFY_THREAD_H

#include <openssl/types.h>

#include "fga/json_tree.h"
#include "fga/jws_verify.h"

enum { SZ_PREPARED_MAX = 64, SZ_HEADERS_KEPT = 16, SZ_HEADER_KEPT_BYTES = 512 };

struct sz_prepared { /* one key with one algorithm */
    uint32_t key_id; /* 0: free */
    enum sz_alg alg;
    EVP_PKEY_CTX *pkey;
    EVP_MAC_CTX *mac;
};

struct sz_header_kept {
    uint16_t n; /* 0: free */
    char encoded[SZ_HEADER_KEPT_BYTES];
    struct sz_jose jose;
};

struct sz_verify_thread {
    uint64_t epoch; /* of the key registry, when `prepared` was last right */
    EVP_MD_CTX *digest;
    struct sz_prepared prepared[SZ_PREPARED_MAX];
    struct sz_header_kept headers[SZ_HEADERS_KEPT];
    unsigned next_header;
    struct sz_jose parsed;    /* the last header that was not among them */
    struct sz_json_tree tree; /* of the header, then of the payload, being read */
};

/* This thread's; made on first use.  Drops what was prepared for keys if any key has been let go since. */
struct sz_verify_thread *sz_verify_thread(void);
/* The fetched digest of an algorithm (SHA-256, 384, 512 by its last three figures). */
EVP_MD *sz_alg_md(enum sz_alg alg);
const char *sz_alg_md_name(enum sz_alg alg);

#endif
