/*
 * Conditions: the part of CEL that authorization models use, compiled once per model.
 *
 * Text -> tree (cel_parse.c) -> types checked (cel_check.c) -> bytecode (cel_emit.c) -> answer (cel_eval.c).
 * Errors are values: `false && error` is false, `true || error` is true, anything else with an error in it is
 * that error.  Work is bounded: the cost of an evaluation is counted and limited to 100, `matches` is linear in
 * pattern x text, and no construct loops but exists/exists_one/all over a given list or map.
 */
#ifndef SZ_ENGINE_CEL_H
#define SZ_ENGINE_CEL_H

#include "fga/engine/model.h"

enum sz_cv_kind {
    CV_ERROR, /* s: what went wrong */
    CV_NULL,
    CV_BOOL,
    CV_INT,
    CV_UINT,
    CV_DOUBLE,
    CV_STRING,
    CV_TIMESTAMP, /* t */
    CV_DURATION,  /* i: nanoseconds */
    CV_LIST,
    CV_MAP,
    CV_IP,
};

struct sz_cv { /* 24 bytes; points into whoever made it */
    enum sz_cv_kind kind;
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double d;
        struct sz_slice s;
        struct {
            int64_t sec; /* since 1970 */
            int32_t nano;
        } t;
        const struct sz_cv_list *list;
        const struct sz_cv_map *map;
        const struct sz_ip *ip;
    };
};
struct sz_cv_list {
    size_t n;
    const struct sz_cv *v;
};
struct sz_cv_map { /* keys are strings in data; literals may have others */
    size_t n;
    const struct sz_cv *keys, *values;
};
struct sz_ip {
    uint8_t b[16]; /* IPv4: the first four */
    bool v6;
    struct sz_slice zone;
};

static inline struct sz_cv sz_cv_bool(bool b)
{
    return (struct sz_cv){.kind = CV_BOOL, .b = b};
}
static inline struct sz_cv sz_cv_int(int64_t i)
{
    return (struct sz_cv){.kind = CV_INT, .i = i};
}
static inline struct sz_cv sz_cv_string(struct sz_slice s)
{
    return (struct sz_cv){.kind = CV_STRING, .s = s};
}
static inline struct sz_cv sz_cv_error(const char *text) /* static text */
{
    return (struct sz_cv){.kind = CV_ERROR, .s = sz_cstr(text)};
}

/* CEL's equality (numbers by value whatever their type); different kinds are unequal. */
bool sz_cv_equal(const struct sz_cv *a, const struct sz_cv *b);
/* -1, 0, 1; 2: not comparable (different kinds, NaN). */
int sz_cv_compare(const struct sz_cv *a, const struct sz_cv *b);

/*
 * A JSON value (json_t *) as a parameter of this type, converted as the API does; texts point into the JSON,
 * lists into `pool`.  -EINVAL: not such a value, *why says so.
 */
int sz_cv_from_json(const void *json, enum sz_ptype type, enum sz_ptype element, struct sz_pool *pool,
                    struct sz_cv *out, struct sz_text *why) SZ_MUST_CHECK;

/* Go's duration syntax ("1h30m", "-1.5s", "300ms"), in nanoseconds. */
int sz_duration_parse(struct sz_slice s, int64_t *nanos) SZ_MUST_CHECK;
/* RFC 3339 with a zone. */
int sz_timestamp_parse(struct sz_slice s, int64_t *sec, int32_t *nano) SZ_MUST_CHECK;
/* Days since 1970 of a proleptic Gregorian date and back; month from 1. */
int64_t sz_days_from_civil(int64_t year, unsigned month, unsigned day);
void sz_civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day);
struct sz_slice sz_timestamp_text(int64_t sec, int32_t nano, struct sz_pool *pool);
struct sz_slice sz_duration_text(int64_t nanos, struct sz_pool *pool); /* seconds: "1.5s" */

/* An IPv4 or IPv6 address; an IPv4-mapped one counts as IPv4. */
int sz_ip_parse(struct sz_slice s, struct sz_ip *out) SZ_MUST_CHECK;
/* 1 in the prefix, 0 not, -EINVAL: not a prefix. */
int sz_ip_in_cidr(const struct sz_ip *ip, struct sz_slice cidr) SZ_MUST_CHECK;

/* RE2's syntax without captures and Unicode classes; matching takes time linear in the text. */
struct sz_regex;
struct sz_regex *sz_regex_compile(struct sz_slice pattern, struct sz_text *why); /* NULL: *why; heap */
bool sz_regex_search(const struct sz_regex *re, struct sz_slice text);           /* any thread */
void sz_regex_free(struct sz_regex *re);

/* ---- conditions ---- */

struct sz_cel;

/* NULL: the expression does not compile or is no bool; *why says where and what.  Heap; immutable, any thread. */
struct sz_cel *sz_cel_compile(struct sz_slice expression, const struct sz_param *params, size_t n, struct sz_text *why);
void sz_cel_free(struct sz_cel *cel);
/* 1 true, 0 false, -EINVAL: an error, *why says which.  vars[i] is the i-th parameter's value. */
int sz_cel_eval(const struct sz_cel *cel, const struct sz_cv *vars, struct sz_pool *scratch, struct sz_text *why);

#define SZ_CEL_COST_MAX 100

#endif
