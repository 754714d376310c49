/*
 * The schema's rows.  Read from the end: the root names the sections, and each table stands
 * below those that it refers to.  Defaults and limits carry their unit; the help text is what the
 * reference page prints.
 */
#include "conf/schema.h"

#include "conf/raw.h"
#include "subzero/fga.h"
#include "subzero/identity.h"
#include "subzero/log.h"

/* One row; ROW_AT is the struct that the table describes. */
#define AT(member) .offset = offsetof(ROW_AT, member), .size = sizeof(((ROW_AT *)NULL)->member)
#define BOOL(key, member, d, text)                                                   \
    {                                                                                \
        .name = key, .type = SZ_F_BOOL, AT(member), .def = d, .max = 1, .help = text \
    }
#define FLAG(key, member, fl, d, text)                                                            \
    {                                                                                             \
        .name = key, .type = SZ_F_BOOL, AT(member), .flags = fl, .def = d, .max = 1, .help = text \
    }
#define NUMBER(kind, key, member, fl, d, lo, hi, text)                                                   \
    {                                                                                                    \
        .name = key, .type = kind, AT(member), .flags = fl, .def = d, .min = lo, .max = hi, .help = text \
    }
#define COUNT(...) NUMBER(SZ_F_COUNT, __VA_ARGS__)
#define SIZE(...)  NUMBER(SZ_F_SIZE, __VA_ARGS__)
#define SPAN(...)  NUMBER(SZ_F_SPAN, __VA_ARGS__)
#define ENUM(key, member, fl, d, list, text)                                                                  \
    {                                                                                                         \
        .name = key, .type = SZ_F_ENUM, AT(member), .flags = fl, .def = d, .max = INT32_MAX, .choices = list, \
        .help = text                                                                                          \
    }
#define TEXT(key, member, fl, d, text)                                                                         \
    {                                                                                                          \
        .name = key, .type = SZ_F_TEXT, AT(member), .flags = fl, .def = d, .min = 1, .max = 1024, .help = text \
    }
#define FILE_(key, member, fl, text)                                                                 \
    {                                                                                                \
        .name = key, .type = SZ_F_FILE, AT(member), .flags = fl, .min = 1, .max = 4095, .help = text \
    }
#define TEXT_OR_FILE(key, member, fl, text)                                                                  \
    {                                                                                                        \
        .name = key, .type = SZ_F_TEXT_OR_FILE, AT(member), .flags = fl, .min = 1, .max = 4095, .help = text \
    }
#define SECRET(key, member, fl, text)                                                                  \
    {                                                                                                  \
        .name = key, .type = SZ_F_SECRET, AT(member), .flags = fl, .min = 1, .max = 4095, .help = text \
    }
#define TEXTS(key, member, fl, hi, text)                                                            \
    {                                                                                               \
        .name = key, .type = SZ_F_TEXTS, AT(member), .flags = fl, .min = 1, .max = hi, .help = text \
    }
#define ENTRIES(kind, key, member, hi, text)                                     \
    {                                                                            \
        .name = key, .type = kind, AT(member), .min = 1, .max = hi, .help = text \
    }
#define ENTRIES_RESTART(kind, key, member, hi, text)                                               \
    {                                                                                              \
        .name = key, .type = kind, AT(member), .flags = RESTART, .min = 1, .max = hi, .help = text \
    }
#define OBJECT(key, member, fl, of, text)                                                      \
    {                                                                                          \
        .name = key, .type = SZ_F_OBJECT, AT(member), .flags = fl, .object = &of, .help = text \
    }
#define LIST(key, member, fl, hi, of, text)                                                                       \
    {                                                                                                             \
        .name = key, .type = SZ_F_LIST, AT(member), .flags = fl, .min = 1, .max = hi, .object = &of, .help = text \
    }
#define MAP(key, member, fl, hi, of, text)                                                                       \
    {                                                                                                            \
        .name = key, .type = SZ_F_MAP, AT(member), .flags = fl, .min = 1, .max = hi, .object = &of, .help = text \
    }
#define LATER(key, text)                              \
    {                                                 \
        .name = key, .type = SZ_F_LATER, .help = text \
    }
#define END          \
    {                \
        .name = NULL \
    }

#define MS(n)    ((n)*1000ull)
#define SEC(n)   ((n)*1000000ull)
#define KIB(n)   ((n)*1024ull)
#define MIB(n)   ((n)*1024ull * 1024)
#define REQUIRED SZ_FIELD_REQUIRED
#define RESTART  SZ_FIELD_RESTART
#define OPTIONAL SZ_FIELD_OPTIONAL

/* ---- listen, admin ------------------------------------------------------------------------------ */

static const struct sz_choice modes[] = {
    {"proxy", SZ_MODE_PROXY, false}, {"decide", SZ_MODE_DECIDE, false}, {"api", SZ_MODE_API, false}, {NULL, 0, false}};
static const struct sz_choice dialects[] = {
    {"nginx", SZ_DIALECT_NGINX, false}, {"traefik", SZ_DIALECT_TRAEFIK, false}, {"caddy", SZ_DIALECT_CADDY, false},
    {"envoy", SZ_DIALECT_ENVOY, false}, {"haproxy", SZ_DIALECT_HAPROXY, false}, {NULL, 0, false}};
static const struct sz_choice protocols[] = {{"h2c", SZ_PROTOCOL_H2C, false}, {NULL, 0, false}};
static const struct sz_choice client_auths[] = {
    {"require", SZ_CLIENT_AUTH_REQUIRE, false}, {"optional", SZ_CLIENT_AUTH_OPTIONAL, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_cert
static const struct sz_field cert_fields[] = {
    FILE_("certificate", out.certificate, REQUIRED, "PEM file: the certificate, then its intermediates"),
    FILE_("key", out.key, REQUIRED, "PEM file: the private key of the certificate"), END};
static const struct sz_object cert_object = {"a certificate", sizeof(ROW_AT), cert_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_tls
static const struct sz_field tls_fields[] = {
    FILE_("certificate", single.certificate, 0, "PEM file: the certificate, then its intermediates"),
    FILE_("key", single.key, 0, "PEM file: the private key of the certificate"),
    LIST("certificates", certificates, 0, 256, cert_object,
         "several certificates, chosen by the name that the client asks for (SNI); the first is the default"),
    FILE_("client_ca", client_ca, 0, "PEM file: who may sign client certificates; turns mutual TLS on"),
    ENUM("client_auth", client_auth, 0, NULL, client_auths,
         "whether a client certificate is needed; only with `client_ca`, then `require` unless said otherwise"),
    FILE_("crl", crl, 0, "PEM file: revoked client certificates; only with `client_ca`"),
    BOOL("watch", watch, "false", "load the files again when they change, not only on SIGHUP"),
    END};
static const struct sz_object tls_object = {"tls", sizeof(ROW_AT), tls_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_listener
static const struct sz_field listener_fields[] = {
    TEXT("address", address, REQUIRED, NULL, "where to listen: `address:port`, IPv6 in brackets"),
    ENUM("mode", mode, 0, "proxy", modes,
         "`proxy` sends allowed requests upstream; `decide` answers a front proxy that asks (forward-auth); `api` "
         "answers "
         "services that ask for relations: `POST /authz/check` and AuthZEN"),
    ENUM("dialect", dialect, 0, NULL, dialects,
         "whose question a `decide` listener answers; that dialect's headers alone are read. Required there"),
    ENUM("protocol", protocol, 0, NULL, protocols,
         "`h2c`: HTTP/2 with prior knowledge alone, without TLS. By default HTTP/1.1 and HTTP/2"),
    OBJECT("tls", tls, OPTIONAL, tls_object, "TLS 1.2 and 1.3 on this listener"),
    BOOL("proxy_protocol", proxy_protocol, "false",
         "expect the PROXY protocol (v1 or v2) from `trusted_proxies`, and take the client's address from it"),
    SIZE("request_body", request_body, 0, NULL, 0, MIB(1024),
         "largest request body here; at most `limits.request_body`"),
    SECRET("keys_file", keys, 0,
           "file with the bearer keys of an `api` listener, one a line, each with an optional name behind a blank; "
           "needed unless the address is a loopback one"),
    END};
static const struct sz_object listener_object = {"a listener", sizeof(ROW_AT), listener_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_admin
static const struct sz_field admin_fields[] = {
    TEXT("address", address, REQUIRED, NULL, "where the admin endpoints listen: `address:port`"),
    SECRET("token_file", token, 0,
           "file with the bearer token; needed unless the address is a loopback one, used there too"),
    BOOL("open_metrics", open_metrics, "false", "`/metrics` without the token"),
    TEXTS("hosts", hosts, 0, 64, "accepted `Host` names besides the loopback ones"), END};
static const struct sz_object admin_object = {"admin", sizeof(ROW_AT), admin_fields};
#undef ROW_AT

/* ---- limits ------------------------------------------------------------------------------------------- */

#define ROW_AT struct sz_raw_per_address
static const struct sz_field per_address_fields[] = {
    TEXT("rate", rate, REQUIRED, NULL, "requests that come back in a time: `50/1s`, `1000/1m`"),
    COUNT("burst", burst, 0, "100", 1, 1000000, "requests at once, before `rate` counts"),
    COUNT("failure_cost", failure_cost, 0, "10", 1, 1000000,
          "a request whose token was refused counts as so many; at most `burst`"),
    COUNT("in_flight", in_flight, 0, NULL, 1, 1000000,
          "requests being worked on at once; beyond it 429 `concurrency_limited`. By default any number"),
    COUNT("keys", keys, RESTART, "65536", 1024, 16777216, "addresses remembered; fixed memory, about 37 bytes each"),
    END};
static const struct sz_object per_address_object = {"limits.per_address", sizeof(ROW_AT), per_address_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_limits
static const struct sz_field limits_fields[] = {
    COUNT("max_connections", out.max_connections, RESTART, "20000", 1, 1000000,
          "client connections of the whole process; further ones wait in the kernel's queue"),
    COUNT("connections_per_address", out.connections_per_address, 0, "4096", 1, 1000000,
          "connections of one client address, counted at accept; a trusted proxy's own address is exempt"),
    COUNT("max_in_flight", out.max_in_flight, 0, "10000", 1, 1000000,
          "requests being worked on; beyond it 503 `overloaded` before anything is verified"),
    SIZE("request_head", out.request_head, 0, "32KiB", KIB(1), KIB(256), "request line and headers; beyond it 431"),
    COUNT("headers", out.headers, 0, "100", 8, 100, "header fields of a request; beyond it 431"),
    SIZE("request_body", out.request_body, RESTART, "1MB", 0, MIB(1024),
         "largest request body; listeners and routes may only lower it; beyond it 413"),
    SIZE("buffered_bodies", out.buffered_bodies, RESTART, "64MB", KIB(64), MIB(1024) * 64,
         "request bytes buffered by the whole process; the largest unauthenticated one is dropped first"),
    SPAN("request_timeout", out.request_timeout, RESTART, "10s", MS(10), SEC(3600),
         "time to send a whole request, and the deadline of its decision"),
    SPAN("idle_timeout", out.idle_timeout, RESTART, "60s", MS(100), SEC(3600),
         "a connection without a request is closed"),
    SPAN("drain", out.drain, 0, "30s", 0, SEC(3600), "after SIGTERM: how long requests in flight may take to finish"),
    COUNT("verifications_queue", out.verifications_queue, RESTART, "1024", 16, 1000000,
          "tokens waiting to be verified, per thread; beyond it 503 `overloaded`"),
    COUNT("rate_limit_keys", out.rate_limit_keys, RESTART, "100000", 1024, 16777216,
          "buckets of `rate_limits` kept in the process; fixed memory, about 37 bytes each when used; beyond it the "
          "fullest ones are given up"),
    OBJECT("per_address", per_address, OPTIONAL, per_address_object,
           "before anything is verified, for each client address; IPv6 by /64, and by /48 with 16 times as much. A "
           "trusted proxy's own address is exempt"),
    END};
static const struct sz_object limits_object = {"limits", sizeof(ROW_AT), limits_fields};
#undef ROW_AT

/* ---- issuers ---------------------------------------------------------------------------------------------- */

static const struct sz_choice provider_auths[] = {{"basic", SZ_PROVIDER_AUTH_BASIC, false},
                                                  {"post", SZ_PROVIDER_AUTH_POST, false},
                                                  {"private_key_jwt", SZ_PROVIDER_AUTH_KEY, false},
                                                  {NULL, 0, false}};

#define ROW_AT struct sz_raw_introspection
static const struct sz_field introspection_fields[] = {
    TEXT("endpoint", endpoint, REQUIRED, NULL, "url of the introspection endpoint (RFC 7662)"),
    TEXT("client_id", client_id, REQUIRED, NULL, "the gateway's own client at the provider"),
    ENUM("auth", auth, 0, "basic", provider_auths,
         "how the gateway proves itself: its secret in the `Authorization` header or in the form (RFC 6749 2.3.1), or "
         "a signed statement (RFC 7523)"),
    SECRET("client_secret_file", secret, 0, "file with the client's secret, for `basic` and `post`"),
    SECRET("key_file", key, 0, "private JWK or PEM that signs, for `private_key_jwt`"),
    END};
static const struct sz_object introspection_object = {"introspection", sizeof(ROW_AT), introspection_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_userinfo
static const struct sz_field userinfo_fields[] = {
    BOOL("accept_any_audience", accept_any_audience, "false",
         "must be true: what the endpoint answers names no audience, scope or expiry"),
    TEXT("endpoint", endpoint, 0, NULL, "its url; by default `userinfo` below `issuer`, as with Auth0"), END};
static const struct sz_object userinfo_object = {"userinfo", sizeof(ROW_AT), userinfo_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_breaker
static const struct sz_field breaker_fields[] = {
    COUNT("failures", out.failures, 0, "5", 1, 1000, "failed calls in a row after which it is not asked any more"),
    SPAN("open", out.open, 0, "60s", MS(100), SEC(3600), "for so long; then one call tries it"), END};
static const struct sz_object breaker_object = {"a breaker", sizeof(ROW_AT), breaker_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_logout
static const struct sz_field logout_fields[] = {
    TEXT("path", path, REQUIRED, NULL,
         "path on the listeners of mode `proxy` and on the admin listener, for example `/backchannel-logout`; routes "
         "are "
         "not asked about it"),
    TEXTS("client_ids", client_ids, 0, 16,
          "accepted `aud` of logout tokens, any of them; by default `introspection.client_id`, else `audiences`"),
    END};
static const struct sz_object logout_object = {"backchannel_logout", sizeof(ROW_AT), logout_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_issuer
static const struct sz_field issuer_fields[] = {
    TEXT("issuer", out.issuer, REQUIRED, NULL, "the token's `iss`, compared byte for byte"),
    TEXTS("audiences", out.audiences, REQUIRED, 8, "accepted `aud`, any of them; [\"*\"] alone switches the check off"),
    TEXTS("algorithms", algorithms, 0, 13,
          "accepted `alg`: HS256 HS384 HS512 RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA. By default "
          "RS256, with a secret alone HS256"),
    FILE_("jwks_file", out.jwks_file, 0, "JWK Set file with the issuer's public keys"),
    TEXT("jwks_uri", out.jwks_uri, 0, NULL, "url of the issuer's JWK Set: keys are fetched and kept fresh"),
    TEXT("discovery", discovery, 0, NULL,
         "`auto`: the JWK Set's url is taken from the issuer's metadata, `.well-known/openid-configuration` or RFC "
         "8414; or the metadata's own url. `auto` when nothing else says how tokens are checked"),
    SECRET("secret_file", secret, 0, "file with the shared secret of HS algorithms, used as its bytes are"),
    SPAN("leeway", out.leeway, 0, "10s", 0, SEC(300), "clock difference granted to `exp`, `nbf` and `iat`"),
    TEXTS("required_claims", out.required_claims, 0, 16, "claims that a token must have besides `exp`"),
    TEXTS("types", out.types, 0, 8, "accepted `typ`; by default JWT, at+jwt or none"),
    SPAN("max_lifetime", out.max_lifetime, 0, NULL, SEC(1), SEC(86400) * 366,
         "longest `exp` - `iat`; `iat` is then required. By default unlimited"),
    TEXT("tenant_claim", out.tenant_claim, 0, NULL, "claim whose value is the tenant"),
    TEXT("permissions_claim", out.permissions_claim, 0, NULL,
         "claim (a list) whose values count as scopes beside `scope` and `scp`, for example `permissions`"),
    BOOL("ignore_cnf", out.ignore_cnf, "false", "accept sender-constrained tokens (`cnf`) as plain bearer tokens"),
    SPAN("max_stale", out.max_stale, 0, "24h", SEC(1), SEC(86400) * 30,
         "while the provider cannot be asked, its keys are used for so long; then 503 `identity_unavailable`"),
    SPAN("cooldown", out.cooldown, 0, "10s", MS(100), SEC(3600),
         "least time between two fetches of keys that tokens with an unknown `kid` cause"),
    TEXT("token_prefix", out.token_prefix, 0, NULL,
         "opaque tokens that begin so belong to this issuer; needed where a route has several that are asked"),
    OBJECT("introspection", introspection, OPTIONAL, introspection_object, "opaque tokens are asked about (RFC 7662)"),
    OBJECT("userinfo", userinfo, OPTIONAL, userinfo_object, "opaque tokens are tried at the userinfo endpoint"),
    COUNT("calls", out.calls, 0, "256", 1, 4096,
          "introspection and userinfo calls under way at once; beyond it 503 `identity_unavailable`"),
    FILE_("ca_file", out.ca_file, 0, "PEM file: who signs the provider's certificate; by default the system's store"),
    BOOL("insecure_http", out.insecure_http, "false", "let the provider's urls be http://; loopback needs no leave"),
    OBJECT("breaker", breaker, 0, breaker_object, "when the provider counts as down"),
    OBJECT("backchannel_logout", logout, OPTIONAL, logout_object,
           "where the provider tells that a session or a user is logged out (OpenID Connect Back-Channel Logout)"),
    END};
static const struct sz_object issuer_object = {"an issuer", sizeof(ROW_AT), issuer_fields};
#undef ROW_AT

/* ---- cache, fga, log, assertion ---------------------------------------------------------------------------------- */

#define ROW_AT struct sz_raw_cache_l1
static const struct sz_field l1_fields[] = {
    COUNT("capacity", capacity, RESTART, "50000", 1, 500000,
          "tokens kept; fixed memory, about 270 bytes each when used"),
    SPAN("ttl", ttl, 0, "30s", MS(1), SEC(3600), "how long a verified token is kept; never beyond its own expiry"),
    SPAN("ttl_opaque", ttl_opaque, 0, "1s", MS(1), SEC(3600),
         "how long the provider's answer about a token is kept; a revoked token is believed for so long"),
    SPAN(
        "ttl_degraded", ttl_degraded, 0, "1s", MS(1), SEC(3600),
        "how long one is kept, at most, while Redis cannot be reached and revocations of other instances not be heard"),
    END};
static const struct sz_object l1_object = {"cache.l1", sizeof(ROW_AT), l1_fields};
static const struct sz_field negative_fields[] = {
    COUNT("capacity", capacity, RESTART, "8192", 1, 500000, "rejected tokens kept, in a table of their own"),
    SPAN("ttl", ttl, 0, "10s", MS(1), SEC(3600), "how long a rejected token is kept"), END};
static const struct sz_object negative_object = {"cache.negative", sizeof(ROW_AT), negative_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_cache_decisions
static const struct sz_field decisions_fields[] = {
    COUNT("capacity", capacity, RESTART, "100000", 0, 1000000,
          "answers kept; fixed memory, 26 bytes each when used. 0: none are kept"),
    SPAN("ttl", ttl, 0, "10s", 0, SEC(3600),
         "how long a yes is kept: a grant that was taken away in a remote store is believed for so long. 0: not kept"),
    SPAN("negative_ttl", negative_ttl, 0, "2s", 0, SEC(3600),
         "how long a no is kept: a grant that was given is not seen for so long. 0: not kept"),
    END};
static const struct sz_object decisions_object = {"cache.decisions", sizeof(ROW_AT), decisions_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_breaker
static const struct sz_field redis_breaker_fields[] = {
    COUNT("failures", out.failures, 0, "5", 1, 1000, "failed commands in a row after which it is not asked any more"),
    SPAN("open", out.open, 0, "30s", MS(100), SEC(3600), "for so long; then one command tries it"), END};
static const struct sz_object redis_breaker_object = {"redis.breaker", sizeof(ROW_AT), redis_breaker_fields};
#undef ROW_AT

/* A server, and how it is asked: the one for everything, and one of its own for the cache. */
#define REDIS_WHERE                                                                                                    \
    TEXT("url", url, SZ_FIELD_LOGIN, NULL,                                                                             \
         "`redis://host:6379/0`, `rediss://` for TLS, or `unix:///path?db=0`; `user:password@` may stand before the "  \
         "host"),                                                                                                      \
        TEXTS("cluster", cluster, 0, 32,                                                                               \
              "instead of `url`, a Redis Cluster: some of its nodes, as `redis://host:port` or `rediss://host:port`"), \
        TEXT("username", username, 0, NULL, "the ACL user; by default Redis's own default user"),                      \
        SECRET("password_file", password, 0, "file with the password")
#define REDIS_HOW                                                                                                      \
    COUNT("max_connections", max_connections, 0, NULL, 1, 100000,                                                      \
          "connections of the whole process (to each node of a cluster), at least one for each thread; by default 8, " \
          "or "                                                                                                        \
          "`workers` and two"),                                                                                        \
        SPAN("timeout", timeout, 0, "20ms", MS(1), SEC(10), "longest time of one command"),                            \
        FILE_("ca_file", ca_file, 0, "PEM file: who signs the server's certificate; by default the system's store"),   \
        OBJECT("breaker", breaker, 0, redis_breaker_object, "when it counts as down, for each use by itself")
#define ROW_AT struct sz_raw_redis
static const struct sz_field redis_fields[] = {
    REDIS_WHERE,
    SECRET("key_file", key, REQUIRED,
           "the key of all instances that share this Redis, 32 bytes in base64 (`subzero key new`): names and seals"),
    REDIS_HOW, END};
static const struct sz_object redis_object = {"redis", sizeof(ROW_AT), redis_fields};
static const struct sz_field redis_cache_fields[] = {REDIS_WHERE, REDIS_HOW, END};
static const struct sz_object redis_cache_object = {"cache.l2.redis", sizeof(ROW_AT), redis_cache_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_cache_l2
static const struct sz_field l2_fields[] = {
    SPAN("ttl", ttl, RESTART, "5m", 0, SEC(86400),
         "how long a fact is kept in Redis, never beyond the token's own expiry; 0s: L2 is off.  What a provider said "
         "about an opaque token is believed for so long, unless it is revoked here"),
    BOOL("jwt", jwt, "false",
         "keep verified JWTs too: saves CPU under load, but one request waits longer for Redis than for a signature"),
    SPAN("lease", lease, RESTART, "0s", 0, SEC(60),
         "of all instances that miss a fact one asks its provider, and holds a lease of this time; 0s: each asks"),
    SECRET("seal_keys_file", seal_keys, RESTART,
           "keys that seal, in base64, one a line: the first seals, all open; without it `redis.key_file` does"),
    OBJECT("redis", redis, OPTIONAL | RESTART, redis_cache_object,
           "a server for the cache alone, which may evict; by default `redis` does it too"),
    END};
static const struct sz_object l2_object = {"cache.l2", sizeof(ROW_AT), l2_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_cache
static const struct sz_field cache_fields[] = {
    OBJECT("l1", l1, 0, l1_object, "verified tokens, in the process"),
    OBJECT("negative", negative, 0, negative_object, "rejected tokens, in the process"),
    OBJECT("l2", l2, SZ_FIELD_BLANK, l2_object, "facts in Redis, sealed; on where `redis` is configured"),
    OBJECT("decisions", decisions, 0, decisions_object,
           "answers about relations, in the process; what the embedded engine answers within 32 steps is not kept"),
    END};
static const struct sz_object cache_object = {"cache", sizeof(ROW_AT), cache_fields};
#undef ROW_AT

static const struct sz_choice revocation_failures[] = {{"open", 0, false}, {"closed", 1, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_revocation
static const struct sz_field revocation_fields[] = {COUNT("capacity", capacity, RESTART, "100000", 1, 5000000,
                                                          "revocations in force at once, about 200 bytes each; when it "
                                                          "is reached, further ones are answered 503 and none "
                                                          "is forgotten"),
                                                    ENUM("on_store_failure", on_store_failure, 0, "open",
                                                         revocation_failures,
                                                         "while Redis cannot be reached: `open` honours the "
                                                         "revocations that this instance knows, `closed` refuses every "
                                                         "token with 503 `revocation_unavailable`"),
                                                    END};
static const struct sz_object revocation_object = {"revocation", sizeof(ROW_AT), revocation_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_http
static const struct sz_field http_fields[] = {
    COUNT("connections", out.connections, RESTART, "1000", 1, 100000,
          "connections of the whole process, shared out evenly among its workers, at least one each; key fetches come "
          "on top"),
    COUNT(
        "per_host", out.per_host, RESTART, "100", 1, 100000,
        "calls at once to one host, shared out likewise; over HTTP/1.1 each has a connection, over HTTP/2 they share"),
    SPAN("dns_ttl", out.dns_ttl, RESTART, "300s", SEC(1), SEC(86400),
         "how long a name's addresses are used before it is looked up again, and the longest life of a connection; "
         "when the look-up fails, the old addresses stay"),
    SPAN("idle", out.idle, RESTART, "60s", SEC(1), SEC(3600), "a connection without a call is closed"), END};
static const struct sz_object http_object = {"http", sizeof(ROW_AT), http_fields};
#undef ROW_AT

static const struct sz_choice fga_modes[] = {{"embedded", SZ_FGA_EMBEDDED, false},
                                             {"remote", SZ_FGA_REMOTE, false},
                                             {"replica", SZ_FGA_REPLICA, false},
                                             {NULL, 0, false}};
static const struct sz_choice consistencies[] = {{"minimize_latency", SZ_MINIMIZE_LATENCY, false},
                                                 {"higher_consistency", SZ_HIGHER_CONSISTENCY, false},
                                                 {NULL, 0, false}};

#define ROW_AT struct sz_raw_fga_changes
static const struct sz_field fga_changes_fields[] = {
    SPAN("poll", poll, 0, "1s", MS(50), SEC(3600), "how often the store is asked what has changed"),
    SPAN("max_lag", max_lag, 0, "10s", MS(100), SEC(86400),
         "mode `replica`: when the store was last heard so long ago, it is asked itself instead of the copy"),
    END};
static const struct sz_object fga_changes_object = {"fga.changes", sizeof(ROW_AT), fga_changes_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_fga
static const struct sz_field fga_fields[] = {
    ENUM("mode", mode, 0, "embedded", fga_modes,
         "`embedded`: the engine in this process; `remote`: OpenFGA or Auth0 FGA is asked; `replica`: a copy of such a "
         "store in this process, which follows it"),
    TEXT_OR_FILE(
        "model", model, 0,
        "`embedded`: authorization model, a .fga, .json or fga.mod file, or the DSL itself as a block of lines; "
        "optional with `listen`, where one can be written"),
    TEXT_OR_FILE("tuples", tuples, 0, "`embedded`: relation tuples, a file, or the YAML itself as a block of lines"),
    TEXT("listen", listen, RESTART, NULL,
         "`embedded`: `address:port` of the OpenFGA HTTP API over this engine; routes then ask its store "
         "`00000000000000000000000000`, which `model` and `tuples` are put into"),
    OBJECT("tls", tls, OPTIONAL | RESTART, tls_object, "TLS 1.2 and 1.3 on `listen`"),
    SECRET("preshared_keys_file", keys, 0,
           "keys of that API, one a line: `read KEY` or `write KEY`, and perhaps a name; not needed on a loopback "
           "address"),
    TEXT("api_url", remote.api_url, 0, NULL, "the remote server's address, such as `https://api.us1.fga.dev`"),
    TEXT("store_id", remote.store_id, 0, NULL, "the store there"),
    TEXT("model_id", remote.model_id, 0, NULL,
         "the authorization model there, which answers until it is changed here: the newest one is never taken by "
         "itself"),
    SECRET("token_file", token, 0, "file with the server's preshared key"),
    TEXT("client_id", remote.client_id, 0, NULL, "client credentials instead of a preshared key: the client"),
    SECRET("client_secret_file", client_secret, 0, "file with its secret"),
    TEXT("token_issuer", token_issuer, 0, NULL,
         "who issues its tokens: a host such as `auth.fga.dev` (its `/oauth/token` is asked), or the token endpoint's "
         "url"),
    TEXT("audience", remote.audience, 0, NULL, "whom its tokens are for; by default `api_url` with a slash at its end"),
    ENUM("consistency", remote.consistency, 0, "minimize_latency", consistencies,
         "`higher_consistency`: every check passes by all caches, here and there; a route may ask for it alone"),
    SPAN("timeout", remote.timeout, 0, "2s", MS(10), SEC(60), "time for one try to ask; the decision's deadline stays"),
    COUNT("retries", remote.retries, 0, "2", 0, 3,
          "further tries after 429, 5xx or no connection, within the deadline"),
    OBJECT("changes", changes, OPTIONAL, fga_changes_object,
           "the store's changes are followed: always in mode `replica`; in mode `remote`, where this is written, each "
           "ends all decisions that were kept"),
    FILE_("ca_file", remote.ca_file, 0, "PEM file: who signs the server's certificate; by default the system's store"),
    BOOL("insecure_http", remote.insecure_http, "false", "let its urls be http://; loopback needs no leave"),
    OBJECT("breaker", breaker, 0, breaker_object, "when it counts as down"),
    END};
static const struct sz_object fga_object = {"fga", sizeof(ROW_AT), fga_fields};
#undef ROW_AT

/* ---- threat ------------------------------------------------------------------------------------------------------ */

#define ROW_AT struct sz_raw_thresholds
static const struct sz_field thresholds_fields[] = {
    TEXT("monitor", monitor, 0, "0.3", "a score from which on it is counted and shown"),
    TEXT("challenge", challenge, 0, "0.5", "... from which on a stronger login is asked for"),
    TEXT("block", block, 0, "0.7", "... from which on nothing is let through for a while"), END};
static const struct sz_object thresholds_object = {"thresholds", sizeof(ROW_AT), thresholds_fields};
#undef ROW_AT
#define ROW_AT struct sz_raw_blocks
static const struct sz_field blocks_fields[] = {
    SPAN("first", first, 0, "1m", SEC(1), SEC(86400), "how long the first block lasts; each further one twice as long"),
    SPAN("longest", longest, 0, "1d", SEC(1), SEC(86400 * 30), "... but no longer than this"), END};
static const struct sz_object blocks_object = {"blocks", sizeof(ROW_AT), blocks_fields};
#undef ROW_AT
#define ROW_AT struct sz_raw_step_up
static const struct sz_choice step_up_statuses[] = {{"401", 401, false}, {"403", 403, false}, {NULL, 0, false}};
static const struct sz_field step_up_fields[] = {
    ENUM("status", status, 0, "401", step_up_statuses,
         "401 asks for a stronger login (RFC 9470), 403 says no more than that"),
    TEXTS("acr_values", acr_values, 0, 8, "a token whose `acr` is one of these passes a challenge"),
    SPAN("max_age", max_age, 0, "5m", 0, SEC(86400),
         "... and one whose `auth_time` is no longer ago than this; 0s: none does"),
    END};
static const struct sz_object step_up_object = {"step_up", sizeof(ROW_AT), step_up_fields};
#undef ROW_AT
#define ROW_AT struct sz_raw_threat_list
static const struct sz_choice list_actions[] = {
    {"risky", SZ_LIST_RISKY, false}, {"deny", SZ_LIST_DENY, false}, {"allow", SZ_LIST_ALLOW, false}, {NULL, 0, false}};
static const struct sz_field threat_list_fields[] = {
    FILE_("file", file, REQUIRED, "addresses and ranges, one a line, `#` begins a comment; read again at a reload"),
    ENUM("action", action, REQUIRED, NULL, list_actions,
         "`deny` refuses them (403 `ip_denied`), `risky` adds to their score, `allow` never scores or blocks them"),
    END};
static const struct sz_object threat_list_object = {"a list", sizeof(ROW_AT), threat_list_fields};
#undef ROW_AT
#define ROW_AT struct sz_raw_threat
static const struct sz_choice threat_modes[] = {{"enforce", SZ_THREAT_ENFORCE, false},
                                                {"dry_run", SZ_THREAT_DRY_RUN, false},
                                                {"off", SZ_THREAT_OFF, false},
                                                {NULL, 0, false}};
static const struct sz_field threat_fields[] = {
    ENUM("mode", mode, 0, "enforce", threat_modes, "`dry_run` counts and logs what it would do and does nothing"),
    OBJECT("thresholds", thresholds, SZ_FIELD_BLANK, thresholds_object,
           "scores from 0 to 1, each above the one before"),
    OBJECT("blocks", blocks, SZ_FIELD_BLANK, blocks_object, "how long blocks last"),
    OBJECT("step_up", step_up, SZ_FIELD_BLANK, step_up_object, "what passes a challenge"),
    COUNT("capacity", capacity, RESTART, "65536", 1024, 1000000,
          "addresses remembered, and as many tokens and subjects; fixed memory, 200 bytes each when used"),
    TEXTS("allow", allow, SZ_FIELD_MANY, 4096, "addresses and ranges that are never scored or blocked"),
    LIST("lists", lists, 0, 16, threat_list_object, "files of address ranges"),
    SECRET("events_key_file", events_key, 0, "bearer key of `POST /threat/events`, which accepts no other"),
    FLAG("share", share, RESTART, "false",
         "blocks hold on all instances that share this `redis`: sealed, announced and caught up; see docs/threat.md"),
    END};
static const struct sz_object threat_object = {"threat", sizeof(ROW_AT), threat_fields};
#undef ROW_AT

static const struct sz_choice access_logs[] = {{"all", SZ_ACCESS_ALL, false},
                                               {"sampled", SZ_ACCESS_SAMPLED, false},
                                               {"off", SZ_ACCESS_OFF, false},
                                               {NULL, 0, false}};
static const struct sz_choice levels[] = {{"debug", SZ_LOG_DEBUG, false},
                                          {"info", SZ_LOG_INFO, false},
                                          {"warn", SZ_LOG_WARN, false},
                                          {"error", SZ_LOG_ERROR, false},
                                          {NULL, 0, false}};

#define ROW_AT struct sz_raw_log
static const struct sz_field log_fields[] = {
    ENUM("access", access, 0, "all", access_logs, "access log: a line for each request, for one in `sample`, or none"),
    COUNT("sample", sample, 0, "100", 1, 1000000, "with `access: sampled`: one line in so many requests"),
    ENUM("level", level, RESTART, "info", levels, "least level of the process log"), END};
static const struct sz_object log_object = {"log", sizeof(ROW_AT), log_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_assertion
static const struct sz_field assertion_fields[] = {
    SECRET("key_file", key, REQUIRED,
           "private JWK or PEM that signs; further JWKs on the lines below are published with it, so that keys rotate"),
    SPAN("ttl", ttl, 0, "30s", SEC(1), SEC(60), "how long an assertion is valid"),
    TEXT("issuer", issuer, 0, "subzero", "its `iss`"), END};
static const struct sz_object assertion_object = {"assertion", sizeof(ROW_AT), assertion_fields};
#undef ROW_AT

/* ---- rate limits ------------------------------------------------------------------------------------------------- */

static const struct sz_choice algorithms[] = {
    {"token_bucket", SZ_LIMIT_BUCKET, false}, {"sliding_window", SZ_LIMIT_WINDOW, false}, {NULL, 0, false}};
static const struct sz_choice store_failures[] = {{"closed", 0, false}, {"open", 1, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_rate_limit
static const struct sz_field rate_limit_fields[] = {
    ENUM("algorithm", algorithm, REQUIRED, NULL, algorithms,
         "`capacity` tokens that `refill` brings back, or at most `limit` requests in any `window`"),
    COUNT("capacity", capacity, 0, NULL, 1, SZ_LIMIT_COUNT_MAX, "with `token_bucket`: tokens of a full bucket"),
    TEXT("refill", refill, 0, NULL,
         "with `token_bucket`: tokens that come back in a time: `100/60s`; `0/1s`: none ever"),
    COUNT("limit", limit, 0, NULL, 1, SZ_LIMIT_COUNT_MAX, "with `sliding_window`: requests in a window"),
    SPAN("window", window, 0, NULL, MS(1), SEC(86400) * 366, "with `sliding_window`: how long it is"),
    TEXT("key", key, 0, "tenant",
         "whose bucket: `tenant` (the issuer's `tenant_claim`, else issuer and `sub`), `client`, `address` (IPv6 by "
         "/64), `cookie`, or a template such as `{claims.plan}-{client.ip}`; always per route"),
    COUNT("cost", cost, 0, "1", 1, SZ_LIMIT_COUNT_MAX, "tokens, or requests, that one request counts as"),
    COUNT("lease", lease, 0, "1", 1, 10000,
          "requests' worth that an instance takes from Redis at once and spends by itself"),
    BOOL("dry_run", dry_run, "false", "count what would be refused, and refuse nothing"),
    ENUM("on_store_failure", on_store_failure, REQUIRED, NULL, store_failures,
         "when Redis cannot be asked: `closed` refuses (503), `open` goes on under `emergency`"),
    TEXT("emergency", emergency, 0, NULL,
         "with `open`: what one process lets through on a route without its store: `10/s`; by default the rate of the "
         "policy itself"),
    COUNT("policy_version", policy_version, 0, "1", 1, SZ_LIMIT_COUNT_MAX, "another one begins with fresh buckets"),
    END};
static const struct sz_object rate_limit_object = {"a rate limit", sizeof(ROW_AT), rate_limit_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_anonymous
static const struct sz_field anonymous_fields[] = {
    TEXT("cookie", cookie, 0, "subzero_id", "name of the signed cookie that allowed requests of visitors are given"),
    SECRET("key_file", key, REQUIRED,
           "32 bytes in base64, as `subzero key new` prints them; the same on every instance. Signs the cookie"),
    SPAN("ttl", ttl, 0, "30d", SEC(60), SEC(86400) * 366, "how long a cookie is good"), END};
static const struct sz_object anonymous_object = {"anonymous", sizeof(ROW_AT), anonymous_fields};
#undef ROW_AT

/* ---- upstreams --------------------------------------------------------------------------------------------------- */

static const struct sz_choice reuses[] = {
    {"safe", SZ_REUSE_SAFE, false}, {"never", SZ_REUSE_NEVER, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_timeouts
static const struct sz_field timeout_fields[] = {
    SPAN("connect", connect, 0, "1s", MS(1), SEC(60), "until the connection (and its TLS) stands"),
    SPAN("first_byte", first_byte, 0, "30s", MS(1), SEC(3600), "from the sent request to the first byte of the answer"),
    SPAN("idle", idle, 0, "60s", MS(1), SEC(3600), "longest silence while the answer is read or the request is sent"),
    END};
static const struct sz_object timeout_object = {"timeouts", sizeof(ROW_AT), timeout_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_upstream_tls
static const struct sz_field upstream_tls_fields[] = {
    FILE_("ca_file", ca_file, 0, "PEM file: who signs the upstream's certificate; by default the system's store"),
    FILE_("certificate", certificate, 0, "PEM file: our client certificate"),
    FILE_("key", key, 0, "PEM file: its private key"),
    TEXT("server_name", server_name, 0, NULL, "name to ask for and verify; by default the url's host"), END};
static const struct sz_object upstream_tls_object = {"tls", sizeof(ROW_AT), upstream_tls_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_upstream
static const struct sz_field upstream_fields[] = {
    TEXTS("urls", urls, REQUIRED, 64, "`http://host:port` or `https://host:port`, used in turn"),
    OBJECT("timeouts", timeouts, 0, timeout_object, "how long each step may take"),
    SPAN("keepalive", keepalive, 0, "4s", 0, SEC(3600),
         "an idle connection is kept this long: less than upstreams do (Node.js: 5s), so that they do not close first; "
         "0s: not kept"),
    COUNT("max_idle", max_idle, 0, "64", 0, 100000, "idle connections kept, per thread"),
    ENUM("reuse", reuse, 0, "safe", reuses,
         "`safe`: connections are reused after a clean exchange; `never`: one request each"),
    BOOL("preserve_host", preserve_host, "true", "send the client's `Host`; false: the url's"),
    OBJECT("tls", tls, SZ_FIELD_OPTIONAL, upstream_tls_object, "details of https urls"),
    END};
static const struct sz_object upstream_object = {"an upstream", sizeof(ROW_AT), upstream_fields};
#undef ROW_AT

/* ---- routes ------------------------------------------------------------------------------------------------------ */

#define ROW_AT struct sz_raw_match
static const struct sz_field match_fields[] = {
    TEXTS("methods", methods, 0, 32, "by default all but TRACE and CONNECT; GET includes HEAD"),
    TEXT("host", host, 0, NULL, "`api.example.com`, or `*.example.com` for every name below it; by default any"),
    TEXT("path", path, REQUIRED, NULL, "`/documents/{id}`: {x} is one segment, a last `*` is zero or more"), END};
static const struct sz_object match_object = {"match", sizeof(ROW_AT), match_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_auth
static const struct sz_field auth_fields[] = {
    TEXTS("issuers", issuers, REQUIRED, 16, "names from `issuers`; tokens of others are refused"),
    TEXTS("scopes", scopes, 0, 64, "all of them are needed"),
    TEXTS("any_scope", any_scope, 0, 64, "one of them is needed"),
    ENTRIES(SZ_F_TEXTS_MAP, "claims", claims, 16,
            "`name: value` or `name: [values]`: the claim must equal (a list: contain) one of them"),
    TEXTS("audiences", audiences, 0, 8, "audiences that this route accepts; required where an issuer has several"),
    TEXT("cookie", cookie, 0, NULL, "also take the token from this cookie"),
    TEXT("query", query, 0, NULL, "also take the token from this query parameter"),
    END};
static const struct sz_object auth_object = {"auth", sizeof(ROW_AT), auth_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_tuple
static const struct sz_field tuple_fields[] = {
    TEXT("user", user, REQUIRED, NULL, "`user:{claims.sub}`; the type is literal"),
    TEXT("relation", relation, REQUIRED, NULL, "literally"),
    TEXT("object", object, REQUIRED, NULL,
         "`group:{claims.groups[]}`: a tuple for each item of the claim, which is a list or one value; the type is "
         "literal"),
    TEXT("condition", condition, 0, NULL, "a condition of the model, told by `context`"), END};
static const struct sz_object tuple_object = {"a contextual tuple", sizeof(ROW_AT), tuple_fields};
#undef ROW_AT

#define CONTEXT_HELP                                                                                           \
    "values for the model's conditions, `name: value`: a lone `{variable}` keeps its type (a claim's number, " \
    "boolean, "                                                                                                \
    "list or object; `{now}` is a timestamp), all else is text; numbers and booleans without quotes are themselves"
#define TUPLES_HELP "tuples that hold for this question alone, at most 100 of them once lists are written out"

#define ROW_AT struct sz_raw_check
static const struct sz_field check_fields[] = {
    TEXT("user", user, REQUIRED, NULL, "who: `user:{claims.sub}`"),
    TEXT("relation", relation, REQUIRED, NULL, "which relation, literally"),
    TEXT("object", object, REQUIRED, NULL, "on what: `document:{path.id}`; the type is literal"),
    ENTRIES(SZ_F_TEXT_MAP, "context", context, 32, CONTEXT_HELP),
    LIST("contextual_tuples", tuples, 0, 20, tuple_object, TUPLES_HELP),
    END};
static const struct sz_object check_object = {"a check", sizeof(ROW_AT), check_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_authorize
static const struct sz_field authorize_fields[] = {
    TEXT("user", user, 0, NULL, "who: `user:{claims.sub}`"),
    TEXT("relation", relation, 0, NULL, "which relation, literally"),
    TEXT("object", object, 0, NULL, "on what: `document:{path.id}`; the type is literal"),
    LIST("all", all, 0, 8, check_object, "several checks, all of which must allow"),
    LIST("any", any, 0, 8, check_object, "several checks, one of which must allow"),
    ENTRIES(SZ_F_TEXT_MAP, "context", context, 32, CONTEXT_HELP),
    LIST("contextual_tuples", tuples, 0, 20, tuple_object, TUPLES_HELP),
    ENUM("consistency", consistency, 0, NULL, consistencies,
         "`higher_consistency`: nothing that was kept or is just being asked answers. By default `minimize_latency`"),
    END};
static const struct sz_object authorize_object = {"authorize", sizeof(ROW_AT), authorize_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_cors
static const struct sz_field cors_fields[] = {
    TEXTS("origins", origins, REQUIRED, 64, "`https://app.example.com`, or [\"*\"] for all (not with credentials)"),
    TEXTS("methods", methods, 0, 32, "methods granted to a preflight; by default those of the route"),
    TEXTS("headers", headers, 0, 64, "request headers granted to a preflight"),
    TEXTS("expose", expose, 0, 64, "response headers that a script may read"),
    BOOL("credentials", credentials, "false", "allow cookies and HTTP authentication"),
    SPAN("max_age", max_age, 0, "10m", 0, SEC(86400), "how long a browser may remember a preflight"),
    END};
static const struct sz_object cors_object = {"cors", sizeof(ROW_AT), cors_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_route_assertion
static const struct sz_field route_assertion_fields[] = {
    TEXT("audience", audience, 0, NULL, "its `aud`; by default the upstream's name"), END};
static const struct sz_object route_assertion_object = {"assertion", sizeof(ROW_AT), route_assertion_fields};
#undef ROW_AT

static const struct sz_choice authorizations[] = {{"strip", 0, false}, {"keep", 1, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_route
static const struct sz_field route_fields[] = {
    TEXT("id", id, REQUIRED, NULL, "its name in logs, metrics and limits; letters, digits, `.`, `_`, `-`"),
    OBJECT("match", match, REQUIRED, match_object, "which requests"),
    BOOL("public", is_public, "false", "no token is needed; a route needs either this or `auth`"),
    BOOL("covers_guarded", covers_guarded, "false",
         "a public route whose pattern covers guarded ones, or comes before one by its host alone, must say so"),
    OBJECT("auth", auth, OPTIONAL, auth_object, "which tokens are accepted, and what they must hold"),
    BOOL("shared_subjects", shared_subjects, "false",
         "several issuers: the same `sub` from each is the same person, so templates need no {issuer}"),
    OBJECT("authorize", authorize, OPTIONAL, authorize_object, "relation checks: one, or a list under `all` or `any`"),
    ENUM("authorization", authorization, 0, "strip", authorizations,
         "whether the `Authorization` header goes upstream"),
    TEXT("upstream", upstream, 0, NULL, "name from `upstreams`; needed where a `proxy` listener exists"),
    ENTRIES(SZ_F_TEXT_MAP, "set_headers", set_headers, 32, "headers to the upstream: `X-Name: \"{claims.name}\"`"),
    TEXTS("strip_request_headers", strip_request_headers, 0, 64, "further client headers to remove"),
    BOOL("keep_odd_headers", keep_odd_headers, "false",
         "keep client headers whose names hold more than letters, digits and `-`"),
    BOOL("websocket", websocket, "false", "let WebSocket (version 13, HTTP/1.1) through"),
    SPAN("max_lifetime", max_lifetime, 0, NULL, MS(1), SEC(86400) * 30,
         "longest life of a WebSocket or event stream; the token's expiry ends it in any case"),
    SIZE("request_body", request_body, 0, NULL, 0, MIB(1024),
         "largest request body here; at most `limits.request_body`"),
    SPAN("timeout", timeout, 0, NULL, MS(1), SEC(3600),
         "deadline of the decision; by default `limits.request_timeout`"),
    OBJECT("assertion", assertion, OPTIONAL | SZ_FIELD_BLANK, route_assertion_object,
           "send `X-Subzero-Assertion`, a signed statement of who asks; needs `assertion` at the top"),
    OBJECT("cors", cors, OPTIONAL, cors_object, "answer browsers' preflights here"),
    TEXTS("rate_limit", rate_limit, SZ_FIELD_ONE, 8, "names from `rate_limits`, all of which must allow"),
    END};
static const struct sz_object route_object = {"a route", sizeof(ROW_AT), route_fields};
#undef ROW_AT

/* ---- audit ------------------------------------------------------------------------------------------------------- */

static const struct sz_choice durabilities[] = {{"none", SZ_DURABILITY_NONE, false},
                                                {"interval", SZ_DURABILITY_INTERVAL, false},
                                                {"always", SZ_DURABILITY_ALWAYS, false},
                                                {NULL, 0, false}};

#define ROW_AT struct sz_raw_rotate
static const struct sz_field rotate_fields[] = {
    SIZE("size", size, RESTART, "64MB", KIB(64), MIB(1024), "largest segment"),
    SPAN("age", age, RESTART, "24h", SEC(1), SEC(86400) * 366, "a segment that is older is ended by the next record"),
    END};
static const struct sz_object rotate_object = {"audit.rotate", sizeof(ROW_AT), rotate_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_denied
static const struct sz_field denied_fields[] = {
    COUNT("files", out.files, RESTART, "8", 2, 1024, "segments kept, the one being written included"),
    SIZE("size", out.size, RESTART, "512MB", KIB(128), MIB(1024) * 1024, "bytes kept"),
    SPAN("age", out.age, RESTART, "30d", SEC(1), SEC(86400) * 3660, "how long a segment is kept after its last record"),
    END};
static const struct sz_object denied_object = {"audit.retain.denied", sizeof(ROW_AT), denied_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_retain
static const struct sz_field retain_fields[] = {
    COUNT("files", out.files, RESTART, "32", 2, 1024, "segments kept, the one being written included"),
    SIZE("size", out.size, RESTART, "2GB", KIB(128), MIB(1024) * 1024, "bytes kept"),
    SPAN("age", out.age, RESTART, "90d", SEC(1), SEC(86400) * 3660, "how long a segment is kept after its last record"),
    OBJECT("denied", denied, 0, denied_object,
           "the share of denials without a validated identity, in segments of their own"),
    END};
static const struct sz_object retain_object = {"audit.retain", sizeof(ROW_AT), retain_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_checkpoint
static const struct sz_field checkpoint_fields[] = {
    COUNT("records", records, RESTART, "10000", 1, 100000000, "a checkpoint after so many records ..."),
    SPAN("interval", interval, RESTART, "60s", MS(100), SEC(86400), "... or after so long, when there are new ones"),
    END};
static const struct sz_object checkpoint_object = {"audit.checkpoint", sizeof(ROW_AT), checkpoint_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_audit_query
static const struct sz_field audit_query_fields[] = {
    SIZE("scan_bytes", scan_bytes, RESTART, "8MiB", KIB(64), MIB(1024),
         "what one page of `GET /audit` reads at most; it says when it stopped early"),
    END};
static const struct sz_object audit_query_object = {"audit.query", sizeof(ROW_AT), audit_query_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_audit
static const struct sz_field audit_fields[] = {
    TEXT("path", path, RESTART, NULL,
         "directory of the journal (mode 0700, ours; made when it is missing). Without it there is no journal"),
    TEXT("allowed", allowed, 0, "all",
         "which allowed requests are recorded: `all`, `none`, or `1/N` of them; denials always are"),
    FLAG("required", required, RESTART, "false",
         "no request is allowed before its record is committed as `durability` says; 503 `audit_unavailable` when it "
         "cannot be"),
    BOOL("paths", paths, "true", "record canonical paths (without their query)"),
    ENUM(
        "durability", durability, RESTART, "interval", durabilities,
        "when records are synced: left to the system, every `sync_interval`, or before each group counts as committed"),
    SPAN("sync_interval", sync_interval, RESTART, "100ms", MS(1), SEC(60), "with `durability: interval`"),
    OBJECT("rotate", rotate, 0, rotate_object, "when a segment ends"),
    OBJECT("retain", retain, 0, retain_object, "how much is kept"),
    SECRET("key_file", key, RESTART, "private Ed25519 JWK that signs checkpoints: `subzero key new --jwk EdDSA`"),
    OBJECT("checkpoint", checkpoint, 0, checkpoint_object, "how often the heads are written down"),
    TEXT("anchor", anchor, RESTART, NULL,
         "file, best on another disk, to which every checkpoint is appended: a tail cut off then shows"),
    FILE_("anchor_command", anchor_command, RESTART, "program that gets every checkpoint on its standard input"),
    FLAG("pseudonyms", pseudonyms, RESTART, "false", "record keyed hashes in place of subjects and addresses"),
    SECRET("pseudonym_key_file", pseudonym_key, RESTART, "with `pseudonyms`: file with their key: `subzero key new`"),
    SIZE("free_space", free_space, RESTART, "256MiB", 0, MIB(1024) * 1024, "less free space than this is warned about"),
    OBJECT("query", query, 0, audit_query_object, "reading"),
    FLAG("stdout", to_stdout, RESTART, "false", "the same records on standard output, too"),
    TEXT("syslog", syslog, RESTART, NULL,
         "the same records to syslog (RFC 5424), too: a socket's path such as /dev/log, or `address:port` for UDP"),
    END};
static const struct sz_object audit_object = {"audit", sizeof(ROW_AT), audit_fields};
#undef ROW_AT

#define ROW_AT struct sz_raw_breaker
static const struct sz_field tracing_breaker_fields[] = {
    COUNT("failures", out.failures, RESTART, "5", 1, 1000,
          "failed posts in a row after which it is not asked any more"),
    SPAN("open", out.open, RESTART, "30s", MS(100), SEC(3600), "for so long; then one post tries it"), END};
static const struct sz_object tracing_breaker_object = {"tracing.breaker", sizeof(ROW_AT), tracing_breaker_fields};
#undef ROW_AT

static const struct sz_choice trace_contexts[] = {{"any", 0, false}, {"trusted", 1, false}, {NULL, 0, false}};

#define ROW_AT struct sz_raw_tracing
static const struct sz_field tracing_fields[] = {
    TEXT(
        "endpoint", endpoint, RESTART, NULL,
        "url of an OpenTelemetry collector that takes OTLP over HTTP (protobuf); without a path `/v1/traces` is added"),
    TEXT("sample", sample, 0, "all",
         "which traces that begin here are recorded: `all`, `none`, `1/N` of them, or a share such as `0.05`"),
    BOOL("parent_based", parent_based, "true",
         "a request that comes with a trace is recorded when its caller records it; otherwise `sample` decides on all"),
    ENUM("context", context, 0, "any", trace_contexts,
         "whose `traceparent` is taken: `any` caller's, as Envoy and nginx do, or that of `trusted_proxies` alone; for "
         "others a new trace begins"),
    BOOL("paths", paths, "false", "record canonical paths (without their query)"),
    TEXT("service_name", service_name, RESTART, "subzero", "attribute `service.name` of the resource"),
    ENTRIES_RESTART(SZ_F_TEXT_MAP, "resource", resource, 32,
                    "further attributes of the resource: `{deployment.environment: prod}`"),
    SECRET(
        "headers_file", headers, RESTART,
        "fields that the collector wants, such as an API key: `name=value`, by commas or on lines of their own, values "
        "percent-encoded"),
    FILE_("ca_file", ca_file, RESTART,
          "PEM file: who signs the collector's certificate; by default the system's store"),
    FLAG("insecure_http", insecure_http, RESTART, "false", "let `endpoint` be http://; loopback needs no leave"),
    COUNT("queue", queue, RESTART, "2048", 16, 65536,
          "recorded requests that wait to be sent, about 2 KiB each; beyond it they are dropped and counted"),
    SPAN("timeout", timeout, RESTART, "10s", MS(100), SEC(60), "longest time of one post"),
    OBJECT("breaker", breaker, 0, tracing_breaker_object, "when the collector counts as down"),
    END};
static const struct sz_object tracing_object = {"tracing", sizeof(ROW_AT), tracing_fields};
#undef ROW_AT

/* ---- the root ---------------------------------------------------------------------------------------------------- */

#define ROW_AT struct sz_raw_conf
static const struct sz_field root_fields[] = {
    LIST("listen", listen, REQUIRED | RESTART, 64, listener_object, "where clients connect"),
    OBJECT("admin", admin, OPTIONAL | RESTART, admin_object, "metrics, health and administration; none without this"),
    TEXT("workers", workers, RESTART, "auto",
         "loop threads: a number up to 256, or `auto`: the CPUs that affinity and cgroup allow"),
    TEXT("user", user, RESTART, NULL, "started as root: whom to become after binding and reading secrets"),
    TEXT(
        "state_dir", state_dir, RESTART, NULL,
        "directory (mode 0700, ours, one process at a time) where fetched key sets and revocations are kept, so that a "
        "start needs no provider and forgets nobody"),
    TEXTS("trusted_proxies", trusted_proxies, SZ_FIELD_MANY, 4096,
          "addresses and ranges whose forwarding headers are believed; none by default; no shorter than /7"),
    OBJECT("limits", limits, 0, limits_object, "bounds of the whole process"),
    MAP("issuers", issuers, 0, 256, issuer_object, "who makes the tokens"),
    OBJECT("cache", cache, 0, cache_object, "what is remembered"),
    OBJECT("http", http, 0, http_object, "how providers and other services are asked"),
    OBJECT("redis", redis, OPTIONAL | RESTART, redis_object, "what instances share: cache, limits, revocations"),
    OBJECT("revocation", revocation, 0, revocation_object, "what is refused although its issuer once said yes"),
    OBJECT("fga", fga, OPTIONAL, fga_object, "relation checks: where `authorize` asks"),
    OBJECT("threat", threat, OPTIONAL, threat_object, "who looks like an attacker; off without this"),
    OBJECT("assertion", assertion, OPTIONAL, assertion_object, "how `X-Subzero-Assertion` is signed"),
    OBJECT("log", log, 0, log_object, "what is written to standard output"),
    MAP("rate_limits", rate_limits, 0, 1024, rate_limit_object, "limits that routes name"),
    OBJECT("anonymous", anonymous, OPTIONAL, anonymous_object,
           "how rate limits tell visitors of public routes apart, besides their addresses"),
    OBJECT("audit", audit, 0, audit_object, "the audit journal; off without `path`"),
    MAP("upstreams", upstreams, 0, 4096, upstream_object, "where allowed requests go"),
    LIST("routes", routes, 0, 20000, route_object,
         "what is let through; all else is refused. Needed unless every listener is in mode `api`"),
    OBJECT("tracing", tracing, 0, tracing_object, "OpenTelemetry traces; off without `endpoint`"),
    END};
#undef ROW_AT

const struct sz_object sz_schema = {"the configuration", sizeof(struct sz_raw_conf), root_fields};
