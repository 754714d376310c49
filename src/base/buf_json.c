/*
 * Any bytes as a JSON string.  Beyond what RFC 8259 demands, DEL and the C1 controls
 * (U+0080..U+009F) are escaped: they steer the terminal of whoever reads the log.  What is
 * not UTF-8 becomes U+FFFD, one mark for each stray byte.
 *
 * Text is seen as a row of pieces: runs that are copied as they are, and single characters
 * that are written as an escape.
 */
#include <stdio.h>

#include "base/utf8.h"
#include "subzero/scan.h"

static const struct sz_slice ellipsis = {"\xE2\x80\xA6", 3};

static bool is_plain_ascii(unsigned char c)
{
    return c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
}

/* Bytes of the multi-byte character at the front of s that may stand as it is; 0: it may not. */
static size_t plain_multibyte(struct sz_slice s)
{
    size_t n = sz_utf8_step(s);
    bool c1 = n == 2 && (unsigned char)s.p[0] == 0xC2 && (unsigned char)s.p[1] < 0xA0;
    return n > 1 && !c1 ? n : 0;
}

/* End of the run of plain characters that starts at `at`. */
static size_t run_end(struct sz_slice s, size_t at)
{
    while (at < s.n) {
        unsigned char c = (unsigned char)s.p[at];
        size_t n = c < 0x80 ? is_plain_ascii(c) : plain_multibyte(sz_from(s, at));
        if (n == 0)
            break;
        at += n;
    }
    return at;
}

/* The escape of the character at the front of s (not plain, s not empty): its length; *in = bytes it stands for. */
static size_t escape(struct sz_slice s, char out[7], size_t *in)
{
    size_t n = sz_utf8_step(s);
    *in = n == 0 ? 1 : n;
    unsigned code = n == 0 ? 0xFFFD : (unsigned char)s.p[n - 1]; /* of U+0080..U+009F the tail byte is the number */
    const char *letter = n != 1 ? NULL : strchr("\"\"\\\\\nn\rr\tt", (int)code);
    if (letter != NULL && code != 0) {
        out[0] = '\\';
        out[1] = letter[1];
        out[2] = '\0';
        return 2;
    }
    return (size_t)snprintf(out, 7, "\\u%04x", code);
}

static void add_escaped(struct sz_buf *b, struct sz_slice s)
{
    size_t at = sz_scan_json_plain(s) ? s.n : 0; /* most texts are one run */
    sz_buf_add(b, s.p, at);
    while (at < s.n) {
        size_t end = run_end(s, at);
        sz_buf_add(b, s.p + at, end - at);
        at = end;
        if (at < s.n) {
            char text[7];
            size_t in, n = escape(sz_from(s, at), text, &in);
            sz_buf_add(b, text, n);
            at += in;
        }
    }
}

/* The longest front part of s, in whole characters, that needs no more than `max` bytes. */
static struct sz_slice fitting(struct sz_slice s, size_t max)
{
    size_t at = 0;
    while (at < s.n) {
        struct sz_slice rest = sz_from(s, at);
        char text[7];
        unsigned char c = (unsigned char)rest.p[0];
        size_t in = c < 0x80 ? is_plain_ascii(c) : plain_multibyte(rest);
        size_t out = in != 0 ? in : escape(rest, text, &in);
        if (out > max)
            break;
        max -= out;
        at += in;
    }
    return sz_sub(s, 0, at);
}

void sz_buf_json(struct sz_buf *b, struct sz_slice s)
{
    sz_buf_add(b, "\"", 1);
    add_escaped(b, s);
    sz_buf_add(b, "\"", 1);
}

void sz_buf_json_cut(struct sz_buf *b, struct sz_slice s, size_t max)
{
    SZ_ASSERT(max >= ellipsis.n);
    /* An escape is at most six times its character: short texts need no measuring. */
    bool cut = s.n > max / 6 && !(s.n <= max && sz_scan_json_plain(s)) && fitting(s, max).n != s.n;
    sz_buf_add(b, "\"", 1);
    if (cut) {
        add_escaped(b, fitting(s, max - ellipsis.n));
        sz_buf_adds(b, ellipsis);
    } else {
        add_escaped(b, s);
    }
    sz_buf_add(b, "\"", 1);
}
