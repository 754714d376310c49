/* See http1.h. */
#include "fake/http1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "fake/process.h"

bool http1_open_from(struct http1 *c, const char *address, uint16_t port)
{
    *c = (struct http1){.wire.fd = -1};
    return wire_open(&c->wire, address, port);
}

bool http1_open(struct http1 *c, uint16_t port)
{
    return http1_open_from(c, NULL, port);
}

bool http1_open_tls(struct http1 *c, uint16_t port, const struct wire_tls *tls)
{
    return http1_open(c, port) && wire_start_tls(&c->wire, tls);
}

void http1_close(struct http1 *c)
{
    wire_close(&c->wire);
    sz_buf_fini(&c->in);
}

bool http1_send(struct http1 *c, struct sz_slice bytes)
{
    return wire_send(&c->wire, bytes);
}

bool http1_printf(struct http1 *c, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    SZ_ASSERT(n >= 0);
    bool sent = http1_send(c, sz_slice(text, (size_t)n));
    free(text);
    return sent;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static int more(struct http1 *c, struct sz_mono end)
{
    char chunk[16384];
    ssize_t n = wire_read(&c->wire, chunk, sizeof(chunk), end);

    if (n <= 0)
        return n == 0 ? -EPIPE : (int)n;
    sz_buf_add(&c->in, chunk, (size_t)n);
    return 0;
}

/* Moves n bytes from the connection's buffer to the end of out (NULL: drops them). */
static void take(struct http1 *c, size_t n, struct sz_buf *out)
{
    if (out != NULL)
        sz_buf_add(out, c->in.p, n);
    memmove(c->in.p, c->in.p + n, c->in.n - n);
    c->in.n -= n;
}

/* Behind the last byte, so that string functions may be used; not counted. */
static void terminate(struct sz_buf *b)
{
    sz_buf_add(b, "", 1);
    b->n--;
}

/* Up to and with `mark`, which is taken too. */
static int take_through(struct http1 *c, const char *mark, struct sz_buf *out, struct sz_mono end)
{
    for (;;) {
        char *at = c->in.n == 0 ? NULL : memmem(c->in.p, c->in.n, mark, strlen(mark));
        if (at != NULL) {
            take(c, (size_t)(at - c->in.p) + strlen(mark), out);
            return 0;
        }
        int rc = more(c, end);
        if (rc != 0)
            return rc;
    }
}

static int take_bytes(struct http1 *c, size_t n, struct sz_buf *out, struct sz_mono end)
{
    while (n > 0) {
        size_t some = c->in.n < n ? c->in.n : n;
        if (some > 0)
            take(c, some, out);
        n -= some;
        int rc = n == 0 ? 0 : more(c, end);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int take_chunks(struct http1 *c, struct sz_buf *out, struct sz_mono end)
{
    for (;;) {
        struct sz_buf line = {0};
        char *stop = NULL;
        int rc = take_through(c, "\r\n", &line, end);
        terminate(&line);
        unsigned long n = rc == 0 ? strtoul(line.p, &stop, 16) : 0;
        bool good = rc == 0 && stop != line.p && (*stop == '\r' || *stop == ';');
        sz_buf_fini(&line);
        if (rc != 0 || !good)
            return rc != 0 ? rc : -EPROTO;
        if (n > 0 && (rc = take_bytes(c, n, out, end)) != 0)
            return rc;
        struct sz_buf tail = {0};
        rc = take_bytes(c, 2, &tail, end); /* no trailers are expected from the gateway */
        good = rc == 0 && sz_eq(sz_buf_slice(&tail), SZ_S("\r\n"));
        sz_buf_fini(&tail);
        if (rc != 0 || !good)
            return rc != 0 ? rc : -EPROTO;
        if (n == 0)
            return 0;
    }
}

static int take_body(struct http1 *c, const char *method, struct http1_response *r, struct sz_mono end)
{
    char coding[64], length[64], *stop;
    bool chunked = http1_field(r, "transfer-encoding", coding, sizeof(coding));
    bool counted = http1_field(r, "content-length", length, sizeof(length));

    if (strcmp(method, "HEAD") == 0 || r->status == 204 || r->status == 304 || r->status == 101)
        return 0;
    if (chunked && (counted || strcasecmp(coding, "chunked") != 0))
        return -EPROTO;
    if (chunked)
        return take_chunks(c, &r->body, end);
    if (!counted) {
        int rc;
        r->closes = true;
        take(c, c->in.n, &r->body);
        while ((rc = more(c, end)) == 0)
            take(c, c->in.n, &r->body);
        return rc == -EPIPE ? 0 : rc;
    }
    unsigned long n = strtoul(length, &stop, 10);
    return *stop != '\0' || stop == length ? -EPROTO : take_bytes(c, n, &r->body, end);
}

static int take_head(struct http1 *c, struct http1_response *r, struct sz_mono end)
{
    int rc;

    do {
        r->head.n = 0;
        rc = take_through(c, "\r\n\r\n", &r->head, end);
        terminate(&r->head);
        if (rc != 0)
            return rc == -EPIPE && c->in.n > 0 ? -EPROTO : rc;
        r->status = raw_status(r->head.p);
    } while (r->status >= 100 && r->status < 200 && r->status != 101);
    return r->status == 0 ? -EPROTO : 0;
}

int http1_read(struct http1 *c, const char *method, struct sz_span limit, struct http1_response *r)
{
    struct sz_mono end = in_time(limit);
    char connection[64];

    r->status = 0;
    r->body.n = 0;
    r->closes = false;
    int rc = take_head(c, r, end);
    if (rc == 0)
        rc = take_body(c, method, r, end);
    terminate(&r->body);
    if (r->status != 0 && http1_field(r, "connection", connection, sizeof(connection)))
        r->closes |= strcasecmp(connection, "close") == 0;
    return rc;
}

void http1_response_fini(struct http1_response *r)
{
    sz_buf_fini(&r->head);
    sz_buf_fini(&r->body);
    *r = (struct http1_response){0};
}

bool http1_field(const struct http1_response *r, const char *name, char *out, size_t size)
{
    return r->head.p != NULL && raw_header(r->head.p, name, out, size);
}

unsigned http1_field_count(const struct http1_response *r, const char *name)
{
    unsigned count = 0;
    size_t n = strlen(name);

    for (const char *line = r->head.p; line != NULL && (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        count += strncasecmp(line, name, n) == 0 && line[n] == ':';
    }
    return count;
}

/* ---- whole exchanges --------------------------------------------------------------------------------------------- */

int http1_exchange(uint16_t port, struct sz_slice request, struct http1_response *r)
{
    struct http1_response mine = {0}, *to = r != NULL ? r : &mine;
    struct http1 c;
    int rc = -EPIPE;

    to->status = 0;
    if (http1_open(&c, port)) {
        (void)http1_send(&c, request); /* an early answer is an answer all the same */
        rc = http1_read(&c, sz_starts_with(request, SZ_S("HEAD ")) ? "HEAD" : "", SZ_SEC(10), to);
    }
    http1_close(&c);
    int status = rc == 0 ? to->status : 0;
    http1_response_fini(&mine);
    return status;
}

int http1_ask(uint16_t port, const char *method, const char *target, const char *token, const char *fields,
              const char *body, struct http1_response *r)
{
    struct sz_buf request = {0};

    sz_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: gateway.test\r\nConnection: close\r\n", method, target);
    if (token != NULL)
        sz_buf_printf(&request, "Authorization: Bearer %s\r\n", token);
    sz_buf_printf(&request, "%s", fields != NULL ? fields : "");
    if (body != NULL)
        sz_buf_printf(&request, "Content-Length: %zu\r\n", strlen(body));
    sz_buf_printf(&request, "\r\n%s", body != NULL ? body : "");
    int status = http1_exchange(port, sz_buf_slice(&request), r);
    sz_buf_fini(&request);
    return status;
}
