/*
 * The definitions that replace libh2o's own (see the header for why each exists).  They keep h2o's contracts; whatever
 * is not our business goes to the original.
 */
#include "edge/overrides.h"

#include <dlfcn.h>
#include <h2o.h>
#include <h2o/http2.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "edge/connection.h"
#include "subzero/time.h"

_Static_assert(H2O_USE_LIBUV == 0, "libh2o-evloop is what is linked");
_Static_assert(sizeof(h2o_context_t) == 864, "h2o's structures are not those of libh2o-evloop 2.2.5");

#define OVERRIDE __attribute__((visibility("default"), used))

/* -1: not upgraded.  Prior-knowledge HTTP/2 does not come this way and stays possible. */
OVERRIDE int h2o_http2_handle_upgrade(h2o_req_t *req, struct timeval connected_at)
{
    (void)req;
    (void)connected_at;
    sz_overrides_seen.upgrade++;
    return -1;
}

/* There is one catch-all path, and the target is read by the pipeline alone (Z4). */
OVERRIDE h2o_iovec_t h2o_url_normalize_path(h2o_mem_pool_t *pool, const char *path, size_t len, size_t *query_at,
                                            size_t **norm_indexes)
{
    (void)pool;
    (void)path;
    (void)len;
    sz_overrides_seen.normalize++;
    *query_at = SIZE_MAX;
    *norm_indexes = NULL;
    return h2o_iovec_init(H2O_STRLIT("/"));
}

/*
 * h2o's loop asks this for its timers.  Monotonic time, laid onto the wall clock once at the first call: it
 * never steps.  Who needs the true date calls clock_gettime (as libc, OpenSSL, libcurl and we do).
 */
int64_t sz_h2o_now_us(void)
{
    static _Atomic int64_t offset;
    int64_t mono = sz_mono_read().us, base = atomic_load_explicit(&offset, memory_order_relaxed);
    if (base == 0) {
        int64_t mine = sz_wall_read().us - mono, none = 0;
        base = atomic_compare_exchange_strong(&offset, &none, mine) ? mine : none;
    }
    return mono + base;
}

static struct timeval steady(void)
{
    int64_t us = sz_h2o_now_us();
    return (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
}

OVERRIDE int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    (void)tz;
    sz_overrides_seen.clock++;
    *tv = steady();
    return 0;
}

/* The Date field from the wall clock as it is now; h2o's own timestamps stay steady. */
OVERRIDE void h2o_context_update_timestamp_cache(h2o_context_t *ctx)
{
    static __thread time_t written; /* the second that ctx's text says; a thread has one context */
    time_t seconds = (time_t)sz_wall_seconds(sz_wall_read());
    struct tm gmt;

    sz_overrides_seen.date++;
    ctx->_timestamp_cache.uv_now_at = h2o_now(ctx->loop);
    ctx->_timestamp_cache.tv_at = steady();
    if (seconds == written && ctx->_timestamp_cache.value != NULL)
        return;
    written = seconds;
    if (ctx->_timestamp_cache.value != NULL)
        h2o_mem_release_shared(ctx->_timestamp_cache.value);
    ctx->_timestamp_cache.value = h2o_mem_alloc_shared(NULL, sizeof(h2o_timestamp_string_t), NULL);
    gmtime_r(&seconds, &gmt);
    h2o_time2str_rfc1123(ctx->_timestamp_cache.value->rfc1123, &gmt);
    h2o_time2str_log(ctx->_timestamp_cache.value->log, seconds);
}

typedef void read_start_fn(h2o_socket_t *sock, h2o_socket_cb cb);

static read_start_fn *original_read_start(void)
{
    static read_start_fn *_Atomic found;
    read_start_fn *original = atomic_load_explicit(&found, memory_order_relaxed);
    if (original == NULL) {
        *(void **)&original = dlsym(RTLD_NEXT, "h2o_socket_read_start");
        SZ_ASSERT(original != NULL);
        atomic_store_explicit(&found, original, memory_order_relaxed);
    }
    return original;
}

/* Reads of client connections pass through the accounting of buffered bodies; all others are h2o's affair. */
OVERRIDE void h2o_socket_read_start(h2o_socket_t *sock, h2o_socket_cb cb)
{
    sz_overrides_seen.read_start++;
    original_read_start()(sock, sz_conn_wrap_read(sock, cb));
}
