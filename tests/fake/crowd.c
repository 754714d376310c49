/* See crowd.h.  Sockets that never block and one epoll: a client is whatever its descriptor can do next. */
#include "fake/crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake/process.h"

enum { ANSWER_MAX = 4096, FILLER = 65536 };

struct run {
    struct crowd *crowd;
    int epoll;
};

struct client {
    struct run *run;
    unsigned number;
    int fd; /* -1: done */
    struct sz_buf out;
    size_t sent;
    uint64_t filler; /* still to send behind `out` */
    char answer[ANSWER_MAX];
    size_t answer_n;
};

static void prepare(struct client *c)
{
    c->out.n = c->sent = c->answer_n = 0;
    c->run->crowd->head(c->run->crowd, &c->out);
    c->filler = c->run->crowd->body;
}

static void connect_client(struct client *c)
{
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons(c->run->crowd->port)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    int on = 1;

    from.sin_addr.s_addr = htonl(0x7f010000u | (c->number / 250) << 8 | (c->number % 250 + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    SZ_ASSERT(c->fd >= 0 && setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) == 0);
    SZ_ASSERT(bind(c->fd, (struct sockaddr *)&from, sizeof(from)) == 0);
    SZ_ASSERT(connect(c->fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS);
    SZ_ASSERT(epoll_ctl(c->run->epoll, EPOLL_CTL_ADD, c->fd, &event) == 0);
    prepare(c);
}

static void hang_up(struct client *c)
{
    close(c->fd);
    c->fd = -1;
    if (c->run->crowd->repeat && !c->run->crowd->stop)
        connect_client(c);
}

/* As much as the kernel takes.  Trouble shows when the answer is read: one may have come all the same. */
static void send_on(struct client *c)
{
    static const char filler[FILLER];

    for (;;) {
        struct sz_slice next = sz_from(sz_buf_slice(&c->out), c->sent);
        if (next.n == 0)
            next = sz_slice(filler, c->filler < FILLER ? (size_t)c->filler : FILLER);
        ssize_t n = next.n == 0 ? 0 : send(c->fd, next.p, next.n, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        atomic_fetch_add(&c->run->crowd->bytes, (unsigned long)n);
        if (c->sent < c->out.n)
            c->sent += (size_t)n;
        else
            c->filler -= (uint64_t)n;
    }
}

/* Length of the whole answer in front, 0 while there is none. */
static size_t whole_answer(struct client *c)
{
    char length[32];

    c->answer[c->answer_n] = '\0';
    const char *end = strstr(c->answer, "\r\n\r\n");
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - c->answer) + 4;
    size_t body = raw_header(c->answer, "content-length", length, sizeof(length)) ? strtoul(length, NULL, 10) : 0;
    return head + body <= c->answer_n ? head + body : 0;
}

/* True: go on with this client now; *over: its connection has no more use. */
static bool read_on(struct client *c, bool *over)
{
    ssize_t n = recv(c->fd, c->answer + c->answer_n, ANSWER_MAX - 1 - c->answer_n, 0);

    if (n < 0 && errno == EAGAIN)
        return false;
    *over = n <= 0;
    if (n <= 0) {
        atomic_fetch_add(&c->run->crowd->cut, 1);
        return false;
    }
    c->answer_n += (size_t)n;
    if (whole_answer(c) == 0)
        return true;
    int status = raw_status(c->answer);
    SZ_ASSERT(status >= 0 && (size_t)status < SZ_COUNT(c->run->crowd->by_status));
    atomic_fetch_add(&c->run->crowd->by_status[status], 1);
    atomic_fetch_add(&c->run->crowd->answered, 1);
    /* An answer before the end of the body: what is left of it has no place any more. */
    *over = !c->run->crowd->repeat || c->filler > 0;
    if (!*over)
        prepare(c);
    return !*over;
}

static void serve(struct run *run)
{
    struct epoll_event events[256];
    int n = epoll_wait(run->epoll, events, (int)SZ_COUNT(events), 50);

    for (int i = 0; i < n; i++) {
        struct client *c = events[i].data.ptr;
        bool over = false;
        do
            send_on(c);
        while (read_on(c, &over));
        if (over)
            hang_up(c);
    }
}

static void *crowd_main(void *arg)
{
    struct run run = {.crowd = arg, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    unsigned n = run.crowd->clients;
    struct client *clients = sz_xcalloc(n, sizeof(*clients));

    SZ_ASSERT(run.epoll >= 0);
    /* The crowd takes what processor time the rest leaves: a test wants to see what it does to the gateway. */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
    for (unsigned i = 0; i < n; i++) {
        clients[i] = (struct client){.run = &run, .number = i};
        connect_client(&clients[i]);
    }
    while (!run.crowd->stop)
        serve(&run);
    for (unsigned i = 0; i < n; i++) {
        if (clients[i].fd >= 0)
            close(clients[i].fd);
        sz_buf_fini(&clients[i].out);
    }
    close(run.epoll);
    free(clients);
    return NULL;
}

void crowd_start(struct crowd *crowd)
{
    struct rlimit files;

    SZ_ASSERT(crowd->clients <= 10000 && getrlimit(RLIMIT_NOFILE, &files) == 0);
    files.rlim_cur = files.rlim_max;
    SZ_ASSERT(setrlimit(RLIMIT_NOFILE, &files) == 0);
    SZ_ASSERT(pthread_create(&crowd->thread, NULL, crowd_main, crowd) == 0);
}

void crowd_end(struct crowd *crowd)
{
    crowd->stop = true;
    pthread_join(crowd->thread, NULL);
}

bool crowd_wait(struct crowd *crowd, unsigned long n, struct sz_span limit)
{
    struct sz_mono end = in_time(limit);

    while (crowd->answered + crowd->cut < n) {
        if (sz_mono_read().us > end.us)
            return false;
        poll(NULL, 0, 10);
    }
    return true;
}
