/*
 * A growing byte buffer whose user checks once, at the end: an append that does not fit
 * the limit is dropped whole, sets `overflow`, and everything after it is ignored, so
 * what is in the buffer is always a prefix of what was meant, never a text with holes.
 */
#include "subzero/base.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 256 };

/* Makes room for n more bytes and one spare (the NUL of printf); false: over the limit. */
static bool reserve(struct sz_buf *b, size_t n)
{
    if (b->overflow)
        return false;
    size_t limit = b->limit != 0 ? b->limit : SIZE_MAX / 4;
    if (n > limit || b->n > limit - n) {
        b->overflow = true;
        return false;
    }
    size_t need = b->n + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap < FIRST ? FIRST : b->cap;
        while (cap < need)
            cap *= 2;
        b->p = sz_xrealloc(b->p, cap);
        b->cap = cap;
    }
    return true;
}

void sz_buf_add(struct sz_buf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n) || n == 0)
        return;
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
}

void *sz_buf_room(struct sz_buf *b, size_t n)
{
    if (!reserve(b, n))
        return NULL;
    b->n += n;
    return b->p + b->n - n;
}

void sz_buf_adds(struct sz_buf *b, struct sz_slice s)
{
    sz_buf_add(b, s.p, s.n);
}

void sz_buf_printf(struct sz_buf *b, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    size_t room = b->cap - b->n;
    int n = vsnprintf(room != 0 ? b->p + b->n : NULL, room, fmt, args);
    SZ_ASSERT(n >= 0);
    if (reserve(b, (size_t)n)) {
        if ((size_t)n >= room)
            vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        b->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void sz_buf_u64(struct sz_buf *b, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    sz_buf_add(b, digits + at, sizeof(digits) - at);
}

void sz_buf_fini(struct sz_buf *b)
{
    free(b->p);
    *b = (struct sz_buf){.limit = b->limit};
}
