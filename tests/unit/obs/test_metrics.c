/* cells.c, series.c, expose.c, process.c: hostile label values, the limit, exactness under threads. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "fake/exposition.h"
#include "obs/series.h"
#include "subzero/log.h"

enum { THREADS = 3 };

static void setup(void)
{
    sz_metrics_init(THREADS);
}

static void teardown(void)
{
    sz_metrics_fini();
}

TestSuite(metrics, .init = setup, .fini = teardown, .timeout = 60);

static double scrape(const char *series)
{
    struct sz_buf b = {0};
    struct sz_text why;
    sz_metrics_expose(&b);
    cr_assert(exposition_valid(sz_buf_slice(&b), &why), "%s", why.s);
    double value = series == NULL ? 0 : exposition_value(sz_buf_slice(&b), series);
    sz_buf_fini(&b);
    return value;
}

Test(metrics, label_values_cannot_leave_their_quotes)
{
    static const char *const hostile[] = {
        "a\"} 1\nevil 2", "back\\slash", "line\nline", "\xFF\xC0\xAF", "", "{}=,", "é"};
    for (size_t i = 0; i < SZ_COUNT(hostile); i++)
        sz_count(0, sz_series1(SZ_METRIC_errors, hostile[i]), i + 1);
    cr_expect_eq(scrape("subzero_errors_total{component=\"a\\\"} 1\\nevil 2\"}"), 1);
    cr_expect_eq(scrape("subzero_errors_total{component=\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"}"), 4);
    cr_expect_eq(scrape("subzero_errors_total{component=\"\"}"), 5);
    cr_expect(isnan(scrape("evil")));
}

Test(metrics, the_limit_ends_in_other_and_never_in_an_error)
{
    char name[32];
    struct sz_series last = {0}, first = {0};
    for (int i = 0; i < SZ_SERIES_MAX + 100; i++) {
        snprintf(name, sizeof(name), "route-%d", i);
        const char *values[] = {name, "deny", "no_route"};
        last = sz_series(SZ_METRIC_requests, values);
        if (i == 0)
            first = last;
        sz_count(1, last, 1);
    }
    const char *again[] = {"route-0", "deny", "no_route"};
    cr_expect_eq(sz_series(SZ_METRIC_requests, again).at, first.at);
    cr_expect_gt(sz_counter_read(last), 100);                            /* they all count together */
    struct sz_series histogram = sz_series1(SZ_METRIC_duration, "auth"); /* another metric's overflow */
    cr_expect_neq(histogram.at, last.at);
    sz_observe(0, histogram, SZ_MS(1));
    struct sz_buf b = {0};
    sz_metrics_expose(&b);
    cr_expect_eq(exposition_value(sz_buf_slice(&b), "subzero_requests_total{route=\"other\",decision=\"other\",reason="
                                                    "\"other\"}"),
                 sz_counter_read(last));
    cr_expect_eq(exposition_value(sz_buf_slice(&b), "subzero_request_duration_seconds_count{handler=\"other\"}"), 1);
    sz_buf_fini(&b);
}

Test(metrics, a_zero_handle_counts_nothing_that_shows)
{
    struct sz_series none = {0};
    for (unsigned t = 0; t < THREADS; t++) {
        sz_count(t, none, 1000);
        sz_observe(t, none, SZ_SEC(100));
        sz_gauge_add(SZ_NO_LOOP, none, 5);
    }
    sz_gauge_set(none, 7);
    cr_expect_eq(scrape("subzero_verifications_shed_total"), 0);
    cr_expect_eq(scrape("subzero_requests_in_progress"), 0);
}

Test(metrics, handles_out_of_range_are_harmless)
{
    struct sz_series wild = {UINT32_MAX}, unused = {1 << 20};
    sz_count(0, wild, 1);
    sz_observe(THREADS, unused, SZ_MS(1));
    cr_expect_eq(sz_counter_read(wild), 0);
}

Test(metrics, buckets_are_inclusive_and_agree_with_the_count)
{
    struct sz_series s = sz_series1(SZ_METRIC_duration, "auth");
    sz_observe(0, s, SZ_US(50));
    sz_observe(1, s, SZ_US(51));
    sz_observe(2, s, SZ_US(-5)); /* a clock that went backwards counts as nothing */
    sz_observe(SZ_NO_LOOP, s, SZ_SEC(10));
    sz_observe(99, s, SZ_US(10000001)); /* a thread that was not announced shares */
    static const struct {
        const char *le;
        double count;
    } rows[] = {{"0.00005", 2}, {"0.0001", 3}, {"5", 3}, {"10", 4}, {"+Inf", 5}};
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        char name[128];
        snprintf(name, sizeof(name), "subzero_request_duration_seconds_bucket{handler=\"auth\",le=\"%s\"}", rows[i].le);
        cr_expect_eq(scrape(name), rows[i].count, "%s", rows[i].le);
    }
    cr_expect_eq(scrape("subzero_request_duration_seconds_count{handler=\"auth\"}"), 5);
    cr_expect_float_eq(scrape("subzero_request_duration_seconds_sum{handler=\"auth\"}"), 20.000102, 1e-9);
}

Test(metrics, bucket_names_are_the_bounds)
{
    struct sz_buf b = {0};
    sz_series1(SZ_METRIC_duration, "auth");
    sz_metrics_expose(&b);
    for (size_t i = 0; i < SZ_BUCKETS; i++) {
        char name[128];
        snprintf(name, sizeof(name), "subzero_request_duration_seconds_bucket{handler=\"auth\",le=\"%g\"}",
                 (double)sz_bucket_us[i] / 1e6);
        if (sz_bucket_us[i] == 50) /* %g would write 5e-05 */
            snprintf(name, sizeof(name), "subzero_request_duration_seconds_bucket{handler=\"auth\",le=\"0.00005\"}");
        cr_expect_eq(exposition_value(sz_buf_slice(&b), name), 0, "%s", name);
    }
    sz_buf_fini(&b);
}

Test(metrics, gauges_sum_over_threads_and_may_be_negative)
{
    struct sz_series s = sz_series(SZ_METRIC_in_progress, NULL);
    sz_gauge_add(0, s, 5);
    sz_gauge_add(1, s, -7); /* begun on one loop, ended on another */
    cr_expect_eq(scrape("subzero_requests_in_progress"), -2);
    struct sz_series reload = sz_series(SZ_METRIC_reload_ok, NULL);
    sz_gauge_set(reload, 1);
    cr_expect_eq(scrape("subzero_config_last_reload_successful"), 1);
    sz_gauge_set(reload, 0);
    cr_expect_eq(scrape("subzero_config_last_reload_successful"), 0);
}

Test(metrics, the_same_values_are_the_same_series)
{
    const char *a[] = {"r", "allow", "allowed"}, *b[] = {"r", "deny", "allowed"}, *c[] = {"ral", "low", "allowed"};
    cr_expect_eq(sz_series(SZ_METRIC_requests, a).at, sz_series(SZ_METRIC_requests, a).at);
    cr_expect_neq(sz_series(SZ_METRIC_requests, a).at, sz_series(SZ_METRIC_requests, b).at);
    cr_expect_neq(sz_series(SZ_METRIC_requests, a).at, sz_series(SZ_METRIC_requests, c).at);
    const char *l2[] = {"l2", "token"};
    cr_expect_neq(sz_series(SZ_METRIC_cache_hits, l2).at, sz_series(SZ_METRIC_cache_requests, l2).at);
}

static void *count_many(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    struct sz_series s = sz_series1(SZ_METRIC_errors, "edge");
    for (int i = 0; i < 100000; i++) {
        sz_count(thread < THREADS ? thread : SZ_NO_LOOP, s, 1);
        if (i % 1000 == 0) { /* new series meanwhile: nobody's cells may move */
            char name[32];
            snprintf(name, sizeof(name), "t%u-%d", thread, i);
            sz_count(SZ_NO_LOOP, sz_series1(SZ_METRIC_dependency, name), 1);
        }
    }
    return NULL;
}

Test(metrics, nothing_is_lost_between_threads)
{
    pthread_t threads[THREADS + 3]; /* three of them without a loop */
    for (uintptr_t i = 0; i < SZ_COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_many, (void *)i), 0);
    for (size_t i = 0; i < SZ_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    cr_expect_eq(sz_counter_read(sz_series1(SZ_METRIC_errors, "edge")), 100000 * SZ_COUNT(threads));
    scrape(NULL);
}

static void collect(void *arg, struct sz_buf *out)
{
    sz_buf_printf(out, "# HELP extra e\n# TYPE extra gauge\nextra %d\n", *(int *)arg);
    sz_series1(SZ_METRIC_errors, "collector"); /* no lock is held */
}

Test(metrics, collectors)
{
    int value = 42;
    sz_metrics_on_scrape(collect, &value);
    cr_expect_eq(scrape("extra"), 42);
}

Test(metrics, process_and_build)
{
    cr_expect_gt(scrape("process_resident_memory_bytes"), 1e5);
    cr_expect_gt(scrape("process_virtual_memory_bytes"), 1e6);
    cr_expect_gt(scrape("process_max_fds"), 16);
    cr_expect_geq(scrape("process_cpu_seconds_total"), 0);
    cr_expect_gt(scrape("process_start_time_seconds"), 1.7e9);
    double before = scrape("process_open_fds");
    int fd = dup(0);
    cr_expect_eq(scrape("process_open_fds"), before + 1);
    close(fd);
    struct sz_buf b = {0};
    sz_metrics_expose(&b);
    b.p[b.n - 1] = '\0';
    cr_expect_not_null(strstr(b.p, "subzero_build_info{version=\"" SZ_VERSION "\",compiler=\""));
    sz_buf_fini(&b);
}

Test(metrics, lines_that_the_log_lost_show)
{
    cr_expect_eq(scrape("subzero_log_lines_lost_total"), 0);
    int null[2];
    cr_assert_eq(pipe(null), 0);
    cr_assert_eq(sz_log_start(null[1], SZ_LOG_INFO), 0);
    cr_expect_not(sz_log_line(SZ_NONE));
    cr_expect_eq(scrape("subzero_log_lines_lost_total"), 1);
    sz_log_stop();
}

Test(metrics_off, a_module_needs_no_metrics_to_be_tested)
{
    struct sz_series s = sz_series1(SZ_METRIC_errors, "edge");
    sz_count(0, s, 1);
    sz_observe(0, s, SZ_MS(1));
    sz_gauge_set(s, 1);
    cr_expect_eq(sz_counter_read(s), 0);
}
