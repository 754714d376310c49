/*
 * Providers: what is asked over the network about issuers and their tokens.
 *
 *   keys    fetched on the service loop, ahead of their end, kept through outages, saved for the next start.  Whoever
 *           has a token whose key is not there looks (sz_keys_look) whether a fetch could bring it, and asks for one.
 *
 * Everything is bounded: one fetch per issuer at a time, one per cooldown because of tokens, a few dozen kids
 * remembered as absent.
 */
#ifndef SUBZERO_PROVIDER_H
#define SUBZERO_PROVIDER_H

#include "subzero/http.h"
#include "subzero/issuers.h"
#include "subzero/loop.h"

/* ---- keys: any thread ----------------------------------------------------------------------------------------------
 */

enum sz_keys_answer {
    SZ_KEYS_FINAL, /* what is known about the issuer's keys is all there is to know: the verdict stands */
    SZ_KEYS_ASK,   /* a fetch is under way or may begin: wait for it */
    SZ_KEYS_DOWN,  /* the provider could not be asked and is not asked again yet: 503 */
};
struct sz_keys_look {
    enum sz_keys_answer answer;
    struct sz_mono again; /* FINAL, DOWN: until when that is so; SZ_NEVER: as long as the configuration */
};
/* For a verdict with missing_key: index and kid as it says. */
void sz_keys_look(const struct sz_issuers *issuers, int index, uint64_t kid, struct sz_mono now,
                  struct sz_keys_look *out);
/* The fetch has been waited for, and the key is not in the set: it is not asked for again for a while. */
void sz_keys_absent(const struct sz_issuers *issuers, int index, uint64_t kid, struct sz_mono now);
/* Names the source of an issuer's keys in this process: who waits for the same one may share a flight. */
uint64_t sz_keys_source(const struct sz_issuers *issuers, int index);

/* One wish to have the keys fetched; the caller's memory, until on_done. */
struct sz_keys_op {
    /* Once, on the service thread.  0: fetched; negative: could not be asked. */
    void (*on_done)(struct sz_keys_op *op, int status);
    struct sz_key_slot *slot;
    struct sz_keys_op *next;
    struct sz_msg msg;
};
/* Joins the fetch under way, or starts one unless it is too early for it.  The service loop must still run. */
void sz_keys_fetch(const struct sz_issuers *issuers, int index, struct sz_keys_op *op);

/* ---- life: service thread -------------------------------------------------------------------------------------------
 */

struct sz_providers;
/*
 * `http` and `loop` outlive it.  state_dir SZ_NONE: nothing is kept.  Opens (makes) the directory: blocking.  NULL:
 * *why, when the directory is not ours alone.
 */
struct sz_providers *sz_providers_new(struct sz_loop *loop, struct sz_http *http, struct sz_slice state_dir,
                                      struct sz_text *why);
/* After all threads that ask for fetches. */
void sz_providers_free(struct sz_providers **providers);
/*
 * A configuration is about to be used, by nobody yet: its issuers get their keys from here.  Providers whose settings
 * did not change stay as they are; those no longer named end.  `first`: before the loop runs; saved keys are
 * read at once (blocking).
 */
void sz_providers_adopt(struct sz_providers *providers, struct sz_issuers *issuers, bool first);
/* Every provider as a member of a JSON object, for /health: "name":{...},...  False: one is not well. */
bool sz_providers_health(struct sz_providers *providers, struct sz_buf *out);

#endif
