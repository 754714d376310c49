/*
 * The pages that are made from tables: docs/metrics.md from tbl/metrics.h and tbl/labels.h, docs/errors.md from
 * tbl/reasons.h.  After a change to a table:
 *
 *   SUBZERO_WRITE_DOCS=1 build/asan/tests/unit_obs --filter 'reference*'
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "obs/series.h"
#include "subzero/reason.h"

struct metric {
    const char *kind, *name, *labels, *help, *watch;
};
static const struct metric metrics[] = {
#define SZ_COUNTER(id, name, labels, help, watch)         {"counter", name, labels, help, watch},
#define SZ_GAUGE(id, name, labels, help, watch)           {"gauge", name, labels, help, watch},
#define SZ_HISTOGRAM(id, name, labels, help, watch)       {"histogram", name, labels, help, watch},
#define SZ_COLLECTED(id, kind, name, labels, help, watch) {#kind, name, labels, help, watch},
#include "subzero/tbl/metrics.h"
};

struct label {
    const char *name, *values, *meaning;
};
static const struct label labels[] = {
#define SZ_LABEL(name, values, meaning) {#name, values, meaning},
#include "subzero/tbl/labels.h"
};

struct reason {
    const char *name;
    unsigned status;
    const char *title, *component, *where, *why, *remedy;
};
static const struct reason reasons[] = {
#define SZ_REASON(name, status, title, component, where, why, remedy) \
    {#name, status, title, component, where, why, remedy},
#include "subzero/tbl/reasons.h"
};

static const struct label *label_of(struct sz_slice name)
{
    for (size_t i = 0; i < SZ_COUNT(labels); i++) {
        if (sz_eq(sz_cstr(labels[i].name), name))
            return &labels[i];
    }
    return NULL;
}

static bool ends(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* ---- the rows themselves ------------------------------------------------------------------------------------------
 */

Test(reference, every_label_has_a_closed_list)
{
    bool used[SZ_COUNT(labels)] = {false};
    for (size_t i = 0; i < SZ_COUNT(metrics); i++) {
        struct sz_slice rest = sz_cstr(metrics[i].labels), name;
        while (rest.n > 0 && sz_split(&rest, ',', &name)) {
            const struct label *label = label_of(name);
            cr_assert_not_null(label, "%s: label %.*s has no row in tbl/labels.h", metrics[i].name, SZ_FMT(name));
            used[label - labels] = true;
        }
    }
    for (size_t i = 0; i < SZ_COUNT(labels); i++)
        cr_expect(used[i], "no metric has the label %s", labels[i].name);
}

/* What promtool would say, and what a newcomer would. */
Test(reference, names_say_kind_and_unit)
{
    for (size_t i = 0; i < SZ_COUNT(metrics); i++) {
        const struct metric *m = &metrics[i];
        bool counter = strcmp(m->kind, "counter") == 0, histogram = strcmp(m->kind, "histogram") == 0;
        cr_expect_eq(counter, ends(m->name, "_total"), "%s", m->name);
        cr_expect(!histogram || ends(m->name, "_seconds"), "%s", m->name);
        cr_expect(m->help[0] != '\0' && !ends(m->help, "."), "%s", m->name);
        for (size_t j = 0; j < i; j++)
            cr_expect_str_neq(metrics[j].name, m->name);
    }
}

Test(reference, faults_are_5xx_and_have_a_component)
{
    for (size_t i = 0; i < SZ_COUNT(reasons); i++) {
        const struct reason *r = &reasons[i];
        bool meant = r->status >= 500 && strcmp(r->name, "draining") != 0;
        cr_expect_eq(r->component[0] != '\0', meant, "%s", r->name);
        cr_expect(r->where[0] != '\0' && r->why[0] != '\0' && r->remedy[0] != '\0', "%s", r->name);
    }
}

/* ---- the pages ----------------------------------------------------------------------------------------------------
 */

static void add_cell(struct sz_buf *page, const char *text)
{
    for (const char *p = text; *p != '\0'; p++)
        sz_buf_printf(page, *p == '|' ? "\\%c" : "%c", *p);
}

static const char *unit_of(const struct metric *m)
{
    if (strstr(m->name, "_timestamp_seconds") != NULL || ends(m->name, "_start_time_seconds"))
        return "unix time, s";
    return strstr(m->name, "_seconds") != NULL ? "seconds" : strstr(m->name, "_bytes") != NULL ? "bytes" : "number";
}

static void add_bound(struct sz_buf *page, const char *before, int64_t us)
{
    if (us < 1000)
        sz_buf_printf(page, "%s%lld µs", before, (long long)us);
    else if (us < 1000000)
        sz_buf_printf(page, "%s%g ms", before, (double)us / 1e3);
    else
        sz_buf_printf(page, "%s%g s", before, (double)us / 1e6);
}

static void add_metric(struct sz_buf *page, const struct metric *m)
{
    struct sz_slice rest = sz_cstr(m->labels), name;
    sz_buf_printf(page, "| `%s` | %s | %s |", m->name, m->kind, unit_of(m));
    for (bool first = true; rest.n > 0 && sz_split(&rest, ',', &name); first = false)
        sz_buf_printf(page, "%s `%.*s`", first ? "" : ",", SZ_FMT(name));
    sz_buf_printf(page, " | ");
    add_cell(page, m->help);
    sz_buf_printf(page, " | ");
    add_cell(page, m->watch);
    sz_buf_printf(page, " |\n");
}

static void metrics_page(struct sz_buf *page)
{
    sz_buf_printf(
        page,
        "# Metrics\n\n"
        "`GET /metrics` on the admin listener, Prometheus text format 0.0.4. Made from the table in "
        "`include/subzero/tbl/metrics.h`; a test\nkeeps this page fresh.\n\n"
        "Every label comes from a closed list: no path, subject, token, key id or address of a client is ever "
        "one, so a client can\ncreate no series. There are at most %u series in a process; beyond that, "
        "what the configuration would add is counted under\n`other`. A series is there from its first event "
        "on, those without labels from the start. Counters start at 0 with the process.\n\n"
        "Histograms have the bounds",
        SZ_SERIES_MAX);
    for (unsigned i = 0; i < SZ_BUCKETS; i++)
        add_bound(page, i == 0 ? " " : ", ", sz_bucket_us[i]);
    sz_buf_printf(page,
                  ":\nmost of a hit is below the first. Which request made a bucket grow is in the access "
                  "log: every line has `request_id`\nand, where there is one, `trace_id`.\n\n"
                  "| Metric | Type | Unit | Labels | What it is | What to look for |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < SZ_COUNT(metrics); i++)
        add_metric(page, &metrics[i]);
    sz_buf_printf(page, "\n## Labels\n\n| Label | Values | Meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < SZ_COUNT(labels); i++) {
        sz_buf_printf(page, "| `%s` | ", labels[i].name);
        add_cell(page, labels[i].values);
        sz_buf_printf(page, " | ");
        add_cell(page, labels[i].meaning);
        sz_buf_printf(page, " |\n");
    }
}

static void add_reason(struct sz_buf *page, const struct reason *r)
{
    sz_buf_printf(page, "| `%s` | %u | ", r->name, r->status);
    add_cell(page, r->title);
    sz_buf_printf(page, " | ");
    add_cell(page, r->where);
    sz_buf_printf(page, " | ");
    add_cell(page, r->why);
    sz_buf_printf(page, " | ");
    add_cell(page, r->remedy);
    sz_buf_printf(page, " |\n");
}

static void errors_page(struct sz_buf *page)
{
    sz_buf_printf(
        page,
        "# Reasons\n\n"
        "Why a request was answered as it was: the closed list of `reason`, as it stands in answers, in the access "
        "log, "
        "in the audit journal\nand in `subzero_requests_total{reason}`. Made from `include/subzero/tbl/reasons.h`; a "
        "test "
        "keeps this page fresh.\n\n"
        "**What a client sees.** `application/problem+json` (RFC 9457):\n\n"
        "```json\n"
        "{\"type\":\"urn:subzero:problem:expired_token\",\"title\":\"The token has expired\",\"status\":401,"
        "\"reason\":\"expired_token\",\"request_id\":\"...\"}\n"
        "```\n\n"
        "and the reason once more in `X-Subzero-Reason`; sometimes a `detail`. A 401, and 403 `insufficient_scope`, "
        "carry `WWW-Authenticate: Bearer` (RFC 6750,\nRFC 9470); 429 and 503 carry `Retry-After`; 405 carries `Allow`. "
        "On a listener with `dialect: nginx` everything but 401 and 403 is\nsent as 403 with the real status in "
        "`X-Subzero-Status`. No answer says more about a token than its reason.\n\n"
        "**Which request it was.** `request_id` of the answer is in the access log and the journal.\n\n"
        "**503 is never 403.** \"No\" and \"could not ask\" are different answers: alert on the latter "
        "(`subzero_errors_total`).\n\n"
        "| Reason | Status | Title | Arises in | When | What to do |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < SZ_COUNT(reasons); i++)
        add_reason(page, &reasons[i]);
    sz_buf_printf(page, "\nThe five of the limiter's store (`redis_*`, `circuit_open`, `fail_closed`) also stand in "
                        "answers that were allowed without it: see\n[rate-limits.md](rate-limits.md).\n");
}

static void read_file(const char *path, struct sz_buf *out)
{
    char chunk[4096];
    size_t n;
    FILE *f = fopen(path, "r");
    while (f != NULL && (n = fread(chunk, 1, sizeof(chunk), f)) > 0)
        sz_buf_add(out, chunk, n);
    if (f != NULL)
        fclose(f);
}

static void check_page(const char *name, void (*render)(struct sz_buf *page))
{
    struct sz_buf page = {0}, committed = {0};
    struct sz_text path;
    sz_text_set(&path, "%s/docs/%s", SZ_SOURCE_DIR, name);
    render(&page);
    if (getenv("SUBZERO_WRITE_DOCS") != NULL) {
        FILE *f = fopen(path.s, "w");
        cr_assert_not_null(f);
        cr_assert_eq(fwrite(sz_buf_slice(&page).p, 1, sz_buf_slice(&page).n, f), sz_buf_slice(&page).n);
        fclose(f);
    }
    read_file(path.s, &committed);
    cr_expect(sz_eq(sz_buf_slice(&page), sz_buf_slice(&committed)),
              "docs/%s is stale: SUBZERO_WRITE_DOCS=1 build/asan/tests/unit_obs --filter 'reference*'", name);
    sz_buf_fini(&page);
    sz_buf_fini(&committed);
}

Test(reference, docs_metrics_is_fresh)
{
    check_page("metrics.md", metrics_page);
}

Test(reference, docs_errors_is_fresh)
{
    check_page("errors.md", errors_page);
}

/* ---- docs/security.md says which file enforces what: a file that is gone enforces nothing
 * ------------------------------ */

static bool is_path(struct sz_slice s)
{
    static const char *const roots[] = {"src/", "cache/", "fga/", "include/", "tests/", "deploy/", "script/"};
    for (size_t i = 0; i < SZ_COUNT(roots); i++) {
        if (sz_starts_with(s, sz_cstr(roots[i])) && sz_find_byte(s, ' ') < 0 && sz_find_byte(s, '*') < 0)
            return true;
    }
    return false;
}

Test(reference, what_enforces_a_law_is_there)
{
    struct sz_buf page = {0};
    struct sz_text path;
    unsigned laws = 0, files = 0;
    sz_text_set(&path, "%s/docs/%s", SZ_SOURCE_DIR, "security.md");
    read_file(path.s, &page);
    struct sz_slice rest = sz_buf_slice(&page), piece;
    for (unsigned i = 0; sz_split(&rest, '`', &piece); i++) {
        if (i % 2 == 0 || !is_path(piece))
            continue;
        sz_text_set(&path, "%s/%.*s", SZ_SOURCE_DIR, SZ_FMT(piece));
        cr_expect_eq(access(path.s, R_OK), 0, "docs/security.md names %.*s", SZ_FMT(piece));
        files++;
    }
    for (unsigned law = 1; law <= 11; law++) {
        sz_text_set(&path, "\n| Z%u ", law);
        laws += memmem(page.p, page.n, path.s, strlen(path.s)) != NULL;
    }
    cr_expect_eq(laws, 11);
    cr_expect_gt(files, 50);
    sz_buf_fini(&page);
}
