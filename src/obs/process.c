/*
 * What the system knows about this process, under the names that every Prometheus client
 * uses.  Read at each scrape; a value that cannot be read is left out rather than made up.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "obs/series.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static struct sz_wall started;

void sz_process_init(void)
{
    started = sz_wall_read();
}

static void add_number(struct sz_buf *out, enum sz_collected metric, uint64_t value)
{
    const char *name = sz_metrics_head(out, metric);
    sz_buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void add_memory(struct sz_buf *out)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    uint64_t all, resident, page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &all, &resident) == 2) {
        add_number(out, SZ_COLLECTED_resident, resident * page);
        add_number(out, SZ_COLLECTED_virtual, all * page);
    }
}

/* Since Linux 6.2 the size of the directory is the number of descriptors; before that it is 0 and they are counted. */
static bool count_fds(uint64_t *count)
{
    struct stat st;
    if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0) {
        *count = (uint64_t)st.st_size;
        return true;
    }
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return false;
    uint64_t n = 0;
    for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    *count = n - 1; /* without the directory's own */
    return true;
}

static void add_fds(struct sz_buf *out)
{
    uint64_t open_fds;
    if (count_fds(&open_fds))
        add_number(out, SZ_COLLECTED_open_fds, open_fds);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        add_number(out, SZ_COLLECTED_max_fds, limit.rlim_cur);
}

static void add_seconds(struct sz_buf *out, enum sz_collected metric, uint64_t us)
{
    const char *name = sz_metrics_head(out, metric);
    sz_buf_printf(out, "%s %" PRIu64 ".%06u\n", name, us / 1000000, (unsigned)(us % 1000000));
}

static uint64_t micro(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void sz_process_expose(struct sz_buf *out)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        add_seconds(out, SZ_COLLECTED_cpu, micro(usage.ru_utime) + micro(usage.ru_stime));
    add_memory(out);
    add_fds(out);
    add_seconds(out, SZ_COLLECTED_start_time, (uint64_t)started.us);
    sz_metrics_head(out, SZ_COLLECTED_build);
    sz_buf_adds(out, SZ_S("subzero_build_info{version=\"" SZ_VERSION "\",compiler=\"" COMPILER "\"} 1\n"));
}
