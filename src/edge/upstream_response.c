/*
 * One pass over the lines of a response head.  Fields that only concern the connection between the upstream and us are
 * recorded and not handed on.  Everything an attacker could use to make us and the client disagree about where the
 * response ends is an error: Content-Length with Transfer-Encoding, differing lengths, codings other than
 * chunked, folded lines, bare LF, blanks before the colon.
 */
#include "edge/upstream_response.h"

#include <errno.h>

/* Bytes of a field name (RFC 9110 5.6.2), by value; the table is spelled out because it is on the hot path. */
static const bool is_token[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['0' ... '9'] = 1, ['A' ... 'Z'] = 1,
    ['^'] = 1, ['_'] = 1, ['`'] = 1, ['a' ... 'z'] = 1, ['|'] = 1,         ['~'] = 1,
};

struct parser {
    struct sz_response *r;
    unsigned minor;
    unsigned lines;
    bool chunked, close, keep_alive, connection_upgrade, upgrade, accept_doubled;
    struct sz_slice nominated[SZ_RESPONSE_FIELDS_MAX]; /* names in Connection that are not options of ours */
    size_t nominated_n;
    const char *why;
};

ptrdiff_t sz_response_scan(const char *p, size_t n, size_t *at)
{
    static const char start[] = "HTTP/1.";
    size_t seen = n < sizeof(start) - 1 ? n : sizeof(start) - 1;

    if (*at == 0 && !sz_eq(sz_slice(p, seen), sz_slice(start, seen)))
        return -EPROTO;
    for (;;) {
        const char *lf = n > *at ? memchr(p + *at, '\n', n - *at) : NULL;
        if (lf == NULL)
            return 0;
        size_t line = (size_t)(lf - p) - *at;
        if (line == 0 || lf[-1] != '\r')
            return -EPROTO;
        *at += line + 1;
        if (line == 1)
            return (ptrdiff_t)*at;
    }
}

static int bad(struct parser *s, const char *why)
{
    s->why = why;
    return -EPROTO;
}

/* Text without control characters but HTAB (RFC 9110 5.5); high bytes pass as they are. */
static bool is_text(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK"; the blank before an empty reason may be missing, as it often is. */
static int status_line(struct parser *s, struct sz_slice line)
{
    const char *p = line.p;

    if (line.n < 12 || !sz_eq(sz_slice(p, 7), SZ_S("HTTP/1.")) || (p[7] != '0' && p[7] != '1') || p[8] != ' ' ||
        !is_digit(p[9]) || !is_digit(p[10]) || !is_digit(p[11]) || (line.n > 12 && p[12] != ' '))
        return bad(s, "malformed status line");
    s->minor = (unsigned)(p[7] - '0');
    s->r->status = (unsigned)(p[9] - '0') * 100 + (unsigned)(p[10] - '0') * 10 + (unsigned)(p[11] - '0');
    s->r->reason = sz_from(line, 13);
    if (s->r->status < 100 || s->r->status > 599)
        return bad(s, "status out of range");
    return is_text(s->r->reason) ? 0 : bad(s, "control character in the status line");
}

static int on_content_length(struct parser *s, struct sz_slice value)
{
    uint64_t length;
    if (sz_parse_u64(value, INT64_MAX, &length) != 0)
        return bad(s, "malformed Content-Length");
    if (s->r->has_length && s->r->length != length)
        return bad(s, "two different Content-Lengths");
    s->r->has_length = true;
    s->r->length = length;
    return 0;
}

static int on_transfer_encoding(struct parser *s, struct sz_slice value)
{
    if (s->chunked)
        return bad(s, "two Transfer-Encodings");
    if (!sz_ieq(value, SZ_S("chunked")))
        return bad(s, "a Transfer-Encoding that is not chunked");
    if (s->minor == 0)
        return bad(s, "Transfer-Encoding in an HTTP/1.0 response");
    s->chunked = true;
    return 0;
}

static int on_connection(struct parser *s, struct sz_slice value)
{
    struct sz_slice rest = value, option;
    while (sz_split(&rest, ',', &option)) {
        option = sz_trim(option);
        if (option.n == 0)
            continue;
        if (sz_ieq(option, SZ_S("close")))
            s->close = true;
        else if (sz_ieq(option, SZ_S("keep-alive")))
            s->keep_alive = true;
        else if (sz_ieq(option, SZ_S("upgrade")))
            s->connection_upgrade = true;
        else if (s->nominated_n == SZ_COUNT(s->nominated))
            return bad(s, "too many names in Connection");
        else
            s->nominated[s->nominated_n++] = option;
    }
    return 0;
}

static void on_accept(struct parser *s, struct sz_slice value)
{
    if (s->r->accept.p != NULL || s->accept_doubled) {
        s->accept_doubled = true;
        s->r->accept = SZ_NONE;
    } else {
        s->r->accept = value;
    }
}

/* The media type alone, without parameters. */
static void on_content_type(struct parser *s, struct sz_slice value)
{
    struct sz_slice type;
    if (sz_split(&value, ';', &type))
        s->r->event_stream = sz_ieq(sz_trim(type), SZ_S("text/event-stream"));
}

enum { HANDLED = 1 };

/* A field about the connection or the framing: HANDLED when it goes no further, 0 when it is the client's too. */
static int special(struct parser *s, struct sz_slice name, struct sz_slice value)
{
    int status;

    switch (name.n) {
    case 2:
        return sz_ieq(name, SZ_S("te")) ? HANDLED : 0;
    case 4:
        return sz_ieq(name, SZ_S("date")) ? HANDLED : 0;
    case 7:
        if (sz_ieq(name, SZ_S("upgrade"))) {
            s->upgrade = sz_ieq(value, SZ_S("websocket"));
            return HANDLED;
        }
        return sz_ieq(name, SZ_S("trailer")) ? HANDLED : 0;
    case 10:
        if (sz_ieq(name, SZ_S("connection"))) {
            status = on_connection(s, value);
            return status != 0 ? status : HANDLED;
        }
        return sz_ieq(name, SZ_S("keep-alive")) ? HANDLED : 0;
    case 12:
        if (sz_ieq(name, SZ_S("content-type")))
            on_content_type(s, value);
        return 0;
    case 14:
        if (sz_ieq(name, SZ_S("content-length"))) {
            status = on_content_length(s, value);
            return status != 0 ? status : HANDLED;
        }
        return 0;
    case 16:
        return sz_ieq(name, SZ_S("proxy-connection")) ? HANDLED : 0;
    case 17:
        if (sz_ieq(name, SZ_S("transfer-encoding"))) {
            status = on_transfer_encoding(s, value);
            return status != 0 ? status : HANDLED;
        }
        return 0;
    case 18:
        return sz_ieq(name, SZ_S("proxy-authenticate")) ? HANDLED : 0;
    case 20:
        if (sz_ieq(name, SZ_S("sec-websocket-accept")))
            on_accept(s, value);
        return 0;
    default:
        return 0;
    }
}

static int field_line(struct parser *s, char *p, size_t n, bool lower)
{
    struct sz_response *r = s->r;
    size_t colon = 0;

    if (s->lines++ == SZ_RESPONSE_FIELDS_MAX)
        return bad(s, "too many fields");
    while (colon < n && is_token[(unsigned char)p[colon]]) {
        if (lower && p[colon] >= 'A' && p[colon] <= 'Z')
            p[colon] |= 0x20;
        colon++;
    }
    if (colon == 0 || colon == n || p[colon] != ':')
        return bad(s, "malformed field line");
    struct sz_slice name = sz_slice(p, colon), value = sz_trim(sz_slice(p + colon + 1, n - colon - 1));
    if (!is_text(value))
        return bad(s, "control character in a field");
    int status = special(s, name, value);
    if (status < 0)
        return status;
    if (status == HANDLED || (name.n > 10 && sz_ieq(sz_sub(name, 0, 10), SZ_S("x-subzero-"))))
        return 0;
    r->fields[r->fields_n++] = (struct sz_response_field){name, value};
    return 0;
}

static bool is_nominated(const struct parser *s, struct sz_slice name)
{
    for (size_t i = 0; i < s->nominated_n; i++) {
        if (sz_ieq(s->nominated[i], name))
            return true;
    }
    return false;
}

/* Whatever Connection names belongs to that connection (RFC 9110 7.6.1). */
static void drop_nominated(struct parser *s)
{
    struct sz_response *r = s->r;
    size_t kept = 0;
    for (size_t i = 0; i < r->fields_n; i++) {
        if (!is_nominated(s, r->fields[i].name))
            r->fields[kept++] = r->fields[i];
    }
    r->fields_n = kept;
}

/* Where the response ends (RFC 9112 6.3), and whether the connection outlives it. */
static int framing(struct parser *s, bool is_head)
{
    struct sz_response *r = s->r;

    if (s->chunked && r->has_length)
        return bad(s, "Content-Length with Transfer-Encoding");
    r->keep_alive = !s->close && (s->minor == 1 || s->keep_alive);
    if (is_head || r->status < 200 || r->status == 204 || r->status == 304) {
        r->body = SZ_BODY_NONE;
        /* What announces a body that must not be there may well send it. */
        if (!is_head && (s->chunked || (r->status == 204 && r->has_length && r->length > 0)))
            r->keep_alive = false;
        if (r->status < 200 || r->status == 204)
            r->has_length = false;
    } else if (s->chunked) {
        r->body = SZ_BODY_CHUNKED;
    } else if (r->has_length) {
        r->body = SZ_BODY_LENGTH;
    } else {
        r->body = SZ_BODY_UNTIL_CLOSE;
        r->keep_alive = false;
    }
    return 0;
}

int sz_response_parse(struct sz_response *r, char *p, size_t n, bool is_head, bool lower, const char **why)
{
    struct parser s;
    char *line = p, *end = p + n - 2; /* the blank line is the head's end */
    int status = 0;

    memset(r, 0, offsetof(struct sz_response, fields));
    memset(&s, 0, offsetof(struct parser, nominated));
    s.nominated_n = 0;
    s.why = NULL;
    s.r = r;
    for (bool first = true; status == 0 && line < end; first = false) {
        char *cr = memchr(line, '\r', (size_t)(end - line)); /* a lone CR fails the text check of its line's rest */
        if (cr == NULL || cr[1] != '\n')
            status = bad(&s, "bare CR");
        else if (first)
            status = status_line(&s, sz_slice(line, (size_t)(cr - line)));
        else
            status = field_line(&s, line, (size_t)(cr - line), lower);
        if (cr != NULL)
            line = cr + 2;
    }
    if (status == 0)
        status = framing(&s, is_head);
    if (status == 0) {
        r->upgrade_websocket = s.upgrade && s.connection_upgrade;
        if (s.nominated_n > 0)
            drop_nominated(&s);
    }
    *why = s.why;
    return status;
}
