/*
 * An OpenFGA server for tests, on a fake upstream: /check, /batch-check and a token endpoint (/oauth/token) in threads
 * of the test's process.  It answers well, unless told otherwise.  For all else it is the upstream that it runs on:
 * upstream_play with a script of raw bytes or faults, upstream_refuse, upstream_count.
 *
 * Its store, for whom it is copied: alice and carol view document:1, on two pages; the last change is that of carol.
 *
 *   user:alice is allowed everything, nobody else is allowed anything, but:
 *   document:unknown   validation_error        document:deep      authorization_model_resolution_too_complex
 *   document:internal  internal_error (batch: an internal error of that check; check: 500)
 *   document:missing   no `allowed`            document:malformed refuses the whole call, as wrong characters do
 */
#ifndef FAKE_OPENFGA_H
#define FAKE_OPENFGA_H

#include <pthread.h>

#include "fake/upstream.h"

#define OPENFGA_STORE "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define OPENFGA_MODEL "01ARZ3NDEKTSV4RRFFQ69G5FAW"

struct openfga {
    struct upstream *upstream;
    pthread_mutex_t lock;
    /* what it should do */
    unsigned token_needed; /* 0: any; else "Bearer token-N" alone is taken, and a token request gives token-N */
    int token_status;      /* 0: good; else the status of the token endpoint */
    unsigned token_life;   /* expires_in */
    unsigned wait_ms;      /* before each answer about checks */
    bool no_batch;         /* 404 undefined_endpoint for /batch-check */
    bool token_refused;    /* 2007 for a continuation token of the changes, once */
    unsigned bad_pages;    /* so many pages of Read have a tuple that is none */
    /* what it was asked */
    unsigned checks, batches, batched, tokens, refused, high; /* high: with HIGHER_CONSISTENCY */
    unsigned pages, changes;                                  /* of Read, of ReadChanges */
    char last[4096];                                          /* the body that came last */
};

void openfga_init(struct openfga *o);
void openfga_fini(struct openfga *o);
/* As it was at the start: answers well, and counts from 0. */
void openfga_reset(struct openfga *o);

/* The fga section for it, up to where more lines (two blanks in) may follow.  Static. */
const char *openfga_yaml(const struct openfga *o);

#endif
