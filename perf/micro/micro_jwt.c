/*
 * P11, the part inside the process: what verifying a token never seen before costs beside its bare signature check, how
 * often memory is allocated on the way, and whether two threads get twice as much done.
 * Prints one JSON object; times are CPU time of the measuring thread, medians of the repetitions.
 *
 *   micro_jwt [repetitions]
 *
 * "bare" is the check alone on a decoded signature, with everything prepared that can be: the cheapest way that
 * OpenSSL (libsodium for EdDSA) offers.  "full" is sz_jwt_verify on tokens of about 900 bytes, each of them
 * another subject.  "two_threads" is two threads' tokens a second over one's and needs two idle cores;
 * "two_threads_by_cpu" says the same from the CPU time of a token and does not mind neighbours.
 */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "fga/jws_verify.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { TOKENS = 256, REPETITIONS_MAX = 101, THREADS = 2 };

static const struct sz_wall NOW = {INT64_C(1767225600) * 1000000};

/* ---- counting allocations ---------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);

static __thread uint64_t allocations;

void *malloc(size_t n)
{
    allocations++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    allocations++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    allocations++;
    return __libc_realloc(p, n);
}

/* ---- one algorithm ----------------------------------------------------------------------------------------------- */

struct subject {
    enum sz_alg alg;
    struct sz_conf conf;
    struct sz_conf_issuer issuer;
    struct sz_slice audience, scopes[2], claims[2];
    char path[64];
    struct sz_issuers *issuers;
    struct sz_jwks *keys; /* for the bare check */
    struct sz_arena arena;
    struct sz_slice tokens[TOKENS];
    struct sz_jws split[TOKENS];
    uint8_t signatures[TOKENS][512];
    size_t signature_n[TOKENS];
};

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "micro_jwt: %s\n", what);
    exit(1);
}

static void make_tokens(struct subject *s, struct sz_signer *signer)
{
    for (size_t i = 0; i < TOKENS; i++) {
        struct sz_slice claims = sz_pool_printf(
            &s->arena.pool,
            "{\"iss\":\"https://tenant.example.auth0.com/\",\"sub\":\"auth0|5f7c8ec7c33c6c004bbaf%03zx\","
            "\"aud\":[\"https://api.example.com\",\"https://tenant.example.auth0.com/userinfo\"],"
            "\"iat\":1767225000,\"exp\":1767311400,\"azp\":\"my_client_id_of_thirty_two_chars\","
            "\"scope\":\"openid profile email read:documents write:documents read:reports\","
            "\"jti\":\"3f1c9d52-7a0e-4f6b-9b6e-6a4f6f7c%04zx\",\"https://example.com/tenant\":\"acme-%zu\","
            "\"https://example.com/roles\":[\"reader\",\"writer\"],\"permissions\":[\"read:documents\"]}",
            i, i, i % 7);
        if (sz_signer_sign(signer, s->alg, "at+jwt", claims, &s->arena.pool, &s->tokens[i]) != 0 ||
            sz_jws_split(s->tokens[i], &s->split[i]) != 0 ||
            sz_b64url_decode(s->split[i].signature, s->signatures[i], &s->signature_n[i]) != 0)
            die("cannot sign");
    }
}

static void configure(struct subject *s, struct sz_slice private_jwk, struct sz_buf *document)
{
    struct sz_text why = {""};
    struct sz_mistakes mistakes;
    s->audience = SZ_S("https://api.example.com");
    s->scopes[0] = SZ_S("read:documents");
    s->scopes[1] = SZ_S("write:documents");
    s->claims[0] = SZ_S("https://example.com/roles");
    s->issuer = (struct sz_conf_issuer){
        .name = sz_cstr(sz_alg_name(s->alg)),
        .issuer = SZ_S("https://tenant.example.auth0.com/"),
        .audiences = {&s->audience, 1},
        .algorithms = 1u << s->alg,
        .jwks_file = sz_cstr(s->path),
        .tenant_claim = SZ_S("https://example.com/tenant"),
        .settings = 1,
    };
    s->conf.issuers = &s->issuer;
    s->conf.issuers_n = 1;
    s->conf.vocabulary.scopes = (struct sz_strings){s->scopes, 2};
    s->conf.vocabulary.claims = (struct sz_strings){s->claims, 1};
    if (s->alg <= SZ_ALG_HS512) { /* the secret, straight from the JWK */
        sz_buf_printf(document, "{\"keys\":[%.*s]}", SZ_FMT(private_jwk));
        if (sz_jwks_parse(sz_buf_slice(document), 4000, SZ_JWKS_ANY, NULL, &s->keys, &why) != 0)
            die(why.s);
        s->issuer.secret = (struct sz_secret){s->keys->keys[0].secret, true};
        s->issuer.jwks_file = SZ_NONE;
    } else if (sz_jwks_parse(sz_buf_slice(document), 4000, SZ_JWKS_ANY, NULL, &s->keys, &why) != 0) {
        die(why.s);
    }
    sz_mistakes_init(&mistakes);
    s->issuers = sz_issuers_new(&s->conf, &mistakes);
    if (s->issuers == NULL)
        die("no issuers");
    sz_mistakes_fini(&mistakes);
}

static void subject_init(struct subject *s, enum sz_alg alg)
{
    struct sz_buf jwk = {0}, document = {0};
    struct sz_text why = {""};
    memset(s, 0, sizeof(*s));
    s->alg = alg;
    sz_arena_init(&s->arena);
    if (sz_key_generate(alg, &jwk) != 0)
        die("no key");
    struct sz_signer *signer = sz_signer_new(sz_buf_slice(&jwk), &why);
    if (signer == NULL)
        die(why.s);
    if (alg > SZ_ALG_HS512) {
        if (sz_signer_jwks(signer, &document) != 0)
            die("no key set");
        snprintf(s->path, sizeof(s->path), "/tmp/micro-jwt-XXXXXX");
        int fd = mkstemp(s->path);
        if (fd < 0 || write(fd, document.p, document.n) != (ssize_t)document.n)
            die("cannot write the key set");
        close(fd);
    }
    configure(s, sz_buf_slice(&jwk), &document);
    if (s->path[0] != '\0')
        unlink(s->path);
    make_tokens(s, signer);
    sz_signer_free(&signer);
    sz_buf_fini(&jwk);
    sz_buf_fini(&document);
}

static void subject_fini(struct subject *s)
{
    sz_issuers_free(&s->issuers);
    sz_jwks_unref(&s->keys);
    sz_arena_fini(&s->arena);
}

static void run_bare(struct subject *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        size_t at = i % TOKENS;
        if (sz_jws_check(&s->keys->keys[0], s->alg, s->split[at].input,
                         sz_slice(s->signatures[at], s->signature_n[at])) != 0)
            die("bare check failed");
    }
}

static void run_full(struct subject *s, unsigned n)
{
    static __thread struct sz_identity id;
    struct sz_verified verified;
    for (unsigned i = 0; i < n; i++) {
        if (sz_jwt_verify(s->issuers, s->tokens[i % TOKENS], NOW, &id, &verified) != 0 ||
            verified.reason != SZ_REASON_allowed)
            die(verified.detail.s);
    }
}

/* ---- measuring ------------------------------------------------------------------------------------------------- */

struct cost {
    double ns, allocations;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static struct cost measure(struct subject *s, void (*run)(struct subject *, unsigned), unsigned n, unsigned repetitions)
{
    double ns[REPETITIONS_MAX];
    struct cost cost = {0, 0};
    run(s, TOKENS); /* warm */
    for (unsigned i = 0; i < repetitions; i++) {
        uint64_t before = allocations;
        double start = cpu_ns();
        run(s, n);
        ns[i] = (cpu_ns() - start) / n;
        cost.allocations = (double)(allocations - before) / n;
    }
    qsort(ns, repetitions, sizeof(ns[0]), by_value);
    cost.ns = ns[repetitions / 2];
    return cost;
}

struct racer {
    struct subject *s;
    unsigned n;
    pthread_barrier_t *start;
    double seconds, cpu_ns;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    struct timespec a, b;
    run_full(r->s, TOKENS);
    pthread_barrier_wait(r->start);
    double cpu = cpu_ns();
    clock_gettime(CLOCK_MONOTONIC, &a);
    run_full(r->s, r->n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    r->cpu_ns = cpu_ns() - cpu;
    r->seconds = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
    return NULL;
}

struct pace {
    double per_second; /* tokens, of all threads together */
    double cpu_ns;     /* a token */
};

/* `threads` threads on the same issuer and keys. */
static struct pace pace_of(struct subject *s, unsigned threads, unsigned n)
{
    pthread_t ids[THREADS];
    struct racer racers[THREADS];
    pthread_barrier_t start;
    struct pace pace = {0, 0};
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        racers[i] = (struct racer){s, n, &start, 0, 0};
        if (pthread_create(&ids[i], NULL, race, &racers[i]) != 0)
            die("no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        pace.per_second += n / racers[i].seconds;
        pace.cpu_ns += racers[i].cpu_ns / n / threads;
    }
    pthread_barrier_destroy(&start);
    return pace;
}

int main(int argc, char **argv)
{
    static const enum sz_alg algs[] = {SZ_ALG_RS256, SZ_ALG_ES256, SZ_ALG_EDDSA, SZ_ALG_HS256, SZ_ALG_PS256};
    static struct subject s;
    unsigned repetitions = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 15;
    if (repetitions < 1 || repetitions > REPETITIONS_MAX)
        die("repetitions: 1 to 101");
    sz_crypto_init();
    printf("{");
    for (size_t i = 0; i < SZ_COUNT(algs); i++) {
        unsigned n = algs[i] == SZ_ALG_HS256 ? 8192 : 1024;
        subject_init(&s, algs[i]);
        struct cost bare = measure(&s, run_bare, n, repetitions), full = measure(&s, run_full, n, repetitions);
        struct pace one = pace_of(&s, 1, n * 4), two = pace_of(&s, 2, n * 4);
        printf("%s\n  \"%s\": {\"bare_ns\": %.0f, \"full_ns\": %.0f, \"ratio\": %.3f, \"beyond_ns\": %.0f, "
               "\"bare_allocations\": %.1f, \"full_allocations\": %.1f, \"token_bytes\": %zu, \"two_threads\": %.2f, "
               "\"two_threads_by_cpu\": %.2f}",
               i == 0 ? "" : ",", sz_alg_name(algs[i]), bare.ns, full.ns, full.ns / bare.ns, full.ns - bare.ns,
               bare.allocations, full.allocations, s.tokens[0].n, two.per_second / one.per_second,
               2 * one.cpu_ns / two.cpu_ns);
        fflush(stdout);
        subject_fini(&s);
    }
    printf(",\n  \"repetitions\": %u\n}\n", repetitions);
    return 0;
}
