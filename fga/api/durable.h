/*
 * Stores on disk: what each change is in the log, how the log becomes stores again, and how it is kept short.
 * The writer's, or before it runs.  A hub without a directory logs nothing, and all of these succeed.
 */
#ifndef SZ_FGA_API_DURABLE_H
#define SZ_FGA_API_DURABLE_H

#include "fga/api/hub.h"
#include "fga/api/journal.h"

/* Written and synced when they return 0; -errno: they are not, and nothing may change. */
int sz_durable_store(const struct sz_fga_store *store) SZ_MUST_CHECK;
int sz_durable_rename(const struct sz_fga_store *store, struct sz_slice name, struct sz_wall now) SZ_MUST_CHECK;
int sz_durable_delete(const struct sz_fga_store *store) SZ_MUST_CHECK;
int sz_durable_model(const struct sz_fga_store *store, const struct sz_fga_model *model) SZ_MUST_CHECK;
int sz_durable_assertions(const struct sz_fga_store *store, const struct sz_fga_model *model,
                          struct sz_slice json) SZ_MUST_CHECK;

/* An engine's commit: written, and not synced until sz_durable_sync.  arg: the store. */
sz_commit_fn sz_durable_write;
/* All of it.  -errno: nobody may be told that what was written since the last one is stored. */
int sz_durable_sync(struct sz_fga_hub *hub) SZ_MUST_CHECK;

/* Writes the log anew when most of it is history; a failure is logged, and the old one goes on. */
void sz_durable_tidy(struct sz_fga_hub *hub);

#endif
