/*
 * Listening to announcements: a connection of its own, which says PING a few times a second.  Silence is the one
 * sign of a cut that is to be noticed within a second, since nothing else is ever said there.  In a cluster every
 * announcement reaches every node, so any of them will do, and another one when that is lost.
 */
#include <stdlib.h>

#include "cache/redis_client.h"

#define PING_EVERY SZ_MS(250)
#define SILENCE    SZ_SEC(1)

struct sz_redis_subscription {
    struct sz_redis_subscription *next;
    struct sz_redis *redis;
    struct sz_redis_listener *listener; /* NULL: it has left */
    struct sz_redis_conn *conn;
    struct sz_slice *channels; /* one block with their bytes */
    size_t channels_n, confirmed;
    bool up;
    struct sz_mono heard;
    struct sz_timer timer;
    struct sz_defer bury;
};

static void on_ping(struct sz_timer *timer)
{
    struct sz_redis_subscription *s = SZ_CONTAINER(timer, struct sz_redis_subscription, timer);
    struct sz_mono now = sz_loop_now(s->redis->loop);
    if (sz_between(s->heard, now).us >= SILENCE.us) {
        sz_redis_conn_drop(s->conn, "nothing heard for %d ms", (int)(SILENCE.us / 1000));
        return;
    }
    sz_redis_conn_mention(s->conn, &(struct sz_slice){"PING", 4}, 1);
    sz_timer_start(s->redis->loop, timer, sz_after(now, PING_EVERY));
}

void sz_redis_listen_up(struct sz_redis_conn *conn)
{
    struct sz_redis_subscription *s = conn->subscription;
    struct sz_slice *args = sz_xcalloc(s->channels_n + 1, sizeof(*args));
    args[0] = SZ_S("SUBSCRIBE");
    for (size_t i = 0; i < s->channels_n; i++)
        args[1 + i] = s->channels[i];
    s->confirmed = 0;
    s->heard = sz_loop_now(s->redis->loop);
    sz_redis_conn_mention(conn, args, s->channels_n + 1);
    free(args);
    sz_timer_start(s->redis->loop, &s->timer, sz_after(s->heard, PING_EVERY));
}

void sz_redis_listen_down(struct sz_redis_conn *conn)
{
    struct sz_redis_subscription *s = conn->subscription;
    bool was_up = s->up;
    sz_timer_cancel(s->redis->loop, &s->timer);
    s->up = false;
    if (was_up && s->listener != NULL)
        s->listener->on_state(s->listener, false);
}

static bool nonsense(struct sz_redis_conn *conn)
{
    sz_text_set(&conn->why, "what it says to a listener makes no sense");
    return false;
}

/* Not allowed to PING it still shows that it is there; not allowed to SUBSCRIBE is the end. */
static bool refused(struct sz_redis_subscription *s, struct sz_slice error)
{
    if (s->confirmed == s->channels_n && sz_starts_with(error, SZ_S("NOPERM")))
        return true;
    sz_text_set(&s->conn->why, "SUBSCRIBE was refused: %s", sz_redis_error_word(error));
    return false;
}

static bool confirmed(struct sz_redis_subscription *s)
{
    if (++s->confirmed == s->channels_n) {
        s->up = true;
        if (s->listener != NULL)
            s->listener->on_state(s->listener, true);
    }
    return s->confirmed <= s->channels_n || nonsense(s->conn);
}

/* Pushed: subscribe and message have three parts, a pong two. */
bool sz_redis_heard(struct sz_redis_conn *conn, const struct sz_redis_answer *answer)
{
    struct sz_redis_subscription *s = conn->subscription;
    const struct sz_redis_reply *reply = answer->reply;
    s->heard = sz_loop_now(s->redis->loop);
    if (reply == NULL)
        return refused(s, answer->error);
    if (reply->type != SZ_REDIS_ARRAY || reply->items_n < 2 || reply->items[0].type != SZ_REDIS_STRING)
        return nonsense(conn);
    struct sz_slice kind = reply->items[0].text;
    if (sz_eq(kind, SZ_S("pong")))
        return true;
    if (reply->items_n != 3 || reply->items[1].type != SZ_REDIS_STRING)
        return nonsense(conn);
    if (sz_eq(kind, SZ_S("subscribe")))
        return confirmed(s);
    if (!sz_eq(kind, SZ_S("message")) || reply->items[2].type != SZ_REDIS_STRING)
        return nonsense(conn);
    if (s->listener != NULL)
        s->listener->on_message(s->listener, reply->items[1].text, reply->items[2].text);
    return true;
}

bool sz_redis_listens_at(const struct sz_redis *redis, const struct sz_redis_node *node)
{
    for (const struct sz_redis_subscription *s = redis->subscriptions; s != NULL; s = s->next)
        if (s->conn->node == node && s->conn->state != SZ_REDIS_DOWN)
            return true;
    return false;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static void bury(struct sz_redis_subscription *s)
{
    struct sz_redis_subscription **at = &s->redis->subscriptions;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    sz_timer_cancel(s->redis->loop, &s->timer);
    sz_defer_cancel(&s->bury);
    sz_redis_conn_free(&s->conn);
    free(s->channels);
    free(s);
}

static void on_bury(struct sz_defer *defer)
{
    bury(SZ_CONTAINER(defer, struct sz_redis_subscription, bury));
}

static struct sz_slice *copy_channels(const struct sz_slice *channels, size_t n)
{
    size_t bytes = n * sizeof(*channels);
    for (size_t i = 0; i < n; i++)
        bytes += channels[i].n;
    struct sz_slice *copy = sz_xmalloc(bytes);
    char *at = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        memcpy(at, channels[i].p, channels[i].n);
        copy[i] = sz_slice(at, channels[i].n);
        at += channels[i].n;
    }
    return copy;
}

void sz_redis_listen(struct sz_redis *redis, const struct sz_slice *channels, size_t channels_n,
                     struct sz_redis_listener *listener)
{
    struct sz_redis_subscription *s = sz_xcalloc(1, sizeof(*s));
    SZ_ASSERT(channels_n > 0 && channels_n < SZ_REDIS_ARGS_MAX && listener->subscription == NULL);
    s->redis = redis;
    s->listener = listener;
    s->channels = copy_channels(channels, channels_n);
    s->channels_n = channels_n;
    s->timer.on_fire = on_ping;
    s->bury.on_run = on_bury;
    s->conn = sz_redis_conn_new(redis, NULL);
    s->conn->subscription = s;
    s->next = redis->subscriptions;
    redis->subscriptions = s;
    listener->subscription = s;
    sz_redis_conn_dial(s->conn);
}

/* Perhaps from inside one of its own callbacks. */
void sz_redis_unlisten(struct sz_redis_listener *listener)
{
    struct sz_redis_subscription *s = listener->subscription;
    if (s == NULL)
        return;
    listener->subscription = NULL;
    s->listener = NULL;
    sz_defer_start(s->redis->loop, &s->bury);
}

void sz_redis_listen_fini(struct sz_redis *redis)
{
    while (redis->subscriptions != NULL) {
        struct sz_redis_subscription *s = redis->subscriptions;
        if (s->listener != NULL)
            s->listener->subscription = NULL;
        s->listener = NULL;
        bury(s);
    }
}
