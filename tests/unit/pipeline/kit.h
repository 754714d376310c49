/*
 * A whole gateway without sockets: a configuration, an issuer with a fresh key, the caches, a loop whose time the
 * test moves, and a relation source that answers what the test says.
 */
#ifndef SZ_TESTS_KIT_H
#define SZ_TESTS_KIT_H

#include "fake/loop.h"
#include "pipeline/txn.h"
#include "subzero/issuers.h"

struct kit {
    struct sz_loop *loop;
    struct sz_gate gate;
    struct sz_worker worker;
    struct sz_snapshot *snapshot;
    struct sz_signer *signer;
    struct sz_arena arena;
    char dir[64];
};

/* routes: YAML text that follows the kit's own issuers `one` and `two` and upstream `up`. */
void kit_open(struct kit *kit, const char *routes);
void kit_close(struct kit *kit);
/* The same issuers and keys under other routes, as a reload would: the caches stay. */
void kit_reload(struct kit *kit, const char *routes);

/* A token of issuer `one` (or another), valid for a minute; `claims` are further JSON members: "\"scope\":\"a b\"". */
struct sz_slice kit_token(struct kit *kit, const char *claims);
struct sz_slice kit_token_of(struct kit *kit, const char *iss, const char *aud, int64_t exp_in, const char *claims);

struct kit_request {
    const char *method, *target, *host, *peer;
    struct sz_slice token;   /* "" = no Authorization */
    const char *headers[16]; /* "name: value" */
    struct sz_slice body;
    bool decide; /* on the decide listener (nginx) */
    bool upgrade;
    const uint8_t *client_cert_sha256;
};

/* Runs to the end (moving the loop as needed); the transaction stays open for looking at until kit_end. */
struct sz_txn *kit_run(struct kit *kit, const struct kit_request *request);
/* Starts only; *step tells whether it parked. */
struct sz_txn *kit_start(struct kit *kit, const struct kit_request *request, enum sz_step *step);
void kit_end(struct sz_txn *txn);
/* kit_run, the reason, kit_end. */
enum sz_reason kit_reason(struct kit *kit, const struct kit_request *request);

/* How the relation source answers: by object, in order of the calls of kit_answer; unknown ones are denied. */
void kit_answer(const char *object, enum sz_authz_outcome outcome, bool later);
/* What was asked last: "user|relation|object". */
const char *kit_asked(void);
unsigned kit_asked_n(void);
/* Its context ("": none) and contextual tuples: "user relation object" each, in order, with a newline behind. */
const char *kit_asked_context(void);
const char *kit_asked_tuples(void);
bool kit_asked_consistent(void); /* HIGHER_CONSISTENCY */
unsigned kit_cancelled_n(void);

/* Value of a header in a list, NULL when absent; fails the test when it is there twice. */
const char *kit_header(struct kit *kit, const struct sz_headers *headers, const char *name);

#endif
