/*
 * The demo: a configuration that needs nothing but this process.  An issuer with a key of its own (kept for `token
 * mint`), the embedded engine with a small model, an upstream that echoes; on loopback alone.
 */
#ifndef SZ_CLI_DEMO_H
#define SZ_CLI_DEMO_H

#include "edge/listener.h"
#include "subzero/conf.h"

struct sz_demo {
    const char *address, *admin; /* where to listen */
    struct sz_listener upstream; /* bound already: its port is in the configuration */
    enum sz_alg alg;
    struct sz_buf jwks;  /* the issuer's public keys ... */
    char fleet[64];      /* with REDIS_URL: base64 of the key that this process draws ... */
    char fleet_file[64]; /* ... and where it stands while a configuration is being loaded */
    char keys[64];       /* ... and the file they are in while a configuration is being loaded */
};

/* Makes or finds the issuer's key and binds the upstream.  NULL addresses: the usual ones.  -errno and *why. */
int sz_demo_init(struct sz_demo *demo, const char *address, const char *admin, struct sz_text *why) SZ_MUST_CHECK;
/* A struct sz_conf_source's load: arg is the demo. */
struct sz_conf *sz_demo_load(void *arg, struct sz_mistakes *m);
/* What to paste, on stdout. */
void sz_demo_explain(const struct sz_demo *demo);
/* The key file has been read. */
void sz_demo_loaded(struct sz_demo *demo);
void sz_demo_end(struct sz_demo *demo);

#endif
