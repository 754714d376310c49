/* The strict reader itself: that it would notice. */
#include <criterion/criterion.h>
#include <math.h>

#include "fake/exposition.h"

#define GAUGE     "# HELP g h\n# TYPE g gauge\n"
#define HISTOGRAM "# HELP h x\n# TYPE h histogram\n"

Test(exposition, notices)
{
    static const char *const bad[] = {
        "",
        "g 1\n",
        GAUGE "g 1",
        GAUGE "g  1\n",
        GAUGE "g 1 \n",
        GAUGE "g x\n",
        GAUGE "g 1\ng 2\n",
        GAUGE "other 1\n",
        GAUGE "g{} 1\n",
        GAUGE "g{a=\"x} 1\n",
        GAUGE "g{a=\"\\x\"} 1\n",
        GAUGE "g{a=\"1\",a=\"2\"} 1\n",
        GAUGE "g{1a=\"x\"} 1\n",
        GAUGE "g{a=\"\xFF\"} 1\n",
        GAUGE "g 1\n" GAUGE,
        GAUGE "\n",
        "# HELP g h\ng 1\n",
        "# TYPE g gauge\n# HELP g h\n",
        "# HELP g_total h\n# TYPE g_total gauge\n",
        "# HELP c h\n# TYPE c counter\n",
        HISTOGRAM "h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
        HISTOGRAM "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
        HISTOGRAM "h_bucket{le=\"1\"} 1\nh_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
        HISTOGRAM "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n",
    };
    for (size_t i = 0; i < SZ_COUNT(bad); i++) {
        struct sz_text why;
        cr_expect_not(exposition_valid(sz_cstr(bad[i]), &why), "%s", bad[i]);
    }
    static const char good[] = GAUGE "g{a=\"x\\\"\\\\\\n\",b=\"\"} -1.5\ng{a=\"y\"} 2\n" HISTOGRAM
                                     "h_bucket{a=\"1\",le=\"1\"} 1\nh_bucket{a=\"1\",le=\"+Inf\"} 1\nh_sum{a=\"1\"} 1\n"
                                     "h_count{a=\"1\"} 1\nh_bucket{a=\"2\",le=\"1\"} 0\n"
                                     "h_bucket{a=\"2\",le=\"+Inf\"} 7\nh_sum{a=\"2\"} 1\nh_count{a=\"2\"} 7\n";
    struct sz_text why;
    cr_expect(exposition_valid(sz_cstr(good), &why), "%s", why.s);
    cr_expect_eq(exposition_value(sz_cstr(good), "g{a=\"y\"}"), 2);
    cr_expect(isnan(exposition_value(sz_cstr(good), "g{a=\"z\"}")));
}
