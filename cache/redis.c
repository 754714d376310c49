/*
 * What loops share, a loop's client, and a command's way from its start to its end.
 *
 * A command's breaker is asked first: with Redis down, that is all that a command costs.  Then its bytes are made, and
 * it goes to a connection, or waits for one that is being made.  Its deadline is a timer of its own: whoever
 * asked is told in time, whatever the connection does, and the reply that may still come is thrown away.
 *
 * In a cluster one dead node must not close the way to all others: while others answer, what a node fails to
 * answer is not held against the whole.
 */
#include "subzero/redis.h"

#include <errno.h>
#include <stdlib.h>

#include "cache/redis_client.h"
#include "subzero/breakers.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

enum { SPARE_MAX = 256, SPARE_BYTES = 4096 };

#define NAMES_TTL   SZ_SEC(60)
#define PROBE       SZ_SEC(12) /* longer than any command: none outlives it */
#define CACHE_PAUSE SZ_SEC(10) /* no cache writes for so long after maxmemory was met */

/* ---- what loops share -------------------------------------------------------------------------------------------- */

static const char *const breaker_names[SZ_REDIS_USES] = {[SZ_REDIS_CACHE] = "redis",
                                                         [SZ_REDIS_LIMITS] = "redis:limits",
                                                         [SZ_REDIS_REVOCATION] = "redis:revocation",
                                                         [SZ_REDIS_THREAT] = "redis:threat"};

struct sz_redis_shared *sz_redis_shared_new(const struct sz_conf_redis *conf, unsigned uses, unsigned clients,
                                            struct sz_text *why)
{
    struct sz_mono now = {.us = 1}; /* closed breakers have no history */
    struct ssl_ctx_st *tls = NULL;
    SZ_ASSERT(uses != 0 && clients > 0 && conf->places_n > 0);
    if (conf->tls && (tls = sz_redis_tls_new(conf->ca_file, why)) == NULL)
        return NULL;
    struct sz_redis_shared *shared = sz_xcalloc(1, sizeof(*shared));
    shared->conf = conf;
    shared->uses = uses;
    shared->tls = tls;
    shared->clients = clients;
    /* One of them listens for announcements. */
    shared->share = conf->max_connections > clients ? (conf->max_connections - 1) / clients : 1;
    if (shared->share == 0)
        shared->share = 1;
    shared->cells = aligned_alloc(SZ_CACHE_LINE, clients * sizeof(*shared->cells));
    SZ_ASSERT(shared->cells != NULL);
    memset(shared->cells, 0, clients * sizeof(*shared->cells));
    shared->resolver = sz_resolver_new(NAMES_TTL, NULL);
    shared->took = sz_series1(SZ_METRIC_dependency, "redis");
    shared->reconnected = sz_series(SZ_METRIC_redis_reconnects, NULL);
    shared->open = sz_series(SZ_METRIC_redis_connections, NULL);
    for (int result = SZ_REDIS_ANSWERED; result < SZ_REDIS_RESULTS; result++)
        shared->ended[result] =
            sz_series1(SZ_METRIC_redis_commands, sz_redis_result_name((enum sz_redis_result)result));
    sz_text_set(&shared->why, "not connected yet");
    for (int use = 0; use < SZ_REDIS_USES; use++) {
        sz_breaker_init(&shared->breakers[use], conf->breaker.failures, conf->breaker.open, PROBE, now);
        if ((uses & 1u << use) != 0)
            sz_breakers_add(breaker_names[use], &shared->breakers[use]);
    }
    return shared;
}

void sz_redis_shared_free(struct sz_redis_shared **sharedp)
{
    struct sz_redis_shared *shared = *sharedp;
    *sharedp = NULL;
    if (shared == NULL)
        return;
    for (int use = 0; use < SZ_REDIS_USES; use++)
        sz_breakers_remove(&shared->breakers[use]);
    sz_resolver_free(&shared->resolver);
    sz_redis_tls_free(&shared->tls);
    free(shared->cells);
    free(shared);
}

/* ---- queues and pending commands --------------------------------------------------------------------------------- */

void sz_redis_queue_init(struct sz_redis_queue *q)
{
    *q = (struct sz_redis_queue){.last = &q->first};
}

void sz_redis_queue_add(struct sz_redis_queue *q, struct sz_redis_pending *p)
{
    p->next = NULL;
    p->prev = q->last;
    p->queue = q;
    *q->last = p;
    q->last = &p->next;
    q->n++;
}

void sz_redis_queue_leave(struct sz_redis_pending *p)
{
    struct sz_redis_queue *q = p->queue;
    *p->prev = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    else
        q->last = p->prev;
    q->n--;
    p->next = NULL;
    p->prev = NULL;
    p->queue = NULL;
}

struct sz_redis_pending *sz_redis_queue_take(struct sz_redis_queue *q)
{
    struct sz_redis_pending *p = q->first;
    if (p != NULL)
        sz_redis_queue_leave(p);
    return p;
}

struct sz_redis_pending *sz_redis_pending_get(struct sz_redis *redis)
{
    struct sz_redis_pending *p = redis->spare;
    struct sz_buf bytes = {0};
    if (p != NULL) {
        redis->spare = p->next;
        redis->spare_n--;
        bytes = p->bytes;
    } else {
        p = sz_xmalloc(sizeof(*p));
    }
    *p = (struct sz_redis_pending){.redis = redis, .bytes = bytes, .limit = SZ_REDIS_REPLY_DEFAULT};
    p->bytes.n = 0;
    redis->pending_n++;
    return p;
}

void sz_redis_pending_put(struct sz_redis_pending *p)
{
    struct sz_redis *redis = p->redis;
    SZ_ASSERT(p->op == NULL && p->queue == NULL);
    redis->pending_n--;
    if (p->bytes.cap > SPARE_BYTES)
        sz_buf_fini(&p->bytes);
    if (redis->spare_n >= SPARE_MAX) {
        sz_buf_fini(&p->bytes);
        free(p);
        return;
    }
    p->next = redis->spare;
    redis->spare = p;
    redis->spare_n++;
}

/* ---- the end of a command ---------------------------------------------------------------------------------------- */

static struct sz_mono now_of(const struct sz_redis *redis)
{
    return sz_loop_now(redis->loop);
}

static void note_oom(struct sz_redis *redis)
{
    atomic_store_explicit(&redis->shared->cache_paused_until, sz_after(now_of(redis), CACHE_PAUSE).us,
                          memory_order_relaxed);
}

static void count(struct sz_redis *redis, enum sz_redis_result result)
{
    sz_count(sz_loop_index(redis->loop), redis->shared->ended[result], 1);
}

void sz_redis_finish(struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    struct sz_redis *redis = p->redis;
    struct sz_redis_op *op = p->op;
    if (op == NULL)
        return;
    sz_timer_cancel(redis->loop, &p->timer);
    p->op = NULL;
    op->pending = NULL;
    count(redis, answer->result);
    if (p->sent.us != 0)
        sz_observe(sz_loop_index(redis->loop), redis->shared->took, sz_between(p->started, now_of(redis)));
    if (answer->result == SZ_REDIS_TIMEOUT)
        atomic_fetch_add_explicit(&redis->cell->timeouts, 1, memory_order_relaxed);
    bool full = answer->result == SZ_REDIS_OOM && p->use == SZ_REDIS_CACHE;
    if (full)
        note_oom(redis);                                       /* reads go on: no failure of the cache as a whole */
    enum sz_breaker_outcome outcome = op->on_done(op, answer); /* op may be gone */
    if (outcome == SZ_BREAKER_FAILURE &&
        (full || p->spared || redis->closing || sz_redis_health_excuses(p, answer->result)))
        outcome = SZ_BREAKER_UNKNOWN;
    sz_breaker_tell(&redis->shared->breakers[p->use], p->ticket, outcome, now_of(redis));
}

void sz_redis_fail(struct sz_redis_pending *p, enum sz_redis_result result)
{
    sz_redis_finish(p, &(struct sz_redis_answer){.result = result});
    sz_redis_pending_put(p);
}

/* By a queue of its own: who is told may start the next command. */
void sz_redis_fail_all(struct sz_redis_queue *q)
{
    struct sz_redis_queue lost;
    bool spared = false;
    sz_redis_queue_init(&lost);
    for (struct sz_redis_pending *p; (p = sz_redis_queue_take(q)) != NULL;)
        sz_redis_queue_add(&lost, p);
    for (struct sz_redis_pending *p; (p = sz_redis_queue_take(&lost)) != NULL;) {
        p->spared = spared;
        spared = spared || p->op != NULL;
        sz_redis_fail(p, SZ_REDIS_CONNECTION);
    }
}

static void on_deadline(struct sz_timer *timer)
{
    struct sz_redis_pending *p = SZ_CONTAINER(timer, struct sz_redis_pending, timer);
    sz_redis_map_stale(p->redis); /* who took its node's place may be known already */
    if (p->was_sent) {            /* its reply is still owed */
        sz_redis_finish(p, &(struct sz_redis_answer){.result = SZ_REDIS_TIMEOUT});
        return;
    }
    sz_redis_queue_leave(p);
    sz_redis_fail(p, SZ_REDIS_TIMEOUT);
}

/* These end a connection: whoever comes back may meet another server, or be let in. */
static bool of_no_use(struct sz_slice error)
{
    return sz_starts_with(error, SZ_S("NOAUTH")) || sz_starts_with(error, SZ_S("READONLY"));
}

static void say_cluster(struct sz_redis *redis, struct sz_slice error)
{
    bool moved = sz_starts_with(error, SZ_S("MOVED ")) || sz_starts_with(error, SZ_S("ASK "));
    if (moved && redis->map == NULL && !atomic_exchange(&redis->shared->cluster_said, true))
        sz_log(SZ_LOG_ERROR, "redis",
               "%.*s is part of a cluster: name some of its nodes in 'redis.cluster' instead of "
               "'redis.url'",
               SZ_FMT(redis->shared->conf->shown));
}

bool sz_redis_answered(struct sz_redis_conn *conn, struct sz_redis_pending *p, const struct sz_redis_answer *answer)
{
    bool useless = answer->result == SZ_REDIS_NOT_READY && of_no_use(answer->error);
    if (p->op != NULL && answer->result != SZ_REDIS_ANSWERED) {
        if (p->redis->map != NULL && sz_redis_map_redirect(p, answer->error))
            return true;
        if (answer->result == SZ_REDIS_NOSCRIPT && sz_redis_script_again(conn, p))
            return true;
        say_cluster(p->redis, answer->error);
    }
    sz_redis_finish(p, answer);
    sz_redis_pending_put(p);
    return !useless;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

struct sz_redis_node *sz_redis_node_new(struct sz_redis *redis, struct sz_slice host, uint16_t port, bool unix_socket)
{
    size_t i = 0;
    while (i < SZ_REDIS_NODES_MAX && redis->nodes[i] != NULL)
        i++;
    if (i == SZ_REDIS_NODES_MAX)
        return NULL;
    struct sz_redis_node *node = sz_xcalloc(1, sizeof(*node));
    char *copy = sz_xmalloc(host.n + 1);
    memcpy(copy, host.p, host.n);
    copy[host.n] = '\0';
    node->redis = redis;
    node->host = sz_slice(copy, host.n);
    node->port = port;
    node->unix_socket = unix_socket;
    sz_redis_queue_init(&node->waiting);
    node->index = (uint8_t)i;
    redis->nodes[i] = node;
    return node;
}

void sz_redis_node_free(struct sz_redis_node **nodep)
{
    struct sz_redis_node *node = *nodep;
    *nodep = NULL;
    node->redis->nodes[node->index] = NULL;
    while (node->conns != NULL) {
        struct sz_redis_conn *conn = node->conns;
        node->conns = conn->next;
        sz_redis_conn_free(&conn);
    }
    sz_redis_fail_all(&node->waiting);
    free((void *)(uintptr_t)node->host.p);
    free(node);
}

void sz_redis_node_up(struct sz_redis_conn *conn)
{
    struct sz_redis_node *node = conn->node;
    for (struct sz_redis_pending *p; (p = sz_redis_queue_take(&node->waiting)) != NULL;)
        sz_redis_conn_send(conn, p);
}

bool sz_redis_node_hopeful(const struct sz_redis_node *node)
{
    for (const struct sz_redis_conn *c = node->conns; c != NULL; c = c->next)
        if (sz_redis_conn_hopeful(c))
            return true;
    return false;
}

void sz_redis_node_down(struct sz_redis_node *node)
{
    if (!sz_redis_node_hopeful(node))
        sz_redis_fail_all(&node->waiting);
}

/* Load alone opens more than one connection: all in one pipeline costs the fewest system calls. */
static void widen(struct sz_redis_node *node)
{
    for (struct sz_redis_conn *c = node->conns; c != NULL; c = c->next) {
        if (c->state == SZ_REDIS_UP)
            continue;
        if (c->state == SZ_REDIS_DOWN && c->extra)
            sz_redis_conn_dial(c);
        return;
    }
    if (node->conns_n < node->redis->shared->share) {
        struct sz_redis_conn *c = sz_redis_conn_new(node->redis, node);
        c->extra = true;
        sz_redis_conn_dial(c);
    }
}

int sz_redis_dispatch(struct sz_redis_pending *p, struct sz_redis_node *node)
{
    struct sz_redis_conn *best = NULL;
    p->node = node;
    for (struct sz_redis_conn *c = node->conns; c != NULL; c = c->next) {
        if (c->state == SZ_REDIS_UP && (best == NULL || c->sent.n < best->sent.n))
            best = c;
        if (best != NULL && best->sent.n < SZ_REDIS_BATCH)
            break;
    }
    if (best == NULL) {
        if (!sz_redis_node_hopeful(node))
            return SZ_REDIS_CONNECTION;
        sz_redis_queue_add(&node->waiting, p);
        return 0;
    }
    if (best->sent.n >= SZ_REDIS_BATCH)
        widen(node);
    if (sz_redis_conn_backlog(best) + p->bytes.n > SZ_REDIS_OUT_MAX)
        return SZ_REDIS_FULL;
    sz_redis_conn_send(best, p);
    return 0;
}

/* ---- commands ---------------------------------------------------------------------------------------------------- */

static int refuse(struct sz_redis *redis, struct sz_redis_pending *p, int why)
{
    bool held = why == SZ_REDIS_CONNECTION && !redis->closing && !sz_redis_health_excuses(p, SZ_REDIS_CONNECTION);
    sz_breaker_tell(&redis->shared->breakers[p->use], p->ticket, held ? SZ_BREAKER_FAILURE : SZ_BREAKER_UNKNOWN,
                    now_of(redis));
    sz_redis_pending_put(p);
    count(redis, (enum sz_redis_result)why);
    return why;
}

static struct sz_redis_node *node_for(struct sz_redis *redis, const struct sz_redis_pending *p)
{
    if (redis->map == NULL)
        return redis->nodes[0];
    return p->keyed ? sz_redis_map_node(redis, p->slot) : sz_redis_any_node(redis);
}

/* No request waits for a revocation or a block of others: there a pause of a busy machine is no outage. */
static struct sz_span time_for(const struct sz_redis_shared *shared, enum sz_redis_use use)
{
    struct sz_span least = SZ_MS(250), timeout = shared->conf->timeout;
    bool patient = use == SZ_REDIS_REVOCATION || use == SZ_REDIS_THREAT;
    return patient && timeout.us < least.us ? least : timeout;
}

int sz_redis_start_script(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_command *command,
                          const struct sz_redis_script *script, struct sz_redis_op *op)
{
    struct sz_breaker *breaker = &redis->shared->breakers[use];
    struct sz_mono now = now_of(redis);
    SZ_ASSERT(op->pending == NULL && op->on_done != NULL);
    SZ_ASSERT(command->args_n > 0 && command->args_n <= SZ_REDIS_ARGS_MAX && command->key < command->args_n);
    struct sz_breaker_ticket ticket = sz_breaker_ask(breaker, now);
    if (ticket.answer == SZ_BREAKER_REJECT) {
        count(redis, SZ_REDIS_OPEN);
        return SZ_REDIS_OPEN;
    }
    if (redis->pending_n >= SZ_REDIS_PENDING_MAX || redis->closing) {
        sz_breaker_tell(breaker, ticket, SZ_BREAKER_UNKNOWN, now);
        count(redis, redis->closing ? SZ_REDIS_CONNECTION : SZ_REDIS_FULL);
        return redis->closing ? SZ_REDIS_CONNECTION : SZ_REDIS_FULL;
    }
    struct sz_redis_pending *p = sz_redis_pending_get(redis);
    p->use = use;
    p->ticket = ticket;
    p->started = now;
    p->script = script;
    p->limit = command->limit != 0 ? command->limit : SZ_REDIS_REPLY_DEFAULT;
    p->deadline = sz_after(now, time_for(redis->shared, use));
    if (command->deadline.us != 0)
        p->deadline = sz_earlier(p->deadline, command->deadline);
    if (redis->map != NULL && command->key != 0) {
        p->keyed = true;
        p->slot = (uint16_t)sz_redis_slot(command->args[command->key]);
    }
    sz_redis_encode(&p->bytes, command->args, command->args_n);
    atomic_fetch_add_explicit(&redis->cell->commands, 1, memory_order_relaxed);
    struct sz_redis_node *node = node_for(redis, p);
    int rc = node != NULL ? sz_redis_dispatch(p, node) : SZ_REDIS_CONNECTION;
    if (rc != 0)
        return refuse(redis, p, rc);
    p->op = op;
    op->pending = p;
    p->timer.on_fire = on_deadline;
    sz_timer_start(redis->loop, &p->timer, p->deadline);
    return 0;
}

int sz_redis_start(struct sz_redis *redis, enum sz_redis_use use, const struct sz_redis_command *command,
                   struct sz_redis_op *op)
{
    return sz_redis_start_script(redis, use, command, NULL, op);
}

void sz_redis_cancel(struct sz_redis_op *op)
{
    struct sz_redis_pending *p = op->pending;
    if (p == NULL)
        return;
    op->pending = NULL;
    p->op = NULL;
    sz_timer_cancel(p->redis->loop, &p->timer);
    sz_breaker_tell(&p->redis->shared->breakers[p->use], p->ticket, SZ_BREAKER_UNKNOWN, now_of(p->redis));
    if (p->queue != NULL && !p->was_sent) {
        sz_redis_queue_leave(p);
        sz_redis_pending_put(p);
    }
}

bool sz_redis_cache_paused(const struct sz_redis *redis)
{
    return now_of(redis).us < atomic_load_explicit(&redis->shared->cache_paused_until, memory_order_relaxed);
}

/* ---- a loop's client --------------------------------------------------------------------------------------------- */

static void on_mail(void *arg, int fd, unsigned events)
{
    struct sz_redis *redis = arg;
    (void)fd;
    (void)events;
    for (struct sz_ask *ask; (ask = sz_mailbox_take(&redis->mailbox)) != NULL;)
        sz_redis_conn_named(SZ_CONTAINER(ask, struct sz_redis_conn, ask));
}

struct sz_redis *sz_redis_new(struct sz_redis_shared *shared, struct sz_loop *loop)
{
    struct sz_redis *redis = sz_xcalloc(1, sizeof(*redis));
    const struct sz_conf_redis *conf = shared->conf;
    if (sz_mailbox_open(&redis->mailbox, shared->resolver) != 0) {
        free(redis);
        return NULL;
    }
    redis->shared = shared;
    redis->loop = loop;
    redis->cell = &shared->cells[atomic_fetch_add(&shared->joined, 1) % shared->clients];
    redis->mail = sz_watch_new(loop, redis->mailbox.fd, on_mail, redis);
    sz_watch_set(redis->mail, SZ_READ);
    if (conf->cluster) {
        sz_redis_map_init(redis);
    } else {
        const struct sz_conf_redis_place *at = &conf->places[0];
        bool unix_socket = at->path.p != NULL;
        struct sz_redis_node *node = sz_redis_node_new(redis, unix_socket ? at->path : at->host, at->port, unix_socket);
        SZ_ASSERT(node != NULL);
        sz_redis_conn_dial(sz_redis_conn_new(redis, node));
    }
    return redis;
}

void sz_redis_free(struct sz_redis **redisp)
{
    struct sz_redis *redis = *redisp;
    *redisp = NULL;
    if (redis == NULL)
        return;
    redis->closing = true;
    sz_redis_listen_fini(redis);
    sz_redis_map_stop(redis);
    for (size_t i = 0; i < SZ_REDIS_NODES_MAX; i++)
        if (redis->nodes[i] != NULL)
            sz_redis_node_free(&redis->nodes[i]);
    sz_redis_map_fini(redis);
    SZ_ASSERT(redis->pending_n == 0);
    while (redis->spare != NULL) {
        struct sz_redis_pending *p = redis->spare;
        redis->spare = p->next;
        sz_buf_fini(&p->bytes);
        free(p);
    }
    sz_watch_free(&redis->mail);
    sz_mailbox_close(&redis->mailbox);
    free(redis);
}
