/*
 * Is libh2o the library that we think it is?  One HTTP/1 request (chunked, asking for h2c) and one HTTP/2 preface
 * go through it over socket pairs; afterwards every override must have been called.  The same run finds h2o's two
 * private read callbacks, and a TLS handshake that is only begun shows the layout of its SSL structure.
 */
#include <errno.h>
#include <h2o.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "edge/bodies.h"
#include "edge/h2_streams.h"
#include "edge/head_parse.h"
#include "edge/overrides.h"
#include "edge/respond.h"
#include "edge/tls_peer.h"

struct rig {
    h2o_globalconf_t conf;
    h2o_hostconf_t *hosts[2];
    h2o_context_t ctx;
    h2o_evloop_t *loop;
    h2o_accept_ctx_t accept;
};

static unsigned unparsed; /* requests that reached the handler as such */

static int on_req(h2o_handler_t *handler, h2o_req_t *req)
{
    struct sz_headers none = {.n = 0};
    (void)handler;
    unparsed += sz_head_parse_failed();
    req->http1_is_persistent = 0;
    sz_respond(req, 204, &none, SZ_NONE);
    return 0;
}

static void rig_init(struct rig *rig)
{
    h2o_config_init(&rig->conf);
    rig->hosts[0] = h2o_config_register_host(&rig->conf, h2o_iovec_init(H2O_STRLIT("self.test")), 1);
    h2o_pathconf_t *path = h2o_config_register_path(rig->hosts[0], "/", 0);
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = on_req;
    rig->loop = h2o_evloop_create();
    h2o_context_init(&rig->ctx, rig->loop, &rig->conf);
    rig->accept = (h2o_accept_ctx_t){.ctx = &rig->ctx, .hosts = rig->hosts};
}

static void run(struct rig *rig)
{
    for (int i = 0; i < 8; i++)
        (void)h2o_evloop_run(rig->loop, 1);
}

static void rig_fini(struct rig *rig)
{
    run(rig);
    h2o_context_dispose(&rig->ctx);
    h2o_config_dispose(&rig->conf);
    h2o_evloop_destroy(rig->loop);
}

/* Sends the bytes to a fresh connection; returns the read callback that h2o had while the request was incomplete. */
static h2o_socket_cb send_request(struct rig *rig, const char *first, struct sz_slice rest)
{
    int fds[2];
    h2o_socket_cb seen = NULL;
    bool http2 = first[0] == 'P' && first[1] == 'R';
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        return NULL;
    h2o_socket_t *sock = h2o_evloop_socket_create(rig->loop, fds[0], H2O_SOCKET_FLAG_IS_ACCEPTED_CONNECTION);
    h2o_accept(&rig->accept, sock);
    if (write(fds[1], first, strlen(first)) > 0) {
        run(rig);
        seen = sock->_cb.read;
        if (http2 && ((h2o_http2_conn_t *)sock->data)->sock != sock)
            return NULL;
    }
    if (write(fds[1], rest.p, rest.n) > 0)
        run(rig);
    close(fds[1]);
    run(rig);
    return seen;
}

static void ignore(h2o_socket_t *sock, const char *err)
{
    (void)err;
    h2o_socket_close(sock);
}

/* A client handshake makes its SSL object at once. */
static bool tls_layout_holds(struct rig *rig)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0)
        return false;
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    h2o_socket_t *sock = h2o_evloop_socket_create(rig->loop, fds[0], 0);
    h2o_socket_ssl_handshake(sock, ctx, "self.test", ignore);
    SSL_CTX *first = sock->ssl != NULL ? *(SSL_CTX **)(void *)sock->ssl : NULL;
    bool ok = first == ctx && SSL_get_SSL_CTX(sz_tls_peer_ssl(sock)) == ctx;
    close(fds[1]);
    run(rig);
    SSL_CTX_free(ctx);
    return ok;
}

static const char *first_missing(void)
{
    const struct sz_overrides_seen *seen = &sz_overrides_seen;
    return seen->chunked == 0      ? "phr_decode_chunked"
           : seen->upgrade == 0    ? "h2o_http2_handle_upgrade"
           : seen->normalize == 0  ? "h2o_url_normalize_path"
           : seen->clock == 0      ? "gettimeofday"
           : seen->date == 0       ? "h2o_context_update_timestamp_cache"
           : seen->read_start == 0 ? "h2o_socket_read_start"
           : seen->parse == 0      ? "phr_parse_request"
           : seen->error == 0      ? "h2o_send_error_generic"
           : seen->frame == 0      ? "h2o_http2_decode_frame"
           : seen->header == 0     ? "h2o_hpack_parse_headers"
                                   : NULL;
}

int sz_overrides_self_test(struct sz_text *why)
{
    struct rig rig = {.loop = NULL};

    rig_init(&rig);
    h2o_socket_cb http1 = send_request(&rig,
                                       "POST / HTTP/1.1\r\nHost: self.test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                                       "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n1\r\n",
                                       SZ_S("x\r\n0\r\n\r\n"));
    /* SETTINGS, and HEADERS of "GET http /" in three entries of HPACK's static table. */
    h2o_socket_cb http2 = send_request(&rig, "PRI * HTTP/2.0\r\n\r\n",
                                       SZ_S("SM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\3\1\5\0\0\0\1\x82\x86\x84"));
    send_request(&rig, "POST / HTTP/1.1\r\n", SZ_S("Host: self.test\r\nContent-Length: x\r\n\r\n"));
    send_request(&rig, "POST", SZ_S(" / HTTP/one\r\n\r\n"));
    bool tls = tls_layout_holds(&rig);
    rig_fini(&rig);
    const char *missing = first_missing();
    if (missing != NULL || http1 == NULL || http2 == NULL || http1 == http2 || unparsed != 1 || !tls) {
        sz_text_set(why, "libh2o does not behave as this build expects (%s): it needs libh2o-evloop 2.2.5",
                    missing != NULL ? missing
                    : unparsed != 1 ? "request parser"
                    : !tls          ? "TLS structure"
                                    : "read callbacks");
        return -ENOTSUP;
    }
    sz_bodies_learn(http1, http2);
    return 0;
}
