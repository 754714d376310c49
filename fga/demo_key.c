/*
 * The demo issuer's key on disk.  /tmp is everybody's: whoever makes the folder first could choose our key,
 * so a folder or file that is not ours alone, or is a link, ends it here.  The key is
 * written beside its place and linked into it: two demos that start at once agree on one, and a
 * crash leaves none that is half written.
 */
#include "subzero/demo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { KEY_MAX = 16 * 1024 };

struct place {
    char folder[512];
    int dir;
};

static int folder_path(struct place *p, struct sz_text *why)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (base == NULL || base[0] == '\0')
        base = "/tmp";
    if (base[0] != '/') {
        sz_text_set(why, "XDG_RUNTIME_DIR is not an absolute path");
        return -EINVAL;
    }
    int n = snprintf(p->folder, sizeof(p->folder), "%s/subzero-demo-%u", base, (unsigned)geteuid());
    if (n < 0 || (size_t)n >= sizeof(p->folder)) {
        sz_text_set(why, "XDG_RUNTIME_DIR is too long");
        return -ENAMETOOLONG;
    }
    return 0;
}

/* Ours, and nobody else may as much as read it. */
static bool private_to_us(int fd, mode_t type)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

static int open_folder(struct place *p, enum sz_demo_key what, struct sz_text *why)
{
    if (what == SZ_DEMO_KEY_MAKE && mkdir(p->folder, 0700) != 0 && errno != EEXIST) {
        int rc = -errno;
        sz_text_set(why, "cannot make %s: %s", p->folder, strerror(-rc));
        return rc;
    }
    p->dir = open(p->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->dir < 0 && errno == ENOENT) {
        sz_text_set(why, "%s does not exist: start 'subzero serve --demo' first, as the same user", p->folder);
        return -ENOENT;
    }
    if (p->dir < 0) {
        int rc = -errno;
        sz_text_set(why, "cannot open %s: %s", p->folder, strerror(-rc));
        return rc;
    }
    if (!private_to_us(p->dir, S_IFDIR)) {
        sz_text_set(why, "%s is not a folder of ours alone (owner %u, mode 0700); look into it and remove it",
                    p->folder, (unsigned)geteuid());
        return -EPERM;
    }
    return 0;
}

static int read_key(const struct place *p, struct sz_buf *jwk, struct sz_text *why)
{
    char text[KEY_MAX];
    int fd = openat(p->dir, "key.jwk", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        sz_text_set(why, "%s/key.jwk does not exist: start 'subzero serve --demo' first", p->folder);
        return -ENOENT;
    }
    if (fd < 0) {
        int rc = errno == ELOOP ? -EPERM : -errno;
        sz_text_set(why, "cannot open %s/key.jwk: %s", p->folder, errno == ELOOP ? "it is a link" : strerror(-rc));
        return rc;
    }
    int rc = 0;
    ssize_t n = 0;
    if (!private_to_us(fd, S_IFREG)) {
        sz_text_set(why, "%s/key.jwk is not a file of ours alone (owner %u, mode 0600); remove it", p->folder,
                    (unsigned)geteuid());
        rc = -EPERM;
    } else if ((n = read(fd, text, sizeof(text))) <= 0 || n == (ssize_t)sizeof(text)) {
        sz_text_set(why, "%s/key.jwk is no key; remove it and start the demo again", p->folder);
        rc = -EINVAL;
    } else {
        sz_buf_add(jwk, text, (size_t)n);
    }
    sz_wipe(text, sizeof(text));
    close(fd);
    return rc;
}

static int write_all(int fd, struct sz_slice s)
{
    while (s.n != 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno != EINTR)
            return -errno;
        s = n > 0 ? sz_from(s, (size_t)n) : s;
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

static int make_key(const struct place *p, struct sz_text *why)
{
    struct sz_buf jwk = {0};
    char name[48];
    uint64_t random;
    sz_random(&random, sizeof(random));
    snprintf(name, sizeof(name), "key.jwk.%016llx", (unsigned long long)random);
    int fd = openat(p->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : sz_key_generate(SZ_ALG_ES256, &jwk);
    if (rc == 0)
        rc = write_all(fd, sz_buf_slice(&jwk));
    if (rc == 0 && linkat(p->dir, name, p->dir, "key.jwk", 0) != 0 && errno != EEXIST)
        rc = -errno;
    if (fd >= 0) {
        close(fd);
        unlinkat(p->dir, name, 0);
    }
    if (jwk.p != NULL)
        sz_wipe(jwk.p, jwk.n);
    sz_buf_fini(&jwk);
    if (rc != 0)
        sz_text_set(why, "cannot write a key into %s: %s", p->folder, strerror(-rc));
    return rc;
}

int sz_demo_key_load(enum sz_demo_key what, struct sz_buf *jwk, struct sz_text *why)
{
    struct place p = {.dir = -1};
    int rc = folder_path(&p, why);
    if (rc == 0)
        rc = open_folder(&p, what, why);
    if (rc == 0)
        rc = read_key(&p, jwk, why);
    if (rc == -ENOENT && what == SZ_DEMO_KEY_MAKE && p.dir >= 0) {
        rc = make_key(&p, why);
        if (rc == 0)
            rc = read_key(&p, jwk, why);
    }
    if (p.dir >= 0)
        close(p.dir);
    return rc;
}
