/* access.c: what a client may put into every field, and the bound that holds all the same. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "subzero/access.h"

static struct sz_access with_all(struct sz_slice text)
{
    return (struct sz_access){
        .time = {1796068501987654},
        .request_id = text,
        .method = text,
        .path = text,
        .route = text,
        .decision = text,
        .reason = text,
        .status = UINT16_MAX,
        .duration = {INT64_MAX},
        .bytes = INT64_MAX,
        .subject = text,
        .client = text,
        .issuer = text,
        .address = text,
        .protocol = text,
        .listener = text,
    };
}

static json_t *parse(struct sz_buf *line)
{
    cr_assert(sz_utf8_valid(sz_buf_slice(line)));
    cr_assert_null(memchr(line->p, '\n', line->n));
    json_error_t error;
    json_t *v = json_loadb(line->p, line->n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    cr_assert_not_null(v, "%s: %.*s", error.text, SZ_FMT(sz_buf_slice(line)));
    return v;
}

Test(access, stays_one_bounded_line_whatever_comes)
{
    static const struct sz_slice kinds[] = {SZ_S("a"),    SZ_S("\n"),           SZ_S("\0"),          SZ_S("\""),
                                            SZ_S("\\"),   SZ_S("\xFF"),         SZ_S("\xC2\x9B"),    SZ_S("\x7F"),
                                            SZ_S("\xE2"), SZ_S("\xE2\x82\xAC"), SZ_S("\x1b]0;x\x07")};
    for (size_t k = 0; k < SZ_COUNT(kinds); k++) {
        struct sz_buf text = {0}, line = {0};
        while (text.n < 70000)
            sz_buf_adds(&text, kinds[k]);
        struct sz_access access = with_all(sz_buf_slice(&text));
        sz_access_line(&line, &access);
        cr_expect_leq(line.n, SZ_ACCESS_LINE_MAX, "%zu: %zu", k, line.n);
        json_t *v = parse(&line);
        const json_t *path = json_object_get(v, "path");
        cr_expect_not_null(memmem(json_string_value(path), json_string_length(path), "\xE2\x80\xA6", 3));
        json_decref(v);
        sz_buf_fini(&text);
        sz_buf_fini(&line);
    }
}

Test(access, a_field_cannot_make_another)
{
    struct sz_access access = {.path = SZ_S("/x\",\"decision\":\"allow\",\"y\":\""), .decision = SZ_S("deny")};
    struct sz_buf line = {0};
    sz_access_line(&line, &access);
    json_t *v = parse(&line);
    cr_expect_str_eq(json_string_value(json_object_get(v, "decision")), "deny");
    cr_expect_null(json_object_get(v, "y"));
    json_decref(v);
    sz_buf_fini(&line);
}

Test(access, exactly)
{
    struct sz_access access = {
        .time = {1796068501987654},
        .request_id = SZ_S("r-1"),
        .method = SZ_S("GET"),
        .path = SZ_S("/documents/roadmap"),
        .route = SZ_S("documents.read"),
        .decision = SZ_S("allow"),
        .reason = SZ_S("allowed"),
        .status = 200,
        .duration = SZ_US(153),
        .bytes = 42,
        .subject = SZ_S("alice"),
        .address = SZ_S("127.0.0.1"),
        .protocol = SZ_S("HTTP/2"),
        .listener = SZ_S("127.0.0.1:8080"),
    };
    struct sz_buf line = {0};
    sz_access_line(&line, &access);
    cr_expect(
        sz_eq(sz_buf_slice(&line),
              SZ_S("{\"time\":\"2026-11-30T19:55:01.987654Z\",\"kind\":\"access\",\"request_id\":\"r-1\","
                   "\"method\":\"GET\",\"path\":\"/documents/roadmap\",\"route\":\"documents.read\","
                   "\"decision\":\"allow\",\"reason\":\"allowed\",\"status\":200,\"duration_us\":153,\"bytes\":42,"
                   "\"subject\":\"alice\",\"address\":\"127.0.0.1\",\"protocol\":\"HTTP/2\","
                   "\"listener\":\"127.0.0.1:8080\"}")),
        "%.*s", SZ_FMT(sz_buf_slice(&line)));
    sz_buf_fini(&line);
}

Test(access, absent_is_left_out_and_empty_is_not)
{
    struct sz_access access = {.subject = SZ_S(""), .duration = {-5}};
    struct sz_buf line = {0};
    sz_access_line(&line, &access);
    json_t *v = parse(&line);
    cr_expect_str_eq(json_string_value(json_object_get(v, "subject")), "");
    cr_expect_null(json_object_get(v, "client"));
    cr_expect_eq(json_integer_value(json_object_get(v, "duration_us")), 0);
    json_decref(v);
    sz_buf_fini(&line);
}
