/* L2: lifetime, keys that seal, and a server of its own. */
#include "conf/build.h"
#include "subzero/fleet.h"

/* One base64 key a line; empty lines do not count. */
static void seal_keys(struct sz_builder *b)
{
    const struct sz_raw_cache_l2 *raw = &b->raw->cache.l2;
    struct sz_slice *v = sz_pool_zalloc(b->l->pool, SZ_SEAL_KEYS_MAX * sizeof(*v)), rest = raw->seal_keys.secret.value,
                    line;
    size_t n = 0;
    if (!raw->seal_keys.secret.set)
        return;
    for (unsigned number = 1; sz_split(&rest, '\n', &line); number++) {
        size_t got = 0;
        line = sz_trim(line);
        if (line.n == 0)
            continue;
        uint8_t *bytes = sz_pool_zalloc(b->l->pool, line.n + 4);
        sz_secret_note(b->l, sz_slice(bytes, line.n + 4));
        if (n == SZ_SEAL_KEYS_MAX || sz_b64_decode(line, bytes, &got) != 0 || got != SZ_FLEET_KEY) {
            sz_mistake(
                b->l, sz_node_key(raw->head.node, "seal_keys_file"),
                "line %u of 'seal_keys_file' is no key, or there are more than %d: %d bytes in base64, as 'subzero "
                "key new' prints them",
                number, SZ_SEAL_KEYS_MAX, SZ_FLEET_KEY);
            return;
        }
        v[n++] = sz_slice(bytes, got);
    }
    b->conf->cache.l2.seal_keys = v;
    b->conf->cache.l2.seal_keys_n = n;
    if (n == 0)
        sz_mistake(b->l, sz_node_key(raw->head.node, "seal_keys_file"), "'seal_keys_file' has no key in it");
}

void sz_build_l2(struct sz_builder *b)
{
    const struct sz_raw_cache_l2 *raw = &b->raw->cache.l2;
    b->conf->cache.l2.ttl = raw->ttl;
    b->conf->cache.l2.lease = raw->lease;
    b->conf->cache.l2.jwt = raw->jwt;
    seal_keys(b);
    if (raw->redis.head.node != NULL)
        sz_build_redis_server(b, &raw->redis, &b->conf->redis_cache);
    bool wanted = raw->jwt || raw->lease.us > 0 || raw->seal_keys.secret.set || raw->redis.head.node != NULL;
    if (wanted && b->raw->redis.head.node == NULL)
        sz_mistake(b->l, raw->head.node, "'cache.l2' needs 'redis': its key names and seals what is kept");
    if (raw->lease.us > 0 && raw->lease.us < 100000)
        sz_mistake(b->l, sz_node_key(raw->head.node, "lease"),
                   "a 'lease' of less than 100ms ends before it can be renewed");
}
