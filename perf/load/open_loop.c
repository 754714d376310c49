/*
 * Requests at fixed rates, whatever the server does: a good client and, beside it, a flood of forged tokens, in one
 * thread. A latency counts from the moment at which the request was due, so a server that stalls is charged for every
 * request that had to wait (wrk asks less of a server that is slow, and measures less).
 *
 *   open_loop SECONDS  GOOD_PORT GOOD_FILE GOOD_RATE GOOD_CONNECTIONS  [BAD_PORT BAD_FILE BAD_RATE BAD_CONNECTIONS
 * BAD_TURNS]
 *
 * Files hold raw requests with "%%" lines between them.  Of the flood, each request's signature is made up anew; each
 * of its connections comes from a loopback address of its own and is opened again after so many requests (0: never).
 * Prints one JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, ANSWER = 8192, FORGED = 40, BACKLOG = 1 << 16, STATUSES = 600 };

struct side;

struct connection {
    struct side *side;
    struct connection *next_free;
    int fd; /* -1: none */
    unsigned turns;
    int64_t due; /* of the request under way; 0: none */
    size_t got;
    char answer[ANSWER];
};

struct side {
    const char *name;
    uint16_t port;
    bool forged;
    unsigned connections_n, turns;
    double interval_ns;
    char **requests;
    size_t requests_n, at;
    int64_t start, issued;
    int64_t backlog[BACKLOG]; /* due times without a free connection */
    unsigned head, waiting;
    struct connection *connections, *free, *free_last; /* taken in turn, so that all of them are used */
    uint64_t by_status[STATUSES], lost, overrun;
    uint32_t *latencies_us;
    size_t latencies_n, latencies_max;
    int64_t lag_worst; /* how late the generator itself was */
};

static int poll_fd;
static uint64_t random_state = 88172645463325252u;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "open_loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void load_requests(struct side *side, const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 24);
    if (f == NULL || text == NULL || fread(text, 1, (1 << 24) - 1, f) == 0)
        die(path);
    fclose(f);
    for (char *end; (end = strstr(text, "%%\n")) != NULL; text = end + 3) {
        *end = '\0';
        side->requests = realloc(side->requests, (side->requests_n + 1) * sizeof(char *));
        side->requests[side->requests_n++] = text;
    }
    if (side->requests_n == 0)
        die("no request in the file");
}

/* "2001:db8:0:0000::1" in the request becomes one of a thousand clients of the proxy in front. */
static void set_client(char *request, size_t index)
{
    static const char digits[] = "0123456789abcdef";
    char *at = strstr(request, "2001:db8:0:");
    if (at == NULL)
        return;
    for (int i = 0; i < 4; i++)
        at[11 + i] = digits[index >> (12 - 4 * i) & 15];
}

/* In the middle of the signature: its first bytes decide whether it is a number that may be verified at all. */
static void forge(char *request)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *bearer = strstr(request, "Bearer "), *end = bearer != NULL ? strstr(bearer, "\r\n") : NULL;
    if (end == NULL || end - bearer < FORGED + 40)
        die("no token in the request");
    for (char *p = end - FORGED - 16; p < end - 16; p++) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        *p = alphabet[random_state & 63];
    }
}

/* The kernel completes it; what is written before waits in the socket, so no state is needed for that. */
static void connect_one(struct connection *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(c->side->port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    size_t index = (size_t)(c - c->side->connections);
    int on = 1;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(c->side->forged ? 0x7f010001u + (uint32_t)index : INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        die("socket");
    setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (bind(c->fd, (struct sockaddr *)&from, sizeof(from)) != 0 ||
        connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
        die("connect");
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
        die("epoll_ctl");
    c->turns = 0;
}

static void hang_up(struct connection *c)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0}; /* or the ports would be used up by TIME_WAIT */
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(c->fd);
    c->fd = -1;
}

static void release(struct connection *c)
{
    struct side *side = c->side;
    c->due = 0;
    c->next_free = NULL;
    if (side->free == NULL)
        side->free = c;
    else
        side->free_last->next_free = c;
    side->free_last = c;
}

static void send_due(struct connection *c, int64_t due)
{
    struct side *side = c->side;
    char *request = side->requests[side->at++ % side->requests_n];
    size_t n = strlen(request);

    if (c->fd < 0)
        connect_one(c);
    if (side->forged) {
        forge(request);
        set_client(request, (size_t)(c - side->connections));
    }
    c->due = due;
    c->got = 0;
    if (send(c->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n) {
        side->lost++;
        hang_up(c);
        release(c);
    }
}

static void issue(struct side *side, int64_t now, int64_t end)
{
    for (;;) {
        int64_t due = side->start + (int64_t)((double)side->issued * side->interval_ns);
        if (due > now || due >= end)
            break;
        side->issued++;
        if (now - due > side->lag_worst)
            side->lag_worst = now - due;
        if (side->waiting == BACKLOG) {
            side->overrun++;
            continue;
        }
        side->backlog[(side->head + side->waiting++) % BACKLOG] = due;
    }
    while (side->waiting > 0 && side->free != NULL) {
        struct connection *c = side->free;
        side->free = c->next_free;
        int64_t due = side->backlog[side->head];
        side->head = (side->head + 1) % BACKLOG;
        side->waiting--;
        send_due(c, due);
    }
}

/* Length of a whole answer, 0 while there is more to come. */
static size_t whole(const struct connection *c)
{
    const char *end = memmem(c->answer, c->got, "\r\n\r\n", 4);
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - c->answer) + 4, body = 0;
    const char *length = strcasestr(c->answer, "\r\ncontent-length:");
    if (length != NULL && length < end)
        body = strtoul(length + 17, NULL, 10);
    return c->got >= head + body ? head + body : 0;
}

static void receive(struct connection *c)
{
    struct side *side = c->side;
    ssize_t n = recv(c->fd, c->answer + c->got, ANSWER - 1 - c->got, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        bool busy = c->due != 0;
        side->lost += busy;
        hang_up(c);
        if (busy)
            release(c);
        return;
    }
    c->got += (size_t)n;
    c->answer[c->got] = '\0';
    if (c->due == 0 || whole(c) == 0)
        return;
    unsigned long status = strtoul(c->answer + 9, NULL, 10);
    side->by_status[status < STATUSES ? status : 0]++;
    if (side->latencies_n < side->latencies_max)
        side->latencies_us[side->latencies_n++] = (uint32_t)((now_ns() - c->due) / 1000);
    if (side->turns > 0 && ++c->turns >= side->turns)
        hang_up(c);
    release(c);
}

static bool idle(const struct side *side)
{
    for (unsigned i = 0; i < side->connections_n; i++) {
        if (side->connections[i].due != 0)
            return false;
    }
    return side->waiting == 0;
}

/* Never awake for nothing: a thread that spins is taken off its CPU by the scheduler, for longer than what is measured.
 */
static struct timespec until_due(const struct side *sides, size_t n, int64_t end)
{
    int64_t next = end, now = now_ns();
    for (size_t i = 0; i < n; i++) {
        int64_t due = sides[i].start + (int64_t)((double)sides[i].issued * sides[i].interval_ns);
        next = due < next ? due : next;
    }
    if (now >= end)
        next = now + 1000000;
    int64_t ns = next > now ? next - now : 0;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void run(struct side *sides, size_t n, double seconds)
{
    struct epoll_event ready[BATCH];
    int64_t start = now_ns() + 1000000, end = start + (int64_t)(seconds * 1e9), last = end + 2000000000;
    for (size_t i = 0; i < n; i++)
        sides[i].start = start;
    for (;;) {
        int64_t now = now_ns();
        bool over = now >= end;
        for (size_t i = 0; i < n; i++) {
            issue(&sides[i], now, end);
            over = over && idle(&sides[i]);
        }
        if (over || now > last)
            break;
        struct timespec nap = until_due(sides, n, end);
        int got = epoll_pwait2(poll_fd, ready, BATCH, &nap, NULL);
        for (int i = 0; i < got; i++)
            receive(ready[i].data.ptr);
    }
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < sides[i].connections_n; k++)
            sides[i].lost += sides[i].connections[k].due != 0;
        sides[i].lost += sides[i].waiting;
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Nearest rank: the smallest that at least p % of them do not exceed. */
static uint32_t percentile(const struct side *side, double p)
{
    double place = (double)side->latencies_n * p / 100;
    size_t rank = (size_t)place;
    if (side->latencies_n == 0)
        return 0;
    rank += (double)rank < place;
    return side->latencies_us[rank > 0 ? rank - 1 : 0];
}

static void report(struct side *side, double seconds)
{
    const char *comma = "";
    qsort(side->latencies_us, side->latencies_n, sizeof(uint32_t), by_value);
    printf("\"%s\":{\"due\":%lld,\"answered\":%zu,\"per_s\":%.1f,\"statuses\":{", side->name, (long long)side->issued,
           side->latencies_n, (double)side->latencies_n / seconds);
    for (int i = 0; i < STATUSES; i++) {
        if (side->by_status[i] != 0) {
            printf("%s\"%d\":%llu", comma, i, (unsigned long long)side->by_status[i]);
            comma = ",";
        }
    }
    printf("},\"lost\":%llu,\"overrun\":%llu,\"lag_worst_us\":%lld,\"p50_us\":%u,\"p90_us\":%u,\"p95_us\":%u,"
           "\"p99_us\":%u,\"p999_us\":%u,\"max_us\":%u}",
           (unsigned long long)side->lost, (unsigned long long)side->overrun, (long long)(side->lag_worst / 1000),
           percentile(side, 50), percentile(side, 90), percentile(side, 95), percentile(side, 99),
           percentile(side, 99.9), percentile(side, 100));
}

static void side_init(struct side *side, const char *name, char **argv, double seconds, bool forged)
{
    double rate = strtod(argv[2], NULL);
    side->name = name;
    side->forged = forged;
    side->port = (uint16_t)strtoul(argv[0], NULL, 10);
    side->interval_ns = 1e9 / rate;
    side->connections_n = (unsigned)strtoul(argv[3], NULL, 10);
    side->turns = forged ? (unsigned)strtoul(argv[4], NULL, 10) : 0;
    side->latencies_max = (size_t)(rate * seconds) + 16;
    load_requests(side, argv[1]);
    side->latencies_us = calloc(side->latencies_max, sizeof(uint32_t));
    side->connections = calloc(side->connections_n, sizeof(struct connection));
    if (side->latencies_us == NULL || side->connections == NULL)
        die("memory");
    for (unsigned i = 0; i < side->connections_n; i++) {
        struct connection *c = &side->connections[i];
        c->side = side;
        connect_one(c);
        release(c);
    }
}

int main(int argc, char **argv)
{
    static struct side sides[2];
    if (argc != 6 && argc != 11) {
        fprintf(stderr, "usage: open_loop SECONDS PORT FILE RATE CONNECTIONS [PORT FILE RATE CONNECTIONS TURNS]\n");
        return 2;
    }
    double seconds = strtod(argv[1], NULL);
    prctl(PR_SET_TIMERSLACK, 1000);
    size_t n = argc == 11 ? 2 : 1;
    poll_fd = epoll_create1(EPOLL_CLOEXEC);
    side_init(&sides[0], "good", argv + 2, seconds, false);
    if (n == 2)
        side_init(&sides[1], "flood", argv + 6, seconds, true);
    run(sides, n, seconds);
    printf("{");
    report(&sides[0], seconds);
    if (n == 2) {
        printf(",");
        report(&sides[1], seconds);
    }
    printf("}\n");
    return 0;
}
