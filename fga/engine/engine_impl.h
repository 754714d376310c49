/* The engine's own struct, for the files of this folder. */
#ifndef SZ_ENGINE_IMPL_H
#define SZ_ENGINE_IMPL_H

#include "fga/engine/ask.h"

struct sz_change { /* an entry of the change log */
    uint32_t object, subject, cond, seconds;
    uint16_t relation, form; /* form: of the user */
    bool deleted;
};

struct sz_engine {
    struct sz_store store;
    pthread_mutex_t writer; /* programs, writes, loads, the change log */
    struct sz_program *programs;
    struct sz_change
        *changes; /* ring of SZ_CHANGES_KEPT; the i-th change ever is at (i - first_change) % cap_changes */
    size_t cap_changes;
    uint64_t n_changes, n_published; /* readers see those that are published */
    uint64_t first_change;           /* none before it was ever here */
};

/* Under the mutex. */
uint64_t sz_engine_oldest_change(const struct sz_engine *e); /* the number of the oldest that is still here */
void sz_engine_log(struct sz_engine *e, struct sz_change c);

#endif
