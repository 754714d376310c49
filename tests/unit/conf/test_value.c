/* Numbers with units, from text and back. */
#include "conf_test.h"

#include <errno.h>
#include <inttypes.h>

#include "conf/value.h"

Test(value, refused)
{
    static const char *const spans[] = {
        "",          "s", "1", "-1s", "1 s", "1S", "1sec", "1.5s", "1s1s", "0x1s", "1us", "1w", "9223372036854775808ms",
        "106751992d"};
    static const char *const sizes[] = {"",    "MB",   "1",     "1B",   "1mb",         "1Mb",
                                        "1KB", "1 MB", "1MBit", "-1MB", "9223372037GB"};
    static const char *const counts[] = {"", "-1", "+1", "1 ", "0x1", "1e3", "1_000", "1.0", "9223372036854775808"};
    uint64_t out = 42;
    struct sz_text why;
    for (size_t i = 0; i < SZ_COUNT(spans); i++)
        cr_expect_eq(sz_value_span(sz_cstr(spans[i]), &out, &why), -EINVAL, "%s", spans[i]);
    for (size_t i = 0; i < SZ_COUNT(sizes); i++)
        cr_expect_eq(sz_value_size(sz_cstr(sizes[i]), &out, &why), -EINVAL, "%s", sizes[i]);
    for (size_t i = 0; i < SZ_COUNT(counts); i++)
        cr_expect_eq(sz_value_count(sz_cstr(counts[i]), &out, &why), -EINVAL, "%s", counts[i]);
    cr_expect_eq(out, 42);
}

Test(value, read_and_printed)
{
    static const struct {
        const char *text;
        uint64_t value;
        const char *printed;
        bool size;
    } cases[] = {
        {"0s", 0, "0ms", false},           {"20ms", 20000, "20ms", false},    {"10s", 10000000, "10s", false},
        {"1000ms", 1000000, "1s", false},  {"90s", 90000000, "90s", false},   {"120s", 120000000, "2m", false},
        {"1h", 3600000000, "1h", false},   {"24h", 86400000000, "1d", false}, {"2d", 172800000000, "2d", false},
        {"0MB", 0, "0kB", true},           {"4kB", 4000, "4kB", true},        {"4KiB", 4096, "4KiB", true},
        {"4MB", 4000000, "4MB", true},     {"1MiB", 1048576, "1MiB", true},   {"1024KiB", 1048576, "1MiB", true},
        {"128kB", 128000, "125KiB", true}, {"1GB", 1000000000, "1GB", true},  {"1GiB", 1073741824, "1GiB", true},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        uint64_t out = 0, again = 0;
        struct sz_text why;
        struct sz_buf printed = {0};
        int rc = cases[i].size ? sz_value_size(sz_cstr(cases[i].text), &out, &why)
                               : sz_value_span(sz_cstr(cases[i].text), &out, &why);
        cr_expect_eq(rc, 0, "%s: %s", cases[i].text, why.s);
        cr_expect_eq(out, cases[i].value, "%s: %" PRIu64, cases[i].text, out);
        if (cases[i].size)
            sz_value_print_size(&printed, out);
        else
            sz_value_print_span(&printed, out);
        cr_expect(sz_eq(sz_buf_slice(&printed), sz_cstr(cases[i].printed)), "%s: %.*s", cases[i].text,
                  SZ_FMT(sz_buf_slice(&printed)));
        rc = cases[i].size ? sz_value_size(sz_buf_slice(&printed), &again, &why)
                           : sz_value_span(sz_buf_slice(&printed), &again, &why);
        cr_expect(rc == 0 && again == out, "%s does not come back", cases[i].text);
        sz_buf_fini(&printed);
    }
}
