/*
 * The request's bytes.  The head is built in the thread's scratch and goes out with the body in one system call; only
 * what the socket does not take is kept, on the request's pool.  Field names and values were checked and
 * settled by the pipeline; framing (Content-Length, Connection) is written here and nowhere else.
 */
#include <errno.h>

#include "edge/proxy_call.h"

static char *put(char *at, struct sz_slice s)
{
    if (s.n > 0)
        memcpy(at, s.p, s.n);
    return at + s.n;
}

static char *put_field(char *at, struct sz_slice name, struct sz_slice value)
{
    at = put(at, name);
    *at++ = ':';
    *at++ = ' ';
    at = put(at, value);
    *at++ = '\r';
    *at++ = '\n';
    return at;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t n = 0;
    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

/* A request of these methods without a body says so (RFC 9110 8.6). */
static bool expects_body(struct sz_slice method)
{
    return sz_eq(method, SZ_S("POST")) || sz_eq(method, SZ_S("PUT")) || sz_eq(method, SZ_S("PATCH"));
}

static struct sz_slice host_of(const struct sz_proxy_call *call, const struct sz_forward *f)
{
    bool theirs = call->upstream->preserve_host && f->authority.n > 0;
    return theirs ? f->authority : sz_cstr(call->url->authority);
}

/* Room for what build adds to the fields: request line, Host, framing. */
#define FIXED 256

static size_t size_of(const struct sz_forward *f, struct sz_slice host)
{
    size_t n = FIXED + f->method.n + f->target.n + host.n;
    for (size_t i = 0; i < f->headers.n; i++)
        n += f->headers.v[i].name.n + f->headers.v[i].value.n + 4;
    return n;
}

static size_t build(const struct sz_forward *f, struct sz_slice host, char *head)
{
    char *at = put(head, f->method);
    *at++ = ' ';
    at = put(at, f->target);
    at = put(at, SZ_S(" HTTP/1.1\r\n"));
    at = put_field(at, SZ_S("Host"), host);
    for (size_t i = 0; i < f->headers.n; i++)
        at = put_field(at, f->headers.v[i].name, f->headers.v[i].value);
    if (f->has_body || expects_body(f->method)) {
        at = put(at, SZ_S("Content-Length: "));
        at = put_number(at, f->body.n);
        at = put(at, SZ_S("\r\n"));
    }
    if (f->websocket)
        at = put(at, SZ_S("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
    else if (f->own_connection)
        at = put(at, SZ_S("Connection: close\r\n"));
    at = put(at, SZ_S("\r\n"));
    return (size_t)(at - head);
}

/* Takes n written bytes off the front of what is to be written. */
static void advance(struct sz_proxy_call *call, size_t n)
{
    call->any_written |= n > 0;
    while (call->out_n > 0 && n >= call->out[0].iov_len) {
        n -= call->out[0].iov_len;
        call->out[0] = call->out[1];
        call->out_n--;
    }
    if (call->out_n > 0) {
        call->out[0].iov_base = (char *)call->out[0].iov_base + n;
        call->out[0].iov_len -= n;
    }
}

/* 0, or the error that the connection died of. */
static int write_out(struct sz_proxy_call *call)
{
    while (call->out_n > 0) {
        ssize_t n = sz_upconn_write(call->user.conn, call->out, call->out_n);
        if (n == -EAGAIN)
            return 0;
        if (n < 0)
            return (int)n;
        advance(call, (size_t)n);
    }
    return 0;
}

/* The rest waits for the socket; the head's bytes move out of the scratch. */
static void keep_rest(struct sz_proxy_call *call, bool in_scratch)
{
    bool head_left = call->out_n == (call->x->txn.forward.body.n > 0 ? 2 : 1);
    if (in_scratch && head_left) {
        char *copy = h2o_mem_alloc_pool(&call->x->req->pool, call->out[0].iov_len);
        memcpy(copy, call->out[0].iov_base, call->out[0].iov_len);
        call->out[0].iov_base = copy;
    }
    sz_upconn_want_write(call->user.conn);
}

static void set_deadline(struct sz_proxy_call *call)
{
    sz_upconn_deadline(call->user.conn, sz_after(sz_loop_now(call->pools->loop), call->upstream->first_byte));
}

bool sz_call_send(struct sz_proxy_call *call)
{
    const struct sz_forward *f = &call->x->txn.forward;
    struct sz_slice host = host_of(call, f);
    size_t room = size_of(f, host);
    bool in_scratch = room <= SZ_SCRATCH;
    char *head = in_scratch ? call->pools->scratch : h2o_mem_alloc_pool(&call->x->req->pool, room);

    call->state = SZ_CALL_HEAD;
    call->out[0] = (struct iovec){head, build(f, host, head)};
    call->out[1] = (struct iovec){(char *)(uintptr_t)f->body.p, f->body.n};
    call->out_n = f->body.n > 0 ? 2 : 1;
    call->any_written = false;
    set_deadline(call);
    if (write_out(call) != 0 && !call->any_written) {
        call->out_n = 0;
        return false;
    }
    if (call->out_n > 0)
        keep_rest(call, in_scratch);
    return true;
}

/*
 * A connection that takes no more may still hold the answer (a 413 before the end of the body): reading tells.  The
 * request stays unfinished, so the connection will not be used again.
 */
void sz_call_on_writable(struct sz_proxy_call *call)
{
    size_t before = call->out_n, rest = call->out_n > 0 ? call->out[0].iov_len : 0;

    if (call->out_n == 0 || write_out(call) != 0)
        return;
    if (call->out_n > 0)
        sz_upconn_want_write(call->user.conn);
    if (call->state == SZ_CALL_HEAD && (before != call->out_n || rest != call->out[0].iov_len))
        set_deadline(call);
}
