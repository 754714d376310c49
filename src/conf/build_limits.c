/*
 * Rate limits: from what is written to rules whose arithmetic is exact, and what a route makes of their keys.  A policy
 * whose products could reach 2^52 is refused here, since Redis computes with doubles.
 */
#include <inttypes.h>

#include "conf/build.h"
#include "conf/value.h"

/* "100/60s", "10/s": true, else a mistake. */
static bool rate_of(struct sz_builder *b, const struct sz_node *at, const char *name, struct sz_slice text,
                    uint64_t *count, struct sz_span *per)
{
    struct sz_text why = {""};
    ptrdiff_t slash = sz_find_byte(text, '/');
    uint64_t us = 0;
    struct sz_slice unit = sz_from(text, (size_t)slash + 1);
    if (slash > 0 && sz_parse_u64(sz_sub(text, 0, (size_t)slash), SZ_LIMIT_COUNT_MAX, count) == 0) {
        if (unit.n > 0 && (unit.p[0] < '0' || unit.p[0] > '9'))
            unit = sz_pool_printf(b->l->pool, "1%.*s", SZ_FMT(unit));
        if (sz_value_span(unit, &us, &why) == 0 && us > 0 && us <= INT64_C(366) * 86400 * 1000000) {
            per->us = (int64_t)us;
            return true;
        }
    }
    sz_mistake(b->l, at, "'%s' is '%.*s'; write a number and a time: 100/60s, 10/s%s%s", name, SZ_FMT(text),
               why.s[0] != '\0' ? ": " : "", why.s);
    return false;
}

static void too_large(struct sz_builder *b, const struct sz_node *at, const char *remedy)
{
    sz_mistake(b->l, at,
               "this limit's arithmetic would need numbers of 2^52 or more, where Redis is no longer exact; %s",
               remedy);
}

/* ---- policies ---------------------------------------------------------------------------------------------------- */

static void key_of(struct sz_builder *b, const struct sz_raw_rate_limit *raw, struct sz_conf_rate_limit *out)
{
    static const char *const words[] = {
        [SZ_BY_TENANT] = "tenant", [SZ_BY_CLIENT] = "client", [SZ_BY_ADDRESS] = "address", [SZ_BY_COOKIE] = "cookie"};
    out->by = SZ_BY_TEMPLATE;
    out->key = raw->key;
    for (size_t i = 0; i < SZ_COUNT(words); i++) {
        if (sz_eq(raw->key, sz_cstr(words[i])))
            out->by = (enum sz_limit_by)i;
    }
    if (out->by == SZ_BY_TEMPLATE && raw->key.p != NULL && sz_find_byte(raw->key, '{') < 0)
        sz_mistake(b->l, sz_node_get(raw->head.node, "key"),
                   "'key' is '%.*s'; it takes tenant, client, address, cookie or a template with {variables}",
                   SZ_FMT(raw->key));
}

/* Keys of the other algorithm. */
static void belongs(struct sz_builder *b, const struct sz_raw_rate_limit *raw, const char *const *theirs,
                    const char *mine)
{
    for (size_t i = 0; theirs[i] != NULL; i++) {
        if (sz_node_get(raw->head.node, theirs[i]) != NULL)
            sz_mistake(b->l, sz_node_key(raw->head.node, theirs[i]), "'algorithm: %s' has no '%s'; remove it", mine,
                       theirs[i]);
    }
}

static bool needs(struct sz_builder *b, const struct sz_raw_rate_limit *raw, const char *key, const char *algorithm)
{
    if (sz_node_get(raw->head.node, key) != NULL)
        return true;
    sz_mistake(b->l, sz_node_key(raw->head.node, "algorithm"), "'algorithm: %s' needs '%s'", algorithm, key);
    return false;
}

struct rate {
    uint64_t count;
    struct sz_span per;
};

static bool bucket_of(struct sz_builder *b, const struct sz_raw_rate_limit *raw, struct sz_conf_rate_limit *out,
                      struct rate *rate)
{
    static const char *const theirs[] = {"limit", "window", NULL};
    const struct sz_node *node = raw->head.node;
    belongs(b, raw, theirs, "token_bucket");
    bool both = needs(b, raw, "capacity", "token_bucket");
    both = needs(b, raw, "refill", "token_bucket") && both;
    if (!both || raw->capacity == 0 || raw->refill.p == NULL ||
        !rate_of(b, sz_node_get(node, "refill"), "refill", raw->refill, &rate->count, &rate->per))
        return false;
    if (raw->cost > raw->capacity) {
        sz_mistake(b->l, sz_node_get(node, "cost"), "'cost' is more than 'capacity': nothing would ever pass");
        return false;
    }
    if (sz_limit_bucket(raw->capacity, rate->count, rate->per, raw->cost, &out->rule) != 0) {
        too_large(b, sz_node_key(node, "refill"), "lower 'capacity', or let 'refill' be a rounder fraction");
        return false;
    }
    out->quota = raw->capacity;
    out->quota_seconds = (out->rule.fill + 999999) / 1000000;
    if (rate->count == 0)
        sz_warning(b->l, sz_node_get(node, "refill"),
                   "a bucket that is never refilled is never forgotten either: each key stays in the store for good");
    return true;
}

static bool window_of(struct sz_builder *b, const struct sz_raw_rate_limit *raw, struct sz_conf_rate_limit *out,
                      struct rate *rate)
{
    static const char *const theirs[] = {"capacity", "refill", NULL};
    const struct sz_node *node = raw->head.node;
    belongs(b, raw, theirs, "sliding_window");
    bool both = needs(b, raw, "limit", "sliding_window");
    both = needs(b, raw, "window", "sliding_window") && both;
    if (!both || raw->limit == 0 || raw->window.us == 0)
        return false;
    if (raw->cost > raw->limit) {
        sz_mistake(b->l, sz_node_get(node, "cost"), "'cost' is more than 'limit': nothing would ever pass");
        return false;
    }
    if (sz_limit_window(raw->limit, raw->window, raw->cost, &out->rule) != 0) {
        too_large(b, sz_node_key(node, "window"), "lower 'limit' or 'window'");
        return false;
    }
    *rate = (struct rate){raw->limit, raw->window};
    out->quota = raw->limit;
    out->quota_seconds = ((uint64_t)raw->window.us + 999999) / 1000000;
    return true;
}

/* `rate`: of the policy itself. */
static void emergency_of(struct sz_builder *b, const struct sz_raw_rate_limit *raw, struct sz_conf_rate_limit *out,
                         struct rate rate)
{
    const struct sz_node *at = sz_node_get(raw->head.node, "emergency");
    if (!out->fail_open) {
        if (at != NULL)
            sz_mistake(b->l, sz_node_key(raw->head.node, "emergency"),
                       "'emergency' is for 'on_store_failure: open'; remove it");
        return;
    }
    if (raw->emergency.p != NULL && !rate_of(b, at, "emergency", raw->emergency, &rate.count, &rate.per))
        return;
    if (rate.count == 0)
        sz_mistake(b->l, at != NULL ? at : sz_node_key(raw->head.node, "on_store_failure"),
                   "'on_store_failure: open' needs 'emergency', a rate above 0: what passes without the store");
    else if (sz_limit_emergency(rate.count, rate.per, raw->cost, &out->emergency) != 0)
        too_large(b, at != NULL ? at : sz_node_key(raw->head.node, "on_store_failure"),
                  "let 'emergency' be a rounder fraction");
}

/* What the scripts compute with, as text. */
static void args_of(struct sz_builder *b, struct sz_conf_rate_limit *out)
{
    const struct sz_limit_rule *r = &out->rule;
    const uint64_t bucket[] = {r->capacity, r->n, r->d, r->cost, r->fill}, window[] = {r->capacity, r->window, r->cost};
    bool is_window = r->kind == SZ_LIMIT_WINDOW;
    out->args_n = is_window ? SZ_COUNT(window) : SZ_COUNT(bucket);
    for (size_t i = 0; i < out->args_n; i++)
        out->args[i] = sz_pool_printf(b->l->pool, "%" PRIu64, is_window ? window[i] : bucket[i]);
}

static void policy(struct sz_builder *b, const struct sz_raw_rate_limit *raw, struct sz_conf_rate_limit *out)
{
    struct rate rate = {0};
    out->name = raw->head.name;
    out->lease = raw->lease;
    out->dry_run = raw->dry_run;
    out->version = raw->policy_version;
    out->fail_open = raw->on_store_failure == 1;
    key_of(b, raw, out);
    if (sz_node_get(raw->head.node, "algorithm") == NULL)
        return;
    bool good = raw->algorithm == SZ_LIMIT_WINDOW ? window_of(b, raw, out, &rate) : bucket_of(b, raw, out, &rate);
    if (!good)
        return;
    if (raw->lease > 1 && raw->lease * raw->cost > out->quota)
        sz_mistake(b->l, sz_node_get(raw->head.node, "lease"),
                   "'lease' takes more at once than the whole limit holds; lower it");
    emergency_of(b, raw, out, rate);
    args_of(b, out);
}

void sz_build_rate_limits(struct sz_builder *b)
{
    const struct sz_raw_rate_limit *raw = b->raw->rate_limits.v;
    size_t n = b->raw->rate_limits.n;
    struct sz_conf_rate_limit *v = sz_pool_zalloc(b->l->pool, n * sizeof(*v));
    b->conf->rate_limits = v;
    b->conf->rate_limits_n = n;
    for (size_t i = 0; i < n; i++) {
        if (raw[i].head.node != NULL)
            policy(b, &raw[i], &v[i]);
    }
}

/* ---- what a route uses ------------------------------------------------------------------------------------------- */

static const struct sz_conf_rate_limit *named(struct sz_builder *b, const struct sz_node *at, struct sz_slice name)
{
    size_t n = b->conf->rate_limits_n;
    const char **names = sz_pool_alloc(b->l->pool, n * sizeof(*names));
    for (size_t i = 0; i < n; i++) {
        if (sz_eq(b->conf->rate_limits[i].name, name))
            return &b->conf->rate_limits[i];
        names[i] = b->conf->rate_limits[i].name.p;
    }
    const char *meant = sz_suggest(name, names, n);
    sz_mistake(b->l, at, "no rate limit '%.*s'; %s%s%s", SZ_FMT(name),
               meant ? "did you mean '" : "add it to 'rate_limits'", meant ? meant : "", meant ? "'?" : "");
    return NULL;
}

/* A template that only the request fills in is a bucket that the client chooses. */
static void check_template(struct sz_builder *b, const struct sz_node *at, const struct sz_conf_route *route,
                           const struct sz_template *t)
{
    bool claims = false, ours = false;
    for (size_t i = 0; i < t->n; i++) {
        enum sz_var var = t->parts[i].var;
        claims |= var == SZ_VAR_CLAIM;
        ours |= var == SZ_VAR_CLAIM || var == SZ_VAR_CLIENT_IP;
        if (var == SZ_VAR_NOW)
            sz_mistake(b->l, at, "{now} in a rate limit's 'key' is another bucket each second; remove it");
    }
    if (claims && route->is_public)
        sz_mistake(b->l, at, "the limit's 'key' asks for claims, and on a public route nobody is known");
    if (!ours)
        sz_warning(b->l, at,
                   "nothing in the limit's 'key' is known for sure: with another value the same client has another "
                   "bucket; add {claims.sub} or {client.ip}");
}

static void route_limit(struct sz_builder *b, const struct sz_node *at, const struct sz_pattern *pattern,
                        const struct sz_conf_route *route, struct sz_conf_route_limit *out)
{
    const struct sz_conf_rate_limit *policy = out->policy;
    if (policy->by == SZ_BY_COOKIE && b->raw->anonymous.head.node == NULL)
        sz_mistake(b->l, at, "rate limit '%.*s' goes by the cookie of 'anonymous', which is not there; add it",
                   SZ_FMT(policy->name));
    else if (policy->by == SZ_BY_COOKIE && !route->is_public)
        sz_mistake(b->l, at,
                   "rate limit '%.*s' goes by a visitor's cookie, and on this route the subject is known; "
                   "use 'key: tenant'",
                   SZ_FMT(policy->name));
    if (policy->by == SZ_BY_TEMPLATE && policy->key.p != NULL && sz_find_byte(policy->key, '{') >= 0 &&
        sz_template_parse(b, at, pattern, policy->key, &out->key))
        check_template(b, at, route, &out->key);
}

/* Other buckets for another endpoint, policy, algorithm or version. */
static uint64_t id_of(const struct sz_conf_route *route, const struct sz_conf_rate_limit *policy)
{
    struct sz_buf key = {0};
    uint8_t digest[32], kind = (uint8_t)policy->rule.kind;
    uint64_t id;
    sz_key_field(&key, 1, route->id);
    sz_key_field(&key, 2, policy->name);
    sz_key_field(&key, 3, sz_slice(&kind, 1));
    sz_key_field(&key, 4, sz_slice(&policy->version, sizeof(policy->version)));
    sz_sha256(sz_buf_slice(&key), digest);
    sz_buf_fini(&key);
    memcpy(&id, digest, sizeof(id));
    return id;
}

/* Whoever sends no cookie is a new visitor each time. */
static void check_cookie(struct sz_builder *b, const struct sz_node *at, const struct sz_conf_route_limit *v, size_t n)
{
    bool cookie = false, address = false;
    for (size_t i = 0; i < n; i++) {
        cookie |= v[i].policy->by == SZ_BY_COOKIE;
        address |= v[i].policy->by == SZ_BY_ADDRESS || v[i].policy->by == SZ_BY_TENANT;
    }
    if (cookie && !address)
        sz_warning(b->l, at,
                   "a client that keeps no cookie is never limited here; name a limit with 'key: address' as well");
}

void sz_build_route_limits(struct sz_builder *b, const struct sz_raw_route *raw, const struct sz_pattern *pattern,
                           struct sz_conf_route *route)
{
    struct sz_conf_route_limit *v = sz_pool_zalloc(b->l->pool, raw->rate_limit.n * sizeof(*v));
    size_t n = 0;
    for (size_t i = 0; i < raw->rate_limit.n; i++) {
        const struct sz_node *at = sz_node_item(raw->head.node, "rate_limit", i);
        v[n].policy = named(b, at, raw->rate_limit.v[i]);
        if (v[n].policy == NULL)
            continue;
        route_limit(b, at, pattern, route, &v[n]);
        v[n].id = id_of(route, v[n].policy);
        n++;
    }
    check_cookie(b, sz_node_get(raw->head.node, "rate_limit"), v, n);
    route->limits = v;
    route->limits_n = n;
}

/* ---- visitors ------------------------------------------------------------------------------------------------------
 */

static bool is_cookie_name(struct sz_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
              c == '.'))
            return false;
    }
    return name.n > 0 && name.n <= 64;
}

void sz_build_anonymous(struct sz_builder *b)
{
    const struct sz_raw_anonymous *raw = &b->raw->anonymous;
    const struct sz_node *node = raw->head.node;
    if (node == NULL)
        return;
    b->conf->anonymous.on = true;
    b->conf->anonymous.cookie = raw->cookie;
    b->conf->anonymous.ttl = raw->ttl;
    if (raw->cookie.p != NULL && !is_cookie_name(raw->cookie))
        sz_mistake(b->l, sz_node_get(node, "cookie"), "a cookie's name has 1 to 64 letters, digits, '_', '-' or '.'");
    if (!raw->key.secret.set)
        return;
    struct sz_slice text = sz_trim(raw->key.secret.value);
    uint8_t *bytes = sz_pool_zalloc(b->l->pool, text.n + 4);
    size_t n = 0;
    sz_secret_note(b->l, sz_slice(bytes, text.n + 4));
    if (sz_b64_decode(text, bytes, &n) != 0 || n != SZ_VISITOR_KEY)
        sz_mistake(b->l, sz_node_get(node, "key_file"),
                   "'key_file' holds no key: %d bytes in base64, as 'subzero key new' prints them", SZ_VISITOR_KEY);
    else
        b->conf->anonymous.key = (struct sz_secret){.value = sz_slice(bytes, n), .set = true};
}

/* ---- before authentication ------------------------------------------------------------------------------------------
 */

#define WIDE 16 /* a /48 has so much of what a /64 has */

void sz_build_per_address(struct sz_builder *b)
{
    const struct sz_raw_per_address *raw = &b->raw->limits.per_address;
    const struct sz_node *node = raw->head.node;
    struct rate rate;
    if (node == NULL || raw->rate.p == NULL)
        return;
    b->conf->limits.per_address.on = true;
    b->conf->limits.per_address.failure_cost = raw->failure_cost;
    b->conf->limits.per_address.in_flight = raw->in_flight;
    b->conf->limits.per_address.keys = raw->keys;
    if (!rate_of(b, sz_node_get(node, "rate"), "rate", raw->rate, &rate.count, &rate.per) || raw->burst == 0)
        return;
    if (rate.count == 0)
        sz_mistake(b->l, sz_node_get(node, "rate"),
                   "'rate' is 0: after 'burst' requests an address would be out for good");
    else if (rate.count > SZ_LIMIT_COUNT_MAX / WIDE ||
             sz_limit_bucket(raw->burst, rate.count, rate.per, 1, &b->conf->limits.per_address.rule) != 0 ||
             sz_limit_bucket((uint64_t)raw->burst * WIDE, rate.count * WIDE, rate.per, 1,
                             &b->conf->limits.per_address.wide) != 0)
        too_large(b, sz_node_get(node, "rate"), "lower 'burst', or let 'rate' be a rounder fraction");
    if (raw->failure_cost > raw->burst)
        sz_mistake(b->l, sz_node_key(node, "failure_cost"), "'failure_cost' is more than 'burst'; lower it");
}
