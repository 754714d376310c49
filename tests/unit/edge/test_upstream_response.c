/* Response heads: what two readers could take in two ways first, then what must work. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "edge/upstream_response.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* Scans and parses a copy.  What the slices of *r point into lives until the next call. */
static int read_head(struct sz_slice text, struct sz_response *r, bool is_head, bool lower)
{
    static char *copy;
    size_t at = 0;
    const char *why = NULL;

    free(copy);
    copy = malloc(text.n + 1);
    memcpy(copy, text.p, text.n);
    ptrdiff_t n = sz_response_scan(copy, text.n, &at);
    if (n <= 0)
        return n == 0 ? -EAGAIN : (int)n;
    int status = sz_response_parse(r, copy, (size_t)n, is_head, lower, &why);
    cr_assert_eq(status != 0, why != NULL);
    return status;
}

static const struct sz_slice refused[] = {
    SZ_S("HTTP/2.0 200 OK\r\n\r\n"),
    SZ_S("HTTP/1.2 200 OK\r\n\r\n"),
    SZ_S("http/1.1 200 OK\r\n\r\n"),
    SZ_S("SSH-2.0-OpenSSH\r\n"),
    SZ_S("\r\n" OK "\r\n"),
    SZ_S("HTTP/1.1 20 OK\r\n\r\n"),
    SZ_S("HTTP/1.1 2000 OK\r\n\r\n"),
    SZ_S("HTTP/1.1 099 OK\r\n\r\n"),
    SZ_S("HTTP/1.1 600 OK\r\n\r\n"),
    SZ_S("HTTP/1.1 -20 OK\r\n\r\n"),
    SZ_S("HTTP/1.1  200 OK\r\n\r\n"),
    SZ_S("HTTP/1.1\t200 OK\r\n\r\n"),
    SZ_S("HTTP/1.1 200OK\r\n\r\n"),
    SZ_S("HTTP/1.1 200 O\x01K\r\n\r\n"),
    SZ_S("HTTP/1.1 200 OK\n\n"),
    SZ_S(OK "A: b\n\r\n"),
    SZ_S(OK "A: b\r\r\n\r\n"),
    SZ_S(OK "A: b\rC: d\r\n\r\n"),
    SZ_S(OK "A: b\0c\r\n\r\n"),
    SZ_S(OK "A: b\x7f\r\n\r\n"),
    SZ_S(OK "A : b\r\n\r\n"),
    SZ_S(OK " A: b\r\n\r\n"),
    SZ_S(OK "A: b\r\n c\r\n\r\n"),
    SZ_S(OK ": b\r\n\r\n"),
    SZ_S(OK "A\r\n\r\n"),
    SZ_S(OK "A\xc3: b\r\n\r\n"),
    SZ_S(OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    SZ_S(OK "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    SZ_S(OK "Content-Length: 5, 5\r\n\r\n"),
    SZ_S(OK "Content-Length: +5\r\n\r\n"),
    SZ_S(OK "Content-Length: -5\r\n\r\n"),
    SZ_S(OK "Content-Length: 0x5\r\n\r\n"),
    SZ_S(OK "Content-Length: 5 5\r\n\r\n"),
    SZ_S(OK "Content-Length:\r\n\r\n"),
    SZ_S(OK "Content-Length: 99999999999999999999\r\n\r\n"),
    SZ_S(OK "Content-Length: 9223372036854775808\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: gzip, chunked\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: chunked, identity\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: identity\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: xchunked\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding:\r\n\r\n"),
    SZ_S(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    SZ_S("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
};

Test(upstream_response, refuses_what_is_ambiguous)
{
    struct sz_response r;
    for (size_t i = 0; i < SZ_COUNT(refused); i++)
        cr_assert_eq(read_head(refused[i], &r, false, false), -EPROTO, "%zu: %.*s", i, SZ_FMT(refused[i]));
}

static const struct framing {
    struct sz_slice head;
    bool is_head;
    enum sz_response_body body;
    int64_t length; /* -1: none */
    bool keep_alive;
} framings[] = {
    {SZ_S(OK "\r\n"), false, SZ_BODY_UNTIL_CLOSE, -1, false},
    {SZ_S(OK "Connection: keep-alive\r\n\r\n"), false, SZ_BODY_UNTIL_CLOSE, -1, false},
    {SZ_S(OK "Content-Length: 0\r\n\r\n"), false, SZ_BODY_LENGTH, 0, true},
    {SZ_S(OK "content-LENGTH:\t 007 \r\n\r\n"), false, SZ_BODY_LENGTH, 7, true},
    {SZ_S(OK "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), false, SZ_BODY_LENGTH, 5, true},
    {SZ_S(OK "Content-Length: 5\r\nConnection: close\r\n\r\n"), false, SZ_BODY_LENGTH, 5, false},
    {SZ_S(OK "Content-Length: 5\r\nConnection: a, CLOSE ,b\r\n\r\n"), false, SZ_BODY_LENGTH, 5, false},
    {SZ_S(OK "Content-Length: 5\r\nConnection: keep-alive, close\r\n\r\n"), false, SZ_BODY_LENGTH, 5, false},
    {SZ_S(OK "Content-Length: 9223372036854775807\r\n\r\n"), false, SZ_BODY_LENGTH, INT64_MAX, true},
    {SZ_S("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n"), false, SZ_BODY_LENGTH, 5, false},
    {SZ_S("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n"), false, SZ_BODY_LENGTH, 5, true},
    {SZ_S(OK "Transfer-Encoding: Chunked\r\n\r\n"), false, SZ_BODY_CHUNKED, -1, true},
    {SZ_S("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n"), false, SZ_BODY_CHUNKED, -1, true},
    {SZ_S(OK "Content-Length: 5\r\n\r\n"), true, SZ_BODY_NONE, 5, true},
    {SZ_S(OK "Transfer-Encoding: chunked\r\n\r\n"), true, SZ_BODY_NONE, -1, true},
    {SZ_S("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"), false, SZ_BODY_NONE, 5, true},
    {SZ_S("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"), false, SZ_BODY_NONE, -1, false},
    {SZ_S("HTTP/1.1 204 No Content\r\n\r\n"), false, SZ_BODY_NONE, -1, true},
    {SZ_S("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), false, SZ_BODY_NONE, -1, true},
    {SZ_S("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"), false, SZ_BODY_NONE, -1, false},
    {SZ_S("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"), false, SZ_BODY_NONE, -1, false},
    {SZ_S("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), false, SZ_BODY_NONE, -1, true},
};

Test(upstream_response, knows_where_a_response_ends)
{
    for (size_t i = 0; i < SZ_COUNT(framings); i++) {
        const struct framing *f = &framings[i];
        struct sz_response r;
        cr_assert_eq(read_head(f->head, &r, f->is_head, false), 0, "%zu: %.*s", i, SZ_FMT(f->head));
        cr_assert_eq(r.body, f->body, "%zu: body %d", i, r.body);
        cr_assert_eq(r.has_length, f->length >= 0, "%zu", i);
        cr_assert(f->length < 0 || r.length == (uint64_t)f->length, "%zu", i);
        cr_assert_eq(r.keep_alive, f->keep_alive, "%zu: keep-alive %d", i, r.keep_alive);
    }
}

static void same_fields(const struct sz_response *r, const char *const *pairs)
{
    size_t n = 0;
    for (; pairs[2 * n] != NULL; n++) {
        cr_assert_lt(n, r->fields_n);
        cr_assert(sz_eq(r->fields[n].name, sz_cstr(pairs[2 * n])), "%.*s", SZ_FMT(r->fields[n].name));
        cr_assert(sz_eq(r->fields[n].value, sz_cstr(pairs[2 * n + 1])), "%.*s", SZ_FMT(r->fields[n].value));
    }
    cr_assert_eq(r->fields_n, n);
}

Test(upstream_response, hands_on_end_to_end_fields_alone)
{
    static const char head[] = OK "X-A:  one\t\r\n"
                                  "Connection: X-Hop, keep-alive,, x-b\r\n"
                                  "x-hop: 1\r\n"
                                  "X-B: 2\r\n"
                                  "Keep-Alive: timeout=5\r\n"
                                  "Proxy-Connection: close\r\n"
                                  "Proxy-Authenticate: Basic\r\n"
                                  "TE: trailers\r\n"
                                  "Trailer: x-t\r\n"
                                  "Upgrade: h2c\r\n"
                                  "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
                                  "Content-Length: 5\r\n"
                                  "X-Subzero-Reason: allowed\r\n"
                                  "X-Subzero: theirs\r\n"
                                  "Empty:\r\n"
                                  "Set-Cookie: a=\xc3\xa4\r\n"
                                  "Set-Cookie: b=1\r\n"
                                  "\r\n";
    const char *const as_sent[] = {"X-A",        "one",        "X-Subzero",  "theirs", "Empty", "",
                                   "Set-Cookie", "a=\xc3\xa4", "Set-Cookie", "b=1",    NULL};
    const char *const lower[] = {"x-a",        "one",        "x-subzero",  "theirs", "empty", "",
                                 "set-cookie", "a=\xc3\xa4", "set-cookie", "b=1",    NULL};
    struct sz_response r;

    cr_assert_eq(read_head(SZ_S(head), &r, false, false), 0);
    same_fields(&r, as_sent);
    cr_assert_eq(read_head(SZ_S(head), &r, false, true), 0);
    same_fields(&r, lower);
    cr_assert(r.keep_alive);
    cr_assert_not(r.upgrade_websocket);
}

Test(upstream_response, bounds_the_number_of_fields)
{
    struct sz_buf b = {0};
    struct sz_response r;

    for (unsigned n = SZ_RESPONSE_FIELDS_MAX; n <= SZ_RESPONSE_FIELDS_MAX + 1; n++) {
        b.n = 0;
        sz_buf_adds(&b, SZ_S(OK));
        for (unsigned i = 0; i < n; i++)
            sz_buf_adds(&b, SZ_S("a: b\r\n"));
        sz_buf_adds(&b, SZ_S("\r\n"));
        cr_assert_eq(read_head(sz_buf_slice(&b), &r, false, false), n > SZ_RESPONSE_FIELDS_MAX ? -EPROTO : 0);
    }
    sz_buf_fini(&b);
}

Test(upstream_response, bounds_the_names_in_connection)
{
    struct sz_buf b = {0};
    struct sz_response r;

    sz_buf_adds(&b, SZ_S(OK "Connection: x"));
    for (unsigned i = 0; i < 30000; i++)
        sz_buf_adds(&b, SZ_S(",x"));
    sz_buf_adds(&b, SZ_S("\r\n\r\n"));
    cr_assert_eq(read_head(sz_buf_slice(&b), &r, false, false), -EPROTO);
    sz_buf_fini(&b);
}

Test(upstream_response, reads_a_websocket_answer)
{
    static const char head[] = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: Upgrade\r\n"
                               "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    struct sz_response r;

    cr_assert_eq(read_head(SZ_S(head), &r, false, false), 0);
    cr_assert(r.upgrade_websocket);
    cr_assert(sz_eq(r.accept, SZ_S("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
    cr_assert_eq(read_head(SZ_S("HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n"), &r, false, false), 0);
    cr_assert_not(r.upgrade_websocket, "Connection must name it");
    cr_assert_eq(read_head(SZ_S("HTTP/1.1 101 x\r\nSec-WebSocket-Accept: a\r\nSec-WebSocket-Accept: b\r\n\r\n"), &r,
                           false, false),
                 0);
    cr_assert_null(r.accept.p, "two proofs are none");
}

Test(upstream_response, knows_an_event_stream)
{
    struct sz_response r;
    cr_assert_eq(read_head(SZ_S(OK "Content-Type: Text/Event-Stream; charset=utf-8\r\n\r\n"), &r, false, false), 0);
    cr_assert(r.event_stream);
    cr_assert_eq(read_head(SZ_S(OK "Content-Type: text/event-streams\r\n\r\n"), &r, false, false), 0);
    cr_assert_not(r.event_stream);
}

/* A head that comes byte by byte is complete at its last byte, and not before. */
Test(upstream_response, scan_carries_on)
{
    static const char head[] = OK "A: b\r\nC: d\r\n\r\nrest";
    size_t at = 0, whole = sizeof(head) - 1 - 4;

    for (size_t n = 0; n < whole; n++)
        cr_assert_eq(sz_response_scan(head, n, &at), 0, "%zu", n);
    cr_assert_eq(sz_response_scan(head, whole, &at), (ptrdiff_t)whole);
    at = 0;
    cr_assert_eq(sz_response_scan(head, sizeof(head) - 1, &at), (ptrdiff_t)whole);
}

Test(upstream_response, scan_sees_nonsense_early)
{
    size_t at = 0;
    cr_assert_eq(sz_response_scan("S", 1, &at), -EPROTO);
    at = 0;
    cr_assert_eq(sz_response_scan("HTTP/1.1 200 OK\n", 16, &at), -EPROTO);
}
