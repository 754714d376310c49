/* What a configuration brings to a store: a model, and tuples for it.  Read whole before anything is made of it. */
#ifndef SZ_FGA_API_SEED_H
#define SZ_FGA_API_SEED_H

#include "fga/engine/engine.h"

struct sz_conf_fga;
struct sz_fga_hub;

struct sz_fga_seed {
    struct sz_arena arena;  /* of the texts */
    struct sz_model *model; /* NULL: the configuration names none */
    char *json;             /* the model's, as a store keeps it */
    const char *tuples_name;
    struct sz_slice tuples; /* SZ_NONE: none */
    enum sz_tuple_format format;
};

/* Each tuple of the seed to `p` of the engine; one that is there stays as it is.  -EINVAL: *why says which and why. */
int sz_seed_load(const struct sz_fga_seed *seed, struct sz_engine *e, const struct sz_program *p,
                 struct sz_text *why) SZ_MUST_CHECK;

/* As sz_fga_seed_apply, into that store; tuples without a model are checked against its newest. */
int sz_seed_into(const struct sz_fga_seed *seed, struct sz_fga_hub *hub, struct sz_slice store,
                 struct sz_text *why) SZ_MUST_CHECK;

#endif
