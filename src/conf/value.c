/*
 * A number always carries its unit, and a unit is never guessed: "timeout: 30" was a second in
 * one product and a millisecond in the next, so a bare number is a mistake.
 */
#include "conf/value.h"

#include <errno.h>
#include <inttypes.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Ascending; the first is what zero is printed in. */
static const struct unit span_units[] = {
    {"ms", 1000}, {"s", 1000000}, {"m", 60000000}, {"h", 3600000000}, {"d", 86400000000},
};
static const struct unit size_units[] = {
    {"kB", 1000},         {"KiB", 1024},      {"MB", 1000000},
    {"MiB", 1024 * 1024}, {"GB", 1000000000}, {"GiB", 1024ull * 1024 * 1024},
};

static int parse(struct sz_slice s, const struct unit *units, size_t n, const char *example, uint64_t *out,
                 struct sz_text *why)
{
    size_t digits = 0;
    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    struct sz_slice unit = sz_from(s, digits);
    uint64_t number;
    if (digits == 0) {
        sz_text_set(why, "'%.*s' is no number with a unit; write for example %s", SZ_FMT(s), example);
        return -EINVAL;
    }
    if (unit.n == 0) {
        sz_text_set(why, "'%.*s' has no unit; write for example %s", SZ_FMT(s), example);
        return -EINVAL;
    }
    for (size_t i = 0; i < n; i++) {
        if (!sz_eq(unit, sz_cstr(units[i].name)))
            continue;
        if (sz_parse_u64(sz_sub(s, 0, digits), INT64_MAX / units[i].factor, &number) != 0) {
            sz_text_set(why, "'%.*s' is too large a number", SZ_FMT(s));
            return -EINVAL;
        }
        *out = number * units[i].factor;
        return 0;
    }
    sz_text_set(why, "'%.*s' has an unknown unit '%.*s'; the units are", SZ_FMT(s), SZ_FMT(unit));
    for (size_t i = 0; i < n; i++)
        sz_text_add(why, " %s", units[i].name);
    return -EINVAL;
}

int sz_value_span(struct sz_slice s, uint64_t *out, struct sz_text *why)
{
    return parse(s, span_units, SZ_COUNT(span_units), "10s or 20ms", out, why);
}

int sz_value_size(struct sz_slice s, uint64_t *out, struct sz_text *why)
{
    return parse(s, size_units, SZ_COUNT(size_units), "4MB or 64KiB", out, why);
}

int sz_value_count(struct sz_slice s, uint64_t *out, struct sz_text *why)
{
    if (s.n > 0 && sz_parse_u64(s, INT64_MAX, out) == 0)
        return 0;
    sz_text_set(why, "'%.*s' is no whole number; write digits alone", SZ_FMT(s));
    return -EINVAL;
}

static void print(struct sz_buf *out, uint64_t value, const struct unit *units, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n && value > 0; i++) {
        if (value % units[i].factor == 0)
            best = i;
    }
    sz_buf_printf(out, "%" PRIu64 "%s", value / units[best].factor, units[best].name);
}

void sz_value_print_span(struct sz_buf *out, uint64_t us)
{
    print(out, us, span_units, SZ_COUNT(span_units));
}

void sz_value_print_size(struct sz_buf *out, uint64_t bytes)
{
    print(out, bytes, size_units, SZ_COUNT(size_units));
}
