/*
 * What is said first, in one write: AUTH, SELECT, CLIENT SETNAME, whether the server may evict, and a PING that shows
 * whether it serves commands at all (LOADING, MASTERDOWN, NOAUTH are errors of it).  CLIENT and CONFIG may be
 * forbidden to us: then they are not needed.
 */
#include <stdio.h>

#include "cache/redis_client.h"
#include "subzero/log.h"

enum kind { AUTH, SELECT, SETNAME, POLICY, PING };

static bool refused(struct sz_redis_conn *conn, const char *what, const struct sz_redis_answer *answer)
{
    sz_text_set(&conn->why, "%s was refused: %s", what, sz_redis_error_word(answer->error));
    return false;
}

/* Counters and revocations that Redis throws away when memory is short are limits and revocations that do not hold. */
static void note_policy(struct sz_redis_shared *shared, const struct sz_redis_answer *answer)
{
    const struct sz_redis_reply *reply = answer->reply;
    if (shared->uses == 1u << SZ_REDIS_CACHE)
        return; /* a cache may lose what it likes */
    if (reply == NULL || reply->type != SZ_REDIS_ARRAY || reply->items_n != 2 ||
        reply->items[1].type != SZ_REDIS_STRING)
        return;
    struct sz_slice policy = reply->items[1].text;
    bool evicts = !sz_eq(policy, SZ_S("noeviction"));
    atomic_store(&shared->evicts, evicts);
    if (evicts && !atomic_exchange(&shared->eviction_said, true))
        sz_log(SZ_LOG_WARN, "redis",
               "maxmemory-policy of %.*s is '%.*s': with its memory full it drops counters and revocations; set it to "
               "noeviction",
               SZ_FMT(shared->conf->shown), (int)(policy.n < 32 ? policy.n : 32), policy.p);
}

static bool on_login(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    bool answered = answer->result == SZ_REDIS_ANSWERED;
    switch ((enum kind)p->kind) {
    case AUTH:
        if (!answered)
            return refused(conn, "the login", answer);
        break;
    case SELECT:
        if (!answered)
            return refused(conn, "the database", answer);
        break;
    case SETNAME:
        break;
    case POLICY:
        note_policy(conn->redis->shared, answer);
        break;
    case PING:
        /* Without the right to PING it did answer. */
        if (!answered && !sz_starts_with(answer->error, SZ_S("NOPERM")))
            return refused(conn, "a PING", answer);
        sz_redis_conn_up(conn);
        break;
    }
    return true;
}

static void say(struct sz_redis_conn *conn, enum kind kind, const struct sz_slice *args, size_t args_n)
{
    sz_redis_conn_say(conn, args, args_n, on_login)->kind = kind;
}

/* Room for all of it at once: a buffer that grows would leave a copy of the password behind. */
static void make_room(struct sz_redis_conn *conn)
{
    static const char nothing[512];
    size_t password = conn->redis->shared->conf->password.value.n;
    for (size_t n = 0; n < password + sizeof(nothing); n += sizeof(nothing))
        sz_buf_add(&conn->out, nothing, sizeof(nothing));
    conn->out.n = 0;
}

void sz_redis_login(struct sz_redis_conn *conn)
{
    const struct sz_conf_redis *conf = conn->redis->shared->conf;
    char database[16];
    make_room(conn);
    int n = snprintf(database, sizeof(database), "%u", conf->database);
    if (conf->password.set && conf->username.p != NULL)
        say(conn, AUTH, (struct sz_slice[]){SZ_S("AUTH"), conf->username, conf->password.value}, 3);
    else if (conf->password.set)
        say(conn, AUTH, (struct sz_slice[]){SZ_S("AUTH"), conf->password.value}, 2);
    if (conf->database != 0)
        say(conn, SELECT, (struct sz_slice[]){SZ_S("SELECT"), sz_slice(database, (size_t)n)}, 2);
    say(conn, SETNAME, (struct sz_slice[]){SZ_S("CLIENT"), SZ_S("SETNAME"), SZ_S("subzero")}, 3);
    if (conn->subscription == NULL)
        say(conn, POLICY, (struct sz_slice[]){SZ_S("CONFIG"), SZ_S("GET"), SZ_S("maxmemory-policy")}, 3);
    say(conn, PING, &(struct sz_slice){"PING", 4}, 1);
}
