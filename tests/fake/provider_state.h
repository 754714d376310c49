/* The inside of the fake provider, shared by tests/fake/provider*.c.  `lock` guards everything but what never changes.
 */
#ifndef FAKE_PROVIDER_STATE_H
#define FAKE_PROVIDER_STATE_H

#include <pthread.h>

#include "fake/provider.h"
#include "subzero/issuers.h"

enum { PROVIDER_KEYS = 8, PROVIDER_TOKENS = 65536, PROVIDER_JTIS = 1024 };

struct provider_token {
    char *token;
    char *claims; /* a JSON object, without its braces */
    int64_t exp;
    bool revoked;
};

struct provider {
    struct upstream *upstream;
    struct provider_options options;
    char url[64], issuer[256];
    const char *ca_file;
    pthread_mutex_t lock;
    struct provider_script scripts[PROVIDER_ENDPOINTS];
    bool limited[PROVIDER_ENDPOINTS]; /* the script ends with its `times` */
    unsigned calls[PROVIDER_ENDPOINTS];
    /* keys: the last one signs, those before are still published */
    struct sz_signer *signers[PROVIDER_KEYS];
    size_t signers_n;
    /* tokens: a ring; the oldest make room */
    struct provider_token *tokens;
    size_t tokens_n;
    /* clients */
    char *client_keys;         /* JWK Set or NULL */
    char *jtis[PROVIDER_JTIS]; /* of client assertions, each good for once; a ring */
    size_t jtis_n;
    pthread_t sleeper; /* who makes it listen again after /control/down */
    bool sleeping, stopping;
    unsigned down_ms;
};

struct provider_answer {
    int status;
    struct sz_buf fields; /* "name: value\r\n" each */
    struct sz_buf body;
    struct provider_script script; /* what is to happen instead or besides */
};
void provider_answer_fini(struct provider_answer *answer);
/* Counts the request and says what to answer; used by HTTP/1 and HTTP/2. */
void provider_answer(struct provider *p, const struct upstream_request *request, struct provider_answer *answer);

/* provider_control.c: a request to /control/. */
void provider_control(struct provider *p, const struct upstream_request *request, struct provider_answer *answer);
/* provider_auth.c: whether a configured client asks; with the lock. */
bool provider_client_known(struct provider *p, const struct upstream_request *request);
/* The value of a form field, decoded; false: absent or badly encoded. */
bool provider_form(struct sz_slice body, const char *name, char *out, size_t size);

/* With the lock. */
const struct provider_token *provider_find_token(struct provider *p, const char *token);
char *provider_make_token(struct provider *p, bool opaque, const char *token, const char *sub, long ttl,
                          const char *claims);
void provider_new_key(struct provider *p, bool keep);

/* How it is said: one request of HTTP/1, a whole connection of HTTP/2.  False: the connection is over. */
bool provider_speak(struct wire *w, const struct upstream_request *request, void *provider);
bool provider_speak_h2(struct wire *w, const struct upstream_request *preface, struct provider *p);
/* Until so long has passed or the other side has gone (false). */
bool provider_pause(const struct wire *w, unsigned ms);

#endif
