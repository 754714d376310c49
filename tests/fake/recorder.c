/* One thread accepts, one thread a connection; all end with the test's process. */
#include "fake/recorder.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

struct conn {
    struct recorder *recorder;
    int fd;
    unsigned number;
    char *buf;
    size_t n, cap;
};

/* More bytes into the buffer; false at the end of the stream. */
static bool more(struct conn *c)
{
    if (c->n + 65536 + 1 > c->cap) {
        c->cap = c->n + 131072 + 1;
        c->buf = sz_xrealloc(c->buf, c->cap);
    }
    ssize_t got = recv(c->fd, c->buf + c->n, c->cap - 1 - c->n, 0);
    if (got <= 0)
        return false;
    c->n += (size_t)got;
    c->buf[c->n] = '\0';
    return true;
}

static void consume(struct conn *c, size_t n)
{
    memmove(c->buf, c->buf + n, c->n - n);
    c->n -= n;
    c->buf[c->n] = '\0';
}

static size_t head_length(const struct conn *c)
{
    for (size_t i = 0; i + 4 <= c->n; i++) {
        if (memcmp(c->buf + i, "\r\n\r\n", 4) == 0)
            return i + 4;
    }
    return 0;
}

bool recorded_header(const struct recorded *rec, const char *name, char *out, size_t size)
{
    const char *line = rec->head;
    size_t n = strlen(name);
    while ((line = strstr(line, "\r\n")) != NULL) {
        line += 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1, *end = strstr(value, "\r\n");
        while (*value == ' ')
            value++;
        snprintf(out, size, "%.*s", (int)(end - value), value);
        return true;
    }
    return false;
}

/* Reads a chunked body strictly; its decoded length, or -1. */
static ssize_t read_chunked(struct conn *c)
{
    ssize_t total = 0;
    for (;;) {
        char *eol;
        while (c->n == 0 || (eol = strstr(c->buf, "\r\n")) == NULL) {
            if (!more(c))
                return -1;
        }
        char *end;
        unsigned long size = strtoul(c->buf, &end, 16);
        if (!isxdigit((unsigned char)c->buf[0]) || end != eol)
            return -1;
        consume(c, (size_t)(eol - c->buf) + 2);
        while (c->n < size + 2) {
            if (!more(c))
                return -1;
        }
        if (memcmp(c->buf + size, "\r\n", 2) != 0)
            return -1;
        consume(c, size + 2);
        if (size == 0)
            return total;
        total += (ssize_t)size;
    }
}

static ssize_t read_body(struct conn *c, const struct recorded *rec)
{
    char value[64];
    if (recorded_header(rec, "transfer-encoding", value, sizeof(value)))
        return strcasecmp(value, "chunked") == 0 ? read_chunked(c) : -1;
    if (!recorded_header(rec, "content-length", value, sizeof(value)))
        return 0;
    size_t left = strtoul(value, NULL, 10), total = left;
    while (left > 0) {
        if (c->n == 0 && !more(c))
            return -1;
        size_t n = c->n < left ? c->n : left;
        consume(c, n);
        left -= n;
    }
    return (ssize_t)total;
}

static void store(struct recorder *r, const struct recorded *rec)
{
    pthread_mutex_lock(&r->lock);
    if (r->n < RECORDER_MAX)
        r->v[r->n++] = *rec;
    else
        free(rec->head);
    pthread_mutex_unlock(&r->lock);
}

static void say(int fd, const char *text)
{
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* True when the connection goes on. */
static bool answer(struct conn *c)
{
    struct recorder *r = c->recorder;
    switch ((enum recorder_mode)r->mode) {
    case RECORDER_SLOW:
        usleep((unsigned)r->delay_ms * 1000);
        /* fallthrough */
    case RECORDER_OK:
        say(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        return true;
    case RECORDER_CLOSE:
        say(c->fd, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
        return false;
    case RECORDER_HANG:
        while (more(c))
            continue;
        return false;
    case RECORDER_CUT:
        return false;
    case RECORDER_SHORT:
        say(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.");
        return false;
    case RECORDER_GARBAGE:
        say(c->fd, "220 not this\r\n\r\n");
        return false;
    }
    return false;
}

static bool one_request(struct conn *c)
{
    struct recorded rec = {.connection = c->number};
    size_t head;
    while ((head = head_length(c)) == 0) {
        if (!more(c))
            return false;
    }
    rec.head = sz_xmalloc(head + 1);
    rec.head_n = head;
    memcpy(rec.head, c->buf, head);
    rec.head[head] = '\0';
    sscanf(rec.head, "%39s %8191s", rec.method, rec.target);
    consume(c, head);
    bool head_is_answered = strcmp(rec.method, "HEAD") == 0;
    ssize_t body = c->recorder->refuse_body ? 0 : read_body(c, &rec);
    if (body < 0) {
        snprintf(rec.method, sizeof(rec.method), "BAD-BODY");
        store(c->recorder, &rec);
        return false;
    }
    rec.body_n = (size_t)body;
    store(c->recorder, &rec);
    if (head_is_answered && c->recorder->mode == RECORDER_OK) {
        say(c->fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        return true;
    }
    return answer(c);
}

static void *conn_main(void *arg)
{
    struct conn *c = arg;
    while (one_request(c))
        continue;
    close(c->fd);
    free(c->buf);
    free(c);
    return NULL;
}

static void *accept_main(void *arg)
{
    struct recorder *r = arg;
    for (;;) {
        int fd = accept4(r->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        struct conn *c = sz_xcalloc(1, sizeof(*c));
        pthread_t thread;
        *c = (struct conn){.recorder = r, .fd = fd, .number = atomic_fetch_add(&r->connections, 1) + 1};
        SZ_ASSERT(pthread_create(&thread, NULL, conn_main, c) == 0);
        pthread_detach(thread);
    }
    return NULL;
}

void recorder_start(struct recorder *r)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    pthread_t thread;
    memset(r, 0, sizeof(*r));
    pthread_mutex_init(&r->lock, NULL);
    r->v = sz_xcalloc(RECORDER_MAX, sizeof(*r->v));
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SZ_ASSERT(r->listener >= 0 && bind(r->listener, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
              listen(r->listener, 512) == 0 && getsockname(r->listener, (struct sockaddr *)&addr, &len) == 0);
    r->port = ntohs(addr.sin_port);
    SZ_ASSERT(pthread_create(&thread, NULL, accept_main, r) == 0);
    pthread_detach(thread);
}

size_t recorder_count(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    size_t n = r->n;
    pthread_mutex_unlock(&r->lock);
    return n;
}

bool recorder_get(struct recorder *r, size_t at, struct recorded *out)
{
    pthread_mutex_lock(&r->lock);
    bool there = at < r->n;
    if (there) {
        *out = r->v[at];
        out->head = sz_xstrdup(r->v[at].head);
    }
    pthread_mutex_unlock(&r->lock);
    return there;
}

void recorder_clear(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n; i++)
        free(r->v[i].head);
    r->n = 0;
    pthread_mutex_unlock(&r->lock);
}
