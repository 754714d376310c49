/*
 * The configuration: parsed from YAML (or the environment), checked whole, then frozen.
 * Everything here is const after sz_conf_load returned and may be read by any thread as
 * long as a reference to its snapshot is held.  Strings are NUL-terminated slices owned by
 * the configuration; an absent optional one is SZ_NONE.
 *
 * The rows of the schema table (src/conf/schema.c) give each key its type, default, range, unit,
 * help and whether a reload can change it; docs/configuration.md and the JSON Schema are made
 * from the same rows.
 */
#ifndef SUBZERO_CONF_H
#define SUBZERO_CONF_H

#include "subzero/addr.h"
#include "subzero/base.h"
#include "subzero/crypto.h"
#include "subzero/fga.h"
#include "subzero/limit.h"
#include "subzero/time.h"

struct sz_strings {
    const struct sz_slice *v;
    size_t n;
};
struct sz_cidrs {
    const struct sz_cidr *v;
    size_t n;
};

/* Any of the ranges holds the address. */
bool sz_cidrs_contain(const struct sz_cidrs *ranges, struct sz_addr addr);
/* Byte for byte. */
bool sz_strings_have(const struct sz_strings *strings, struct sz_slice s);

/* A secret read from a *_file: wiped when the configuration is freed, never printed. */
struct sz_secret {
    struct sz_slice value;
    bool set;
};

enum sz_listen_mode { SZ_MODE_PROXY, SZ_MODE_DECIDE, SZ_MODE_API };
enum sz_dialect {
    SZ_DIALECT_NONE,
    SZ_DIALECT_NGINX,
    SZ_DIALECT_TRAEFIK,
    SZ_DIALECT_CADDY,
    SZ_DIALECT_ENVOY,
    SZ_DIALECT_HAPROXY
};
enum sz_client_auth { SZ_CLIENT_AUTH_NONE, SZ_CLIENT_AUTH_OPTIONAL, SZ_CLIENT_AUTH_REQUIRE };

struct sz_conf_cert {
    struct sz_slice certificate, key; /* file paths */
};
struct sz_conf_tls {
    bool on;
    const struct sz_conf_cert *certs;
    size_t certs_n;
    struct sz_slice client_ca, crl;
    enum sz_client_auth client_auth;
    bool watch; /* reload when the files change */
};
struct sz_api_key {
    struct sz_slice key;  /* a secret */
    struct sz_slice name; /* who has it, for logs; SZ_NONE: nobody said */
};
struct sz_conf_listener {
    struct sz_slice address; /* as written, also the metric label */
    struct sz_addr ip;
    uint16_t port;
    enum sz_listen_mode mode;
    enum sz_dialect dialect; /* mode decide */
    bool h2c;                /* protocol: h2c */
    bool proxy_protocol;
    struct sz_conf_tls tls;
    uint64_t request_body;         /* bytes; <= limits.request_body */
    const struct sz_api_key *keys; /* mode api: any of them opens it; none: loopback alone */
    size_t keys_n;
};
struct sz_conf_admin {
    bool on;
    struct sz_slice address;
    struct sz_addr ip;
    uint16_t port;
    struct sz_secret token;  /* token_file */
    bool open_metrics;       /* /metrics without the token */
    struct sz_strings hosts; /* accepted Host names besides loopback ones */
};
struct sz_conf_limits {
    uint32_t max_connections, connections_per_address, max_in_flight;
    uint32_t request_head, headers; /* bytes; count */
    uint64_t request_body, buffered_bodies;
    struct sz_span request_timeout, idle_timeout, drain;
    uint32_t verifications_queue; /* per loop, beyond it 503 overloaded */
    uint32_t rate_limit_keys;     /* states of rate limits kept in the process */
    struct {                      /* before authentication, of one client address */
        bool on;
        struct sz_limit_rule rule, wide; /* an IPv4 address or IPv6 /64; an IPv6 /48 */
        uint32_t failure_cost;           /* requests that one whose credential was refused counts as */
        uint32_t in_flight;              /* at once; 0: any number */
        uint32_t keys;                   /* addresses remembered */
    } per_address;
};

/* JOSE algorithms; a set is a bit mask of 1u << alg. */
enum sz_alg {
    SZ_ALG_HS256,
    SZ_ALG_HS384,
    SZ_ALG_HS512,
    SZ_ALG_RS256,
    SZ_ALG_RS384,
    SZ_ALG_RS512,
    SZ_ALG_PS256,
    SZ_ALG_PS384,
    SZ_ALG_PS512,
    SZ_ALG_ES256,
    SZ_ALG_ES384,
    SZ_ALG_ES512,
    SZ_ALG_EDDSA,
    SZ_ALG_COUNT
};
const char *sz_alg_name(enum sz_alg alg);
/* SZ_ALG_COUNT when unknown ("none" is unknown). Case-sensitive. */
enum sz_alg sz_alg_from(struct sz_slice name);

/* How the gateway proves itself to a provider: RFC 6749 section 2.3.1, RFC 7523. */
enum sz_provider_auth { SZ_PROVIDER_AUTH_BASIC, SZ_PROVIDER_AUTH_POST, SZ_PROVIDER_AUTH_KEY };
struct sz_conf_breaker { /* of one dependency; see subzero/breaker.h */
    uint32_t failures;   /* in a row, before it is not asked any more ... */
    struct sz_span open; /* ... for so long */
};
struct sz_conf_issuer {
    struct sz_slice name;        /* key in the file; metric label */
    struct sz_slice issuer;      /* exact `iss` */
    struct sz_strings audiences; /* at most 8; ["*"] = no check: any_audience */
    bool any_audience;
    uint32_t algorithms; /* mask, never 0 */
    struct sz_slice jwks_file;
    struct sz_slice jwks_uri;     /* keys fetched from there ... */
    bool discover;                /* ... or from where the issuer's metadata says */
    struct sz_slice discovery;    /* the metadata's url; absent: the two well-known ones below `issuer` */
    struct sz_span max_stale;     /* fetched keys outlive their source so long */
    struct sz_span cooldown;      /* between two fetches that unknown keys cause */
    struct sz_slice ca_file;      /* who signs the provider's certificate; absent: the system's store */
    bool insecure_http;           /* http:// to the provider */
    struct sz_slice token_prefix; /* opaque tokens that begin so are the issuer's; absent: any */
    struct {
        bool on;
        struct sz_slice endpoint, client_id;
        enum sz_provider_auth auth;
        struct sz_secret secret; /* BASIC, POST */
        struct sz_secret key;    /* KEY: a private JWK or PEM */
    } introspection;
    struct {
        bool on;
        struct sz_slice endpoint;
    } userinfo;
    uint32_t calls; /* introspection and userinfo calls under way, in the whole process */
    struct sz_conf_breaker breaker;
    struct sz_secret secret; /* HS*: secret_file */
    struct sz_span leeway;
    struct sz_strings required_claims;
    struct sz_strings types;     /* accepted `typ`; default: JWT, at+jwt, absent */
    struct sz_span max_lifetime; /* 0 = none: exp - iat (iat then required) */
    struct sz_slice tenant_claim, permissions_claim;
    bool ignore_cnf;
    struct {
        struct sz_slice path; /* where the provider posts logout tokens; absent: nowhere */
        struct sz_strings client_ids;
    } logout;
    uint64_t settings; /* hash of the settings above but keys and secrets, equal on every instance */
};
/* Its keys come over the network. */
static inline bool sz_issuer_fetches(const struct sz_conf_issuer *issuer)
{
    return issuer->discover || issuer->jwks_uri.p != NULL;
}
/* It is asked about opaque tokens. */
static inline bool sz_issuer_asks(const struct sz_conf_issuer *issuer)
{
    return issuer->introspection.on || issuer->userinfo.on;
}
/* It has keys, or will: its JWTs are verified here. */
static inline bool sz_issuer_verifies(const struct sz_conf_issuer *issuer)
{
    return sz_issuer_fetches(issuer) || issuer->jwks_file.p != NULL || issuer->secret.set;
}

struct sz_conf_cache {
    uint32_t capacity; /* cache.l1.capacity */
    struct sz_span ttl, ttl_opaque, ttl_degraded;
    uint32_t negative_capacity;
    struct sz_span negative_ttl;
    struct {                              /* in Redis; see subzero/l2.h */
        struct sz_span ttl;               /* 0: off */
        struct sz_span lease;             /* 0: none */
        bool jwt;                         /* also what was verified here */
        const struct sz_slice *seal_keys; /* none: from redis.key_file */
        size_t seal_keys_n;
    } l2;
    struct {
        uint32_t capacity; /* 0: none are kept */
        struct sz_span ttl, negative_ttl;
    } decisions;
};

struct sz_conf_url {
    bool tls;
    struct sz_slice host; /* name or address literal without brackets */
    uint16_t port;
    struct sz_slice authority; /* host[:port] as written */
};
enum sz_reuse { SZ_REUSE_SAFE, SZ_REUSE_NEVER };
struct sz_conf_upstream {
    struct sz_slice name;
    const struct sz_conf_url *urls;
    size_t urls_n;
    struct sz_span connect, first_byte, idle; /* timeouts */
    struct sz_span keepalive;                 /* an idle pooled connection is closed after this */
    uint32_t max_idle;                        /* pooled idle connections per thread */
    enum sz_reuse reuse;
    bool preserve_host; /* default true */
    struct {
        struct sz_slice ca_file, certificate, key; /* client certificate */
        struct sz_slice server_name;               /* name to verify when not the url's host */
    } tls;
};

/* ---- templates ------------------------------------------------------------------------------- */

enum sz_var {
    SZ_VAR_LITERAL,
    SZ_VAR_CLAIM,
    SZ_VAR_PATH,
    SZ_VAR_QUERY,
    SZ_VAR_HEADER,
    SZ_VAR_METHOD,
    SZ_VAR_CLIENT_IP,
    SZ_VAR_NOW,
    SZ_VAR_ISSUER
};
struct sz_template_part {
    enum sz_var var;
    struct sz_slice text; /* LITERAL: the bytes; CLAIM, PATH, QUERY, HEADER: the name (header lower-case) */
    unsigned slot; /* CLAIM: vocabulary slot (SZ_SLOT_SUB.. for the built-in ones); PATH: index of the parameter */
    bool each;     /* CLAIM: {claims.groups[]}, one item of the list at a time; in contextual tuples alone */
};
/* Built-in claims that live in the identity's head, not in the vocabulary. */
enum { SZ_SLOT_SUB = 1000, SZ_SLOT_CLIENT, SZ_SLOT_TENANT, SZ_SLOT_ISS };
struct sz_template {
    const struct sz_template_part *parts;
    size_t n;
    struct sz_slice source; /* as written */
};

struct sz_conf_context {  /* one value for conditions */
    struct sz_slice name; /* as a JSON string with its colon: "ip": */
    struct sz_slice json; /* a literal's bytes; SZ_NONE: the template's */
    struct sz_template value;
};
struct sz_conf_tuple { /* a contextual tuple, or one for each item of a claim */
    struct sz_template user, object;
    struct sz_slice relation, condition; /* condition: SZ_NONE: none */
    const struct sz_template_part *each; /* the claim that it is written out for; NULL: one tuple */
};
struct sz_conf_check {                         /* one relation check */
    struct sz_template user, relation, object; /* relation and the object's type are literals */
    const struct sz_conf_context *context;     /* sorted by name */
    size_t context_n;
    const struct sz_conf_tuple *tuples;
    size_t tuples_n;
    const char *where; /* "routes.3.authorize.all.0", for mistakes found later */
};
enum sz_authorize_mode { SZ_AUTHORIZE_NONE, SZ_AUTHORIZE_ALL, SZ_AUTHORIZE_ANY };

struct sz_conf_claim_rule {
    unsigned slot; /* vocabulary slot or SZ_SLOT_* */
    struct sz_slice name;
    struct sz_strings values; /* the claim equals one of them (a list claim: contains one of them) */
};

struct sz_conf_header {   /* a request header that a route sets */
    struct sz_slice name; /* lower-case; letters, digits, '-' */
    struct sz_template value;
};

struct sz_conf_cors {
    bool on;
    bool any_origin, credentials;
    struct sz_strings origins, methods, headers, expose; /* origins: exact, lower-case */
    struct sz_span max_age;
};

enum { SZ_FROM_COOKIE = 1, SZ_FROM_QUERY = 2 };

/* Whose bucket a request is charged to. */
enum sz_limit_by { SZ_BY_TENANT, SZ_BY_CLIENT, SZ_BY_ADDRESS, SZ_BY_COOKIE, SZ_BY_TEMPLATE };
struct sz_conf_rate_limit {
    struct sz_slice name; /* key in the file; metric label */
    struct sz_limit_rule rule;
    struct sz_limit_rule emergency; /* with fail_open: under which the process goes on without its store */
    enum sz_limit_by by;
    struct sz_slice key;     /* TEMPLATE: as written */
    uint32_t lease;          /* requests' worth taken from the store at once; 1: one by one */
    bool dry_run;            /* counted, never refused */
    bool fail_open;          /* on_store_failure: open */
    uint64_t version;        /* policy_version: another one is another set of buckets */
    uint64_t quota;          /* tokens, or requests of a window; and ... */
    uint64_t quota_seconds;  /* ... in what time, rounded up; 0: never refilled */
    struct sz_slice args[6]; /* of the script, as far as the policy knows them */
    size_t args_n;
};
#define SZ_VISITOR_KEY 32
struct sz_conf_route_limit {
    const struct sz_conf_rate_limit *policy;
    struct sz_template key; /* TEMPLATE: in the terms of this route */
    uint64_t id;            /* hash of what the buckets belong to: endpoint, policy, its algorithm and version */
};

struct sz_conf_route {
    struct sz_slice id;
    struct {
        struct sz_slice host;      /* exact, "*.example.com", or absent; lower-case */
        struct sz_slice path;      /* pattern as written, canonical */
        struct sz_strings methods; /* absent: all but TRACE and CONNECT; GET includes HEAD */
    } match;
    bool is_public, covers_guarded;
    /* auth */
    const uint16_t *issuers; /* indices into conf->issuers */
    size_t issuers_n;
    uint64_t scopes[4], any_scope[4]; /* vocabulary bits; any_scope all zero = no such rule */
    struct sz_strings scope_names;    /* for the challenge: scopes then any_scope */
    bool has_any_scope;
    const struct sz_conf_claim_rule *claims;
    size_t claims_n;
    struct sz_strings audiences; /* required audiences (subset of each issuer's) */
    unsigned token_from;         /* SZ_FROM_* besides the Authorization header */
    struct sz_slice cookie_name, query_name;
    bool keep_authorization; /* authorization: keep */
    bool shared_subjects;
    /* authorize */
    enum sz_authorize_mode authorize;
    enum sz_consistency consistency;
    const struct sz_conf_check *checks;
    size_t checks_n;
    /* limit */
    const struct sz_conf_route_limit *limits;
    size_t limits_n;
    /* proxying */
    const struct sz_conf_upstream *upstream; /* NULL only where the route serves decide listeners alone */
    const struct sz_conf_header *headers;    /* set_headers */
    size_t headers_n;
    struct sz_strings strip_headers; /* strip_request_headers: lower-case */
    bool keep_odd_headers;           /* keep names with other characters than letters, digits, '-' */
    bool websocket;
    struct sz_span max_lifetime; /* of a WebSocket or event stream; 0 = token expiry alone */
    uint64_t request_body;       /* bytes; <= limits.request_body */
    struct sz_span timeout;      /* whole decision, deadline handed down; default limits.request_timeout */
    bool assertion;              /* send X-Subzero-Assertion */
    struct sz_slice assertion_audience;
    struct sz_conf_cors cors;
};

enum sz_access_log { SZ_ACCESS_OFF, SZ_ACCESS_SAMPLED, SZ_ACCESS_ALL };
struct sz_conf_log {
    enum sz_access_log access;
    uint32_t sample; /* 1 in N */
    int level;       /* enum sz_log_level */
};

struct sz_conf_pair {
    struct sz_slice name, value;
};
struct sz_conf_tracing {
    bool on;
    struct sz_slice endpoint; /* the whole url that spans are posted to */
    bool insecure_http;
    struct sz_slice ca_file;            /* absent: the system's store */
    const struct sz_conf_pair *headers; /* of headers_file: secrets */
    size_t headers_n;
    struct sz_slice service_name;
    const struct sz_conf_pair *resource;
    size_t resource_n;
    uint64_t sample;    /* of SZ_TRACE_ALL: new traces, and all when not parent_based */
    bool parent_based;  /* a caller's sampled flag decides */
    bool trusted_alone; /* context of others than trusted_proxies is dropped */
    bool paths;         /* url.path is an attribute */
    uint32_t queue;     /* traces that wait */
    struct sz_span timeout;
    struct sz_conf_breaker breaker;
};

enum sz_durability { SZ_DURABILITY_NONE, SZ_DURABILITY_INTERVAL, SZ_DURABILITY_ALWAYS };
struct sz_conf_retain { /* oldest segments go first; the one being written never */
    uint32_t files;
    uint64_t size;
    struct sz_span age;
};
struct sz_conf_audit {
    struct sz_slice path; /* the journal's directory, absolute; absent: no journal */
    uint32_t sample;      /* allowed requests: 1 of so many; 0: none */
    bool required;        /* no request is allowed before its record is committed */
    bool paths;           /* canonical paths are recorded */
    enum sz_durability durability;
    struct sz_span sync_interval;
    uint64_t rotate_size;
    struct sz_span rotate_age;
    struct sz_conf_retain retain, denied; /* denied: the share of unauthenticated denials */
    struct sz_secret key;                 /* an Ed25519 JWK that signs checkpoints */
    uint32_t checkpoint_records;
    struct sz_span checkpoint_interval;
    struct sz_slice anchor, anchor_command; /* where the heads go besides: a file; a program */
    bool pseudonyms;
    struct sz_secret pseudonym_key;
    uint64_t free_space; /* below it a warning */
    uint64_t scan_bytes; /* of a page */
    bool to_stdout;
    struct sz_slice syslog; /* "/dev/log", or an address:port that takes UDP; absent: none */
    struct sz_addr syslog_ip;
    uint16_t syslog_port;
};

/* The scopes and claims that the configuration mentions, in configuration order. */
struct sz_vocabulary {
    struct sz_strings scopes; /* at most SZ_SCOPES_MAX */
    struct sz_strings claims; /* at most SZ_CLAIMS_MAX */
    uint64_t hash;            /* part of every issuer's generation */
};

struct sz_conf_http {               /* asking providers and other services; see subzero/http.h */
    uint32_t connections, per_host; /* of the whole process */
    struct sz_span dns_ttl, idle;
};

struct sz_conf_redis_place {
    struct sz_slice host; /* name or address literal; absent: `path` */
    uint16_t port;
    struct sz_slice path; /* a unix socket */
};
struct sz_conf_redis { /* one server, or one cluster; see subzero/redis.h */
    bool on;
    const struct sz_conf_redis_place *places; /* the server, or a cluster's seeds */
    size_t places_n;
    bool cluster, tls;
    struct sz_slice shown; /* where it is, without user and password: for people */
    struct sz_slice username;
    struct sz_secret password;
    uint32_t database;
    struct sz_secret key; /* of the fleet: SZ_FLEET_KEY bytes, see subzero/fleet.h */
    uint32_t max_connections;
    struct sz_span timeout; /* of one command */
    struct sz_slice ca_file;
    struct sz_conf_breaker breaker;
};

enum sz_fga_mode { SZ_FGA_EMBEDDED, SZ_FGA_REMOTE, SZ_FGA_REPLICA };
struct sz_conf_fga_remote {                         /* an OpenFGA server, or Auth0 FGA */
    struct sz_slice api_url;                        /* without a slash at its end */
    struct sz_slice store_id, model_id;             /* ULIDs */
    struct sz_secret token;                         /* a preshared key ... */
    struct sz_slice client_id, token_url, audience; /* ... or client credentials, asked for there ... */
    struct sz_secret client_secret;                 /* ... or neither */
    struct sz_slice ca_file;
    bool insecure_http;
    int consistency;        /* enum sz_consistency: of every check at the least */
    struct sz_span timeout; /* of one try */
    uint32_t retries;
    struct sz_conf_breaker breaker;
    bool follow; /* its changes are followed */
    struct sz_span poll, max_lag;
};
struct sz_conf_revocation {
    uint32_t capacity;
    bool closed; /* on_store_failure: refuse tokens while revocations of other instances cannot be heard */
};

struct sz_conf_fga {
    bool on;
    enum sz_fga_mode mode;
    struct sz_conf_fga_remote remote;        /* modes remote and replica */
    struct sz_slice model, tuples;           /* file paths; mode embedded */
    struct sz_slice model_text, tuples_text; /* instead of files: the demo's (DSL, YAML) */
    const struct sz_conf_listener *listen;   /* the OpenFGA API; NULL: off */
    struct sz_secret keys;                   /* of that API: preshared_keys_file */
};

/* ---- threat scores: see subzero/threat.h -------------------------------------------------------- */

enum sz_threat_mode { SZ_THREAT_OFF, SZ_THREAT_DRY_RUN, SZ_THREAT_ENFORCE };
enum sz_threat_list { SZ_LIST_RISKY, SZ_LIST_DENY, SZ_LIST_ALLOW };
struct sz_conf_threat_list {
    struct sz_slice file;
    enum sz_threat_list what;
};
struct sz_conf_threat {
    enum sz_threat_mode mode;
    float monitor, challenge, block;   /* 0 < monitor < challenge < block <= 1 */
    struct sz_span first, longest;     /* a block lasts so long; twice as long each time */
    uint32_t capacity;                 /* entries in each table */
    unsigned step_up_status;           /* 401 with a step-up challenge (RFC 9470), or 403 */
    struct sz_strings acr_values;      /* a token with one of these passes a challenge ... */
    struct sz_span max_age;            /* ... and one whose user logged in no longer ago; 0: none does */
    unsigned acr_slot, auth_time_slot; /* vocabulary */
    struct sz_strings allow;           /* addresses and ranges that are never scored or blocked */
    const struct sz_conf_threat_list *lists;
    size_t lists_n;
    struct sz_secret events_key; /* for POST /threat/events alone */
    bool share;                  /* blocks are shared through Redis */
};

struct sz_conf {
    struct sz_slice source; /* file name, "environment" or "demo" */
    const struct sz_conf_listener *listeners;
    size_t listeners_n;
    struct sz_conf_admin admin;
    unsigned workers; /* resolved: auto = CPUs allowed by affinity and cgroup */
    struct sz_slice user, state_dir;
    struct sz_cidrs trusted_proxies;
    struct sz_conf_limits limits;
    const struct sz_conf_issuer *issuers;
    size_t issuers_n;
    struct sz_conf_cache cache;
    struct sz_conf_http http;
    struct sz_conf_redis redis;
    struct sz_conf_redis redis_cache; /* cache.l2.redis, without a key; off: the cache uses `redis` */
    struct sz_conf_revocation revocation;
    struct sz_conf_fga fga;
    struct sz_conf_threat threat;
    const struct sz_conf_upstream *upstreams;
    size_t upstreams_n;
    const struct sz_conf_rate_limit *rate_limits;
    size_t rate_limits_n;
    const struct sz_conf_route *routes;
    size_t routes_n;
    struct sz_conf_log log;
    struct sz_conf_audit audit;
    struct sz_conf_tracing tracing;
    struct {
        bool on;
        struct sz_secret key; /* key_file: a private JWK or PEM; signs X-Subzero-Assertion */
        struct sz_span ttl;   /* at most 60 s */
        struct sz_slice issuer;
    } assertion;
    struct {
        bool on;
        struct sz_slice cookie; /* its name */
        struct sz_secret key;   /* SZ_VISITOR_KEY bytes, signs it */
        struct sz_span ttl;
    } anonymous;
    struct sz_vocabulary vocabulary;
    struct sz_router *router;      /* compiled from the routes: subzero/router.h */
    uint64_t version;              /* hash of the whole configuration */
    struct sz_arena *arena;        /* owns all of the above */
    const struct sz_raw_conf *raw; /* as written, private to src/conf: dump, comparison */
    const struct sz_node *tree;    /* the document with its positions: sz_conf_mistake */
};

/* ---- loading ----------------------------------------------------------------------------------------- */

/* One mistake: where and what to do.  line, column from 1; 0 = no position (environment). */
struct sz_mistake {
    struct sz_slice file;
    unsigned line, column;
    bool warning;
    struct sz_slice message; /* "unknown key 'lisen'; did you mean 'listen'?" */
};
struct sz_mistakes {
    struct sz_arena arena; /* owns the texts */
    struct sz_mistake *v;
    size_t n, cap, errors;
};
void sz_mistakes_init(struct sz_mistakes *m);
void sz_mistakes_fini(struct sz_mistakes *m);
/* Adds one, for modules that read what the configuration names (keys, models).  Copies texts; line 0: no position. */
void sz_mistakes_add(struct sz_mistakes *m, struct sz_slice file, unsigned line, unsigned column, bool warning,
                     const char *fmt, ...) SZ_PRINTF(6, 7);

/* "file:line:column: warning: message", without what is not known or so. */
void sz_mistake_format(const struct sz_mistake *mistake, struct sz_buf *out);

/*
 * Where a key of the file stands, for mistakes found after loading: "issuers.auth0.jwks_file", "listen.0.tls".
 * The nearest key above when it is not written; 0, 0 when there is none.
 */
void sz_conf_where(const struct sz_conf *conf, const char *path, unsigned *line, unsigned *column);
/* Adds one that stands there. */
void sz_conf_mistake(const struct sz_conf *conf, const char *path, struct sz_mistakes *m, const char *fmt, ...)
    SZ_PRINTF(4, 5);

/*
 * Blocking (files are read): never on a worker loop.  NULL when m->errors > 0; then every mistake is in m,
 * sorted by position.  m is filled with warnings on success too.
 */
struct sz_conf *sz_conf_load_file(const char *path, struct sz_mistakes *m);
struct sz_conf *sz_conf_load_text(struct sz_slice yaml, const char *name, struct sz_mistakes *m);
/* AUTH0_DOMAIN, AUTH0_AUDIENCE ... (docs/configuration.md): one route for everything.  Before threads (getenv). */
struct sz_conf *sz_conf_load_environment(struct sz_mistakes *m);
/* Wipes secrets, frees everything. */
void sz_conf_free(struct sz_conf **conf);

/* What a reload cannot change between two configurations (listen, admin, workers, ...); one line per difference. */
void sz_conf_restart_needed(const struct sz_conf *now, const struct sz_conf *next, struct sz_buf *out);

/* YAML of the effective configuration, secrets as "***". */
void sz_conf_dump(const struct sz_conf *conf, struct sz_buf *out);
void sz_conf_json_schema(struct sz_buf *out);
void sz_conf_reference(struct sz_buf *out); /* docs/configuration.md */

#endif
