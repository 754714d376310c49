/*
 * What every step of loading carries: where memory comes from, which file is read, where
 * mistakes go.  One loader per load; nothing of it outlives the load but the arena.
 */
#ifndef SZ_CONF_LOADER_H
#define SZ_CONF_LOADER_H

#include "subzero/base.h"
#include "subzero/conf.h"

struct sz_node;

struct sz_secret_note { /* every secret that was read: to be wiped */
    struct sz_slice value;
    struct sz_secret_note *next;
};

struct sz_loader {
    struct sz_pool *pool; /* the configuration's arena */
    struct sz_mistakes *m;
    struct sz_slice file; /* as messages name it */
    struct sz_slice dir;  /* relative paths start here; absolute */
    struct sz_secret_note *secrets;
};

/* One mistake at a node's position (NULL: the whole file).  A text ends without a full stop and names the remedy. */
void sz_mistake(struct sz_loader *l, const struct sz_node *at, const char *fmt, ...) SZ_PRINTF(3, 4);
void sz_warning(struct sz_loader *l, const struct sz_node *at, const char *fmt, ...) SZ_PRINTF(3, 4);
/* By position then text; the same mistake twice becomes one. */
void sz_mistakes_sort(struct sz_mistakes *m);

/*
 * The candidate that was probably meant, or NULL.  names[i] as C strings.
 */
const char *sz_suggest(struct sz_slice word, const char *const *names, size_t n);

/* Absolute form of a path as the file names it. */
struct sz_slice sz_path_resolve(struct sz_loader *l, struct sz_slice path);
/*
 * A whole regular file of 1..max bytes into the pool, NUL-terminated.  0 or -errno with *why
 * ("'x' is larger than 64 KiB").
 */
int sz_file_read(struct sz_pool *pool, struct sz_slice path, size_t max, struct sz_slice *out,
                 struct sz_text *why) SZ_MUST_CHECK;
/* That a regular file (max 0: anything else also) is there and readable. */
int sz_file_check(struct sz_slice path, struct sz_text *why) SZ_MUST_CHECK;
/* A secret: one trailing newline removed, empty refused, loose permissions warned about. */
void sz_secret_read(struct sz_loader *l, const struct sz_node *at, struct sz_slice path, struct sz_secret *out);
/* Bytes of the arena that are a secret: wiped with the configuration. */
void sz_secret_note(struct sz_loader *l, struct sz_slice value);
/* A secret from the environment variable of that name, NUL-terminated. */
void sz_secret_take(struct sz_loader *l, const struct sz_node *at, struct sz_slice variable, struct sz_secret *out);

#endif
