/*
 * Pages, exports and filters against a plain reader of the files: the same records in the same order, whatever the page
 * size, with and without side files, while the writer rotates and removes.
 */
#include "audit_kit.h"

#include "obs/audit/page.h"

TestSuite(audit_read, .timeout = 100);

struct ids {
    uint64_t *v;
    size_t n;
};
static void add_id(struct ids *ids, uint64_t id)
{
    ids->v = realloc(ids->v, (ids->n + 1) * sizeof(*ids->v));
    ids->v[ids->n++] = id;
}

struct question {
    const char *name, *value;   /* a filter; NULL: none */
    const char *name2, *value2; /* another */
};
static const struct question questions[] = {
    {NULL, NULL, NULL, NULL},
    {"decision", "deny", NULL, NULL},
    {"decision", "allow", "route", "documents"},
    {"subject", "alice", NULL, NULL},
    {"subject", "bob\"\n", NULL, NULL},
    {"subject", "bob", NULL, NULL},
    {"address", "10.0.0.3", NULL, NULL},
    {"reason", "invalid_token", "address", "10.0.0.5"},
    {"request_id", "r-77", NULL, NULL},
    {"request_id", "r-7", NULL, NULL},
    {"kind", "start", NULL, NULL},
    {"kind", "retention", NULL, NULL},
    {"client", "nobody", NULL, NULL},
    {"q", "ocuments", "decision", "allow"},
    {"q", "\"", NULL, NULL},
};

static bool plain_matches(const json_t *record, const char *name, const char *value)
{
    if (name == NULL)
        return true;
    if (strcmp(name, "q") != 0)
        return json_object_get(record, name) != NULL && strcmp(kit_text(record, name), value) == 0;
    /* As it is written, without the chain's members. */
    char *text = NULL;
    json_t *copy = json_deep_copy(record);
    json_object_del(copy, "prev");
    json_object_del(copy, "hash");
    text = json_dumps(copy, JSON_COMPACT);
    bool found = strcmp(value, "\"") == 0 ? strstr(text, "\\\"") != NULL : strstr(text, value) != NULL;
    free(text);
    json_decref(copy);
    return found;
}

static struct ids plain(const struct kit_records *records, const struct question *q, bool ascending)
{
    struct ids ids = {0};
    for (size_t i = 0; i < records->n; i++) {
        const json_t *record = records->v[ascending ? i : records->n - 1 - i];
        if (plain_matches(record, q->name, q->value) && plain_matches(record, q->name2, q->value2))
            add_id(&ids, kit_seq(record));
    }
    return ids;
}

static struct sz_audit_query query_of(const struct question *q, bool ascending, uint32_t limit, const char *cursor)
{
    struct sz_audit_query query;
    struct sz_text why = {""};
    char text[16];
    sz_audit_query_init(&query);
    snprintf(text, sizeof(text), "%u", limit);
    cr_assert_eq(sz_audit_query_set(&query, SZ_S("order"), ascending ? SZ_S("asc") : SZ_S("desc"), &why), 0);
    if (limit > 0)
        cr_assert_eq(sz_audit_query_set(&query, SZ_S("limit"), sz_cstr(text), &why), 0);
    if (q->name != NULL)
        cr_assert_eq(sz_audit_query_set(&query, sz_cstr(q->name), sz_cstr(q->value), &why), 0, "%s", why.s);
    if (q->name2 != NULL)
        cr_assert_eq(sz_audit_query_set(&query, sz_cstr(q->name2), sz_cstr(q->value2), &why), 0, "%s", why.s);
    if (cursor != NULL)
        cr_assert_eq(sz_audit_query_set(&query, SZ_S("cursor"), sz_cstr(cursor), &why), 0, "%s", why.s);
    cr_assert_eq(sz_audit_query_finish(&query, &why), 0, "%s", why.s);
    return query;
}

/* One page; false when it was the last.  The cursor is replaced. */
static bool read_page(struct sz_audit_shelf *shelf, const struct question *q, bool ascending, uint32_t limit,
                      uint64_t scan_bytes, char cursor[25], bool first, struct ids *ids)
{
    struct sz_audit_view view;
    struct sz_buf out = {0};
    struct sz_text why = {""};
    struct sz_audit_query query = query_of(q, ascending, limit, first ? NULL : cursor);
    sz_audit_view_take(&view, shelf);
    cr_assert_eq(sz_audit_page(&view, &query, scan_bytes, &out, &why), 0, "%s", why.s);
    json_t *page = json_loadb(out.p, out.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(page, "%.*s", SZ_FMT(sz_buf_slice(&out)));
    size_t i;
    const json_t *record;
    json_array_foreach(json_object_get(page, "records"), i, record) add_id(ids, kit_seq(record));
    cr_expect_leq(i, limit);
    bool more = !json_is_true(json_object_get(page, "complete"));
    const char *next = json_string_value(json_object_get(page, "next_cursor"));
    cr_expect(next != NULL || !more);
    if (next != NULL)
        snprintf(cursor, 25, "%s", next);
    json_decref(page);
    sz_audit_view_release(&view);
    sz_audit_query_fini(&query);
    sz_buf_fini(&out);
    return more;
}

static struct ids by_pages(struct sz_audit_shelf *shelf, const struct question *q, bool ascending, uint32_t limit,
                           uint64_t scan_bytes)
{
    struct ids ids = {0};
    char cursor[25] = "";
    bool first = true;
    while (read_page(shelf, q, ascending, limit, scan_bytes, cursor, first, &ids))
        first = false;
    return ids;
}

static struct ids by_export(struct sz_audit_shelf *shelf, const struct question *q, bool ascending, bool csv)
{
    struct ids ids = {0};
    struct sz_audit_view view;
    struct sz_audit_export x;
    struct sz_buf out = {0};
    struct sz_text why = {""};
    struct sz_audit_query query = query_of(q, ascending, 0, NULL);
    query.csv = csv;
    sz_audit_view_take(&view, shelf);
    sz_audit_export_init(&x, &view, &query, 1 << 20);
    int rc;
    while ((rc = sz_audit_export_next(&x, out.n + 3000, 20000, &out, &why)) == 1) {
    }
    cr_assert_eq(rc, 0, "%s", why.s);
    struct sz_slice rest = sz_buf_slice(&out), line;
    bool row = !csv; /* a row of CSV begins behind CR LF: a cell may hold a newline */
    while (out.n > 0 && sz_split(&rest, '\n', &line)) {
        if (row && line.n > 0)
            add_id(&ids, csv ? strtoull(line.p, NULL, 10) : strtoull(line.p + 13, NULL, 10));
        row = !csv || (line.n > 0 && line.p[line.n - 1] == '\r');
    }
    sz_audit_export_fini(&x);
    sz_audit_query_fini(&query);
    sz_buf_fini(&out);
    return ids;
}

static void expect_same(struct ids got, struct ids wanted, const struct question *q, const char *how)
{
    cr_expect_eq(got.n, wanted.n, "%s %s=%s: %zu records, %zu wanted", how, q->name, q->value, got.n, wanted.n);
    for (size_t i = 0; i < got.n && i < wanted.n; i++)
        cr_assert_eq(got.v[i], wanted.v[i], "%s %s=%s at %zu", how, q->name, q->value, i);
    free(got.v);
}

static void compare_all(struct sz_audit_shelf *shelf, const char *path)
{
    struct kit_records records = kit_read(path);
    for (size_t i = 0; i < SZ_COUNT(questions); i++) {
        const struct question *q = &questions[i];
        for (int up = 0; up < 2; up++) {
            struct ids wanted = plain(&records, q, up);
            expect_same(by_pages(shelf, q, up, 1 + (uint32_t)i * 7, 1 << 20), wanted, q, "pages");
            expect_same(by_pages(shelf, q, up, 1000, 3000), wanted, q, "short scans");
            expect_same(by_export(shelf, q, up, false), wanted, q, "export");
            expect_same(by_export(shelf, q, up, true), wanted, q, "csv");
            free(wanted.v);
        }
    }
    kit_free(&records);
}

static void fill(struct sz_audit *audit, unsigned from, unsigned n, unsigned seed)
{
    char id[24];
    srand(seed);
    for (unsigned i = from; i < from + n; i++) {
        int r = rand();
        struct sz_audit_event e = kit_event(i, r % 3 == 0, r % 5 != 1, id);
        e.address.b[15] = (uint8_t)(r % 11);
        cr_assert(sz_audit_note(audit, &e));
        if (r % 50 == 0)
            sz_audit_flush(audit);
    }
    sz_audit_flush(audit);
}

Test(audit_read, the_same_as_a_plain_reader)
{
    for (unsigned seed = 1; seed <= 3; seed++) {
        char name[32];
        snprintf(name, sizeof(name), "plain%u", seed);
        struct sz_conf_audit conf = kit_conf(name);
        conf.rotate_size = 10000 + 5000 * seed;
        conf.retain.files = seed == 2 ? 3 : 1000;
        struct sz_audit *audit = kit_open(&conf);
        fill(audit, 0, 400, seed);
        compare_all(&audit->shelf, conf.path.p);
        /* A new process: without what the old one had in memory, then with side files. */
        sz_audit_close(&audit);
        audit = kit_open(&conf);
        sz_audit_flush(audit);
        compare_all(&audit->shelf, conf.path.p);
        struct sz_audit_view view;
        sz_audit_view_take(&view, &audit->shelf);
        sz_audit_view_index(&view, conf.path.p, true);
        for (size_t i = 0; i + 1 < view.list->n[SZ_AUDIT_MAIN]; i++)
            cr_expect_not_null(atomic_load(&view.list->v[SZ_AUDIT_MAIN][i]->index));
        sz_audit_view_release(&view);
        compare_all(&audit->shelf, conf.path.p);
        sz_audit_close(&audit);
        kit_expect_good(conf.path.p);
    }
}

/* A side file that lies about its segment is not believed. */
Test(audit_read, side_files_never_change_an_answer)
{
    struct sz_conf_audit conf = kit_conf("side");
    char command[1500];
    conf.rotate_size = 12000;
    struct sz_audit *audit = kit_open(&conf);
    fill(audit, 0, 300, 9);
    sz_audit_close(&audit);
    snprintf(command, sizeof(command),
             "cd %s && for f in *.idx; do printf 'x' | dd of=$f bs=1 seek=200 conv=notrunc status=none; done && set -- "
             "*.idx && "
             "cp $1 $2 && : > $3",
             conf.path.p);
    cr_assert_eq(system(command), 0);
    audit = kit_open(&conf);
    sz_audit_flush(audit);
    struct sz_audit_view view;
    sz_audit_view_take(&view, &audit->shelf);
    sz_audit_view_index(&view, conf.path.p, false);
    sz_audit_view_release(&view);
    compare_all(&audit->shelf, conf.path.p);
    sz_audit_close(&audit);
}

/* ---- beside the writer
 * ----------------------------------------------------------------------------------------------- */

static void *write_on(void *arg)
{
    struct sz_audit *audit = arg;
    char id[24];
    for (unsigned i = 0; i < 6000; i++) {
        struct sz_audit_event e = kit_event(i, i % 3 == 0, i % 5 != 1, id);
        (void)sz_audit_note(audit, &e);
        if (i % 20 == 0)
            sz_audit_flush(audit);
    }
    return NULL;
}

static uint64_t oldest(struct sz_audit_shelf *shelf)
{
    struct sz_audit_view view;
    sz_audit_view_take(&view, shelf);
    uint64_t first = view.list->n[SZ_AUDIT_MAIN] > 0 ? view.list->v[SZ_AUDIT_MAIN][0]->first : 1;
    uint64_t denied = view.list->n[SZ_AUDIT_DENIED] > 0 ? view.list->v[SZ_AUDIT_DENIED][0]->first : 1;
    sz_audit_view_release(&view);
    return first > denied ? first : denied;
}

/* Walks pages while the journal rotates and removes: in order, nothing twice, and nothing missing of what stayed. */
Test(audit_read, pages_while_it_rotates_and_removes)
{
    struct sz_conf_audit conf = kit_conf("walk");
    pthread_t writer;
    conf.rotate_size = 20000;
    conf.retain.files = conf.denied.files = 4;
    struct sz_audit *audit = kit_open(&conf);
    static const struct question all = {0};
    cr_assert_eq(pthread_create(&writer, NULL, write_on, audit), 0);
    for (int walk = 0; walk < 60; walk++) {
        bool up = walk % 2 == 1;
        uint64_t low = 0, committed = atomic_load(&audit->shelf.committed);
        struct ids ids = by_pages(&audit->shelf, &all, up, 1 + (uint32_t)walk % 40, 1 << 20);
        low = oldest(&audit->shelf);
        size_t expected = 0;
        for (size_t i = 0; i < ids.n; i++) {
            cr_assert(i == 0 || (up ? ids.v[i] > ids.v[i - 1] : ids.v[i] < ids.v[i - 1]), "out of order");
            expected += ids.v[i] >= low && ids.v[i] <= committed;
        }
        if (committed >= low)
            cr_expect_eq(expected, committed - low + 1, "walk %d: %zu of %d", walk, expected,
                         (int)(committed - low + 1));
        free(ids.v);
    }
    pthread_join(writer, NULL);
    sz_audit_close(&audit);
    kit_expect_good(conf.path.p);
}

/* An export that was begun is finished from its snapshot, however much retention has removed since. */
Test(audit_read, an_export_outlives_its_segments)
{
    struct sz_conf_audit conf = kit_conf("snapshot");
    struct sz_audit_view view;
    struct sz_audit_export x;
    struct sz_buf out = {0};
    struct sz_text why = {""};
    static const struct question all = {0};
    conf.rotate_size = 20000;
    conf.retain.files = conf.denied.files = 3;
    struct sz_audit *audit = kit_open(&conf);
    fill(audit, 0, 200, 4);
    struct kit_records before = kit_read(conf.path.p);
    struct sz_audit_query query = query_of(&all, true, 0, NULL);
    sz_audit_view_take(&view, &audit->shelf);
    sz_audit_export_init(&x, &view, &query, 0);
    cr_assert_eq(sz_audit_export_next(&x, 1, UINT32_MAX, &out, &why), 1);
    fill(audit, 200, 1000, 5);
    while (sz_audit_export_next(&x, SIZE_MAX, UINT32_MAX, &out, &why) == 1) {
    }
    size_t lines = 0;
    for (size_t i = 0; i < out.n; i++)
        lines += out.p[i] == '\n';
    cr_expect_eq(lines, before.n);
    sz_audit_export_fini(&x);
    sz_audit_query_fini(&query);
    sz_buf_fini(&out);
    kit_free(&before);
    sz_audit_close(&audit);
}

static int collect(void *arg, struct sz_slice bytes)
{
    sz_buf_adds(arg, bytes);
    return 0;
}

/* A directory whose 'denied' stream is a step ahead, as it is while a group is written: its cursor does not pass the
 * hole. */
Test(audit_read, a_group_half_written_is_not_passed_over)
{
    struct sz_conf_audit conf = kit_conf("half");
    struct sz_audit_param asc = {"order", "asc"}, params[2] = {asc, asc};
    struct sz_text why = {""};
    char id[24], name[600], cursor[25];
    size_t n;
    struct sz_audit *audit = kit_open(&conf);
    for (unsigned i = 0; i < 6; i++) { /* by turns: known, unknown */
        struct sz_audit_event e = kit_event(i, false, i % 2 == 0, id);
        cr_assert(sz_audit_note(audit, &e));
    }
    sz_audit_close(&audit);
    snprintf(name, sizeof(name), "%s/audit-%020d.jsonl", conf.path.p, 1);
    char *whole = file_read(name, &n);
    char *cut = strstr(whole, "\"request_id\":\"r-2\"");
    while (cut > whole && cut[-1] != '\n')
        cut--;
    cr_assert_eq(truncate(name, cut - whole), 0);
    struct sz_buf first = {0}, rest = {0};
    cr_assert_eq(sz_audit_dir_export(conf.path.p, &asc, 1, collect, &first, cursor, &why), 0, "%s", why.s);
    cr_expect_null(memmem(first.p, first.n, "\"r-3\"", 5), "a record behind the hole was told");
    FILE *f = fopen(name, "w");
    cr_assert_eq(fwrite(whole, 1, n, f), n);
    fclose(f);
    params[1] = (struct sz_audit_param){"cursor", cursor};
    cr_assert_eq(sz_audit_dir_export(conf.path.p, params, 2, collect, &rest, NULL, &why), 0, "%s", why.s);
    for (unsigned i = 0; i < 6; i++) {
        snprintf(id, sizeof(id), "\"r-%u\"", i);
        cr_expect((memmem(first.p, first.n, id, 5) != NULL) + (memmem(rest.p, rest.n, id, 5) != NULL) == 1, "%s", id);
    }
    sz_buf_fini(&first);
    sz_buf_fini(&rest);
    free(whole);
}

Test(audit_read, cells_that_a_spreadsheet_would_run)
{
    struct sz_buf out = {0};
    sz_audit_csv_row(&out, SZ_S("{\"v\":1,\"seq\":1,\"time\":\"t\",\"subject\":\"=1+1\",\"client\":\"a\\\"b,c\","
                                "\"detail\":\"@x\\u000ay\""));
    cr_expect_not_null(strstr(out.p, "\"'=1+1\""), "%s", out.p);
    cr_expect_not_null(strstr(out.p, "\"a\"\"b,c\""), "%s", out.p);
    cr_expect_not_null(strstr(out.p, "\"'@x\ny\""), "%s", out.p);
    sz_buf_fini(&out);
}
