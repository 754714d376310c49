/*
 * HTTP clients on three real loops, which share a resolver, a dependency with its breaker, and the metrics, while a
 * fourth thread scrapes.  Calls end, are cancelled, and are cut off by short deadlines; names are looked up anew all
 * the time.  Checked: each call is told exactly once, or not at all after it was cancelled.  ThreadSanitizer watches
 * the rest.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fga/http_client.h"
#include "subzero/dependency.h"

enum { LOOPS = 3, CALLS = 8, ROUNDS = 60 };

struct slot {
    struct sz_dependency_call call;
    struct thread *thread;
    struct sz_timer leave;
    unsigned rounds, random;
};

struct thread {
    pthread_t id;
    struct sz_loop *loop;
    struct sz_http *http;
    struct sz_msg start;
    struct slot slots[CALLS];
    unsigned running;
};

static struct sz_http_shared *shared;
static struct thread threads[LOOPS];
static struct sz_conf_breaker breaker = {.failures = 1000, .open = SZ_MS(10)};
static _Atomic unsigned told, left, lookups;
static atomic_bool over;
static uint16_t port;

/*
 * libcurl closes a socket that never got to connect and only then says that it need not be watched any more.  By then
 * its number may be another thread's; taking that out of an epoll that it is not in does nothing.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:^on_socket$\n";
}

static void fail(const char *what)
{
    fprintf(stderr, "tsan_http: %s\n", what);
    abort();
}

/* ---- the other side ---------------------------------------------------------------------------------------------- */

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char in[4096];
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    while (read(fd, in, sizeof(in)) > 0)
        if (write(fd, answer, sizeof(answer) - 1) < 0)
            break;
    close(fd);
    return NULL;
}

static void *accept_all(void *arg)
{
    int listener = (int)(intptr_t)arg, fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        pthread_t id;
        if (pthread_create(&id, NULL, serve, (void *)(intptr_t)fd) != 0)
            fail("no thread");
        pthread_detach(id);
    }
    return NULL;
}

static int listen_somewhere(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&addr, n) != 0 || listen(listener, 128) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &n) != 0)
        fail("cannot listen");
    port = ntohs(addr.sin_port);
    return listener;
}

static int lookup(const char *host, struct sz_addresses *out)
{
    (void)host;
    if (lookups++ % 7 == 3)
        usleep(2000);
    return sz_addr_parse(SZ_S("127.0.0.1"), &out->v[out->n++]);
}

/* ---- the callers ------------------------------------------------------------------------------------------------- */

static void next_round(struct slot *slot);

static enum sz_breaker_outcome on_done(struct sz_dependency_call *call, const struct sz_http_answer *answer)
{
    struct slot *slot = SZ_CONTAINER(call, struct slot, call);
    sz_timer_cancel(slot->thread->loop, &slot->leave);
    if (answer->result == SZ_HTTP_ANSWERED && !sz_eq(answer->body, SZ_S("ok")))
        fail("a wrong answer");
    told++;
    next_round(slot);
    return sz_dependency_outcome(answer);
}

static void on_leave(struct sz_timer *timer)
{
    struct slot *slot = SZ_CONTAINER(timer, struct slot, leave);
    sz_dependency_cancel(&slot->call);
    left++;
    next_round(slot);
}

static void next_round(struct slot *slot)
{
    struct thread *t = slot->thread;
    struct sz_mono now = sz_loop_now(t->loop);
    char url[64];
    if (slot->rounds++ == ROUNDS) {
        if (--t->running == 0)
            sz_loop_stop(t->loop);
        return;
    }
    slot->random = slot->random * 1103515245u + 12345u;
    unsigned r = slot->random >> 16;
    snprintf(url, sizeof(url), "http://h%u.test:%u/", r % 5, port);
    struct sz_http_request request = {.url = sz_cstr(url),
                                      .insecure_http = true,
                                      .idempotent = true,
                                      .deadline = sz_after(now, r % 4 == 0 ? SZ_MS(1) : SZ_SEC(5))};
    /* As after a reload: by name. */
    struct sz_dependency *d = sz_dependency_get("issuer:tsan", &breaker, now);
    slot->call.on_done = on_done;
    if (sz_dependency_start(d, t->http, &request, &slot->call) != 0)
        fail("cannot start");
    sz_dependency_put(&d);
    if (r % 5 == 0)
        sz_timer_start(t->loop, &slot->leave, sz_after(now, SZ_US(500)));
}

static void on_start(struct sz_msg *msg, struct sz_loop *loop)
{
    struct thread *t = SZ_CONTAINER(msg, struct thread, start);
    t->http = sz_http_new(shared, loop);
    for (unsigned i = 0; i < CALLS; i++) {
        struct slot *slot = &t->slots[i];
        slot->thread = t;
        slot->leave.on_fire = on_leave;
        slot->random = (unsigned)(t - threads) * 1000 + i * 77 + 1;
        t->running++;
        next_round(slot);
    }
}

static void *run(void *arg)
{
    struct thread *t = arg;
    sz_loop_run(t->loop);
    sz_http_free(&t->http);
    sz_loop_free(&t->loop);
    return NULL;
}

static void *scrape(void *arg)
{
    while (!over) {
        struct sz_buf out = {0};
        sz_metrics_expose(&out);
        sz_buf_fini(&out);
        usleep(1000);
    }
    return arg;
}

int main(void)
{
    struct sz_conf_http conf = {.connections = 30, .per_host = 12, .dns_ttl = SZ_SEC(1), .idle = SZ_SEC(60)};
    pthread_t acceptor, scraper;
    struct sz_text why;
    sz_crypto_init();
    sz_metrics_init(LOOPS);
    if (sz_http_prepare(&why) != 0)
        fail(why.s);
    shared = sz_http_shared_new(&conf, LOOPS);
    sz_resolver_free(&shared->resolver);
    shared->resolver = sz_resolver_new(SZ_MS(3), lookup);
    int listener = listen_somewhere();
    if (pthread_create(&acceptor, NULL, accept_all, (void *)(intptr_t)listener) != 0 ||
        pthread_create(&scraper, NULL, scrape, NULL) != 0)
        fail("no thread");
    for (unsigned i = 0; i < LOOPS; i++) {
        threads[i].loop = sz_loop_new(i);
        threads[i].start.on_msg = on_start;
        sz_loop_post(threads[i].loop, &threads[i].start);
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0)
            fail("no thread");
    }
    for (unsigned i = 0; i < LOOPS; i++)
        pthread_join(threads[i].id, NULL);
    over = true;
    pthread_join(scraper, NULL);
    shutdown(listener, SHUT_RDWR);
    pthread_join(acceptor, NULL);
    close(listener);
    sz_http_shared_free(&shared);
    sz_metrics_fini();
    if (told + left != LOOPS * CALLS * ROUNDS)
        fail("not every call had its end");
    printf("tsan_http: %u told, %u left, %u look-ups\n", told, left, lookups);
    return 0;
}
