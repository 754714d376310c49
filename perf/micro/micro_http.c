/*
 * What asking a provider costs by the HTTP client, beside libcurl alone: an introspection (a form of about 900 bytes,
 * an answer of about 300) over kept connections on loopback, to a server in a process of its own.
 * Prints one JSON object; CPU is that of the measuring thread per call, medians of the repetitions.
 *
 *   micro_http [repetitions [calls]]
 *
 * "bare" is one libcurl easy handle in a blocking loop, told nothing but the URL, the form and where the answer goes.
 * "one" is our client on its loop with one call at a time, "many" with 64.  calls_per_s of "bare" and "one" contain
 * the server's time, so the figures to compare are CPU; those of "many" show what a loop gets done.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "subzero/crypto.h"
#include "subzero/http.h"

enum { MANY = 64, REPETITIONS_MAX = 101 };

static void die(const char *what)
{
    fprintf(stderr, "micro_http: %s\n", what);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

#define BODY                                                                                                     \
    "{\"active\":true,\"iss\":\"https://tenant.example.auth0.com/\",\"sub\":\"auth0|5f7c8ec7c33c6c004bbaf82e\"," \
    "\"aud\":\"https://api.example.com\",\"client_id\":\"my_client_id_of_thirty_two_chars\",\"scope\":\"openid " \
    "profile "                                                                                                   \
    "email read:documents write:documents read:reports\",\"iat\":1767225000,\"exp\":1767311400}"

static char answer[1024];
static size_t answer_n;

/* Requests come one after another and whole but for their end, so the length of a body is all that is looked at. */
static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg, on = 1;
    char in[16384];
    size_t have = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    for (;;) {
        ssize_t n = read(fd, in + have, sizeof(in) - 1 - have);
        if (n <= 0)
            break;
        have += (size_t)n;
        in[have] = '\0';
        const char *end = strstr(in, "\r\n\r\n"), *length = strcasestr(in, "content-length:");
        size_t whole =
            end == NULL ? SIZE_MAX : (size_t)(end - in) + 4 + (length != NULL ? strtoul(length + 15, NULL, 10) : 0);
        if (have < whole)
            continue;
        have = 0;
        if (write(fd, answer, answer_n) != (ssize_t)answer_n)
            break;
    }
    close(fd);
    return NULL;
}

static uint16_t start_server(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&addr, n) != 0 || listen(listener, 128) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &n) != 0)
        die("cannot listen");
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pthread_t thread;
            int fd = accept(listener, NULL, NULL);
            if (fd >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0)
                pthread_detach(thread);
        }
    }
    close(listener);
    return ntohs(addr.sin_port);
}

/* ---- the sides --------------------------------------------------------------------------------------------------- */

struct figures {
    double cpu_us, per_second;
};

static char url[64], form[1024];
static unsigned calls = 4000;

static size_t take(char *bytes, size_t size, size_t n, void *arg)
{
    (void)bytes;
    *(size_t *)arg += size * n;
    return size * n;
}

static struct figures measure_bare(void)
{
    CURL *easy = curl_easy_init();
    size_t taken = 0;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, form);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &taken);
    if (curl_easy_perform(easy) != CURLE_OK)
        die("bare: no answer");
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < calls; i++) {
        if (curl_easy_perform(easy) != CURLE_OK)
            die("bare: no answer");
    }
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    curl_easy_cleanup(easy);
    return (struct figures){cpu / calls * 1e6, calls / wall};
}

static struct sz_loop *loop;
static struct sz_http *http;
static struct sz_http_call slots[MANY];
static unsigned started, ended;

static void start(struct sz_http_call *call)
{
    static const struct sz_http_field fields[] = {
        {{"Content-Type", 12}, {"application/x-www-form-urlencoded", 33}},
        {{"Authorization", 13}, {"Basic Z2F0ZXdheTpzM2NyZXQlMkIlMkYlM0ElMjU=", 42}},
    };
    struct sz_http_request request = {
        .method = SZ_HTTP_POST,
        .url = sz_cstr(url),
        .fields = fields,
        .fields_n = SZ_COUNT(fields),
        .body = sz_cstr(form),
        .credentials = true,
        .idempotent = true,
        .deadline = sz_after(sz_loop_now(loop), SZ_SEC(10)),
    };
    started++;
    if (sz_http_start(http, &request, call) != 0)
        die("ours: cannot start");
}

static void on_done(struct sz_http_call *call, const struct sz_http_answer *got)
{
    if (got->result != SZ_HTTP_ANSWERED || got->body.n != sizeof(BODY) - 1)
        die("ours: no answer");
    if (++ended == calls)
        sz_loop_stop(loop);
    else if (started < calls)
        start(call);
}

static void run(unsigned at_once)
{
    started = ended = 0;
    for (unsigned i = 0; i < at_once; i++) {
        slots[i].on_done = on_done;
        start(&slots[i]);
    }
    sz_loop_run(loop);
}

static struct figures measure_ours(unsigned at_once)
{
    struct sz_conf_http conf = {.connections = 1000, .per_host = 100, .dns_ttl = SZ_SEC(300), .idle = SZ_SEC(60)};
    unsigned wanted = calls;
    struct sz_text why;
    if (sz_http_prepare(&why) != 0)
        die(why.s);
    struct sz_http_shared *shared = sz_http_shared_new(&conf, 1);
    loop = sz_loop_new(0);
    http = sz_http_new(shared, loop);
    calls = at_once * 2;
    run(at_once); /* connections are made */
    calls = wanted;
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    run(at_once);
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    return (struct figures){cpu / calls * 1e6, calls / wall};
}

/* In a process of its own: the client changes libcurl's memory functions for all of a process. */
static struct figures measure(unsigned at_once)
{
    struct figures f;
    int ends[2];
    if (pipe(ends) != 0)
        die("no pipe");
    if (fork() == 0) {
        f = at_once == 0 ? measure_bare() : measure_ours(at_once);
        _exit(write(ends[1], &f, sizeof(f)) == sizeof(f) ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &f, sizeof(f)) != sizeof(f))
        die("a side gave no figures");
    close(ends[0]);
    return f;
}

/* ---- medians ----------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), compare);
    return v[n / 2];
}

int main(int argc, char **argv)
{
    static double cpu[3][REPETITIONS_MAX], rate[3][REPETITIONS_MAX];
    static const char *const names[] = {"bare", "one", "many"};
    static const unsigned at_once[] = {0, 1, MANY};
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 11;
    if (n == 0 || n > REPETITIONS_MAX)
        die("1 to 101 repetitions");
    if (argc > 2 && (calls = (unsigned)strtoul(argv[2], NULL, 10)) < MANY)
        die("at least 64 calls");
    sz_crypto_init();
    answer_n = (size_t)snprintf(answer, sizeof(answer),
                                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
                                "Content-Length: %zu\r\n\r\n%s",
                                sizeof(BODY) - 1, BODY);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/introspect", start_server());
    snprintf(form, sizeof(form), "token_type_hint=access_token&token=%0860d", 1);
    for (size_t i = 0; i < n; i++) {
        for (size_t side = 0; side < SZ_COUNT(names); side++) {
            struct figures f = measure(at_once[side]);
            cpu[side][i] = f.cpu_us;
            rate[side][i] = f.per_second;
        }
    }
    printf("{\"repetitions\":%zu,\"calls\":%u", n, calls);
    double bare = median(cpu[0], n);
    for (size_t side = 0; side < SZ_COUNT(names); side++) {
        double us = median(cpu[side], n);
        printf(
            ",\"%s\":{\"cpu_us\":%.2f,\"of_bare\":%.3f,\"calls_per_s\":%.0f,\"cpu_us_min\":%.2f,\"cpu_us_max\":%.2f}",
            names[side], us, us / bare, median(rate[side], n), cpu[side][0], cpu[side][n - 1]);
    }
    printf("}\n");
    return 0;
}
