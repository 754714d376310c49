/* fga/key_file.c: whose file it is, what is refused, and every way in which saving can fail. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fga/key_file.h"

static char root[64], path[96];
static int dir;

static void clear(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", root);
    cr_assert_eq(system(command), 0);
}

static void setup(void)
{
    struct sz_text why;
    snprintf(root, sizeof(root), "/tmp/sz-keys-XXXXXX");
    cr_assert_not_null(mkdtemp(root));
    snprintf(path, sizeof(path), "%s/state", root);
    dir = sz_key_dir_open(path, &why);
    cr_assert_geq(dir, 0, "%s", why.s);
}

static void teardown(void)
{
    close(dir);
    clear();
}

TestSuite(key_file, .init = setup, .fini = teardown);

static struct sz_key_record record(const char *document)
{
    return (struct sz_key_record){SZ_S("https://idp.test/"), SZ_S("https://idp.test/jwks"), 1767225600, 600,
                                  sz_cstr(document)};
}

static int load(struct sz_key_record *r, char *document, size_t size)
{
    struct sz_buf room = {0};
    struct sz_text why;
    r->document = SZ_NONE;
    int rc = sz_key_file_load(dir, r, &room, &why);
    if (rc == 0)
        snprintf(document, size, "%.*s", SZ_FMT(r->document));
    sz_buf_fini(&room);
    return rc;
}

/* The one file of the directory; more than one fails the test. */
static void only_file(char out[512])
{
    DIR *d = opendir(path);
    unsigned n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(out, 512, "%s/%s", path, e->d_name);
        n++;
    }
    closedir(d);
    cr_assert_eq(n, 1, "%u files", n);
}

Test(key_file, a_directory_that_others_could_use_is_refused)
{
    struct sz_text why;
    char other[128], link_path[128];
    snprintf(other, sizeof(other), "%s/open", root);
    snprintf(link_path, sizeof(link_path), "%s/link", root);
    cr_assert_eq(mkdir(other, 0755), 0);
    cr_expect_eq(sz_key_dir_open(other, &why), -EPERM);
    cr_expect(strstr(why.s, "0755") != NULL, "%s", why.s);
    cr_assert_eq(symlink(path, link_path), 0);
    cr_expect_lt(sz_key_dir_open(link_path, &why), 0);
    cr_expect(strstr(why.s, "symbolic") != NULL, "%s", why.s);
    snprintf(other, sizeof(other), "%s/file", root);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    cr_expect_lt(sz_key_dir_open(other, &why), 0);
    if (geteuid() == 0) {
        cr_assert_eq(chown(path, 12345, 12345), 0);
        cr_expect_eq(sz_key_dir_open(path, &why), -EPERM);
        cr_expect(strstr(why.s, "another user") != NULL, "%s", why.s);
    }
}

Test(key_file, what_was_saved_comes_back_and_only_for_the_same_source)
{
    struct sz_key_record r = record("{\"keys\":[1]}"), other = r;
    struct sz_text why;
    char text[64], name[512];
    struct stat st;
    cr_expect_eq(load(&other, text, sizeof(text)), -ENOENT);
    cr_assert_eq(sz_key_file_save(dir, &r, &sz_key_file_system, &why), 0, "%s", why.s);
    other = (struct sz_key_record){.issuer = r.issuer, .source = r.source};
    cr_assert_eq(load(&other, text, sizeof(text)), 0);
    cr_expect_str_eq(text, "{\"keys\":[1]}");
    cr_expect(other.fetched == r.fetched && other.lifetime == r.lifetime);
    only_file(name);
    cr_expect(stat(name, &st) == 0 && (st.st_mode & 07777) == 0600);
    other.source = SZ_S("https://idp.test/other");
    cr_expect_eq(load(&other, text, sizeof(text)), -ENOENT);
    other = (struct sz_key_record){.issuer = SZ_S("https://evil.test/"), .source = r.source};
    cr_expect_eq(load(&other, text, sizeof(text)), -ENOENT);
}

Test(key_file, damage_is_noticed_and_a_newer_version_left_alone)
{
    struct sz_key_record r = record("{\"keys\":[2]}"), back = r;
    struct sz_text why;
    char text[64], name[512], content[1024] = "";
    cr_assert_eq(sz_key_file_save(dir, &r, &sz_key_file_system, &why), 0);
    only_file(name);
    FILE *f = fopen(name, "r+");
    size_t n = fread(content, 1, sizeof(content), f);
    for (size_t i = 0; i < n; i++) { /* any byte */
        rewind(f);
        fputc(content[i] ^ 1, (fseek(f, (long)i, SEEK_SET), f));
        fflush(f);
        cr_expect_lt(load(&back, text, sizeof(text)), 0, "byte %zu", i);
        fseek(f, (long)i, SEEK_SET);
        fputc(content[i], f);
        fflush(f);
    }
    cr_expect_eq(load(&back, text, sizeof(text)), 0);
    for (size_t i = 0; i < n; i++) { /* any length */
        cr_assert_eq(ftruncate(fileno(f), (off_t)i), 0);
        cr_expect_lt(load(&back, text, sizeof(text)), 0, "%zu bytes", i);
    }
    fclose(f);
    f = fopen(name, "w");
    fputs("subzero keys 2\nwhatever\n", f);
    fclose(f);
    cr_expect_eq(load(&back, text, sizeof(text)), -EPROTONOSUPPORT);
    cr_expect_eq(sz_key_file_save(dir, &r, &sz_key_file_system, &why), -EPROTONOSUPPORT);
    cr_expect(strstr(why.s, "newer version") != NULL);
    f = fopen(name, "r");
    cr_expect(fgets(content, sizeof(content), f) != NULL && strcmp(content, "subzero keys 2\n") == 0);
    fclose(f);
}

Test(key_file, a_link_or_fifo_in_its_place_is_not_read)
{
    struct sz_key_record r = record("{\"keys\":[2]}"), back = r;
    struct sz_text why;
    char text[64], name[512];
    cr_assert_eq(sz_key_file_save(dir, &r, &sz_key_file_system, &why), 0);
    only_file(name);
    cr_assert_eq(unlink(name), 0);
    cr_assert_eq(symlink("/etc/passwd", name), 0);
    cr_expect_eq(load(&back, text, sizeof(text)), -ELOOP);
    cr_expect_eq(sz_key_file_save(dir, &r, &sz_key_file_system, &why), 0, "the link itself is replaced");
    cr_expect_eq(load(&back, text, sizeof(text)), 0);
    cr_assert_eq(unlink(name), 0);
    cr_assert_eq(mkfifo(name, 0600), 0);
    cr_expect_eq(load(&back, text, sizeof(text)), -EINVAL);
}

/* ---- injected failures ---------------------------------------------------------------------------------------------
 */

static enum { NOTHING, WRITE, SHORT_WRITE, FSYNC, RENAME, FSYNC_DIR } broken;
static unsigned syncs;

static ssize_t bad_write(int fd, const void *bytes, size_t n)
{
    errno = ENOSPC;
    if (broken == WRITE)
        return -1;
    if (broken == SHORT_WRITE) {
        broken = WRITE;
        return write(fd, bytes, n / 2);
    }
    return write(fd, bytes, n > 7 ? 7 : n); /* in small pieces */
}

static int bad_fsync(int fd)
{
    syncs++;
    errno = EIO;
    return (broken == FSYNC && syncs == 1) || (broken == FSYNC_DIR && syncs == 2) ? -1 : fsync(fd);
}

static int bad_rename(int d, const char *from, const char *to)
{
    errno = EACCES;
    return broken == RENAME ? -1 : renameat(d, from, d, to);
}

Test(key_file, each_step_may_fail_and_the_next_save_succeeds)
{
    static const struct sz_key_file_calls calls = {bad_write, bad_fsync, bad_rename};
    static const struct {
        int broken, rc;
        const char *says, *then;
    } cases[] = {
        {WRITE, -ENOSPC, "cannot write", "{\"keys\":[1]}"},
        {SHORT_WRITE, -ENOSPC, "cannot write", "{\"keys\":[1]}"},
        {FSYNC, -EIO, "cannot sync the file", "{\"keys\":[1]}"},
        {RENAME, -EACCES, "cannot rename", "{\"keys\":[1]}"},
        {FSYNC_DIR, -EIO, "cannot sync the directory", "{\"keys\":[2]}"},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        struct sz_key_record old = record("{\"keys\":[1]}"), next = record("{\"keys\":[2]}"), back = old;
        struct sz_text why;
        char text[64], name[512];
        broken = NOTHING;
        cr_assert_eq(sz_key_file_save(dir, &old, &calls, &why), 0);
        broken = (typeof(broken))cases[i].broken;
        syncs = 0;
        cr_expect_eq(sz_key_file_save(dir, &next, &calls, &why), cases[i].rc, "%zu: %s", i, why.s);
        cr_expect(strstr(why.s, cases[i].says) != NULL, "%zu: %s", i, why.s);
        cr_assert_eq(load(&back, text, sizeof(text)), 0, "%zu", i);
        cr_expect_str_eq(text, cases[i].then);
        only_file(name);
        broken = NOTHING;
        cr_expect_eq(sz_key_file_save(dir, &next, &calls, &why), 0);
        cr_assert_eq(load(&back, text, sizeof(text)), 0);
        cr_expect_str_eq(text, "{\"keys\":[2]}");
    }
}
