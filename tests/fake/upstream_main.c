/*
 * The fake upstream as a program, for demonstrations: it answers every request with the request head as it arrived, so
 * that whoever tries the gateway sees what an application would see behind it.
 *
 *   fake_upstream [--address A] [--port N]
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "fake/upstream.h"

static bool echo(struct wire *w, const struct upstream_request *request, void *arg)
{
    struct sz_buf answer = {0};
    char value[16];

    (void)arg;
    sz_buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n",
                  request->head.n);
    if (!sz_eq(request->method, SZ_S("HEAD")))
        sz_buf_adds(&answer, request->head);
    bool goes_on = wire_send_by(w, sz_buf_slice(&answer), SZ_NEVER);
    sz_buf_fini(&answer);
    return goes_on && !(upstream_field(request, "connection", value, sizeof(value)) && strcmp(value, "close") == 0);
}

int main(int argc, char **argv)
{
    const struct upstream_script script = {.speak = echo, .forgets = true};
    const char *address = "127.0.0.1";
    uint64_t port = 0;
    sigset_t set;
    int sig;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--address") == 0) {
            address = argv[i + 1];
        } else if (i + 1 == argc || strcmp(argv[i], "--port") != 0 ||
                   sz_parse_u64(sz_cstr(argv[i + 1]), 65535, &port) != 0) {
            fprintf(stderr, "fake_upstream: %s\nusage: fake_upstream [--address A] [--port N]\n", argv[i]);
            return 2;
        }
    }
    /* Before the threads, which inherit it: the signals are for this one. */
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct upstream *upstream = upstream_start_on(NULL, address, (uint16_t)port);
    upstream_play(upstream, &script);
    printf("answers on %s:%u with what arrives\n", address, upstream_port(upstream));
    fflush(stdout);
    sigwait(&set, &sig);
    upstream_stop(&upstream);
    return 0;
}
