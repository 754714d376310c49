/* See openfga.h. */
#include "fake/openfga.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MALFORMED "{\"code\":\"validation_error\",\"message\":\"value does not match regex pattern\"}"

static bool respond(struct wire *w, int status, const char *body)
{
    struct sz_buf b = {0};
    sz_buf_printf(&b, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
                  strlen(body), body);
    bool sent = wire_send(w, sz_buf_slice(&b));
    sz_buf_fini(&b);
    return sent;
}

static const char *member(const json_t *check, const char *name)
{
    const char *s = json_string_value(json_object_get(json_object_get(check, "tuple_key"), name));
    return s != NULL ? s : "";
}

static bool about(const json_t *check, const char *object)
{
    return strcmp(member(check, "object"), object) == 0;
}

/* The answer to one of a batch. */
static void add_one(struct sz_buf *out, const json_t *check)
{
    const char *error = about(check, "document:unknown") ? "input_error\":\"validation_error"
                        : about(check, "document:deep")  ? "input_error\":\"authorization_model_resolution_too_complex"
                        : about(check, "document:internal") ? "internal_error\":\"internal_error"
                                                            : NULL;
    if (error != NULL)
        sz_buf_printf(out, "{\"error\":{\"%s\",\"message\":\"so it is\"}}", error);
    else if (about(check, "document:missing"))
        sz_buf_printf(out, "{}");
    else
        sz_buf_printf(out, "{\"allowed\":%s}", strcmp(member(check, "user"), "user:alice") == 0 ? "true" : "false");
}

static bool answer_batch(struct openfga *o, struct wire *w, const json_t *body)
{
    const json_t *checks = json_object_get(body, "checks"), *check;
    size_t i;
    struct sz_buf out = {0};
    int status = 200;
    if (o->no_batch)
        return respond(w, 404, "{\"code\":\"undefined_endpoint\",\"message\":\"Not Found\"}");
    o->batched += (unsigned)json_array_size(checks);
    sz_buf_printf(&out, "{\"result\":{");
    json_array_foreach(checks, i, check)
    {
        if (about(check, "document:malformed"))
            status = 400;
        sz_buf_printf(&out, "%s\"%s\":", i > 0 ? "," : "", json_string_value(json_object_get(check, "correlation_id")));
        add_one(&out, check);
    }
    sz_buf_printf(&out, "}}");
    bool sent = respond(w, status, status == 200 ? sz_buf_slice(&out).p : MALFORMED);
    sz_buf_fini(&out);
    return sent;
}

static bool answer_check(struct wire *w, const json_t *body)
{
    if (about(body, "document:unknown") || about(body, "document:malformed"))
        return respond(w, 400, MALFORMED);
    if (about(body, "document:deep"))
        return respond(w, 400, "{\"code\":\"authorization_model_resolution_too_complex\",\"message\":\"too deep\"}");
    if (about(body, "document:internal"))
        return respond(w, 500, "{\"code\":\"internal_error\",\"message\":\"Internal Server Error\"}");
    if (about(body, "document:missing"))
        return respond(w, 200, "{\"resolution\":\"\"}");
    return respond(w, 200,
                   strcmp(member(body, "user"), "user:alice") == 0 ? "{\"allowed\":true,\"resolution\":\"\"}"
                                                                   : "{\"allowed\":false,\"resolution\":\"\"}");
}

static bool answer_token(struct openfga *o, struct wire *w)
{
    char text[256];
    o->tokens++;
    if (o->token_status != 0)
        return respond(w, o->token_status, "{\"error\":\"access_denied\"}");
    snprintf(text, sizeof(text), "{\"access_token\":\"token-%u\",\"token_type\":\"Bearer\",\"expires_in\":%u}",
             o->token_needed, o->token_life);
    return respond(w, 200, text);
}

static bool may_ask(const struct openfga *o, const struct upstream_request *request)
{
    char got[256] = "", want[64];
    snprintf(want, sizeof(want), "Bearer token-%u", o->token_needed);
    upstream_field(request, "authorization", got, sizeof(got));
    return o->token_needed == 0 || strcmp(got, want) == 0;
}

#define KEY(user) "{\"user\":\"" user "\",\"relation\":\"viewer\",\"object\":\"document:1\",\"condition\":null}"
#define TIME      ",\"timestamp\":\"2026-01-01T00:00:00Z\"}"

static bool answer_store(struct openfga *o, struct wire *w, const struct upstream_request *request, const json_t *body)
{
    struct sz_slice path = sz_from(request->target, sizeof("/stores/" OPENFGA_STORE) - 1);
    if (sz_eq(path, SZ_S("/authorization-models/" OPENFGA_MODEL)))
        return respond(
            w, 200,
            "{\"authorization_model\":{\"id\":\"" OPENFGA_MODEL "\",\"schema_version\":\"1.1\","
            "\"type_definitions\":[{\"type\":\"user\",\"relations\":{},\"metadata\":null},{\"type\":"
            "\"document\",\"relations\":{\"viewer\":{\"this\":{}}},\"metadata\":{\"relations\":{\"viewer\":{"
            "\"directly_related_user_types\":[{\"type\":\"user\",\"condition\":\"\"}]}}}}],\"conditions\":{}}}");
    if (sz_eq(path, SZ_S("/read"))) {
        o->pages++;
        if (o->bad_pages > 0) {
            o->bad_pages--;
            return respond(w, 200, "{\"tuples\":[{\"key\":{\"user\":7}" TIME "],\"continuation_token\":\"two\"}");
        }
        return respond(w, 200,
                       json_object_get(body, "continuation_token") == NULL
                           ? "{\"tuples\":[{\"key\":" KEY("user:alice") TIME "],\"continuation_token\":\"two\"}"
                           : "{\"tuples\":[{\"key\":" KEY("user:carol") TIME "],\"continuation_token\":\"\"}");
    }
    o->changes++;
    bool token = memmem(path.p, path.n, "continuation_token=", 19) != NULL;
    if (token && o->token_refused) {
        o->token_refused = false;
        return respond(w, 400, "{\"code\":\"invalid_continuation_token\",\"message\":\"Invalid continuation token\"}");
    }
    return respond(
        w, 200,
        token ? "{\"changes\":[],\"continuation_token\":\"end\"}"
              : "{\"changes\":[{\"tuple_key\":" KEY("user:carol") ",\"operation\":\"TUPLE_OPERATION_WRITE\"" TIME
                                                                  "],\"continuation_token\":\"end\"}");
}

static bool answer(struct openfga *o, struct wire *w, const struct upstream_request *request, const json_t *body)
{
    bool batch = sz_eq(request->target, SZ_S("/stores/" OPENFGA_STORE "/batch-check"));
    if (sz_eq(request->target, SZ_S("/oauth/token")))
        return answer_token(o, w);
    if (!may_ask(o, request)) {
        o->refused++;
        return respond(w, 401, "{\"code\":\"invalid_claims\",\"message\":\"no\"}");
    }
    struct sz_slice path = sz_from(request->target, sizeof("/stores/" OPENFGA_STORE) - 1);
    if (sz_starts_with(path, SZ_S("/authorization-models")) || sz_starts_with(path, SZ_S("/changes?")) ||
        sz_eq(path, SZ_S("/read")))
        return answer_store(o, w, request, body);
    const char *consistency = json_string_value(json_object_get(body, "consistency"));
    const char *model = json_string_value(json_object_get(body, "authorization_model_id"));
    if (!batch && !sz_eq(request->target, SZ_S("/stores/" OPENFGA_STORE "/check")))
        return respond(w, 404, "{\"code\":\"undefined_endpoint\",\"message\":\"Not Found\"}");
    if (model == NULL || strcmp(model, OPENFGA_MODEL) != 0)
        return respond(w, 400, "{\"code\":\"authorization_model_not_found\",\"message\":\"not found\"}");
    o->high += consistency != NULL && strcmp(consistency, "HIGHER_CONSISTENCY") == 0;
    *(batch ? &o->batches : &o->checks) += 1;
    return batch ? answer_batch(o, w, body) : answer_check(w, body);
}

static bool speak(struct wire *w, const struct upstream_request *request, void *arg)
{
    struct openfga *o = arg;
    json_t *body = json_loadb(request->body.p != NULL ? request->body.p : "", request->body.n, 0, NULL);
    pthread_mutex_lock(&o->lock);
    unsigned wait_ms = o->wait_ms;
    pthread_mutex_unlock(&o->lock);
    usleep(wait_ms * 1000);
    pthread_mutex_lock(&o->lock);
    snprintf(o->last, sizeof(o->last), "%.*s", SZ_FMT(request->body));
    bool keep = answer(o, w, request, body);
    pthread_mutex_unlock(&o->lock);
    json_decref(body);
    return keep;
}

void openfga_reset(struct openfga *o)
{
    pthread_mutex_lock(&o->lock);
    o->token_needed = o->wait_ms = 0;
    o->token_status = 0;
    o->token_life = 3600;
    o->no_batch = o->token_refused = false;
    o->bad_pages = o->pages = o->changes = 0;
    o->checks = o->batches = o->batched = o->tokens = o->refused = o->high = 0;
    pthread_mutex_unlock(&o->lock);
    upstream_play(o->upstream, &(struct upstream_script){.speak = speak, .arg = o});
}

void openfga_init(struct openfga *o)
{
    *o = (struct openfga){.upstream = upstream_start(NULL)};
    pthread_mutex_init(&o->lock, NULL);
    SZ_ASSERT(o->upstream != NULL);
    openfga_reset(o);
}

void openfga_fini(struct openfga *o)
{
    upstream_stop(&o->upstream);
    pthread_mutex_destroy(&o->lock);
}

const char *openfga_yaml(const struct openfga *o)
{
    static char text[512];
    snprintf(text, sizeof(text),
             "fga:\n"
             "  mode: remote\n"
             "  api_url: \"http://127.0.0.1:%u\"\n"
             "  store_id: " OPENFGA_STORE "\n"
             "  model_id: " OPENFGA_MODEL "\n",
             (unsigned)upstream_port(o->upstream));
    return text;
}
