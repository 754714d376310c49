/*
 * What the audit journal costs.  Each operation is a process of its own, so that memory and I/O are its alone:
 *
 *   micro_audit fixture DIR MIB            five files of 1,024-byte records, one trace id, only successes, the last one
 * full micro_audit OPERATION DIR REPETITIONS  handover | page | correlation | missing | search | search_text | export |
 *                                          page_jsonl | page_csv | append | rotate
 *
 * Prints one JSON object: per repetition the wall time in microseconds (handover: nanoseconds per record) as median,
 * min and max, and of the whole operation CPU, bytes read, peak memory above what was there before, records and bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "obs/audit/journal.h"
#include "obs/audit/page.h"

enum { FILES = 5, RECORD = 1024, REPETITIONS_MAX = 1001, TRACE = 32 };
static const char trace[] = "0af7651916cd43dd8448eb211c80319c";

static struct sz_conf_audit conf_of(const char *dir, uint64_t segment, enum sz_durability durability)
{
    return (struct sz_conf_audit){
        .path = sz_cstr(dir),
        .sample = 1,
        .durability = durability,
        .sync_interval = SZ_MS(100),
        .rotate_size = segment,
        .rotate_age = SZ_SEC(86400 * 300),
        .retain = {.files = FILES, .size = UINT64_MAX / 4, .age = SZ_SEC(86400 * 300)},
        .denied = {.files = FILES, .size = UINT64_MAX / 4, .age = SZ_SEC(86400 * 300)},
        .checkpoint_records = UINT32_MAX,
        .checkpoint_interval = SZ_SEC(86400),
        .scan_bytes = 8 << 20,
    };
}

static struct sz_audit_event event_of(unsigned number, size_t pad, char id[32])
{
    static char filler[1024];
    struct sz_audit_event e = {.kind = SZ_AUDIT_DECISION,
                               .allow = true,
                               .authenticated = true,
                               .reason = SZ_REASON_allowed,
                               .status = 200,
                               .config = 0x1234567890abcdef,
                               .has_address = true};
    memset(filler, 'x', sizeof(filler));
    e.address.b[10] = e.address.b[11] = 0xff;
    e.address.b[12] = 10;
    e.text[SZ_AUDIT_REQUEST_ID] = sz_slice(id, (size_t)snprintf(id, 32, "%024u", number));
    e.text[SZ_AUDIT_TRACE_ID] = sz_slice(trace, TRACE);
    e.text[SZ_AUDIT_ROUTE] = SZ_S("documents.read");
    e.text[SZ_AUDIT_METHOD] = SZ_S("GET");
    e.text[SZ_AUDIT_PATH] = SZ_S("/documents/roadmap");
    e.text[SZ_AUDIT_SUBJECT] = SZ_S("user-4711");
    e.text[SZ_AUDIT_CLIENT] = SZ_S("web");
    e.text[SZ_AUDIT_ISSUER] = SZ_S("auth0");
    if (pad > 0)
        e.text[SZ_AUDIT_DETAIL] = sz_slice(filler, pad);
    return e;
}

static struct sz_audit *open_or_die(const struct sz_conf_audit *conf)
{
    struct sz_audit *audit = NULL;
    struct sz_text why = {""};
    if (sz_audit_open(conf, &audit, &why) != 0) {
        fprintf(stderr, "micro_audit: %s\n", why.s);
        exit(1);
    }
    return audit;
}

/* ---- the fixture ------------------------------------------------------------------------------------------------ */

/* What has to be added so that a record is 1,024 bytes. */
static size_t padding(void)
{
    char id[32];
    struct sz_buf line = {0};
    struct sz_audit_hash head = {{0}};
    struct sz_audit_memo memo = {0};
    struct sz_audit_places places;
    struct sz_audit_event e = event_of(1, 1, id);
    e.time = sz_wall_read();
    sz_audit_format(&line, &e, &(struct sz_audit_stamp){.seq = 10000, .memo = &memo}, &places);
    sz_audit_seal(&line, 0, &head);
    size_t pad = RECORD - line.n + 1;
    sz_buf_fini(&line);
    return pad;
}

static int make_fixture(const char *dir, unsigned mib)
{
    uint64_t segment = ((uint64_t)mib << 20) / FILES;
    struct sz_conf_audit conf = conf_of(dir, segment, SZ_DURABILITY_NONE);
    struct sz_audit *audit = open_or_die(&conf);
    size_t pad = padding();
    char id[32];
    unsigned n = 0;
    while (audit->store.tape[SZ_AUDIT_MAIN].n < FILES ||
           audit->store.tape[SZ_AUDIT_MAIN].size + 3 * RECORD < segment - 4096) {
        struct sz_audit_event e = event_of(n++, pad, id);
        (void)sz_audit_note(audit, &e);
        if (n % 64 == 0 || audit->store.tape[SZ_AUDIT_MAIN].n == FILES)
            sz_audit_flush(audit);
    }
    printf("{\"records\":%u}\n", n);
    sz_audit_close(&audit);
    return 0;
}

/* ---- measuring ----------------------------------------------------------------------------------------------------
 */

struct run {
    const char *dir;
    struct sz_audit_view view;
    struct sz_audit_query query;
    bool whole;
    uint64_t bytes;
    struct sz_audit *audit;
    struct sz_conf_audit conf;
    unsigned number;
    size_t pad;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void read_once(struct run *run)
{
    struct sz_buf out = {0};
    struct sz_text why = {""};
    int rc = 0;
    if (run->whole) {
        struct sz_audit_view view;
        struct sz_audit_export x;
        if (sz_audit_view_open(&view, run->dir, &why) != 0)
            exit(1);
        sz_audit_view_index(&view, run->dir, false);
        sz_audit_export_init(&x, &view, &run->query, 8 << 20);
        do {
            out.n = 0;
            rc = sz_audit_export_next(&x, 64 * 1024, UINT32_MAX, &out, &why);
            run->bytes += out.n;
        } while (rc == 1);
        sz_audit_export_fini(&x);
    } else {
        rc = sz_audit_page(&run->view, &run->query, 8 << 20, &out, &why);
        run->bytes += out.n;
    }
    if (rc < 0) {
        fprintf(stderr, "micro_audit: %s\n", why.s);
        exit(1);
    }
    sz_buf_fini(&out);
}

static void prepare_read(struct run *run, const char *operation)
{
    struct sz_text why = {""};
    const char *name = NULL, *value = NULL;
    if (strcmp(operation, "correlation") == 0)
        name = "trace_id", value = trace;
    else if (strcmp(operation, "missing") == 0 || strcmp(operation, "search") == 0)
        name = "decision", value = "deny";
    else if (strcmp(operation, "search_text") == 0)
        name = "q", value = "nowhere to be found";
    sz_audit_query_init(&run->query);
    if (name != NULL && sz_audit_query_set(&run->query, sz_cstr(name), sz_cstr(value), &why) != 0)
        exit(1);
    if (strncmp(operation, "page_", 5) == 0)
        run->query.limit = 100;
    run->query.csv = strcmp(operation, "page_csv") == 0;
    run->whole = strncmp(operation, "search", 6) == 0 || strcmp(operation, "export") == 0 || run->query.limit > 0;
    if (sz_audit_view_open(&run->view, run->dir, &why) != 0)
        exit(1);
    sz_audit_view_index(&run->view, run->dir, true);
}

/* One durable record: handed over, waited for. */
static void append_once(struct run *run)
{
    char id[32];
    struct sz_audit_event e = event_of(run->number++, run->pad, id);
    uint64_t before = atomic_load(&run->audit->shelf.committed);
    (void)sz_audit_note(run->audit, &e);
    while (atomic_load(&run->audit->shelf.committed) == before)
        sz_audit_wake(run->audit);
}

static double handover_ns(struct run *run)
{
    enum { BATCH = 2000 };
    char id[32];
    struct sz_audit_event e = event_of(run->number++, 0, id);
    e.time = sz_wall_read();
    double begun = now_us();
    for (int i = 0; i < BATCH; i++)
        (void)sz_audit_note(run->audit, &e);
    double took = now_us() - begun;
    sz_audit_flush(run->audit);
    return took * 1e3 / BATCH;
}

static void prepare_write(struct run *run, const char *operation)
{
    bool rotates = strcmp(operation, "rotate") == 0;
    run->conf = conf_of(run->dir, rotates ? 6000 : 1 << 30,
                        strcmp(operation, "handover") == 0 ? SZ_DURABILITY_INTERVAL : SZ_DURABILITY_ALWAYS);
    run->pad = padding();
    run->audit = open_or_die(&run->conf);
    sz_audit_flush(run->audit);
}

static double once(struct run *run, const char *operation)
{
    if (strcmp(operation, "handover") == 0)
        return handover_ns(run);
    double begun = now_us();
    if (run->audit != NULL)
        append_once(run);
    else
        read_once(run);
    return now_us() - begun;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static uint64_t read_chars(void)
{
    unsigned long long value = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (f != NULL) {
        if (fscanf(f, "rchar: %llu", &value) != 1)
            value = 0;
        fclose(f);
    }
    return value;
}

static int measure(const char *operation, const char *dir, int repetitions)
{
    static double values[REPETITIONS_MAX];
    struct run run = {.dir = dir};
    struct rusage before, after;
    bool writes =
        strcmp(operation, "handover") == 0 || strcmp(operation, "append") == 0 || strcmp(operation, "rotate") == 0;
    if (writes)
        prepare_write(&run, operation);
    else
        prepare_read(&run, operation);
    (void)once(&run, operation);
    getrusage(RUSAGE_SELF, &before);
    uint64_t chars = read_chars();
    for (int i = 0; i < repetitions; i++)
        values[i] = once(&run, operation);
    chars = read_chars() - chars;
    getrusage(RUSAGE_SELF, &after);
    qsort(values, (size_t)repetitions, sizeof(values[0]), compare);
    double cpu =
        (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec - before.ru_stime.tv_sec) *
            1e6 +
        (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_utime.tv_usec - before.ru_stime.tv_usec);
    printf(
        "{\"operation\":\"%s\",\"median\":%.3f,\"min\":%.3f,\"max\":%.3f,\"n\":%d,\"cpu_us\":%.1f,\"read_bytes\":%llu,"
        "\"peak_kb\":%ld,\"bytes\":%llu,\"lost\":%llu}\n",
        operation, values[repetitions / 2], values[0], values[repetitions - 1], repetitions, cpu / repetitions,
        (unsigned long long)chars / (unsigned)repetitions, after.ru_maxrss,
        (unsigned long long)run.bytes / (unsigned)repetitions,
        run.audit == NULL
            ? 0
            : (unsigned long long)(atomic_load(&run.audit->lost_queue) + atomic_load(&run.audit->lost_disk)));
    if (writes)
        sz_audit_close(&run.audit);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: micro_audit fixture DIR MIB | OPERATION DIR REPETITIONS\n");
        return 2;
    }
    int number = (int)strtol(argv[3], NULL, 10);
    sz_crypto_init();
    if (strcmp(argv[1], "fixture") == 0)
        return make_fixture(argv[2], (unsigned)number);
    return measure(argv[1], argv[2], number < 1 ? 1 : number > REPETITIONS_MAX ? REPETITIONS_MAX : number);
}
