/* What the fake provider's endpoints answer. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake/provider_state.h"

void provider_answer_fini(struct provider_answer *answer)
{
    sz_buf_fini(&answer->fields);
    sz_buf_fini(&answer->body);
}

static void add_field(struct provider_answer *answer, const char *name, const char *value)
{
    if (value[0] != '\0')
        sz_buf_printf(&answer->fields, "%s: %s\r\n", name, value);
}

/* ---- documents --------------------------------------------------------------------------------------------------- */

static void metadata(struct provider *p, struct provider_answer *answer)
{
    sz_buf_printf(&answer->body,
                  "{\"issuer\":\"%s\",\"authorization_endpoint\":\"%s/authorize\",\"jwks_uri\":\"%s/jwks\","
                  "\"token_endpoint\":\"%s/token\",\"introspection_endpoint\":\"%s/introspect\","
                  "\"userinfo_endpoint\":\"%s/userinfo\",\"response_types_supported\":[\"code\"],"
                  "\"subject_types_supported\":[\"public\"],\"id_token_signing_alg_values_supported\":[\"ES256\"],"
                  "\"grant_types_supported\":[\"client_credentials\"],\"token_endpoint_auth_methods_supported\":"
                  "[\"client_secret_basic\",\"client_secret_post\",\"private_key_jwt\"]}",
                  p->issuer, p->url, p->url, p->url, p->url, p->url);
}

static void keys(struct provider *p, struct provider_answer *answer)
{
    json_t *all = json_array();
    for (size_t i = 0; i < p->signers_n; i++) {
        struct sz_buf one = {0};
        SZ_ASSERT(sz_signer_jwks(p->signers[i], &one) == 0);
        json_t *set = json_loadb(one.p, one.n, 0, NULL);
        json_array_extend(all, json_object_get(set, "keys"));
        json_decref(set);
        sz_buf_fini(&one);
    }
    char *text = json_dumps(all, JSON_COMPACT);
    sz_buf_printf(&answer->body, "{\"keys\":%s}", text);
    free(text);
    json_decref(all);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

static bool post_form(const struct upstream_request *request)
{
    char type[128];
    return sz_eq(request->method, SZ_S("POST")) && upstream_field(request, "content-type", type, sizeof(type)) &&
           strncmp(type, "application/x-www-form-urlencoded", 33) == 0;
}

/* False: refused, and said so. */
static bool admitted(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    if (!post_form(request)) {
        answer->status = 400;
        sz_buf_printf(&answer->body, "{\"error\":\"invalid_request\"}");
        return false;
    }
    if (!provider_client_known(p, request)) {
        answer->status = 401;
        add_field(answer, "WWW-Authenticate", "Basic realm=\"provider\"");
        sz_buf_printf(&answer->body, "{\"error\":\"invalid_client\"}");
        return false;
    }
    return true;
}

static bool alive(const struct provider_token *token)
{
    return token != NULL && !token->revoked && token->exp > sz_wall_seconds(sz_wall_read());
}

static void introspect(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    char text[8192];
    if (!admitted(p, request, answer))
        return;
    const struct provider_token *token =
        provider_form(request->body, "token", text, sizeof(text)) ? provider_find_token(p, text) : NULL;
    if (alive(token))
        sz_buf_printf(&answer->body, "{\"active\":true,\"token_type\":\"Bearer\",%s}", token->claims);
    else
        sz_buf_printf(&answer->body, "{\"active\":false}");
}

static void userinfo(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    char field[8192];
    const struct provider_token *token =
        upstream_field(request, "authorization", field, sizeof(field)) && strncmp(field, "Bearer ", 7) == 0
            ? provider_find_token(p, field + 7)
            : NULL;
    if (alive(token)) {
        sz_buf_printf(&answer->body, "{%s}", token->claims);
        return;
    }
    answer->status = 401;
    add_field(answer, "WWW-Authenticate", "Bearer error=\"invalid_token\"");
    sz_buf_printf(&answer->body, "{\"error\":\"invalid_token\"}");
}

static void token(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    char grant[64], scope[512] = "", extra[600] = "";
    if (!admitted(p, request, answer))
        return;
    if (!provider_form(request->body, "grant_type", grant, sizeof(grant)) || strcmp(grant, "client_credentials") != 0) {
        answer->status = 400;
        sz_buf_printf(&answer->body, "{\"error\":\"unsupported_grant_type\"}");
        return;
    }
    if (provider_form(request->body, "scope", scope, sizeof(scope)) && strpbrk(scope, "\"\\") == NULL)
        snprintf(extra, sizeof(extra), "\"scope\":\"%s\"", scope);
    char *made = provider_make_token(p, p->options.opaque, NULL, p->options.client_id, 300, extra);
    add_field(answer, "Cache-Control", "no-store");
    sz_buf_printf(&answer->body, "{\"access_token\":\"%s\",\"token_type\":\"Bearer\",\"expires_in\":300}", made);
    free(made);
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

static enum provider_endpoint endpoint_of(struct sz_slice target)
{
    static const char *const paths[PROVIDER_OTHER] = {"/.well-known/openid-configuration",
                                                      "/.well-known/oauth-authorization-server",
                                                      "/jwks",
                                                      "/introspect",
                                                      "/userinfo",
                                                      "/token"};
    ptrdiff_t query = sz_find_byte(target, '?');
    if (query >= 0)
        target.n = (size_t)query;
    for (unsigned i = 0; i < PROVIDER_OTHER; i++)
        if (sz_eq(target, sz_cstr(paths[i])))
            return (enum provider_endpoint)i;
    return PROVIDER_OTHER;
}

static void answer_well(struct provider *p, enum provider_endpoint endpoint, const struct upstream_request *request,
                        struct provider_answer *answer)
{
    switch (endpoint) {
    case PROVIDER_DISCOVERY:
    case PROVIDER_METADATA:
        metadata(p, answer);
        break;
    case PROVIDER_JWKS:
        keys(p, answer);
        break;
    case PROVIDER_INTROSPECT:
        introspect(p, request, answer);
        break;
    case PROVIDER_USERINFO:
        userinfo(p, request, answer);
        break;
    case PROVIDER_TOKEN:
        token(p, request, answer);
        break;
    case PROVIDER_OTHER:
    case PROVIDER_ENDPOINTS:
        sz_buf_printf(&answer->body, "ok");
        break;
    }
}

/* The faults that are answers of their own. */
static void answer_badly(enum provider_endpoint endpoint, struct provider_answer *answer)
{
    const struct provider_script *s = &answer->script;
    switch (s->fault) {
    case PROVIDER_STATUS:
        answer->status = s->status;
        answer->body.n = 0;
        sz_buf_printf(&answer->body, "{\"error\":\"%d\"}", s->status);
        break;
    case PROVIDER_HTML:
        answer->body.n = 0;
        sz_buf_printf(&answer->body, "<!DOCTYPE html><title>Maintenance</title><p>Back soon.");
        break;
    case PROVIDER_REDIRECT:
        answer->status = s->status != 0 ? s->status : 302;
        answer->body.n = 0;
        add_field(answer, "Location", s->location);
        break;
    case PROVIDER_EMPTY:
        answer->body.n = 0;
        sz_buf_printf(&answer->body, endpoint == PROVIDER_JWKS ? "{\"keys\":[]}" : "{}");
        break;
    default:
        break;
    }
}

/* What this one request meets: the script's latency drawn anew, its fault only when its turn has come. */
static struct provider_script drawn(const struct provider_script *said, unsigned calls)
{
    struct provider_script script = *said;
    uint32_t random;
    if (script.latency_to_ms > script.latency_ms) {
        sz_random(&random, sizeof(random));
        script.latency_ms += random % (script.latency_to_ms - script.latency_ms + 1);
    }
    if (script.one_in > 1 && calls % script.one_in != 0)
        script.fault = PROVIDER_WELL;
    return script;
}

void provider_answer(struct provider *p, const struct upstream_request *request, struct provider_answer *answer)
{
    *answer = (struct provider_answer){.status = 200};
    pthread_mutex_lock(&p->lock);
    if (sz_starts_with(request->target, SZ_S("/control/"))) {
        provider_control(p, request, answer);
    } else {
        enum provider_endpoint endpoint = endpoint_of(request->target);
        p->calls[endpoint]++;
        answer->script = drawn(&p->scripts[endpoint], p->calls[endpoint]);
        if (p->limited[endpoint] && --p->scripts[endpoint].times == 0) {
            p->scripts[endpoint] = (struct provider_script){0};
            p->limited[endpoint] = false;
        }
        answer_well(p, endpoint, request, answer);
        answer_badly(endpoint, answer);
    }
    pthread_mutex_unlock(&p->lock);
    add_field(answer, "Content-Type", answer->script.fault == PROVIDER_HTML ? "text/html" : "application/json");
    add_field(answer, "Retry-After", answer->script.retry_after);
    add_field(answer, "Cache-Control", answer->script.cache_control);
}
