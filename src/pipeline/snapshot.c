/* Snapshots: built in one go, freed by whoever lets go last. */
#include "pipeline/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "pipeline/plan.h"
#include "pipeline/threat_lists.h"
#include "pipeline/vet.h"
#include "subzero/audit.h"
#include "subzero/crypto.h"
#include "subzero/prefixes.h"

static void destroy(struct sz_snapshot *s)
{
    if (s->on_free != NULL)
        s->on_free(s->on_free_arg);
    if (s->authz != NULL)
        s->authz->free(s->authz);
    sz_prefixes_free(&s->allowed_ranges);
    sz_prefixes_free(&s->listed_ranges);
    sz_fga_seed_free(&s->seed);
    sz_fga_keys_free(&s->fga_keys);
    sz_signer_free(&s->assertion);
    sz_issuers_free(&s->issuers);
    sz_conf_free(&s->conf);
    sz_arena_fini(&s->arena);
    free(s);
}

static bool anybody_asks(const struct sz_conf *conf)
{
    for (size_t i = 0; i < conf->listeners_n; i++) {
        if (conf->listeners[i].mode == SZ_MODE_API)
            return true;
    }
    for (size_t i = 0; i < conf->routes_n; i++) {
        if (conf->routes[i].authorize != SZ_AUTHORIZE_NONE)
            return true;
    }
    return false;
}

/* With fga.listen the hub's store is asked, and what the configuration brings goes into that one. */
static int read_seed(struct sz_snapshot *s, struct sz_text *why)
{
    if (s->conf->fga.listen == NULL)
        return 0;
    s->seed = sz_fga_seed_read(&s->conf->fga, why);
    return s->seed != NULL ? 0 : -EINVAL;
}

static struct sz_authz *open_source(struct sz_snapshot *s, struct sz_fga_hub *hub, struct sz_text *why)
{
    if (s->conf->fga.mode == SZ_FGA_REMOTE)
        return sz_authz_remote_open(&s->conf->fga, why);
    if (s->conf->fga.mode == SZ_FGA_REPLICA)
        return sz_authz_replica_open(&s->conf->fga, why);
    if (s->seed != NULL)
        return sz_authz_hub_new(hub, s->seed, why);
    return sz_authz_embedded_open(&s->conf->fga, hub, why);
}

/* Files read whole, at start or reload; models and tuples have no secrets in them. */
static int load_authz(struct sz_snapshot *s, struct sz_fga_hub *hub, struct sz_mistakes *m)
{
    const struct sz_conf_fga *fga = &s->conf->fga;
    bool look = fga->listen != NULL && hub == NULL; /* nothing is served: is what it brings good? */
    bool brings = fga->model.n > 0 || fga->model_text.p != NULL;
    struct sz_text why = {""};
    int rc = hub == NULL ? 0 : read_seed(s, &why);
    if (rc == 0 && fga->on && (look ? brings : anybody_asks(s->conf))) {
        s->source = s->authz = open_source(s, hub, &why);
        rc = s->authz != NULL ? 0 : -EINVAL;
    }
    if (rc != 0)
        sz_conf_mistake(s->conf, "fga", m, "fga: %s", why.s);
    if (s->authz != NULL && !sz_vet_routes(s->conf, s->authz, m))
        rc = -EINVAL;
    return rc;
}

static int load_fga_keys(struct sz_snapshot *s, struct sz_mistakes *m)
{
    struct sz_text why = {""};
    if (!s->conf->fga.keys.set)
        return 0;
    s->fga_keys = sz_fga_keys_parse(s->conf->fga.keys.value, &why);
    if (s->fga_keys != NULL)
        return 0;
    sz_conf_mistake(s->conf, "fga.preshared_keys_file", m, "fga.preshared_keys_file: %s", why.s);
    return -EINVAL;
}

int sz_snapshot_seed(struct sz_snapshot *s, struct sz_fga_hub *hub, struct sz_mistakes *m)
{
    struct sz_text why = {""};
    if (s->seed == NULL)
        return 0;
    int rc = sz_fga_seed_apply(s->seed, hub, &why);
    sz_fga_seed_free(&s->seed); /* the tuples of a large file are not kept twice */
    if (rc != 0)
        sz_conf_mistake(s->conf, "fga", m, "fga: %s", why.s);
    return rc;
}

static int load_assertion(struct sz_snapshot *s, struct sz_mistakes *m)
{
    if (!s->conf->assertion.on)
        return 0;
    struct sz_text why = {""};
    s->assertion = sz_signer_new(s->conf->assertion.key.value, &why);
    if (s->assertion != NULL && sz_signer_default_alg(s->assertion) >= SZ_ALG_RS256)
        return 0;
    if (s->assertion != NULL)
        sz_text_set(&why, "a shared secret has no public half; 'subzero key new --jwk ES256' makes a key pair");
    sz_conf_mistake(s->conf, "assertion.key_file", m, "assertion.key_file: %s", why.s);
    return -EINVAL;
}

/* Read again by the journal when it opens; here so that a mistake is named like all others. */
static int check_audit_key(struct sz_snapshot *s, struct sz_mistakes *m)
{
    struct sz_ed25519 key;
    struct sz_text why;
    if (!s->conf->audit.key.set)
        return 0;
    int rc = sz_audit_key_read(s->conf->audit.key.value, &key, &why);
    sz_wipe(&key, sizeof(key));
    if (rc != 0)
        sz_conf_mistake(s->conf, "audit.key_file", m, "audit.key_file: %s", why.s);
    return rc;
}

struct sz_snapshot *sz_snapshot_new(struct sz_conf *conf, struct sz_fga_hub *hub, struct sz_mistakes *m)
{
    struct sz_snapshot *s = sz_xcalloc(1, sizeof(*s));
    atomic_init(&s->refs, 1);
    s->conf = conf;
    sz_arena_init(&s->arena);
    s->plan = sz_plan_new(conf, &s->arena.pool);
    s->issuers = sz_issuers_new(conf, m);
    bool good = s->issuers != NULL;
    good = load_fga_keys(s, m) == 0 && good;
    good = load_authz(s, hub, m) == 0 && good; /* all of them, so that one run names every mistake */
    good = load_assertion(s, m) == 0 && good;
    good = sz_threat_lists_load(s->conf, &s->allowed_ranges, &s->listed_ranges, m) == 0 && good;
    good = check_audit_key(s, m) == 0 && good;
    if (!good) {
        destroy(s);
        return NULL;
    }
    return s;
}

void sz_snapshot_ref(struct sz_snapshot *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void sz_snapshot_unref(struct sz_snapshot *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1)
        destroy(s);
}
