/* See http_kit.h. */
#include "http_kit.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/process.h"

struct sz_conf_http kit_conf = {.connections = 100, .per_host = 100, .dns_ttl = SZ_SEC(300), .idle = SZ_SEC(60)};
int kit_done;

static int wanted;
static char urls[16][256]; /* of the requests that are being put together */
static unsigned urls_n;

void kit_start(struct http_kit *k, const struct provider_options *options)
{
    struct sz_text why = {""};
    sz_crypto_init();
    cr_assert_eq(sz_http_prepare(&why), 0, "%s", why.s);
    *k = (struct http_kit){.loop = sz_loop_new(0), .shared = sz_http_shared_new(&kit_conf, 1)};
    cr_assert(k->loop != NULL && k->shared != NULL);
    k->http = sz_http_new(k->shared, k->loop);
    cr_assert_not_null(k->http);
    k->provider = provider_start(options);
    if (provider_ca_file(k->provider) != NULL) {
        k->trust = sz_http_trust_new(provider_ca_file(k->provider), &why);
        cr_assert_not_null(k->trust, "%s", why.s);
    }
    kit_done = 0;
}

void kit_stop(struct http_kit *k)
{
    sz_http_free(&k->http);
    sz_loop_free(&k->loop);
    sz_http_shared_free(&k->shared);
    sz_http_trust_unref(&k->trust);
    provider_stop(&k->provider);
    scratch_remove();
}

struct sz_http_request kit_get(struct http_kit *k, const char *url)
{
    char *place = urls[urls_n++ % SZ_COUNT(urls)];
    snprintf(place, sizeof(urls[0]), "%s%s", url[0] == '/' ? provider_url(k->provider) : "", url);
    return (struct sz_http_request){.url = sz_cstr(place),
                                    .trust = k->trust,
                                    .idempotent = true,
                                    .deadline = sz_after(sz_loop_tick(k->loop), SZ_SEC(5))};
}

static void on_done(struct sz_http_call *call, const struct sz_http_answer *answer)
{
    struct kit_call *c = SZ_CONTAINER(call, struct kit_call, call);
    cr_assert_null(call->job);
    c->done++;
    c->answer = *answer;
    c->head = strndup(answer->head.p, answer->head.n);
    c->body = sz_xmalloc(answer->body.n + 1);
    memcpy(c->body, answer->body.p, answer->body.n);
    c->body[answer->body.n] = '\0';
    c->answer.head = sz_cstr(c->head);
    c->answer.body = sz_slice(c->body, answer->body.n);
    if (++kit_done == wanted)
        sz_loop_stop(c->kit->loop);
}

void kit_begin(struct http_kit *k, struct kit_call *c, const struct sz_http_request *request)
{
    *c = (struct kit_call){.call.on_done = on_done, .kit = k};
    cr_assert_eq(sz_http_start(k->http, request, &c->call), 0);
    cr_assert_eq(c->done, 0);
}

void kit_end(struct kit_call *c)
{
    free(c->head);
    free(c->body);
    c->head = c->body = NULL;
}

static bool late;

static void too_late(struct sz_timer *timer)
{
    (void)timer;
    late = true;
    sz_loop_stop(sz_loop_current());
}

static void enough(struct sz_timer *timer)
{
    (void)timer;
    sz_loop_stop(sz_loop_current());
}

void kit_run_until(struct http_kit *k, int done)
{
    struct sz_timer limit = {.on_fire = too_late};
    late = false;
    wanted = done;
    if (kit_done >= done)
        return;
    sz_timer_start(k->loop, &limit, sz_after(sz_loop_tick(k->loop), SZ_SEC(20)));
    sz_loop_run(k->loop);
    sz_timer_cancel(k->loop, &limit);
    cr_assert(!late, "%d of %d calls were done after 20 s", kit_done, done);
}

void kit_run_for(struct http_kit *k, struct sz_span span)
{
    struct sz_timer timer = {.on_fire = enough};
    wanted = -1;
    sz_timer_start(k->loop, &timer, sz_after(sz_loop_tick(k->loop), span));
    sz_loop_run(k->loop);
}

void kit_ask(struct http_kit *k, struct kit_call *c, const struct sz_http_request *request)
{
    kit_begin(k, c, request);
    kit_run_until(k, kit_done + 1);
}

const struct sz_http_answer *kit_ask_url(struct http_kit *k, struct kit_call *c, const char *url)
{
    struct sz_http_request request = kit_get(k, url);
    kit_ask(k, c, &request);
    return &c->answer;
}
