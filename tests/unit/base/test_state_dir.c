/* state_dir.c: whose directories are trusted. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake/process.h"
#include "subzero/state_dir.h"

TestSuite(state_dir, .fini = scratch_remove);

static int open_it(const char *name, struct sz_text *why)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", scratch_path(), name);
    int dir = sz_state_dir_open(path, why);
    if (dir >= 0)
        close(dir);
    return dir;
}

static void make(const char *name, mode_t mode)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", scratch_path(), name);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_assert_eq(chmod(path, mode), 0);
}

Test(state_dir, is_made_and_opened_again)
{
    struct sz_text why;
    cr_expect_geq(open_it("new", &why), 0, "%s", why.s);
    cr_expect_geq(open_it("new", &why), 0, "%s", why.s);
}

/* As a volume of Kubernetes with fsGroup: whatever is made in it inherits the bit. */
Test(state_dir, in_a_directory_with_set_group_id)
{
    struct sz_text why;
    struct stat st;
    char path[512];
    make("volume", 02777);
    cr_expect_geq(open_it("volume/state", &why), 0, "%s", why.s);
    snprintf(path, sizeof(path), "%s/volume/state", scratch_path());
    cr_assert_eq(stat(path, &st), 0);
    cr_expect_eq(st.st_mode & 07777, 02700, "nothing was inherited: %o", st.st_mode);
}

Test(state_dir, open_to_others_it_is_refused)
{
    static const mode_t modes[] = {0750, 0705, 0770, 0777, 0701, 0720, 02710, 0500};
    struct sz_text why;
    char name[16];
    for (size_t i = 0; i < SZ_COUNT(modes); i++) {
        snprintf(name, sizeof(name), "%zu", i);
        make(name, modes[i]);
        cr_expect_lt(open_it(name, &why), 0, "mode %o", (unsigned)modes[i]);
        cr_expect_neq(strstr(why.s, "chmod 0700"), NULL, "%s", why.s);
    }
}

Test(state_dir, a_link_or_a_file_is_refused)
{
    struct sz_text why;
    char path[512], to[512];
    make("real", 0700);
    snprintf(to, sizeof(to), "%s/real", scratch_path());
    snprintf(path, sizeof(path), "%s/link", scratch_path());
    cr_assert_eq(symlink(to, path), 0);
    cr_expect_lt(open_it("link", &why), 0);
    cr_expect_neq(strstr(why.s, "not a directory itself"), NULL, "%s", why.s);
}
