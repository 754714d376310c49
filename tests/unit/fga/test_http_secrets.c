/*
 * http*.c: what was secret in a request or an answer is nowhere on the heap once the call is over: not in ours, not in
 * libcurl's, not in OpenSSL's.  The provider runs in a process of its own; what is looked for is kept in a disguise.
 * The stack is left out: the first call of a library's function saves the vector registers there, the
 * last block that memcpy moved among them, until the next calls write over it.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake/process.h"
#include "http_kit.h"

enum { SECRET = 32, MASK = 0x55, REGION_MAX = 256 * 1024 * 1024 };

static struct http_kit k;
static pid_t server;

TestSuite(http_secrets, .timeout = 60);

/* ---- the provider's process -------------------------------------------------------------------------------------- */

static char url[64], ca_file[256];

static void start_server(bool tls)
{
    int ends[2];
    scratch_path(); /* made before, so that both have the same */
    cr_assert_eq(pipe(ends), 0);
    server = fork();
    if (server == 0) {
        struct provider *p = provider_start(&(struct provider_options){.tls = tls});
        dprintf(ends[1], "%s %s\n", provider_url(p), tls ? provider_ca_file(p) : "-");
        for (;;)
            pause();
    }
    FILE *in = fdopen(ends[0], "r");
    cr_assert_eq(fscanf(in, "%63s %255s", url, ca_file), 2);
    fclose(in);
    close(ends[1]);
}

/* ---- looking for it ---------------------------------------------------------------------------------------------- */

static bool is_it(const unsigned char *p, const unsigned char *masked)
{
    for (size_t i = 0; i < SECRET; i++)
        if ((p[i] ^ MASK) != masked[i])
            return false;
    return true;
}

__attribute__((no_sanitize("address"))) static unsigned count_in(const unsigned char *p, size_t n,
                                                                 const unsigned char *masked)
{
    unsigned found = 0;
    for (size_t i = 0; i + SECRET <= n; i++) {
        const unsigned char *at = memchr(p + i, masked[0] ^ MASK, n - i - SECRET + 1);
        if (at == NULL)
            break;
        i = (size_t)(at - p);
        found += is_it(at, masked);
    }
    return found;
}

/* Through /proc/self/mem: a read of what another thread unmaps meanwhile fails instead of killing us. */
static unsigned copies_of(const unsigned char *masked)
{
    static unsigned char block[1024 * 1024 + SECRET];
    FILE *maps = fopen("/proc/self/maps", "r"), *mem = fopen("/proc/self/mem", "r");
    unsigned long from, to, found = 0;
    char line[512], mode[8];
    setvbuf(mem, NULL, _IONBF, 0);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[0] != 'r' || mode[1] != 'w' ||
            to - from > REGION_MAX || strstr(line, "[stack]") != NULL)
            continue;
        for (unsigned long at = from; at < to; at += sizeof(block) - SECRET) {
            size_t n = to - at < sizeof(block) ? to - at : sizeof(block);
            if (at <= (unsigned long)block && (unsigned long)block < at + n)
                n = 0; /* not our own window */
            if (n != 0 && fseek(mem, (long)at, SEEK_SET) == 0)
                n = fread(block, 1, n, mem);
            found += count_in(block, n, masked);
        }
    }
    fclose(maps);
    fclose(mem);
    memset(block, 0, sizeof(block));
    return (unsigned)found;
}

static void disguise(const char *secret, unsigned char *masked)
{
    for (size_t i = 0; i < SECRET; i++)
        masked[i] = (unsigned char)secret[i] ^ MASK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static unsigned char answered[SECRET];
static int status;
static struct sz_span patience = SZ_SEC(5);

static void on_done(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    static const char mark[] = "\"access_token\":\"";
    (void)call;
    char *token = answer->body.n == 0 ? NULL : memmem(answer->body.p, answer->body.n, mark, sizeof(mark) - 1);
    if (token != NULL)
        disguise(token + sizeof(mark) - 1, answered);
    status = answer->status;
    sz_loop_stop(k.loop);
}

static void start(bool tls)
{
    struct sz_text why;
    sz_crypto_init();
    cr_assert_eq(sz_http_prepare(&why), 0);
    k.loop = sz_loop_new(0);
    k.shared = sz_http_shared_new(&kit_conf, 1);
    k.http = sz_http_new(k.shared, k.loop);
    k.trust = tls ? sz_http_trust_new(ca_file, &why) : NULL;
}

static void stop(void)
{
    sz_http_free(&k.http);
    sz_loop_free(&k.loop);
    sz_http_shared_free(&k.shared);
    sz_http_trust_unref(&k.trust);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    scratch_remove();
}

static void post(const char *path, const char *authorization, const char *body)
{
    struct sz_http_field fields[] = {{SZ_S("Content-Type"), SZ_S("application/x-www-form-urlencoded")},
                                     {SZ_S("Authorization"), sz_cstr(authorization)}};
    struct sz_http_call call = {.on_done = on_done};
    char target[128];
    snprintf(target, sizeof(target), "%s%s", url, path);
    struct sz_http_request r = {.method = SZ_HTTP_POST,
                                .url = sz_cstr(target),
                                .trust = k.trust,
                                .fields = fields,
                                .fields_n = 2,
                                .body = sz_cstr(body),
                                .credentials = true,
                                .idempotent = true,
                                .deadline = sz_after(sz_loop_tick(k.loop), patience)};
    cr_assert_eq(sz_http_start(k.http, &r, &call), 0);
    sz_loop_run(k.loop);
}

/* A secret goes out in a field and in a form; what is here of it is wiped. */
static void send_a_secret(const char *path, unsigned char *masked)
{
    char secret[SECRET + 1] = "", text[128], form[128];
    uint8_t random[SECRET / 2];
    sz_random(random, sizeof(random));
    sz_hex_encode(random, sizeof(random), secret);
    disguise(secret, masked);
    snprintf(text, sizeof(text), "Bearer %s", secret);
    snprintf(form, sizeof(form), "token=%s&client_secret=%s", secret, secret);
    char *kept = sz_xstrdup(secret);
    cr_assert_eq(copies_of(masked), 1); /* the search finds what is there */
    sz_wipe(kept, SECRET);
    free(kept);
    post(path, text, form);
    sz_wipe(secret, sizeof(secret));
    sz_wipe(text, sizeof(text));
    sz_wipe(form, sizeof(form));
    sz_wipe(random, sizeof(random));
}

static void expect_no_trace_of_a_call_cut_off(void)
{
    unsigned char masked[SECRET];
    kill(server, SIGSTOP);
    patience = SZ_MS(100);
    send_a_secret("/x", masked);
    kill(server, SIGCONT);
    patience = SZ_SEC(5);
    cr_expect_eq(status, 0);
    cr_expect_eq(copies_of(masked), 0, "%u copies of the secret in a call that met its deadline", copies_of(masked));
}

static void expect_no_trace(bool tls)
{
    unsigned char masked[SECRET];
    start_server(tls);
    start(tls);
    send_a_secret("/x", masked);
    cr_expect_eq(status, 200);
    cr_expect_eq(copies_of(masked), 0, "%u copies of the secret that was sent", copies_of(masked));
    post("/token", "Basic Z2F0ZXdheTpzM2NyZXQlMkIlMkYlM0ElMjU=", "grant_type=client_credentials");
    cr_expect_eq(status, 200);
    cr_expect_neq(answered[0], 0);
    cr_expect_eq(copies_of(answered), 0, "%u copies of the token that came", copies_of(answered));
    expect_no_trace_of_a_call_cut_off();
    stop();
}

Test(http_secrets, no_trace_after_a_call)
{
    expect_no_trace(false);
}

Test(http_secrets, no_trace_after_a_call_over_tls)
{
    expect_no_trace(true);
}
