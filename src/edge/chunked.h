/*
 * A strict decoder of chunked bodies (RFC 9112 7.1).  libh2o decodes bodies in place before any handler runs, with a
 * decoder that takes "0x3", bare LF and blanks; it calls that decoder by its exported name, so the
 * executable's definition of phr_decode_chunked (below) is the one used.  sz_overrides_self_test proves it at the
 * start.
 */
#ifndef SZ_EDGE_CHUNKED_H
#define SZ_EDGE_CHUNKED_H

#include <sys/types.h>

/* picohttpparser's layout: the connection owns it, zero-filled before the first byte. */
struct phr_chunked_decoder {
    size_t bytes_left_in_chunk;
    char consume_trailer;
    char _hex_count;
    char _state;
};

/*
 * Rewrites buf[0, *bufsz) to the decoded data of it and sets *bufsz to that length.  Returns -2 when more is needed, -1
 * on a malformed body, else the number of bytes behind the body's end (moved up behind the data).
 */
ssize_t phr_decode_chunked(struct phr_chunked_decoder *decoder, char *buf, size_t *bufsz);

#endif
