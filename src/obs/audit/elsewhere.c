/*
 * Standard output goes through the log's queue, which never waits; syslog is a datagram each (RFC 5424), and never
 * waits either.  The time in a message's header is the record's own.
 */
#include "obs/audit/elsewhere.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "obs/audit/chain.h"
#include "subzero/addr.h"
#include "subzero/log.h"

enum { PRIORITY = 13 * 8 + 5 /* log audit, notice */ };

static int connect_path(const char *path, struct sz_text *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        sz_text_set(why, "audit.syslog: the path is longer than a socket's may be");
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    int rc = -errno;
    if (fd >= 0)
        close(fd);
    sz_text_set(why, "audit.syslog: cannot connect to %s: %s", path, strerror(-rc));
    return rc;
}

static int connect_address(const struct sz_conf_audit *conf, struct sz_text *why)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(conf->syslog_port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(conf->syslog_port)};
    bool is_v4 = sz_addr_is_v4(conf->syslog_ip);
    memcpy(&v6.sin6_addr, conf->syslog_ip.b, 16);
    memcpy(&v4.sin_addr, conf->syslog_ip.b + 12, 4);
    int fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        connect(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) == 0)
        return fd;
    int rc = -errno;
    if (fd >= 0)
        close(fd);
    sz_text_set(why, "audit.syslog: cannot reach %.*s: %s", SZ_FMT(conf->syslog), strerror(-rc));
    return rc;
}

int sz_audit_elsewhere_open(struct sz_audit_elsewhere *e, const struct sz_conf_audit *conf, struct sz_text *why)
{
    struct utsname host;
    *e = (struct sz_audit_elsewhere){.syslog = -1, .to_stdout = conf->to_stdout};
    if (conf->syslog.p == NULL)
        return 0;
    if (uname(&host) != 0)
        return -errno;
    snprintf(e->prefix, sizeof(e->prefix), " %.64s subzero %ld audit - ", host.nodename, (long)getpid());
    int fd = conf->syslog.p[0] == '/' ? connect_path(conf->syslog.p, why) : connect_address(conf, why);
    e->syslog = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

void sz_audit_elsewhere_close(struct sz_audit_elsewhere *e)
{
    if (e->syslog >= 0)
        close(e->syslog);
    e->syslog = -1;
}

static bool send_line(const struct sz_audit_elsewhere *e, struct sz_slice line)
{
    char message[SZ_AUDIT_LINE_MAX + 256];
    struct sz_slice time = SZ_S("-");
    uint64_t seq;
    char micro[32];
    /* RFC 5424 allows six digits of a second. */
    if (sz_audit_line_head(line, &seq, &time)) {
        snprintf(micro, sizeof(micro), "%.26sZ", time.p);
        time = sz_cstr(micro);
    }
    int n = snprintf(message, sizeof(message), "<%d>1 %.*s%s%.*s", PRIORITY, SZ_FMT(time), e->prefix, SZ_FMT(line));
    return n > 0 && (size_t)n < sizeof(message) && send(e->syslog, message, (size_t)n, MSG_NOSIGNAL) == n;
}

uint64_t sz_audit_elsewhere_put(struct sz_audit_elsewhere *e, struct sz_slice lines)
{
    struct sz_slice line;
    uint64_t lost = 0;
    if (e->syslog < 0 && !e->to_stdout)
        return 0;
    while (lines.n > 0 && sz_split(&lines, '\n', &line)) {
        if (line.n == 0)
            continue;
        if (e->to_stdout)
            lost += !sz_log_line(line);
        if (e->syslog >= 0)
            lost += !send_line(e, line);
    }
    return lost;
}
