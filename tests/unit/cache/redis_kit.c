/* See redis_kit.h.  The loop is the real one's code; its time is the real one, moved before each turn. */
#include "redis_kit.h"

#include <poll.h>
#include <stdio.h>

#include "loop/loop.h"
#include "subzero/crypto.h"

void kit_init(struct redis_kit *k)
{
    *k = (struct redis_kit){.conf = {.on = true,
                                     .max_connections = 3,
                                     .timeout = SZ_SEC(1),
                                     .shown = SZ_S("redis://test"),
                                     .breaker = {.failures = 5, .open = SZ_SEC(30)}}};
    k->conf.places = k->places;
    k->conf.places_n = 1;
}

void kit_at(struct redis_kit *k, uint16_t port)
{
    k->places[0] = (struct sz_conf_redis_place){.host = SZ_S("127.0.0.1"), .port = port};
}

void kit_start(struct redis_kit *k)
{
    struct sz_text why = {""};
    sz_crypto_init();
    k->loop = fake_loop_new(0);
    k->shared = sz_redis_shared_new(&k->conf, SZ_REDIS_ALL_USES, 1, &why);
    cr_assert_not_null(k->shared, "%s", why.s);
    k->redis = sz_redis_new(k->shared, k->loop);
    cr_assert_not_null(k->redis);
}

void kit_stop(struct redis_kit *k)
{
    sz_redis_free(&k->redis);
    sz_redis_shared_free(&k->shared);
    fake_loop_free(&k->loop);
}

static void turn(struct redis_kit *k, struct sz_mono *last)
{
    struct pollfd wait = {.fd = k->loop->epoll, .events = POLLIN};
    poll(&wait, 1, 1);
    struct sz_mono now = sz_mono_read();
    fake_loop_advance(k->loop, sz_between(*last, now));
    *last = now;
    fake_loop_run_once(k->loop);
}

bool kit_until(struct redis_kit *k, bool (*done)(void *arg), void *arg, int ms)
{
    struct sz_mono last = sz_mono_read(), end = sz_after(last, SZ_MS(ms));
    while (!done(arg)) {
        if (last.us > end.us)
            return false;
        turn(k, &last);
    }
    return true;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void kit_run(struct redis_kit *k, int ms)
{
    (void)kit_until(k, never, NULL, ms);
}

static bool reachable(void *arg)
{
    struct redis_kit *k = arg;
    struct sz_redis_look look;
    sz_redis_shared_look(k->shared, &look);
    return look.reachable;
}

void kit_connected(struct redis_kit *k)
{
    struct sz_redis_look look;
    bool ok = kit_until(k, reachable, k, 5000);
    sz_redis_shared_look(k->shared, &look);
    cr_assert(ok, "not connected: %s", look.why.s);
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static enum sz_breaker_outcome on_done(struct sz_redis_op *op, const struct sz_redis_answer *answer)
{
    struct kit_ask *ask = SZ_CONTAINER(op, struct kit_ask, op);
    struct sz_slice text = answer->error;
    cr_expect_null(op->pending);
    ask->done++;
    ask->result = answer->result;
    ask->at = sz_loop_now(ask->kit->loop);
    cr_expect_eq(answer->reply != NULL, answer->result == SZ_REDIS_ANSWERED);
    if (answer->reply != NULL) {
        ask->type = answer->reply->type;
        ask->integer = answer->reply->integer;
        text = answer->reply->text;
        ask->text_n = answer->reply->type == SZ_REDIS_ARRAY ? answer->reply->items_n : text.n;
    }
    snprintf(ask->text, sizeof(ask->text), "%.*s", (int)(text.n < 127 ? text.n : 127), text.p != NULL ? text.p : "");
    return sz_redis_outcome(answer);
}

int kit_begin(struct redis_kit *k, struct kit_ask *ask, enum sz_redis_use use, unsigned key, const char *words)
{
    struct sz_slice args[SZ_REDIS_ARGS_MAX], rest = sz_cstr(words);
    size_t n = 0;
    *ask = (struct kit_ask){.op.on_done = on_done, .kit = k};
    while (sz_split(&rest, ' ', &args[n]))
        n++;
    struct sz_redis_command command = {
        .args = args, .args_n = n, .key = key, .deadline = sz_after(sz_loop_now(k->loop), SZ_SEC(10))};
    return sz_redis_start(k->redis, use, &command, &ask->op);
}

static bool is_done(void *arg)
{
    return ((struct kit_ask *)arg)->done > 0;
}

int kit_say(struct redis_kit *k, struct kit_ask *ask, const char *words)
{
    unsigned key = sz_find_byte(sz_cstr(words), ' ') >= 0 ? 1 : 0;
    int rc = kit_begin(k, ask, SZ_REDIS_LIMITS, key, words);
    if (rc != 0)
        return rc;
    cr_assert(kit_until(k, is_done, ask, 5000), "no end of '%s'", words);
    return (int)ask->result;
}

const char *kit_text(struct redis_kit *k, const char *words)
{
    static struct kit_ask ask;
    return kit_say(k, &ask, words) == SZ_REDIS_ANSWERED ? ask.text : "";
}
