/* fga/demo_key.c: a folder in a place that everybody can write to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/crypto.h"
#include "subzero/demo.h"

static char root[64], folder[128], file[160];

static void setup(void)
{
    sz_crypto_init();
    snprintf(root, sizeof(root), "/tmp/sz-demo-XXXXXX");
    cr_assert(mkdtemp(root) != NULL);
    snprintf(folder, sizeof(folder), "%s/subzero-demo-%u", root, (unsigned)geteuid());
    snprintf(file, sizeof(file), "%s/key.jwk", folder);
    setenv("XDG_RUNTIME_DIR", root, 1);
}

static void teardown(void)
{
    unlink(file);
    if (rmdir(folder) != 0)
        unlink(folder);
    cr_expect_eq(rmdir(root), 0, "nothing is left behind");
}

TestSuite(demo_key, .init = setup, .fini = teardown);

static int load(enum sz_demo_key what, struct sz_buf *jwk)
{
    struct sz_text why = {""};
    int rc = sz_demo_key_load(what, jwk, &why);
    cr_expect(rc == 0 || why.s[0] != '\0');
    return rc;
}

static int load_and_drop(enum sz_demo_key what)
{
    struct sz_buf jwk = {0};
    int rc = load(what, &jwk);
    sz_buf_fini(&jwk);
    return rc;
}

Test(demo_key, is_not_made_by_looking)
{
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_FIND), -ENOENT);
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_FIND), -ENOENT);
}

Test(demo_key, is_made_once_and_private)
{
    struct sz_buf first = {0}, second = {0};
    struct stat st;
    umask(0);
    cr_assert_eq(load(SZ_DEMO_KEY_MAKE, &first), 0);
    cr_expect(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700);
    cr_expect(stat(file, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_nlink == 1);
    cr_expect_eq(load(SZ_DEMO_KEY_MAKE, &second), 0);
    cr_expect(sz_eq(sz_buf_slice(&first), sz_buf_slice(&second)));
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_FIND), 0);
    sz_buf_fini(&first);
    sz_buf_fini(&second);
}

Test(demo_key, a_folder_that_others_may_enter_is_refused)
{
    cr_assert_eq(mkdir(folder, 0700), 0);
    cr_assert_eq(chmod(folder, 0755), 0);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_MAKE), -EPERM);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_FIND), -EPERM);
}

Test(demo_key, a_linked_folder_is_refused)
{
    cr_assert_eq(symlink("/tmp", folder), 0);
    cr_expect_neq(load_and_drop(SZ_DEMO_KEY_MAKE), 0);
}

Test(demo_key, a_file_that_others_may_read_a_link_or_a_fifo_is_refused)
{
    cr_assert_eq(load_and_drop(SZ_DEMO_KEY_MAKE), 0);
    cr_assert_eq(chmod(file, 0640), 0);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_FIND), -EPERM);
    cr_assert_eq(unlink(file), 0);
    cr_assert_eq(symlink("/etc/hostname", file), 0);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_MAKE), -EPERM);
    cr_assert_eq(unlink(file), 0);
    cr_assert_eq(mkfifo(file, 0600), 0);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_MAKE), -EPERM, "and it does not hang");
}

Test(demo_key, an_empty_file_is_no_key)
{
    cr_assert_eq(mkdir(folder, 0700), 0);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_MAKE), -EINVAL);
}

Test(demo_key, a_relative_runtime_folder_is_refused)
{
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    cr_expect_eq(load_and_drop(SZ_DEMO_KEY_MAKE), -EINVAL);
}
