/* See provider_kit.h. */
#include "provider_kit.h"

#include <time.h>

struct gateway kit_gateway;
struct upstream *kit_upstream;
struct provider *kit_provider;

void provider_kit_init(void)
{
    kit_upstream = upstream_start(NULL);
    upstream_play(kit_upstream, &(struct upstream_script){.forgets = true});
    kit_provider = provider_start(&(struct provider_options){0});
    cr_assert(kit_upstream != NULL && kit_provider != NULL);
}

void provider_kit_fini(void)
{
    stop_gateway(&kit_gateway);
    provider_stop(&kit_provider);
    upstream_stop(&kit_upstream);
    scratch_remove();
}

char *kit_yaml(const char *top, const char *issuer)
{
    char *text;
    cr_assert(asprintf(&text,
                       "listen: [{address: \"127.0.0.1:{port}\"}]\n"
                       "admin: {address: \"127.0.0.1:{admin}\"}\n"
                       "%s"
                       "issuers:\n"
                       "  idp: {issuer: \"%s\", audiences: [api], algorithms: [ES256]%s}\n"
                       "upstreams: {up: {urls: [\"http://127.0.0.1:{upstream}\"]}}\n"
                       "routes:\n"
                       "  - {id: all, match: {path: \"/*\"}, auth: {issuers: [idp]}, upstream: up}\n",
                       top, provider_url(kit_provider), issuer) > 0);
    return text;
}

void kit_start(const char *top, const char *issuer)
{
    char *yaml = kit_yaml(top, issuer);
    cr_assert(gateway_start(&kit_gateway, yaml, upstream_port(kit_upstream)));
    free(yaml);
}

void kit_start_cold(const char *top, const char *issuer)
{
    char *yaml = kit_yaml(top, issuer);
    cr_assert(gateway_start_cold(&kit_gateway, yaml, upstream_port(kit_upstream)));
    free(yaml);
}

int kit_ask(const char *token, char reason[64], char retry_after[32])
{
    struct http1_response r = {0};
    int status = http1_ask(kit_gateway.port, "GET", "/x", token, NULL, NULL, &r);
    if (reason != NULL && !http1_field(&r, "x-subzero-reason", reason, 64))
        reason[0] = '\0';
    if (retry_after != NULL && !http1_field(&r, "retry-after", retry_after, 32))
        retry_after[0] = '\0';
    http1_response_fini(&r);
    return status;
}

void kit_expect(const char *token, int status, const char *reason, const char *what)
{
    char got[64];
    int is = kit_ask(token, got, NULL);
    cr_expect(is == status && strcmp(got, reason) == 0, "%s: expected %d %s, got %d %s", what, status, reason, is, got);
}

double kit_now(void)
{
    return (double)sz_mono_read().us / 1e6;
}

void kit_sleep(unsigned ms)
{
    usleep(ms * 1000);
}

bool kit_ready(bool wanted, unsigned ms)
{
    for (double end = kit_now() + ms / 1e3; kit_now() < end; kit_sleep(20)) {
        char *answer = gateway_admin(&kit_gateway, "/readyz");
        bool ready = answer != NULL && raw_status(answer) == 200;
        free(answer);
        if (ready == wanted)
            return true;
    }
    return false;
}

bool kit_metric_reaches(const char *sample, double value, unsigned ms)
{
    for (double end = kit_now() + ms / 1e3; kit_now() < end; kit_sleep(20)) {
        if (gateway_metric(&kit_gateway, sample) >= value)
            return true;
    }
    return false;
}

static void *shoot(void *arg)
{
    struct kit_shot *shot = arg;
    double start = kit_now();
    shot->status = kit_ask(shot->token, shot->reason, shot->retry_after);
    shot->seconds = kit_now() - start;
    return NULL;
}

void kit_shoot(struct kit_shot *shots, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cr_assert_eq(pthread_create(&shots[i].thread, NULL, shoot, &shots[i]), 0);
    for (size_t i = 0; i < n; i++)
        pthread_join(shots[i].thread, NULL);
}
