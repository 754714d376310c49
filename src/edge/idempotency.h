/*
 * Idempotency-Key of admin writes: the answer to a write is kept, so that a caller who does not know whether it came
 * through may ask again.  The same key with the same body gets the first answer; with another body it is a mistake.
 *
 * Bounded: the newest SZ_IDEMPOTENT_MAX answers of the last day.  Pure: time is an argument.  One thread.
 */
#ifndef SZ_EDGE_IDEMPOTENCY_H
#define SZ_EDGE_IDEMPOTENCY_H

#include "subzero/base.h"
#include "subzero/time.h"

#define SZ_IDEMPOTENT_MAX    10000
#define SZ_IDEMPOTENT_KEY    255  /* bytes of a key; visible ASCII */
#define SZ_IDEMPOTENT_ANSWER 4096 /* bytes of an answer; a longer one is not kept */

struct sz_idempotency;
struct sz_idempotency *sz_idempotency_new(size_t max); /* SZ_IDEMPOTENT_MAX; less in tests */
void sz_idempotency_free(struct sz_idempotency **store);

enum sz_idempotent {
    SZ_IDEMPOTENT_NEW,   /* to be carried out; *ticket is for sz_idempotency_end */
    SZ_IDEMPOTENT_KNOWN, /* *status and *answer: borrowed until the next call */
    SZ_IDEMPOTENT_OTHER, /* the key stands for another body */
    SZ_IDEMPOTENT_BUSY,  /* the first is being carried out */
    SZ_IDEMPOTENT_BAD    /* no key: too long, empty, or of other characters */
};
/* `what`: method and path; a key is one for each of them. */
enum sz_idempotent sz_idempotency_begin(struct sz_idempotency *store, struct sz_slice what, struct sz_slice key,
                                        struct sz_slice body, struct sz_mono now, uint64_t *ticket, unsigned *status,
                                        struct sz_slice *answer);
/* What was answered.  A status of 500 and more is not kept: asking again may then help. */
void sz_idempotency_end(struct sz_idempotency *store, uint64_t ticket, unsigned status, struct sz_slice answer);

#endif
