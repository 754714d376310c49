/*
 * One call: the strict head, the key and the body to the API, its answer to the client.  A call that the pool or the
 * writer works on is detached when the client leaves; over HTTP/2 nothing starts inside h2o's callback (rapid reset).
 * Of a streamed answer the next part is asked for when the client has taken the last.
 */
#include "edge/fga_listener.h"

#include <stdio.h>

#include "edge/bodies.h"
#include "edge/connection.h"
#include "edge/h2_check.h"
#include "edge/head_parse.h"
#include "edge/iovec.h"
#include "edge/respond.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/fga_api.h"

/* As OpenFGA's own server: nobody waits longer for an answer. */
#define DEADLINE SZ_SEC(3)

struct fga_call {
    h2o_generator_t generator; /* of a streamed answer */
    h2o_req_t *req;
    struct sz_edge_thread *thread;
    struct sz_conn *conn;
    struct sz_defer hop;
    struct sz_mono begun;
    struct sz_fga_call call;
    struct sz_fga_reply reply;
    struct sz_buf sending;                     /* the part that the client is taking */
    bool in_flight, streaming, over, complete; /* over: what is in the reply is the last part */
};

static void on_dispose(void *arg)
{
    struct fga_call *c = arg;
    sz_defer_cancel(&c->hop);
    if (c->in_flight)
        sz_fga_api_cancel(&c->reply);
    sz_buf_fini(&c->reply.body);
    sz_buf_fini(&c->sending);
    sz_gauge_add(c->thread->index, c->thread->server->series.in_progress, -1);
    c->conn->open--;
    c->conn->since = sz_loop_now(c->thread->loop);
    c->conn->answered.us = 0;
    if (!c->complete && c->req->version >= 0x200)
        sz_conn_count_reset(c->conn);
    sz_bodies_release(c->conn);
}

static struct fga_call *call_new(h2o_req_t *req)
{
    struct fga_call *c = h2o_mem_alloc_shared(&req->pool, sizeof(*c), on_dispose);
    memset(c, 0, sizeof(*c));
    c->req = req;
    c->thread = sz_thread_of(req);
    c->conn = sz_conn_of_req(req);
    c->begun = sz_mono_read();
    c->conn->requests++;
    c->conn->open++;
    c->conn->reading = false;
    sz_gauge_add(c->thread->index, c->thread->server->series.in_progress, 1);
    return c;
}

/* ---- the answer ---- */

struct fields {
    struct sz_header v[5];
    struct sz_headers all;
};

static void begin(struct fga_call *c, struct fields *f)
{
    struct sz_edge_thread *thread = c->thread;
    struct sz_span took = sz_between(c->begun, sz_mono_read());
    char ms[24];
    int n = snprintf(ms, sizeof(ms), "%lld", (long long)(took.us / 1000));
    h2o_iovec_t copy = h2o_strdup(&c->req->pool, ms, (size_t)n);
    f->v[0] = (struct sz_header){SZ_S("content-type"), SZ_S("application/json")};
    f->v[1] = (struct sz_header){SZ_S("cache-control"), SZ_S("no-store")};
    f->v[2] = (struct sz_header){SZ_S("x-content-type-options"), SZ_S("nosniff")};
    f->v[3] = (struct sz_header){SZ_S("fga-query-duration-ms"), sz_iovec(copy)};
    f->all = (struct sz_headers){.v = f->v, .n = 4};
    if (c->reply.challenge)
        f->v[f->all.n++] = (struct sz_header){SZ_S("www-authenticate"), SZ_S("Bearer realm=\"OpenFGA\"")};
    c->conn->authenticated = c->conn->authenticated || c->reply.status < 400;
    if (sz_server_draining(thread->server))
        c->req->http1_is_persistent = 0;
    sz_observe(thread->index, thread->server->series.fga_duration, took);
}

/* From now on the client is waited for. */
static void sending(struct fga_call *c)
{
    if (c->req->version < 0x200)
        c->conn->answered = sz_loop_now(c->thread->loop);
}

static void answer(struct fga_call *c)
{
    struct fields f;
    begin(c, &f);
    c->complete = true;
    sending(c);
    sz_respond(c->req, c->reply.status, &f.all, sz_buf_slice(&c->reply.body)); /* the body goes with the request */
}

/* ---- in parts ---- */

static void send_part(struct fga_call *c)
{
    sz_buf_fini(&c->sending);
    c->sending = c->reply.body;
    c->reply.body = (struct sz_buf){0};
    c->complete = c->over;
    sending(c);
    h2o_iovec_t part = h2o_iovec_init(c->sending.p, c->sending.n);
    h2o_send(c->req, &part, c->sending.n > 0 ? 1 : 0, c->over ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
    struct fga_call *c = SZ_CONTAINER(generator, struct fga_call, generator);
    (void)req;
    c->conn->answered.us = 0;
    sz_buf_fini(&c->sending);
    if (c->over || sz_fga_api_next(&c->reply))
        send_part(c);
}

static void on_part(struct sz_fga_reply *reply)
{
    struct fga_call *c = SZ_CONTAINER(reply, struct fga_call, reply);
    struct fields f;
    if (!c->streaming) {
        c->streaming = true;
        begin(c, &f);
        c->generator.proceed = on_proceed;
        c->req->res.status = 200;
        c->req->res.reason = "OK";
        sz_respond_headers(c->req, &f.all);
        h2o_start_response(c->req, &c->generator);
    }
    send_part(c);
}

static void on_reply(struct sz_fga_reply *reply)
{
    struct fga_call *c = SZ_CONTAINER(reply, struct fga_call, reply);
    c->in_flight = false;
    c->over = true;
    if (!c->streaming)
        answer(c);
    else if (c->sending.n == 0) /* else when that has been taken */
        send_part(c);
}

static void start(struct fga_call *c)
{
    struct sz_edge_thread *thread = c->thread;
    c->call.peer = c->conn->peer;
    c->call.keys = sz_worker_snapshot(&thread->worker)->fga_keys;
    c->reply.on_done = on_reply;
    c->reply.on_part = on_part;
    c->in_flight =
        sz_fga_api_start(thread->server->fga, thread->loop, &c->call, sz_after(c->begun, DEADLINE), &c->reply) == 0;
    if (!c->in_flight)
        answer(c);
}

static void on_hop(struct sz_defer *defer)
{
    start(SZ_CONTAINER(defer, struct fga_call, hop));
}

/* ---- the request ---- */

static void refuse(struct fga_call *c, unsigned status, const char *why)
{
    c->reply.status = status;
    c->reply.body.n = 0;
    sz_buf_printf(&c->reply.body, "{\"code\":\"validation_error\",\"message\":");
    sz_buf_json(&c->reply.body, sz_cstr(why));
    sz_buf_printf(&c->reply.body, "}");
    if (c->req->version < 0x200)
        c->req->http1_is_persistent = 0;
    answer(c);
}

/* What matters of the fields, each of them looked at once. */
struct seen {
    unsigned authorizations;
    bool page; /* a browser sent it for a page of somebody else's */
};

static void look(struct fga_call *c, struct sz_slice name, struct sz_slice value, struct seen *seen)
{
    if (sz_ieq(name, SZ_S("authorization"))) {
        c->call.authorization = value; /* in the socket's or the request's memory, like all of it */
        seen->authorizations++;
    } else if (sz_ieq(name, SZ_S("origin"))) {
        seen->page = true;
    } else if (sz_ieq(name, SZ_S("sec-fetch-site"))) {
        seen->page = seen->page || !(sz_eq(value, SZ_S("none")) || sz_eq(value, SZ_S("same-origin")));
    }
}

static bool is_loopback_name(struct sz_slice authority)
{
    struct sz_slice host = sz_head_host(authority);
    struct sz_addr addr;
    return sz_ieq(host, SZ_S("localhost")) || (sz_addr_parse(host, &addr) == 0 && sz_addr_is_loopback(addr));
}

/*
 * Without keys a loopback address is all that guards the stores, and a page in a browser on this machine can reach it,
 * by its own name too (DNS rebinding).  A reload can take the keys away while the listener stays bound where it was.
 */
static unsigned judge(const struct fga_call *c, struct sz_slice authority, const struct seen *seen, const char **why)
{
    const struct sz_conf_listener *listener = c->conn->listener->conf;
    *why = "more than one Authorization field"; /* one too many to know who asks */
    if (seen->authorizations > 1)
        return 400;
    if (sz_worker_snapshot(&c->thread->worker)->fga_keys != NULL)
        return 0;
    *why = "without fga.preshared_keys_file only loopback may ask";
    if (!sz_addr_is_loopback(listener->ip) || !sz_addr_is_loopback(c->conn->peer))
        return 403;
    *why = "without fga.preshared_keys_file requests of web pages are refused";
    if (seen->page)
        return 403;
    *why = "without fga.preshared_keys_file the Host must be a loopback one";
    return is_loopback_name(authority) ? 0 : 421;
}

/* 0, or the status to refuse with. */
static unsigned read_http1(struct fga_call *c, const struct sz_head_limits *limits, const char **why)
{
    struct seen seen = {0};
    struct sz_head head;
    bool failed = sz_head_parse_failed();
    int rc = sz_head_check(sz_slice(c->conn->sock->input->bytes, c->conn->sock->input->size), limits, &head, why);
    if (rc != 0)
        return rc == SZ_HEAD_TOO_LARGE ? 431 : 400;
    if (failed) {
        *why = "the request head is malformed";
        return 400;
    }
    for (size_t i = 0; i < head.fields_n; i++)
        look(c, head.fields[i].name, head.fields[i].value, &seen);
    c->call.method = head.method;
    c->call.target = head.target;
    return judge(c, head.authority, &seen, why);
}

static unsigned read_http2(struct fga_call *c, const struct sz_head_limits *limits, const char **why)
{
    h2o_req_t *req = c->req;
    struct seen seen = {0};
    int rc = sz_h2_check(req, limits, why);
    if (rc != 0)
        return rc == SZ_HEAD_TOO_LARGE ? 431 : 400;
    for (size_t i = 0; i < req->headers.size; i++)
        look(c, sz_iovec(*req->headers.entries[i].name), sz_iovec(req->headers.entries[i].value), &seen);
    c->call.method = sz_iovec(req->input.method);
    c->call.target = sz_iovec(req->input.path);
    return judge(c, sz_iovec(req->input.authority), &seen, why);
}

int sz_fga_on_req(h2o_handler_t *handler, h2o_req_t *req)
{
    struct fga_call *c = call_new(req);
    const struct sz_conf_limits *limits = &sz_worker_snapshot(&c->thread->worker)->conf->limits;
    struct sz_head_limits most = {.bytes = limits->request_head, .fields = limits->headers};
    bool http2 = req->version >= 0x200;
    const char *why = NULL;

    (void)handler;
    c->call.authorization = SZ_NONE;
    unsigned status = http2 ? read_http2(c, &most, &why) : read_http1(c, &most, &why);
    if (status != 0) {
        refuse(c, status, why);
        return 0;
    }
    c->call.body = sz_iovec(req->entity);
    if (http2) {
        c->hop.on_run = on_hop;
        sz_defer_start(c->thread->loop, &c->hop);
    } else {
        start(c);
    }
    return 0;
}
