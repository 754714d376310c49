/* Randomness, wiping, and comparing what must stay secret: libsodium's, behind names of our own. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/crypto.h"

void sz_crypto_init(void)
{
    if (sodium_init() < 0) {
        dprintf(STDERR_FILENO, "subzero: the system gives no randomness: libsodium cannot start\n");
        abort();
    }
}

void sz_random(void *out, size_t n)
{
    randombytes_buf(out, n);
}

void sz_wipe(void *p, size_t n)
{
    if (n != 0)
        sodium_memzero(p, n);
}

bool sz_secret_eq(struct sz_slice a, struct sz_slice b)
{
    return a.n == b.n && (a.n == 0 || sodium_memcmp(a.p, b.p, a.n) == 0);
}
