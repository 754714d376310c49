/* verify.c: whatever is done to a small journal, verify says so; and to an untouched one it says nothing. */
#include "audit_kit.h"

#include <fcntl.h>

enum { FILES = 16 };
struct copy {
    char name[600];
    char *bytes;
    size_t n;
};
static struct {
    struct sz_conf_audit conf;
    char anchor[600];
    uint8_t public_key[32];
    struct copy files[FILES];
    size_t files_n;
} j;

static void write_file(const char *name, const char *bytes, size_t n)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
    close(fd);
}

static void make_journal(void)
{
    char id[24];
    uint8_t seed[32];
    char jwk[160], d[64];
    sz_crypto_init();
    memset(seed, 7, sizeof(seed));
    struct sz_ed25519 key;
    sz_ed25519_from_seed(seed, &key);
    sz_ed25519_public(&key, j.public_key);
    size_t n = sz_b64url_encode(seed, sizeof(seed), d);
    snprintf(jwk, sizeof(jwk), "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"%.*s\"}", (int)n, d);
    j.conf = kit_conf("journal");
    j.conf.rotate_size = 6000; /* a few records each */
    j.conf.key = (struct sz_secret){.value = sz_cstr(jwk), .set = true};
    snprintf(j.anchor, sizeof(j.anchor), "%s/anchor", scratch_path());
    j.conf.anchor = sz_cstr(j.anchor);
    struct sz_audit *audit = kit_open(&j.conf);
    for (unsigned i = 0; i < 10; i++) {
        struct sz_audit_event e = kit_event(i, i % 2 == 0, i % 5 != 1, id);
        cr_assert(sz_audit_note(audit, &e));
        sz_audit_flush(audit);
    }
    sz_audit_close(&audit);
    j.conf.key = (struct sz_secret){0};
}

static void read_files(void)
{
    DIR *d = opendir(j.conf.path.p);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        struct copy *f = &j.files[j.files_n];
        size_t n = strlen(e->d_name);
        if (n < 6 || strcmp(e->d_name + n - 6, ".jsonl") != 0)
            continue;
        cr_assert_lt(j.files_n, FILES);
        snprintf(f->name, sizeof(f->name), "%s/%s", j.conf.path.p, e->d_name);
        f->bytes = file_read(f->name, &f->n);
        j.files_n++;
    }
    closedir(d);
}

static void setup(void)
{
    make_journal();
    read_files();
    cr_assert_geq(j.files_n, 3);
}
TestSuite(audit_verify, .init = setup, .timeout = 300);

static void expect_found(const char *what, size_t at, const char *name)
{
    struct sz_audit_verdict verdict = kit_verify(j.conf.path.p, NULL, j.anchor);
    cr_expect(!verdict.good, "%s at %zu of %s was not found", what, at, name);
    cr_expect(verdict.good || strchr(verdict.what.s, ':') != NULL, "%s", verdict.what.s);
}

Test(audit_verify, an_untouched_journal_passes)
{
    struct sz_audit_verdict verdict = kit_verify(j.conf.path.p, j.public_key, j.anchor);
    cr_expect(verdict.good, "%s", verdict.what.s);
    cr_expect_geq(verdict.signed_checkpoints, 1);
    cr_expect_geq(verdict.records, 10);
}

Test(audit_verify, another_key_is_not_this_one)
{
    uint8_t other[32] = {1};
    struct sz_audit_verdict verdict = kit_verify(j.conf.path.p, other, NULL);
    cr_expect(!verdict.good);
}

Test(audit_verify, each_byte_changed)
{
    for (size_t f = 0; f < j.files_n; f++) {
        struct copy *c = &j.files[f];
        for (size_t at = 0; at < c->n; at++) {
            c->bytes[at] ^= 1;
            write_file(c->name, c->bytes, c->n);
            expect_found("a flipped bit", at, c->name);
            c->bytes[at] ^= 1;
        }
        write_file(c->name, c->bytes, c->n);
    }
}

/* Calls change for every line of every file with what comes before it, it, and what comes after. */
static void for_each_line(bool (*change)(struct sz_buf *out, struct sz_slice before, struct sz_slice line,
                                         struct sz_slice after),
                          const char *what)
{
    for (size_t f = 0; f < j.files_n; f++) {
        struct copy *c = &j.files[f];
        for (size_t from = 0; from < c->n;) {
            const char *newline = memchr(c->bytes + from, '\n', c->n - from);
            size_t to = (size_t)(newline - c->bytes) + 1;
            struct sz_buf out = {0};
            if (change(&out, sz_slice(c->bytes, from), sz_slice(c->bytes + from, to - from),
                       sz_slice(c->bytes + to, c->n - to))) {
                write_file(c->name, out.p != NULL ? out.p : "", out.n);
                expect_found(what, from, c->name);
            }
            sz_buf_fini(&out);
            from = to;
        }
        write_file(c->name, c->bytes, c->n);
    }
}

static bool leave_out(struct sz_buf *out, struct sz_slice before, struct sz_slice line, struct sz_slice after)
{
    (void)line;
    sz_buf_adds(out, before);
    sz_buf_adds(out, after);
    return true;
}
static bool twice(struct sz_buf *out, struct sz_slice before, struct sz_slice line, struct sz_slice after)
{
    sz_buf_adds(out, before);
    sz_buf_adds(out, line);
    sz_buf_adds(out, line);
    sz_buf_adds(out, after);
    return true;
}
static bool swapped(struct sz_buf *out, struct sz_slice before, struct sz_slice line, struct sz_slice after)
{
    const char *newline = after.n == 0 ? NULL : memchr(after.p, '\n', after.n);
    if (newline == NULL)
        return false;
    struct sz_slice next = sz_sub(after, 0, (size_t)(newline - after.p) + 1);
    sz_buf_adds(out, before);
    sz_buf_adds(out, next);
    sz_buf_adds(out, line);
    sz_buf_adds(out, sz_from(after, next.n));
    return true;
}
static bool without_front(struct sz_buf *out, struct sz_slice before, struct sz_slice line, struct sz_slice after)
{
    (void)before;
    (void)line;
    sz_buf_adds(out, after);
    return true;
}

Test(audit_verify, each_record_removed)
{
    for_each_line(leave_out, "a removed record");
}
Test(audit_verify, each_record_doubled)
{
    for_each_line(twice, "a doubled record");
}
Test(audit_verify, each_pair_swapped)
{
    for_each_line(swapped, "a swapped pair");
}
Test(audit_verify, each_front_cut)
{
    for_each_line(without_front, "a front cut off");
}

Test(audit_verify, each_end_cut)
{
    for (size_t f = 0; f < j.files_n; f++) {
        struct copy *c = &j.files[f];
        for (size_t n = 0; n < c->n; n++) {
            write_file(c->name, c->bytes, n);
            expect_found("an end cut off", n, c->name);
        }
        write_file(c->name, c->bytes, c->n);
    }
}

Test(audit_verify, each_file_removed)
{
    for (size_t f = 0; f < j.files_n; f++) {
        unlink(j.files[f].name);
        expect_found("a removed file", 0, j.files[f].name);
        write_file(j.files[f].name, j.files[f].bytes, j.files[f].n);
    }
}

Test(audit_verify, an_emptied_journal_against_its_anchor)
{
    for (size_t f = 0; f < j.files_n; f++)
        unlink(j.files[f].name);
    expect_found("everything removed", 0, "all");
}

/* An old copy is put back: the anchor knows more; appending goes on, and what was recorded is not done again. */
Test(audit_verify, a_backup_put_back)
{
    char id[24];
    struct sz_audit *audit = kit_open(&j.conf);
    struct sz_audit_event e = kit_event(100, true, true, id);
    cr_assert(sz_audit_note(audit, &e));
    sz_audit_close(&audit);
    struct kit_records records = kit_read(j.conf.path.p);
    kit_free(&records);
    char command[1400];
    snprintf(command, sizeof(command), "rm -f %s/*.jsonl*", j.conf.path.p);
    cr_assert_eq(system(command), 0);
    for (size_t f = 0; f < j.files_n; f++)
        write_file(j.files[f].name, j.files[f].bytes, j.files[f].n);
    expect_found("a backup", 0, "all");
    audit = kit_open(&j.conf);
    e = kit_event(101, true, true, id);
    cr_assert(sz_audit_note(audit, &e));
    sz_audit_close(&audit);
    kit_expect_good(j.conf.path.p);
    records = kit_read(j.conf.path.p);
    cr_expect_eq(kit_count(&records, "request_id", "r-101"), 1);
    cr_expect_eq(kit_count(&records, "request_id", "r-5"), 1);
    kit_free(&records);
    expect_found("a backup that went on", 0, "all");
}
