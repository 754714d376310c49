/* ${...}: a variable can be a value and nothing else. */
#include "conf_test.h"

#define ROUTE "  - id: r\n    match: {path: /}\n    public: true\n    upstream: up\n    set_headers:\n      X: %s\n"

static void value(struct conf_try *t, const char *written)
{
    char route[512];
    snprintf(route, sizeof(route), ROUTE, written);
    char *yaml = conf_base("", route);
    conf_try(t, yaml);
    free(yaml);
}

Test(env, a_variable_cannot_add_anything)
{
    static const char *const hostile[] = {"x, public: true",
                                          "x}\nroutes: []",
                                          "\"x\"",
                                          "[x]",
                                          "{x: y}",
                                          "x # y",
                                          "'",
                                          "&a x",
                                          "*a",
                                          "!!x",
                                          "${X}",
                                          "- x"};
    for (size_t i = 0; i < SZ_COUNT(hostile); i++) {
        struct conf_try t;
        setenv("SZ_TEST", hostile[i], 1);
        value(&t, "\"a${SZ_TEST}b\"");
        if (strchr(hostile[i], '{') != NULL || strchr(hostile[i], '\n') != NULL) {
            cr_expect_null(t.conf, "a template's variable, or a control character: %s", hostile[i]);
        } else {
            char want[64];
            snprintf(want, sizeof(want), "a%sb", hostile[i]);
            cr_assert_not_null(t.conf, "%s: %s", hostile[i], conf_messages(&t));
            cr_expect(sz_eq(t.conf->routes[0].headers[0].value.source, sz_cstr(want)), "%s", want);
        }
        conf_done(&t);
    }
}

Test(env, mistakes)
{
    static const struct {
        const char *written, *says;
    } cases[] = {
        {"${SZ_UNSET}", "SZ_UNSET is not set; set it, or write ${SZ_UNSET:-default}"},
        {"${SZ_EMPTY}", "SZ_EMPTY is not set"},
        {"\"${SZ_UNSET:-}\"", "is empty"},
        {"\"${\"", "without its '}'"},
        {"\"${}\"", "is not understood"},
        {"\"${1A}\"", "is not understood"},
        {"\"${A B}\"", "is not understood"},
        {"\"${A:b}\"", "is not understood"},
        {"\"${A:\"", "without its '}'"},
        {"\"${A-b}\"", "is not understood"},
    };
    unsetenv("SZ_UNSET");
    setenv("SZ_EMPTY", "", 1);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        value(&t, cases[i].written);
        cr_expect(conf_has(&t, 12, 10, cases[i].says), "%s: %s", cases[i].written, conf_messages(&t));
        cr_expect_eq(t.m.errors, 1, "one mistake is enough: %s", conf_messages(&t));
        conf_done(&t);
    }
}

Test(env, values)
{
    static const struct {
        const char *written, *want;
    } cases[] = {
        {"${SZ_TEST}", "word"},
        {"x-${SZ_TEST}-y", "x-word-y"},
        {"${SZ_TEST}${SZ_TEST}", "wordword"},
        {"${SZ_UNSET:-other}", "other"},
        {"\"${SZ_UNSET:-a:-b}\"", "a:-b"},
        {"\"$${{SZ_TEST}}\"", "${{SZ_TEST}}"},
        {"$SZ_TEST", "$SZ_TEST"},
        {"\"$$\"", "$$"},
        {"${SZ_EMPTY:-filled}", "filled"},
    };
    unsetenv("SZ_UNSET");
    setenv("SZ_EMPTY", "", 1);
    setenv("SZ_TEST", "word", 1);
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct conf_try t;
        value(&t, cases[i].written);
        cr_assert_not_null(t.conf, "%s: %s", cases[i].written, conf_messages(&t));
        cr_expect(sz_eq(t.conf->routes[0].headers[0].value.source, sz_cstr(cases[i].want)), "%s: %.*s",
                  cases[i].written, SZ_FMT(t.conf->routes[0].headers[0].value.source));
        conf_done(&t);
    }
}

/* Numbers, booleans and lists' entries may come from variables as well. */
Test(env, typed_values)
{
    struct conf_try t;
    setenv("SZ_N", "9", 1);
    setenv("SZ_T", "3s", 1);
    setenv("SZ_B", "true", 1);
    char *yaml = conf_base(
        "workers: ${SZ_N}\nlimits: {drain: \"${SZ_T}\"}\nadmin: {address: 127.0.0.1:1, open_metrics: \"${SZ_B}\"}\n",
        "  - {id: r, match: {path: /, methods: [\"${SZ_M:-GET}\"]}, public: true, upstream: up}\n");
    conf_try(&t, yaml);
    cr_assert_not_null(t.conf, "%s", conf_messages(&t));
    cr_expect_eq(t.conf->workers, 9);
    cr_expect_eq(t.conf->limits.drain.us, 3000000);
    cr_expect(t.conf->admin.open_metrics);
    cr_expect(sz_eq(t.conf->routes[0].match.methods.v[0], SZ_S("GET")));
    conf_done(&t);
    free(yaml);
}
