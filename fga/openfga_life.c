/* What all loops share of a remote store, and what each of them has. */
#include <stdlib.h>

#include "fga/openfga.h"
#include "subzero/conf.h"
#include "subzero/crypto.h"
#include "subzero/log.h"

#define SAID_EVERY SZ_SEC(10)

static struct sz_slice url_of(struct sz_fga_client *client, const struct sz_conf_fga_remote *conf, const char *what)
{
    return sz_pool_printf(&client->arena.pool, "%.*s/stores/%.*s%s", SZ_FMT(conf->api_url), SZ_FMT(conf->store_id),
                          what);
}

static uint64_t settings_of(const struct sz_conf_fga_remote *conf)
{
    struct sz_buf k = {0};
    uint8_t digest[32];
    uint64_t hash;
    sz_key_field(&k, 1, conf->api_url);
    sz_key_field(&k, 2, conf->store_id);
    sz_key_field(&k, 3, conf->model_id);
    sz_sha256(sz_buf_slice(&k), digest);
    sz_buf_fini(&k);
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

struct sz_fga_client *sz_fga_client_new(const struct sz_conf_fga_remote *conf, struct sz_text *why)
{
    struct sz_http_trust *trust = sz_http_trust_new(conf->ca_file.p, why);
    if (trust == NULL)
        return NULL;
    struct sz_fga_client *client = sz_xcalloc(1, sizeof(*client));
    sz_arena_init(&client->arena);
    struct sz_pool *pool = &client->arena.pool;
    client->refs = 1;
    client->trust = trust;
    client->check_url = url_of(client, conf, "/check");
    client->batch_url = url_of(client, conf, "/batch-check");
    client->store_url = url_of(client, conf, "");
    client->api_url = sz_pool_dup(pool, conf->api_url);
    client->model_id = sz_pool_dup(pool, conf->model_id);
    if (conf->token.set)
        client->shared_key = sz_pool_printf(pool, "Bearer %.*s", SZ_FMT(conf->token.value));
    if (conf->client_id.p != NULL)
        client->token = sz_fga_token_new(conf, pool);
    client->insecure_http = conf->insecure_http;
    client->consistency = (enum sz_consistency)conf->consistency;
    client->timeout = conf->timeout;
    client->retries = (uint8_t)conf->retries;
    client->breaker = conf->breaker;
    client->settings = settings_of(conf);
    client->errors = sz_series1(SZ_METRIC_errors, "fga");
    client->misconfigured = sz_series1(SZ_METRIC_errors, "fga_misconfigured");
    return client;
}

struct sz_fga_client *sz_fga_client_ref(struct sz_fga_client *client)
{
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    return client;
}

/* The last reference: no loop has anything of it under way. */
static void free_client(struct sz_fga_client *client)
{
    for (size_t i = 0; i < SZ_FGA_LANES; i++) {
        struct sz_fga_lane *lane = client->lanes[i];
        if (lane == NULL)
            continue;
        sz_dependency_put(&lane->dependency);
        free(lane);
    }
    if (client->shared_key.n > 0)
        sz_wipe((void *)(uintptr_t)client->shared_key.p, client->shared_key.n);
    sz_fga_token_free(&client->token);
    sz_http_trust_unref(&client->trust);
    sz_arena_fini(&client->arena);
    free(client);
}

void sz_fga_client_unref(struct sz_fga_client **clientp)
{
    struct sz_fga_client *client = *clientp;
    *clientp = NULL;
    if (client != NULL && atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) == 1)
        free_client(client);
}

struct sz_fga_lane *sz_fga_lane_of(struct sz_fga_client *client, struct sz_loop *loop, struct sz_http *http)
{
    unsigned index = sz_loop_index(loop);
    SZ_ASSERT(index < SZ_FGA_LANES);
    struct sz_fga_lane *lane = client->lanes[index];
    if (lane != NULL)
        return lane;
    lane = sz_xcalloc(1, sizeof(*lane));
    lane->client = client;
    lane->loop = loop;
    lane->http = http;
    lane->dependency = sz_dependency_get("fga", &client->breaker, sz_loop_now(loop));
    lane->send.on_run = sz_fga_lane_send;
    client->lanes[index] = lane;
    return lane;
}

void sz_fga_fault(struct sz_fga_lane *lane, bool misconfigured, const char *what, const char *detail)
{
    struct sz_fga_client *client = lane->client;
    int64_t now = sz_loop_now(lane->loop).us, last = atomic_load(&client->said_at[misconfigured]);
    sz_count(sz_loop_index(lane->loop), misconfigured ? client->misconfigured : client->errors, 1);
    if ((last != 0 && now - last < SAID_EVERY.us) ||
        !atomic_compare_exchange_strong(&client->said_at[misconfigured], &last, now))
        return;
    sz_log(misconfigured ? SZ_LOG_ERROR : SZ_LOG_WARN, "fga", "%s: %s%s", what, detail,
           misconfigured ? " (this is a matter of configuration, not of permission)" : "");
}
