/*
 * What the gateway is measured against: the same library, the same build flags, the same number
 * of threads, and nothing of ours.  Three servers in one program:
 *
 *   bare_h2o PORT THREADS hello BYTES            answers every request with 200 and a body of BYTES
 *   bare_h2o PORT THREADS chunked BYTES CHUNK    the same in HTTP chunks of CHUNK bytes, its length not announced
 *   bare_h2o PORT THREADS proxy HOST UPSTREAM    h2o's own reverse proxy to http://HOST:UPSTREAM
 *
 * Settings that cost nothing to match are matched: no access log, no Server field, keep-alive to
 * the upstream.  It is a yardstick, so it stays as small as it can be.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/http2.h>

struct thread {
    h2o_context_t ctx; /* first: h2o hands back a pointer to it */
    h2o_accept_ctx_t accept;
};

static h2o_globalconf_t config;
static int listener;
static h2o_iovec_t body;
static size_t chunk; /* 0: the body is sent whole */

static int on_hello(h2o_handler_t *self, h2o_req_t *req)
{
    static h2o_generator_t generator = {NULL, NULL};
    (void)self;
    req->res.status = 200;
    req->res.reason = "OK";
    req->res.content_length = body.len;
    h2o_start_response(req, &generator);
    h2o_send(req, &body, body.len > 0 ? 1 : 0, H2O_SEND_STATE_FINAL);
    return 0;
}

struct sending {
    h2o_generator_t super; /* first: h2o hands back a pointer to it */
    size_t sent;
};

static void send_chunk(h2o_generator_t *self, h2o_req_t *req)
{
    struct sending *s = (struct sending *)self;
    size_t n = body.len - s->sent < chunk ? body.len - s->sent : chunk;
    h2o_iovec_t part = h2o_iovec_init(body.base + s->sent, n);
    s->sent += n;
    h2o_send(req, &part, 1, s->sent == body.len ? H2O_SEND_STATE_FINAL : H2O_SEND_STATE_IN_PROGRESS);
}

static int on_chunked(h2o_handler_t *self, h2o_req_t *req)
{
    struct sending *s = h2o_mem_alloc_pool(&req->pool, sizeof(*s));
    (void)self;
    *s = (struct sending){{send_chunk, NULL}, 0};
    req->res.status = 200;
    req->res.reason = "OK";
    h2o_start_response(req, &s->super);
    send_chunk(&s->super, req);
    return 0;
}

static void on_accept(h2o_socket_t *sock, const char *error)
{
    struct thread *thread = sock->data;

    if (error != NULL)
        return;
    for (int i = 0; i < 16; i++) {
        h2o_socket_t *client = h2o_evloop_socket_accept(sock);
        if (client == NULL)
            return;
        h2o_accept(&thread->accept, client);
    }
}

static void *run(void *unused)
{
    struct thread *thread = calloc(1, sizeof(*thread));
    (void)unused;
    h2o_context_init(&thread->ctx, h2o_evloop_create(), &config);
    thread->accept.ctx = &thread->ctx;
    thread->accept.hosts = config.hosts;
    h2o_socket_t *sock = h2o_evloop_socket_create(thread->ctx.loop, dup(listener), H2O_SOCKET_FLAG_DONT_READ);
    sock->data = thread;
    h2o_socket_read_start(sock, on_accept);
    while (h2o_evloop_run(thread->ctx.loop, INT32_MAX) == 0 || errno == EINTR)
        ;
    return NULL;
}

static int listen_on(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(fd, 4096) != 0) {
        perror("bare_h2o: listen");
        exit(1);
    }
    return fd;
}

static void configure_hello(h2o_pathconf_t *path, const char *bytes)
{
    h2o_handler_t *handler = h2o_create_handler(path, sizeof(*handler));

    handler->on_req = chunk != 0 ? on_chunked : on_hello;
    body.len = strtoul(bytes, NULL, 10);
    body.base = malloc(body.len + 1);
    memset(body.base, 'x', body.len);
}

static void configure_proxy(h2o_pathconf_t *path, const char *host, const char *port)
{
    static char text[128];
    h2o_url_t upstream;
    h2o_proxy_config_vars_t vars = {.io_timeout = 10000, .keepalive_timeout = 30000, .preserve_host = 1};

    snprintf(text, sizeof(text), "http://%s:%s/", host, port);
    if (h2o_url_parse(text, strlen(text), &upstream) != 0) {
        fprintf(stderr, "bare_h2o: %s is no URL\n", text);
        exit(1);
    }
    h2o_proxy_register_reverse_proxy(path, &upstream, &vars);
}

int main(int argc, char **argv)
{
    bool hello = argc == 5 && strcmp(argv[3], "hello") == 0, proxy = argc == 6 && strcmp(argv[3], "proxy") == 0;

    if (argc == 6 && strcmp(argv[3], "chunked") == 0)
        chunk = strtoul(argv[5], NULL, 10);
    if (!hello && !proxy && chunk == 0) {
        fprintf(stderr, "usage: bare_h2o PORT THREADS hello BYTES | chunked BYTES CHUNK | proxy HOST UPSTREAM\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    h2o_config_init(&config);
    config.server_name = (h2o_iovec_t){NULL, 0};
    config.http1.req_timeout = config.http2.idle_timeout = 60000;
    h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    if (!proxy)
        configure_hello(path, argv[4]);
    else
        configure_proxy(path, argv[4], argv[5]);
    listener = listen_on((int)strtol(argv[1], NULL, 10));
    for (int i = 1; i < strtol(argv[2], NULL, 10); i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, run, NULL) != 0)
            return 1;
    }
    run(NULL);
    return 0;
}
