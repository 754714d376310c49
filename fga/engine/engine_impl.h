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
    struct sz_change *changes; /* ring of SZ_CHANGES_KEPT; the i-th change ever is at i % kept */
    size_t cap_changes;
    uint64_t n_changes;
};

/* Under the mutex. */
void sz_engine_log(struct sz_engine *e, struct sz_change c);

#endif
