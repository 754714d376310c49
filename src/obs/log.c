/*
 * The process log: one JSON object a line.  Formatting is done by the caller's thread into
 * a buffer of its own; the rest is the writer's (writer.c).  Before it starts and after it
 * stops, lines go to stderr at once: the start and the end of a process are told in any case.
 */
#include "subzero/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "obs/writer.h"
#include "subzero/time.h"

enum { MESSAGE = 3072, ESCAPED = SZ_LOG_LINE_MAX - 256, COMPONENT = 64 };

static _Atomic int least = SZ_LOG_INFO;

int sz_log_start(int fd, enum sz_log_level lowest)
{
    int rc = sz_writer_start(fd);
    if (rc == 0)
        atomic_store_explicit(&least, (int)lowest, memory_order_relaxed);
    return rc;
}

void sz_log_stop(void)
{
    sz_writer_stop();
}

uint64_t sz_log_lost(void)
{
    return sz_writer_lost();
}

/* `line` ends in a newline. */
static bool emit(struct sz_slice line)
{
    if (sz_writer_running())
        return sz_writer_push(line);
    ssize_t n;
    do {
        n = write(STDERR_FILENO, line.p, line.n);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)line.n;
}

static const char *level_name(enum sz_log_level level)
{
    switch (level) {
    case SZ_LOG_DEBUG:
        return "debug";
    case SZ_LOG_INFO:
        return "info";
    case SZ_LOG_WARN:
        return "warn";
    case SZ_LOG_ERROR:
        return "error";
    }
    SZ_ASSERT(!"a log level");
    return "";
}

void sz_log(enum sz_log_level level, const char *component, const char *fmt, ...)
{
    if ((int)level < atomic_load_explicit(&least, memory_order_relaxed))
        return;
    char message[MESSAGE];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof(message) ? (size_t)n : sizeof(message) - 1;
    char time[32];
    sz_wall_format(sz_wall_read(), 3, time);
    struct sz_buf line = {.limit = SZ_LOG_LINE_MAX};
    sz_buf_printf(&line, "{\"time\":\"%s\",\"level\":\"%s\",\"component\":", time, level_name(level));
    sz_buf_json_cut(&line, sz_cstr(component), COMPONENT);
    sz_buf_adds(&line, SZ_S(",\"message\":"));
    sz_buf_json_cut(&line, sz_slice(message, length), ESCAPED);
    sz_buf_adds(&line, SZ_S("}\n"));
    SZ_ASSERT(!line.overflow);
    emit(sz_buf_slice(&line));
    sz_buf_fini(&line);
}

bool sz_log_line(struct sz_slice json)
{
    char line[SZ_LOG_LINE_MAX];
    if (json.n == 0 || json.n >= sizeof(line)) {
        sz_writer_count_lost(1);
        return false;
    }
    memcpy(line, json.p, json.n);
    line[json.n] = '\n';
    return emit(sz_slice(line, json.n + 1));
}
