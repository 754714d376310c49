/*
 * One logout: on the service thread, where revocations are made and keys are fetched.
 *
 *   form ─▶ (another thread: a message) ─▶ verify ─┬─ a key is missing ─▶ fetched once ─▶ verify
 *                                                  └─▶ seen before? ─▶ revoke sid, or sub before iat ─▶ 200 | 503
 *
 * Bounded: so many under way, so many a second; beyond that 503, and the provider tries again.
 */
#include "edge/logout.h"

#include <stdlib.h>

#include "edge/admin_write.h"
#include "edge/revoking.h"
#include "edge/server.h"
#include "edge/thread.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

enum { UNDER_WAY_MAX = 64, A_SECOND = 100, SEEN_MAX = 4096 };

struct sz_logouts {
    struct sz_server *server;
    unsigned under_way, count;
    int64_t second;
    struct {
        uint64_t jti;
        int64_t until;
    } seen[SEEN_MAX]; /* the oldest is replaced */
    unsigned seen_at;
};

struct logout {
    struct sz_msg msg;             /* to the service thread, and back */
    struct sz_server *server;      /* its logouts */
    struct sz_edge_thread *thread; /* of the exchange, which stays until it has heard; NULL: the admin listener's */
    struct sz_exchange_tie *tie;   /* of the exchange */
    struct sz_admin_write *write;
    struct sz_snapshot *snapshot; /* counted */
    struct sz_slice path, token;  /* heap, one block */
    struct sz_logout said;
    struct sz_keys_op keys;
    bool fetched;
    struct sz_revocation_op op;
    unsigned status;
    const char *why; /* a literal, with 400 and 503 */
};

struct sz_exchange_tie { /* on the request's pool */
    struct sz_exchange *x;
    struct logout *logout;
};

bool sz_logout_owns(const struct sz_conf *conf, struct sz_slice path)
{
    for (size_t i = 0; i < conf->issuers_n; i++) {
        if (conf->issuers[i].logout.path.p != NULL && sz_eq(conf->issuers[i].logout.path, path))
            return true;
    }
    return false;
}

/* ---- the form ---------------------------------------------------------------------------------------------------- */

/* A token's characters need no escapes, but a strict client may write them. */
static struct sz_slice unescape(struct sz_slice s, struct sz_pool *pool)
{
    char *out = sz_pool_alloc(pool, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int high = 0, low = 0;
        if (s.p[i] == '%' &&
            (i + 2 >= s.n || (high = sz_hex_digit(s.p[i + 1])) < 0 || (low = sz_hex_digit(s.p[i + 2])) < 0))
            return SZ_NONE;
        out[n++] = s.p[i] == '%' ? (char)(high * 16 + low) : s.p[i];
        i += s.p[i] == '%' ? 2 : 0;
    }
    return sz_slice(out, n);
}

struct sz_slice sz_logout_form(struct sz_slice body, struct sz_pool *pool)
{
    static const struct sz_slice name = SZ_S("logout_token=");
    struct sz_slice rest = body, field, found = SZ_NONE;
    unsigned n = 0;
    if (body.n == 0 || body.n > 2 * SZ_TOKEN_MAX)
        return SZ_NONE;
    while (sz_split(&rest, '&', &field)) {
        if (!sz_starts_with(field, name))
            continue;
        found = sz_from(field, name.n);
        n++;
    }
    if (n != 1 || found.n == 0)
        return SZ_NONE;
    found = unescape(found, pool);
    return found.n <= SZ_TOKEN_MAX ? found : SZ_NONE;
}

/* ---- the service thread ------------------------------------------------------------------------------------------ */

static void logout_free(struct logout *l)
{
    sz_wipe((void *)(uintptr_t)l->token.p, l->token.n);
    free((void *)(uintptr_t)l->path.p);
    free(l);
}

static void on_back(struct sz_msg *msg, struct sz_loop *loop);

static void finish(struct logout *l, unsigned status, const char *why)
{
    l->server->logouts->under_way--;
    l->status = status;
    l->why = why;
    sz_snapshot_unref(l->snapshot);
    if (status == 400)
        sz_log(SZ_LOG_INFO, "revocation", "a logout token was refused: %s", why);
    if (l->thread != NULL) {
        l->msg.on_msg = on_back;
        sz_loop_post(l->thread->loop, &l->msg);
        return;
    }
    if (status == 200)
        sz_admin_write_end(l->write, 200, SZ_S("{}\n"));
    else
        sz_admin_write_refuse(l->write, status,
                              status == 400 ? SZ_REASON_bad_request : SZ_REASON_revocation_unavailable, why);
    logout_free(l);
}

static bool seen(const struct sz_logouts *logouts, const struct sz_logout *said, int64_t now)
{
    for (size_t i = 0; i < SEEN_MAX; i++) {
        if (logouts->seen[i].jti == said->jti && logouts->seen[i].until > now)
            return true;
    }
    return false;
}

static int64_t now_of(const struct logout *l)
{
    return sz_wall_seconds(sz_loop_wall(l->server->service->loop));
}

static void on_revoked(struct sz_revocation_op *op, enum sz_revoked result)
{
    struct logout *l = SZ_CONTAINER(op, struct logout, op);
    struct sz_logouts *logouts = l->server->logouts;
    if (result == SZ_REVOKED_UNSAFE || result == SZ_REVOKED_FULL) {
        finish(l, 503, "it could not be kept safely yet");
        return;
    }
    logouts->seen[logouts->seen_at].jti = l->said.jti;
    logouts->seen[logouts->seen_at].until = l->said.until;
    logouts->seen_at = (logouts->seen_at + 1) % SEEN_MAX;
    finish(l, 200, NULL);
}

static void carry_out(struct logout *l, const struct sz_conf_issuer *issuer)
{
    bool session = l->said.sid_n > 0;
    int64_t now = now_of(l);
    struct sz_slice value = session ? sz_slice(l->said.sid, l->said.sid_n) : sz_slice(l->said.sub, l->said.sub_n);
    struct sz_revocation r = {.kind = session ? SZ_REVOKE_SID : SZ_REVOKE_SUBJECT,
                              .before = session ? INT64_MAX : l->said.iat,
                              .expires = sz_revoking_until(issuer, now),
                              .made = sz_loop_wall(l->server->service->loop).us};
    sz_revocation_digest((enum sz_revocation_kind)r.kind, issuer->issuer, value, r.digest);
    l->op.on_done = on_revoked;
    sz_revocations_add(l->server->gate.revocations, &r, &l->op);
}

static void verify(struct logout *l);

static void on_keys(struct sz_keys_op *op, int status)
{
    (void)status;
    verify(SZ_CONTAINER(op, struct logout, keys));
}

/* True: waiting for the key. */
static bool fetch_key(struct logout *l, const struct sz_verified *verdict)
{
    struct sz_keys_look look;
    if (!verdict->missing_key || l->fetched)
        return false;
    sz_keys_look(l->snapshot->issuers, verdict->issuer, verdict->kid, sz_loop_now(l->server->service->loop), &look);
    if (look.answer != SZ_KEYS_ASK)
        return false;
    l->fetched = true;
    l->keys.on_done = on_keys;
    sz_keys_fetch(l->snapshot->issuers, verdict->issuer, &l->keys);
    return true;
}

static void verify(struct logout *l)
{
    struct sz_verified verdict;
    int rc = sz_logout_verify(l->snapshot->issuers, l->path, l->token, sz_loop_wall(l->server->service->loop), &l->said,
                              &verdict);
    if (rc == 0 && fetch_key(l, &verdict))
        return;
    if (rc != 0 || verdict.reason == SZ_REASON_identity_unavailable)
        finish(l, 503, "the issuer's keys are not known");
    else if (verdict.reason != SZ_REASON_allowed)
        finish(l, 400, "the logout token is not valid, or not for this client");
    else if (seen(l->server->logouts, &l->said, now_of(l)))
        finish(l, 400, "this logout token has been used");
    else
        carry_out(l, &l->snapshot->conf->issuers[verdict.issuer]);
}

static bool too_many(struct sz_logouts *logouts)
{
    int64_t second = sz_loop_now(logouts->server->service->loop).us / 1000000;
    if (second != logouts->second)
        logouts->count = 0;
    logouts->second = second;
    return logouts->count++ >= A_SECOND || logouts->under_way > UNDER_WAY_MAX;
}

static void begin(struct logout *l)
{
    struct sz_logouts *logouts = l->server->logouts;
    l->snapshot = l->server->current;
    sz_snapshot_ref(l->snapshot);
    logouts->under_way++;
    if (too_many(logouts))
        finish(l, 503, "too many logouts at once");
    else
        verify(l);
}

static void on_there(struct sz_msg *msg, struct sz_loop *loop)
{
    (void)loop;
    begin(SZ_CONTAINER(msg, struct logout, msg));
}

static struct logout *logout_new(struct sz_server *server, struct sz_slice path, struct sz_slice token)
{
    struct logout *l = sz_xcalloc(1, sizeof(*l));
    char *text = sz_xmalloc(path.n + token.n);
    memcpy(text, path.p, path.n);
    memcpy(text + path.n, token.p, token.n);
    l->server = server;
    l->path = sz_slice(text, path.n);
    l->token = sz_slice(text + path.n, token.n);
    return l;
}

/* ---- the two ways in --------------------------------------------------------------------------------------------- */

static void on_dispose(void *p)
{
    struct sz_exchange_tie *tie = p;
    if (tie->logout != NULL)
        tie->logout->tie = NULL;
}

/* On the exchange's own thread again, if it is still there. */
static void on_back(struct sz_msg *msg, struct sz_loop *loop)
{
    struct logout *l = SZ_CONTAINER(msg, struct logout, msg);
    (void)loop;
    if (l->tie != NULL) {
        struct sz_exchange *x = l->tie->x;
        l->tie->logout = NULL;
        if (l->status == 200)
            sz_api_reply(x, SZ_REASON_allowed, SZ_S("{}\n"));
        else
            sz_api_problem(x, l->status == 400 ? SZ_REASON_bad_request : SZ_REASON_revocation_unavailable, l->why);
    }
    l->thread->owed--;
    sz_thread_conn_gone(l->thread);
    logout_free(l);
}

void sz_logout_serve_api(struct sz_exchange *x)
{
    struct sz_slice token = sz_logout_form(x->txn.req.body, x->txn.pool);
    if (token.p == NULL) {
        sz_api_problem(x, SZ_REASON_bad_request, "the body must be a form with one logout_token");
        return;
    }
    struct logout *l = logout_new(x->thread->server, x->txn.target.path, token);
    l->thread = x->thread;
    l->thread->owed++;
    l->tie = h2o_mem_alloc_shared(&x->req->pool, sizeof(*l->tie), on_dispose);
    *l->tie = (struct sz_exchange_tie){.x = x, .logout = l};
    l->msg.on_msg = on_there;
    sz_loop_post(x->thread->server->service->loop, &l->msg);
}

void sz_logout_serve_admin(struct sz_admin_call *call)
{
    struct sz_arena arena;
    struct sz_admin_write *write = sz_admin_write_begin(call);
    if (write == NULL)
        return;
    sz_arena_init(&arena);
    struct sz_slice token = sz_logout_form(sz_slice(call->req->entity.base, call->req->entity.len), &arena.pool);
    if (token.p == NULL) {
        sz_admin_write_refuse(write, 400, SZ_REASON_bad_request, "the body must be a form with one logout_token");
    } else {
        struct logout *l = logout_new(call->server, call->path, token);
        l->write = write;
        begin(l);
    }
    sz_arena_fini(&arena);
}

struct sz_logouts *sz_logouts_new(struct sz_server *server)
{
    struct sz_logouts *logouts = sz_xcalloc(1, sizeof(*logouts));
    logouts->server = server;
    return logouts;
}

void sz_logouts_free(struct sz_logouts **logouts)
{
    free(*logouts);
    *logouts = NULL;
}
