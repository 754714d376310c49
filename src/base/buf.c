/*
 * A growing byte buffer whose user checks once, at the end: an append that does not fit
 * the limit is dropped whole, sets `overflow`, and everything after it is ignored, so
 * what is in the buffer is always a prefix of what was meant, never a text with holes.
 */
#include "subzero/base.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { FIRST = 256 };

/* Makes room for n more bytes and one spare (the NUL of printf); false: over the limit. */
static bool reserve(struct sz_buf *b, size_t n)
{
    if (b->overflow) {
        return false;
    }
    size_t limit = b->limit != 0 ? b->limit : SIZE_MAX / 4;
    if (n > limit || b->n > limit - n) {
        b->overflow = true;
        return false;
    }
    size_t need = b->n + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap < FIRST ? FIRST : b->cap;
        while (cap < need) {
            cap *= 2;
        }
        b->p = sz_xrealloc(b->p, cap);
        b->cap = cap;
    }
    return true;
}

void sz_buf_add(struct sz_buf *b, const void *bytes, size_t n)
{
    if (!reserve(b, n) || n == 0) {
        return;
    }
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
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
        if ((size_t)n >= room) {
            vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
        }
        b->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

/*
 * Printable as it is inside a JSON string?  Beyond what RFC 8259 demands, DEL and the C1
 * controls (U+0080..U+009F) are escaped: they steer the terminal of whoever reads the log.
 */
static bool is_plain(const char *p, size_t n)
{
    unsigned char c = (unsigned char)p[0];
    if (n == 1) {
        return c >= 0x20 && c != 0x7F && c != '"' && c != '\\';
    }
    return !(n == 2 && c == 0xC2 && (unsigned char)p[1] < 0xA0);
}

static void add_escape(struct sz_buf *b, const char *p, size_t n)
{
    unsigned code = n == 2 ? (unsigned char)p[1] : (unsigned char)p[0]; /* U+0080..U+009F are their tail byte */
    switch (code) {
    case '"':
        sz_buf_adds(b, SZ_S("\\\""));
        return;
    case '\\':
        sz_buf_adds(b, SZ_S("\\\\"));
        return;
    case '\n':
        sz_buf_adds(b, SZ_S("\\n"));
        return;
    case '\r':
        sz_buf_adds(b, SZ_S("\\r"));
        return;
    case '\t':
        sz_buf_adds(b, SZ_S("\\t"));
        return;
    default:
        sz_buf_printf(b, "\\u%04x", code);
        return;
    }
}

void sz_buf_json(struct sz_buf *b, struct sz_slice s)
{
    sz_buf_adds(b, SZ_S("\""));
    size_t plain = 0; /* start of the run not yet copied */
    size_t at = 0;
    while (at < s.n) {
        size_t n = sz_utf8_step(sz_from(s, at));
        if (n != 0 && is_plain(s.p + at, n)) {
            at += n;
            continue;
        }
        sz_buf_add(b, s.p + plain, at - plain);
        if (n == 0) {
            sz_buf_adds(b, SZ_S("\\ufffd"));
            n = 1; /* one mark for each stray byte */
        } else {
            add_escape(b, s.p + at, n);
        }
        at += n;
        plain = at;
    }
    if (at > plain) {
        sz_buf_add(b, s.p + plain, at - plain);
    }
    sz_buf_adds(b, SZ_S("\""));
}

void sz_buf_fini(struct sz_buf *b)
{
    free(b->p);
    *b = (struct sz_buf){.limit = b->limit};
}
