/* Keys over the network: found, fetched, kept through faults, outages and restarts. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "provider_kit.h"

TestSuite(provider_keys, .init = provider_kit_init, .fini = provider_kit_fini, .timeout = 120);

#define OK          "subzero_jwks_refresh_total{issuer=\"idp\",result=\"ok\"}"
#define UNAVAILABLE "subzero_jwks_refresh_total{issuer=\"idp\",result=\"unavailable\"}"
#define UNUSABLE    "subzero_jwks_refresh_total{issuer=\"idp\",result=\"unusable\"}"
#define STATE       "state_dir: \"{dir}/state\"\n"

Test(provider_keys, are_found_through_the_issuers_metadata)
{
    kit_start("", "");
    char *token = provider_jwt(kit_provider, "alice", 60, NULL);
    kit_expect(token, 200, "", "discovered");
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_DISCOVERY), 1);
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_JWKS), 1);
    cr_expect_eq(gateway_metric(&kit_gateway, OK), 1);
    cr_expect_geq(gateway_metric(&kit_gateway, "subzero_jwks_age_seconds{issuer=\"idp\"}"), 0);
    char *health = gateway_admin(&kit_gateway, "/health");
    cr_expect(strstr(health, "\"idp\":{\"status\":\"ok\",\"keys\":1") != NULL, "%s", health);
    free(health);
    free(token);
}

Test(provider_keys, are_found_through_rfc8414_where_openid_is_not_spoken)
{
    provider_play(kit_provider, PROVIDER_DISCOVERY, &(struct provider_script){.fault = PROVIDER_STATUS, .status = 404});
    kit_start("", ", discovery: auto");
    char *token = provider_jwt(kit_provider, "alice", 60, NULL);
    kit_expect(token, 200, "", "RFC 8414");
    cr_expect_eq(provider_calls(kit_provider, PROVIDER_METADATA), 1);
    free(token);
}

Test(provider_keys, metadata_of_another_issuer_is_not_believed)
{
    char yaml[160];
    struct provider *other = provider_start(&(struct provider_options){.issuer = "https://else.test/"});
    snprintf(yaml, sizeof(yaml), ", discovery: \"%s/.well-known/openid-configuration\"", provider_url(other));
    kit_start_cold("", yaml);
    cr_expect(kit_metric_reaches(UNUSABLE, 1, 5000));
    cr_expect_eq(provider_calls(other, PROVIDER_JWKS), 0);
    char *token = provider_jwt(kit_provider, "alice", 60, NULL);
    kit_expect(token, 503, "identity_unavailable", "no keys");
    char *health = gateway_admin(&kit_gateway, "/health");
    cr_expect(strstr(health, "another issuer's") != NULL, "%s", health);
    free(health);
    provider_stop(&other);
    free(token);
}

/* Whatever the answer to a refresh is, the keys that are there go on serving, and the next good one is taken. */
Test(provider_keys, no_fault_of_a_refresh_is_felt)
{
    static const enum provider_fault faults[] = {PROVIDER_STATUS, PROVIDER_TRUNCATE, PROVIDER_HTML,  PROVIDER_REDIRECT,
                                                 PROVIDER_HUGE,   PROVIDER_ENDLESS,  PROVIDER_EMPTY, PROVIDER_RESET,
                                                 PROVIDER_CLOSE,  PROVIDER_GARBAGE,  PROVIDER_FLOOD};
    char other[512];
    struct provider *elsewhere = provider_start(&(struct provider_options){0});
    kit_start("cache: {l1: {ttl: 1ms}}\n", ", cooldown: 100ms");
    long before = gateway_status_kb(&kit_gateway, "VmRSS");
    char *good = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(good, 200, "", "at first");
    snprintf(other, sizeof(other), "%s/jwks", provider_url(elsewhere));
    for (size_t i = 0; i < SZ_COUNT(faults); i++) {
        for (int metadata = 0; metadata < 2; metadata++) {
            enum provider_endpoint endpoint = metadata ? PROVIDER_DISCOVERY : PROVIDER_JWKS;
            struct provider_script script = {.fault = faults[i], .status = faults[i] == PROVIDER_STATUS ? 500 : 0};
            snprintf(script.location, sizeof(script.location), "%s", other);
            if (metadata) /* a failure of the keys has the metadata looked up again */
                provider_play(kit_provider, PROVIDER_JWKS,
                              &(struct provider_script){.fault = PROVIDER_STATUS, .status = 500, .times = 1});
            provider_play(kit_provider, endpoint, &script);
            double failed = gateway_metric(&kit_gateway, UNAVAILABLE) + gateway_metric(&kit_gateway, UNUSABLE);
            kit_sleep(110); /* the cooldown */
            provider_rotate(kit_provider, true);
            char *fresh = provider_jwt(kit_provider, "bob", 600, NULL);
            char reason[64];
            int status = kit_ask(fresh, reason, NULL);
            cr_expect(status == 503, "fault %d of %d: %d %s", (int)faults[i], (int)endpoint, status, reason);
            kit_expect(good, 200, "", "a known key");
            cr_expect_gt(gateway_metric(&kit_gateway, UNAVAILABLE) + gateway_metric(&kit_gateway, UNUSABLE), failed);
            provider_fault(kit_provider, PROVIDER_JWKS, PROVIDER_WELL);
            provider_fault(kit_provider, endpoint, PROVIDER_WELL);
            double start = kit_now();
            while (kit_ask(fresh, NULL, NULL) != 200 && kit_now() < start + 6)
                kit_sleep(50);
            cr_expect_lt(kit_now() - start, 4.5, "fault %d of %d is held for %.1f s", (int)faults[i], (int)endpoint,
                         kit_now() - start);
            good = (free(good), fresh);
        }
    }
    cr_expect_eq(provider_calls(elsewhere, PROVIDER_JWKS), 0, "a redirect is not followed");
    cr_expect_lt(gateway_status_kb(&kit_gateway, "VmRSS"), before + 60 * 1024);
    provider_stop(&elsewhere);
    free(good);
}

Test(provider_keys, an_outage_is_felt_after_max_stale_alone)
{
    provider_play(kit_provider, PROVIDER_JWKS, &(struct provider_script){.cache_control = "public, max-age=1"});
    kit_start("cache: {l1: {ttl: 1ms}}\n", ", max_stale: 3s, cooldown: 100ms");
    char *token = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "at first");
    provider_refuse(kit_provider);
    cr_expect(kit_metric_reaches(UNAVAILABLE, 1, 4000));
    kit_expect(token, 200, "", "stale keys serve");
    char *health = gateway_admin(&kit_gateway, "/health");
    cr_expect(strstr(health, "\"idp\":{\"status\":\"stale\"") != NULL, "%s", health);
    free(health);
    kit_sleep(3500);
    char reason[64], retry_after[32];
    cr_expect_eq(kit_ask(token, reason, retry_after), 503);
    cr_expect_str_eq(reason, "identity_unavailable");
    cr_expect_geq(strtol(retry_after, NULL, 10), 1);
    cr_expect(kit_ready(true, 100), "an outage takes no instance out of service");
    provider_accept(kit_provider);
    double end = kit_now() + 20;
    while (kit_ask(token, NULL, NULL) != 200 && kit_now() < end)
        kit_sleep(100);
    kit_expect(token, 200, "", "back again");
    free(token);
}

Test(provider_keys, a_cold_start_waits_for_the_first_keys_and_begins_with_saved_ones)
{
    provider_refuse(kit_provider);
    kit_start_cold(STATE, "");
    cr_expect(kit_ready(false, 1000), "no keys yet");
    char *token = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(token, 503, "identity_unavailable", "no keys yet");
    provider_accept(kit_provider);
    cr_expect(kit_ready(true, 8000));
    kit_expect(token, 200, "", "fetched");
    for (int i = 0; i < 100 && gateway_metric(&kit_gateway, OK) < 1; i++)
        kit_sleep(20);
    kit_sleep(200); /* saved beside the traffic */
    stop_gateway(&kit_gateway);
    provider_refuse(kit_provider);
    kit_start(STATE, "");
    kit_expect(token, 200, "", "with the provider down");
    cr_expect(gateway_logged(&kit_gateway, "1 saved keys"));
    provider_accept(kit_provider);
    free(token);
}

Test(provider_keys, a_state_dir_that_is_not_ours_alone_stops_the_start)
{
    char path[512], yaml[600];
    snprintf(path, sizeof(path), "%s/open", scratch_path());
    cr_assert_eq(mkdir(path, 0755), 0);
    snprintf(yaml, sizeof(yaml), "state_dir: \"%s\"\n", path);
    char *text = kit_yaml(yaml, "");
    kit_gateway.port = free_port();
    kit_gateway.admin = free_port();
    kit_gateway.upstream = 1;
    gateway_rewrite(&kit_gateway, text); /* ports of nobody: it never listens */
    free(text);
    struct proc p = {0};
    const char *argv[] = {SZ_BINARY, "serve", "-c", kit_gateway.config, NULL};
    cr_expect_neq(proc_run(&p, "refused", 20, argv), 0);
    size_t n;
    char *log = file_read(p.log, &n);
    cr_expect(strstr(log, "its mode is 0755") != NULL, "%s", log);
    free(log);
    kit_start("", "");
}

Test(provider_keys, a_reload_keeps_providers_whose_settings_stand)
{
    kit_start("", ", cooldown: 60s");
    char *token = provider_jwt(kit_provider, "alice", 600, NULL);
    kit_expect(token, 200, "", "at first");
    provider_refuse(kit_provider);
    char *yaml = kit_yaml("limits: {max_in_flight: 5000}\n", ", cooldown: 60s, leeway: 3s");
    gateway_rewrite(&kit_gateway, yaml);
    cr_expect(gateway_reload(&kit_gateway));
    kit_expect(token, 200, "", "verified anew, with the keys that were there");
    free(yaml);
    yaml = kit_yaml("", ", cooldown: 61s"); /* another provider: it has to ask, and cannot */
    gateway_rewrite(&kit_gateway, yaml);
    cr_expect(gateway_reload(&kit_gateway));
    kit_sleep(100);
    cr_expect_eq(kit_ask(token, NULL, NULL), 503);
    provider_accept(kit_provider);
    double end = kit_now() + 8;
    while (kit_ask(token, NULL, NULL) != 200 && kit_now() < end)
        kit_sleep(50);
    kit_expect(token, 200, "", "asked again");
    free(yaml);
    free(token);
}
