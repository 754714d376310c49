/*
 * A configuration from environment variables: the YAML that one would have written, with the values in
 * their places, then loaded like any other.  Each variable has a line of its own, so that a mistake
 * found by the loader is told with the variable's name instead of a line nobody has seen.
 */
#include <stdlib.h>

#include "conf/dump.h"
#include "conf/environ.h"
#include "conf/loader.h"

/* Parts that do not exist yet: set, they must not be ignored. */
static const char *const later[] = {
    "AUTH0_CLIENT_ID",
    "AUTH0_CLIENT_SECRET",
    "AUTH0_CLIENT_SECRET_FILE",
};

const char *sz_environ_get(const char *name)
{
    const char *value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : value;
}

static void missing(struct sz_environ *t, const char *name, const char *remedy)
{
    sz_mistakes_add(t->m, SZ_S("environment"), 0, 0, false, "%s is not set: %s", name, remedy);
}

void sz_environ_line(struct sz_environ *t, const char *name, const char *before, const char *value, const char *after)
{
    SZ_ASSERT(t->lines < SZ_ENVIRON_LINES);
    t->variable[t->lines++] = name;
    sz_buf_adds(&t->yaml, sz_cstr(before));
    if (value != NULL)
        sz_dump_text(sz_cstr(value), &t->yaml);
    sz_buf_adds(&t->yaml, sz_cstr(after));
    sz_buf_adds(&t->yaml, SZ_S("\n"));
}

static void required(struct sz_environ *t, const char *name, const char *before, const char *after, const char *remedy)
{
    const char *value = sz_environ_get(name);
    if (value == NULL)
        missing(t, name, remedy);
    else
        sz_environ_line(t, name, before, value, after);
}

static void optional(struct sz_environ *t, const char *name, const char *fallback, const char *before,
                     const char *after)
{
    const char *value = sz_environ_get(name);
    sz_environ_line(t, name, before, value != NULL ? value : fallback, after);
}

static void issuer(struct sz_environ *t)
{
    const char *domain = sz_environ_get("AUTH0_DOMAIN");
    struct sz_text url;
    if (domain == NULL) {
        missing(t, "AUTH0_DOMAIN", "the tenant's domain, such as tenant.auth0.com");
    } else if (strpbrk(domain, "/:@ ?#") != NULL) {
        sz_mistakes_add(t->m, SZ_S("environment"), 0, 0, false,
                        "AUTH0_DOMAIN is '%.200s': the domain alone, such as tenant.auth0.com", domain);
    } else {
        sz_text_set(&url, "https://%s/", domain);
        sz_environ_line(t, "AUTH0_DOMAIN", "    issuer: ", url.s, "");
    }
    required(t, "AUTH0_AUDIENCE", "    audiences: [", "]",
             "the API's identifier: without it any of the tenant's tokens would do");
    if (sz_environ_get("AUTH0_JWKS_FILE") != NULL) /* else the tenant's metadata says where the keys are */
        sz_environ_line(t, "AUTH0_JWKS_FILE", "    jwks_file: ", sz_environ_get("AUTH0_JWKS_FILE"), "");
}

static void address(struct sz_environ *t)
{
    const char *port = sz_environ_get("PORT");
    struct sz_text text;
    sz_text_set(&text, "0.0.0.0:%s", port != NULL ? port : "8080");
    sz_environ_line(t, "PORT", "listen: [{address: ", text.s, "}]");
}

/* Identities, and room for two decisions about each. */
static void caches(struct sz_environ *t)
{
    const char *value = sz_environ_get("CACHE_CAPACITY");
    uint64_t n = 50000;
    struct sz_text twice;
    optional(t, "CACHE_CAPACITY", "50000", "cache: {l1: {capacity: ", "},");
    if (value != NULL && sz_parse_u64(sz_cstr(value), 500000, &n) != 0)
        n = 50000; /* the line above is refused */
    sz_text_set(&twice, "  decisions: {capacity: %llu}}", (unsigned long long)n * 2);
    sz_environ_line(t, "CACHE_CAPACITY", twice.s, NULL, "");
}

static void redis(struct sz_environ *t)
{
    if (sz_environ_get("REDIS_URL") == NULL) {
        if (sz_environ_get("REDIS_MAX_CONNECTIONS") != NULL || sz_environ_get("CACHE_KEY_FILE") != NULL)
            missing(t, "REDIS_URL",
                    "REDIS_MAX_CONNECTIONS and CACHE_KEY_FILE are about that Redis; set it or unset them");
        return;
    }
    sz_environ_line(t, NULL, "redis:", NULL, "");
    sz_environ_line(t, "REDIS_URL", "  url: ", sz_environ_get("REDIS_URL"), "");
    required(t, "CACHE_KEY_FILE", "  key_file: ", "",
             "a file with the key of all instances that share this Redis, as 'subzero key new' prints it");
    if (sz_environ_get("REDIS_MAX_CONNECTIONS") != NULL)
        sz_environ_line(t, "REDIS_MAX_CONNECTIONS", "  max_connections: ", sz_environ_get("REDIS_MAX_CONNECTIONS"), "");
}

/* Requests of one subject; 0: as many as it likes. */
static bool rate_limit(struct sz_environ *t)
{
    const char *window = sz_environ_get("RATE_LIMIT_WINDOW"), *requests = sz_environ_get("RATE_LIMIT_REQUESTS");
    struct sz_text span;
    if (requests != NULL && strcmp(requests, "0") == 0)
        return false;
    if (window == NULL)
        window = "60";
    sz_text_set(&span, "%s%s", window, window[strspn(window, "0123456789")] == '\0' ? "s" : ""); /* seconds */
    sz_environ_line(t, NULL, "rate_limits:", NULL, "");
    sz_environ_line(t, NULL, "  subject:", NULL, "");
    sz_environ_line(t, NULL, "    algorithm: sliding_window", NULL, "");
    optional(t, "RATE_LIMIT_REQUESTS", "100", "    limit: ", "");
    sz_environ_line(t, "RATE_LIMIT_WINDOW", "    window: ", span.s, "");
    optional(t, "RATE_LIMIT_ON_STORE_FAILURE", "closed", "    on_store_failure: ", "");
    return true;
}

/* What the one route asks, when somebody said it. */
static bool fga_rule(struct sz_environ *t)
{
    const char *relation = sz_environ_get("FGA_RELATION"), *object = sz_environ_get("FGA_OBJECT");
    if ((relation == NULL) != (object == NULL))
        missing(t, relation == NULL ? "FGA_RELATION" : "FGA_OBJECT",
                "FGA_RELATION and FGA_OBJECT together say what is asked, such as viewer and api:all");
    return relation != NULL && object != NULL;
}

static void fga_part(struct sz_environ *t, const char *name, const char *before)
{
    if (sz_environ_get(name) != NULL)
        sz_environ_line(t, name, before, sz_environ_get(name), "");
}

/* The path of a secret's file, or where the secret itself is: see read_secret. */
static void fga_secret(struct sz_environ *t, const char *name, const char *file, const char *before)
{
    struct sz_text from;
    if (sz_environ_get(name) != NULL && sz_environ_get(file) != NULL)
        sz_mistakes_add(t->m, SZ_S("environment"), 0, 0, false, "%s and %s are both set: unset one", name, file);
    sz_text_set(&from, "env:%s", name);
    if (sz_environ_get(file) != NULL)
        sz_environ_line(t, file, before, sz_environ_get(file), "");
    else if (sz_environ_get(name) != NULL)
        sz_environ_line(t, name, before, from.s, "");
}

static void fga(struct sz_environ *t)
{
    static const char *const names[] = {"FGA_STORE_ID",      "FGA_MODEL_ID",         "FGA_CLIENT_ID",
                                        "FGA_CLIENT_SECRET", "FGA_API_TOKEN_ISSUER", "FGA_API_AUDIENCE",
                                        "FGA_RELATION",      "FGA_OBJECT",           "FGA_CLIENT_SECRET_FILE"};
    if (sz_environ_get("FGA_API_URL") == NULL) {
        for (size_t i = 0; i < SZ_COUNT(names); i++) {
            if (sz_environ_get(names[i]) != NULL)
                missing(t, "FGA_API_URL", "the address of the OpenFGA server that the other FGA_ variables are about");
        }
        return;
    }
    sz_environ_line(t, NULL, "fga:", NULL, "");
    sz_environ_line(t, NULL, "  mode: remote", NULL, "");
    fga_part(t, "FGA_API_URL", "  api_url: ");
    fga_part(t, "FGA_STORE_ID", "  store_id: ");
    fga_part(t, "FGA_MODEL_ID", "  model_id: ");
    fga_part(t, "FGA_CLIENT_ID", "  client_id: ");
    fga_secret(t, "FGA_CLIENT_SECRET", "FGA_CLIENT_SECRET_FILE", "  client_secret_file: ");
    fga_part(t, "FGA_API_TOKEN_ISSUER", "  token_issuer: ");
    fga_part(t, "FGA_API_AUDIENCE", "  audience: ");
}

static void route(struct sz_environ *t, bool limited)
{
    sz_environ_line(t, NULL, "routes:", NULL, "");
    sz_environ_line(t, NULL, "  - id: all", NULL, "");
    sz_environ_line(t, NULL, "    match: {path: /*}", NULL, "");
    sz_environ_line(t, NULL, "    auth: {issuers: [auth0]}", NULL, "");
    sz_environ_line(t, NULL, "    upstream: upstream", NULL, "");
    if (limited)
        sz_environ_line(t, NULL, "    rate_limit: subject", NULL, "");
    if (sz_environ_get("FGA_API_URL") == NULL)
        return;
    if (!fga_rule(t)) {
        sz_mistakes_add(t->m, SZ_S("environment"), 0, 0, true,
                        "FGA_API_URL is set, but nothing says what to ask: set FGA_RELATION and FGA_OBJECT, or write a "
                        "configuration file whose routes have 'authorize'");
        return;
    }
    sz_environ_line(t, NULL, "    authorize:", NULL, "");
    sz_environ_line(t, NULL, "      user: \"user:{claims.sub}\"", NULL, "");
    fga_part(t, "FGA_RELATION", "      relation: ");
    fga_part(t, "FGA_OBJECT", "      object: ");
}

static void write_text(struct sz_environ *t)
{
    address(t);
    optional(t, "ADMIN_ADDRESS", "127.0.0.1:9901", "admin: {address: ", "}");
    optional(t, "WORKERS", "auto", "workers: ", "");
    caches(t);
    if (sz_environ_get("STATE_DIR") != NULL)
        sz_environ_line(t, "STATE_DIR", "state_dir: ", sz_environ_get("STATE_DIR"), "");
    redis(t);
    sz_environ_line(t, NULL, "issuers:", NULL, "");
    sz_environ_line(t, NULL, "  auth0:", NULL, "");
    issuer(t);
    sz_environ_line(t, NULL, "upstreams:", NULL, "");
    sz_environ_line(t, NULL, "  upstream:", NULL, "");
    required(t, "UPSTREAM_URL", "    urls: [", "]", "where requests go, such as http://127.0.0.1:9000");
    fga(t);
    route(t, rate_limit(t));
    sz_environ_otel(t);
}

/* Lines of a text that nobody wrote become names of variables. */
static void rename_lines(struct sz_environ *t, size_t from)
{
    for (size_t i = from; i < t->m->n; i++) {
        struct sz_mistake *at = &t->m->v[i];
        const char *name = at->line > 0 && at->line <= t->lines ? t->variable[at->line - 1] : NULL;
        if (name != NULL)
            at->message = sz_pool_printf(&t->m->arena.pool, "%s: %.*s", name, SZ_FMT(at->message));
        at->line = at->column = 0;
    }
}

struct sz_conf *sz_conf_load_environment(struct sz_mistakes *m)
{
    struct sz_environ t = {.m = m};
    struct sz_conf *conf = NULL;
    size_t errors = m->errors, n = m->n;
    for (size_t i = 0; i < SZ_COUNT(later); i++) {
        if (sz_environ_get(later[i]) != NULL)
            sz_mistakes_add(m, SZ_S("environment"), 0, 0, false, "%s is not available in this version; unset it",
                            later[i]);
    }
    write_text(&t);
    if (m->errors == errors) {
        conf = sz_conf_load_text(sz_buf_slice(&t.yaml), "environment", m);
        rename_lines(&t, n);
    }
    sz_buf_fini(&t.yaml);
    return conf;
}
