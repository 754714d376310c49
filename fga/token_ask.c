/*
 * Asking a provider about one token: the request with the gateway's own credentials, behind the issuer's breaker, a
 * bounded number at a time.  Runs on the asking loop's own client.
 */
#include <errno.h>
#include <stdlib.h>

#include "fga/introspect.h"
#include "subzero/log.h"

#define CONNECT_TIME   SZ_SEC(3)
#define ASSERTION_LIFE 60 /* seconds; used at once, and once */

/* application/x-www-form-urlencoded, as RFC 6749 appendix B wants client ids and secrets too. */
static void add_encoded(struct sz_buf *b, struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
            c == '_')
            sz_buf_add(b, &c, 1);
        else
            sz_buf_printf(b, "%%%02X", c);
    }
}

static void add_member(struct sz_buf *b, const char *name, struct sz_slice value)
{
    sz_buf_printf(b, "&%s=", name);
    add_encoded(b, value);
}

/* ---- the gateway's credentials ----------------------------------------------------------------------------------- */

static void add_basic(struct sz_buf *out, const struct sz_conf_issuer *conf)
{
    struct sz_buf pair = {0};
    add_encoded(&pair, conf->introspection.client_id);
    sz_buf_printf(&pair, ":");
    add_encoded(&pair, conf->introspection.secret.value);
    char *text = sz_xmalloc(pair.n * 2 + 4);
    size_t n = sz_b64_encode(pair.p, pair.n, text);
    sz_buf_printf(out, "Basic ");
    sz_buf_add(out, text, n);
    sz_wipe(text, n);
    free(text);
    sz_wipe(pair.p, pair.n);
    sz_buf_fini(&pair);
}

/* RFC 7523 section 3: who we are, for this provider, for a minute, never the same twice. */
static int add_assertion(struct sz_buf *body, struct sz_issuer *issuer, struct sz_wall now)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    uint8_t random[16];
    char jti[32];
    struct sz_arena arena;
    struct sz_buf claims = {0};
    struct sz_slice token;
    long long seconds = (long long)sz_wall_seconds(now);
    sz_random(random, sizeof(random));
    sz_hex_encode(random, sizeof(random), jti);
    sz_buf_printf(&claims, "{\"iss\":");
    sz_buf_json(&claims, conf->introspection.client_id);
    sz_buf_printf(&claims, ",\"sub\":");
    sz_buf_json(&claims, conf->introspection.client_id);
    sz_buf_printf(&claims, ",\"aud\":");
    sz_buf_json(&claims, conf->issuer);
    sz_buf_printf(&claims, ",\"jti\":\"%.32s\",\"iat\":%lld,\"exp\":%lld}", jti, seconds, seconds + ASSERTION_LIFE);
    sz_arena_init(&arena);
    pthread_mutex_lock(&issuer->sign);
    int rc = sz_signer_sign(issuer->signer, sz_signer_default_alg(issuer->signer), "JWT", sz_buf_slice(&claims),
                            &arena.pool, &token);
    pthread_mutex_unlock(&issuer->sign);
    if (rc == 0) {
        add_member(body, "client_id", conf->introspection.client_id);
        add_member(body, "client_assertion_type", SZ_S("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
        add_member(body, "client_assertion", token);
    }
    sz_arena_fini(&arena);
    sz_buf_fini(&claims);
    return rc;
}

/* ---- the request ------------------------------------------------------------------------------------------------- */

struct parts {
    struct sz_buf authorization, body;
};

static void parts_fini(struct parts *parts)
{
    struct sz_buf *all[] = {&parts->authorization, &parts->body};
    for (size_t i = 0; i < SZ_COUNT(all); i++) {
        if (all[i]->p != NULL)
            sz_wipe(all[i]->p, all[i]->n);
        sz_buf_fini(all[i]);
    }
}

static int make_parts(struct sz_issuer *issuer, struct sz_slice token, struct sz_wall now, struct parts *parts)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    *parts = (struct parts){0};
    if (conf->userinfo.on) {
        sz_buf_printf(&parts->authorization, "Bearer ");
        sz_buf_adds(&parts->authorization, token);
        return 0;
    }
    sz_buf_printf(&parts->body, "token=");
    add_encoded(&parts->body, token);
    add_member(&parts->body, "token_type_hint", SZ_S("access_token"));
    switch (conf->introspection.auth) {
    case SZ_PROVIDER_AUTH_BASIC:
        add_basic(&parts->authorization, conf);
        return 0;
    case SZ_PROVIDER_AUTH_POST:
        add_member(&parts->body, "client_id", conf->introspection.client_id);
        add_member(&parts->body, "client_secret", conf->introspection.secret.value);
        return 0;
    case SZ_PROVIDER_AUTH_KEY:
        break;
    }
    return add_assertion(&parts->body, issuer, now);
}

static int start(struct sz_issuer *issuer, struct sz_http *http, const struct parts *parts, struct sz_mono deadline,
                 struct sz_token_op *op)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_http_field fields[3] = {{SZ_S("accept"), SZ_S("application/json")}};
    size_t n = 1;
    if (parts->authorization.n > 0)
        fields[n++] = (struct sz_http_field){SZ_S("authorization"), sz_buf_slice(&parts->authorization)};
    if (!conf->userinfo.on)
        fields[n++] = (struct sz_http_field){SZ_S("content-type"), SZ_S("application/x-www-form-urlencoded")};
    struct sz_http_request request = {
        .method = conf->userinfo.on ? SZ_HTTP_GET : SZ_HTTP_POST,
        .url = conf->userinfo.on ? conf->userinfo.endpoint : conf->introspection.endpoint,
        .trust = issuer->trust,
        .insecure_http = conf->insecure_http,
        .fields = fields,
        .fields_n = n,
        .body = sz_buf_slice(&parts->body),
        .credentials = true,
        /* Asking twice changes nothing; but a client assertion is good for one request. */
        .idempotent = conf->userinfo.on || conf->introspection.auth != SZ_PROVIDER_AUTH_KEY,
        .deadline = deadline,
        .connect = CONNECT_TIME,
        .limit = SZ_INTROSPECTION_MAX,
    };
    request.retries = request.idempotent ? 1 : 0;
    return sz_dependency_start(issuer->dependency, http, &request, &op->call);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static enum sz_breaker_outcome on_done(struct sz_dependency_call *call, const struct sz_http_answer *answer)
{
    struct sz_token_op *op = SZ_CONTAINER(call, struct sz_token_op, call);
    struct sz_issuer *issuer = &op->issuers->v[op->index];
    enum sz_breaker_outcome outcome = sz_dependency_outcome(answer);
    struct sz_verified verified = {.reason = SZ_REASON_identity_unavailable};
    struct sz_identity identity;
    struct sz_introspected said = {answer->status, sz_http_answer_field(answer, SZ_S("content-type")), answer->body};
    int rc = -EAGAIN;
    if (answer->result == SZ_HTTP_ANSWERED)
        rc = sz_introspection_read(op->issuers, op->index, &said, sz_loop_wall(op->loop), &identity, &verified);
    else
        verified.detail = answer->why;
    if (rc == -EPROTO)
        outcome = SZ_BREAKER_FAILURE;
    if (rc != 0 && answer->result != SZ_HTTP_CANCELLED)
        sz_log(SZ_LOG_WARN, "issuer", "issuer '%.*s' could not be asked about a token: %s", SZ_FMT(issuer->conf->name),
               verified.detail.s);
    atomic_fetch_sub_explicit(&issuer->calls, 1, memory_order_relaxed);
    struct sz_token_answer told = {verified.reason, &identity, verified.heals && verified.heals_at > 0,
                                   answer->retry_after};
    op->on_done(op, &told);
    if (verified.reason == SZ_REASON_allowed)
        sz_wipe(&identity, sz_identity_size(&identity));
    return outcome;
}

int sz_token_ask(const struct sz_issuers *issuers, int index, struct sz_http *http, struct sz_loop *loop,
                 struct sz_slice token, struct sz_mono deadline, struct sz_token_op *op)
{
    struct sz_issuer *issuer = &issuers->v[index];
    struct parts parts;
    SZ_ASSERT(sz_issuer_asks(issuer->conf));
    if (issuer->dependency == NULL || http == NULL)
        return -ENOTCONN;
    if (atomic_fetch_add_explicit(&issuer->calls, 1, memory_order_relaxed) >= issuer->conf->calls) {
        atomic_fetch_sub_explicit(&issuer->calls, 1, memory_order_relaxed);
        return -EBUSY;
    }
    op->issuers = issuers;
    op->index = index;
    op->loop = loop;
    op->call.on_done = on_done;
    int rc = make_parts(issuer, token, sz_loop_wall(loop), &parts);
    if (rc == 0)
        rc = start(issuer, http, &parts, deadline, op);
    parts_fini(&parts);
    if (rc == 0)
        return 0;
    atomic_fetch_sub_explicit(&issuer->calls, 1, memory_order_relaxed);
    return rc > 0 ? -EBUSY : rc;
}

struct sz_span sz_token_retry(const struct sz_issuers *issuers, int index, struct sz_mono now)
{
    const struct sz_issuer *issuer = &issuers->v[index];
    return issuer->dependency == NULL ? (struct sz_span){0} : sz_dependency_retry(issuer->dependency, now);
}
