/*
 * The chunked decoder: the verdict and the bytes must not depend on how the body arrives, and it never writes
 * beyond what it was given.  The first byte is the size of the pieces.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "edge/chunked.h"
#include "subzero/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t decode(const uint8_t *data, size_t size, size_t step, char *out, size_t *out_n)
{
    struct phr_chunked_decoder decoder = {.consume_trailer = 1};
    ssize_t rc = -2;
    size_t at = 0;
    *out_n = 0;
    while (at < size && rc == -2) {
        size_t n = size - at < step ? size - at : step, given = n;
        char *piece = malloc(n); /* of exact size: a byte beyond it is a report */
        memcpy(piece, data + at, n);
        rc = phr_decode_chunked(&decoder, piece, &n);
        SZ_ASSERT(n <= given);
        memcpy(out + *out_n, piece, n);
        *out_n += n;
        at += given;
        if (rc >= 0) {
            SZ_ASSERT((size_t)rc + n <= given);
            rc = (ssize_t)(size - at) + rc; /* everything behind the body's end */
        }
        free(piece);
    }
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char whole[65536], pieces[65536];
    size_t whole_n, pieces_n;
    if (size < 2 || size > sizeof(whole))
        return 0;
    ssize_t a = decode(data + 1, size - 1, size, whole, &whole_n);
    ssize_t b = decode(data + 1, size - 1, 1 + data[0] % 16, pieces, &pieces_n);
    SZ_ASSERT(a == b);
    if (a != -1)
        SZ_ASSERT(sz_eq(sz_slice(whole, whole_n), sz_slice(pieces, pieces_n)));
    return 0;
}
