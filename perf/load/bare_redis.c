/*
 * A yardstick for looks into L2 and for rate limits: a bare h2o handler that asks Redis once for each request and then
 * says 200.  The client is the gateway's own, on the gateway's loop; nothing is judged, named, unsealed or kept.
 *
 *   bare_redis PORT REDIS_PORT KEY                         GET KEY
 *   bare_redis PORT REDIS_PORT script:bucket|script:window the limiter's script, for the key that X-Original-URI names:
 *                                                          100 of each, nothing comes back; 429 when it denies
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <h2o.h>
#include <h2o/http1.h>

#include "subzero/limit.h"
#include "subzero/loop.h"
#include "subzero/redis.h"

extern const char sz_lua_limit_bucket[], sz_lua_limit_window[]; /* cache/limit_*.lua */

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accepting;
static struct sz_redis *redis;
static struct sz_slice key;
static struct sz_redis_script script; /* no text: GET */
static char args_text[6][24];
static struct sz_slice args[6];
static size_t args_n;

struct call { /* in the request's pool */
    struct sz_redis_op op;
    h2o_req_t *req;
};

static void on_dispose(void *p)
{
    sz_redis_cancel(&((struct call *)p)->op);
}

static void answer(h2o_req_t *req, int status)
{
    static h2o_generator_t generator = {NULL, NULL};
    req->res.status = status;
    req->res.reason = "-";
    req->res.content_length = 0;
    h2o_start_response(req, &generator);
    h2o_send(req, NULL, 0, H2O_SEND_STATE_FINAL);
}

static enum sz_breaker_outcome on_done(struct sz_redis_op *op, const struct sz_redis_answer *got)
{
    struct call *call = SZ_CONTAINER(op, struct call, op);
    answer(call->req, got->result == SZ_REDIS_ANSWERED && got->reply->type == SZ_REDIS_STRING ? 200 : 503);
    return sz_redis_outcome(got);
}

static enum sz_breaker_outcome on_taken(struct sz_redis_op *op, const struct sz_redis_answer *got)
{
    struct call *call = SZ_CONTAINER(op, struct call, op);
    bool good = got->result == SZ_REDIS_ANSWERED && got->reply->type == SZ_REDIS_ARRAY && got->reply->items_n > 0;
    answer(call->req, !good ? 503 : got->reply->items[0].integer == 1 ? 200 : 429);
    return sz_redis_outcome(got);
}

static int start_get(struct call *call)
{
    struct sz_slice words[] = {SZ_S("GET"), key};
    struct sz_redis_command command = {.args = words, .args_n = 2, .key = 1, .deadline = SZ_NEVER};
    call->op.on_done = on_done;
    return sz_redis_start(redis, SZ_REDIS_CACHE, &command, &call->op);
}

static int start_script(struct call *call, h2o_req_t *req)
{
    ssize_t at = h2o_find_header_by_str(&req->headers, H2O_STRLIT("x-original-uri"), -1);
    char name[128];
    if (at < 0)
        return -1;
    h2o_iovec_t uri = req->headers.entries[at].value;
    int n = snprintf(name, sizeof(name), "subzero:rl:bench:{%.*s}", (int)uri.len, uri.base);
    if (n < 0 || (size_t)n >= sizeof(name))
        return -1;
    call->op.on_done = on_taken;
    return sz_redis_eval(redis, SZ_REDIS_LIMITS, &script, sz_slice(name, (size_t)n), args, args_n, SZ_NEVER, &call->op);
}

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
    struct call *call = h2o_mem_alloc_shared(&req->pool, sizeof(*call), on_dispose);
    (void)self;
    *call = (struct call){.req = req};
    if ((script.text.p != NULL ? start_script(call, req) : start_get(call)) != 0)
        answer(req, 503);
    return 0;
}

/* What a policy of 100 without refill hands to its script. */
static void prepare_script(bool window)
{
    struct sz_limit_rule r;
    int rc = window ? sz_limit_window(100, SZ_SEC(86400), 1, &r) : sz_limit_bucket(100, 0, SZ_SEC(1), 1, &r);
    const uint64_t bucket[] = {r.capacity, r.n, r.d, r.cost, r.fill, 1}, windows[] = {r.capacity, r.window, r.cost, 1};
    SZ_ASSERT(rc == 0);
    args_n = window ? SZ_COUNT(windows) : SZ_COUNT(bucket);
    for (size_t i = 0; i < args_n; i++) {
        snprintf(args_text[i], sizeof(args_text[i]), "%llu", (unsigned long long)(window ? windows[i] : bucket[i]));
        args[i] = sz_cstr(args_text[i]);
    }
    script =
        (struct sz_redis_script){.name = "limit", .text = sz_cstr(window ? sz_lua_limit_window : sz_lua_limit_bucket)};
    sz_redis_script_prepare(&script);
}

static void on_accept(h2o_socket_t *sock, const char *error)
{
    h2o_socket_t *client;
    if (error != NULL)
        return;
    for (int i = 0; i < 16 && (client = h2o_evloop_socket_accept(sock)) != NULL; i++)
        h2o_accept(&accepting, client);
}

static int listen_on(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd == -1 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 ||
        bind(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(fd, 4096) != 0) {
        perror("bare_redis: listen");
        exit(1);
    }
    return fd;
}

int main(int argc, char **argv)
{
    struct sz_text why = {""};
    if (argc != 4) {
        fprintf(stderr, "usage: bare_redis PORT REDIS_PORT KEY | script:bucket | script:window\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    sz_crypto_init();
    struct sz_conf_redis_place place = {.host = SZ_S("127.0.0.1"), .port = (uint16_t)strtol(argv[2], NULL, 10)};
    struct sz_conf_redis conf = {.on = true,
                                 .places = &place,
                                 .places_n = 1,
                                 .max_connections = 2,
                                 .timeout = SZ_MS(1000),
                                 .breaker = {5, SZ_SEC(30)}};
    struct sz_redis_shared *shared = sz_redis_shared_new(&conf, SZ_REDIS_ALL_USES, 1, &why);
    struct sz_loop *loop = sz_loop_new(0);
    if (shared == NULL || loop == NULL) {
        fprintf(stderr, "bare_redis: %s\n", why.s);
        return 1;
    }
    key = sz_cstr(argv[3]);
    if (sz_starts_with(key, SZ_S("script:")))
        prepare_script(sz_eq(key, SZ_S("script:window")));
    redis = sz_redis_new(shared, loop);
    h2o_config_init(&config);
    config.server_name = (h2o_iovec_t){NULL, 0};
    config.http1.req_timeout = 60000;
    h2o_hostconf_t *host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req = on_req;
    h2o_context_init(&context, sz_loop_native(loop), &config);
    accepting.ctx = &context;
    accepting.hosts = config.hosts;
    h2o_socket_t *sock =
        h2o_evloop_socket_create(context.loop, listen_on((int)strtol(argv[1], NULL, 10)), H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(sock, on_accept);
    sz_loop_run(loop);
    return 0;
}
