/* The Redis client against a real server: commands, pipelining, login, scripts, loss and return. */
#include "redis_kit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

static struct redis_kit k;
static struct redis_server server;
static struct kit_ask ask;

static void setup(void)
{
    if (!redis_available())
        cr_skip_test("no redis-server here");
    server = (struct redis_server){.port = 0};
    kit_init(&k);
}

static void teardown(void)
{
    kit_stop(&k);
    redis_kill(&server);
    scratch_remove();
}

static void start(void)
{
    cr_assert(redis_start(&server));
    kit_at(&k, server.port);
    kit_start(&k);
}

TestSuite(redis, .init = setup, .fini = teardown, .timeout = 60);

Test(redis, answers_of_every_kind)
{
    start();
    cr_expect_eq(kit_say(&k, &ask, "SET a hello"), SZ_REDIS_ANSWERED); /* waits for the connection */
    cr_expect(ask.type == SZ_REDIS_STATUS && strcmp(ask.text, "OK") == 0);
    cr_expect_str_eq(kit_text(&k, "GET a"), "hello");
    cr_expect_eq(kit_say(&k, &ask, "GET nothing"), SZ_REDIS_ANSWERED);
    cr_expect_eq(ask.type, SZ_REDIS_NIL);
    cr_expect_eq(kit_say(&k, &ask, "INCR n"), SZ_REDIS_ANSWERED);
    cr_expect(ask.type == SZ_REDIS_INTEGER && ask.integer == 1);
    cr_expect_eq(kit_say(&k, &ask, "MGET a nothing n"), SZ_REDIS_ANSWERED);
    cr_expect(ask.type == SZ_REDIS_ARRAY && ask.text_n == 3);
    cr_expect_eq(kit_say(&k, &ask, "LPUSH a x"), SZ_REDIS_ERROR);
    cr_expect(strncmp(ask.text, "WRONGTYPE", 9) == 0);
}

Test(redis, a_thousand_commands_in_one_turn_are_answered_in_order)
{
    static struct kit_ask asks[1000];
    start();
    kit_connected(&k);
    for (size_t i = 0; i < SZ_COUNT(asks); i++)
        cr_assert_eq(kit_begin(&k, &asks[i], SZ_REDIS_LIMITS, 1, "INCR n"), 0);
    kit_run(&k, 0);
    for (int i = 0; i < 100 && asks[999].done == 0; i++)
        kit_run(&k, 20);
    for (size_t i = 0; i < SZ_COUNT(asks); i++)
        cr_assert(asks[i].done == 1 && asks[i].result == SZ_REDIS_ANSWERED);
    cr_expect_str_eq(kit_text(&k, "GET n"), "1000");
    struct sz_redis_look look;
    sz_redis_shared_look(k.shared, &look);
    cr_expect(look.connections <= look.connections_max, "%u of %u", look.connections, look.connections_max);
}

Test(redis, what_is_under_way_is_bounded)
{
    static struct kit_ask asks[5000];
    size_t begun = 0;
    start();
    kit_connected(&k);
    int rc = 0;
    while (begun < SZ_COUNT(asks) && (rc = kit_begin(&k, &asks[begun], SZ_REDIS_CACHE, 1, "GET n")) == 0)
        begun++;
    cr_expect_eq(rc, SZ_REDIS_FULL);
    cr_expect(begun > 4000 && begun < 4100, "%zu", begun);
    struct sz_breaker_look look = sz_redis_breaker_look(k.shared, SZ_REDIS_CACHE, sz_loop_now(k.loop));
    cr_expect_eq(look.failures, 0);
    kit_run(&k, 300);
    cr_expect_eq(kit_say(&k, &ask, "PING"), SZ_REDIS_ANSWERED);
}

Test(redis, login_database_name_and_unix_socket)
{
    server.password = "p@ss word";
    cr_assert(redis_start(&server));
    k.places[0] = (struct sz_conf_redis_place){.path = sz_cstr(server.path)};
    k.conf.password = (struct sz_secret){.value = SZ_S("p@ss word"), .set = true};
    k.conf.database = 3;
    kit_start(&k);
    cr_expect_eq(kit_say(&k, &ask, "SET a 1"), SZ_REDIS_ANSWERED);
    cr_expect(redis_says(&server, "INFO keyspace", "$"));
    char *info = redis_say(&server, "INFO keyspace"), *clients = redis_say(&server, "CLIENT LIST");
    cr_expect(strstr(info, "db3:keys=1") != NULL, "%s", info);
    cr_expect(strstr(clients, "name=subzero") != NULL, "%s", clients);
    free(info);
    free(clients);
}

Test(redis, an_acl_user_and_the_right_to_nothing_but_what_is_needed)
{
    cr_assert(redis_start(&server));
    cr_assert(redis_says(&server, "ACL SETUSER gate on >secret ~* +get +set", "+OK"));
    kit_at(&k, server.port);
    k.conf.username = SZ_S("gate");
    k.conf.password = (struct sz_secret){.value = SZ_S("secret"), .set = true};
    kit_start(&k);
    cr_expect_eq(kit_say(&k, &ask, "SET a 1"), SZ_REDIS_ANSWERED); /* neither CLIENT, CONFIG nor PING is allowed */
    cr_expect_eq(kit_say(&k, &ask, "DEL a"), SZ_REDIS_ERROR);
    cr_expect(strncmp(ask.text, "NOPERM", 6) == 0);
}

Test(redis, a_wrong_password_is_said_and_never_shown)
{
    struct sz_redis_look look;
    server.password = "right";
    cr_assert(redis_start(&server));
    kit_at(&k, server.port);
    k.conf.password = (struct sz_secret){.value = SZ_S("wrong"), .set = true};
    kit_start(&k);
    kit_run(&k, 200);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_CONNECTION);
    sz_redis_shared_look(k.shared, &look);
    cr_expect(!look.reachable && strstr(look.why.s, "WRONGPASS") != NULL && strstr(look.why.s, "wrong\"") == NULL, "%s",
              look.why.s);
    /* The password is put right: no restart is needed. */
    cr_assert(redis_says(&server, "CONFIG SET requirepass wrong", "+OK"));
    kit_connected(&k);
    cr_expect_eq(kit_say(&k, &ask, "GET a"), SZ_REDIS_ANSWERED);
}

Test(redis, a_script_is_loaded_when_it_is_missing)
{
    static struct sz_redis_script script = {.name = "echo", .text = SZ_S("return {KEYS[1], ARGV[1]}")};
    start();
    kit_connected(&k);
    sz_redis_script_prepare(&script);
    for (int i = 0; i < 3; i++) {
        struct sz_slice arg = SZ_S("x");
        ask = (struct kit_ask){.op.on_done = NULL};
        (void)kit_begin(&k, &ask, SZ_REDIS_LIMITS, 0, "PING"); /* sets the callback */
        kit_run(&k, 100);
        ask.done = 0;
        cr_assert_eq(sz_redis_eval(k.redis, SZ_REDIS_LIMITS, &script, SZ_S("key"), &arg, 1, SZ_NEVER, &ask.op), 0);
        kit_run(&k, 200);
        cr_expect(ask.done == 1 && ask.result == SZ_REDIS_ANSWERED && ask.text_n == 2, "%d: %d %s", i, ask.result,
                  ask.text);
        cr_assert(redis_says(&server, i == 0 ? "PING" : "SCRIPT FLUSH", "+"));
    }
}

Test(redis, a_cancelled_command_is_never_heard_of)
{
    start();
    cr_assert_eq(kit_begin(&k, &ask, SZ_REDIS_CACHE, 1, "SET a 1"), 0);
    sz_redis_cancel(&ask.op); /* while it waits for a connection */
    cr_expect_null(ask.op.pending);
    kit_connected(&k);
    cr_assert_eq(kit_begin(&k, &ask, SZ_REDIS_CACHE, 1, "SET b 1"), 0);
    sz_redis_cancel(&ask.op);
    sz_redis_cancel(&ask.op);
    cr_expect_str_eq(kit_text(&k, "GET b"), "1"); /* it had been said */
    cr_expect_eq(ask.done, 0);
}

Test(redis, free_ends_what_is_under_way)
{
    start();
    kit_connected(&k);
    cr_assert_eq(kit_begin(&k, &ask, SZ_REDIS_CACHE, 1, "BLPOP a 5"), 0);
    kit_run(&k, 20);
    sz_redis_free(&k.redis);
    cr_expect(ask.done == 1 && ask.result == SZ_REDIS_CONNECTION);
}
