/* Announcements: heard in order, missed ones known to be missed, silence noticed. */
#include "redis_kit.h"

#include <stdio.h>
#include <stdlib.h>

static struct redis_kit k;
static struct redis_server server;

static struct heard {
    struct sz_redis_listener listener;
    unsigned up, down, messages;
    bool is_up, leave;
    struct sz_mono went_down;
    char last[64];
} heard;

static void on_message(struct sz_redis_listener *listener, struct sz_slice channel, struct sz_slice message)
{
    struct heard *h = SZ_CONTAINER(listener, struct heard, listener);
    h->messages++;
    snprintf(h->last, sizeof(h->last), "%.*s:%.*s", SZ_FMT(channel), SZ_FMT(message));
    if (h->leave)
        sz_redis_unlisten(listener);
}

static void on_state(struct sz_redis_listener *listener, bool up)
{
    struct heard *h = SZ_CONTAINER(listener, struct heard, listener);
    cr_expect_neq(h->is_up, up);
    h->is_up = up;
    *(up ? &h->up : &h->down) += 1;
    if (!up)
        h->went_down = sz_mono_read();
}

static bool is_up(void *arg)
{
    return ((struct heard *)arg)->is_up;
}

static bool is_down(void *arg)
{
    return !((struct heard *)arg)->is_up;
}

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    server = (struct redis_server){.port = 0};
    kit_init(&k);
    cr_assert(redis_start(&server));
    kit_at(&k, server.port);
    kit_start(&k);
    heard = (struct heard){.listener = {.on_message = on_message, .on_state = on_state}};
    sz_redis_listen(k.redis, (struct sz_slice[]){SZ_S("one"), SZ_S("two")}, 2, &heard.listener);
    cr_expect_eq(heard.up, 0);
    cr_assert(kit_until(&k, is_up, &heard, 5000));
}

static void teardown(void)
{
    kit_stop(&k);
    redis_kill(&server);
    scratch_remove();
}

TestSuite(redis_listen, .init = setup, .fini = teardown, .timeout = 60);

Test(redis_listen, messages_of_its_channels_alone)
{
    free(redis_say(&server, "PUBLISH other x"));
    free(redis_say(&server, "PUBLISH one first"));
    free(redis_say(&server, "PUBLISH two second"));
    kit_run(&k, 100);
    cr_expect(heard.messages == 2 && strcmp(heard.last, "two:second") == 0, "%u %s", heard.messages, heard.last);
    kit_run(&k, 1500); /* nothing but pings keeps it up */
    cr_expect(heard.is_up && heard.down == 0);
    heard.leave = true;
    free(redis_say(&server, "PUBLISH one third"));
    free(redis_say(&server, "PUBLISH one fourth"));
    kit_run(&k, 100);
    cr_expect_eq(heard.messages, 3);
    cr_expect_null(heard.listener.subscription);
    cr_expect(redis_number(&server, "PUBLISH one nobody") == 0);
}

/* An ACL user without the right to PING; and one without the channel. */
Test(redis_listen, rights)
{
    sz_redis_unlisten(&heard.listener);
    kit_run(&k, 50);
    cr_assert(redis_says(&server, "ACL SETUSER default -ping", "+OK"));
    heard = (struct heard){.listener = {.on_message = on_message, .on_state = on_state}};
    sz_redis_listen(k.redis, &(struct sz_slice){"one", 3}, 1, &heard.listener);
    cr_assert(kit_until(&k, is_up, &heard, 5000));
    kit_run(&k, 1500);
    cr_expect(heard.is_up && heard.down == 0);
    free(redis_say(&server, "PUBLISH one x"));
    kit_run(&k, 100);
    cr_expect_eq(heard.messages, 1);
    cr_assert(redis_says(&server, "ACL SETUSER default resetchannels", "+OK"));
    kit_run(&k, 1500);
    cr_expect(!heard.is_up);
    cr_assert(redis_says(&server, "ACL SETUSER default allchannels", "+OK"));
    cr_expect(kit_until(&k, is_up, &heard, 5000));
}

Test(redis_listen, a_restart_is_a_gap)
{
    redis_kill(&server);
    cr_expect(kit_until(&k, is_down, &heard, 1000));
    cr_assert(redis_start(&server));
    cr_expect(kit_until(&k, is_up, &heard, 5000));
    cr_expect(heard.up == 2 && heard.down == 1);
    free(redis_say(&server, "PUBLISH one again"));
    kit_run(&k, 100);
    cr_expect_str_eq(heard.last, "one:again");
}

Test(redis_listen, silence_is_a_gap)
{
    struct sz_mono began = sz_mono_read();
    redis_pause(&server);
    cr_expect(kit_until(&k, is_down, &heard, 5000));
    int64_t took = sz_between(began, heard.went_down).us;
    cr_expect(took < 1600000, "%lld us", (long long)took);
    redis_continue(&server);
    cr_expect(kit_until(&k, is_up, &heard, 5000));
}
