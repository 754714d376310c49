/* The one check of state_dir, for all who keep something there. */
#include "subzero/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(struct sz_text *why, int error, const char *what)
{
    sz_text_set(why, "%s: %s", what, strerror(error));
    return -error;
}

static int dir_trusted(int dir, struct sz_text *why)
{
    struct stat st;
    if (fstat(dir, &st) != 0)
        return failed(why, errno, "cannot look at it");
    if (st.st_uid != geteuid())
        sz_text_set(why, "it belongs to another user (%u); chown it", (unsigned)st.st_uid);
    else if ((st.st_mode & 0777) != 0700) /* set-group-ID is inherited, as in volumes that Kubernetes gives a group */
        sz_text_set(why, "its mode is %04o; whoever can write there could make keys: chmod 0700",
                    (unsigned)(st.st_mode & 0777));
    else
        return 0;
    return -EPERM;
}

int sz_state_dir_open(const char *path, struct sz_text *why)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return failed(why, errno, "cannot make it");
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) {
        bool link = errno == ELOOP || errno == ENOTDIR;
        return failed(why, errno, link ? "not a directory itself (symbolic links are not followed)" : "cannot open it");
    }
    int rc = dir_trusted(dir, why);
    if (rc == 0)
        return dir;
    close(dir);
    return rc;
}
