/* See process.h.  Everything here may block and may abort: it runs in a test's own process, never on a loop. */
#include "fake/process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subzero/time.h"

/* ---- scratch folder -------------------------------------------------------------------- */

#define FILES_MAX 64

static char folder[64];
static char files[FILES_MAX][256];
static size_t files_n;

const char *scratch_path(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof(folder), "/tmp/subzero-test.XXXXXX");
        SZ_ASSERT(mkdtemp(folder) != NULL);
        SZ_ASSERT(chmod(folder, 0777) == 0);
    }
    return folder;
}

void scratch_remove(void)
{
    if (folder[0] != '\0') {
        pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/rm", "rm", "-rf", folder, (char *)NULL);
            _exit(127);
        }
        waitpid(pid, NULL, 0);
    }
    folder[0] = '\0';
    files_n = 0;
}

const char *scratch_write(const char *name, struct sz_slice content)
{
    char *path = files[files_n++];

    SZ_ASSERT(files_n <= FILES_MAX);
    snprintf(path, sizeof(files[0]), "%s/%s", scratch_path(), name);
    FILE *f = fopen(path, "wb");
    SZ_ASSERT(f != NULL && fwrite(content.p, 1, content.n, f) == content.n && fclose(f) == 0);
    return path;
}

const char *scratch_printf(const char *name, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    int n = vasprintf(&text, fmt, args);
    va_end(args);
    SZ_ASSERT(n >= 0);
    const char *path = scratch_write(name, sz_slice(text, (size_t)n));
    free(text);
    return path;
}

char *file_read(const char *path, size_t *n)
{
    struct sz_buf out = {0};
    char chunk[16384];
    size_t got;
    FILE *f = fopen(path, "rb");

    while (f != NULL && (got = fread(chunk, 1, sizeof(chunk), f)) > 0)
        sz_buf_add(&out, chunk, got);
    if (f != NULL)
        fclose(f);
    if (n != NULL)
        *n = out.n;
    sz_buf_add(&out, "", 1);
    return out.p;
}

/* ---- sockets ---------------------------------------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return addr;
}

/*
 * Below the range that outgoing connections take their ports from, and each process from a place of its own: a port
 * that is free now is then still free when the program that it is meant for binds it.
 */
uint16_t free_port(void)
{
    static unsigned next;
    bool free = false;
    uint16_t port = 0;

    if (next == 0)
        next = (unsigned)getpid() * 61u;
    for (int tries = 0; !free && tries < 20000; tries++) {
        port = (uint16_t)(10000 + next++ % 20000);
        struct sockaddr_in addr = loopback(port);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        SZ_ASSERT(fd >= 0);
        free = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
        close(fd);
    }
    SZ_ASSERT(free);
    return port;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in addr = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    SZ_ASSERT(fd >= 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

char *raw_exchange(uint16_t port, struct sz_slice request, size_t *n)
{
    struct sz_buf answer = {0};
    char chunk[16384];
    int fd = connect_to(port);

    if (fd < 0)
        return NULL;
    for (size_t at = 0; at < request.n;) {
        ssize_t sent = send(fd, request.p + at, request.n - at, MSG_NOSIGNAL);
        if (sent <= 0)
            break; /* the other side has heard enough: what it says is still to be read */
        at += (size_t)sent;
    }
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 10000) <= 0)
            break;
        ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
        if (got <= 0)
            break;
        sz_buf_add(&answer, chunk, (size_t)got);
    }
    close(fd);
    if (n != NULL)
        *n = answer.n;
    sz_buf_add(&answer, "", 1);
    return answer.p;
}

int raw_status(const char *answer)
{
    if (answer == NULL || strncmp(answer, "HTTP/1.", 7) != 0 || strlen(answer) < 12)
        return 0;
    return (int)strtol(answer + 9, NULL, 10);
}

const char *raw_body(const char *answer)
{
    const char *end = answer == NULL ? NULL : strstr(answer, "\r\n\r\n");

    return end == NULL ? "" : end + 4;
}

bool raw_header(const char *answer, const char *name, char *out, size_t size)
{
    size_t n = strlen(name);
    const char *end = raw_body(answer);

    for (const char *line = answer; line != NULL && line < end; line = strstr(line, "\r\n")) {
        line += *line == '\r' ? 2 : 0;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            const char *value = line + n + 1;
            value += strspn(value, " \t");
            snprintf(out, size, "%.*s", (int)strcspn(value, "\r\n"), value);
            return true;
        }
    }
    return false;
}

/* ---- processes ---------------------------------------------------------------------------- */

const char *program_find(const char *name)
{
    static char path[512];
    const char *peers = getenv("SUBZERO_PEERS"), *home = getenv("HOME"), *search = getenv("PATH");
    char all[4096], usual[512];

    snprintf(usual, sizeof(usual), "%s/.cache/subzero/peers", home != NULL ? home : "");
    snprintf(all, sizeof(all), "%s:%s:/usr/local/sbin:/usr/sbin:/sbin", peers != NULL ? peers : usual,
             search != NULL ? search : "/usr/bin");
    for (char *rest = all, *dir; (dir = strsep(&rest, ":")) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", dir, name);
        if (access(path, X_OK) == 0)
            return path;
    }
    return NULL;
}

static void spawn(struct proc *p, const char *name, const char *const *argv)
{
    snprintf(p->log, sizeof(p->log), "%s/%s.log", scratch_path(), name);
    p->pid = fork();
    SZ_ASSERT(p->pid >= 0);
    if (p->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int log = open(p->log, O_CREAT | O_WRONLY | O_APPEND, 0666), null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    execv(argv[0], (char *const *)argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

/* Waits for the end until `end`; true when it came. */
static bool reap(struct proc *p, struct sz_mono end, int *status)
{
    while (waitpid(p->pid, status, WNOHANG) == 0) {
        if (sz_mono_read().us > end.us)
            return false;
        poll(NULL, 0, 5);
    }
    p->pid = 0;
    return true;
}

bool proc_start(struct proc *p, const char *name, uint16_t port, const char *const *argv)
{
    struct sz_mono end = sz_after(sz_mono_read(), SZ_SEC(20));
    int status, fd;

    p->port = port;
    spawn(p, name, argv);
    while (port != 0) {
        if ((fd = connect_to(port)) >= 0) {
            close(fd);
            break;
        }
        if (waitpid(p->pid, &status, WNOHANG) != 0 || sz_mono_read().us > end.us) {
            char *said = file_read(p->log, NULL);
            fprintf(stderr, "%s does not listen on %u; it said:\n%s\n", name, (unsigned)port, said);
            free(said);
            return false;
        }
        poll(NULL, 0, 10);
    }
    return true;
}

int proc_stop(struct proc *p)
{
    int status = 0;

    if (p->pid <= 0)
        return 0;
    kill(p->pid, SIGTERM);
    if (!reap(p, sz_after(sz_mono_read(), SZ_SEC(15)), &status)) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
        p->pid = 0;
    }
    return status;
}

int proc_run(struct proc *p, const char *name, unsigned seconds, const char *const *argv)
{
    int status = 0;

    p->port = 0;
    spawn(p, name, argv);
    if (!reap(p, sz_after(sz_mono_read(), SZ_SEC((int64_t)seconds)), &status)) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
        p->pid = 0;
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
