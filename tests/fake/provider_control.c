/* The fake provider's control endpoint: the functions of provider.h for whoever holds a curl. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake/provider_state.h"

static const char *const fault_names[PROVIDER_FAULTS] = {"well",  "status",  "truncate", "html", "redirect",
                                                         "huge",  "endless", "empty",    "hang", "reset",
                                                         "close", "garbage", "flood",    "drip"};

static int number_of(const char *name, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (names[i] != NULL && strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static void copy(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text != NULL && strpbrk(text, "\r\n") == NULL ? text : "");
}

/* Each gives what is wrong with the request, or NULL. */

static const char *script(struct provider *p, json_t *in, struct provider_answer *answer)
{
    const char *endpoint = "", *fault = "well", *location = NULL, *retry_after = NULL, *cache_control = NULL;
    int status = 500, latency = 0, latency_to = 0, one_in = 0, times = 0;
    const char *names[PROVIDER_ENDPOINTS];
    (void)answer;
    if (json_unpack(in, "{s:s, s?s, s?i, s?i, s?i, s?i, s?i, s?s, s?s, s?s}", "endpoint", &endpoint, "fault", &fault,
                    "status", &status, "latency_ms", &latency, "latency_to_ms", &latency_to, "one_in", &one_in, "times",
                    &times, "location", &location, "retry_after", &retry_after, "cache_control", &cache_control) != 0)
        return "want {\"endpoint\": name, \"fault\": name, ...}";
    for (int i = 0; i < PROVIDER_ENDPOINTS; i++)
        names[i] = provider_endpoint_name((enum provider_endpoint)i);
    int e = number_of(endpoint, names, PROVIDER_ENDPOINTS), f = number_of(fault, fault_names, PROVIDER_FAULTS);
    if (e < 0 || f < 0 || latency < 0 || latency_to < 0 || one_in < 0 || times < 0 || status < 100 || status > 999)
        return "no such endpoint or fault, or a number out of range";
    struct provider_script *s = &p->scripts[e];
    *s = (struct provider_script){.fault = (enum provider_fault)f,
                                  .latency_ms = (unsigned)latency,
                                  .latency_to_ms = (unsigned)latency_to,
                                  .one_in = (unsigned)one_in,
                                  .times = (unsigned)times,
                                  .status = f == PROVIDER_REDIRECT && status == 500 ? 302 : status};
    copy(s->location, sizeof(s->location), location);
    copy(s->retry_after, sizeof(s->retry_after), retry_after);
    copy(s->cache_control, sizeof(s->cache_control), cache_control);
    p->limited[e] = times != 0;
    return NULL;
}

static const char *rotate(struct provider *p, json_t *in, struct provider_answer *answer)
{
    int keep = 0;
    (void)answer;
    if (json_unpack(in, "{s?b}", "keep", &keep) != 0)
        return "want {\"keep\": true}";
    provider_new_key(p, keep != 0);
    return NULL;
}

static const char *token(struct provider *p, json_t *in, struct provider_answer *answer)
{
    const char *format = "jwt", *sub = "alice", *given = NULL;
    int ttl = 300;
    json_t *claims = NULL;
    if (json_unpack(in, "{s?s, s?s, s?s, s?i, s?o}", "format", &format, "sub", &sub, "token", &given, "ttl", &ttl,
                    "claims", &claims) != 0 ||
        strpbrk(sub, "\"\\") != NULL || (claims != NULL && !json_is_object(claims)))
        return "want {\"format\": \"jwt\" or \"opaque\", \"sub\": name, \"ttl\": seconds, \"claims\": {...}}";
    char *text = claims != NULL ? json_dumps(claims, JSON_COMPACT) : sz_xstrdup("{}");
    text[strlen(text) - 1] = '\0'; /* the members alone */
    char *made = provider_make_token(p, strcmp(format, "opaque") == 0, given, sub, ttl, text + 1);
    answer->body.n = 0;
    sz_buf_printf(&answer->body, "{\"token\":");
    sz_buf_json(&answer->body, sz_cstr(made));
    sz_buf_printf(&answer->body, "}");
    free(made);
    free(text);
    return NULL;
}

static const char *revoke_token(struct provider *p, json_t *in, struct provider_answer *answer)
{
    const char *given;
    (void)answer;
    if (json_unpack(in, "{s:s}", "token", &given) != 0)
        return "want {\"token\": \"...\"}";
    const struct provider_token *found = provider_find_token(p, given);
    if (found == NULL)
        return "no such token";
    p->tokens[found - p->tokens].revoked = true;
    return NULL;
}

static void *sleep_and_wake(void *arg)
{
    struct provider *p = arg;
    usleep(20000); /* the answer to who asked for it gets through */
    upstream_refuse(p->upstream);
    for (unsigned ms = 0; ms < p->down_ms; ms += 10) {
        usleep(10000);
        pthread_mutex_lock(&p->lock);
        bool stopping = p->stopping;
        pthread_mutex_unlock(&p->lock);
        if (stopping)
            return NULL;
    }
    upstream_accept(p->upstream);
    pthread_mutex_lock(&p->lock);
    p->sleeping = p->stopping; /* then provider_stop joins, else nobody does */
    if (!p->stopping)
        pthread_detach(pthread_self());
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static const char *down(struct provider *p, json_t *in, struct provider_answer *answer)
{
    int ms;
    (void)answer;
    if (json_unpack(in, "{s:i}", "ms", &ms) != 0 || ms < 0 || ms > 600000)
        return "want {\"ms\": 0 to 600000}";
    if (p->sleeping)
        return "it is going down already";
    p->down_ms = (unsigned)ms;
    p->sleeping = pthread_create(&p->sleeper, NULL, sleep_and_wake, p) == 0;
    return NULL;
}

static const char *reset(struct provider *p, json_t *in, struct provider_answer *answer)
{
    (void)in, (void)answer;
    memset(p->scripts, 0, sizeof(p->scripts));
    memset(p->limited, 0, sizeof(p->limited));
    memset(p->calls, 0, sizeof(p->calls));
    return NULL;
}

static void calls(struct provider *p, struct provider_answer *answer)
{
    sz_buf_printf(&answer->body, "{");
    for (int i = 0; i < PROVIDER_ENDPOINTS; i++)
        sz_buf_printf(&answer->body, "\"%s\":%u,", provider_endpoint_name((enum provider_endpoint)i), p->calls[i]);
    sz_buf_printf(&answer->body, "\"connections\":%u,\"open\":%u}\n", upstream_connections(p->upstream),
                  upstream_open(p->upstream));
}

void provider_control(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    static const struct {
        const char *path;
        const char *(*act)(struct provider *p, json_t *in, struct provider_answer *answer);
    } actions[] = {{"/control/script", script},       {"/control/rotate", rotate}, {"/control/token", token},
                   {"/control/revoke", revoke_token}, {"/control/down", down},     {"/control/reset", reset}};
    const char *wrong = "no such path under /control/";
    if (sz_eq(request->target, SZ_S("/control/calls"))) {
        calls(p, answer);
        return;
    }
    sz_buf_printf(&answer->body, "{\"ok\":true}\n");
    for (size_t i = 0; i < SZ_COUNT(actions); i++) {
        if (!sz_eq(request->target, sz_cstr(actions[i].path)))
            continue;
        json_t *in = request->body.n != 0 ? json_loadb(request->body.p, request->body.n, 0, NULL) : json_object();
        wrong = in == NULL ? "the body is not JSON" : actions[i].act(p, in, answer);
        json_decref(in);
    }
    if (wrong == NULL)
        return;
    answer->status = 400;
    answer->body.n = 0;
    sz_buf_printf(&answer->body, "{\"error\":");
    sz_buf_json(&answer->body, sz_cstr(wrong));
    sz_buf_printf(&answer->body, "}\n");
}
