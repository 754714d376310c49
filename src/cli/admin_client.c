/* HTTP/1.1 as far as it is needed: one request, one connection, everything until it closes. */
#include "cli/admin_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "subzero/crypto.h"

bool sz_cli_admin_parse(const char *s, struct sz_cli_admin *out)
{
    const char *colon = strrchr(s, ':');
    uint64_t n;
    if (colon == NULL || sz_parse_u64(sz_cstr(colon + 1), 65535, &n) != 0)
        return false;
    struct sz_slice host = sz_slice(s, (size_t)(colon - s));
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = sz_sub(host, 1, host.n - 2);
    out->port = (uint16_t)n;
    return sz_addr_parse(host, &out->ip) == 0;
}

static int open_connection(struct sz_addr ip, uint16_t port)
{
    struct timeval patience = {.tv_sec = 5};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    bool is_v4 = sz_addr_is_v4(ip);
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    memcpy(&v4.sin_addr, ip.b + 12, 4);
    memcpy(&v6.sin6_addr, ip.b, 16);
    if (connect(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool send_all(int fd, struct sz_slice bytes)
{
    while (bytes.n > 0) {
        ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes = sz_from(bytes, (size_t)n);
    }
    return true;
}

static bool ask(int fd, const struct sz_cli_admin *admin, const char *method, const char *path, struct sz_slice json,
                struct sz_buf *raw)
{
    struct sz_buf request = {0};
    char chunk[4096];
    ssize_t n = 0;
    sz_buf_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method, path);
    if (admin->token.p != NULL)
        sz_buf_printf(&request, "Authorization: Bearer %.*s\r\n", SZ_FMT(admin->token));
    if (json.p != NULL)
        sz_buf_printf(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", json.n);
    sz_buf_printf(&request, "\r\n");
    sz_buf_adds(&request, json);
    bool sent = send_all(fd, sz_buf_slice(&request));
    while (sent && raw->n < 64 * 1024 && (n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
        sz_buf_add(raw, chunk, (size_t)n);
    sz_wipe(request.p, request.n);
    sz_buf_fini(&request);
    return sent;
}

int sz_cli_admin_ask(const struct sz_cli_admin *admin, const char *method, const char *path, struct sz_slice json,
                     struct sz_buf *answer)
{
    struct sz_buf raw = {0};
    uint64_t status = 0;
    int fd = open_connection(admin->ip, admin->port);
    if (fd < 0)
        return 0;
    bool sent = ask(fd, admin, method, path, json, &raw);
    close(fd);
    struct sz_slice got = sz_buf_slice(&raw);
    if (!sent || !sz_starts_with(got, SZ_S("HTTP/1.1 ")) || sz_parse_u64(sz_sub(got, 9, 3), 999, &status) != 0)
        status = 0;
    const char *body = memmem(got.p, got.n, "\r\n\r\n", 4);
    if (answer != NULL && body != NULL)
        sz_buf_adds(answer, sz_from(got, (size_t)(body - got.p) + 4));
    sz_buf_fini(&raw);
    return (int)status;
}
