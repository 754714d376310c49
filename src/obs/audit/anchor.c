/*
 * The program is started for each checkpoint and gets one line; a line is shorter than what a pipe takes at once, so
 * nothing here waits for it.  While it runs the next checkpoint is not handed over: the one after says all the same.
 */
#include "obs/audit/anchor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static int append(const char *path, struct sz_slice line)
{
    struct sz_buf bytes = {0};
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    sz_buf_adds(&bytes, line);
    sz_buf_add(&bytes, "\n", 1);
    ssize_t n = write(fd, bytes.p, bytes.n);
    int rc = n == (ssize_t)bytes.n ? 0 : n < 0 ? -errno : -ENOSPC;
    if (rc == 0 && fdatasync(fd) != 0 && errno != EINVAL) /* a pipe or a device cannot be synced */
        rc = -errno;
    close(fd);
    sz_buf_fini(&bytes);
    return rc;
}

static int spawn(pid_t *pid, const char *program, int in)
{
    static char *const no_environment[] = {NULL};
    char *const argv[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int rc = posix_spawn(pid, program, &actions, &attributes, argv, no_environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return -rc;
}

static int run(struct sz_audit_anchor *anchor, const char *program, struct sz_slice line)
{
    int status, ends[2], rc = 0;
    if (anchor->running != 0 && waitpid(anchor->running, &status, WNOHANG) == anchor->running) {
        rc = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
        anchor->running = 0;
    }
    if (anchor->running != 0)
        return -EBUSY;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    int started = spawn(&anchor->running, program, ends[0]);
    close(ends[0]);
    if (started != 0)
        anchor->running = 0;
    else if (write(ends[1], line.p, line.n) != (ssize_t)line.n || write(ends[1], "\n", 1) != 1)
        started = -EPIPE;
    close(ends[1]);
    return started != 0 ? started : rc;
}

int sz_audit_anchor_put(struct sz_audit_anchor *anchor, const struct sz_conf_audit *conf, struct sz_slice line)
{
    int rc = conf->anchor.p != NULL ? append(conf->anchor.p, line) : 0;
    int ran = conf->anchor_command.p != NULL ? run(anchor, conf->anchor_command.p, line) : 0;
    return rc != 0 ? rc : ran;
}

void sz_audit_anchor_end(struct sz_audit_anchor *anchor)
{
    if (anchor->running != 0)
        (void)waitpid(anchor->running, NULL, WNOHANG);
    anchor->running = 0;
}
