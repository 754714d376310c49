/*
 * The order of loading: text, tree, ${...}, schema, sections, what holds between them, freeze.
 * Each step reports and the next goes on as far as it makes sense, so that one run names every mistake.
 */
#include <limits.h>
#include <stdlib.h>

#include "conf/build.h"
#include "conf/dump.h"
#include "subzero/identity.h"

static uint64_t hash_of(struct sz_slice text)
{
    uint8_t digest[32];
    uint64_t hash;
    sz_sha256(text, digest);
    memcpy(&hash, digest, sizeof(hash));
    return hash;
}

static void freeze_vocabulary(struct sz_builder *b)
{
    struct sz_vocabulary *out = &b->conf->vocabulary;
    struct sz_buf k = {0};
    out->scopes = (struct sz_strings){b->scopes.v, b->scopes.n};
    out->claims = (struct sz_strings){b->claims.v, b->claims.n};
    for (size_t i = 0; i < b->scopes.n; i++)
        sz_key_field(&k, 1, b->scopes.v[i]);
    for (size_t i = 0; i < b->claims.n; i++)
        sz_key_field(&k, 2, b->claims.v[i]);
    out->hash = hash_of(sz_buf_slice(&k));
    sz_buf_fini(&k);
}

static void build(struct sz_loader *l, const struct sz_raw_conf *raw, struct sz_conf *conf)
{
    struct sz_builder b = {
        .l = l, .raw = raw, .conf = conf, .scopes = {.max = SZ_SCOPES_MAX}, .claims = {.max = SZ_CLAIMS_MAX}};
    sz_build_process(&b);
    sz_build_redis(&b);
    sz_build_l2(&b);
    sz_build_fga(&b);
    sz_build_audit(&b);
    sz_build_tracing(&b);
    sz_build_listeners(&b);
    sz_build_admin(&b);
    sz_build_fga_listen(&b);
    sz_build_issuers(&b);
    sz_build_threat(&b);
    sz_build_upstreams(&b);
    sz_build_rate_limits(&b);
    sz_build_anonymous(&b);
    sz_build_routes(&b);
    sz_check_routes(&b);
    sz_check_issuers(&b);
    freeze_vocabulary(&b);
}

static void freeze(struct sz_conf *conf)
{
    struct sz_buf text = {0};
    sz_dump_conf(&(struct sz_dump){.out = &text, .whole = true}, conf->raw);
    conf->version = hash_of(sz_buf_slice(&text));
    if (text.p != NULL)
        sz_wipe(text.p, text.n);
    sz_buf_fini(&text);
}

static struct sz_slice directory_of(struct sz_pool *pool, const char *name)
{
    char real[PATH_MAX];
    const char *slash = strrchr(name, '/');
    char *dir = slash == NULL ? sz_pool_strdup(pool, SZ_S("."))
                              : sz_pool_strdup(pool, sz_slice(name, (size_t)(slash - name) + 1));
    if (realpath(dir, real) == NULL)
        return sz_cstr(dir);
    return sz_cstr(sz_pool_strdup(pool, sz_cstr(real)));
}

struct sz_conf *sz_conf_load_text(struct sz_slice yaml, const char *name, struct sz_mistakes *m)
{
    struct sz_arena *arena = sz_xcalloc(1, sizeof(*arena));
    sz_arena_init(arena);
    struct sz_loader l = {.pool = &arena->pool, .m = m};
    l.file = sz_cstr(sz_pool_strdup(l.pool, sz_cstr(name)));
    l.dir = directory_of(l.pool, name);
    struct sz_conf *conf = sz_pool_zalloc(l.pool, sizeof(*conf));
    struct sz_raw_conf *raw = sz_pool_zalloc(l.pool, sizeof(*raw));
    conf->arena = arena;
    conf->source = l.file;
    conf->raw = raw;
    size_t before = m->errors;
    struct sz_node *root = sz_yaml_parse(&l, yaml);
    if (root != NULL) {
        conf->tree = root;
        sz_env_expand(&l, root);
        sz_read_object(&l, &sz_schema, root, root, raw);
        if (raw->head.node != NULL)
            build(&l, raw, conf);
    }
    raw->secrets = l.secrets;
    sz_mistakes_sort(m);
    if (m->errors > before)
        sz_conf_free(&conf);
    else
        freeze(conf);
    return conf;
}

struct sz_conf *sz_conf_load_file(const char *path, struct sz_mistakes *m)
{
    struct sz_arena arena;
    struct sz_slice text = SZ_NONE;
    struct sz_text why;
    struct sz_conf *conf = NULL;
    sz_arena_init(&arena);
    if (sz_file_read(&arena.pool, sz_cstr(path), SZ_YAML_BYTES_MAX, &text, &why) != 0)
        sz_mistakes_add(m, sz_cstr(path), 0, 0, false, "%s", why.s);
    else
        conf = sz_conf_load_text(text, path, m);
    if (text.p != NULL)
        sz_wipe((void *)(uintptr_t)text.p, text.n); /* a url may hold a password */
    sz_arena_fini(&arena);
    return conf;
}

void sz_conf_free(struct sz_conf **conf)
{
    if (*conf == NULL)
        return;
    const struct sz_raw_conf *raw = (*conf)->raw;
    struct sz_arena *arena = (*conf)->arena;
    for (struct sz_secret_note *note = raw->secrets; note != NULL; note = note->next)
        sz_wipe((void *)(uintptr_t)note->value.p, note->value.n);
    sz_arena_fini(arena);
    free(arena);
    *conf = NULL;
}
