/*
 * Stores on disk.  The disk is a fake one that counts what is done to it and goes down at a chosen step: half of a
 * write is there, and of what was not synced some is lost.  Whatever the step, the next start opens, and holds every
 * write that was acknowledged.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fga/api/durable.h"

static char dir[64];
static struct sz_text why;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/subzero-stores-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void teardown(void)
{
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(fga_stores, .init = setup, .fini = teardown, .timeout = 120);

/* ---- a hub without loops ---- */

static struct sz_wall day_one(void)
{
    return (struct sz_wall){1700000000000000};
}

static struct sz_fga_hub *open_hub(const struct sz_disk *disk)
{
    struct sz_fga_hub *hub = sz_fga_hub_new(&(struct sz_fga_clock){sz_mono_read, day_one});
    if (sz_hub_open_on(hub, dir, disk, &why) == 0)
        return hub;
    sz_fga_hub_free(&hub);
    return NULL;
}

/* The body, malloc'ed, for a status as expected. */
static char *call(struct sz_fga_hub *hub, const char *method, const char *target, const char *body, unsigned *status)
{
    struct sz_fga_reply reply = {0};
    struct sz_fga_call c = {
        .method = sz_cstr(method), .target = sz_cstr(target), .body = sz_cstr(body), .authorization = SZ_NONE};
    sz_ofga_answer_here(hub, &c, &reply);
    *status = reply.status;
    sz_buf_add(&reply.body, "", 1);
    return reply.body.p;
}

static bool did(struct sz_fga_hub *hub, const char *method, const char *target, const char *body, unsigned wanted)
{
    unsigned status;
    free(call(hub, method, target, body, &status));
    return status == wanted;
}

#define MODEL                                                                                                  \
    "{\"schema_version\":\"1.1\",\"type_definitions\":[{\"type\":\"user\"},{\"type\":\"doc\",\"relations\":{"  \
    "\"viewer\":{\"this\":{}}},\"metadata\":{\"relations\":{\"viewer\":{\"directly_related_user_types\":["     \
    "{\"type\":\"user\"},{\"type\":\"user\",\"condition\":\"over\"}]}}}}],\"conditions\":{\"over\":{\"name\":" \
    "\"over\","                                                                                                \
    "\"expression\":\"x > 1\",\"parameters\":{\"x\":{\"type_name\":\"TYPE_NAME_INT\"}}}}}"

/* A store with its model; its id. */
static bool make_store(struct sz_fga_hub *hub, char id[SZ_ULID + 1])
{
    char target[128];
    unsigned status;
    char *body = call(hub, "POST", "/stores", "{\"name\":\"a store\"}", &status);
    bool good = status == 201 && sscanf(body, "{\"id\":\"%26[0-9A-Z]", id) == 1;
    free(body);
    snprintf(target, sizeof(target), "/stores/%.26s/authorization-models", id);
    return good && did(hub, "POST", target, MODEL, 201);
}

static bool change(struct sz_fga_hub *hub, const char *id, const char *what, int user, const char *condition)
{
    char target[128], body[256];
    snprintf(target, sizeof(target), "/stores/%.26s/write", id);
    snprintf(body, sizeof(body),
             "{\"%s\":{\"tuple_keys\":[{\"user\":\"user:%d\",\"relation\":\"viewer\",\"object\":\"doc:1\"%s}]}}", what,
             user, condition);
    return did(hub, "POST", target, body, 200);
}

static bool allowed(struct sz_fga_hub *hub, const char *id, int user)
{
    char target[128], body[256];
    unsigned status;
    snprintf(target, sizeof(target), "/stores/%.26s/check", id);
    snprintf(
        body, sizeof(body),
        "{\"tuple_key\":{\"user\":\"user:%d\",\"relation\":\"viewer\",\"object\":\"doc:1\"},\"context\":{\"x\":2}}",
        user);
    char *answer = call(hub, "POST", target, body, &status);
    bool yes = status == 200 && strstr(answer, "true") != NULL;
    free(answer);
    return yes;
}

static char *changes_of(struct sz_fga_hub *hub, const char *id)
{
    char target[128];
    unsigned status;
    snprintf(target, sizeof(target), "/stores/%.26s/changes?page_size=100", id);
    return call(hub, "GET", target, "", &status);
}

#define CONDITION ",\"condition\":{\"name\":\"over\",\"context\":{\"x\":5}}"

Test(fga_stores, what_was_written_is_there_after_a_restart_and_after_shortening)
{
    struct sz_fga_hub *hub = open_hub(&sz_disk_real);
    char id[SZ_ULID + 1] = "", gone[SZ_ULID + 1] = "", target[128];
    cr_assert_not_null(hub, "%s", why.s);
    cr_assert(make_store(hub, id) && make_store(hub, gone));
    for (int i = 0; i < 40; i++)
        cr_assert(change(hub, id, "writes", i, i % 2 == 0 ? "" : CONDITION));
    for (int i = 0; i < 20; i++)
        cr_assert(change(hub, id, "deletes", i, ""));
    snprintf(target, sizeof(target), "/stores/%s", id);
    cr_assert(did(hub, "PATCH", target, "{\"name\":\"another name\"}", 200));
    snprintf(target, sizeof(target), "/stores/%s", gone);
    cr_assert(did(hub, "DELETE", target, "", 204));
    char *before = changes_of(hub, id);
    for (int round = 0; round < 3; round++) {
        if (round == 1)
            cr_assert_eq(sz_hub_shorten(hub), 0);
        sz_fga_hub_free(&hub);
        hub = open_hub(&sz_disk_real);
        cr_assert_not_null(hub, "round %d: %s", round, why.s);
        for (int i = 0; i < 40; i++)
            cr_expect_eq(allowed(hub, id, i), i >= 20, "round %d, user %d", round, i);
        cr_expect(did(hub, "GET", target, "", 404));
        struct sz_fga_store *store = sz_hub_store(hub, sz_cstr(id));
        cr_expect_str_eq(store->name, "another name", "round %d", round);
        sz_hub_store_unref(store);
        char *after = changes_of(hub, id);
        cr_expect_str_eq(after, before, "round %d", round);
        free(after);
    }
    /* What comes after a restart is numbered on: a follower's token stays good. */
    cr_expect(change(hub, id, "writes", 5, ""));
    char *after = changes_of(hub, id);
    cr_expect_eq(strncmp(after, before, strlen("{\"changes\":[")), 0);
    cr_expect_str_neq(after, before);
    free(after);
    free(before);
    sz_fga_hub_free(&hub);
}

Test(fga_stores, a_second_process_is_refused)
{
    struct sz_fga_hub *hub = open_hub(&sz_disk_real);
    cr_assert_not_null(hub);
    cr_expect_null(open_hub(&sz_disk_real));
    cr_expect(strstr(why.s, "another process") != NULL, "%s", why.s);
    sz_fga_hub_free(&hub);
}

/* ---- damage ---- */

static void read_file(struct sz_buf *out)
{
    char path[128], chunk[4096];
    snprintf(path, sizeof(path), "%s/" SZ_JOURNAL_FILE, dir);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f);
    out->n = 0;
    for (size_t n; (n = fread(chunk, 1, sizeof(chunk), f)) > 0;)
        sz_buf_add(out, chunk, n);
    fclose(f);
}

static void write_file(const void *p, size_t n)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/" SZ_JOURNAL_FILE, dir);
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(p, 1, n, f), n);
    fclose(f);
}

static size_t make_log(struct sz_buf *file, char id[SZ_ULID + 1])
{
    struct sz_fga_hub *hub = open_hub(&sz_disk_real);
    cr_assert(hub != NULL && make_store(hub, id));
    cr_assert(change(hub, id, "writes", 1, ""));
    size_t before = (size_t)sz_journal_size(hub->journal);
    cr_assert(change(hub, id, "deletes", 1, ""));
    sz_fga_hub_free(&hub);
    read_file(file);
    return before; /* where the last record begins */
}

Test(fga_stores, an_incomplete_last_record_is_moved_aside)
{
    struct sz_buf file = {0};
    char id[SZ_ULID + 1] = "", torn[128];
    size_t last = make_log(&file, id);
    for (size_t n = last + 1; n < file.n; n++) {
        write_file(file.p, n);
        struct sz_fga_hub *hub = open_hub(&sz_disk_real);
        cr_assert_not_null(hub, "%zu bytes: %s", n, why.s);
        cr_expect(allowed(hub, id, 1), "%zu bytes: the write before it holds", n);
        cr_expect(change(hub, id, "deletes", 1, "") && !allowed(hub, id, 1), "and it goes on from there");
        sz_fga_hub_free(&hub);
    }
    snprintf(torn, sizeof(torn), "%s/" SZ_JOURNAL_FILE ".torn-%zu", dir, last);
    struct stat st;
    cr_expect(stat(torn, &st) == 0 && st.st_size > 0);
    /* Zeros are space that was taken and never written. */
    struct sz_buf zeros = {0};
    sz_buf_add(&zeros, file.p, last);
    for (int i = 0; i < 100; i++)
        sz_buf_add(&zeros, "", 1);
    write_file(zeros.p, zeros.n);
    struct sz_fga_hub *hub = open_hub(&sz_disk_real);
    cr_expect_not_null(hub, "%s", why.s);
    sz_fga_hub_free(&hub);
    sz_buf_fini(&zeros);
    sz_buf_fini(&file);
}

/* A dropped delete would be a returned grant. */
Test(fga_stores, any_other_damage_refuses_the_start_and_says_where)
{
    struct sz_buf file = {0};
    char id[SZ_ULID + 1] = "", offset[32];
    size_t last = make_log(&file, id);
    for (size_t i = 0; i < file.n; i++) {
        file.p[i] ^= 0x10;
        write_file(file.p, file.n);
        struct sz_fga_hub *hub = open_hub(&sz_disk_real);
        cr_expect(hub == NULL || (i >= 12 && i < 16), "byte %zu", i); /* those four say nothing yet */
        cr_expect(hub != NULL || strstr(why.s, "offset ") != NULL, "byte %zu: %s", i, why.s);
        sz_fga_hub_free(&hub);
        file.p[i] ^= 0x10;
    }
    file.p[last + 30] ^= 1;
    write_file(file.p, file.n);
    cr_expect_null(open_hub(&sz_disk_real));
    snprintf(offset, sizeof(offset), "offset %zu:", last);
    cr_expect(strstr(why.s, offset) != NULL, "%s", why.s);
    file.p[last + 30] ^= 1;
    file.p[8] = 2;
    write_file(file.p, file.n);
    cr_expect_null(open_hub(&sz_disk_real));
    cr_expect(strstr(why.s, "version 2") != NULL, "%s", why.s);
    sz_buf_fini(&file);
}

/* ---- a disk that fails, and one that goes down ---- */

static struct {
    int step, at; /* 0: never */
    bool down;    /* the machine goes down there; else the call fails once */
    off_t synced; /* of the file that is written */
    int fd;
} fake;

static void go_down(int fd)
{
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && fake.fd == fd && st.st_size > fake.synced)
        (void)!ftruncate(fd, fake.synced + (st.st_size - fake.synced) / 2);
    _exit(99);
}

static bool trips(void)
{
    return ++fake.step == fake.at;
}

static ssize_t fake_write(int fd, const void *p, size_t n)
{
    struct stat st;
    if (fake.fd != fd && fstat(fd, &st) == 0) {
        fake.fd = fd;
        fake.synced = st.st_size;
    }
    if (!trips())
        return write(fd, p, n);
    ssize_t half = write(fd, p, n / 2);
    if (fake.down)
        go_down(fd);
    (void)half;
    errno = ENOSPC;
    return -1;
}

static int fake_sync(int fd)
{
    struct stat st;
    if (trips()) {
        if (fake.down)
            go_down(fd);
        errno = EIO;
        return -1;
    }
    if (fake.fd == fd && fstat(fd, &st) == 0)
        fake.synced = st.st_size;
    return fdatasync(fd);
}

static int fake_truncate(int fd, off_t size)
{
    if (trips()) {
        if (fake.down)
            go_down(fd);
        errno = EIO;
        return -1;
    }
    return ftruncate(fd, size);
}

static int fake_rename(int at, const char *from, const char *to)
{
    if (trips()) {
        if (fake.down)
            go_down(-1);
        errno = EIO;
        return -1;
    }
    return renameat(at, from, at, to);
}

static const struct sz_disk fake_disk = {fake_write, fake_sync, fake_truncate, fake_rename};

/* Every acknowledgement as a byte: the user, with the top bit for a delete.  A store first. */
static void work(int out)
{
    char id[SZ_ULID + 1] = "";
    struct sz_fga_hub *hub = open_hub(&fake_disk);
    if (hub == NULL || !make_store(hub, id))
        _exit(1);
    (void)!write(out, id, SZ_ULID);
    for (int i = 0; i < 24; i++) {
        uint8_t ack = (uint8_t)i;
        if (change(hub, id, "writes", i, i % 3 == 0 ? CONDITION : ""))
            (void)!write(out, &ack, 1);
        ack = (uint8_t)(0x80 | (i / 2));
        if (i % 2 == 1 && change(hub, id, "deletes", i / 2, ""))
            (void)!write(out, &ack, 1);
        if (i == 12)
            (void)!sz_hub_shorten(hub);
    }
    sz_fga_hub_free(&hub);
    _exit(0);
}

struct acks {
    char id[SZ_ULID + 1];
    bool has_id, written[64], deleted[64];
};

static int run_work(int at, bool down, struct acks *acks)
{
    int pipes[2], status = 0;
    uint8_t bytes[512];
    memset(acks, 0, sizeof(*acks));
    cr_assert_eq(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        fake.at = at;
        fake.down = down;
        close(pipes[0]);
        freopen("/dev/null", "w", stderr);
        work(pipes[1]);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(pipes[0], bytes + n, sizeof(bytes) - n)) > 0;)
        n += (size_t)got;
    close(pipes[0]);
    waitpid(pid, &status, 0);
    acks->has_id = n >= SZ_ULID;
    if (acks->has_id)
        memcpy(acks->id, bytes, SZ_ULID);
    for (size_t i = SZ_ULID; i < n; i++)
        *((bytes[i] & 0x80) != 0 ? &acks->deleted[bytes[i] & 0x3f] : &acks->written[bytes[i]]) = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect_acknowledged(const struct acks *acks, const char *how, int at)
{
    struct sz_fga_hub *hub = open_hub(&sz_disk_real);
    cr_assert_not_null(hub, "%s at step %d: %s", how, at, why.s);
    for (int i = 0; i < 64 && acks->has_id; i++) {
        if (acks->deleted[i])
            cr_expect_not(allowed(hub, acks->id, i), "%s at step %d: the delete of user %d came back", how, at, i);
        else if (acks->written[i] && i >= 12)
            cr_expect(allowed(hub, acks->id, i), "%s at step %d: the write of user %d is lost", how, at, i);
    }
    sz_fga_hub_free(&hub);
}

static void at_every_step(bool down, int ends)
{
    struct acks acks;
    int at = 1, code = ends;
    for (; at < (down ? 400 : 120); at++) {
        teardown();
        cr_assert_eq(mkdir(dir, 0700), 0);
        code = run_work(at, down, &acks);
        cr_assert(code == ends || code == 0 || code == 1, "step %d: the worker ended with %d", at, code);
        expect_acknowledged(&acks, down ? "down" : "failed", at);
        if (code == 0 && acks.has_id && down)
            break; /* there are no more steps */
    }
    cr_expect(!down || (at > 60 && at < 400), "%d steps", at);
}

Test(fga_stores, the_machine_goes_down_at_every_step)
{
    at_every_step(true, 99);
}

Test(fga_stores, every_step_fails_once)
{
    at_every_step(false, 0);
}
