/*
 * What the schema reads into: the configuration as written, with defaults filled in.  Members
 * called `out` are already what the rest of Subzero sees (subzero/conf.h); the others are turned
 * into it by build_*.c.  Kept with the configuration, since the dump and the comparison of two
 * configurations read it.
 */
#ifndef SZ_CONF_RAW_H
#define SZ_CONF_RAW_H

#include "conf/schema.h"
#include "subzero/conf.h"

struct sz_raw_cert {
    struct sz_raw_head head;
    struct sz_conf_cert out;
};
struct sz_raw_tls {
    struct sz_raw_head head;
    struct sz_conf_cert single;
    struct sz_raw_list certificates;
    struct sz_slice client_ca, crl;
    int client_auth;
    bool watch;
};
enum { SZ_PROTOCOL_DEFAULT, SZ_PROTOCOL_H2C };
struct sz_raw_listener {
    struct sz_raw_head head;
    struct sz_slice address;
    int mode, dialect, protocol;
    struct sz_raw_tls tls;
    bool proxy_protocol;
    uint64_t request_body;
    struct sz_raw_secret keys;
};
struct sz_raw_admin {
    struct sz_raw_head head;
    struct sz_slice address;
    struct sz_raw_secret token;
    bool open_metrics;
    struct sz_strings hosts;
};
struct sz_raw_per_address {
    struct sz_raw_head head;
    struct sz_slice rate;
    uint32_t burst, failure_cost, in_flight, keys;
};
struct sz_raw_limits {
    struct sz_raw_head head;
    struct sz_conf_limits out;
    struct sz_raw_per_address per_address;
};
struct sz_raw_rate_limit {
    struct sz_raw_head head;
    int algorithm, on_store_failure;
    uint64_t capacity, limit, cost, policy_version;
    struct sz_slice refill, emergency, key;
    struct sz_span window;
    uint32_t lease;
    bool dry_run;
};
struct sz_raw_introspection {
    struct sz_raw_head head;
    struct sz_slice endpoint, client_id;
    int auth;
    struct sz_raw_secret secret, key;
};
struct sz_raw_userinfo {
    struct sz_raw_head head;
    struct sz_slice endpoint;
    bool accept_any_audience;
};
struct sz_raw_breaker {
    struct sz_raw_head head;
    struct sz_conf_breaker out;
};
struct sz_raw_logout {
    struct sz_raw_head head;
    struct sz_slice path;
    struct sz_strings client_ids;
};
struct sz_raw_issuer {
    struct sz_raw_head head;
    struct sz_conf_issuer out;
    struct sz_strings algorithms;
    struct sz_raw_secret secret;
    struct sz_slice discovery;
    struct sz_raw_introspection introspection;
    struct sz_raw_userinfo userinfo;
    struct sz_raw_breaker breaker;
    struct sz_raw_logout logout;
};
struct sz_raw_cache_l1 {
    struct sz_raw_head head;
    uint32_t capacity;
    struct sz_span ttl, ttl_opaque, ttl_degraded;
};
struct sz_raw_cache_decisions {
    struct sz_raw_head head;
    uint32_t capacity;
    struct sz_span ttl, negative_ttl;
};
struct sz_raw_redis {
    struct sz_raw_head head;
    struct sz_slice url, username, ca_file;
    struct sz_strings cluster;
    struct sz_raw_secret password, key;
    uint32_t max_connections;
    struct sz_span timeout;
    struct sz_raw_breaker breaker;
};
struct sz_raw_cache_l2 {
    struct sz_raw_head head;
    struct sz_span ttl, lease;
    bool jwt;
    struct sz_raw_secret seal_keys;
    struct sz_raw_redis redis;
};
struct sz_raw_cache {
    struct sz_raw_head head;
    struct sz_raw_cache_l2 l2;
    struct sz_raw_cache_l1 l1, negative;
    struct sz_raw_cache_decisions decisions;
};
struct sz_raw_http {
    struct sz_raw_head head;
    struct sz_conf_http out;
};
struct sz_raw_fga_changes {
    struct sz_raw_head head;
    struct sz_span poll, max_lag;
};
struct sz_raw_revocation {
    struct sz_raw_head head;
    uint32_t capacity;
    int on_store_failure;
};
struct sz_raw_fga {
    struct sz_raw_head head;
    int mode;
    struct {
        struct sz_slice path, text;
    } model, tuples;
    struct sz_conf_fga_remote remote;
    struct sz_raw_secret token, client_secret;
    struct sz_slice token_issuer;
    struct sz_raw_fga_changes changes;
    struct sz_raw_breaker breaker;
    struct sz_slice listen;
    struct sz_raw_tls tls;
    struct sz_raw_secret keys;
};
struct sz_raw_timeouts {
    struct sz_raw_head head;
    struct sz_span connect, first_byte, idle;
};
struct sz_raw_upstream_tls {
    struct sz_raw_head head;
    struct sz_slice ca_file, certificate, key, server_name;
};
struct sz_raw_upstream {
    struct sz_raw_head head;
    struct sz_strings urls;
    struct sz_raw_timeouts timeouts;
    struct sz_span keepalive;
    uint32_t max_idle;
    int reuse;
    bool preserve_host;
    struct sz_raw_upstream_tls tls;
};
struct sz_raw_match {
    struct sz_raw_head head;
    struct sz_slice host, path;
    struct sz_strings methods;
};
struct sz_raw_auth {
    struct sz_raw_head head;
    struct sz_strings issuers, scopes, any_scope, audiences;
    struct sz_raw_list claims; /* sz_raw_entry */
    struct sz_slice cookie, query;
};
struct sz_raw_tuple {
    struct sz_raw_head head;
    struct sz_slice user, relation, object, condition;
};
struct sz_raw_check {
    struct sz_raw_head head;
    struct sz_slice user, relation, object;
    struct sz_raw_list context; /* sz_raw_entry */
    struct sz_raw_list tuples;  /* sz_raw_tuple */
};
struct sz_raw_authorize {
    struct sz_raw_head head;
    struct sz_slice user, relation, object;
    struct sz_raw_list context, tuples; /* as above */
    struct sz_raw_list all, any;        /* sz_raw_check */
    int consistency;
};
struct sz_raw_cors {
    struct sz_raw_head head;
    struct sz_strings origins, methods, headers, expose;
    bool credentials;
    struct sz_span max_age;
};
struct sz_raw_route_assertion {
    struct sz_raw_head head;
    struct sz_slice audience;
};
struct sz_raw_route {
    struct sz_raw_head head;
    struct sz_slice id;
    struct sz_raw_match match;
    bool is_public, covers_guarded, shared_subjects;
    struct sz_raw_auth auth;
    struct sz_raw_authorize authorize;
    int authorization;
    struct sz_slice upstream;
    struct sz_raw_list set_headers; /* sz_raw_entry */
    struct sz_strings strip_request_headers;
    bool keep_odd_headers, websocket;
    struct sz_span max_lifetime, timeout;
    uint64_t request_body;
    struct sz_raw_route_assertion assertion;
    struct sz_raw_cors cors;
    struct sz_strings rate_limit;
};
struct sz_raw_log {
    struct sz_raw_head head;
    int access, level;
    uint32_t sample;
};
struct sz_raw_thresholds {
    struct sz_raw_head head;
    struct sz_slice monitor, challenge, block;
};
struct sz_raw_blocks {
    struct sz_raw_head head;
    struct sz_span first, longest;
};
struct sz_raw_step_up {
    struct sz_raw_head head;
    int status;
    struct sz_strings acr_values;
    struct sz_span max_age;
};
struct sz_raw_threat_list {
    struct sz_raw_head head;
    struct sz_slice file;
    int action;
};
struct sz_raw_threat {
    struct sz_raw_head head;
    int mode;
    struct sz_raw_thresholds thresholds;
    struct sz_raw_blocks blocks;
    struct sz_raw_step_up step_up;
    uint32_t capacity;
    struct sz_strings allow;
    struct sz_raw_list lists; /* sz_raw_threat_list */
    struct sz_raw_secret events_key;
    bool share;
};
struct sz_raw_anonymous {
    struct sz_raw_head head;
    struct sz_slice cookie;
    struct sz_raw_secret key;
    struct sz_span ttl;
};
struct sz_raw_assertion {
    struct sz_raw_head head;
    struct sz_raw_secret key;
    struct sz_span ttl;
    struct sz_slice issuer;
};

struct sz_raw_rotate {
    struct sz_raw_head head;
    uint64_t size;
    struct sz_span age;
};
struct sz_raw_denied {
    struct sz_raw_head head;
    struct sz_conf_retain out;
};
struct sz_raw_retain {
    struct sz_raw_head head;
    struct sz_conf_retain out;
    struct sz_raw_denied denied;
};
struct sz_raw_checkpoint {
    struct sz_raw_head head;
    uint32_t records;
    struct sz_span interval;
};
struct sz_raw_audit_query {
    struct sz_raw_head head;
    uint64_t scan_bytes;
};
struct sz_raw_audit {
    struct sz_raw_head head;
    struct sz_slice path, allowed, anchor, anchor_command, syslog;
    bool required, paths, pseudonyms, to_stdout;
    int durability;
    struct sz_span sync_interval;
    struct sz_raw_rotate rotate;
    struct sz_raw_retain retain;
    struct sz_raw_checkpoint checkpoint;
    struct sz_raw_audit_query query;
    struct sz_raw_secret key, pseudonym_key;
    uint64_t free_space;
};

struct sz_raw_tracing {
    struct sz_raw_head head;
    struct sz_slice endpoint, sample, service_name;
    struct sz_raw_list resource; /* sz_raw_entry */
    struct sz_raw_secret headers;
    struct sz_slice ca_file;
    bool insecure_http, parent_based, paths;
    int context;
    uint32_t queue;
    struct sz_span timeout;
    struct sz_raw_breaker breaker;
};

struct sz_raw_conf {
    struct sz_raw_head head;
    struct sz_raw_list listen; /* sz_raw_listener */
    struct sz_raw_admin admin;
    struct sz_slice workers, user, state_dir;
    struct sz_strings trusted_proxies;
    struct sz_raw_limits limits;
    struct sz_raw_list issuers; /* sz_raw_issuer */
    struct sz_raw_cache cache;
    struct sz_raw_http http;
    struct sz_raw_redis redis;
    struct sz_raw_revocation revocation;
    struct sz_raw_fga fga;
    struct sz_raw_threat threat;
    struct sz_raw_assertion assertion;
    struct sz_raw_anonymous anonymous;
    struct sz_raw_log log;
    struct sz_raw_list rate_limits; /* sz_raw_rate_limit */
    struct sz_raw_list upstreams;   /* sz_raw_upstream */
    struct sz_raw_list routes;      /* sz_raw_route */
    struct sz_raw_audit audit;
    struct sz_raw_tracing tracing;
    struct sz_secret_note *secrets;
};

#endif
