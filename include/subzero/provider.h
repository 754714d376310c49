/*
 * Providers: what is asked over the network about issuers and their tokens.
 *
 *   keys    fetched on the service loop, ahead of their end, kept through outages, saved for the next start.  Whoever
 *           has a token whose key is not there looks (sz_keys_look) whether a fetch could bring it, and asks for one.
 *
 *   tokens  opaque ones are asked about from the loop that has the request, behind one breaker per issuer.
 *
 * Everything is bounded: one fetch per issuer at a time, one per cooldown because of tokens, a few dozen kids
 * remembered as absent.
 */
#ifndef SUBZERO_PROVIDER_H
#define SUBZERO_PROVIDER_H

#include "subzero/dependency.h"
#include "subzero/http.h"
#include "subzero/issuers.h"
#include "subzero/loop.h"

/* ---- keys: any thread -------------------------------------------------------------------------------------------- */

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

/* ---- opaque tokens: any loop, on its own thread ------------------------------------------------------------------ */

struct sz_token_answer {
    enum sz_reason reason;              /* allowed; a 401: the provider says no; identity_unavailable: could not ask */
    const struct sz_identity *identity; /* with allowed; borrowed */
    bool heals;                         /* a 401 that time heals: not to be kept */
    struct sz_span retry_after;         /* as the provider wished; 0: it did not say */
};
/* One question; the caller's memory, zero-initialised with on_done set. */
struct sz_token_op {
    void (*on_done)(struct sz_token_op *op, const struct sz_token_answer *answer);
    const struct sz_issuers *issuers;
    int index;
    struct sz_loop *loop;
    struct sz_dependency_call call;
};
/*
 * Asks issuer `index`, which must be one that is asked (sz_issuer_asks), about a token.  0: on_done runs once, later,
 * also when the client is freed.  -EBUSY: as many as may be are under way, or its breaker is open
 * (sz_token_retry says how long); other negative errno: not asked either; on_done will not run.  `issuers` must live
 * until then.
 */
int sz_token_ask(const struct sz_issuers *issuers, int index, struct sz_http *http, struct sz_loop *loop,
                 struct sz_slice token, struct sz_mono deadline, struct sz_token_op *op) SZ_MUST_CHECK;
/* Until the issuer's breaker lets calls through; 0: it does. */
struct sz_span sz_token_retry(const struct sz_issuers *issuers, int index, struct sz_mono now);

/* ---- life: service thread ---------------------------------------------------------------------------------------- */

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
