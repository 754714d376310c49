/*
 * An identity provider for tests and demonstrations: keys, metadata, introspection, userinfo and a token endpoint, over
 * HTTP/1.1 or TLS with HTTP/2, in threads of the process that starts it.  It checks its clients as strictly as a
 * good provider does, and each endpoint can be told to do badly, for a while or for good.  What it was asked is
 * counted.
 *
 *   GET  /.well-known/openid-configuration, /.well-known/oauth-authorization-server, /jwks
 *   POST /introspect, /token                by client_secret_basic, client_secret_post or private_key_jwt
 *   GET  /userinfo                          with a token of its own
 *
 * The same by hand, without any credential: it is a toy.  Bodies are JSON.
 *
 *   GET  /control/calls                     {"jwks": 3, ...}
 *   POST /control/script                    {"endpoint": "jwks", "fault": "status", "status": 500, "latency_ms": 50,
 *                                            "latency_to_ms": 150, "one_in": 100, "times": 2, "location": "...",
 *                                            "retry_after": "1", "cache_control": "..."}
 *   POST /control/rotate                    {"keep": true}: a new key; the old one stays in the set, or does not
 *   POST /control/token                     {"format": "jwt" | "opaque", "sub": "alice", "ttl": 60, "claims": {...}}
 *   POST /control/revoke                    {"token": "..."}
 *   POST /control/down                      {"ms": 500}: connections are refused for so long
 *   POST /control/reset                     scripts and counts
 */
#ifndef FAKE_PROVIDER_H
#define FAKE_PROVIDER_H

#include "fake/upstream.h"

enum provider_endpoint {
    PROVIDER_DISCOVERY,
    PROVIDER_METADATA, /* RFC 8414 */
    PROVIDER_JWKS,
    PROVIDER_INTROSPECT,
    PROVIDER_USERINFO,
    PROVIDER_TOKEN,
    PROVIDER_OTHER, /* any other path: 200, "ok" */
    PROVIDER_ENDPOINTS
};
const char *provider_endpoint_name(enum provider_endpoint endpoint); /* "jwks" ... */

enum provider_fault {
    PROVIDER_WELL,
    PROVIDER_STATUS,   /* `status` and a small body */
    PROVIDER_TRUNCATE, /* half of the announced body, then the end of the connection */
    PROVIDER_HTML,     /* 200 and a page */
    PROVIDER_REDIRECT, /* 302 (or `status`) to `location` */
    PROVIDER_HUGE,     /* 100 MB, announced */
    PROVIDER_ENDLESS,  /* 100 MB, not announced */
    PROVIDER_EMPTY,    /* {} or, as keys, {"keys": []} */
    PROVIDER_HANG,     /* reads, never answers */
    PROVIDER_RESET,    /* a reset instead of an answer */
    PROVIDER_CLOSE,    /* the end of the connection instead of an answer */
    PROVIDER_GARBAGE,  /* that is not HTTP */
    PROVIDER_FLOOD,    /* header fields without end */
    PROVIDER_DRIP,     /* a good answer, ten bytes a second */
    PROVIDER_FAULTS
};

struct provider_script {
    enum provider_fault fault;
    unsigned latency_ms;    /* before whatever comes */
    unsigned latency_to_ms; /* above latency_ms: anything in between, evenly */
    unsigned one_in;        /* the fault happens to one request in so many, the latency to all; 0: to each */
    unsigned times;         /* how many requests it is about; 0: all */
    int status;             /* STATUS, REDIRECT */
    char location[512];     /* REDIRECT */
    char retry_after[64];   /* sent when not empty */
    char cache_control[64]; /* sent when not empty */
};

struct provider_options {
    bool tls, h2;          /* h2: HTTP/2 where the client offers it; needs tls */
    const char *address;   /* NULL: 127.0.0.1; 0.0.0.0: all of them */
    uint16_t port;         /* 0: a free one */
    const char *san;       /* names of its certificate; NULL: "IP:127.0.0.1,DNS:localhost" */
    const char *url;       /* what its metadata calls it; NULL: by its address and port */
    const char *issuer;    /* NULL: its own URL */
    bool opaque;           /* the token endpoint gives opaque tokens */
    const char *client_id; /* NULL: "gateway"; its secret is "s3cret+/:%" */
};
#define PROVIDER_CLIENT "gateway"
#define PROVIDER_SECRET "s3cret+/:%"

struct provider;
struct provider *provider_start(const struct provider_options *options); /* NULL: all zero */
void provider_stop(struct provider **provider);

const char *provider_url(const struct provider *p); /* "https://127.0.0.1:PORT", no slash at the end */
uint16_t provider_port(const struct provider *p);
const char *provider_ca_file(const struct provider *p); /* with tls: PEM, in the scratch folder */

void provider_play(struct provider *p, enum provider_endpoint endpoint, const struct provider_script *script);
/* The common cases: a fault until told otherwise; PROVIDER_WELL ends it. */
void provider_fault(struct provider *p, enum provider_endpoint endpoint, enum provider_fault fault);
void provider_refuse(struct provider *p); /* nobody listens */
void provider_accept(struct provider *p);

unsigned provider_calls(struct provider *p, enum provider_endpoint endpoint);
unsigned provider_connections(struct provider *p); /* accepted so far */
unsigned provider_open(struct provider *p);        /* open now */
void provider_clear(struct provider *p);           /* counts of calls */

void provider_rotate(struct provider *p, bool keep);
/* May use private_key_jwt from now on: its public keys, a JWK Set. */
void provider_client_keys(struct provider *p, struct sz_slice jwks);
/* A token that introspection and userinfo know; claims: more members ("\"scope\":\"a\""), or NULL.  malloc'ed. */
char *provider_jwt(struct provider *p, const char *sub, long ttl_seconds, const char *claims);
char *provider_opaque(struct provider *p, const char *sub, long ttl_seconds, const char *claims);
void provider_revoke(struct provider *p, const char *token);

#endif
