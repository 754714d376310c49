/*
 * Redis clients on three real loops that share breakers, counters, a resolver and what was last said of a loss, while a
 * fourth thread looks at all of it and a fifth answers, forgets to answer, and hangs up.  Checked: each command is
 * told exactly once.  ThreadSanitizer watches the rest.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "subzero/breakers.h"
#include "subzero/crypto.h"
#include "subzero/log.h"
#include "subzero/metrics.h"
#include "subzero/redis.h"

enum { LOOPS = 3, LANES = 8, ROUNDS = 300, PEERS = 32 };

struct lane {
    struct sz_redis_op op;
    struct thread *thread;
    struct sz_timer again;
    unsigned rounds;
};

struct thread {
    pthread_t id;
    struct sz_loop *loop;
    struct sz_redis *redis;
    struct sz_msg start;
    struct lane lanes[LANES];
    unsigned running;
};

static struct sz_redis_shared *shared;
static struct thread threads[LOOPS];
static _Atomic unsigned told, refused;
static atomic_bool over;
static int listener;
static uint16_t port;

static void fail(const char *what)
{
    fprintf(stderr, "tsan_redis: %s\n", what);
    abort();
}

/* ---- the other side: "+OK" for every command, but for every fiftieth, which ends the connection --------------------
 */

static bool answer(int fd)
{
    static unsigned seen;
    char in[8192];
    ssize_t n = recv(fd, in, sizeof(in), 0);
    if (n <= 0)
        return false;
    for (ssize_t i = 0; i < n; i++) {
        if (in[i] != '*')
            continue;
        if (++seen % 50 == 0)
            return false;
        const char *reply = seen % 17 == 0 ? "-LOADING not yet\r\n" : "+OK\r\n";
        if (send(fd, reply, strlen(reply), MSG_NOSIGNAL) < 0)
            return false;
    }
    return true;
}

static void *serve(void *arg)
{
    struct pollfd fds[PEERS + 1] = {{.fd = listener, .events = POLLIN}};
    (void)arg;
    for (int i = 1; i <= PEERS; i++)
        fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    while (!atomic_load(&over)) {
        poll(fds, PEERS + 1, 5);
        for (int i = 1; i <= PEERS; i++) {
            if (fds[i].fd >= 0 && fds[i].revents != 0 && !answer(fds[i].fd)) {
                close(fds[i].fd);
                fds[i].fd = -1;
            }
        }
        int at = 1;
        while (at <= PEERS && fds[at].fd >= 0)
            at++;
        if (fds[0].revents != 0 && at <= PEERS)
            fds[at].fd = accept(listener, NULL, NULL);
    }
    for (int i = 1; i <= PEERS; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    return NULL;
}

static void *look(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct sz_redis_look l;
        struct sz_buf out = {0};
        sz_redis_shared_look(shared, &l);
        (void)sz_redis_breaker_look(shared, SZ_REDIS_LIMITS, (struct sz_mono){1});
        sz_metrics_expose(&out);
        sz_buf_fini(&out);
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static void step(struct lane *lane);

static void on_again(struct sz_timer *timer)
{
    step(SZ_CONTAINER(timer, struct lane, again));
}

static void next(struct lane *lane)
{
    struct thread *t = lane->thread;
    if (++lane->rounds == ROUNDS) {
        if (--t->running == 0)
            sz_loop_stop(t->loop);
        return;
    }
    lane->again.on_fire = on_again;
    sz_timer_start(t->loop, &lane->again, sz_after(sz_loop_now(t->loop), SZ_MS(1)));
}

static enum sz_breaker_outcome on_done(struct sz_redis_op *op, const struct sz_redis_answer *a)
{
    struct lane *lane = SZ_CONTAINER(op, struct lane, op);
    if (lane->thread->loop != sz_loop_current())
        fail("told on another thread");
    atomic_fetch_add(&told, 1);
    next(lane);
    return sz_redis_outcome(a);
}

static void step(struct lane *lane)
{
    struct sz_slice args[] = {SZ_S("GET"), SZ_S("k")};
    struct sz_redis_command command = {.args = args, .args_n = 2, .key = 1};
    enum sz_redis_use use = (enum sz_redis_use)(lane->rounds % SZ_REDIS_USES);
    lane->op.on_done = on_done;
    if (sz_redis_start(lane->thread->redis, use, &command, &lane->op) != 0) {
        atomic_fetch_add(&refused, 1);
        next(lane);
    }
}

static void on_start(struct sz_msg *msg, struct sz_loop *loop)
{
    struct thread *t = SZ_CONTAINER(msg, struct thread, start);
    (void)loop;
    t->running = LANES;
    for (unsigned i = 0; i < LANES; i++) {
        t->lanes[i].thread = t;
        step(&t->lanes[i]);
    }
}

static void *run(void *arg)
{
    struct thread *t = arg;
    t->redis = sz_redis_new(shared, t->loop);
    sz_loop_run(t->loop);
    sz_redis_free(&t->redis);
    sz_loop_free(&t->loop);
    return NULL;
}

static void listen_somewhere(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof(at);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&at, n) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &n) != 0)
        fail("no listener");
    port = ntohs(at.sin_port);
}

int main(void)
{
    pthread_t server, watcher;
    struct sz_text why;
    sz_crypto_init();
    sz_metrics_init(LOOPS);
    listen_somewhere();
    struct sz_conf_redis_place place = {.host = SZ_S("localhost"), .port = port};
    struct sz_conf_redis conf = {.on = true,
                                 .places = &place,
                                 .places_n = 1,
                                 .max_connections = 8,
                                 .timeout = SZ_MS(200),
                                 .shown = SZ_S("redis"),
                                 .breaker = {.failures = 3, .open = SZ_MS(5)}};
    shared = sz_redis_shared_new(&conf, SZ_REDIS_ALL_USES, LOOPS, &why);
    if (shared == NULL)
        fail(why.s);
    pthread_create(&server, NULL, serve, NULL);
    pthread_create(&watcher, NULL, look, NULL);
    for (unsigned i = 0; i < LOOPS; i++) {
        threads[i].loop = sz_loop_new(i);
        threads[i].start.on_msg = on_start;
        sz_loop_post(threads[i].loop, &threads[i].start);
        pthread_create(&threads[i].id, NULL, run, &threads[i]);
    }
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(threads[i].id, NULL);
    atomic_store(&over, true);
    pthread_join(server, NULL);
    pthread_join(watcher, NULL);
    close(listener);
    sz_redis_shared_free(&shared);
    sz_metrics_fini();
    if (atomic_load(&told) + atomic_load(&refused) != LOOPS * LANES * ROUNDS || atomic_load(&told) < 100)
        fail("commands were lost or told twice");
    printf("%u told, %u refused\n", atomic_load(&told), atomic_load(&refused));
    return 0;
}
