/* The gateway without sockets. */
#include "unit/pipeline/kit.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "subzero/metrics.h"

static const char head[] =
    "listen:\n"
    "  - {address: 127.0.0.1:18080}\n"
    "  - {address: 127.0.0.1:18081, mode: decide, dialect: nginx}\n"
    "trusted_proxies: [10.0.0.0/8]\n"
    "log: {access: off}\n"
    "issuers:\n"
    "  one: {issuer: https://one.example/, audiences: [api], algorithms: [ES256], jwks_file: %s}\n"
    "  two: {issuer: https://two.example/, audiences: [api, other], algorithms: [ES256], jwks_file: %s}\n"
    "fga: {model: \"model\\n  schema 1.1\\ntype user\\n\"}\n"
    "upstreams:\n"
    "  up: {urls: [\"http://127.0.0.1:9000\"]}\n"
    "routes:\n";

/* ---- the relation source --------------------------------------------------------------------------- */

static struct {
    struct {
        char object[64];
        enum sz_authz_outcome outcome;
        bool later;
    } rows[16];
    size_t n;
    char asked[1024], context[4096], tuples[16384];
    bool consistent;
    unsigned asked_n, cancelled_n;
    struct late { /* questions that are answered later */
        struct sz_defer defer;
        struct sz_authz_op *op;
    } late[8];
} source;

void kit_answer(const char *object, enum sz_authz_outcome outcome, bool later)
{
    snprintf(source.rows[source.n].object, sizeof(source.rows[0].object), "%s", object);
    source.rows[source.n].outcome = outcome;
    source.rows[source.n++].later = later;
}

const char *kit_asked(void)
{
    return source.asked;
}

const char *kit_asked_context(void)
{
    return source.context;
}

const char *kit_asked_tuples(void)
{
    return source.tuples;
}

bool kit_asked_consistent(void)
{
    return source.consistent;
}

unsigned kit_asked_n(void)
{
    return source.asked_n;
}

unsigned kit_cancelled_n(void)
{
    return source.cancelled_n;
}

static void on_later(struct sz_defer *defer)
{
    struct late *late = SZ_CONTAINER(defer, struct late, defer);
    struct sz_authz_op *op = late->op;
    late->op = NULL;
    op->on_done(op);
}

static int source_start(struct sz_authz *authz, struct sz_loop *loop, const struct sz_check *check,
                        struct sz_mono deadline, struct sz_authz_op *op)
{
    (void)authz;
    (void)deadline;
    snprintf(source.asked, sizeof(source.asked), "%.*s|%.*s|%.*s", SZ_FMT(check->key.user), SZ_FMT(check->key.relation),
             SZ_FMT(check->key.object));
    snprintf(source.context, sizeof(source.context), "%.*s", SZ_FMT(check->context));
    source.consistent = check->consistency == SZ_HIGHER_CONSISTENCY;
    source.tuples[0] = '\0';
    for (size_t i = 0, n = 0; i < check->contextual_n; i++) {
        const struct sz_tuple_key *k = &check->contextual[i];
        n += (size_t)snprintf(source.tuples + n, sizeof(source.tuples) - n, "%.*s %.*s %.*s\n", SZ_FMT(k->user),
                              SZ_FMT(k->relation), SZ_FMT(k->object));
        cr_assert_lt(n, sizeof(source.tuples));
    }
    source.asked_n++;
    op->answer = (struct sz_authz_answer){.outcome = SZ_AUTHZ_DENIED};
    for (size_t i = 0; i < source.n; i++) {
        if (!sz_eq(check->key.object, sz_cstr(source.rows[i].object)))
            continue;
        op->answer.outcome = source.rows[i].outcome;
        if (!source.rows[i].later)
            return 1;
        struct late *late = source.late;
        while (late->op != NULL)
            late++;
        cr_assert(late < source.late + SZ_COUNT(source.late));
        *late = (struct late){{.on_run = on_later}, op};
        sz_defer_start(loop, &late->defer);
        return 0;
    }
    return 1;
}

static void source_cancel(struct sz_authz *authz, struct sz_authz_op *op)
{
    (void)authz;
    struct late *late = source.late;
    while (late < source.late + SZ_COUNT(source.late) && late->op != op)
        late++;
    cr_assert(late < source.late + SZ_COUNT(source.late));
    sz_defer_cancel(&late->defer);
    late->op = NULL;
    source.cancelled_n++;
}

static void source_free(struct sz_authz *authz)
{
    free(authz);
}

/* In place of the engine's: the linker takes this one. */
struct sz_authz *sz_authz_embedded_open(const struct sz_conf_fga *conf, struct sz_fga_hub *hub, struct sz_text *why)
{
    (void)hub;
    (void)conf;
    (void)why;
    struct sz_authz *authz = sz_xcalloc(1, sizeof(*authz));
    *authz = (struct sz_authz){.start = source_start, .cancel = source_cancel, .free = source_free};
    return authz;
}

/* ---- set-up ------------------------------------------------------------------------------------------- */

static struct sz_snapshot *load(struct kit *kit, const char *routes)
{
    char jwks[96];
    struct sz_buf text = {0};
    struct sz_mistakes m;
    snprintf(jwks, sizeof(jwks), "%s/jwks.json", kit->dir);
    sz_buf_printf(&text, head, jwks, jwks);
    sz_buf_printf(&text, "%s", routes);
    sz_mistakes_init(&m);
    struct sz_conf *conf = sz_conf_load_text(sz_buf_slice(&text), "test.yaml", &m);
    for (size_t i = 0; i < m.n; i++)
        fprintf(stderr, "%u:%u: %.*s\n", m.v[i].line, m.v[i].column, SZ_FMT(m.v[i].message));
    cr_assert_not_null(conf);
    struct sz_snapshot *snapshot = sz_snapshot_new(conf, NULL, &m);
    cr_assert_not_null(snapshot);
    sz_mistakes_fini(&m);
    sz_buf_fini(&text);
    return snapshot;
}

static void make_key(struct kit *kit)
{
    struct sz_buf jwk = {0}, jwks = {0};
    struct sz_text why = {""};
    char path[96];
    snprintf(kit->dir, sizeof(kit->dir), "/tmp/subzero-kit-XXXXXX");
    cr_assert_not_null(mkdtemp(kit->dir));
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &jwk), 0);
    kit->signer = sz_signer_new(sz_buf_slice(&jwk), &why);
    cr_assert_not_null(kit->signer, "%s", why.s);
    cr_assert_eq(sz_signer_jwks(kit->signer, &jwks), 0);
    snprintf(path, sizeof(path), "%s/jwks.json", kit->dir);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fwrite(jwks.p, 1, jwks.n, file);
    fclose(file);
    sz_buf_fini(&jwk);
    sz_buf_fini(&jwks);
}

void kit_open(struct kit *kit, const char *routes)
{
    memset(kit, 0, sizeof(*kit));
    memset(&source, 0, sizeof(source));
    sz_crypto_init();
    sz_metrics_init(1);
    sz_arena_init(&kit->arena);
    kit->loop = fake_loop_new(0);
    make_key(kit);
    kit->snapshot = load(kit, routes);
    cr_assert_eq(sz_gate_init(&kit->gate, kit->snapshot->conf), 0);
    sz_worker_init(&kit->worker, kit->loop, &kit->gate, kit->snapshot);
}

void kit_reload(struct kit *kit, const char *routes)
{
    struct sz_snapshot *next = load(kit, routes);
    sz_worker_swap(&kit->worker, next);
    sz_snapshot_unref(kit->snapshot);
    kit->snapshot = next;
}

void kit_close(struct kit *kit)
{
    char path[96];
    sz_worker_fini(&kit->worker);
    sz_gate_fini(&kit->gate);
    sz_snapshot_unref(kit->snapshot);
    sz_signer_free(&kit->signer);
    fake_loop_free(&kit->loop);
    sz_arena_fini(&kit->arena);
    snprintf(path, sizeof(path), "%s/jwks.json", kit->dir);
    unlink(path);
    rmdir(kit->dir);
    sz_metrics_fini();
}

struct sz_slice kit_token_of(struct kit *kit, const char *iss, const char *aud, int64_t exp_in, const char *claims)
{
    struct sz_slice token;
    int64_t now = sz_wall_seconds(sz_loop_wall(kit->loop));
    struct sz_slice text = sz_pool_printf(
        &kit->arena.pool, "{\"iss\":\"%s\",\"aud\":\"%s\",\"sub\":\"alice\",\"iat\":%lld,\"exp\":%lld%s%s}", iss, aud,
        (long long)now, (long long)(now + exp_in), claims[0] != '\0' ? "," : "", claims);
    cr_assert_eq(sz_signer_sign(kit->signer, SZ_ALG_ES256, "at+jwt", text, &kit->arena.pool, &token), 0);
    return token;
}

struct sz_slice kit_token(struct kit *kit, const char *claims)
{
    return kit_token_of(kit, "https://one.example/", "api", 60, claims);
}

/* ---- requests --------------------------------------------------------------------------------------------- */

static unsigned finished;

static void on_finished(struct sz_txn *txn)
{
    (void)txn;
    finished++;
}

static void add_headers(struct kit *kit, const struct kit_request *r, struct sz_headers *out)
{
    struct sz_pool *pool = &kit->arena.pool;
    if (r->token.n > 0)
        sz_headers_add(out, pool, SZ_S("authorization"), sz_pool_printf(pool, "Bearer %.*s", SZ_FMT(r->token)));
    for (size_t i = 0; i < SZ_COUNT(r->headers) && r->headers[i] != NULL; i++) {
        struct sz_slice line = sz_cstr(r->headers[i]);
        ptrdiff_t colon = sz_find_byte(line, ':');
        sz_headers_add(out, pool, sz_sub(line, 0, (size_t)colon), sz_trim(sz_from(line, (size_t)colon + 1)));
    }
}

struct sz_txn *kit_start(struct kit *kit, const struct kit_request *r, enum sz_step *step)
{
    struct sz_txn *txn = sz_pool_zalloc(&kit->arena.pool, sizeof(*txn));
    txn->worker = &kit->worker;
    txn->pool = &kit->arena.pool;
    txn->on_finished = on_finished;
    txn->req = (struct sz_request){
        .listener = &kit->snapshot->conf->listeners[r->decide ? 1 : 0],
        .protocol = SZ_HTTP_1_1,
        .method = sz_cstr(r->method != NULL ? r->method : "GET"),
        .target = sz_cstr(r->target),
        .authority = sz_cstr(r->host != NULL ? r->host : "api.example.com"),
        .body = r->body,
        .has_body = r->body.p != NULL,
        .upgrade = r->upgrade,
        .client_cert_sha256 = r->client_cert_sha256,
    };
    cr_assert_eq(sz_addr_parse(sz_cstr(r->peer != NULL ? r->peer
                                       : r->decide     ? "10.0.0.1"
                                                       : "198.51.100.7"),
                               &txn->req.peer),
                 0);
    add_headers(kit, r, &txn->req.headers);
    *step = sz_txn_start(txn);
    return txn;
}

struct sz_txn *kit_run(struct kit *kit, const struct kit_request *request)
{
    enum sz_step step;
    unsigned before = finished;
    struct sz_txn *txn = kit_start(kit, request, &step);
    if (step == SZ_STEP_PARKED) {
        fake_loop_settle(kit->loop);
        cr_assert_eq(finished, before + 1, "a parked transaction did not finish");
    }
    return txn;
}

void kit_end(struct sz_txn *txn)
{
    sz_txn_account(txn, &(struct sz_completion){.status = txn->proxy ? 200 : txn->answer.status});
    sz_txn_end(txn);
}

enum sz_reason kit_reason(struct kit *kit, const struct kit_request *request)
{
    struct sz_txn *txn = kit_run(kit, request);
    enum sz_reason reason = txn->decision.reason;
    cr_assert_eq(txn->decision.allow, reason == SZ_REASON_allowed);
    kit_end(txn);
    return reason;
}

const char *kit_header(struct kit *kit, const struct sz_headers *headers, const char *name)
{
    unsigned count;
    struct sz_slice value = sz_headers_get(headers, sz_cstr(name), &count);
    cr_assert_leq(count, 1, "%s is there %u times", name, count);
    return count == 0 ? NULL : sz_pool_strdup(&kit->arena.pool, value);
}
