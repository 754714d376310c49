/*
 * The authorization suites once more through the running gateway's OpenFGA API: the shared runner asks it as it would
 * ask OpenFGA itself.  Absent: skipped.
 */
#include <stdio.h>
#include <stdlib.h>

#include "integration/harness.h"

static const char yaml[] = "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                           "admin: {address: \"127.0.0.1:{admin}\"}\n"
                           "workers: 2\n"
                           "log: {access: off}\n"
                           "fga: {listen: \"127.0.0.1:{port2}\"}\n"
                           "upstreams: {up: {urls: [\"http://127.0.0.1:9\"]}}\n"
                           "routes: [{id: all, match: {path: \"/*\"}, public: true, upstream: up}]\n";

static struct gateway gateway;

static void teardown(void)
{
    gateway_stop(&gateway);
    scratch_remove();
}

static const char *data_path(char out[4096], const char *name)
{
    const char *root = getenv("SUBZERO_CONFORMANCE");
    snprintf(out, 4096, "%s/fga-http/%s", root != NULL ? root : SZ_SOURCE_DIR "/../shared/conformance", name);
    return out;
}

Test(fga_http, every_run_of_the_shared_runner, .fini = teardown, .timeout = 300)
{
    char runner[4096], suites[4096], url[64];
    struct proc run = {0};
    unsigned passed = 0, failed = 1;
    if (access(data_path(runner, "run.py"), R_OK) != 0 || access(data_path(suites, "suites.json"), R_OK) != 0)
        cr_skip_test("no fga-http in the conformance data");
    if (access("/usr/bin/python3", X_OK) != 0)
        cr_skip_test("no python3 to run it with");
    cr_assert(gateway_start(&gateway, yaml, 0));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", gateway.port2);
    const char *argv[] = {"/usr/bin/python3", runner, url, suites, NULL};
    int status = proc_run(&run, "run.py", 240, argv);
    char *out = file_read(run.log, NULL), *last = strstr(out, " passed, ");
    while (last != NULL && last > out && last[-1] != '\n')
        last--;
    cr_expect(last != NULL && sscanf(last, "%u passed, %u failed", &passed, &failed) == 2);
    cr_expect(status == 0 && failed == 0 && passed > 0, "%s", out);
    free(out);
    stop_gateway(&gateway);
}
