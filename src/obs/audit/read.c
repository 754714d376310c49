/*
 * The threads that read: two, started with the first question.  Jobs wait in the order in which they came; an export
 * brings its pieces one by one, so that a long one takes its turn like everybody, and a client that takes nothing holds
 * no thread.  At most 64 new questions wait, and none for longer than a second.
 *
 * A read belongs to its loop, but while it waits or works here; one whose asker has left meanwhile is freed when it
 * comes back.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "obs/audit/journal.h"
#include "obs/audit/page.h"

enum { THREADS = 2, WAITING_MAX = 64, PIECE = 64 * 1024, WORK = 4 * 1024 * 1024 };
#define WAIT_MOST SZ_SEC(1)

struct sz_audit_read {
    struct sz_msg back;
    struct sz_audit_read *next;         /* in the queue */
    struct sz_audit_read *after, **ref; /* in the list of all */
    struct sz_audit *audit;
    struct sz_loop *loop;
    sz_audit_piece_fn *on_piece;
    void *arg;
    struct sz_audit_query query;
    bool whole;     /* an export */
    bool away;      /* with the threads, or on its way back: the loop's word */
    bool abandoned; /* the loop's, read when it is back */
    bool exporting; /* export_ is set up */
    struct sz_audit_export export_;
    struct sz_mono asked;
    enum sz_audit_outcome outcome;
    struct sz_buf body;
    struct sz_text why;
};

struct sz_audit_readers {
    struct sz_audit *audit;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct sz_audit_read *head, **tail; /* the queue */
    unsigned waiting;                   /* new ones in it */
    bool stop;
    atomic_bool indexed;
    unsigned started;
    pthread_t threads[THREADS];
    struct sz_audit_read *all; /* the loop's */
    struct sz_series page, export_, busy, damaged, failed;
};

/* ---- on a thread ------------------------------------------------------------------------------------------------ */

static void make_page(struct sz_audit_read *read)
{
    struct sz_audit_view view;
    sz_audit_view_take(&view, &read->audit->shelf);
    int rc = sz_audit_page(&view, &read->query, read->audit->conf->scan_bytes, &read->body, &read->why);
    read->outcome = rc == 0 ? SZ_AUDIT_END : rc == -EBADMSG ? SZ_AUDIT_DAMAGED : SZ_AUDIT_FAILED;
    sz_audit_view_release(&view);
}

static void make_piece(struct sz_audit_read *read)
{
    if (!read->exporting) {
        struct sz_audit_view view;
        sz_audit_view_take(&view, &read->audit->shelf);
        sz_audit_export_init(&read->export_, &view, &read->query, read->audit->conf->scan_bytes);
        read->exporting = true;
    }
    int rc = sz_audit_export_next(&read->export_, PIECE, WORK, &read->body, &read->why);
    read->outcome = rc == 1          ? SZ_AUDIT_MORE
                    : rc == 0        ? SZ_AUDIT_END
                    : rc == -EBADMSG ? SZ_AUDIT_DAMAGED
                                     : SZ_AUDIT_FAILED;
}

/*
 * What was handed over before the question is in its answer, unless the disk is slower than that.  Where every request
 * waits for its record and the record for the disk, what was acknowledged is there already.
 */
static struct sz_span settle_most(const struct sz_conf_audit *conf)
{
    if (conf->durability != SZ_DURABILITY_ALWAYS)
        return SZ_MS(50);
    return conf->required ? SZ_US(0) : SZ_MS(2);
}

static void work(struct sz_audit_read *read)
{
    struct sz_mono now = sz_mono_read();
    read->body.n = 0;
    if (!read->exporting && sz_between(read->asked, now).us > WAIT_MOST.us) {
        read->outcome = SZ_AUDIT_BUSY;
        return;
    }
    if (!read->exporting && atomic_load(&read->audit->failing) == 0)
        sz_audit_settle(read->audit, settle_most(read->audit->conf));
    if (read->whole)
        make_piece(read);
    else
        make_page(read);
}

static void measure(const struct sz_audit_readers *readers, const struct sz_audit_read *read)
{
    struct sz_series series = read->outcome == SZ_AUDIT_BUSY      ? readers->busy
                              : read->outcome == SZ_AUDIT_DAMAGED ? readers->damaged
                              : read->outcome == SZ_AUDIT_FAILED  ? readers->failed
                              : read->whole                       ? readers->export_
                                                                  : readers->page;
    sz_observe(SZ_NO_LOOP, series, sz_between(read->asked, sz_mono_read()));
}

static struct sz_audit_read *take(struct sz_audit_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    while (readers->head == NULL && !readers->stop)
        pthread_cond_wait(&readers->wake, &readers->lock);
    struct sz_audit_read *read = readers->stop ? NULL : readers->head;
    if (read != NULL) {
        readers->head = read->next;
        if (readers->head == NULL)
            readers->tail = &readers->head;
        readers->waiting -= !read->exporting;
    }
    pthread_mutex_unlock(&readers->lock);
    return read;
}

/* The first thread sees to the side files of segments from before this process; the other answers meanwhile. */
static void index_once(struct sz_audit_readers *readers)
{
    struct sz_audit_view view;
    if (atomic_exchange(&readers->indexed, true))
        return;
    sz_audit_view_take(&view, &readers->audit->shelf);
    sz_audit_view_index(&view, readers->audit->conf->path.p, true);
    sz_audit_view_release(&view);
}

static void *run(void *arg)
{
    struct sz_audit_readers *readers = arg;
    struct sz_audit_read *read;
    index_once(readers);
    while ((read = take(readers)) != NULL) {
        work(read);
        measure(readers, read);
        sz_loop_post(read->loop, &read->back);
    }
    return NULL;
}

/* ---- on the loop --------------------------------------------------------------------------------------------------
 */

static void destroy(struct sz_audit_read *read)
{
    *read->ref = read->after;
    if (read->after != NULL)
        read->after->ref = read->ref;
    if (read->exporting)
        sz_audit_export_fini(&read->export_);
    sz_audit_query_fini(&read->query);
    sz_buf_fini(&read->body);
    free(read);
}

static void on_back(struct sz_msg *msg, struct sz_loop *loop)
{
    struct sz_audit_read *read = SZ_CONTAINER(msg, struct sz_audit_read, back);
    (void)loop;
    read->away = false;
    if (read->abandoned)
        destroy(read);
    else
        read->on_piece(read->arg, read->outcome, sz_buf_slice(&read->body), read->why.s);
}

struct sz_audit_read *sz_audit_read_start(struct sz_audit *audit, struct sz_loop *loop, struct sz_slice query,
                                          bool whole, sz_audit_piece_fn *on_piece, void *arg, struct sz_text *why)
{
    struct sz_audit_read *read = sz_xcalloc(1, sizeof(*read));
    *read = (struct sz_audit_read){
        .back = {.on_msg = on_back}, .audit = audit, .loop = loop, .on_piece = on_piece, .arg = arg, .whole = whole};
    sz_audit_query_init(&read->query);
    if (audit->conf->pseudonyms)
        read->query.pseudonyms = &audit->conf->pseudonym_key;
    if (sz_audit_query_parse(&read->query, query, why) != 0) {
        sz_audit_query_fini(&read->query);
        free(read);
        return NULL;
    }
    read->ref = &audit->readers->all;
    read->after = audit->readers->all;
    if (read->after != NULL)
        read->after->ref = &read->after;
    audit->readers->all = read;
    return read;
}

bool sz_audit_read_is_csv(const struct sz_audit_read *read)
{
    return read->query.csv;
}

static bool start_threads(struct sz_audit_readers *readers)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (readers->started < THREADS && pthread_create(&readers->threads[readers->started], NULL, run, readers) == 0) {
        pthread_setname_np(readers->threads[readers->started], "subzero-read");
        readers->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return readers->started > 0;
}

bool sz_audit_read_next(struct sz_audit_read *read)
{
    struct sz_audit_readers *readers = read->audit->readers;
    if (readers->started < THREADS && !start_threads(readers))
        return false;
    pthread_mutex_lock(&readers->lock);
    bool room = (read->exporting || readers->waiting < WAITING_MAX) && !readers->stop;
    if (room) {
        read->asked = sz_mono_read();
        read->away = true;
        read->next = NULL;
        *readers->tail = read;
        readers->tail = &read->next;
        readers->waiting += !read->exporting;
        pthread_cond_signal(&readers->wake);
    }
    pthread_mutex_unlock(&readers->lock);
    if (!room)
        sz_observe(SZ_NO_LOOP, readers->busy, SZ_US(0));
    return room;
}

void sz_audit_read_free(struct sz_audit_read **readp)
{
    struct sz_audit_read *read = *readp;
    *readp = NULL;
    if (read == NULL)
        return;
    if (read->away)
        read->abandoned = true;
    else
        destroy(read);
}

/* ---- all of them ----------------------------------------------------------------------------------------------------
 */

struct sz_audit_readers *sz_audit_readers_new(struct sz_audit *audit)
{
    struct sz_audit_readers *readers = sz_xcalloc(1, sizeof(*readers));
    readers->audit = audit;
    readers->tail = &readers->head;
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->wake, NULL);
    readers->page = sz_series1(SZ_METRIC_audit_read, "page");
    readers->export_ = sz_series1(SZ_METRIC_audit_read, "export");
    readers->busy = sz_series1(SZ_METRIC_audit_read, "busy");
    readers->damaged = sz_series1(SZ_METRIC_audit_read, "damaged");
    readers->failed = sz_series1(SZ_METRIC_audit_read, "failed");
    return readers;
}

void sz_audit_stop_reading(struct sz_audit *audit)
{
    if (audit == NULL)
        return;
    struct sz_audit_readers *readers = audit->readers;
    pthread_mutex_lock(&readers->lock);
    readers->stop = true;
    pthread_cond_broadcast(&readers->wake);
    pthread_mutex_unlock(&readers->lock);
    for (unsigned i = 0; i < readers->started; i++)
        pthread_join(readers->threads[i], NULL);
    readers->started = 0;
}

void sz_audit_readers_free(struct sz_audit_readers **readersp)
{
    struct sz_audit_readers *readers = *readersp;
    *readersp = NULL;
    if (readers == NULL)
        return;
    while (readers->all != NULL)
        destroy(readers->all);
    pthread_cond_destroy(&readers->wake);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}
