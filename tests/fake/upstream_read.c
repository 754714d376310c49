/* See upstream_read.h. */
#include "fake/upstream_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { KEEP = 256 * 1024, HEAD_MAX = 1024 * 1024 };

void upstream_read_init(struct upstream_conn *c, int fd)
{
    *c = (struct upstream_conn){.wire = {.fd = fd}, .raw.limit = HEAD_MAX + KEEP, .body.limit = KEEP};
}

void upstream_read_fini(struct upstream_conn *c)
{
    wire_close(&c->wire);
    sz_buf_fini(&c->in);
    sz_buf_fini(&c->raw);
    sz_buf_fini(&c->body);
}

static bool more(struct upstream_conn *c)
{
    char chunk[65536];
    ssize_t n = wire_read(&c->wire, chunk, sizeof(chunk), SZ_NEVER);

    if (n > 0)
        sz_buf_add(&c->in, chunk, (size_t)n);
    return n > 0;
}

static void keep(struct sz_buf *to, const char *p, size_t n)
{
    size_t room = to->limit - to->n;

    sz_buf_add(to, p, n < room ? n : room);
}

/* The first n bytes leave the buffer; they are raw bytes of the request, and of its body when `decoded`. */
static void take(struct upstream_conn *c, size_t n, bool decoded)
{
    keep(&c->raw, c->in.p, n);
    if (decoded)
        keep(&c->body, c->in.p, n);
    memmove(c->in.p, c->in.p + n, c->in.n - n);
    c->in.n -= n;
}

/* Length of what is buffered up to and with `mark`, reading as needed; 0: it never came. */
static size_t find(struct upstream_conn *c, const char *mark, size_t max)
{
    for (;;) {
        char *at = c->in.n == 0 ? NULL : memmem(c->in.p, c->in.n, mark, strlen(mark));
        if (at != NULL)
            return (size_t)(at - c->in.p) + strlen(mark);
        if (c->in.n > max || !more(c))
            return 0;
    }
}

int upstream_read_head(struct upstream_conn *c)
{
    c->raw.n = c->body.n = 0;
    size_t n = find(c, "\r\n\r\n", HEAD_MAX);
    if (n == 0 && c->in.n == 0)
        return -EPIPE;
    take(c, n == 0 ? c->in.n : n, false);
    return n == 0 ? -EPROTO : 0;
}

void upstream_read_line(struct upstream_conn *c, struct upstream_request *request)
{
    char *head = sz_xmalloc(c->raw.n + 1);
    struct sz_slice line = sz_slice(head, 0);

    memcpy(head, c->raw.p, c->raw.n);
    head[c->raw.n] = '\0';
    request->head = sz_slice(head, c->raw.n);
    while (line.n < c->raw.n && head[line.n] != '\r')
        line.n++;
    const char *first = memchr(line.p, ' ', line.n), *last = memrchr(line.p, ' ', line.n);
    request->method = sz_slice(line.p, first == NULL ? line.n : (size_t)(first - line.p));
    request->target = first == last ? sz_slice("", 0) : sz_slice(first + 1, (size_t)(last - first - 1));
}

static int read_bytes(struct upstream_conn *c, uint64_t n, struct upstream_request *request)
{
    while (n > 0) {
        if (c->in.n == 0 && !more(c))
            return -EPROTO;
        size_t some = c->in.n < n ? c->in.n : (size_t)n;
        take(c, some, true);
        request->body_n += some;
        n -= some;
    }
    return 0;
}

static int read_chunks(struct upstream_conn *c, struct upstream_request *request)
{
    for (;;) {
        size_t line = find(c, "\r\n", 64);
        uint64_t n = 0;
        size_t i = 0;
        for (; line > 0 && i < line - 2 && i < 15; i++) {
            const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, c->in.p[i]);
            if (at == NULL || *at == '\0')
                return -EPROTO;
            n = n * 16 + (uint64_t)(at - digits) % 16;
        }
        if (i == 0 || i != line - 2)
            return -EPROTO;
        take(c, line, false);
        if (read_bytes(c, n, request) != 0)
            return -EPROTO;
        while (c->in.n < 2) {
            if (!more(c))
                return -EPROTO;
        }
        if (memcmp(c->in.p, "\r\n", 2) != 0)
            return -EPROTO;
        take(c, 2, false);
        if (n == 0)
            return 0;
    }
}

int upstream_read_body(struct upstream_conn *c, struct upstream_request *request)
{
    char length[32], coding[32], *stop;
    unsigned lengths = upstream_field_count(request, "content-length");
    unsigned codings = upstream_field_count(request, "transfer-encoding");

    if (lengths + codings == 0)
        return 0;
    if (lengths + codings > 1)
        return -EPROTO;
    if (upstream_field(request, "transfer-encoding", coding, sizeof(coding)))
        return strcmp(coding, "chunked") == 0 ? read_chunks(c, request) : -EPROTO;
    upstream_field(request, "content-length", length, sizeof(length));
    unsigned long long n = strtoull(length, &stop, 10);
    return length[0] < '0' || length[0] > '9' || *stop != '\0' ? -EPROTO : read_bytes(c, n, request);
}

void upstream_read_keep(struct upstream_conn *c, struct upstream_request *request)
{
    char *raw = sz_xmalloc(c->raw.n + 1), *body = sz_xmalloc(c->body.n + 1);

    memcpy(raw, sz_buf_slice(&c->raw).p, c->raw.n);
    memcpy(body, sz_buf_slice(&c->body).p, c->body.n);
    raw[c->raw.n] = body[c->body.n] = '\0';
    request->raw = sz_slice(raw, c->raw.n);
    request->body = sz_slice(body, c->body.n);
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* The next line of that name after the line at `from`; NULL: none. */
static const char *field_line(const char *name, const char *from)
{
    size_t n = strlen(name);

    for (const char *line = from; line != NULL && (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':')
            return line;
    }
    return NULL;
}

bool upstream_field(const struct upstream_request *request, const char *name, char *out, size_t size)
{
    const char *line = field_line(name, request->head.p);

    if (line == NULL)
        return false;
    const char *value = line + strlen(name) + 1;
    value += strspn(value, " \t");
    snprintf(out, size, "%.*s", (int)strcspn(value, "\r"), value);
    return true;
}

unsigned upstream_field_count(const struct upstream_request *request, const char *name)
{
    unsigned n = 0;

    for (const char *line = request->head.p; (line = field_line(name, line)) != NULL; n++)
        ;
    return n;
}
