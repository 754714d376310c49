/*
 * log.c, writer.c: a reader that is slow, stuck, gone; lines that lie.  Each test is a process of its own,
 * so each has a log of its own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "subzero/log.h"
#include "subzero/time.h"

static int out[2];

static void setup(void)
{
    cr_assert_eq(pipe(out), 0);
}

TestSuite(log, .init = setup, .timeout = 60);

/* Reads everything up to the end of the pipe on a thread of its own. */
static void *read_all(void *arg)
{
    struct sz_buf *b = arg;
    char chunk[65536];
    ssize_t n;
    while ((n = read(out[0], chunk, sizeof(chunk))) > 0)
        sz_buf_add(b, chunk, (size_t)n);
    return NULL;
}

static json_t *parse_line(struct sz_slice line)
{
    cr_assert_leq(line.n + 1, SZ_LOG_LINE_MAX);
    json_t *v = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(v, "%.*s", SZ_FMT(line));
    return v;
}

Test(log, a_line_is_one_object_whatever_the_message)
{
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    char huge[100000];
    memset(huge, '\x01', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    sz_log(SZ_LOG_DEBUG, "test", "not wanted");
    sz_log(SZ_LOG_WARN, "test", "a\nb\"c\\ \x1b[2J\xFF%d", 7);
    sz_log(SZ_LOG_ERROR, huge, "%s", huge);
    sz_log_stop();
    close(out[1]);
    struct sz_buf b = {0};
    read_all(&b);
    struct sz_slice rest = sz_buf_slice(&b), line;
    cr_assert(sz_split(&rest, '\n', &line));
    json_t *v = parse_line(line);
    cr_expect_str_eq(json_string_value(json_object_get(v, "message")), "a\nb\"c\\ \x1b[2J\xEF\xBF\xBD"
                                                                       "7");
    cr_expect_str_eq(json_string_value(json_object_get(v, "level")), "warn");
    cr_expect_str_eq(json_string_value(json_object_get(v, "component")), "test");
    cr_expect_eq(strlen(json_string_value(json_object_get(v, "time"))), 24);
    json_decref(v);
    cr_assert(sz_split(&rest, '\n', &line));
    json_decref(parse_line(line));
    cr_expect_eq(rest.n, 0);
    sz_buf_fini(&b);
}

static double seconds_of(void (*call)(void))
{
    struct sz_mono start = sz_mono_read();
    call();
    return (double)sz_between(start, sz_mono_read()).us / 1e6;
}

Test(log, a_stuck_reader_blocks_nobody_and_ends_in_a_count)
{
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    char line[1000];
    memset(line, 'x', sizeof(line));
    uint64_t pushed = 0, refused = 0;
    for (int i = 0; i < 20000; i++) /* 20 MB into a queue of 4 */
        if (sz_log_line(sz_slice(line, sizeof(line))))
            pushed++;
        else
            refused++;
    cr_expect_gt(refused, 10000);
    cr_expect_eq(sz_log_lost(), refused);
    double took = seconds_of(sz_log_stop);
    cr_expect(took > 1.5 && took < 4, "%f s", took);
    /* What fit into the pipe (64 KiB) was written; all else is accounted for. */
    cr_expect_geq(sz_log_lost(), refused + pushed - 200);
    cr_expect_leq(sz_log_lost(), refused + pushed);
}

Test(log, what_was_lost_is_told_when_the_reader_comes_back)
{
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    char text[1000];
    memset(text, 'x', sizeof(text));
    text[0] = text[999] = '"';
    while (sz_log_line(sz_slice(text, sizeof(text)))) {
    }
    struct sz_buf b = {0};
    pthread_t reader;
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &b), 0);
    sz_log_stop();
    close(out[1]);
    pthread_join(reader, NULL);
    cr_expect_eq(sz_log_lost(), 1);
    b.p[b.n - 1] = '\0';
    cr_expect_not_null(strstr(b.p, "\"message\":\"lost: 1\""), "%s", b.p + b.n - 200);
    sz_buf_fini(&b);
}

Test(log, a_reader_that_is_gone_costs_lines_and_nothing_else)
{
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    close(out[0]);
    for (int i = 0; i < 100; i++)
        sz_log(SZ_LOG_INFO, "test", "%d", i);
    cr_expect_lt(seconds_of(sz_log_stop), 2);
    cr_expect_eq(sz_log_lost(), 100);
}

Test(log, a_descriptor_that_does_not_block_loses_nothing)
{
    fcntl(out[1], F_SETFL, O_NONBLOCK);
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    struct sz_buf b = {0};
    pthread_t reader;
    char line[148];
    memset(line, 'x', sizeof(line));
    for (int i = 0; i < 1000; i++)
        cr_assert(sz_log_line(sz_slice(line, sizeof(line))));
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &b), 0);
    sz_log_stop();
    close(out[1]);
    pthread_join(reader, NULL);
    cr_expect_eq(sz_log_lost(), 0);
    cr_expect_eq(b.n, 1000 * 149);
    sz_buf_fini(&b);
}

/* Four threads, numbered lines: none lost, none torn, each thread's in its order. */
enum { THREADS = 4, EACH = 5000 };

static void *log_row(void *arg)
{
    for (int i = 0; i < EACH; i++) {
        char line[64];
        int n = snprintf(line, sizeof(line), "{\"t\":%d,\"i\":%d}", (int)(intptr_t)arg, i);
        cr_assert(sz_log_line(sz_slice(line, (size_t)n)));
    }
    return NULL;
}

Test(log, many_threads)
{
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    cr_expect_eq(sz_log_start(out[1], SZ_LOG_INFO), -EALREADY);
    struct sz_buf b = {0};
    pthread_t reader, threads[THREADS];
    cr_assert_eq(pthread_create(&reader, NULL, read_all, &b), 0);
    for (intptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, log_row, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sz_log_stop();
    close(out[1]);
    pthread_join(reader, NULL);
    int next[THREADS] = {0}, total = 0;
    struct sz_slice rest = sz_buf_slice(&b), line;
    while (sz_split(&rest, '\n', &line) && line.n != 0) {
        json_t *v = parse_line(line);
        json_int_t t = json_integer_value(json_object_get(v, "t"));
        cr_assert_eq(json_integer_value(json_object_get(v, "i")), next[t]++);
        total++;
        json_decref(v);
    }
    cr_expect_eq(total, THREADS * EACH);
    sz_buf_fini(&b);
}

Test(log, without_a_writer_lines_go_to_stderr)
{
    dup2(out[1], STDERR_FILENO);
    sz_log(SZ_LOG_INFO, "test", "before");
    int quiet = open("/dev/null", O_WRONLY);
    cr_assert_eq(sz_log_start(quiet, SZ_LOG_INFO), 0);
    sz_log(SZ_LOG_INFO, "test", "meanwhile");
    sz_log_stop();
    sz_log(SZ_LOG_INFO, "test", "after");
    char text[1024];
    ssize_t n = read(out[0], text, sizeof(text) - 1);
    cr_assert_gt(n, 0);
    text[n] = '\0';
    cr_expect(strstr(text, "before") != NULL && strstr(text, "after") != NULL && strstr(text, "meanwhile") == NULL);
    close(quiet);
}

Test(log, lines_out_of_bounds_are_refused_and_counted)
{
    static char big[SZ_LOG_LINE_MAX];
    memset(big, 'x', sizeof(big));
    cr_assert_eq(sz_log_start(out[1], SZ_LOG_INFO), 0);
    cr_expect_not(sz_log_line(SZ_NONE));
    cr_expect_not(sz_log_line(sz_slice(big, sizeof(big))));
    cr_expect_eq(sz_log_lost(), 2);
    cr_expect(sz_log_line(sz_slice(big, sizeof(big) - 1)));
    sz_log_stop();
}

/* The disk is full in the middle of a line, then there is room again: the next line starts on a line of its own. */
Test(log, a_full_disk_tears_one_line_only)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    struct rlimit small = {1000, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    signal(SIGXFSZ, SIG_IGN);
    char line[300];
    memset(line, 'x', sizeof(line));
    cr_assert_eq(sz_log_start(fileno(file), SZ_LOG_INFO), 0);
    for (int i = 0; i < 10; i++)
        cr_assert(sz_log_line(sz_slice(line, sizeof(line))));
    while (sz_log_lost() == 0) {
    }
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert(sz_log_line(SZ_S("{}")));
    sz_log_stop();
    char text[2048];
    rewind(file);
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    cr_expect_gt(n, 1000);
    cr_expect_eq(text[1000], '\n');
    cr_expect_not_null(strstr(text + 1000, "\n{}\n"));
    cr_expect_not_null(strstr(text + 1000, "lost: "));
    fclose(file);
}
