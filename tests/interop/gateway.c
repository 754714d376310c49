/* See gateway.h. */
#include "interop/gateway.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "subzero/crypto.h"
#include "subzero/issuers.h"
#include "subzero/time.h"

static struct sz_signer *signer;

static const char configuration[] = "listen:\n"
                                    "  - {address: 127.0.0.1:%u%s}\n"
                                    "admin: {address: 127.0.0.1:%u}\n"
                                    "workers: 2\n"
                                    "trusted_proxies: [127.0.0.1/32]\n"
                                    "issuers:\n"
                                    "  test:\n"
                                    "    issuer: https://issuer.test/\n"
                                    "    audiences: [\"https://api.test\"]\n"
                                    "    algorithms: [ES256]\n"
                                    "    jwks_file: %s\n"
                                    "upstreams:\n"
                                    "  app: {urls: [\"http://127.0.0.1:%u\"]}\n"
                                    "routes:\n"
                                    "%s";

static const char *key_set(void)
{
    struct sz_buf jwk = {0}, jwks = {0};
    struct sz_text why;

    sz_crypto_init();
    cr_assert_eq(sz_key_generate(SZ_ALG_ES256, &jwk), 0);
    signer = sz_signer_new(sz_buf_slice(&jwk), &why);
    cr_assert_not_null(signer, "%s", why.s);
    cr_assert_eq(sz_signer_jwks(signer, &jwks), 0);
    const char *path = scratch_write("jwks.json", sz_buf_slice(&jwks));
    sz_buf_fini(&jwk);
    sz_buf_fini(&jwks);
    return path;
}

void gateway_start(struct gateway *g, uint16_t port, const char *listener, uint16_t upstream, const char *routes)
{
    g->port = port != 0 ? port : free_port();
    g->admin = free_port();
    const char *file = scratch_printf("subzero.yaml", configuration, (unsigned)g->port, listener, (unsigned)g->admin,
                                      key_set(), (unsigned)upstream, routes);
    const char *const argv[] = {SZ_BINARY, "serve", "-c", file, NULL};
    cr_assert(proc_start(&g->proc, "subzero", g->port, argv));
}

void gateway_stop(struct gateway *g)
{
    int status = proc_stop(&g->proc);

    sz_signer_free(&signer);
    char *said = file_read(g->proc.log, NULL);
    size_t n = strlen(said), from = n > 4000 ? n - 4000 : 0;
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the gateway ended with %#x; it said at last:\n%s",
              (unsigned)status, said + from);
    free(said);
}

char *gateway_token(const char *subject, const char *scope)
{
    struct sz_arena arena;
    struct sz_slice token;
    char claims[512];
    long now = (long)sz_wall_seconds(sz_wall_read());

    snprintf(
        claims, sizeof(claims),
        "{\"iss\":\"https://issuer.test/\",\"aud\":\"https://api.test\",\"sub\":\"%s\",\"scope\":\"%s\",\"iat\":%ld,"
        "\"exp\":%ld}",
        subject, scope, now, now + 600);
    sz_arena_init(&arena);
    cr_assert_eq(sz_signer_sign(signer, SZ_ALG_ES256, "JWT", sz_cstr(claims), &arena.pool, &token), 0);
    char *copy = strndup(token.p, token.n);
    sz_arena_fini(&arena);
    return copy;
}

const char *gateway_tls(void)
{
    static char option[600];
    char key[256], certificate[256];
    struct proc p;

    snprintf(key, sizeof(key), "%s/key.pem", scratch_path());
    snprintf(certificate, sizeof(certificate), "%s/cert.pem", scratch_path());
    const char *const argv[] = {"/usr/bin/openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-keyout",
                                key,
                                "-out",
                                certificate,
                                "-days",
                                "2",
                                "-subj",
                                "/CN=localhost",
                                "-addext",
                                "subjectAltName=DNS:localhost,IP:127.0.0.1",
                                NULL};
    cr_assert_eq(proc_run(&p, "openssl", 20, argv), 0);
    snprintf(option, sizeof(option), ", tls: {certificate: %s, key: %s}", certificate, key);
    return option;
}
