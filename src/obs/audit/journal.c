/* The face of the journal: opening, handing over, closing.  See subzero/audit.h. */
#include "obs/audit/journal.h"

#include <errno.h>
#include <stdlib.h>

#include "subzero/log.h"

/* ---- handing over ---------------------------------------------------------------------------------------------- */

static bool is_flood(const struct sz_audit_event *e)
{
    return e->kind == SZ_AUDIT_DECISION && !e->allow && !e->authenticated;
}

static bool lose(struct sz_audit *audit)
{
    atomic_fetch_add_explicit(&audit->lost_queue, 1, memory_order_relaxed);
    sz_count(SZ_NO_LOOP, audit->series.lost, 1);
    return false;
}

/* Denials of nobody in particular fill half of the queue at most: the rest is for what is evidence. */
static bool push(struct sz_audit *audit, const struct sz_audit_event *e, uint32_t port)
{
    char bytes[SZ_AUDIT_EVENT_MAX];
    if (is_flood(e) && sz_ring_used(&audit->ring) > SZ_RING_SIZE / 2)
        return lose(audit);
    size_t n = sz_audit_event_pack(e, port, bytes);
    if (!sz_ring_push(&audit->ring, sz_slice(bytes, n)))
        return lose(audit);
    uint32_t state = atomic_load(&audit->state);
    if (state == SZ_AUDIT_ASLEEP ||
        (state == SZ_AUDIT_NAPPING && (port != 0 || sz_ring_used(&audit->ring) > SZ_RING_SIZE / 4)))
        sz_audit_wake(audit);
    return true;
}

static bool hand_over(struct sz_audit *audit, const struct sz_audit_event *event, uint32_t port)
{
    if (event->time.us != 0)
        return push(audit, event, port);
    struct sz_audit_event now = *event;
    now.time = sz_wall_read();
    return push(audit, &now, port);
}

bool sz_audit_note(struct sz_audit *audit, const struct sz_audit_event *event)
{
    return audit == NULL || hand_over(audit, event, 0);
}

int sz_audit_commit(struct sz_audit *audit, struct sz_audit_port *port, const struct sz_audit_event *event,
                    struct sz_audit_wait *wait)
{
    if (audit == NULL)
        return 0;
    if (!audit->conf->required)
        return hand_over(audit, event, 0) ? 0 : -EAGAIN;
    SZ_ASSERT(port != NULL && wait->port == NULL);
    if (atomic_load_explicit(&audit->failing, memory_order_relaxed) != 0) {
        lose(audit);
        return -EIO;
    }
    if (!sz_audit_port_free(port)) {
        lose(audit);
        return -EAGAIN;
    }
    if (!hand_over(audit, event, port->id))
        return -EAGAIN;
    sz_audit_port_pushed(port, wait);
    return SZ_AUDIT_PENDING;
}

bool sz_audit_required(const struct sz_audit *audit)
{
    return audit != NULL && audit->conf->required;
}

size_t sz_audit_address(const struct sz_audit *audit, struct sz_addr address, char out[SZ_AUDIT_ADDRESS])
{
    char text[SZ_ADDR_TEXT];
    size_t n = sz_addr_format(address, text);
    if (audit != NULL && audit->conf->pseudonyms) {
        sz_audit_pseudonym(&audit->conf->pseudonym_key, 'a', sz_slice(text, n), out);
        return SZ_AUDIT_PSEUDONYM;
    }
    memcpy(out, text, n);
    return n;
}

struct sz_audit_port *sz_audit_port_open(struct sz_audit *audit, struct sz_loop *loop)
{
    if (audit == NULL)
        return NULL;
    pthread_mutex_lock(&audit->ports_lock);
    uint32_t n = atomic_load_explicit(&audit->ports_n, memory_order_relaxed);
    SZ_ASSERT(n < SZ_AUDIT_PORTS);
    struct sz_audit_port *port = sz_audit_port_make(audit, n + 1, loop);
    audit->ports[n] = port;
    atomic_store_explicit(&audit->ports_n, n + 1, memory_order_release);
    pthread_mutex_unlock(&audit->ports_lock);
    return port;
}

/* ---- opening and closing -------------------------------------------------------------------------------------------
 */

static void register_series(struct sz_audit_series *s)
{
    for (unsigned k = 0; k < SZ_AUDIT_KINDS; k++)
        s->kinds[k] = sz_series1(SZ_METRIC_audit_records, sz_audit_kind_name((enum sz_audit_kind)k));
    for (unsigned i = 0; i < SZ_AUDIT_STREAMS; i++) {
        s->segments[i] = sz_series1(SZ_METRIC_audit_segments, sz_audit_stream_name((enum sz_audit_stream)i));
        s->bytes[i] = sz_series1(SZ_METRIC_audit_bytes, sz_audit_stream_name((enum sz_audit_stream)i));
    }
    s->lost = sz_series(SZ_METRIC_audit_lost, NULL);
    s->queue = sz_series(SZ_METRIC_audit_queue, NULL);
    s->failing = sz_series(SZ_METRIC_audit_failing, NULL);
    s->free_bytes = sz_series(SZ_METRIC_audit_free, NULL);
    s->anchor_failed = sz_series(SZ_METRIC_audit_anchor_failed, NULL);
    s->copies_lost = sz_series(SZ_METRIC_audit_copies_lost, NULL);
    s->commit = sz_series(SZ_METRIC_audit_commit, NULL);
}

static void destroy(struct sz_audit *audit)
{
    sz_audit_readers_free(&audit->readers);
    sz_audit_store_close(&audit->store);
    sz_audit_shelf_fini(&audit->shelf);
    sz_audit_flood_free(&audit->flood);
    sz_audit_anchor_end(&audit->anchor);
    sz_audit_elsewhere_close(&audit->elsewhere);
    for (uint32_t i = 0; i < audit->ports_n; i++)
        sz_audit_port_destroy(audit->ports[i]);
    pthread_mutex_destroy(&audit->ports_lock);
    sz_buf_fini(&audit->checkpoint);
    sz_wipe(&audit->key, sizeof(audit->key));
    sz_ring_unmap(&audit->ring);
    free(audit);
}

/* A disk that is full or read-only now may be well again: the gateway starts, and says how it is. */
static bool may_pass(int rc)
{
    return rc == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -EROFS;
}

static int start(struct sz_audit *audit, struct sz_text *why)
{
    int rc = sz_ring_map(&audit->ring);
    if (rc == 0 && audit->has_key)
        rc = sz_audit_key_read(audit->conf->key.value, &audit->key, why);
    if (rc == 0)
        rc = sz_audit_elsewhere_open(&audit->elsewhere, audit->conf, why);
    if (rc != 0)
        return rc;
    rc = sz_audit_store_open(&audit->store, audit->conf, audit->store.io, &audit->shelf, why);
    if (may_pass(rc)) {
        sz_log(SZ_LOG_ERROR, "audit", "%s: the journal tries again", why->s);
        atomic_store(&audit->failing, -rc);
        atomic_store(&audit->reopen, true);
        rc = 0;
    }
    return rc != 0 ? rc : sz_audit_writer_start(audit);
}

int sz_audit_open_io(const struct sz_conf_audit *conf, const struct sz_audit_io *io, struct sz_audit **auditp,
                     struct sz_text *why)
{
    *auditp = NULL;
    why->s[0] = '\0';
    if (conf->path.p == NULL)
        return 0;
    struct sz_audit *audit = sz_xcalloc(1, sizeof(*audit));
    audit->conf = conf;
    audit->store.io = io;
    audit->store.dir = audit->store.lock = -1;
    audit->elsewhere.syslog = -1;
    audit->has_key = conf->key.set;
    audit->flood = sz_audit_flood_new();
    audit->readers = sz_audit_readers_new(audit);
    sz_audit_shelf_init(&audit->shelf);
    pthread_mutex_init(&audit->ports_lock, NULL);
    register_series(&audit->series);
    int rc = start(audit, why);
    if (rc != 0) {
        if (why->s[0] == '\0')
            sz_text_set(why, "cannot open the audit journal: %s", strerror(-rc));
        destroy(audit);
        return rc;
    }
    *auditp = audit;
    return 0;
}

int sz_audit_open(const struct sz_conf_audit *conf, struct sz_audit **audit, struct sz_text *why)
{
    return sz_audit_open_io(conf, &sz_audit_io_system, audit, why);
}

void sz_audit_close(struct sz_audit **auditp)
{
    struct sz_audit *audit = *auditp;
    *auditp = NULL;
    if (audit == NULL)
        return;
    sz_audit_stop_reading(audit);
    sz_audit_writer_stop(audit);
    destroy(audit);
}

void sz_audit_reopen(struct sz_audit *audit)
{
    if (audit == NULL)
        return;
    atomic_store(&audit->reopen, true);
    sz_audit_wake(audit);
}

void sz_audit_flush(struct sz_audit *audit)
{
    if (audit != NULL)
        sz_audit_settle(audit, SZ_SEC(1));
}
