/* format.c: the longest line, what is escaped and cut, and that the index is told the places of what a line says. */
#include "audit_kit.h"

#include "obs/audit/event.h"

static struct sz_slice line_of(struct sz_buf *out, const struct sz_audit_event *e, struct sz_audit_places *places)
{
    static struct sz_audit_memo memo;
    static const uint8_t bytes[32] = {1, 2, 3};
    struct sz_audit_hash head;
    struct sz_audit_stamp stamp = {.seq = INT64_MAX, .boot = UINT64_MAX, .memo = &memo};
    memcpy(head.b, bytes, sizeof(head.b));
    size_t from = out->n;
    sz_audit_format(out, e, &stamp, places);
    sz_audit_seal(out, from, &head);
    cr_assert_eq(out->p[out->n - 1], '\n');
    return sz_slice(out->p + from, out->n - from - 1);
}

/* What somebody who reads the line finds is what the writer says is there. */
static void check_places(struct sz_slice line, const struct sz_audit_places *places)
{
    for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++) {
        struct sz_slice value;
        bool there = sz_audit_line_text(line, sz_audit_field_name(f), &value);
        cr_assert_eq(there, places->at[f] != 0, "%.*s of %.*s", SZ_FMT(sz_audit_field_name(f)), SZ_FMT(line));
        if (there)
            cr_assert(value.p == line.p + places->at[f] && value.n == places->n[f], "%.*s of %.*s",
                      SZ_FMT(sz_audit_field_name(f)), SZ_FMT(line));
    }
}

static void check_line(struct sz_slice line)
{
    json_t *record = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(record, "%.*s", SZ_FMT(line));
    json_decref(record);
    cr_assert(sz_audit_line_whole(line));
    cr_assert_lt(line.n, SZ_AUDIT_LINE_MAX);
}

static struct sz_audit_event full_event(struct sz_slice text)
{
    struct sz_audit_event e = {.kind = SZ_AUDIT_DECISION,
                               .effect = SZ_EFFECT_UNCHANGED,
                               .time = {1700000000123456},
                               .allow = true,
                               .authenticated = true,
                               .reason = SZ_REASON_allowed,
                               .status = UINT16_MAX,
                               .config = UINT64_MAX,
                               .auth = {INT64_MAX},
                               .authz = {INT64_MAX},
                               .total = {INT64_MAX},
                               .has_address = true};
    memset(e.address.b, 0xab, sizeof(e.address.b));
    for (unsigned i = 0; i < SZ_AUDIT_TEXTS; i++)
        e.text[i] = text;
    return e;
}

Test(audit_format, the_longest_texts_of_every_kind)
{
    static char text[2000];
    static const char *const fills[] = {"a",    "\"",   "\\",       "\n",           "\x01",
                                        "\x7f", "\xff", "\xC3\xA9", "\xE2\x80\xA6", "\xC2\x85"};
    struct sz_buf out = {0};
    for (size_t fill = 0; fill < SZ_COUNT(fills); fill++) {
        for (size_t i = 0, n = strlen(fills[fill]); i < sizeof(text); i++)
            text[i] = fills[fill][i % n];
        for (size_t n = 0; n < sizeof(text); n += n < 600 ? 1 : 97) {
            struct sz_audit_places places;
            struct sz_audit_event e = full_event(sz_slice(text, n));
            out.n = 0;
            struct sz_slice line = line_of(&out, &e, &places);
            check_line(line);
            check_places(line, &places);
        }
    }
    sz_buf_fini(&out);
}

static bool is_cut(struct sz_slice subject)
{
    struct sz_buf out = {0};
    struct sz_audit_places places;
    struct sz_audit_event e = {.kind = SZ_AUDIT_ADMIN, .time = {1}};
    e.text[SZ_AUDIT_SUBJECT] = subject;
    struct sz_slice line = line_of(&out, &e, &places);
    check_line(line);
    bool cut = memmem(line.p, line.n, "\"cut\":true", 10) != NULL;
    sz_buf_fini(&out);
    return cut;
}

Test(audit_format, what_is_cut_says_so)
{
    char text[300];
    size_t most = sz_audit_text_max(SZ_AUDIT_SUBJECT);
    memset(text, 'x', sizeof(text));
    cr_expect_not(is_cut(sz_slice(text, most)));
    cr_expect(is_cut(sz_slice(text, most + 1)));
    text[0] = '"'; /* two bytes in the line */
    cr_expect_not(is_cut(sz_slice(text, most - 1)));
    cr_expect(is_cut(sz_slice(text, most)));
    cr_expect_not(is_cut(SZ_S("ends like one that was cut\xE2\x80\xA6")));
    cr_expect_not(is_cut(SZ_S("")));
}

/* Each line says its own time and address, whatever the line before said. */
Test(audit_format, nothing_of_the_line_before_stays)
{
    static const int64_t times[] = {
        0,  1,        999999,          1000000, 1700000000123456, 1700000000999999, 1700000001000000, 1700000000999999,
        -1, -1000001, 1700000000123456};
    struct sz_buf out = {0};
    for (size_t i = 0; i < SZ_COUNT(times); i++) {
        struct sz_audit_places places;
        struct sz_audit_event e = {.kind = SZ_AUDIT_ADMIN, .time = {times[i]}, .has_address = i % 4 != 3};
        char time[32], address[SZ_ADDR_TEXT];
        uint64_t seq;
        struct sz_slice told, value;
        e.address.b[15] = (uint8_t)(i / 2);
        size_t n = sz_addr_format(e.address, address);
        sz_wall_format(e.time, 9, time);
        struct sz_slice line = line_of(&out, &e, &places);
        check_line(line);
        check_places(line, &places);
        cr_assert(sz_audit_line_head(line, &seq, &told));
        cr_expect(sz_eq(told, sz_cstr(time)), "%.*s, not %s", SZ_FMT(told), time);
        cr_expect_eq(sz_audit_line_text(line, SZ_S("address"), &value), e.has_address);
        cr_expect(!e.has_address || sz_eq(value, sz_slice(address, n)));
    }
    sz_buf_fini(&out);
}

/* Whichever way it was filled, a filter says the same. */
Test(audit_format, the_index_by_places_is_the_index_by_search)
{
    struct sz_audit_index *known = sz_audit_index_new(1 << 20), *found = sz_audit_index_new(1 << 20);
    struct sz_buf out = {0};
    for (unsigned i = 0; i < 500; i++) {
        char id[24];
        struct sz_audit_places places;
        struct sz_audit_event e = kit_event(i, i % 5 != 0, i % 3 != 0, id);
        e.time.us = 1700000000000000 + (int64_t)(i * 7919 % 500);
        struct sz_slice line = line_of(&out, &e, &places);
        sz_audit_index_add(found, line);
        sz_audit_index_add_known(known, line.p, &places, e.time.us);
        for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++) {
            struct sz_slice value;
            if (sz_audit_line_text(line, sz_audit_field_name(f), &value))
                cr_assert(sz_audit_index_may_have(known, f, value));
        }
    }
    for (unsigned i = 0; i < 5000; i++) {
        char value[24];
        struct sz_slice text = sz_slice(value, (size_t)snprintf(value, sizeof(value), "r-%u", i));
        for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++)
            cr_assert_eq(sz_audit_index_may_have(known, f, text), sz_audit_index_may_have(found, f, text));
    }
    int64_t a[2], b[2];
    cr_assert(sz_audit_index_times(known, &a[0], &a[1]) && sz_audit_index_times(found, &b[0], &b[1]));
    cr_expect(a[0] == b[0] && a[1] == b[1]);
    sz_audit_index_free(&known);
    sz_audit_index_free(&found);
    sz_buf_fini(&out);
}
