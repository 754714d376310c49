/*
 * The writer thread: loops push finished lines into the ring, this thread writes them, and
 * only it ever meets a full pipe or a dead disk.
 *
 * Waking it costs the pushing thread a system call, so it is rarely asleep: after a batch
 * it naps for 5 ms, in which lines gather for the next writev and nobody needs to wake it
 * (unless the ring gets half full).  Only when a nap brought nothing does it sleep.
 *
 *   state   AWAKE ──▶ NAPPING (timeout 5 ms) ──▶ ASLEEP (until woken)
 *
 * A write into a pipe that nobody reads blocks for good.  After 2 s a stop interrupts it by a
 * signal, again and again, since one may come just before the write.  (The descriptor is not
 * ours to make non-blocking: it is shared with whoever started us.)
 */
#include "obs/writer.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "obs/ring.h"
#include "subzero/time.h"

enum { AWAKE, NAPPING, ASLEEP };
enum { PIECES = 64, NAP_MS = 5, STOP_MS = 2000, AGAIN_MS = 5 };

#define INTERRUPT SIGURG /* ignored by default: a stray one harms nobody */

static struct {
    struct sz_ring ring;
    _Atomic uint32_t state, finished; /* futexes */
    atomic_bool running, stop, give_up;
    _Atomic uint64_t lost;
    /* The writer's own. */
    int fd;
    pthread_t thread;
    uint64_t lost_told;
    bool mid_line; /* a failed write left part of a line behind */
} w;

/* Returns early for many reasons; the caller looks again at everything. */
static void futex_wait(_Atomic uint32_t *word, uint32_t expected, const struct timespec *timeout)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wake(void)
{
    if (atomic_exchange(&w.state, AWAKE) != AWAKE)
        futex_wake(&w.state);
}

bool sz_writer_push(struct sz_slice line)
{
    if (!sz_ring_push(&w.ring, line)) {
        sz_writer_count_lost(1);
        return false;
    }
    uint32_t state = atomic_load(&w.state);
    if (state == ASLEEP || (state == NAPPING && sz_ring_used(&w.ring) > SZ_RING_SIZE / 2))
        wake();
    return true;
}

void sz_writer_count_lost(uint64_t lines)
{
    atomic_fetch_add_explicit(&w.lost, lines, memory_order_relaxed);
}

uint64_t sz_writer_lost(void)
{
    return atomic_load_explicit(&w.lost, memory_order_relaxed);
}

bool sz_writer_running(void)
{
    return atomic_load_explicit(&w.running, memory_order_acquire);
}

/* True when it is worth trying again after a failed write. */
static bool may_retry(int error)
{
    if (atomic_load(&w.give_up))
        return false;
    if (error == EAGAIN) {
        struct pollfd p = {.fd = w.fd, .events = POLLOUT};
        poll(&p, 1, -1);
    }
    return error == EAGAIN || error == EINTR;
}

static void advance(struct iovec **iov, unsigned *n, size_t written)
{
    while (*n > 0 && written >= (*iov)->iov_len) {
        written -= (*iov)->iov_len;
        ++*iov;
        --*n;
    }
    if (*n > 0) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + written;
        (*iov)->iov_len -= written;
    }
}

/* The last byte of the first n of a vector. */
static char byte_before(const struct iovec *iov, size_t n)
{
    while (n > iov->iov_len) {
        n -= iov->iov_len;
        iov++;
    }
    return ((const char *)iov->iov_base)[n - 1];
}

/*
 * Writes lines, which are iov[1] to iov[n]; iov[0] is room for the newline that ends what a
 * failed write left half done.  False: the descriptor refuses (closed pipe, full disk) or the
 * stop takes too long.
 */
static bool write_lines(struct iovec *iov, unsigned n)
{
    static char newline = '\n';
    iov[0] = (struct iovec){&newline, 1};
    if (w.mid_line)
        n++;
    else
        iov++;
    while (n > 0) {
        ssize_t written = writev(w.fd, iov, (int)n);
        if (written > 0) {
            w.mid_line = byte_before(iov, (size_t)written) != '\n';
            advance(&iov, &n, (size_t)written);
        } else if (written == 0 || !may_retry(errno)) {
            return false;
        }
    }
    return true;
}

static void write_lost(void)
{
    uint64_t lost = sz_writer_lost();
    if (lost == w.lost_told)
        return;
    char time[32], line[160];
    sz_wall_format(sz_wall_read(), 3, time);
    int n = snprintf(line, sizeof(line),
                     "{\"time\":\"%s\",\"level\":\"warn\",\"component\":\"log\",\"message\":\"lost: %llu\"}\n", time,
                     (unsigned long long)(lost - w.lost_told));
    struct iovec iov[2] = {[1] = {line, (size_t)n}};
    if (write_lines(iov, 1))
        w.lost_told = lost;
}

/* Writes what there is, as far as one call goes; false when there was nothing. */
static bool write_batch(void)
{
    struct iovec iov[1 + PIECES];
    struct sz_ring_view view = sz_ring_peek(&w.ring, iov + 1, PIECES);
    if (view.pieces == 0)
        return false;
    if (!write_lines(iov, view.pieces))
        sz_writer_count_lost(view.records);
    sz_ring_release(&w.ring, &view);
    return true;
}

static bool stopping(void)
{
    return atomic_load(&w.stop);
}

static void sleep_until_woken(void)
{
    struct iovec iov[2];
    atomic_store(&w.state, ASLEEP);
    /* One more look after that is known: whoever pushed or stopped before did not wake us. */
    if (sz_ring_peek(&w.ring, iov, 2).pieces == 0 && !stopping())
        futex_wait(&w.state, ASLEEP, NULL);
    atomic_store(&w.state, AWAKE);
}

static void nap(void)
{
    /* Lines that come meanwhile are what the nap is for: no look at the ring before it. */
    const struct timespec timeout = {.tv_nsec = NAP_MS * 1000000};
    atomic_store(&w.state, NAPPING);
    if (!stopping())
        futex_wait(&w.state, NAPPING, &timeout);
    atomic_store(&w.state, AWAKE);
}

static void *run(void *arg)
{
    bool stop = false;
    while (!stop) {
        stop = stopping(); /* asked before the look at the ring: what was queued before a stop is written */
        bool wrote = false;
        while (!atomic_load(&w.give_up) && write_batch())
            wrote = true;
        write_lost();
        if (wrote)
            nap();
        else
            sleep_until_woken();
    }
    atomic_store(&w.finished, 1);
    futex_wake(&w.finished);
    return arg;
}

static void on_interrupt(int number)
{
    (void)number; /* that the write returns is all */
}

int sz_writer_start(int fd)
{
    if (sz_writer_running())
        return -EALREADY;
    int rc = sz_ring_map(&w.ring);
    if (rc != 0)
        return rc;
    w.fd = fd;
    w.mid_line = false;
    atomic_store(&w.stop, false);
    atomic_store(&w.give_up, false);
    atomic_store(&w.finished, 0);
    struct sigaction action = {.sa_handler = on_interrupt}; /* no SA_RESTART */
    sigaction(INTERRUPT, &action, NULL);
    /* All other signals belong to the threads that handle them; SIGPIPE then shows as EPIPE. */
    sigset_t most, before;
    sigfillset(&most);
    sigdelset(&most, INTERRUPT);
    pthread_sigmask(SIG_SETMASK, &most, &before);
    rc = pthread_create(&w.thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return -rc;
    pthread_setname_np(w.thread, "subzero-log");
    atomic_store_explicit(&w.running, true, memory_order_release);
    return 0;
}

static bool finishes_within(int ms)
{
    struct sz_mono end = sz_after(sz_mono_read(), SZ_MS(ms));
    int64_t left;
    while (atomic_load(&w.finished) == 0 && (left = sz_between(sz_mono_read(), end).us) > 0) {
        struct timespec timeout = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
        futex_wait(&w.finished, 0, &timeout);
    }
    return atomic_load(&w.finished) != 0;
}

static void drop_rest(void)
{
    struct iovec iov[PIECES];
    struct sz_ring_view view;
    while ((view = sz_ring_peek(&w.ring, iov, PIECES)).pieces != 0) {
        sz_writer_count_lost(view.records);
        sz_ring_release(&w.ring, &view);
    }
}

void sz_writer_stop(void)
{
    if (!sz_writer_running())
        return;
    atomic_store_explicit(&w.running, false, memory_order_release);
    atomic_store(&w.stop, true); /* against the writer that says it sleeps and then looks here */
    wake();
    if (!finishes_within(STOP_MS)) {
        atomic_store(&w.give_up, true);
        do {
            pthread_kill(w.thread, INTERRUPT);
        } while (!finishes_within(AGAIN_MS));
    }
    pthread_join(w.thread, NULL);
    drop_rest();
}
