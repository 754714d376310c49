/* Revocations on disk: whatever a crash tears, whatever a disk refuses, whatever somebody puts there instead. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache/revocation_file.h"
#include "subzero/crypto.h"

static char root[64], path[96], name[128];
static struct sz_revocation got[64];
static size_t got_n;

static void setup(void)
{
    sz_crypto_init();
    snprintf(root, sizeof(root), "/tmp/sz-revoked-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/state", root);
    snprintf(name, sizeof(name), "%s/revocations", path);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

TestSuite(revocation_file, .init = setup, .fini = teardown);

static void on_record(void *arg, const struct sz_revocation *r)
{
    (void)arg;
    cr_assert_lt(got_n, SZ_COUNT(got));
    got[got_n++] = *r;
}

static int open_file(struct sz_revocation_file *file, struct sz_text *why)
{
    got_n = 0;
    return sz_revocation_file_open(file, path, on_record, NULL, why);
}

static struct sz_revocation record(int n)
{
    struct sz_revocation r = {.kind = (uint8_t)(n % SZ_REVOKE_KINDS), .before = n, .expires = INT64_MAX, .made = -n};
    memset(r.digest, n, sizeof(r.digest));
    return r;
}

/* n records from `first` on, as one batch. */
static void encode(struct sz_buf *out, int first, int n)
{
    for (int i = 0; i < n; i++) {
        struct sz_revocation r = record(first + i);
        sz_revocation_encode(&r, (size_t)i, out);
    }
}

static int append(struct sz_revocation_file *file, int first, int n)
{
    struct sz_buf b = {0};
    struct sz_text why;
    encode(&b, first, n);
    int rc = sz_revocation_file_append(file, sz_buf_slice(&b), &sz_revocation_system, &why);
    sz_buf_fini(&b);
    return rc;
}

static void expect_records(int n)
{
    cr_assert_eq(got_n, (size_t)n, "%zu instead of %d", got_n, n);
    for (int i = 0; i < n; i++) {
        struct sz_revocation want = record(i + 1);
        cr_assert_arr_eq(got[i].digest, want.digest, 32);
        cr_assert(got[i].before == want.before && got[i].made == want.made && got[i].kind == want.kind);
    }
}

/* A file with two batches, of three and of four records. */
static void write_two(void)
{
    struct sz_revocation_file file;
    struct sz_text why = {""};
    cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
    cr_assert_eq(append(&file, 1, 3), 0);
    cr_assert_eq(append(&file, 4, 4), 0);
    sz_revocation_file_close(&file);
}

static void patch(off_t at, const char *bytes, size_t n)
{
    int fd = open(name, O_RDWR);
    cr_assert(fd >= 0 && pwrite(fd, bytes, n, at) == (ssize_t)n);
    close(fd);
}

Test(revocation_file, what_was_appended_is_there)
{
    struct sz_revocation_file file;
    struct sz_text why = {""};
    write_two();
    cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
    expect_records(7);
    sz_revocation_file_close(&file);
}

/* Whatever the length at which the last batch was cut: the first is there, and the file can be gone on with. */
Test(revocation_file, a_torn_end_costs_what_nobody_was_told_of)
{
    struct sz_text why = {""};
    for (off_t cut = 0; cut < 4 * SZ_REVOCATION_BYTES; cut += 13) {
        struct sz_revocation_file file;
        unlink(name);
        write_two();
        cr_assert_eq(truncate(name, SZ_REVOCATION_BYTES * 4 + cut), 0);
        cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
        expect_records(3 + (int)(cut / SZ_REVOCATION_BYTES));
        cr_assert_eq(append(&file, 4 + (int)(cut / SZ_REVOCATION_BYTES), 1), 0);
        sz_revocation_file_close(&file);
        cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
        expect_records(4 + (int)(cut / SZ_REVOCATION_BYTES));
        sz_revocation_file_close(&file);
    }
}

/* A disk writes the blocks of one batch in any order. */
Test(revocation_file, a_hole_in_the_last_batch_is_a_torn_end)
{
    struct sz_revocation_file file;
    struct sz_text why = {""};
    static const char zero[SZ_REVOCATION_BYTES];
    write_two();
    patch(SZ_REVOCATION_BYTES * 5, zero, sizeof(zero)); /* its second of four */
    cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
    expect_records(4);
    sz_revocation_file_close(&file);
}

Test(revocation_file, damage_before_the_last_batch_stops_the_start)
{
    struct sz_revocation_file file;
    struct sz_text why = {""};
    for (off_t at = SZ_REVOCATION_BYTES; at < 4 * SZ_REVOCATION_BYTES; at += 7) {
        char byte;
        unlink(name);
        write_two();
        int fd = open(name, O_RDONLY);
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        close(fd);
        byte ^= 4;
        patch(at, &byte, 1);
        cr_assert_eq(open_file(&file, &why), -EBADMSG, "byte %lld", (long long)at);
        cr_assert_not_null(strstr(why.s, "damaged"));
    }
}

Test(revocation_file, refuses_what_is_not_its_own)
{
    struct sz_revocation_file file, second;
    struct sz_text why = {""};
    write_two();
    patch(0, "subzero revocations 2\n", 22);
    cr_assert_eq(open_file(&file, &why), -EPROTONOSUPPORT);
    patch(0, "subzero tuples 1\n     ", 22);
    cr_assert_eq(open_file(&file, &why), -EBADMSG);
    unlink(name);
    cr_assert_eq(symlink("/dev/null", name), 0);
    cr_assert_lt(open_file(&file, &why), 0);
    unlink(name);
    cr_assert_eq(mkfifo(name, 0600), 0);
    cr_assert_lt(open_file(&file, &why), 0);
    unlink(name);
    cr_assert_eq(open_file(&file, &why), 0);
    cr_assert_eq(open_file(&second, &why), -EBUSY, "one process at a time");
    sz_revocation_file_close(&file);
    cr_assert_eq(chmod(path, 0755), 0);
    cr_assert_eq(open_file(&file, &why), -EPERM);
    cr_assert_eq(chmod(path, 0700), 0);
}

/* ---- a disk that refuses ----------------------------------------------------------------------------------------- */

static int fail_in; /* so many calls go well */
static bool fails(void)
{
    errno = ENOSPC;
    return fail_in-- <= 0;
}

static ssize_t test_pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    if (fails()) {
        size_t part = n / 2; /* and half of it is written all the same */
        return part > 0 && pwrite(fd, bytes, part, at) > 0 ? -1 : -1;
    }
    return pwrite(fd, bytes, n > 100 ? 100 : n, at); /* short writes are no failure */
}

static int test_fsync(int fd)
{
    return fails() ? -1 : fsync(fd);
}

static int test_rename(int dir, const char *from, const char *to)
{
    return fails() ? -1 : renameat(dir, from, dir, to);
}

static const struct sz_revocation_calls refusing = {test_pwrite, test_fsync, test_rename};

Test(revocation_file, a_failed_append_leaves_what_was_there)
{
    for (int good = 0; good < 6; good++) {
        struct sz_revocation_file file;
        struct sz_text why = {""};
        struct sz_buf more = {0}, all = {0};
        unlink(name);
        write_two();
        cr_assert_eq(open_file(&file, &why), 0);
        encode(&more, 8, 4);
        fail_in = good;
        int rc = sz_revocation_file_append(&file, sz_buf_slice(&more), &refusing, &why);
        cr_assert_eq(rc == 0, good == 5, "%d calls", good);
        cr_assert_eq(file.broken, rc != 0);
        encode(&all, 1, 11);
        cr_assert_eq(sz_revocation_file_replace(&file, sz_buf_slice(&all), &sz_revocation_system, &why), 0);
        cr_assert_not(file.broken);
        sz_revocation_file_close(&file);
        cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
        expect_records(11);
        sz_revocation_file_close(&file);
        sz_buf_fini(&more);
        sz_buf_fini(&all);
    }
}

Test(revocation_file, a_failed_replacement_leaves_one_or_the_other)
{
    for (int good = 0; good < 12; good++) {
        struct sz_revocation_file file;
        struct sz_text why = {""};
        struct sz_buf all = {0};
        unlink(name);
        write_two();
        cr_assert_eq(open_file(&file, &why), 0);
        encode(&all, 1, 9);
        fail_in = good;
        int rc = sz_revocation_file_replace(&file, sz_buf_slice(&all), &refusing, &why);
        sz_revocation_file_close(&file);
        cr_assert_eq(open_file(&file, &why), 0, "%s", why.s);
        if (rc == 0 || got_n == 9)
            expect_records(9);
        else
            expect_records(7);
        sz_revocation_file_close(&file);
        sz_buf_fini(&all);
    }
}
