/*
 * What a relation check costs around the engine: asked of a remote store beside the bare HTTP call, found in the
 * decision cache, answered by the embedded engine without it.  Prints one JSON object.
 *
 *   micro_fga [repetitions [calls]]
 *
 * "call" is a POST of the same body by the HTTP client, whose answer nobody reads; "remote" is the check, from strings
 * to an outcome, cache off.  Both one at a time over a kept connection on loopback, in turn, to a server in a process
 * of its own: wall time, medians.  "hit" is a check that the cache answers; "direct" and "walk" are checks of the
 * embedded engine that pass the cache by, the latter through five levels of folders and a group; CPU time.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "subzero/conf.h"
#include "subzero/decision.h"
#include "subzero/http.h"

enum { REPETITIONS_MAX = 101, CALLS_MAX = 100000, LOCAL_CALLS = 200000 };

#define QUESTION                                                                                       \
    "{\"tuple_key\":{\"user\":\"user:anne\",\"relation\":\"viewer\",\"object\":\"document:roadmap\"}," \
    "\"authorization_model_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAW\",\"consistency\":\"MINIMIZE_LATENCY\"}"
#define ANSWER "{\"allowed\":true,\"resolution\":\"\"}"

static struct sz_loop *loop;
static struct sz_http *http;
static unsigned calls = 2000;
static double *took[2]; /* us of each call: bare, remote */
static unsigned at;
static double begun;
static char url[128];

static void die(const char *what)
{
    fprintf(stderr, "micro_fga: %s\n", what);
    exit(1);
}

static double now_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static void serve(int fd)
{
    char in[8192], out[256];
    size_t have = 0;
    int on = 1, out_n = snprintf(out, sizeof(out),
                                 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                 sizeof(ANSWER) - 1, ANSWER);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (;;) {
        ssize_t n = read(fd, in + have, sizeof(in) - 1 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
        in[have] = '\0';
        const char *end = strstr(in, "\r\n\r\n"), *length = strcasestr(in, "content-length:");
        if (end == NULL || length == NULL || have < (size_t)(end - in) + 4 + strtoul(length + 15, NULL, 10))
            continue;
        have = 0;
        if (write(fd, out, (size_t)out_n) != out_n)
            break;
    }
    close(fd);
}

static uint16_t start_server(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&addr, n) != 0 || listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &n) != 0)
        die("cannot listen");
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            int fd = accept(listener, NULL, NULL);
            if (fd >= 0 && fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                serve(fd);
                _exit(0);
            }
            close(fd);
        }
    }
    close(listener);
    return ntohs(addr.sin_port);
}

/* ---- a bare call and a check, in turn ---------------------------------------------------------------------------- */

static struct sz_authz *remote;
static struct sz_http_call call;
static struct sz_authz_op op;
static struct sz_defer again;

static const struct sz_check check = {
    .key = {{"user:anne", 9}, {"viewer", 6}, {"document:roadmap", 16}, {NULL, 0}, {NULL, 0}}};

static void on_call(struct sz_http_call *done, const struct sz_http_answer *answer)
{
    (void)done;
    if (answer->result != SZ_HTTP_ANSWERED || answer->status != 200)
        die(answer->why.s);
    took[0][at] = now_us(CLOCK_MONOTONIC) - begun;
    sz_defer_start(loop, &again);
}

static void on_check(struct sz_authz_op *done)
{
    if (done->answer.outcome != SZ_AUTHZ_ALLOWED)
        die(done->answer.message.s);
    took[1][at++] = now_us(CLOCK_MONOTONIC) - begun;
    sz_defer_start(loop, &again);
}

static void on_again(struct sz_defer *defer)
{
    static unsigned turn;
    const struct sz_http_field fields[] = {{SZ_S("content-type"), SZ_S("application/json")},
                                           {SZ_S("accept"), SZ_S("application/json")}};
    struct sz_mono deadline = sz_after(sz_loop_tick(loop), SZ_SEC(5));
    (void)defer;
    if (at == calls) {
        sz_loop_stop(loop);
        return;
    }
    begun = now_us(CLOCK_MONOTONIC);
    if (turn++ % 2 == 0) {
        const struct sz_http_request request = {.method = SZ_HTTP_POST,
                                                .url = sz_cstr(url),
                                                .fields = fields,
                                                .fields_n = 2,
                                                .body = SZ_S(QUESTION),
                                                .idempotent = true,
                                                .retries = 2,
                                                .deadline = deadline,
                                                .attempt = SZ_SEC(2)};
        call = (struct sz_http_call){.on_done = on_call};
        if (sz_http_start(http, &request, &call) != 0)
            die("no call");
    } else {
        op = (struct sz_authz_op){.on_done = on_check, .http = http};
        if (sz_authz_start(remote, loop, &check, deadline, &op) != 0)
            die("no check");
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

/* ---- answered in the process ------------------------------------------------------------------------------------- */

static double local(struct sz_authz *authz, const struct sz_check *c)
{
    double start = now_us(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < LOCAL_CALLS; i++) {
        op = (struct sz_authz_op){.http = NULL};
        if (sz_authz_start(authz, loop, c, SZ_NEVER, &op) != 1 || op.answer.outcome != SZ_AUTHZ_ALLOWED)
            die("no answer");
    }
    return (now_us(CLOCK_THREAD_CPUTIME_ID) - start) * 1000 / LOCAL_CALLS;
}

static int always_yes(struct sz_authz *authz, struct sz_loop *l, const struct sz_check *c, struct sz_mono deadline,
                      struct sz_authz_op *o)
{
    (void)authz;
    (void)l;
    (void)c;
    (void)deadline;
    memset(&o->answer, 0, sizeof(o->answer));
    return 1;
}

static void no_free(struct sz_authz *authz)
{
    (void)authz;
}

static const char model[] = "model\n  schema 1.1\ntype user\ntype group\n  relations\n    define member: [user]\n"
                            "type folder\n  relations\n    define parent: [folder]\n"
                            "    define viewer: [user, group#member] or viewer from parent\n"
                            "type document\n  relations\n    define parent: [folder]\n"
                            "    define viewer: [user] or viewer from parent\n";
static const char tuples[] = "- {user: \"user:anne\", relation: viewer, object: \"document:roadmap\"}\n"
                             "- {user: \"folder:5\", relation: parent, object: \"document:deep\"}\n"
                             "- {user: \"folder:4\", relation: parent, object: \"folder:5\"}\n"
                             "- {user: \"folder:3\", relation: parent, object: \"folder:4\"}\n"
                             "- {user: \"folder:2\", relation: parent, object: \"folder:3\"}\n"
                             "- {user: \"folder:1\", relation: parent, object: \"folder:2\"}\n"
                             "- {user: \"group:g#member\", relation: viewer, object: \"folder:1\"}\n"
                             "- {user: \"user:anne\", relation: member, object: \"group:g\"}\n";

static struct sz_authz *open_remote(uint16_t port)
{
    static char api[64];
    struct sz_text why;
    snprintf(api, sizeof(api), "http://127.0.0.1:%u", (unsigned)port);
    snprintf(url, sizeof(url), "%s/stores/01ARZ3NDEKTSV4RRFFQ69G5FAV/check", api);
    const struct sz_conf_fga conf = {.on = true,
                                     .mode = SZ_FGA_REMOTE,
                                     .remote = {.api_url = sz_cstr(api),
                                                .store_id = SZ_S("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
                                                .model_id = SZ_S("01ARZ3NDEKTSV4RRFFQ69G5FAW"),
                                                .timeout = SZ_SEC(2),
                                                .retries = 2,
                                                .breaker = {5, SZ_SEC(60)}}};
    struct sz_authz *authz = sz_authz_remote_open(&conf, &why);
    if (authz == NULL)
        die(why.s);
    return authz;
}

static void report(const char *name, double *v, unsigned n, bool last)
{
    qsort(v, n, sizeof(*v), by_value);
    printf("\"%s\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"n\": %u}%s", name, v[n / 2], v[0], v[n - 1], n,
           last ? "}\n" : ", ");
}

int main(int argc, char **argv)
{
    unsigned repetitions = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 7;
    static double figure[6][REPETITIONS_MAX];
    struct sz_text why;
    if (argc > 2)
        calls = (unsigned)strtoul(argv[2], NULL, 10);
    if (repetitions == 0 || repetitions > REPETITIONS_MAX || calls == 0 || calls > CALLS_MAX)
        die("usage: micro_fga [repetitions [calls]]");
    uint16_t port = start_server();
    sz_crypto_init();
    if (sz_http_prepare(&why) != 0)
        die(why.s);
    struct sz_conf_http conf = {100, 100, SZ_SEC(300), SZ_SEC(60)};
    struct sz_http_shared *shared = sz_http_shared_new(&conf, 1);
    struct sz_decisions *decisions = sz_decisions_new(100000);
    const struct sz_decisions_conf kept = {.ttl = SZ_SEC(3600), .negative_ttl = SZ_SEC(3600), .work = SZ_SEC(5)};
    struct sz_authz yes = {.start = always_yes, .free = no_free};
    struct sz_authz *hit = sz_decisions_wrap(decisions, &yes, &kept);
    struct sz_authz *engine = sz_authz_embedded_new(sz_cstr(model), sz_cstr(tuples), &why);
    if (engine == NULL)
        die(why.s);
    engine = sz_decisions_wrap(decisions, engine, &kept);
    struct sz_check deep = check;
    deep.key.object = SZ_S("document:deep");
    remote = open_remote(port);
    for (size_t i = 0; i < 2; i++)
        took[i] = sz_xcalloc(calls, sizeof(double));
    again.on_run = on_again;
    for (unsigned r = 0; r < repetitions; r++) {
        loop = sz_loop_new(r % 200); /* a loop runs once; a lane is its index's */
        http = sz_http_new(shared, loop);
        at = 0;
        sz_defer_start(loop, &again);
        sz_loop_run(loop);
        figure[0][r] = median(took[0], calls);
        figure[1][r] = median(took[1], calls);
        figure[2][r] = figure[1][r] / figure[0][r];
        figure[3][r] = local(hit, &check);
        figure[4][r] = local(engine, &check);
        figure[5][r] = local(engine, &deep);
        sz_http_free(&http);
        sz_loop_free(&loop);
    }
    printf("{");
    report("call_p50_us", figure[0], repetitions, false);
    report("remote_p50_us", figure[1], repetitions, false);
    report("remote_of_call", figure[2], repetitions, false);
    report("hit_ns", figure[3], repetitions, false);
    report("direct_ns", figure[4], repetitions, false);
    report("walk_ns", figure[5], repetitions, true);
    return 0;
}
