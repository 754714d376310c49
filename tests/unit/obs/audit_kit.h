/* A journal for tests: its configuration, events, and a plain reader of its files. */
#ifndef OBS_AUDIT_KIT_H
#define OBS_AUDIT_KIT_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/loop.h"
#include "fake/process.h"
#include "obs/audit/journal.h"
#include "subzero/audit_read.h"

static inline struct sz_conf_audit kit_conf(const char *name)
{
    static char paths[64][300];
    static unsigned used;
    char *path = paths[used++ % 64];
    snprintf(path, sizeof(paths[0]), "%s/%s", scratch_path(), name);
    return (struct sz_conf_audit){
        .path = sz_cstr(path),
        .sample = 1,
        .paths = true,
        .durability = SZ_DURABILITY_NONE,
        .sync_interval = SZ_MS(20),
        .rotate_size = 64 * 1024,
        .rotate_age = SZ_SEC(86400),
        .retain = {.files = 1000, .size = UINT64_MAX / 4, .age = SZ_SEC(86400 * 30)},
        .denied = {.files = 1000, .size = UINT64_MAX / 4, .age = SZ_SEC(86400 * 30)},
        .checkpoint_records = 1000000,
        .checkpoint_interval = SZ_SEC(3600),
        .scan_bytes = 8 << 20,
    };
}

static inline struct sz_audit *kit_open_io(const struct sz_conf_audit *conf, const struct sz_audit_io *io)
{
    struct sz_audit *audit = NULL;
    struct sz_text why = {""};
    sz_crypto_init();
    int rc = sz_audit_open_io(conf, io, &audit, &why);
    cr_assert_eq(rc, 0, "%d %s", rc, why.s);
    return audit;
}
#define kit_open(conf) kit_open_io(conf, &sz_audit_io_system)

/* A decision: number in request_id. */
static inline struct sz_audit_event kit_event(unsigned number, bool allow, bool known, char id[24])
{
    struct sz_audit_event e = {.kind = SZ_AUDIT_DECISION,
                               .allow = allow,
                               .authenticated = known,
                               .reason = allow   ? SZ_REASON_allowed
                                         : known ? SZ_REASON_not_permitted
                                                 : SZ_REASON_invalid_token,
                               .status = allow ? 200 : 401,
                               .has_address = true};
    e.text[SZ_AUDIT_REQUEST_ID] = sz_slice(id, (size_t)snprintf(id, 24, "r-%u", number));
    e.text[SZ_AUDIT_ROUTE] = number % 3 == 0 ? SZ_S("documents") : SZ_S("other");
    e.text[SZ_AUDIT_METHOD] = SZ_S("GET");
    e.text[SZ_AUDIT_PATH] = SZ_S("/documents/a");
    if (known)
        e.text[SZ_AUDIT_SUBJECT] = number % 2 == 0 ? SZ_S("alice") : SZ_S("bob\"\n");
    e.address.b[10] = e.address.b[11] = 0xff;
    e.address.b[12] = 10;
    e.address.b[15] = (uint8_t)(number % 7);
    return e;
}

/* ---- a plain reader ------------------------------------------------------------------------------------------ */

struct kit_records {
    json_t **v;
    size_t n;
};
static inline uint64_t kit_seq(const json_t *record)
{
    return (uint64_t)json_integer_value(json_object_get(record, "seq"));
}
static inline const char *kit_text(const json_t *record, const char *name)
{
    const char *s = json_string_value(json_object_get(record, name));
    return s != NULL ? s : "";
}
static int kit_compare(const void *a, const void *b)
{
    uint64_t x = kit_seq(*(json_t *const *)a), y = kit_seq(*(json_t *const *)b);
    return x < y ? -1 : x > y;
}
/* Every record of every file, by number. */
static inline struct kit_records kit_read(const char *path)
{
    struct kit_records out = {0};
    DIR *d = opendir(path);
    cr_assert_not_null(d, "%s", path);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char name[600];
        size_t n;
        if (strstr(e->d_name, ".jsonl") == NULL || strstr(e->d_name, ".jsonl.") != NULL)
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        char *text = file_read(name, &n);
        struct sz_slice rest = sz_slice(text, n), line;
        while (n > 0 && sz_split(&rest, '\n', &line)) {
            if (line.n == 0)
                continue;
            json_t *record = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
            cr_assert_not_null(record, "%s: %.*s", e->d_name, SZ_FMT(line));
            cr_assert_lt(line.n, SZ_AUDIT_LINE_MAX);
            out.v = realloc(out.v, (out.n + 1) * sizeof(*out.v));
            out.v[out.n++] = record;
        }
        free(text);
    }
    closedir(d);
    qsort(out.v, out.n, sizeof(*out.v), kit_compare);
    return out;
}
static inline void kit_free(struct kit_records *records)
{
    for (size_t i = 0; i < records->n; i++)
        json_decref(records->v[i]);
    free(records->v);
    *records = (struct kit_records){0};
}
static inline size_t kit_count(const struct kit_records *records, const char *name, const char *value)
{
    size_t n = 0;
    for (size_t i = 0; i < records->n; i++)
        n += strcmp(kit_text(records->v[i], name), value) == 0;
    return n;
}
/* Sum of a number over all records. */
static inline uint64_t kit_sum(const struct kit_records *records, const char *name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < records->n; i++)
        sum += (uint64_t)json_integer_value(json_object_get(records->v[i], name));
    return sum;
}

static inline struct sz_audit_verdict kit_verify(const char *path, const uint8_t *key, const char *anchor)
{
    struct sz_audit_verdict verdict;
    cr_assert_eq(sz_audit_verify(path, key, anchor, &verdict), 0, "%s", verdict.what.s);
    return verdict;
}
static inline void kit_expect_good(const char *path)
{
    struct sz_audit_verdict verdict = kit_verify(path, NULL, NULL);
    cr_expect(verdict.good, "%s", verdict.what.s);
}

/* ---- a loop that waits for its records --------------------------------------------------------------------------- */

struct kit_wait {
    struct sz_audit_wait wait;
    int outcome; /* -1: none yet; 1 committed; 0 not */
};
static inline void kit_on_done(struct sz_audit_wait *wait, bool committed)
{
    SZ_CONTAINER(wait, struct kit_wait, wait)->outcome = committed;
}
static inline bool kit_is_done(void *arg)
{
    return ((struct kit_wait *)arg)->outcome >= 0;
}
/* Hands over and waits for what comes of it: true: committed. */
static inline bool kit_commit(struct sz_audit *audit, struct sz_audit_port *port, struct sz_loop *loop,
                              const struct sz_audit_event *event)
{
    struct kit_wait w = {.wait.on_done = kit_on_done, .outcome = -1};
    int rc = sz_audit_commit(audit, port, event, &w.wait);
    if (rc < 0)
        return false;
    cr_assert_eq(rc, SZ_AUDIT_PENDING);
    cr_assert(fake_loop_run_until(loop, kit_is_done, &w, 20000), "nobody told the loop");
    return w.outcome == 1;
}

#endif
