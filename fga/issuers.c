/*
 * The configured issuers, ready to verify.  Made when a configuration is loaded, off the loops: key files are
 * read and keys parsed here.
 *
 *   generation of an issuer = its verification settings + the vocabulary    facts made under another are misses
 *   generation of all       = those of each issuer + all key sets           rejections made under another are forgotten
 *
 * Key sets are not part of an issuer's generation: a removed key ends the facts that it verified, and only those.
 */
#include "fga/issuer.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fga/key_registry.h"
#include "subzero/crypto.h"
#include "subzero/revocation.h"

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b, void *names)
{
    const struct sz_slice *v = names;
    return sz_cmp(v[*(const uint16_t *)a], v[*(const uint16_t *)b]);
}

static void names_init(struct sz_names *names, const struct sz_strings *from)
{
    names->v = from->v;
    names->n = from->n;
    names->order = sz_xcalloc(from->n + 1, sizeof(*names->order));
    for (size_t i = 0; i < from->n; i++)
        names->order[i] = (uint16_t)i;
    qsort_r(names->order, names->n, sizeof(*names->order), compare_names, (void *)names->v);
}

int sz_names_find(const struct sz_names *names, struct sz_slice name)
{
    size_t low = 0, high = names->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sz_cmp(name, names->v[names->order[middle]]);
        if (order == 0)
            return names->order[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

/* ---- generations ----------------------------------------------------------------------------------------------- */

/* The same on every instance, so no secret key. */
uint64_t sz_mix(uint64_t a, uint64_t b)
{
    static const struct sz_key128 fixed = {{'s', 'u', 'b', 'z', 'e', 'r', 'o'}};
    uint8_t bytes[16];
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(a >> (8 * i));
        bytes[8 + i] = (uint8_t)(b >> (8 * i));
    }
    uint64_t h = sz_hash64(&fixed, sz_slice(bytes, sizeof(bytes)));
    return h == 0 ? 1 : h; /* 0 means "not configured" */
}

static uint64_t generation_of(const struct sz_issuers *issuers)
{
    uint64_t g = sz_mix(issuers->conf->vocabulary.hash, issuers->n);
    for (size_t i = 0; i < issuers->n; i++)
        g = sz_mix(sz_mix(g, issuers->v[i].generation), issuers->v[i].slot->keys->hash);
    return g;
}

uint64_t sz_issuers_generation(const struct sz_issuers *issuers)
{
    return sz_mix(issuers->generation, sz_key_slots_changes());
}

/* Which of several issuers with one `iss` has a token depends on the keys of them all: any new key set ends such facts.
 */
uint64_t sz_issuer_generation_now(const struct sz_issuer *issuer)
{
    return issuer->shares_iss ? sz_mix(issuer->generation, sz_key_slots_changes()) : issuer->generation;
}

uint64_t sz_issuer_generation(const struct sz_issuers *issuers, unsigned id)
{
    int index = sz_issuer_index(issuers, id);
    return index < 0 ? 0 : sz_issuer_generation_now(&issuers->v[index]);
}

/* ---- key sets -------------------------------------------------------------------------------------------------- */

bool sz_issuer_key_alive(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id)
{
    int index = sz_issuer_index(issuers, issuer_id);
    if (index < 0 || key_id == 0)
        return false;
    return sz_key_slot_alive(issuers->v[index].slot, key_id);
}

uint64_t sz_issuer_key_name(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id)
{
    int index = sz_issuer_index(issuers, issuer_id);
    uint64_t name = 0;
    if (index < 0)
        return 0;
    struct sz_jwks *keys = sz_key_slot_keys(issuers->v[index].slot);
    for (size_t i = 0; i < keys->n && name == 0; i++) {
        if (keys->keys[i].id == key_id && keys->keys[i].kid.p != NULL)
            name = sz_revocation_name(SZ_REVOKE_KID, issuers->v[index].conf->issuer, keys->keys[i].kid);
    }
    sz_jwks_unref(&keys);
    return name;
}

bool sz_issuer_key_thumbprint(const struct sz_issuers *issuers, unsigned issuer_id, uint32_t key_id, uint8_t out[32])
{
    int index = sz_issuer_index(issuers, issuer_id);
    bool found = false;
    if (index < 0)
        return false;
    struct sz_jwks *keys = sz_key_slot_keys(issuers->v[index].slot);
    for (size_t i = 0; i < keys->n && !found; i++) {
        found = keys->keys[i].id == key_id;
        if (found)
            memcpy(out, keys->keys[i].thumbprint, 32);
    }
    sz_jwks_unref(&keys);
    return found;
}

uint32_t sz_issuer_key_by_thumbprint(const struct sz_issuers *issuers, unsigned issuer_id, const uint8_t thumbprint[32])
{
    int index = sz_issuer_index(issuers, issuer_id);
    uint32_t id = 0;
    if (index < 0)
        return 0;
    struct sz_jwks *keys = sz_key_slot_keys(issuers->v[index].slot);
    for (size_t i = 0; i < keys->n && id == 0; i++) {
        if (sz_eq(sz_slice(keys->keys[i].thumbprint, 32), sz_slice(thumbprint, 32)))
            id = keys->keys[i].id;
    }
    sz_jwks_unref(&keys);
    return id;
}

bool sz_issuers_usable(const struct sz_issuers *issuers)
{
    for (size_t i = 0; i < issuers->n; i++) {
        if (sz_key_slot_usable(issuers->v[i].slot) || sz_issuer_asks(issuers->v[i].conf))
            return true;
    }
    return false;
}

/* ---- loading --------------------------------------------------------------------------------------------------- */

/* Reads at most `max` bytes of a regular file.  -errno; -EFBIG: longer. */
static int read_file(const char *path, size_t max, struct sz_buf *out)
{
    char chunk[4096];
    struct stat st;
    ssize_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hang the start */
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    while (rc == 0 && (n = read(fd, chunk, sizeof(chunk))) > 0) {
        sz_buf_add(out, chunk, (size_t)n);
        if (out->n > max)
            rc = -EFBIG;
    }
    if (n < 0)
        rc = -errno;
    close(fd);
    return rc;
}

struct notes {
    struct sz_jwks_notes notes;
    const struct sz_conf_issuer *conf;
    struct sz_mistakes *mistakes;
};

static void on_skipped(struct sz_jwks_notes *base, size_t index, const char *why)
{
    struct notes *notes = SZ_CONTAINER(base, struct notes, notes);
    sz_mistakes_add(notes->mistakes, notes->conf->jwks_file, 0, 0, true, "issuer '%.*s': key %zu is left out: %s",
                    SZ_FMT(notes->conf->name), index, why);
}

static void add_file(struct sz_issuer *issuer, struct sz_jwks **keys, struct sz_mistakes *m)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct notes notes = {.notes = {on_skipped}, .conf = conf, .mistakes = m};
    struct sz_buf text = {0};
    struct sz_text why;
    int rc = read_file(conf->jwks_file.p, SZ_JWKS_BYTES_MAX, &text);
    if (rc != 0)
        sz_mistakes_add(m, conf->jwks_file, 0, 0, false, "issuer '%.*s': cannot read the key file: %s",
                        SZ_FMT(conf->name), rc == -EINVAL ? "not a regular file" : strerror(-rc));
    else if (sz_jwks_parse(sz_buf_slice(&text), issuer->id, SZ_JWKS_PUBLIC, &notes.notes, keys, &why) != 0)
        sz_mistakes_add(m, conf->jwks_file, 0, 0, false, "issuer '%.*s': %s", SZ_FMT(conf->name), why.s);
    else if ((*keys)->n == 0)
        sz_mistakes_add(m, conf->jwks_file, 0, 0, false, "issuer '%.*s': the key file holds no usable key",
                        SZ_FMT(conf->name));
    sz_buf_fini(&text);
}

static void add_secret(struct sz_issuer *issuer, struct sz_jwks **keys, struct sz_mistakes *m)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_text why;
    if (sz_jwks_with_secret(keys, conf->secret.value, issuer->id, &why) != 0)
        sz_mistakes_add(m, SZ_NONE, 0, 0, false, "issuer '%.*s': secret_file: %s", SZ_FMT(conf->name), why.s);
}

static void load_keys(struct sz_issuer *issuer, struct sz_mistakes *m)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_jwks *keys = NULL;
    if (conf->jwks_file.p != NULL)
        add_file(issuer, &keys, m);
    if (keys == NULL)
        keys = sz_jwks_empty();
    if (conf->secret.set)
        add_secret(issuer, &keys, m);
    if ((conf->algorithms & SZ_ALGS_HS) != 0 && !conf->secret.set)
        sz_mistakes_add(m, SZ_NONE, 0, 0, false, "issuer '%.*s': the HS algorithms need secret_file",
                        SZ_FMT(conf->name));
    if (!sz_issuer_verifies(conf) && !sz_issuer_asks(conf))
        sz_mistakes_add(m, SZ_NONE, 0, 0, false,
                        "issuer '%.*s' has no keys; give jwks_file, jwks_uri, discovery or secret_file",
                        SZ_FMT(conf->name));
    issuer->slot = sz_key_slot_new(keys);
}

static void load_trust(struct sz_issuer *issuer, struct sz_mistakes *m)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_text why;
    if (!sz_issuer_fetches(conf) && !sz_issuer_asks(conf))
        return;
    issuer->trust = sz_http_trust_new(conf->ca_file.p, &why);
    if (issuer->trust == NULL)
        sz_mistakes_add(m, conf->ca_file, 0, 0, false, "issuer '%.*s': %s", SZ_FMT(conf->name), why.s);
}

static void load_signer(struct sz_issuer *issuer, struct sz_mistakes *m)
{
    const struct sz_conf_issuer *conf = issuer->conf;
    struct sz_text why;
    if (!conf->introspection.on || conf->introspection.auth != SZ_PROVIDER_AUTH_KEY)
        return;
    issuer->signer = sz_signer_new(conf->introspection.key.value, &why);
    if (issuer->signer == NULL)
        sz_mistakes_add(m, SZ_NONE, 0, 0, false, "issuer '%.*s': introspection.key_file: %s", SZ_FMT(conf->name),
                        why.s);
}

static void load_issuer(struct sz_issuers *issuers, size_t index, struct sz_mistakes *m)
{
    struct sz_issuer *issuer = &issuers->v[index];
    const struct sz_conf_issuer *conf = &issuers->conf->issuers[index];
    issuer->conf = conf;
    pthread_mutex_init(&issuer->sign, NULL);
    issuer->generation = sz_mix(conf->settings, issuers->conf->vocabulary.hash);
    if (sz_issuer_register(conf->name, conf->issuer, &issuer->id) != 0) {
        sz_mistakes_add(m, SZ_NONE, 0, 0, false, "issuer '%.*s': too many different issuers since the start; restart",
                        SZ_FMT(conf->name));
        issuer->slot = sz_key_slot_new(sz_jwks_empty());
        return;
    }
    load_keys(issuer, m);
    load_trust(issuer, m);
    load_signer(issuer, m);
}

static int compare_iss(const void *a, const void *b, void *conf)
{
    const struct sz_conf_issuer *v = conf;
    uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
    int order = sz_cmp(v[x].issuer, v[y].issuer);
    return order != 0 ? order : (int)x - (int)y;
}

static void build_indices(struct sz_issuers *issuers)
{
    for (size_t i = 0; i < issuers->n; i++) {
        issuers->by_iss[i] = (uint16_t)i;
        if (issuers->v[i].id >= issuers->index_n)
            issuers->index_n = issuers->v[i].id + 1u;
    }
    qsort_r(issuers->by_iss, issuers->n, sizeof(*issuers->by_iss), compare_iss, (void *)issuers->conf->issuers);
    issuers->index_of = sz_xcalloc(issuers->index_n + 1, sizeof(*issuers->index_of));
    memset(issuers->index_of, 0xff, (issuers->index_n + 1) * sizeof(*issuers->index_of));
    for (size_t i = 0; i < issuers->n; i++)
        issuers->index_of[issuers->v[i].id] = (int16_t)i;
}

/* Issuers with one `iss` are neighbours in by_iss: what they learn stands only as long as all of them are as they were.
 */
static void share_generations(struct sz_issuers *issuers)
{
    for (size_t at = 0, n; at < issuers->n; at += n) {
        size_t first;
        uint64_t g = 0;
        n = sz_issuers_find(issuers, issuers->v[issuers->by_iss[at]].conf->issuer, &first);
        for (size_t i = at; n > 1 && i < at + n; i++) {
            const struct sz_issuer *issuer = &issuers->v[issuers->by_iss[i]];
            g = sz_mix(g, sz_mix(issuer->generation, issuer->slot->keys->hash));
        }
        for (size_t i = at; n > 1 && i < at + n; i++) {
            struct sz_issuer *issuer = &issuers->v[issuers->by_iss[i]];
            issuer->generation = sz_mix(g, i);
            issuer->shares_iss = true;
        }
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sz_key128 claim_key;

static void init_once(void)
{
    SZ_ASSERT(sodium_init() >= 0);
    json_object_seed(0); /* reads the system's randomness: not on a loop */
    sz_random(&claim_key, sizeof(claim_key));
}

uint64_t sz_issuer_claim_hash(unsigned issuer_id, struct sz_slice name, struct sz_slice value)
{
    pthread_once(&once, init_once);
    uint64_t parts[3] = {issuer_id, sz_hash64(&claim_key, name), sz_hash64(&claim_key, value)};
    return sz_hash64(&claim_key, sz_slice(parts, sizeof(parts)));
}

struct sz_issuers *sz_issuers_new(const struct sz_conf *conf, struct sz_mistakes *m)
{
    pthread_once(&once, init_once);
    struct sz_issuers *issuers = sz_xcalloc(1, sizeof(*issuers));
    issuers->conf = conf;
    issuers->n = conf->issuers_n;
    issuers->v = sz_xcalloc(issuers->n + 1, sizeof(*issuers->v));
    issuers->by_iss = sz_xcalloc(issuers->n + 1, sizeof(*issuers->by_iss));
    names_init(&issuers->scopes, &conf->vocabulary.scopes);
    names_init(&issuers->claims, &conf->vocabulary.claims);
    size_t errors = m->errors;
    for (size_t i = 0; i < issuers->n; i++)
        load_issuer(issuers, i, m);
    build_indices(issuers);
    share_generations(issuers);
    issuers->generation = generation_of(issuers);
    if (m->errors != errors)
        sz_issuers_free(&issuers);
    return issuers;
}

void sz_issuers_free(struct sz_issuers **issuers)
{
    struct sz_issuers *all = *issuers;
    *issuers = NULL;
    if (all == NULL)
        return;
    for (size_t i = 0; i < all->n; i++) {
        sz_key_slot_unref(&all->v[i].slot);
        sz_http_trust_unref(&all->v[i].trust);
        sz_dependency_put(&all->v[i].dependency);
        sz_signer_free(&all->v[i].signer);
        pthread_mutex_destroy(&all->v[i].sign);
    }
    free(all->scopes.order);
    free(all->claims.order);
    free(all->index_of);
    free(all->by_iss);
    free(all->v);
    free(all);
}

/* ---- finding --------------------------------------------------------------------------------------------------- */

unsigned sz_issuer_id(const struct sz_issuers *issuers, size_t index)
{
    SZ_ASSERT(index < issuers->n);
    return issuers->v[index].id;
}

int sz_issuer_index(const struct sz_issuers *issuers, unsigned id)
{
    return id < issuers->index_n ? issuers->index_of[id] : -1;
}

size_t sz_issuers_find(const struct sz_issuers *issuers, struct sz_slice iss, size_t *first)
{
    size_t low = 0, high = issuers->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sz_cmp(issuers->v[issuers->by_iss[middle]].conf->issuer, iss) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    size_t end = low;
    while (end < issuers->n && sz_eq(issuers->v[issuers->by_iss[end]].conf->issuer, iss))
        end++;
    return end - low;
}
