/*
 * libcurl on the loop.  Its sockets hang on an epoll descriptor of our own, which the loop watches as one: libcurl
 * changes its mind about a socket several times in a turn, and closes sockets as it likes, neither of which concerns
 * the loop then.  The resolver's mailbox hangs there too.
 *
 * libcurl closes an idle connection, dead or too old, only when somebody asks for one.  When nobody does for a
 * while, the sweeper does: a handle whose request is given up at the point where its name would be looked up, by when
 * libcurl has gone through what it keeps.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fga/http_client.h"

enum { BATCH = 64, STREAMS = 100 };

/* ---- what has ended ---------------------------------------------------------------------------------------------- */

static void reap(struct sz_http *http)
{
    CURLMsg *msg;
    int left;
    while ((msg = sz_curl.multi_info_read(http->multi, &left)) != NULL) {
        CURLcode code = msg->data.result; /* msg is gone with the handle */
        if (msg->easy_handle == http->sweeper) {
            sz_curl.multi_remove_handle(http->multi, http->sweeper);
            http->sweeping = false;
            continue;
        }
        struct sz_http_job *job = NULL;
        sz_curl.easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &job);
        sz_http_job_landed(job, code);
    }
    sz_http_hosts_turn(http);
}

static void act(struct sz_http *http, curl_socket_t fd, int events)
{
    int running;
    CURLMcode rc = sz_curl.multi_socket_action(http->multi, fd, events, &running);
    SZ_ASSERT(rc == CURLM_OK);
    reap(http);
}

/* ---- its sockets ------------------------------------------------------------------------------------------------- */

static void watch(struct sz_http *http, int fd, uint32_t events)
{
    struct epoll_event wanted = {.events = events, .data.fd = fd};
    int rc = epoll_ctl(http->epoll, EPOLL_CTL_MOD, fd, &wanted);
    if (rc != 0 && errno == ENOENT)
        rc = epoll_ctl(http->epoll, EPOLL_CTL_ADD, fd, &wanted);
    SZ_ASSERT(rc == 0 || errno == ENOMEM || errno == ENOSPC); /* out of kernel memory: the deadline will tell */
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
    struct sz_http *http = arg;
    (void)easy, (void)of_socket;
    if (what == CURL_POLL_REMOVE)
        /* It may be closed already, and so have left by itself; its number may even be another thread's socket by now,
         * which is not in here. */
        (void)epoll_ctl(http->epoll, EPOLL_CTL_DEL, fd, NULL);
    else
        watch(http, fd, ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u));
    return 0;
}

static void on_ready(void *arg, int epoll, unsigned events)
{
    struct sz_http *http = arg;
    struct epoll_event ready[BATCH];
    (void)events;
    int n = epoll_wait(epoll, ready, BATCH, 0);
    for (int i = 0; i < n; i++) {
        uint32_t e = ready[i].events;
        if (ready[i].data.fd == http->mailbox.fd)
            sz_http_hosts_answered(http);
        else
            act(http, ready[i].data.fd,
                ((e & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) | ((e & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                    ((e & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0));
    }
}

/* ---- its timer --------------------------------------------------------------------------------------------------- */

static void on_timer(struct sz_timer *timer)
{
    act(SZ_CONTAINER(timer, struct sz_http, timer), CURL_SOCKET_TIMEOUT, 0);
}

static void on_defer(struct sz_defer *defer)
{
    act(SZ_CONTAINER(defer, struct sz_http, defer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
    struct sz_http *http = arg;
    (void)multi;
    sz_timer_cancel(http->loop, &http->timer);
    sz_defer_cancel(&http->defer);
    if (ms == 0)
        sz_defer_start(http->loop, &http->defer); /* still in this turn */
    else if (ms > 0)
        sz_timer_start(http->loop, &http->timer, sz_after(sz_loop_now(http->loop), SZ_MS(ms)));
    return 0;
}

/* ---- idle connections -------------------------------------------------------------------------------------------- */

#define FORGET_EVERY SZ_SEC(600)

/* libcurl looks no more often than once a second. */
static struct sz_span sweep_pause(const struct sz_http *http)
{
    struct sz_span pause = {http->shared->conf.idle.us / 4};
    return pause.us > SZ_SEC(1).us ? pause : SZ_SEC(1);
}

/*
 * Some connections may still be kept, until the sweeper went when all of them had been idle for long enough: by its own
 * time, not by the clock, since a loop that was busy comes late.
 */
static bool keeps_some(const struct sz_http *http)
{
    struct sz_mono last = sz_after(sz_after(http->landed, http->shared->conf.idle), SZ_US(2 * sweep_pause(http).us));
    return http->flying != 0 || http->swept.us < last.us;
}

static int give_up(void *resolver, void *reserved, void *arg)
{
    (void)resolver, (void)reserved, (void)arg;
    return 1;
}

static void arm_sweep(struct sz_http *http, struct sz_span pause)
{
    struct sz_mono at = sz_after(sz_loop_now(http->loop), pause);
    if (!sz_timer_armed(&http->sweep) || at.us < http->sweep.at.us)
        sz_timer_start(http->loop, &http->sweep, at);
}

static void on_sweep(struct sz_timer *timer)
{
    struct sz_http *http = SZ_CONTAINER(timer, struct sz_http, sweep);
    sz_http_hosts_sweep(http, sz_loop_now(http->loop));
    if (http->sweeping) /* still: libcurl had no room for one connection more */
        sz_curl.multi_remove_handle(http->multi, http->sweeper);
    http->sweeping = keeps_some(http);
    if (http->sweeping) {
        sz_http_multi_add(http, http->sweeper);
        http->swept = sz_loop_now(http->loop);
    }
    if (http->sweeping || http->hosts_n != 0)
        arm_sweep(http, http->sweeping ? sweep_pause(http) : FORGET_EVERY);
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

CURL *sz_http_multi_handle(struct sz_http *http)
{
    if (http->spares != 0)
        return http->spare[--http->spares];
    CURL *easy = sz_curl.easy_init();
    SZ_ASSERT(easy != NULL);
    return easy;
}

void sz_http_multi_add(struct sz_http *http, CURL *easy)
{
    CURLMcode rc = sz_curl.multi_add_handle(http->multi, easy);
    SZ_ASSERT(rc == CURLM_OK);
}

void sz_http_multi_remove(struct sz_http *http, CURL **easy)
{
    sz_curl.multi_remove_handle(http->multi, *easy);
    http->landed = sz_loop_now(http->loop);
    arm_sweep(http, sweep_pause(http));
    if (http->spares < SZ_COUNT(http->spare) && !http->closing) {
        sz_curl.easy_reset(*easy);
        http->spare[http->spares++] = *easy;
    } else {
        sz_curl.easy_cleanup(*easy);
    }
    *easy = NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void make_sweeper(struct sz_http *http)
{
    http->sweeper = sz_curl.easy_init();
    SZ_ASSERT(http->sweeper != NULL);
    sz_http_easy_basics(http, http->sweeper);
    sz_curl_set_pointer(http->sweeper, CURLOPT_URL, "http://sweep.invalid/");
    sz_curl_set_callback(http->sweeper, CURLOPT_RESOLVER_START_FUNCTION, give_up);
}

static void make_multi(struct sz_http *http)
{
    const struct sz_conf_http *conf = &http->shared->conf;
    http->multi = sz_curl.multi_init();
    SZ_ASSERT(http->multi != NULL);
    sz_curl.multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    sz_curl.multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    sz_curl.multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    sz_curl.multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    sz_curl.multi_setopt(http->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    sz_curl.multi_setopt(http->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)STREAMS);
    sz_curl.multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)conf->connections);
    sz_curl.multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)conf->per_host);
    sz_curl.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)conf->connections);
}

static int open_epoll(struct sz_http *http)
{
    int rc = sz_mailbox_open(&http->mailbox, http->shared->resolver);
    if (rc != 0)
        return rc;
    http->epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event mail = {.events = EPOLLIN, .data.fd = http->mailbox.fd};
    if (http->epoll < 0 || epoll_ctl(http->epoll, EPOLL_CTL_ADD, http->mailbox.fd, &mail) != 0) {
        rc = -errno;
        if (http->epoll >= 0)
            close(http->epoll);
        sz_mailbox_close(&http->mailbox);
    }
    return rc;
}

int sz_http_multi_init(struct sz_http *http)
{
    if (!sz_curl_loaded())
        return -ELIBACC;
    int rc = open_epoll(http);
    if (rc != 0)
        return rc;
    http->timer.on_fire = on_timer;
    http->defer.on_run = on_defer;
    http->sweep.on_fire = on_sweep;
    make_multi(http);
    make_sweeper(http);
    http->watch = sz_watch_new(http->loop, http->epoll, on_ready, http);
    sz_watch_set(http->watch, SZ_READ);
    return 0;
}

void sz_http_multi_fini(struct sz_http *http)
{
    if (http->multi == NULL)
        return;
    if (http->sweeping)
        sz_curl.multi_remove_handle(http->multi, http->sweeper);
    sz_curl.easy_cleanup(http->sweeper);
    while (http->spares != 0)
        sz_curl.easy_cleanup(http->spare[--http->spares]);
    sz_curl.multi_cleanup(http->multi); /* closes what is open */
    sz_watch_free(&http->watch);
    close(http->epoll);
    sz_timer_cancel(http->loop, &http->timer);
    sz_timer_cancel(http->loop, &http->sweep);
    sz_defer_cancel(&http->defer);
}
