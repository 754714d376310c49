/* See gateway.h. */
#include "fake/gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subzero/time.h"

static void pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

static void expand(struct sz_buf *out, const char *yaml, const struct gateway *g)
{
    const struct {
        const char *name;
        unsigned value;
    } ports[] = {
        {"{port}", g->port},   {"{port2}", g->port2},       {"{port3}", g->port3},
        {"{admin}", g->admin}, {"{upstream}", g->upstream},
    };
    while (*yaml != '\0') {
        size_t i;
        for (i = 0; i < SZ_COUNT(ports) && strncmp(yaml, ports[i].name, strlen(ports[i].name)) != 0; i++)
            continue;
        if (i < SZ_COUNT(ports)) {
            sz_buf_printf(out, "%u", ports[i].value);
            yaml += strlen(ports[i].name);
        } else if (strncmp(yaml, "{dir}", 5) == 0) {
            sz_buf_adds(out, sz_cstr(scratch_path()));
            yaml += 5;
        } else {
            sz_buf_add(out, yaml++, 1);
        }
    }
}

void gateway_rewrite(struct gateway *g, const char *yaml)
{
    struct sz_buf text = {0};
    char path[256];
    expand(&text, yaml, g);
    if (g->config == NULL) {
        snprintf(path, sizeof(path), "%s.yaml", g->name);
        g->config = scratch_write(path, sz_buf_slice(&text));
    } else {
        /* Replaced whole: the gateway may be reading it. */
        snprintf(path, sizeof(path), "%s.new", g->config);
        FILE *f = fopen(path, "wb");
        SZ_ASSERT(f != NULL && fwrite(text.p, 1, text.n, f) == text.n && fclose(f) == 0);
        SZ_ASSERT(rename(path, g->config) == 0);
    }
    sz_buf_fini(&text);
}

static void show_log(const struct gateway *g)
{
    size_t n;
    char *log = file_read(g->proc.log, &n);
    fprintf(stderr, "---- the gateway's output:\n%s\n----\n", log);
    free(log);
}

static bool wait_ready(struct gateway *g)
{
    for (int i = 0; i < 200; i++) {
        char *answer = gateway_admin(g, "/readyz");
        bool ready = answer != NULL && raw_status(answer) == 200;
        free(answer);
        if (ready)
            return true;
        if (waitpid(g->proc.pid, NULL, WNOHANG) != 0)
            break;
        pause_ms(50);
    }
    show_log(g);
    return false;
}

static bool run(struct gateway *g)
{
    const char *other = getenv("SUBZERO_BINARY");
    const char *argv[] = {other != NULL ? other : g->binary, "serve", "-c", g->config, NULL};
    return proc_start(&g->proc, g->name, g->admin, argv);
}

static bool launch(struct gateway *g, const char *name, const char *binary, const char *yaml, uint16_t upstream)
{
    *g = (struct gateway){.upstream = upstream, .binary = binary};
    snprintf(g->name, sizeof(g->name), "%s", name);
    g->port = free_port();
    g->port2 = free_port();
    g->port3 = free_port();
    g->admin = free_port();
    gateway_rewrite(g, yaml);
    return run(g);
}

bool gateway_launch_binary(struct gateway *g, const char *binary, const char *yaml, uint16_t upstream)
{
    return launch(g, "gateway", binary, yaml, upstream);
}

bool gateway_start_named(struct gateway *g, const char *name, const char *binary, const char *yaml, uint16_t upstream)
{
    return launch(g, name, binary, yaml, upstream) && wait_ready(g);
}

void gateway_kill(struct gateway *g)
{
    kill(g->proc.pid, SIGKILL);
    (void)proc_stop(&g->proc);
}

bool gateway_again(struct gateway *g)
{
    return run(g) && wait_ready(g);
}

bool gateway_start_binary(struct gateway *g, const char *binary, const char *yaml, uint16_t upstream)
{
    return gateway_launch_binary(g, binary, yaml, upstream) && wait_ready(g);
}

static bool has_report(const char *log)
{
    return strstr(log, "Sanitizer") != NULL || strstr(log, "runtime error:") != NULL;
}

bool gateway_stop(struct gateway *g)
{
    size_t n;
    int status = proc_stop(&g->proc);
    char *log = file_read(g->proc.log, &n);
    bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !has_report(log);
    free(log);
    if (!ok) {
        fprintf(stderr, "the gateway ended with wait status 0x%x\n", (unsigned)status);
        show_log(g);
    }
    return ok;
}

bool gateway_logged(struct gateway *g, const char *text)
{
    bool found = false;
    for (int i = 0; i < 40 && !found; i++) { /* the log's writer is a thread of its own */
        size_t n;
        char *log = file_read(g->proc.log, &n);
        found = strstr(log, text) != NULL;
        free(log);
        if (!found)
            pause_ms(50);
    }
    return found;
}

static int count(const char *log, const char *text)
{
    int n = 0;
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++)
        n++;
    return n;
}

bool gateway_reload(struct gateway *g)
{
    static const char yes[] = "configuration reloaded", no[] = "the old one stays in force";
    size_t n;
    char *log = file_read(g->proc.log, &n);
    int yes_before = count(log, yes), no_before = count(log, no);
    free(log);
    kill(g->proc.pid, SIGHUP);
    for (int i = 0; i < 200; i++) {
        log = file_read(g->proc.log, &n);
        bool obeyed = count(log, yes) > yes_before, refused = count(log, no) > no_before;
        free(log);
        if (obeyed || refused)
            return obeyed;
        pause_ms(25);
    }
    return false;
}

char *gateway_admin(struct gateway *g, const char *path)
{
    char request[512];
    size_t n;
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    return raw_exchange(g->admin, sz_cstr(request), &n);
}

double gateway_metric(struct gateway *g, const char *sample)
{
    char *answer = gateway_admin(g, "/metrics");
    double value = -1;
    size_t n = strlen(sample);
    for (const char *at = answer; at != NULL && (at = strstr(at, sample)) != NULL; at++) {
        if (at[n] == ' ' && at > answer && at[-1] == '\n') {
            value = strtod(at + n, NULL);
            break;
        }
    }
    free(answer);
    return value;
}

long gateway_status_kb(struct gateway *g, const char *field)
{
    char path[64];
    size_t n;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)g->proc.pid);
    char *text = file_read(path, &n), *at = strstr(text, field);
    long kb = at == NULL ? -1 : strtol(at + strlen(field) + 1, NULL, 10);
    free(text);
    return kb;
}
