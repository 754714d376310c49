/*
 * Scripts by their hash.  A server that does not know one is given it, and asked once more: on the same connection, in
 * the same write, within the same deadline.  It cannot have run before, since it was not known.
 */
#include "cache/redis_client.h"
#include "subzero/crypto.h"

void sz_redis_script_prepare(struct sz_redis_script *script)
{
    uint8_t digest[20];
    sz_sha1(script->text, digest);
    sz_hex_encode(digest, sizeof(digest), script->sha);
    script->sha[40] = '\0';
}

int sz_redis_eval(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_script *script,
                  struct sz_slice key, const struct sz_slice *args, size_t args_n, struct sz_mono deadline,
                  struct sz_redis_op *op)
{
    struct sz_slice all[SZ_REDIS_ARGS_MAX] = {SZ_S("EVALSHA"), sz_slice(script->sha, 40), SZ_S("1"), key};
    SZ_ASSERT(script->sha[0] != '\0' && args_n <= SZ_REDIS_ARGS_MAX - 4);
    for (size_t i = 0; i < args_n; i++)
        all[4 + i] = args[i];
    struct sz_redis_command command = {.args = all, .args_n = 4 + args_n, .key = 3, .deadline = deadline};
    return sz_redis_start_script(redis, use, &command, script, op);
}

/* Whether it could be loaded shows in the answer to the second EVALSHA. */
static bool on_loaded(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    (void)conn;
    (void)p;
    (void)answer;
    return true;
}

bool sz_redis_script_again(struct sz_redis_conn *conn, struct sz_redis_pending *p)
{
    if (p->script == NULL || p->reloaded)
        return false;
    p->reloaded = true;
    sz_redis_conn_say(conn, (struct sz_slice[]){SZ_S("SCRIPT"), SZ_S("LOAD"), p->script->text}, 3, on_loaded);
    sz_redis_conn_send(conn, p);
    return true;
}
