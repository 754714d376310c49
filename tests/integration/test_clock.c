/*
 * Steps of the system clock while requests are under way.  The gateway runs under a preloaded library that adds an
 * offset to CLOCK_REALTIME, which the test changes through a shared file; the library is compiled here.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake/client.h"
#include "fake/load.h"
#include "integration/harness.h"
#include "subzero/time.h"

static const char shim[] = "#define _GNU_SOURCE\n"
                           "#include <fcntl.h>\n"
                           "#include <stdlib.h>\n"
                           "#include <sys/mman.h>\n"
                           "#include <sys/syscall.h>\n"
                           "#include <time.h>\n"
                           "#include <unistd.h>\n"
                           "static volatile long *offset;\n"
                           "__attribute__((constructor)) static void start(void)\n"
                           "{\n"
                           "    const char *path = getenv(\"STEP_FILE\");\n"
                           "    int fd = path == NULL ? -1 : open(path, O_RDONLY);\n"
                           "    if (fd >= 0)\n"
                           "        offset = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);\n"
                           "}\n"
                           "int clock_gettime(clockid_t id, struct timespec *ts)\n"
                           "{\n"
                           "    int rc = (int)syscall(SYS_clock_gettime, id, ts);\n"
                           "    if (id == CLOCK_REALTIME && offset != NULL)\n"
                           "        ts->tv_sec += *offset;\n"
                           "    return rc;\n"
                           "}\n"
                           "time_t time(time_t *t)\n"
                           "{\n"
                           "    struct timespec ts;\n"
                           "    clock_gettime(CLOCK_REALTIME, &ts);\n"
                           "    if (t != NULL)\n"
                           "        *t = ts.tv_sec;\n"
                           "    return ts.tv_sec;\n"
                           "}\n";

#define YAML                                                                    \
    "listen:\n  - {address: \"127.0.0.1:{port}\"}\n"                            \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                                 \
    "workers: 2\n"                                                              \
    "log: {access: off}\n"                                                      \
    "limits: {idle_timeout: 5s, request_timeout: 5s}\n"                         \
    "cache: {l1: {ttl: 2s}}\n"                                                  \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n" ISSUER_YAML \
    "routes:\n  - {id: all, match: {path: \"/*\"}, auth: {issuers: [test]}, upstream: up}\n"

static struct gateway g;
static struct upstream *up;
static struct issuer issuer;
static struct load load;
static volatile long *offset;
static char request[4096];

/* Valid whatever the step: issued two hours ago, for six. */
static char *long_token(void)
{
    long now = (long)sz_wall_seconds(sz_wall_read());
    struct sz_buf claims = {0};
    struct sz_arena arena;
    struct sz_slice token;
    sz_buf_printf(&claims, "{\"iss\":\"" ISSUER_NAME "\",\"aud\":\"api\",\"sub\":\"alice\",\"iat\":%ld,\"exp\":%ld}",
                  now - 7200, now + 4 * 3600);
    sz_arena_init(&arena);
    cr_assert_eq(sz_signer_sign(issuer.signer, SZ_ALG_ES256, "at+jwt", sz_buf_slice(&claims), &arena.pool, &token), 0);
    char *copy = sz_xmalloc(token.n + 1);
    memcpy(copy, token.p, token.n);
    copy[token.n] = '\0';
    sz_arena_fini(&arena);
    sz_buf_fini(&claims);
    return copy;
}

static bool start_with_shim(void)
{
    char library[256], source[256];
    struct proc cc;
    const char *compiler = program_find("cc");
    long zero = 0;

    if (compiler == NULL)
        return false;
    snprintf(source, sizeof(source), "%s", scratch_write("step.c", sz_slice(shim, sizeof(shim) - 1)));
    snprintf(library, sizeof(library), "%s/step.so", scratch_path());
    const char *argv[] = {compiler, "-shared", "-fPIC", "-O1", "-o", library, source, NULL};
    cr_assert_eq(proc_run(&cc, "cc", 60, argv), 0);
    const char *step = scratch_write("step", sz_slice(&zero, sizeof(zero)));
    int fd = open(step, O_RDWR);
    offset = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq((void *)(uintptr_t)offset, MAP_FAILED);
    close(fd);
    setenv("STEP_FILE", step, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
    setenv("LD_PRELOAD", library, 1);
    bool ok = gateway_start(&g, YAML, upstream_port(up));
    unsetenv("LD_PRELOAD");
    return ok;
}

Test(clock, steps_of_an_hour_lose_no_request_and_close_no_connection, .timeout = 120)
{
    static const long steps[] = {3600, 0, -3600, 0, 3600, -3600, 0};
    char buf[16384], date_before[64], date[64];

    issuer_init(&issuer);
    up = upstream_start(NULL);
    if (!start_with_shim())
        cr_skip_test("no C compiler to build the preloaded library with");
    char *token = long_token();
    snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token);
    int idle = client_open(g.port);
    client_send(idle, sz_cstr(request));
    cr_assert_eq(client_response(idle, buf, sizeof(buf), 5000), 200, "%s", buf);
    raw_header(buf, "date", date_before, sizeof(date_before));

    load = (struct load){.port = g.port, .request = request, .clients = 6};
    load_start(&load);
    for (size_t i = 0; i < SZ_COUNT(steps); i++) {
        usleep(300000);
        *offset = steps[i];
        usleep(300000);
        client_send(idle, sz_cstr(request));
        cr_expect_eq(client_response(idle, buf, sizeof(buf), 5000), 200, "step %zu: the idle connection went", i);
        raw_header(buf, "date", date, sizeof(date));
        cr_expect(steps[i] == 0 || strncmp(date + 17, date_before + 17, 2) != 0, "Date does not follow the clock: %s",
                  date);
    }
    load_end(&load);
    cr_expect_gt(load.ok, 100);
    cr_expect_eq(load.lost, 0);
    cr_expect_eq(load.refused, 0, "%lu refused", load.refused);
    /* Time limits run on as before. */
    *offset = -3600;
    cr_expect(client_closed_within(idle, 8000), "an idle connection outlives its limit after a step back");
    close(idle);
    free(token);
    munmap((void *)(uintptr_t)offset, sizeof(long));
    unsetenv("ASAN_OPTIONS");
    stop_gateway(&g);
    upstream_stop(&up);
    scratch_remove();
}
