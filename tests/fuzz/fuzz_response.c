/*
 * An upstream's bytes: the head's end, the head, the chunked body.  Whatever comes, however it is cut into pieces: the
 * same answer, all slices inside the bytes, never more than is bounded.  First byte: bit 0 HEAD, bit 1 lower-case
 * names, the rest the size of the pieces.
 */
#include <errno.h>
#include <stdlib.h>

#include "edge/chunked.h"
#include "edge/upstream_response.h"
#include "subzero/base.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static ptrdiff_t scan_in_pieces(const char *p, size_t n, size_t piece)
{
    size_t at = 0;
    ptrdiff_t found = 0;
    for (size_t have = 0; found == 0 && have < n;) {
        have += smaller(piece, n - have);
        found = sz_response_scan(p, have, &at);
        SZ_ASSERT(at <= have);
    }
    return found;
}

static void inside(struct sz_slice s, const char *p, size_t n)
{
    SZ_ASSERT(s.p == NULL || (s.p >= p && s.p + s.n <= p + n));
}

static void check_head(const struct sz_response *r, const char *p, size_t n)
{
    SZ_ASSERT(r->status >= 100 && r->status <= 599 && r->fields_n <= SZ_RESPONSE_FIELDS_MAX);
    SZ_ASSERT(r->body != SZ_BODY_LENGTH || r->has_length);
    SZ_ASSERT(r->body != SZ_BODY_UNTIL_CLOSE || !r->keep_alive);
    inside(r->reason, p, n);
    inside(r->accept, p, n);
    for (size_t i = 0; i < r->fields_n; i++) {
        struct sz_slice name = r->fields[i].name, value = r->fields[i].value;
        inside(name, p, n);
        inside(value, p, n);
        SZ_ASSERT(name.n > 0 && memchr(name.p, ':', name.n) == NULL);
        for (size_t k = 0; k < value.n; k++)
            SZ_ASSERT(value.p[k] != '\r' && value.p[k] != '\n' && value.p[k] != '\0');
    }
}

struct decoded {
    ssize_t result; /* -2 more, -1 malformed, else bytes behind the end */
    size_t n;
};

static struct decoded decode_in_pieces(const char *p, size_t n, size_t piece, char *out)
{
    struct phr_chunked_decoder decoder = {0};
    struct decoded d = {-2, 0};
    for (size_t at = 0; d.result == -2 && at < n;) {
        size_t take = smaller(piece, n - at), size = take;
        memcpy(out + d.n, p + at, take);
        d.result = phr_decode_chunked(&decoder, out + d.n, &size);
        SZ_ASSERT(size <= take);
        at += take;
        d.n += size;
        if (d.result >= 0)
            d.result += (ssize_t)(n - at);
    }
    return d;
}

static void check_body(const char *p, size_t n, size_t piece)
{
    char *whole = malloc(n + 1), *cut = malloc(n + 1);
    struct decoded a = decode_in_pieces(p, n, n, whole), b = decode_in_pieces(p, n, piece, cut);

    SZ_ASSERT(a.result == b.result);
    SZ_ASSERT(a.result == -1 || (a.n == b.n && sz_eq(sz_slice(whole, a.n), sz_slice(cut, b.n))));
    free(whole);
    free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sz_response r;
    const char *why;

    if (size < 2 || size > SZ_RESPONSE_HEAD_MAX)
        return 0;
    size_t n = size - 1, at = 0, piece = 1 + (data[0] >> 2);
    char *copy = malloc(n);
    memcpy(copy, data + 1, n);
    ptrdiff_t head = sz_response_scan(copy, n, &at);
    SZ_ASSERT(head <= (ptrdiff_t)n);
    SZ_ASSERT((head > 0) == (scan_in_pieces(copy, n, piece) > 0));
    if (head > 0) {
        check_body(copy + head, n - (size_t)head, piece);
        int status = sz_response_parse(&r, copy, (size_t)head, (data[0] & 1) != 0, (data[0] & 2) != 0, &why);
        SZ_ASSERT(status == 0 || (status == -EPROTO && why != NULL));
        if (status == 0)
            check_head(&r, copy, (size_t)head);
    }
    free(copy);
    return 0;
}
