/*
 * One character at a time through a small table of states, except inside a chunk's data, which moves as a block.
 * Refused: anything but hex digits at a size's start, more than 15 of them, blanks around the size, bare CR or LF,
 * malformed extensions and trailers.  Trailers are checked and dropped: nothing may join the header after it was
 * judged.
 */
#include "edge/chunked.h"

#include <string.h>

#include "edge/overrides.h"
#include "subzero/crypto.h"

__thread struct sz_overrides_seen sz_overrides_seen; /* here, so that the decoder can be tested alone */

enum state {
    SIZE,        /* hex digits */
    EXT_NAME,    /* after ';': blanks, then a token */
    EXT_IN_NAME, /* in the token */
    EXT_VALUE,   /* after '=' */
    EXT_IN_VALUE,
    EXT_QUOTED,
    EXT_ESCAPED, /* after a backslash in a quoted string */
    EXT_AFTER,   /* after the closing quote */
    SIZE_LF,     /* CR seen */
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_START, /* at a line's start: CR ends the body */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    DONE,
    BAD,
};

static bool is_token(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_text(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static enum state on_size(struct phr_chunked_decoder *d, unsigned char c)
{
    int digit = sz_hex_digit((char)c);
    if (digit >= 0) {
        if (d->_hex_count == 15)
            return BAD;
        d->_hex_count++;
        d->bytes_left_in_chunk = d->bytes_left_in_chunk * 16 + (size_t)digit;
        return SIZE;
    }
    if (d->_hex_count == 0)
        return BAD;
    return c == ';' ? EXT_NAME : c == '\r' ? SIZE_LF : BAD;
}

/* What may follow a complete extension: another one or the line's end. */
static enum state on_ext_end(unsigned char c)
{
    return c == ';' ? EXT_NAME : c == '\r' ? SIZE_LF : BAD;
}

static enum state on_extension(enum state state, unsigned char c)
{
    switch (state) {
    case EXT_NAME:
        return c == ' ' || c == '\t' ? EXT_NAME : is_token(c) ? EXT_IN_NAME : BAD;
    case EXT_IN_NAME:
        return is_token(c) ? EXT_IN_NAME : c == '=' ? EXT_VALUE : on_ext_end(c);
    case EXT_VALUE:
        return c == '"' ? EXT_QUOTED : is_token(c) ? EXT_IN_VALUE : BAD;
    case EXT_IN_VALUE:
        return is_token(c) ? EXT_IN_VALUE : on_ext_end(c);
    case EXT_QUOTED:
        return c == '"' ? EXT_AFTER : c == '\\' ? EXT_ESCAPED : is_text(c) ? EXT_QUOTED : BAD;
    case EXT_ESCAPED:
        return is_text(c) ? EXT_QUOTED : BAD;
    default:
        return on_ext_end(c);
    }
}

static enum state after_size(struct phr_chunked_decoder *d)
{
    d->_hex_count = 0;
    return d->bytes_left_in_chunk == 0 ? TRAILER_START : DATA;
}

static enum state step(struct phr_chunked_decoder *d, enum state state, unsigned char c)
{
    switch (state) {
    case SIZE:
        return on_size(d, c);
    case SIZE_LF:
        return c == '\n' ? after_size(d) : BAD;
    case DATA_CR:
        return c == '\r' ? DATA_LF : BAD;
    case DATA_LF:
        return c == '\n' ? SIZE : BAD;
    case TRAILER_START:
        return c == '\r' ? LAST_LF : is_token(c) ? TRAILER_NAME : BAD;
    case TRAILER_NAME:
        return c == ':' ? TRAILER_VALUE : is_token(c) ? TRAILER_NAME : BAD;
    case TRAILER_VALUE:
        return c == '\r' ? TRAILER_LF : is_text(c) ? TRAILER_VALUE : BAD;
    case TRAILER_LF:
        return c == '\n' ? TRAILER_START : BAD;
    case LAST_LF:
        return c == '\n' ? DONE : BAD;
    default:
        return on_extension(state, c);
    }
}

/* Moves what this buffer holds of the chunk's data to `dst`; returns how much. */
static size_t take_data(struct phr_chunked_decoder *d, char *dst, const char *src, size_t available)
{
    size_t n = available < d->bytes_left_in_chunk ? available : d->bytes_left_in_chunk;
    if (dst != src)
        memmove(dst, src, n);
    d->bytes_left_in_chunk -= n;
    return n;
}

__attribute__((visibility("default"), used)) ssize_t phr_decode_chunked(struct phr_chunked_decoder *decoder, char *buf,
                                                                        size_t *bufsz)
{
    size_t dst = 0, src = 0, end = *bufsz;
    enum state state = (enum state)decoder->_state;

    sz_overrides_seen.chunked++;
    while (src < end && state != DONE && state != BAD) {
        if (state != DATA) {
            state = step(decoder, state, (unsigned char)buf[src++]);
            continue;
        }
        size_t n = take_data(decoder, buf + dst, buf + src, end - src);
        src += n;
        dst += n;
        if (decoder->bytes_left_in_chunk == 0)
            state = DATA_CR;
    }
    decoder->_state = (char)state;
    if (dst != src)
        memmove(buf + dst, buf + src, end - src);
    *bufsz = dst;
    return state == BAD ? -1 : state == DONE ? (ssize_t)(end - src) : -2;
}
