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

/* A file read whole, at start or reload; the model and tuple files have no secrets in them. */
static int load_authz(struct sz_snapshot *s, struct sz_mistakes *m)
{
    if (!s->conf->fga.on || !anybody_asks(s->conf))
        return 0;
    struct sz_text why = {""};
    const struct sz_conf_fga *fga = &s->conf->fga;
    s->authz = fga->mode == SZ_FGA_EMBEDDED ? sz_authz_embedded_open(fga, &why) : sz_authz_remote_open(fga, &why);
    if (s->authz != NULL)
        return sz_vet_routes(s->conf, s->authz, m) ? 0 : -EINVAL;
    sz_conf_mistake(s->conf, "fga", m, "fga: %s", why.s);
    return -EINVAL;
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

struct sz_snapshot *sz_snapshot_new(struct sz_conf *conf, struct sz_mistakes *m)
{
    struct sz_snapshot *s = sz_xcalloc(1, sizeof(*s));
    atomic_init(&s->refs, 1);
    s->conf = conf;
    sz_arena_init(&s->arena);
    s->plan = sz_plan_new(conf, &s->arena.pool);
    s->issuers = sz_issuers_new(conf, m);
    bool good = s->issuers != NULL;
    good = load_authz(s, m) == 0 && good; /* all of them, so that one run names every mistake */
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
