/* trace_context.c: the grammar of W3C Trace Context, hostile first; the sampler; ids. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "subzero/trace_context.h"

#define ID   "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

Test(trace_context, what_is_no_traceparent)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-" ID "-" SPAN "-0",
        "00-" ID "-" SPAN "-",
        "00-" ID "-" SPAN "-01-",
        "00-" ID "-" SPAN "-01-what-the-future-will-be-like",
        "00-" ID "-" SPAN "-01 ",
        " 00-" ID "-" SPAN "-01",
        "00-" ID "-" SPAN "-0G",
        "00-" ID "-" SPAN "-.0",
        "0-" ID "-" SPAN "-01",
        ".0-" ID "-" SPAN "-01",
        "0G-" ID "-" SPAN "-01",
        "ff-" ID "-" SPAN "-01",
        "FF-" ID "-" SPAN "-01",
        "cc-" ID "-" SPAN "-01.what-the-future-will-be-like",
        "cc-" ID "-" SPAN "-01x",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" ID "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00-" ID "-B7AD6B7169203331-01",
        "00-" ID "-" SPAN "-0A",
        "00_" ID "-" SPAN "-01",
        "00-" ID "_" SPAN "-01",
        "00-" ID "-" SPAN "_01",
        "00-0af7651916cd43dd8448eb211c80319-b7ad6b71692033310-01",
        "00-\xC3\xA9"
        "f7651916cd43dd8448eb211c80319c-" SPAN "-01",
    };
    struct sz_trace_parent parent;
    for (size_t i = 0; i < SZ_COUNT(bad); i++)
        cr_expect_not(sz_traceparent_parse(sz_cstr(bad[i]), &parent), "%s", bad[i]);
    cr_expect_not(sz_traceparent_parse(SZ_NONE, &parent));
}

Test(trace_context, what_is_one)
{
    struct sz_trace_parent p;
    char text[SZ_TRACEPARENT];
    cr_assert(sz_traceparent_parse(SZ_S("00-" ID "-" SPAN "-01"), &p));
    cr_expect(p.flags == 1 && !p.later_version && p.trace_id[0] == 0x0a && p.span_id[7] == 0x31);
    sz_traceparent_write(&p, text);
    cr_expect(sz_eq(sz_slice(text, sizeof(text)), SZ_S("00-" ID "-" SPAN "-01")));
    cr_assert(sz_traceparent_parse(SZ_S("00-" ID "-" SPAN "-00"), &p));
    cr_expect_eq(p.flags, 0);
    cr_assert(sz_traceparent_parse(SZ_S("00-" ID "-" SPAN "-ff"), &p));
    sz_traceparent_write(&p, text); /* bits that nobody here knows are not passed on as ours */
    cr_expect(sz_eq(sz_slice(text + 53, 2), SZ_S("01")));
    cr_assert(sz_traceparent_parse(SZ_S("cc-" ID "-" SPAN "-01-what-the-future-will-be-like"), &p));
    cr_expect(p.later_version);
    cr_assert(sz_traceparent_parse(SZ_S("cc-" ID "-" SPAN "-01"), &p));
    cr_assert(sz_traceparent_parse(SZ_S("01-" ID "-" SPAN "-00-"), &p));
}

static bool state_ok(const char *a, const char *b)
{
    struct sz_tracestate state = {.n = 0};
    return sz_tracestate_add(&state, sz_cstr(a)) && (b == NULL || sz_tracestate_add(&state, sz_cstr(b)));
}

Test(trace_context, tracestate)
{
    static const char *const good[] = {"",
                                       "foo=1",
                                       "foo=1,bar=2",
                                       "foo=1 \t , \t bar=2, \t baz=3",
                                       "foo=1,",
                                       ",foo=1",
                                       ",",
                                       "foo@bar=1",
                                       "0foo@bar=1",
                                       "a-z*/_0=v w",
                                       "foo= 1 2",
                                       "t@vvvvvvvvvvvvvv=1",
                                       "foo=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~"};
    static const char *const bad[] = {"foo",        "foo=",          "=1",          "foo=1=2",    "foo=1;bar=2 ,x",
                                      "FOO=1",      "foo.bar=1",     "foo =1",      "foo@=1",     "@foo=1",
                                      "foo@@bar=1", "foo@bar@baz=1", "0foo=1",      "foo@0bar=1", "t@vvvvvvvvvvvvvvv=1",
                                      "foo=\x01",   "foo=\xC3\xA9",  "foo=1,foo=2", "foo=\x7f",   "foo=1\n"};
    for (size_t i = 0; i < SZ_COUNT(good); i++)
        cr_expect(state_ok(good[i], NULL), "%s", good[i]);
    for (size_t i = 0; i < SZ_COUNT(bad); i++)
        cr_expect_not(state_ok(bad[i], NULL), "%s", bad[i]);
    cr_expect(state_ok("foo=1", "bar=2"));
    cr_expect_not(state_ok("foo=1", "foo=2"), "a key twice, in two fields");
}

Test(trace_context, tracestate_has_bounds)
{
    struct sz_buf list = {0};
    for (int i = 0; i < 32; i++)
        sz_buf_printf(&list, "%sk%d=1", i > 0 ? "," : "", i);
    struct sz_tracestate state = {.n = 0};
    cr_expect(sz_tracestate_add(&state, sz_buf_slice(&list)));
    cr_expect_not(sz_tracestate_add(&state, SZ_S("one-more=1")));
    static const struct {
        int key, value;
        const char *system;
        bool good;
    } lengths[] = {{256, 1, "", true},  {257, 1, "", false},  {1, 256, "", true},
                   {1, 257, "", false}, {241, 1, "@v", true}, {242, 1, "@v", false}};
    for (size_t i = 0; i < SZ_COUNT(lengths); i++) {
        list.n = 0;
        for (int j = 0; j < lengths[i].key; j++)
            sz_buf_printf(&list, "k");
        sz_buf_printf(&list, "%s=", lengths[i].system);
        for (int j = 0; j < lengths[i].value; j++)
            sz_buf_printf(&list, "v");
        state.n = 0;
        cr_expect_eq(sz_tracestate_add(&state, sz_buf_slice(&list)), lengths[i].good, "row %zu", i);
    }
    sz_buf_fini(&list);
}

Test(trace_context, a_share_is_a_share)
{
    uint64_t state = 7, in = 0;
    uint8_t id[SZ_TRACE_ID];
    for (int i = 0; i < 100000; i++) {
        for (int j = 0; j < 2; j++) {
            uint64_t word = sz_trace_random(&state);
            memcpy(id + 8 * j, &word, 8);
        }
        in += sz_trace_in_share(id, SZ_TRACE_ALL / 10);
        cr_assert(sz_trace_in_share(id, SZ_TRACE_ALL));
        cr_assert_not(sz_trace_in_share(id, 0));
    }
    cr_expect(in > 9500 && in < 10500, "%llu of 100,000", (unsigned long long)in);
    /* What others who share the rule decide about this id, too: the last eight bytes, without their lowest bit. */
    static const uint8_t low[SZ_TRACE_ID] = {[0] = 0xff, [8] = 0x7f, [9] = 0xff}, high[SZ_TRACE_ID] = {[8] = 0x80};
    cr_expect(sz_trace_in_share(low, SZ_TRACE_ALL / 2));
    cr_expect_not(sz_trace_in_share(high, SZ_TRACE_ALL / 2));
}
