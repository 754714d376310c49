/* CEL: what compiles, what it gives, and what it refuses. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "fga/engine/cel.h"

static const struct sz_param params[] = {
    {{"a", 1}, SZ_P_ANY, SZ_P_NONE},       {{"b", 1}, SZ_P_BOOL, SZ_P_NONE},     {{"i", 1}, SZ_P_INT, SZ_P_NONE},
    {{"u", 1}, SZ_P_UINT, SZ_P_NONE},      {{"d", 1}, SZ_P_DOUBLE, SZ_P_NONE},   {{"s", 1}, SZ_P_STRING, SZ_P_NONE},
    {{"t", 1}, SZ_P_TIMESTAMP, SZ_P_NONE}, {{"h", 1}, SZ_P_DURATION, SZ_P_NONE}, {{"ip", 2}, SZ_P_IPADDRESS, SZ_P_NONE},
    {{"l", 1}, SZ_P_LIST, SZ_P_STRING},    {{"m", 1}, SZ_P_MAP, SZ_P_INT},       {{"n", 1}, SZ_P_LIST, SZ_P_INT},
};
static const char *const values[] = {"{\"k\":[1,\"x\",null]}",
                                     "true",
                                     "5",
                                     "7",
                                     "1.5",
                                     "\"hello\"",
                                     "\"2024-02-29T23:00:00+01:00\"",
                                     "\"1h30m\"",
                                     "\"::ffff:10.0.0.1\"",
                                     "[\"a\",\"b\"]",
                                     "{\"x\":1,\"y\":-2}",
                                     "[1,2,3]"};

enum { ERROR = -1, REFUSED = -2 };

static int eval(const char *text, struct sz_text *why)
{
    struct sz_cv vars[SZ_COUNT(params)];
    json_t *json[SZ_COUNT(params)];
    struct sz_arena arena;
    struct sz_cel *cel = sz_cel_compile(sz_cstr(text), params, SZ_COUNT(params), why);
    if (cel == NULL)
        return REFUSED;
    sz_arena_init(&arena);
    for (size_t i = 0; i < SZ_COUNT(params); i++) {
        json[i] = json_loads(values[i], JSON_DECODE_ANY, NULL);
        cr_assert_eq(sz_cv_from_json(json[i], params[i].type, params[i].element, &arena.pool, &vars[i], why), 0);
    }
    int result = sz_cel_eval(cel, vars, &arena.pool, why);
    for (size_t i = 0; i < SZ_COUNT(params); i++)
        json_decref(json[i]);
    sz_arena_fini(&arena);
    sz_cel_free(cel);
    return result < 0 ? ERROR : result;
}

static const struct {
    const char *text;
    int want;
} cases[] = {
    /* refused */
    {"", REFUSED},
    {"i", REFUSED},
    {"i >", REFUSED},
    {"nope == 1", REFUSED},
    {"i == u", REFUSED},
    {"i < 1.0", REFUSED},
    {"i + 1u == 6", REFUSED},
    {"s > 1", REFUSED},
    {"s.matches('[')", REFUSED},
    {"s.matches('a**')", REFUSED},
    {"s.nope()", REFUSED},
    {"nope(i)", REFUSED},
    {"99999999999999999999 == i", REFUSED},
    {"9223372036854775808 == i", REFUSED},
    {"'a", REFUSED},
    {"'\\q' == s", REFUSED},
    {"l.exists(x, x + 1 == 2)", REFUSED},
    {"i.all(x, true)", REFUSED},
    {"1 in s", REFUSED},
    {"i ? b : b", REFUSED},
    {"((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((b))))))))))))))))))))))))))))))))))))))))))))"
     "))))))))))))))))))))))))",
     REFUSED},
    /* numbers */
    {"i == 5 && u == 7u && d == 1.5", 1},
    {"-i == -5 && i - 7 == -2 && i * 2 == 10 && i / 2 == 2 && i % 2 == 1", 1},
    {"-9223372036854775808 < i", 1},
    {"9223372036854775807 + i > 0", ERROR},
    {"i / 0 == 1", ERROR},
    {"0u - u == 0u", ERROR},
    {"a.k[0] == 1 && a.k[0] < 2 && a.k[0] >= 1.0", 1},
    {"a.k[1] == 1", 0},
    {"a.k[1] < 1", ERROR},
    {"0x10 == 16 && 1e3 == 1000.0 && .5 < d", 1},
    /* errors are absorbed */
    {"false && i / 0 == 1", 0},
    {"i / 0 == 1 && false", 0},
    {"i / 0 == 1 || true", 1},
    {"i / 0 == 1 || false", ERROR},
    {"true ? b : i / 0 == 1", 1},
    {"!(i / 0 == 1)", ERROR},
    /* strings */
    {"s == 'hello' && s + '!' == \"hello!\" && s.startsWith('he') && s.endsWith('lo') && s.contains('ell')", 1},
    {"s.matches('^h.*o$') && s.matches('l{2}') && !s.matches('^e')", 1},
    {"'\\u00e4'.size() == 1 && size(s) == 5 && '''a\nb''' == 'a\\nb' && r'\\n' == '\\\\n'", 1},
    {"s < 'i' && s > 'b'", 1},
    {"string(i) == '5' && int('7') == 7 && double('1.5') == d && string(d) == '1.5'", 1},
    /* lists and maps */
    {"'a' in l && !('c' in l) && l[1] == 'b' && size(l) == 2", 1},
    {"l[2] == 'c'", ERROR},
    {"l[-1] == 'c'", ERROR},
    {"m['x'] == 1 && 'y' in m && has(m.x) && !has(m.z) && m.y == -2", 1},
    {"m['z'] == 1", ERROR},
    {"i in [1, 5] && [1] + [2] == [1, 2] && {'a': 1}['a'] == 1", 1},
    {"n.all(x, x > 0) && n.exists(x, x == 3) && n.exists_one(x, x > 2) && m.all(k, k < 'z')", 1},
    {"n.exists(x, x / 0 == 1 || x == 3)", 1},
    {"n.all(x, n.exists(y, y == x))", 1},
    {"[].all(x, false) && ![].exists(x, true)", 1},
    /* time */
    {"t == timestamp('2024-02-29T22:00:00Z') && t + h < timestamp('2024-03-01T00:00:00Z')", 1},
    {"t - timestamp('2024-02-29T21:00:00Z') == duration('1h') && h > duration('90s')", 1},
    {"t.getFullYear() == 2024 && t.getMonth() == 1 && t.getDate() == 29 && t.getDayOfWeek() == 4", 1},
    {"t.getHours() == 22 && t.getHours('+01:00') == 23 && h.getMinutes() == 90", 1},
    {"t.getHours('Europe/Paris') == 23", ERROR},
    {"timestamp('2023-02-29T00:00:00Z') == t", ERROR},
    {"timestamp('9999-12-31T23:59:59Z') + h > t", ERROR},
    /* addresses */
    {"ip.in_cidr('10.0.0.0/8') && ip == ipaddress('10.0.0.1') && !ip.in_cidr('10.0.0.0/32')", 1},
    {"ip.in_cidr('::ffff:10.0.0.0/104') && ipaddress('2001:db8::1').in_cidr('2001:db8::/32')", 1},
    {"ip.in_cidr('10.0.0.0')", ERROR},
    {"ip.in_cidr('10.0.0.0/33')", ERROR},
    {"ipaddress('010.0.0.1') == ip", ERROR},
    /* cost */
    {"n.all(x, n.all(y, n.all(z, x + y + z > 0)))", ERROR},
};

Test(cel, expressions)
{
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_text why = {""};
        int got = eval(cases[i].text, &why);
        cr_expect_eq(got, cases[i].want, "%s: got %d (%s), want %d", cases[i].text, got, why.s, cases[i].want);
    }
}

static const struct {
    enum sz_ptype type, element;
    const char *json;
    bool ok;
} casts[] = {
    {SZ_P_INT, SZ_P_NONE, "1", true},
    {SZ_P_INT, SZ_P_NONE, "1.0", true},
    {SZ_P_INT, SZ_P_NONE, "1.5", false},
    {SZ_P_INT, SZ_P_NONE, "\"-9223372036854775808\"", true},
    {SZ_P_INT, SZ_P_NONE, "\"1e3\"", true},
    {SZ_P_INT, SZ_P_NONE, "\"0x10\"", false},
    {SZ_P_INT, SZ_P_NONE, "\"\"", false},
    {SZ_P_INT, SZ_P_NONE, "true", false},
    {SZ_P_UINT, SZ_P_NONE, "-1", false},
    {SZ_P_DOUBLE, SZ_P_NONE, "\"0.5\"", true},
    {SZ_P_DOUBLE, SZ_P_NONE, "\"0.1\"", false},
    {SZ_P_DOUBLE, SZ_P_NONE, "\"1e400\"", false},
    {SZ_P_DOUBLE, SZ_P_NONE, "\"inf\"", false},
    {SZ_P_DOUBLE, SZ_P_NONE, "\"nan\"", false},
    {SZ_P_BOOL, SZ_P_NONE, "\"true\"", false},
    {SZ_P_STRING, SZ_P_NONE, "1", false},
    {SZ_P_DURATION, SZ_P_NONE, "\"1h2m3.5s\"", true},
    {SZ_P_DURATION, SZ_P_NONE, "\"-.5h\"", true},
    {SZ_P_DURATION, SZ_P_NONE, "\"0\"", true},
    {SZ_P_DURATION, SZ_P_NONE, "\"90\"", false},
    {SZ_P_DURATION, SZ_P_NONE, "\"1d\"", false},
    {SZ_P_DURATION, SZ_P_NONE, "\"9999999h\"", false},
    {SZ_P_TIMESTAMP, SZ_P_NONE, "\"2024-01-01T00:00:00.123456789Z\"", true},
    {SZ_P_TIMESTAMP, SZ_P_NONE, "\"2024-01-01T00:00:00\"", false},
    {SZ_P_TIMESTAMP, SZ_P_NONE, "\"2024-13-01T00:00:00Z\"", false},
    {SZ_P_TIMESTAMP, SZ_P_NONE, "\"2024-01-01T00:00:60Z\"", false},
    {SZ_P_TIMESTAMP, SZ_P_NONE, "\"2024-01-01t00:00:00z\"", false},
    {SZ_P_IPADDRESS, SZ_P_NONE, "\"fe80::1%eth0\"", true},
    {SZ_P_IPADDRESS, SZ_P_NONE, "\"1.2.3\"", false},
    {SZ_P_IPADDRESS, SZ_P_NONE, "\"1.2.3.4%x\"", false},
    {SZ_P_LIST, SZ_P_INT, "[1,\"2\"]", true},
    {SZ_P_LIST, SZ_P_INT, "[1,\"x\"]", false},
    {SZ_P_LIST, SZ_P_INT, "{}", false},
    {SZ_P_MAP, SZ_P_BOOL, "{\"a\":true}", true},
    {SZ_P_MAP, SZ_P_BOOL, "[]", false},
    {SZ_P_ANY, SZ_P_NONE, "[{\"a\":null}]", true},
};

Test(cel, casts)
{
    for (size_t i = 0; i < SZ_COUNT(casts); i++) {
        struct sz_arena arena;
        struct sz_cv v;
        struct sz_text why;
        json_t *json = json_loads(casts[i].json, JSON_DECODE_ANY, NULL);
        sz_arena_init(&arena);
        int err = sz_cv_from_json(json, casts[i].type, casts[i].element, &arena.pool, &v, &why);
        cr_expect_eq(err == 0, casts[i].ok, "%s as %d", casts[i].json, (int)casts[i].type);
        sz_arena_fini(&arena);
        json_decref(json);
    }
}

static const struct {
    const char *pattern, *text;
    int want; /* -1: refused */
} regexes[] = {
    {"", "", 1},
    {"a", "bab", 1},
    {"^a$", "a", 1},
    {"^a$", "ab", 0},
    {"^(a|bc)+$", "abcbca", 1},
    {"^(a|bc)+$", "abcb", 0},
    {"a{2,3}b", "ab", 0},
    {"^a{2,3}$", "aaa", 1},
    {"^a{2}$", "aaa", 0},
    {"^x*$", "", 1},
    {"[^a-c]", "abc", 0},
    {"[^a-c]", "abcd", 1},
    {"[]a]", "]", 1},
    {"[a\\-z]", "-", 1},
    {"\\d+\\.\\d+", "v1.25", 1},
    {"\\bcat\\b", "a cat.", 1},
    {"\\bcat\\b", "concat", 0},
    {"(?i)HELLO", "hello", 1},
    {"(?s)a.b", "a\nb", 1},
    {"a.b", "a\nb", 0},
    {"(?m)^b$", "a\nb\nc", 1},
    {"(?P<name>x)", "x", 1},
    {"\\x41\\x{42}", "AB", 1},
    {"^.$", "\xc3\xa4", 1},
    {"[[:alpha:]][[:^digit:]]", "ab", 1},
    {"\\Qa.b\\E", "a.b", 1},
    {"a{,2}", "a{,2}", 1},
    {"(((((a*)*)*)*)*)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 0},
    {"(", "", -1},
    {")", "", -1},
    {"[a", "", -1},
    {"[b-a]", "", -1},
    {"a{1001}", "", -1},
    {"(a{500}){500}", "", -1},
    {"((((){1000}){1000}){1000}){1000}", "", -1},
    {"\\1", "", -1},
    {"\\", "", -1},
    {"\\pL", "", -1},
    {"*a", "", -1},
    {"(?x)a", "", -1},
};

Test(regex, matches_in_linear_time)
{
    for (size_t i = 0; i < SZ_COUNT(regexes); i++) {
        struct sz_text why;
        struct sz_regex *re = sz_regex_compile(sz_cstr(regexes[i].pattern), &why);
        int got = re == NULL ? -1 : sz_regex_search(re, sz_cstr(regexes[i].text));
        cr_expect_eq(got, regexes[i].want, "%s on %s: got %d", regexes[i].pattern, regexes[i].text, got);
        sz_regex_free(re);
    }
}
