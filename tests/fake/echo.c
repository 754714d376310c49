/* See echo.h.  A thread for each connection: a test has a handful of them. */
#include "fake/echo.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/process.h"
#include "subzero/base.h"

#define HEAD_MAX 65536

struct peer {
    struct echo *echo;
    int fd;
};

static void send_all(int fd, struct sz_slice s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        s = sz_from(s, (size_t)n);
    }
}

/* Bytes after the head that are still to come, by Content-Length; a test that sends chunks upstream wants another fake.
 */
static size_t body_left(const char *head, size_t have)
{
    char value[32];
    size_t at = (size_t)(raw_body(head) - head);

    if (!raw_header(head, "content-length", value, sizeof(value)))
        return 0;
    size_t length = strtoul(value, NULL, 10);
    return length > have - at ? length - (have - at) : 0;
}

static void *serve(void *arg)
{
    struct peer peer = *(struct peer *)arg;
    char *head = sz_xcalloc(1, HEAD_MAX + 1), answer[256], discard[4096];
    size_t n = 0;
    ssize_t got;

    free(arg);
    while (n < HEAD_MAX && strstr(head, "\r\n\r\n") == NULL && (got = recv(peer.fd, head + n, HEAD_MAX - n, 0)) > 0)
        n += (size_t)got;
    if (n > 0) {
        atomic_fetch_add(&peer.echo->requests, 1);
        for (size_t left = body_left(head, n); left > 0; left -= (size_t)got) {
            if ((got = recv(peer.fd, discard, left < sizeof(discard) ? left : sizeof(discard), 0)) <= 0)
                break;
        }
        size_t length = (size_t)(raw_body(head) - head);
        snprintf(answer, sizeof(answer),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                 length);
        send_all(peer.fd, sz_cstr(answer));
        if (strncmp(head, "HEAD ", 5) != 0)
            send_all(peer.fd, sz_slice(head, length));
        shutdown(peer.fd, SHUT_WR);
        while (recv(peer.fd, discard, sizeof(discard), 0) > 0)
            ;
    }
    close(peer.fd);
    free(head);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct echo *echo = arg;
    pthread_t id;

    for (;;) {
        int fd = accept(echo->listener, NULL, NULL);
        if (fd < 0)
            continue;
        struct peer *peer = sz_xmalloc(sizeof(*peer));
        *peer = (struct peer){echo, fd};
        SZ_ASSERT(pthread_create(&id, NULL, serve, peer) == 0);
        pthread_detach(id);
    }
    return NULL;
}

void echo_start(struct echo *echo, uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    pthread_t id;
    int on = 1;

    echo->port = port != 0 ? port : free_port();
    addr.sin_port = htons(echo->port);
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    echo->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SZ_ASSERT(setsockopt(echo->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    SZ_ASSERT(bind(echo->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
    SZ_ASSERT(listen(echo->listener, 128) == 0);
    SZ_ASSERT(pthread_create(&id, NULL, accept_all, echo) == 0);
    pthread_detach(id);
}
