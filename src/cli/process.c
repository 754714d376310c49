/* See the header.  Order matters in sz_process_drop: groups need root, so they go first, and then there must be no way
 * back. */
#include "cli/process.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int sz_process_harden(struct sz_text *why)
{
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0 &&
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        return 0;
    int rc = -errno;
    sz_text_set(why, "cannot harden the process: %s", strerror(-rc));
    return rc;
}

int sz_process_drop(struct sz_slice user, struct sz_text *why)
{
    if (geteuid() != 0)
        return 0;
    if (user.n == 0)
        return SZ_PROCESS_STILL_ROOT;
    struct passwd entry, *found = NULL;
    char buf[4096];
    int rc = getpwnam_r(user.p, &entry, buf, sizeof(buf), &found);
    if (rc != 0 || found == NULL) {
        sz_text_set(why, "user '%.*s' does not exist", SZ_FMT(user));
        return -ENOENT;
    }
    if (entry.pw_uid == 0) {
        sz_text_set(why, "user '%.*s' is root; name an unprivileged one", SZ_FMT(user));
        return -EINVAL;
    }
    if (initgroups(user.p, entry.pw_gid) != 0 || setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) != 0 ||
        setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid) != 0) {
        rc = -errno;
        sz_text_set(why, "cannot become user '%.*s': %s", SZ_FMT(user), strerror(-rc));
        return rc;
    }
    SZ_ASSERT(setuid(0) != 0 && geteuid() == entry.pw_uid && getegid() == entry.pw_gid);
    /* Changing identity made the process dumpable again. */
    return sz_process_harden(why);
}

uint64_t sz_process_raise_files(uint64_t wanted)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    if (limit.rlim_cur < wanted) {
        rlim_t to = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        struct rlimit raised = {to, limit.rlim_max};
        if (to > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit.rlim_cur = to;
    }
    return limit.rlim_cur;
}

#if defined(__SANITIZE_ADDRESS__)
/* libh2o keeps a cache of buffers in each thread, and its queues, for the life of the process. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:h2o_mem_alloc_recycle\nleak:h2o_multithread_create_queue\n";
}

void sz_process_end(void)
{
    prctl(PR_SET_DUMPABLE, 1);
}
#else
void sz_process_end(void)
{
}
#endif
