/* See provider.h: its life, its keys, its tokens. */
#include "fake/provider.h"

#include <stdio.h>
#include <stdlib.h>

#include "fake/certs.h"
#include "fake/provider_state.h"
#include "subzero/crypto.h"
#include "subzero/time.h"

const char *provider_endpoint_name(enum provider_endpoint endpoint)
{
    static const char *const names[PROVIDER_ENDPOINTS] = {"discovery", "metadata", "jwks", "introspect",
                                                          "userinfo",  "token",    "other"};
    return names[endpoint];
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

void provider_new_key(struct provider *p, bool keep)
{
    struct sz_buf jwk = {0};
    struct sz_text why;
    size_t drop = keep ? (p->signers_n == PROVIDER_KEYS ? 1 : 0) : p->signers_n;
    for (size_t i = 0; i < drop; i++)
        sz_signer_free(&p->signers[i]);
    memmove(p->signers, p->signers + drop, (p->signers_n - drop) * sizeof(struct sz_signer *));
    p->signers_n -= drop;
    SZ_ASSERT(sz_key_generate(SZ_ALG_ES256, &jwk) == 0);
    p->signers[p->signers_n] = sz_signer_new(sz_buf_slice(&jwk), &why);
    SZ_ASSERT(p->signers[p->signers_n] != NULL);
    p->signers_n++;
    sz_buf_fini(&jwk);
}

void provider_rotate(struct provider *p, bool keep)
{
    pthread_mutex_lock(&p->lock);
    provider_new_key(p, keep);
    pthread_mutex_unlock(&p->lock);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

const struct provider_token *provider_find_token(struct provider *p, const char *token)
{
    size_t n = p->tokens_n < PROVIDER_TOKENS ? p->tokens_n : PROVIDER_TOKENS;
    for (size_t i = 0; i < n; i++)
        if (strcmp(p->tokens[i].token, token) == 0)
            return &p->tokens[i];
    return NULL;
}

static void remember(struct provider *p, const char *token, struct sz_slice claims, int64_t exp)
{
    struct provider_token *t = &p->tokens[p->tokens_n++ % PROVIDER_TOKENS];
    free(t->token);
    free(t->claims);
    *t = (struct provider_token){.token = sz_xstrdup(token), .claims = sz_xmalloc(claims.n + 1), .exp = exp};
    memcpy(t->claims, claims.p, claims.n);
    t->claims[claims.n] = '\0';
}

static char *sign(struct provider *p, struct sz_slice claims)
{
    struct sz_buf object = {0};
    struct sz_arena arena;
    struct sz_slice token;
    sz_arena_init(&arena);
    sz_buf_printf(&object, "{%.*s}", SZ_FMT(claims));
    SZ_ASSERT(sz_signer_sign(p->signers[p->signers_n - 1], SZ_ALG_ES256, "at+jwt", sz_buf_slice(&object), &arena.pool,
                             &token) == 0);
    char *copy = sz_xmalloc(token.n + 1);
    memcpy(copy, token.p, token.n);
    copy[token.n] = '\0';
    sz_buf_fini(&object);
    sz_arena_fini(&arena);
    return copy;
}

char *provider_make_token(struct provider *p, bool opaque, const char *token, const char *sub, long ttl,
                          const char *claims)
{
    int64_t now = sz_wall_seconds(sz_wall_read());
    struct sz_buf text = {0};
    char *made, random[16];
    bool names_aud = claims != NULL && strstr(claims, "\"aud\"") != NULL;
    sz_buf_printf(&text, "\"iss\":\"%s\",\"sub\":\"%s\",\"iat\":%lld,\"exp\":%lld%s", p->issuer, sub, (long long)now,
                  (long long)now + ttl, names_aud ? "" : ",\"aud\":\"api\"");
    if (claims != NULL && claims[0] != '\0')
        sz_buf_printf(&text, ",%s", claims);
    if (token != NULL) {
        made = sz_xstrdup(token);
    } else if (opaque) {
        made = sz_xcalloc(1, sizeof(random) * 2 + 1);
        sz_random(random, sizeof(random));
        sz_hex_encode(random, sizeof(random), made);
    } else {
        made = sign(p, sz_buf_slice(&text));
    }
    remember(p, made, sz_buf_slice(&text), now + ttl);
    sz_buf_fini(&text);
    return made;
}

static char *make_token(struct provider *p, bool opaque, const char *sub, long ttl, const char *claims)
{
    pthread_mutex_lock(&p->lock);
    char *token = provider_make_token(p, opaque, NULL, sub, ttl, claims);
    pthread_mutex_unlock(&p->lock);
    return token;
}

char *provider_jwt(struct provider *p, const char *sub, long ttl_seconds, const char *claims)
{
    return make_token(p, false, sub, ttl_seconds, claims);
}

char *provider_opaque(struct provider *p, const char *sub, long ttl_seconds, const char *claims)
{
    return make_token(p, true, sub, ttl_seconds, claims);
}

void provider_revoke(struct provider *p, const char *token)
{
    pthread_mutex_lock(&p->lock);
    const struct provider_token *found = provider_find_token(p, token);
    if (found != NULL)
        p->tokens[found - p->tokens].revoked = true;
    pthread_mutex_unlock(&p->lock);
}

void provider_client_keys(struct provider *p, struct sz_slice jwks)
{
    pthread_mutex_lock(&p->lock);
    free(p->client_keys);
    p->client_keys = sz_xmalloc(jwks.n + 1);
    memcpy(p->client_keys, jwks.p, jwks.n);
    p->client_keys[jwks.n] = '\0';
    pthread_mutex_unlock(&p->lock);
}

/* ---- scripts and counts ------------------------------------------------------------------------------------------ */

void provider_play(struct provider *p, enum provider_endpoint endpoint, const struct provider_script *script)
{
    pthread_mutex_lock(&p->lock);
    p->scripts[endpoint] = *script;
    p->limited[endpoint] = script->times != 0;
    pthread_mutex_unlock(&p->lock);
}

void provider_fault(struct provider *p, enum provider_endpoint endpoint, enum provider_fault fault)
{
    struct provider_script script = {.fault = fault};
    provider_play(p, endpoint, &script);
}

unsigned provider_calls(struct provider *p, enum provider_endpoint endpoint)
{
    pthread_mutex_lock(&p->lock);
    unsigned n = p->calls[endpoint];
    pthread_mutex_unlock(&p->lock);
    return n;
}

void provider_clear(struct provider *p)
{
    pthread_mutex_lock(&p->lock);
    memset(p->calls, 0, sizeof(p->calls));
    pthread_mutex_unlock(&p->lock);
}

unsigned provider_connections(struct provider *p)
{
    return upstream_connections(p->upstream);
}

unsigned provider_open(struct provider *p)
{
    return upstream_open(p->upstream);
}

void provider_refuse(struct provider *p)
{
    upstream_refuse(p->upstream);
}

void provider_accept(struct provider *p)
{
    upstream_accept(p->upstream);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

const char *provider_url(const struct provider *p)
{
    return p->url;
}

uint16_t provider_port(const struct provider *p)
{
    return upstream_port(p->upstream);
}

const char *provider_ca_file(const struct provider *p)
{
    return p->ca_file;
}

static void make_certificate(struct provider *p, struct upstream_tls *tls)
{
    static unsigned made;
    struct cert ca, leaf;
    char name[32];
    snprintf(name, sizeof(name), "provider-ca-%u", ++made);
    cert_ca(&ca, name);
    snprintf(name, sizeof(name), "provider-%u", made);
    cert_leaf(&leaf, name, &ca, p->options.san != NULL ? p->options.san : "IP:127.0.0.1,DNS:localhost", 30);
    p->ca_file = ca.file;
    *tls = (struct upstream_tls){.certificate = leaf.file, .key = leaf.key_file, .h2 = p->options.h2};
}

struct provider *provider_start(const struct provider_options *options)
{
    struct provider *p = sz_xcalloc(1, sizeof(*p));
    struct upstream_tls tls;
    struct upstream_script script = {.speak = provider_speak, .arg = p, .forgets = true};
    sz_crypto_init();
    if (options != NULL)
        p->options = *options;
    if (p->options.client_id == NULL)
        p->options.client_id = PROVIDER_CLIENT;
    pthread_mutex_init(&p->lock, NULL);
    p->tokens = sz_xcalloc(PROVIDER_TOKENS, sizeof(*p->tokens));
    provider_new_key(p, false);
    if (p->options.tls)
        make_certificate(p, &tls);
    const char *address = p->options.address != NULL ? p->options.address : "127.0.0.1";
    p->upstream = upstream_start_on(p->options.tls ? &tls : NULL, address, p->options.port);
    if (p->options.url != NULL)
        snprintf(p->url, sizeof(p->url), "%s", p->options.url);
    else
        snprintf(p->url, sizeof(p->url), "%s://127.0.0.1:%u", p->options.tls ? "https" : "http", provider_port(p));
    snprintf(p->issuer, sizeof(p->issuer), "%s", p->options.issuer != NULL ? p->options.issuer : p->url);
    upstream_play(p->upstream, &script);
    return p;
}

void provider_stop(struct provider **provider)
{
    struct provider *p = *provider;
    *provider = NULL;
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    bool sleeping = p->sleeping;
    pthread_mutex_unlock(&p->lock);
    if (sleeping)
        pthread_join(p->sleeper, NULL);
    upstream_stop(&p->upstream);
    for (size_t i = 0; i < p->signers_n; i++)
        sz_signer_free(&p->signers[i]);
    for (size_t i = 0; i < PROVIDER_TOKENS; i++) {
        free(p->tokens[i].token);
        free(p->tokens[i].claims);
    }
    for (size_t i = 0; i < PROVIDER_JTIS; i++)
        free(p->jtis[i]);
    free(p->tokens);
    free(p->client_keys);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
