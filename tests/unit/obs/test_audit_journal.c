/* The journal and its writer: what is acknowledged is there, what is lost is counted, whatever the disk does. */
#include "audit_kit.h"

#include <fcntl.h>
#include <sys/file.h>

TestSuite(audit, .timeout = 300);

/* ---- calls that fail ------------------------------------------------------------------------------------------- */

enum op { OPEN, WRITE, SYNC, SYNC_DIR, RENAME, UNLINK, TRUNCATE, OPS };
static struct {
    atomic_int calls[OPS];
    atomic_int fail_op, fail_at, fail_n, error; /* calls fail_at .. fail_at + fail_n - 1 of fail_op fail */
    atomic_bool all;                            /* everything that writes fails */
    atomic_bool partial;                        /* a failing write takes half first */
} io;

static bool fails(enum op op)
{
    int call = atomic_fetch_add(&io.calls[op], 1) + 1;
    bool fail = (op != OPEN && atomic_load(&io.all)) ||
                (atomic_load(&io.fail_op) == (int)op && call >= atomic_load(&io.fail_at) &&
                 call < atomic_load(&io.fail_at) + atomic_load(&io.fail_n));
    if (fail)
        errno = atomic_load(&io.error);
    return fail;
}
static int io_open(int dir, const char *name, int flags, mode_t mode)
{
    return fails(OPEN) ? -1 : sz_audit_io_system.open(dir, name, flags, mode);
}
static ssize_t io_write(int fd, const void *bytes, size_t n, off_t at)
{
    if (!fails(WRITE))
        return sz_audit_io_system.write(fd, bytes, n, at);
    if (atomic_load(&io.partial) && n > 1)
        (void)!sz_audit_io_system.write(fd, bytes, n / 2, at);
    errno = atomic_load(&io.error);
    return -1;
}
static int io_sync(int fd)
{
    return fails(SYNC) ? -1 : sz_audit_io_system.sync(fd);
}
static int io_sync_dir(int fd)
{
    return fails(SYNC_DIR) ? -1 : sz_audit_io_system.sync_dir(fd);
}
static int io_rename(int dir, const char *from, const char *to)
{
    return fails(RENAME) ? -1 : sz_audit_io_system.rename(dir, from, to);
}
static int io_unlink(int dir, const char *name)
{
    return fails(UNLINK) ? -1 : sz_audit_io_system.unlink(dir, name);
}
static int io_truncate(int fd, off_t size)
{
    return fails(TRUNCATE) ? -1 : sz_audit_io_system.truncate(fd, size);
}
static const struct sz_audit_io failing_io = {io_open,   io_write,  io_sync,    io_sync_dir,
                                              io_rename, io_unlink, io_truncate};

static void reset_io(void)
{
    memset(&io, 0, sizeof(io));
    io.fail_op = -1;
    io.error = EIO;
}

/* ---- required: what was acknowledged ------------------------------------------------------------------------------
 */

static void expect_exactly(const char *path, const bool *acknowledged, unsigned n, const char *what)
{
    struct kit_records records = kit_read(path);
    uint64_t refused = 0;
    for (unsigned i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof(id), "r-%u", i);
        cr_expect_eq(kit_count(&records, "request_id", id), acknowledged[i], "%s: %s", what, id);
        refused += !acknowledged[i];
    }
    refused += 1 - kit_count(&records, "kind", "start"); /* that may have been in the group that failed */
    cr_expect_eq(kit_sum(&records, "lost"), refused, "%s: %d lost, %d refused", what, (int)kit_sum(&records, "lost"),
                 (int)refused);
    kit_free(&records);
    kit_expect_good(path);
}

static void run_with_fault(enum op op, int at, int n, int error, bool partial)
{
    enum { EVENTS = 24 };
    bool acknowledged[EVENTS];
    char what[80], id[24];
    snprintf(what, sizeof(what), "op %d call %d+%d error %d", op, at, n, error);
    struct sz_conf_audit conf = kit_conf(what);
    conf.required = true;
    conf.durability = SZ_DURABILITY_ALWAYS;
    conf.rotate_size = 7000;
    reset_io();
    struct sz_audit *audit = kit_open_io(&conf, &failing_io);
    struct sz_loop *loop = fake_loop_new(0);
    struct sz_audit_port *port = sz_audit_port_open(audit, loop);
    for (int i = 0; i < OPS; i++)
        io.calls[i] = 0;
    io.error = error;
    io.partial = partial;
    io.fail_at = at;
    io.fail_n = n;
    io.fail_op = (int)op;
    for (unsigned i = 0; i < EVENTS; i++) {
        struct sz_audit_event e = kit_event(i, true, true, id);
        acknowledged[i] = kit_commit(audit, port, loop, &e);
        if (!acknowledged[i])
            poll(NULL, 0, 120);
    }
    io.fail_op = -1;
    for (int i = 0; i < 200 && atomic_load(&audit->failing) != 0; i++)
        poll(NULL, 0, 20);
    cr_expect_eq(atomic_load(&audit->failing), 0, "%s: it did not recover", what);
    sz_audit_port_close(&port);
    sz_audit_close(&audit);
    fake_loop_free(&loop);
    expect_exactly(conf.path.p, acknowledged, EVENTS, what);
}

#define FAULTS(name, op, most)                                                           \
    Test(audit, every_failed_##name)                                                     \
    {                                                                                    \
        for (int at = 1; at <= most; at++)                                               \
            run_with_fault(op, at, 1 + at % 2, at % 3 == 0 ? ENOSPC : EIO, at % 2 == 0); \
    }
FAULTS(open, OPEN, 4)
FAULTS(write, WRITE, 20)
FAULTS(sync, SYNC, 20)
FAULTS(sync_of_the_directory, SYNC_DIR, 4)
FAULTS(rename, RENAME, 3)
FAULTS(unlink, UNLINK, 3)

/* A write fails, and cutting back fails as well for a while. */
Test(audit, every_failed_truncate)
{
    for (int at = 1; at <= 3; at++)
        run_with_fault(TRUNCATE, 1, at, EIO, false);
    run_with_fault(WRITE, 5, 3, ENOSPC, true);
}

Test(audit, required_refuses_at_once_while_the_disk_does)
{
    struct sz_conf_audit conf = kit_conf("refuses");
    char id[24];
    conf.required = true;
    conf.durability = SZ_DURABILITY_INTERVAL;
    reset_io();
    struct sz_audit *audit = kit_open_io(&conf, &failing_io);
    struct sz_loop *loop = fake_loop_new(0);
    struct sz_audit_port *port = sz_audit_port_open(audit, loop);
    struct sz_audit_event e = kit_event(0, true, true, id);
    cr_expect(kit_commit(audit, port, loop, &e));
    io.all = true;
    for (int i = 0; i < 50; i++)
        cr_expect(!kit_commit(audit, port, loop, &e), "allowed without its record");
    struct sz_buf health = {0};
    cr_expect(!sz_audit_health(audit, &health));
    cr_expect_not_null(strstr(health.p, "\"failing\""));
    sz_buf_fini(&health);
    io.all = false;
    for (int i = 0; i < 100 && atomic_load(&audit->failing) != 0; i++)
        poll(NULL, 0, 20);
    cr_expect(kit_commit(audit, port, loop, &e));
    sz_audit_port_close(&port);
    sz_audit_close(&audit);
    fake_loop_free(&loop);
    kit_expect_good(conf.path.p);
}

/* ---- not required: what is lost is counted
 * ---------------------------------------------------------------------------- */

static void expect_all_accounted(const char *path, uint64_t pushed)
{
    struct kit_records records = kit_read(path);
    uint64_t present = kit_count(&records, "kind", "decision"), lost = kit_sum(&records, "lost");
    uint64_t counted = kit_sum(&records, "count");
    cr_expect_eq(present + lost + counted, pushed, "%d recorded, %d lost, %d counted of %d", (int)present, (int)lost,
                 (int)counted, (int)pushed);
    kit_free(&records);
    kit_expect_good(path);
}

Test(audit, a_gap_counts_what_is_missing)
{
    struct sz_conf_audit conf = kit_conf("gap");
    char id[24];
    unsigned pushed = 0;
    reset_io();
    struct sz_audit *audit = kit_open_io(&conf, &failing_io);
    for (int phase = 0; phase < 6; phase++) {
        io.all = phase % 2 == 1;
        io.error = phase == 3 ? ENOSPC : EIO;
        for (int i = 0; i < 300; i++) {
            struct sz_audit_event e = kit_event(pushed++, i % 4 != 0, true, id);
            (void)sz_audit_note(audit, &e);
        }
        poll(NULL, 0, 300);
    }
    io.all = false;
    poll(NULL, 0, 300);
    sz_audit_close(&audit);
    expect_all_accounted(conf.path.p, pushed);
}

/* Whatever the writer does when it comes, napping or asleep: a record waits neither for the next one nor for a flush.
 */
Test(audit, a_record_is_committed_without_another_one)
{
    static const enum sz_durability ways[] = {SZ_DURABILITY_NONE, SZ_DURABILITY_INTERVAL, SZ_DURABILITY_ALWAYS};
    char id[24];
    for (size_t way = 0; way < SZ_COUNT(ways); way++) {
        struct sz_conf_audit conf = kit_conf(way == 0 ? "none" : way == 1 ? "interval" : "always");
        conf.durability = ways[way];
        struct sz_audit *audit = kit_open(&conf);
        for (unsigned i = 0; i < 40; i++) {
            struct sz_audit_event e = kit_event(i, true, true, id);
            uint64_t before = atomic_load(&audit->shelf.committed);
            cr_assert(sz_audit_note(audit, &e));
            for (int ms = 0; ms < 20000 && atomic_load(&audit->shelf.committed) == before; ms++)
                poll(NULL, 0, 1);
            cr_assert_gt(atomic_load(&audit->shelf.committed), before, "record %u of %s", i, conf.path.p);
            poll(NULL, 0, (int)(i % 8) * 2); /* from in the middle of a nap to asleep */
        }
        sz_audit_close(&audit);
        kit_expect_good(conf.path.p);
    }
}

Test(audit, a_full_queue_counts_its_losses)
{
    struct sz_conf_audit conf = kit_conf("full");
    char id[24];
    unsigned pushed = 0;
    reset_io();
    struct sz_audit *audit = kit_open_io(&conf, &failing_io);
    while (atomic_load(&audit->shelf.committed) == 0)
        poll(NULL, 0, 1); /* the start record is not one of those that are counted */
    io.all = true;        /* the writer stands still between its attempts */
    while (atomic_load(&audit->lost_queue) < 1000) {
        struct sz_audit_event e = kit_event(pushed++, true, true, id);
        (void)sz_audit_note(audit, &e);
    }
    io.all = false;
    poll(NULL, 0, 400);
    sz_audit_close(&audit);
    expect_all_accounted(conf.path.p, pushed);
}

Test(audit, a_flood_is_counted_and_erases_nothing)
{
    struct sz_conf_audit conf = kit_conf("flood");
    char id[24];
    unsigned pushed = 0;
    conf.rotate_size = 16384;
    conf.denied.files = 3;
    struct sz_audit *audit = kit_open(&conf);
    for (int i = 0; i < 100; i++) {
        struct sz_audit_event e = kit_event(pushed++, true, true, id);
        (void)sz_audit_note(audit, &e);
    }
    for (int i = 0; i < 20000; i++) {
        struct sz_audit_event e = kit_event(7, false, false, id);
        (void)sz_audit_note(audit, &e);
        if (i % 1000 == 0)
            sz_audit_flush(audit);
    }
    sz_audit_close(&audit);
    struct kit_records records = kit_read(conf.path.p);
    cr_expect_eq(kit_count(&records, "decision", "allow"), 100, "evidence left");
    cr_expect_leq(kit_count(&records, "decision", "deny"), 800);
    cr_expect_geq(kit_sum(&records, "count") + kit_sum(&records, "lost"), 19000);
    kit_free(&records);
    kit_expect_good(conf.path.p);
}

/* ---- ends
 * -------------------------------------------------------------------------------------------------------------- */

static void write_some(const struct sz_conf_audit *conf, unsigned from, unsigned n)
{
    char id[24];
    struct sz_audit *audit = kit_open(conf);
    for (unsigned i = from; i < from + n; i++) {
        struct sz_audit_event e = kit_event(i, true, true, id);
        cr_assert(sz_audit_note(audit, &e));
    }
    sz_audit_close(&audit);
}

static void first_file(const struct sz_conf_audit *conf, char name[600])
{
    snprintf(name, 600, "%s/audit-%020d.jsonl", conf->path.p, 1);
}

Test(audit, a_torn_end_is_moved_aside)
{
    struct sz_conf_audit conf = kit_conf("torn");
    char name[600], torn[640];
    size_t n;
    write_some(&conf, 0, 5);
    first_file(&conf, name);
    int fd = open(name, O_WRONLY | O_APPEND);
    cr_assert_eq(write(fd, "{\"v\":1,\"seq\":99,\"half", 21), 21);
    close(fd);
    write_some(&conf, 5, 5);
    snprintf(torn, sizeof(torn), "%s.torn", name);
    char *bytes = file_read(torn, &n);
    cr_expect_eq(n, 21);
    free(bytes);
    struct kit_records records = kit_read(conf.path.p);
    cr_expect_eq(kit_count(&records, "kind", "torn"), 1);
    cr_expect_eq(kit_count(&records, "kind", "decision"), 10);
    kit_free(&records);
    kit_expect_good(conf.path.p);
}

Test(audit, damage_inside_is_left_alone_and_named)
{
    struct sz_conf_audit conf = kit_conf("damage");
    char name[600];
    size_t n, n2;
    write_some(&conf, 0, 5);
    first_file(&conf, name);
    char *bytes = file_read(name, &n);
    char *at = strstr(bytes, "r-2");
    at[2] = '9';
    int fd = open(name, O_WRONLY);
    cr_assert_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
    close(fd);
    write_some(&conf, 5, 5);
    char *after = file_read(name, &n2);
    cr_expect(n == n2 && sz_eq(sz_slice(bytes, n), sz_slice(after, n2)), "a damaged segment was written to");
    struct kit_records records = kit_read(conf.path.p);
    cr_expect_eq(kit_count(&records, "kind", "damage"), 1);
    cr_expect_eq(kit_count(&records, "kind", "decision"), 10);
    kit_free(&records);
    struct sz_audit_verdict verdict = kit_verify(conf.path.p, NULL, NULL);
    cr_expect(!verdict.good && strstr(verdict.what.s, "audit-00000000000000000001.jsonl:5") != NULL, "%s",
              verdict.what.s);
    struct sz_buf page = {0};
    struct sz_text why = {""};
    struct sz_audit_param asc = {"order", "asc"};
    cr_expect_eq(sz_audit_dir_page(conf.path.p, &asc, 1, &page, &why), -EBADMSG);
    cr_expect_not_null(strstr(why.s, ".jsonl:5"), "%s", why.s);
    sz_buf_fini(&page);
    free(bytes);
    free(after);
}

/* ---- the directory
 * -------------------------------------------------------------------------------------------------------- */

static void expect_refused(const struct sz_conf_audit *conf, const char *text)
{
    struct sz_audit *audit = NULL;
    struct sz_text why = {""};
    cr_expect_lt(sz_audit_open(conf, &audit, &why), 0);
    cr_expect_null(audit);
    cr_expect_not_null(strstr(why.s, text), "%s", why.s);
    sz_audit_close(&audit);
}

Test(audit, one_writer_and_nobody_elses_files)
{
    struct sz_conf_audit conf = kit_conf("mine"), link_conf = kit_conf("link");
    char name[700], holder[64];
    sz_crypto_init();
    write_some(&conf, 0, 1);
    struct sz_audit *audit = kit_open(&conf);
    snprintf(holder, sizeof(holder), "process %ld", (long)getpid());
    expect_refused(&conf, holder);
    sz_audit_close(&audit);
    cr_assert_eq(symlink(conf.path.p, link_conf.path.p), 0);
    expect_refused(&link_conf, "symbolic link");
    chmod(conf.path.p, 0755);
    expect_refused(&conf, "0700");
    chmod(conf.path.p, 0700);
    snprintf(name, sizeof(name), "%s/audit-00000000000000000900.jsonl", conf.path.p);
    cr_assert_eq(symlink("/etc/passwd", name), 0);
    expect_refused(&conf, "symbolic link");
    unlink(name);
    if (geteuid() == 0) {
        cr_assert_eq(chown(conf.path.p, 1234, 1234), 0);
        expect_refused(&conf, "belongs to user 1234");
    }
}

Test(audit, a_directory_that_vanishes_comes_back)
{
    struct sz_conf_audit conf = kit_conf("gone");
    char command[700], id[24];
    struct sz_audit *audit = kit_open(&conf);
    snprintf(command, sizeof(command), "rm -rf %s", conf.path.p);
    struct sz_audit_event e = kit_event(1, true, true, id);
    cr_assert(sz_audit_note(audit, &e));
    sz_audit_flush(audit);
    cr_assert_eq(system(command), 0);
    e = kit_event(2, true, true, id);
    cr_assert(sz_audit_note(audit, &e));
    poll(NULL, 0, 600);
    e = kit_event(3, true, true, id);
    cr_assert(sz_audit_note(audit, &e));
    sz_audit_close(&audit);
    struct kit_records records = kit_read(conf.path.p);
    cr_expect_eq(kit_count(&records, "request_id", "r-3"), 1);
    cr_expect_eq(kit_count(&records, "kind", "gap"), 1);
    cr_expect_eq(kit_sum(&records, "lost"), 1);
    kit_free(&records);
}

Test(audit, retention_keeps_its_numbers_and_says_what_went)
{
    struct sz_conf_audit conf = kit_conf("retain");
    char id[24];
    conf.rotate_size = 8192;
    conf.retain.files = 3;
    struct sz_audit *audit = kit_open(&conf);
    for (unsigned i = 0; i < 400; i++) {
        struct sz_audit_event e = kit_event(i, true, true, id);
        cr_assert(sz_audit_note(audit, &e));
        if (i % 10 == 0) {
            sz_audit_flush(audit);
            cr_expect_leq(audit->store.tape[SZ_AUDIT_MAIN].n, 3);
        }
    }
    sz_audit_close(&audit);
    struct kit_records records = kit_read(conf.path.p);
    cr_expect_geq(kit_count(&records, "kind", "retention"), 1);
    cr_expect_eq(kit_count(&records, "request_id", "r-399"), 1);
    cr_expect_eq(kit_count(&records, "request_id", "r-0"), 0);
    kit_free(&records);
    kit_expect_good(conf.path.p);
    write_some(&conf, 400, 3);
    kit_expect_good(conf.path.p);
}
