/* Threat scores: what needs something else. */
#include "conf_test.h"

#define ROUTE "  - {id: r, match: {path: \"/r/{id}\"}, auth: {issuers: [main]}, upstream: up}\n"

static void load(struct conf_try *t, const char *extra)
{
    char *yaml = conf_base(extra, ROUTE);
    conf_try(t, yaml);
    free(yaml);
}

Test(threat, blocks_are_shared_through_a_redis_that_is_configured)
{
    struct conf_try t;
    char with[512];
    load(&t, "threat: {share: true}\n");
    cr_expect_null(t.conf);
    cr_expect(conf_has(&t, 0, 0, "'share' needs 'redis'"), "%s", conf_messages(&t));
    conf_done(&t);
    snprintf(with, sizeof(with), "redis: {url: \"redis://127.0.0.1\", key_file: \"%s\"}\nthreat: {share: true}\n",
             conf_write("fleet.key", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n", 0600));
    load(&t, with);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect(t.conf->threat.share);
    conf_done(&t);
    load(&t, "threat: {mode: enforce}\n");
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect_not(t.conf->threat.share);
    conf_done(&t);
}
