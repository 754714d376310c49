/*
 * Files that the configuration names.  Only regular files and only up to a bound: a configuration that names
 * /dev/zero or a pipe must neither eat the memory nor hang the start.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/loader.h"
#include "conf/node.h"

#define SECRET_MAX (64u * 1024)

struct sz_slice sz_path_resolve(struct sz_loader *l, struct sz_slice path)
{
    if (path.n > 0 && path.p[0] == '/')
        return path;
    while (sz_starts_with(path, SZ_S("./")))
        path = sz_from(path, 2);
    return sz_pool_printf(l->pool, "%.*s%s%.*s", SZ_FMT(l->dir), l->dir.n == 1 ? "" : "/", SZ_FMT(path));
}

static int open_regular(struct sz_slice path, struct stat *st, struct sz_text *why)
{
    char name[4096];
    if (path.n >= sizeof(name)) {
        sz_text_set(why, "a path longer than %zu bytes", sizeof(name) - 1);
        return -ENAMETOOLONG;
    }
    memcpy(name, path.p, path.n);
    name[path.n] = '\0';
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int error = errno;
        sz_text_set(why, "cannot read '%.*s': %s", SZ_FMT(path), strerror(error));
        return -error;
    }
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
        close(fd);
        sz_text_set(why, "'%.*s' is no regular file", SZ_FMT(path));
        return -EINVAL;
    }
    return fd;
}

int sz_file_check(struct sz_slice path, struct sz_text *why)
{
    struct stat st;
    int fd = open_regular(path, &st, why);
    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

static int read_all(int fd, struct sz_pool *pool, struct sz_slice path, size_t size, struct sz_slice *out,
                    struct sz_text *why)
{
    char *bytes = sz_pool_alloc(pool, size + 1);
    size_t n = 0;
    while (n < size) {
        ssize_t got = read(fd, bytes + n, size - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int error = errno;
            sz_text_set(why, "cannot read '%.*s': %s", SZ_FMT(path), strerror(error));
            return -error;
        }
        if (got == 0)
            break;
        n += (size_t)got;
    }
    bytes[n] = '\0';
    *out = sz_slice(bytes, n);
    return 0;
}

int sz_file_read(struct sz_pool *pool, struct sz_slice path, size_t max, struct sz_slice *out, struct sz_text *why)
{
    struct stat st;
    int fd = open_regular(path, &st, why);
    if (fd < 0)
        return fd;
    int rc = 0;
    if (st.st_size == 0) {
        sz_text_set(why, "'%.*s' is empty", SZ_FMT(path));
        rc = -EINVAL;
    } else if ((uint64_t)st.st_size > max) {
        sz_text_set(why, "'%.*s' is larger than %zu bytes", SZ_FMT(path), max);
        rc = -EFBIG;
    } else {
        rc = read_all(fd, pool, path, (size_t)st.st_size, out, why);
    }
    close(fd);
    return rc;
}

void sz_secret_note(struct sz_loader *l, struct sz_slice value)
{
    struct sz_secret_note *note = sz_pool_alloc(l->pool, sizeof(*note));
    *note = (struct sz_secret_note){value, l->secrets};
    l->secrets = note;
}

void sz_secret_read(struct sz_loader *l, const struct sz_node *at, struct sz_slice path, struct sz_secret *out)
{
    struct sz_text why;
    struct sz_slice value;
    struct stat st;
    int rc = sz_file_read(l->pool, path, SECRET_MAX, &value, &why);
    if (rc != 0) {
        sz_mistake(l, at, "%s; a secret is a readable regular file of 1 to %u bytes", why.s, SECRET_MAX);
        return;
    }
    sz_secret_note(l, value);
    if (value.n > 0 && value.p[value.n - 1] == '\n')
        value.n--;
    if (value.n > 0 && value.p[value.n - 1] == '\r')
        value.n--;
    ((char *)(uintptr_t)value.p)[value.n] = '\0';
    if (value.n == 0) {
        sz_mistake(l, at, "'%.*s' holds an empty secret", SZ_FMT(path));
        return;
    }
    if (stat(path.p, &st) == 0 && (st.st_mode & S_IROTH) != 0)
        sz_warning(l, at, "'%.*s' can be read by everybody; chmod o-r it", SZ_FMT(path));
    *out = (struct sz_secret){.value = value, .set = true};
}

void sz_secret_take(struct sz_loader *l, const struct sz_node *at, struct sz_slice variable, struct sz_secret *out)
{
    const char *value = getenv(variable.p);
    if (value == NULL || *value == '\0') {
        sz_mistake(l, at, "%s is not set", variable.p);
        return;
    }
    struct sz_slice copy = sz_cstr(sz_pool_strdup(l->pool, sz_cstr(value)));
    sz_secret_note(l, copy);
    *out = (struct sz_secret){.value = copy, .set = true};
}
