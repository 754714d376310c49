/* breakers.c: what is listed shows, in order, and goes when it is removed. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "subzero/breakers.h"
#include "subzero/metrics.h"

TestSuite(breakers);

static struct sz_mono now = {1000000};
static struct sz_breaker redis, idp, replaced;

static void see(void *arg, const char *dependency, const struct sz_breaker_look *look)
{
    sz_buf_printf(arg, "%s=%s,%ld;", dependency, sz_breaker_state_name(look->state), (long)look->retry.us);
}

static char *list(void)
{
    struct sz_buf out = {0};
    sz_breakers_each(now, see, &out);
    sz_buf_add(&out, "", 1);
    return out.p;
}

static void expect(const char *text)
{
    char *is = list();
    cr_expect_str_eq(is, text);
    free(is);
}

Test(breakers, listed_by_name_until_removed)
{
    sz_breaker_init(&redis, 1, SZ_SEC(30), SZ_SEC(1), now);
    sz_breaker_init(&idp, 5, SZ_SEC(60), SZ_SEC(1), now);
    sz_breaker_init(&replaced, 1, SZ_SEC(60), SZ_SEC(1), now);
    expect("");
    sz_breakers_add("redis", &redis);
    sz_breakers_add("issuer:auth0", &replaced);
    expect("issuer:auth0=closed,0;redis=closed,0;");
    sz_breaker_tell(&replaced, sz_breaker_ask(&replaced, now), SZ_BREAKER_FAILURE, now);
    expect("issuer:auth0=open,60000000;redis=closed,0;");
    sz_breakers_add("issuer:auth0", &idp);
    expect("issuer:auth0=closed,0;redis=closed,0;");
    sz_breakers_remove(&replaced);
    expect("issuer:auth0=closed,0;redis=closed,0;");
    sz_breakers_remove(&idp);
    sz_breakers_remove(&redis);
    expect("");
}

Test(breakers, exposed_as_metrics)
{
    struct sz_buf out = {0};
    sz_metrics_init(1);
    sz_metrics_expose(&out);
    sz_buf_add(&out, "", 1);
    cr_expect_null(strstr(out.p, "subzero_breaker"));
    out.n = 0;
    sz_breaker_init(&redis, 1, SZ_SEC(30), SZ_SEC(1), now);
    sz_breaker_tell(&redis, sz_breaker_ask(&redis, now), SZ_BREAKER_FAILURE, now);
    sz_breakers_add("odd \"name\\", &redis);
    sz_metrics_expose(&out);
    sz_buf_add(&out, "", 1);
    static const char *const lines[] = {
        "# TYPE subzero_breaker_state gauge\nsubzero_breaker_state{dependency=\"odd \\\"name\\\\\"} 1\n",
        "# TYPE subzero_breaker_transitions_total counter\n",
        "subzero_breaker_transitions_total{dependency=\"odd \\\"name\\\\\",to=\"open\"} 1\n",
        "subzero_breaker_transitions_total{dependency=\"odd \\\"name\\\\\",to=\"closed\"} 0\n",
        "subzero_breaker_transitions_total{dependency=\"odd \\\"name\\\\\",to=\"half_open\"} 0\n"};
    for (size_t i = 0; i < SZ_COUNT(lines); i++)
        cr_expect_not_null(strstr(out.p, lines[i]), "%s", lines[i]);
    sz_breakers_remove(&redis);
    sz_buf_fini(&out);
    sz_metrics_fini();
}
