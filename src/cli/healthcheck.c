/*
 * healthcheck: asks the admin listener whether the gateway is ready.  For containers, whose images have no curl.
 * Exit 0 ready, 1 not ready, 3 nobody answered.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "subzero/addr.h"

static const char usage_text[] = "usage: subzero healthcheck [--admin ADDRESS:PORT]\n"
                                 "\n"
                                 "Asks /readyz of the admin listener (127.0.0.1:9901).  Exit 0: ready, 1: not ready,\n"
                                 "3: nobody answered.\n";

/* "127.0.0.1:9901" or "[::1]:9901". */
static bool parse_address(const char *s, struct sz_addr *ip, uint16_t *port)
{
    const char *colon = strrchr(s, ':');
    uint64_t n;
    if (colon == NULL || sz_parse_u64(sz_cstr(colon + 1), 65535, &n) != 0)
        return false;
    struct sz_slice host = sz_slice(s, (size_t)(colon - s));
    if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = sz_sub(host, 1, host.n - 2);
    *port = (uint16_t)n;
    return sz_addr_parse(host, ip) == 0;
}

static int open_connection(struct sz_addr ip, uint16_t port)
{
    struct timeval patience = {.tv_sec = 3};
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

/* The status of GET /readyz, 0 when there was no answer. */
static int ask(int fd)
{
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[64];
    size_t n = 0;
    if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != (ssize_t)(sizeof(request) - 1))
        return 0;
    while (n < sizeof(answer) - 1) {
        ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    answer[n] = '\0';
    uint64_t status;
    if (!sz_starts_with(sz_cstr(answer), SZ_S("HTTP/1.1 ")) ||
        sz_parse_u64(sz_sub(sz_cstr(answer), 9, 3), 999, &status) != 0)
        return 0;
    return (int)status;
}

int sz_cmd_healthcheck(int argc, char **argv)
{
    const char *address = "127.0.0.1:9901";
    struct sz_addr ip;
    uint16_t port;

    if (argc == 2 && sz_cli_is_help(argv[1])) {
        fputs(usage_text, stdout);
        return SZ_EXIT_OK;
    }
    if (argc == 3 && strcmp(argv[1], "--admin") == 0)
        address = argv[2];
    if ((argc != 1 && argc != 3) || (argc == 3 && address != argv[2]) || !parse_address(address, &ip, &port)) {
        fputs(usage_text, stderr);
        return SZ_EXIT_USAGE;
    }
    int fd = open_connection(ip, port), status = fd < 0 ? 0 : ask(fd);
    if (fd >= 0)
        close(fd);
    if (status == 200)
        return SZ_EXIT_OK;
    fprintf(stderr, "subzero: %s: %s\n", address, status == 0 ? "nobody answered" : "not ready");
    return status == 0 ? SZ_EXIT_UNAVAILABLE : SZ_EXIT_NO;
}
