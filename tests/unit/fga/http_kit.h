/* A loop, an HTTP client on it and a fake provider: what the tests of fga/http*.c share. */
#ifndef HTTP_KIT_H
#define HTTP_KIT_H

#include "fake/provider.h"
#include "fga/http_client.h"

struct http_kit {
    struct sz_loop *loop;
    struct sz_http_shared *shared;
    struct sz_http *http;
    struct sz_http_trust *trust; /* of the provider's authority; NULL without TLS */
    struct provider *provider;
};
/* Limits other than the defaults, before kit_start; the provider's options, or NULL. */
extern struct sz_conf_http kit_conf;
void kit_start(struct http_kit *k, const struct provider_options *options);
void kit_stop(struct http_kit *k);

/* A call and a copy of what came of it. */
struct kit_call {
    struct sz_http_call call;
    struct http_kit *kit;
    int done; /* how often on_done ran */
    struct sz_http_answer answer;
    char *head, *body;
};
/* GET of the provider's path (or a whole URL), idempotent, 5 s. */
struct sz_http_request kit_get(struct http_kit *k, const char *url);
void kit_begin(struct http_kit *k, struct kit_call *c, const struct sz_http_request *request);
void kit_end(struct kit_call *c);
/* Runs the loop until so many calls are done since the start of the kit, or fails after 20 s. */
extern int kit_done;
void kit_run_until(struct http_kit *k, int done);
void kit_run_for(struct http_kit *k, struct sz_span span);
/* All three. */
void kit_ask(struct http_kit *k, struct kit_call *c, const struct sz_http_request *request);
const struct sz_http_answer *kit_ask_url(struct http_kit *k, struct kit_call *c, const char *url);

#endif
