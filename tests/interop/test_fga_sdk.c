/*
 * OpenFGA's official Go SDK as a client of the gateway's API: tests/interop/peers/fga-sdk walks through all that a
 * service does, and has been seen to pass at OpenFGA itself.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fake/certs.h"
#include "integration/harness.h"

#define KEY "0123456789-of-the-sdk"
#define HEAD                                      \
    "listen: [{address: \"127.0.0.1:{port}\"}]\n" \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"   \
    "workers: 2\n"                                \
    "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
#define PUBLIC "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n"

static struct gateway g;
static char program[512];

static void begin(void)
{
    const char *found = program_find("fga-sdk");
    if (found == NULL)
        cr_skip_test("no fga-sdk here: script/peers builds it where there is Go");
    snprintf(program, sizeof(program), "%s", found);
}

static void end(void)
{
    if (g.config != NULL)
        stop_gateway(&g);
    scratch_remove();
}

TestSuite(fga_sdk, .init = begin, .fini = end, .timeout = 120);

/* The arguments behind the program's name, NULL at their end. */
static void expect_all(const char *url, const char *key, const char *ca)
{
    struct proc run = {0};
    const char *argv[] = {program, url, key, ca, NULL};
    int status = proc_run(&run, "fga-sdk", 100, argv);
    char *out = file_read(run.log, NULL);
    cr_expect(status == 0 && strstr(out, "all as it should be") != NULL, "%s: %d\n%s", url, status, out);
    free(out);
}

Test(fga_sdk, does_all_that_a_service_does)
{
    char url[64];
    cr_assert(gateway_start(&g, HEAD "fga: {listen: \"127.0.0.1:{port2}\"}\n" PUBLIC, 9));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", g.port2);
    expect_all(url, "", NULL);
}

Test(fga_sdk, over_tls_with_a_key_and_stores_on_disk)
{
    static struct cert ca, leaf;
    char url[64];
    cert_ca(&ca, "ca");
    cert_leaf(&leaf, "fga", &ca, "IP:127.0.0.1", 90);
    scratch_write("keys", SZ_S("write " KEY " sdk\n"));
    cr_assert(gateway_start(&g,
                            HEAD "state_dir: \"{dir}/state\"\n"
                                 "fga:\n"
                                 "  listen: \"127.0.0.1:{port2}\"\n"
                                 "  preshared_keys_file: \"{dir}/keys\"\n"
                                 "  tls: {certificate: \"{dir}/fga.pem\", key: \"{dir}/fga.key\"}\n" PUBLIC,
                            9));
    snprintf(url, sizeof(url), "https://127.0.0.1:%u", g.port2);
    expect_all(url, KEY, ca.file);
}
