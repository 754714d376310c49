/*
 * Where relation checks are asked: the engine in this process with its model and tuples, or a server with a store and a
 * pinned model.  What belongs to one mode is a mistake in the other, for it would be ignored.
 */
#include "conf/build.h"
#include "subzero/fga.h"

#define ULID_LENGTH 26

static const struct sz_node *key(const struct sz_raw_fga *raw, const char *name)
{
    return sz_node_key(raw->head.node, name);
}

static bool named(const struct sz_raw_fga *raw, const char *name)
{
    return sz_node_get(raw->head.node, name) != NULL;
}

static void refuse_others(struct sz_builder *b, const struct sz_raw_fga *raw)
{
    static const char *const embedded[] = {"model", "tuples", "listen", "tls", "preshared_keys_file"};
    static const char *const remote[] = {
        "api_url",      "store_id", "model_id", "token_file", "client_id", "client_secret_file",
        "token_issuer", "audience", "changes",  "ca_file"}; /* what has a default is in every dump */
    bool is_embedded = raw->mode == SZ_FGA_EMBEDDED;
    const char *const *others = is_embedded ? remote : embedded;
    size_t n = is_embedded ? SZ_COUNT(remote) : SZ_COUNT(embedded);
    for (size_t i = 0; i < n; i++) {
        if (named(raw, others[i]))
            sz_mistake(b->l, key(raw, others[i]),
                       is_embedded ? "'%s' is for 'mode: remote' or 'mode: replica'; say which, or remove it"
                                   : "'%s' is for 'mode: embedded'; a remote store has its own. Remove it",
                       others[i]);
    }
}

static void ulid(struct sz_builder *b, const struct sz_raw_fga *raw, const char *name, struct sz_slice s)
{
    if (s.p == NULL) {
        sz_mistake(b->l, raw->head.node, "this mode needs '%s'%s", name,
                   strcmp(name, "model_id") == 0
                       ? ": without it the store's newest model would answer, whatever it comes to say"
                       : "");
        return;
    }
    bool good = s.n == ULID_LENGTH;
    for (size_t i = 0; i < s.n && good; i++)
        good = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'A' && s.p[i] <= 'Z');
    if (!good)
        sz_mistake(b->l, sz_node_get(raw->head.node, name),
                   "'%s' is '%.*s'; an id is 26 digits and capital letters, such as 01ARZ3NDEKTSV4RRFFQ69G5FAV", name,
                   SZ_FMT(s));
}

/* "auth.fga.dev", "https://auth.fga.dev/" and "https://auth.fga.dev/oauth/token" are one. */
static struct sz_slice token_url(struct sz_builder *b, struct sz_slice issuer)
{
    bool tls = sz_starts_with(issuer, SZ_S("https://")), plain = sz_starts_with(issuer, SZ_S("http://"));
    struct sz_slice rest = sz_from(issuer, tls ? 8 : plain ? 7 : 0);
    ptrdiff_t slash = sz_find_byte(rest, '/');
    bool bare = slash < 0 || (size_t)slash + 1 == rest.n;
    struct sz_slice host = bare && slash >= 0 ? sz_sub(rest, 0, (size_t)slash) : rest;
    return sz_pool_printf(b->l->pool, "%s%.*s%s", plain ? "http://" : "https://", SZ_FMT(host),
                          bare ? "/oauth/token" : "");
}

static void credentials(struct sz_builder *b, const struct sz_raw_fga *raw, struct sz_conf_fga_remote *out)
{
    static const char *const parts[] = {"client_secret_file", "token_issuer", "audience"};
    out->token = raw->token.secret;
    out->client_secret = raw->client_secret.secret;
    if (!named(raw, "client_id")) {
        for (size_t i = 0; i < SZ_COUNT(parts); i++) {
            if (named(raw, parts[i]))
                sz_mistake(b->l, key(raw, parts[i]), "'%s' without 'client_id'; add it, or remove this", parts[i]);
        }
        return;
    }
    if (named(raw, "token_file"))
        sz_mistake(b->l, key(raw, "token_file"), "'token_file' beside 'client_id': one way to be known; remove one");
    if (!named(raw, "client_secret_file") || !named(raw, "token_issuer"))
        sz_mistake(b->l, key(raw, "client_id"), "'client_id' needs 'client_secret_file' and 'token_issuer'");
    if (raw->token_issuer.p == NULL)
        return;
    out->token_url = token_url(b, raw->token_issuer);
    (void)sz_provider_url(b, sz_node_get(raw->head.node, "token_issuer"), "token_issuer", out->token_url,
                          out->insecure_http);
    if (out->audience.p == NULL && out->api_url.p != NULL)
        out->audience = sz_pool_printf(b->l->pool, "%.*s/", SZ_FMT(out->api_url));
}

static void remote(struct sz_builder *b, const struct sz_raw_fga *raw, struct sz_conf_fga_remote *out)
{
    *out = raw->remote;
    out->breaker = raw->breaker.out;
    out->follow = raw->mode == SZ_FGA_REPLICA || raw->changes.head.node != NULL;
    out->poll = raw->changes.head.node != NULL ? raw->changes.poll : SZ_SEC(1);
    out->max_lag = raw->changes.head.node != NULL ? raw->changes.max_lag : SZ_SEC(10);
    ulid(b, raw, "store_id", out->store_id);
    ulid(b, raw, "model_id", out->model_id);
    if (out->api_url.p == NULL) {
        sz_mistake(b->l, raw->head.node, "this mode needs 'api_url': the server's address");
    } else {
        while (out->api_url.n > 0 && out->api_url.p[out->api_url.n - 1] == '/')
            out->api_url.n--;
        (void)sz_provider_url(b, sz_node_get(raw->head.node, "api_url"), "api_url", out->api_url, out->insecure_http);
    }
    if (raw->mode == SZ_FGA_REPLICA && out->consistency == SZ_HIGHER_CONSISTENCY)
        sz_mistake(b->l, key(raw, "consistency"),
                   "every check would pass by the copy; use 'mode: remote', or let the routes that need it say so");
    credentials(b, raw, out);
    if (out->max_lag.us < out->poll.us)
        sz_mistake(b->l, key(raw, "changes"),
                   "'max_lag' is shorter than 'poll': the copy would never be fresh enough; raise it");
}

void sz_build_fga(struct sz_builder *b)
{
    const struct sz_raw_fga *raw = &b->raw->fga;
    struct sz_conf_fga *out = &b->conf->fga;
    if (raw->head.node == NULL)
        return;
    *out = (struct sz_conf_fga){
        .on = true,
        .mode = (enum sz_fga_mode)raw->mode,
        .model = raw->model.path,
        .tuples = raw->tuples.path,
        .model_text = raw->model.text,
        .tuples_text = raw->tuples.text,
    };
    refuse_others(b, raw);
    if (out->mode != SZ_FGA_EMBEDDED)
        remote(b, raw, &out->remote);
    else if (!named(raw, "model") && !named(raw, "listen"))
        sz_mistake(b->l, raw->head.node,
                   "'fga' needs 'model': a .fga, .json or fga.mod file; or 'listen', where one can be written");
}
