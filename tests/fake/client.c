/* See client.h. */
#include "fake/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "subzero/time.h"

int client_open_from(const char *address, uint16_t port)
{
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SZ_ASSERT(fd >= 0 && inet_pton(AF_INET, address, &from.sin_addr) == 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&from, sizeof(from)) == 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    close(fd);
    return -1;
}

int client_open(uint16_t port)
{
    return client_open_from("127.0.0.1", port);
}

static bool wait_for(int fd, short events, int ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, ms) == 1;
}

bool client_send(int fd, struct sz_slice bytes)
{
    while (bytes.n > 0) {
        if (!wait_for(fd, POLLOUT, 10000))
            return false;
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            return false;
        if (n > 0)
            bytes = sz_from(bytes, (size_t)n);
    }
    return true;
}

size_t client_read(int fd, char *buf, size_t size, int quiet_ms, bool *closed)
{
    size_t n = 0;
    bool end = false;
    while (n + 1 < size && wait_for(fd, POLLIN, quiet_ms)) {
        ssize_t got = recv(fd, buf + n, size - 1 - n, 0);
        if (got <= 0) {
            end = true;
            break;
        }
        n += (size_t)got;
    }
    buf[n] = '\0';
    if (closed != NULL)
        *closed = end;
    return n;
}

/* Length of the whole response at the start of buf, 0 while it is incomplete. */
static size_t response_length(const char *buf, size_t n)
{
    const char *end = strstr(buf, "\r\n\r\n");
    char value[32];
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - buf) + 4;
    size_t body = raw_header(buf, "content-length", value, sizeof(value)) ? (size_t)strtoul(value, NULL, 10) : 0;
    return head + body <= n ? head + body : 0;
}

int client_response(int fd, char *buf, size_t size, int timeout_ms)
{
    int64_t end = sz_mono_read().us + (int64_t)timeout_ms * 1000;
    size_t n = 0;
    buf[0] = '\0';
    while (n + 1 < size && response_length(buf, n) == 0) {
        int64_t left = (end - sz_mono_read().us) / 1000;
        if (left <= 0 || !wait_for(fd, POLLIN, (int)left))
            break;
        ssize_t got = recv(fd, buf + n, size - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
        buf[n] = '\0';
    }
    return response_length(buf, n) == 0 ? 0 : raw_status(buf);
}

bool client_closed_within(int fd, int ms)
{
    int64_t end = sz_mono_read().us + (int64_t)ms * 1000;
    char buf[4096];
    for (;;) {
        int64_t left = (end - sz_mono_read().us) / 1000;
        if (left <= 0 || !wait_for(fd, POLLIN, (int)left))
            return false;
        if (recv(fd, buf, sizeof(buf), 0) <= 0)
            return true;
    }
}

void client_reset(int fd)
{
    struct linger hard = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}
