/* Counting segments and lists: see the header. */
#include "obs/audit/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *sz_audit_stream_name(enum sz_audit_stream stream)
{
    return stream == SZ_AUDIT_MAIN ? "audit" : "denied";
}

struct sz_audit_segment *sz_audit_segment_new(int fd, enum sz_audit_stream stream, uint64_t first)
{
    struct sz_audit_segment *s = sz_xcalloc(1, sizeof(*s));
    atomic_init(&s->refs, 1);
    s->fd = fd;
    s->stream = stream;
    s->first = first;
    s->whole = true;
    atomic_init(&s->last, first - 1);
    snprintf(s->name, sizeof(s->name), "%s-%020llu.jsonl", sz_audit_stream_name(stream), (unsigned long long)first);
    return s;
}

void sz_audit_segment_ref(struct sz_audit_segment *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void sz_audit_segment_unref(struct sz_audit_segment *s)
{
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (s->fd >= 0)
        close(s->fd);
    struct sz_audit_index *index = atomic_load(&s->index);
    sz_audit_index_free(&index);
    free(s);
}

bool sz_audit_segment_parse(const char *name, enum sz_audit_stream *stream, uint64_t *first)
{
    struct sz_slice rest = sz_cstr(name);
    for (*stream = SZ_AUDIT_MAIN; *stream < SZ_AUDIT_STREAMS; ++*stream) {
        struct sz_slice prefix = sz_cstr(sz_audit_stream_name(*stream));
        if (sz_starts_with(rest, prefix) && rest.n == prefix.n + 27 && rest.p[prefix.n] == '-')
            return sz_eq(sz_from(rest, prefix.n + 21), SZ_S(".jsonl")) &&
                   sz_parse_u64(sz_sub(rest, prefix.n + 1, 20), UINT64_MAX - 1, first) == 0 && *first > 0;
    }
    return false;
}

struct sz_audit_list *sz_audit_list_new(struct sz_audit_segment *const *const v[SZ_AUDIT_STREAMS],
                                        const size_t n[SZ_AUDIT_STREAMS])
{
    struct sz_audit_list *list = sz_xcalloc(1, sizeof(*list));
    atomic_init(&list->refs, 1);
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        list->n[s] = n[s];
        list->v[s] = sz_xcalloc(n[s] + 1, sizeof(struct sz_audit_segment *));
        for (size_t i = 0; i < n[s]; i++) {
            list->v[s][i] = v[s][i];
            sz_audit_segment_ref(v[s][i]);
        }
    }
    return list;
}

void sz_audit_list_unref(struct sz_audit_list *list)
{
    if (list == NULL || atomic_fetch_sub_explicit(&list->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned s = 0; s < SZ_AUDIT_STREAMS; s++) {
        for (size_t i = 0; i < list->n[s]; i++)
            sz_audit_segment_unref(list->v[s][i]);
        free(list->v[s]);
    }
    free(list);
}

void sz_audit_shelf_init(struct sz_audit_shelf *shelf)
{
    pthread_mutex_init(&shelf->lock, NULL);
    shelf->list = NULL;
    atomic_init(&shelf->committed, 0);
}

void sz_audit_shelf_fini(struct sz_audit_shelf *shelf)
{
    sz_audit_list_unref(shelf->list);
    pthread_mutex_destroy(&shelf->lock);
}

void sz_audit_shelf_set(struct sz_audit_shelf *shelf, struct sz_audit_list *list)
{
    pthread_mutex_lock(&shelf->lock);
    struct sz_audit_list *old = shelf->list;
    shelf->list = list;
    pthread_mutex_unlock(&shelf->lock);
    sz_audit_list_unref(old);
}

struct sz_audit_list *sz_audit_shelf_get(struct sz_audit_shelf *shelf, uint64_t *committed)
{
    *committed = atomic_load_explicit(&shelf->committed, memory_order_acquire);
    pthread_mutex_lock(&shelf->lock);
    struct sz_audit_list *list = shelf->list;
    if (list != NULL)
        atomic_fetch_add_explicit(&list->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&shelf->lock);
    return list;
}
