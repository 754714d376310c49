/* Models from files: .fga, .json, or an fga.mod with its modules.  Blocking: not for a loop thread. */
#ifndef SZ_ENGINE_MODEL_FILE_H
#define SZ_ENGINE_MODEL_FILE_H

#include "fga/engine/model.h"

/* The whole file, at most 1 GiB, into `pool`; negative errno, *why says which file and why. */
int sz_input_read(const char *path, struct sz_pool *pool, struct sz_slice *out, struct sz_text *why) SZ_MUST_CHECK;

/* With all problems; *text gets the DSL's text (in problems->arena) when there is one, for sz_model_lint. */
struct sz_model *sz_model_load_file(const char *path, struct sz_problems *problems, struct sz_slice *text);
/* The first problem as a sentence in *why. */
struct sz_model *sz_model_load(const char *path, struct sz_text *why);

#endif
