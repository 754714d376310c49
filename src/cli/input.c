/* Reads at once, into memory that does not move: what was read may be a key, and growing would leave copies behind. */
#include "cli/input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int sz_cli_read(const char *path, size_t max, struct sz_buf *out)
{
    int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    out->p = sz_xrealloc(out->p, out->n + max + 1);
    out->cap = out->n + max + 1;
    size_t limit = out->n + max;
    int rc = 0;
    for (ssize_t n = 1; n > 0 && out->n <= limit;) {
        n = read(fd, out->p + out->n, out->cap - out->n);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n < 0)
            rc = -errno;
        else
            out->n += (size_t)n;
    }
    if (fd != STDIN_FILENO)
        close(fd);
    return rc != 0 ? rc : out->n > limit ? -EFBIG : 0;
}
