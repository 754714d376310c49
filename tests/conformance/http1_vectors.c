/*
 * http1.jsonl through the running gateway, with a raw recording upstream behind it: what is refused must never arrive
 * there, what is accepted must arrive as exactly the listed requests.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "conformance/vectors.h"
#include "fake/client.h"
#include "fake/gateway.h"
#include "fake/recorder.h"

static struct gateway gateway;
static struct recorder upstream;

#define YAML                                                        \
    "listen:\n  - address: 127.0.0.1:{port}\n"                      \
    "admin: {address: \"127.0.0.1:{admin}\"}\n"                     \
    "workers: 1\n"                                                  \
    "limits: {request_timeout: 1s, idle_timeout: 2s}\n"             \
    "log: {access: off}\n"                                          \
    "upstreams:\n  up: {urls: [\"http://127.0.0.1:{upstream}\"]}\n" \
    "routes:\n  - {id: all, match: {path: \"/*\"}, public: true, upstream: up}\n"

/* What the upstream sees of a target: an absolute-form loses its scheme and authority. */
static struct sz_slice origin_form(struct sz_slice target)
{
    if (!sz_starts_with(target, SZ_S("http://")))
        return target;
    struct sz_slice rest = sz_from(target, 7);
    ptrdiff_t slash = sz_find_byte(rest, '/');
    return slash < 0 ? SZ_S("/") : sz_from(rest, (size_t)slash);
}

static bool forwarded_is(json_t *forward, struct sz_text *got)
{
    size_t i;
    json_t *want;
    json_array_foreach(forward, i, want)
    {
        struct recorded rec;
        if (!recorder_get(&upstream, i, &rec)) {
            sz_text_add(got, "; only %zu requests arrived", i);
            return false;
        }
        struct sz_slice target = origin_form(sz_cstr(vector_text(want, "target")));
        bool same = strcmp(rec.method, vector_text(want, "method")) == 0 && sz_eq(sz_cstr(rec.target), target) &&
                    (json_int_t)rec.body_n == json_integer_value(json_object_get(want, "body_len"));
        if (!same)
            sz_text_add(got, "; arrived: %s %s with %zu bytes", rec.method, rec.target, rec.body_n);
        free(rec.head);
        if (!same)
            return false;
    }
    if (recorder_count(&upstream) != json_array_size(forward)) {
        sz_text_add(got, "; %zu requests arrived", recorder_count(&upstream));
        return false;
    }
    return true;
}

static bool stripped(json_t *names, struct sz_text *got)
{
    size_t i;
    json_t *name;
    struct recorded rec;
    char value[256];
    bool ok = true;
    if (!recorder_get(&upstream, 0, &rec))
        return json_array_size(names) == 0;
    json_array_foreach(names, i, name)
    {
        if (recorded_header(&rec, json_string_value(name), value, sizeof(value))) {
            sz_text_add(got, "; %s arrived", json_string_value(name));
            ok = false;
        }
    }
    free(rec.head);
    return ok;
}

/* Complete requests (by Content-Length) in front of the one that never ends: those may be served. */
static size_t complete_before(struct sz_slice raw)
{
    size_t n = 0;
    for (;;) {
        const char *end = memmem(raw.p, raw.n, "\r\n\r\n", 4);
        if (end == NULL)
            return n;
        size_t head = (size_t)(end - raw.p) + 4;
        const char *length = memmem(raw.p, head, "\r\nContent-Length: ", 18);
        size_t body = length == NULL ? 0 : strtoul(length + 18, NULL, 10);
        if (memmem(raw.p, head, "\r\nTransfer-Encoding", 19) != NULL || head + body > raw.n)
            return n;
        raw = sz_from(raw, head + body);
        n++;
    }
}

/* A request that never ends: nothing arrives, and the connection is closed in time. */
static bool refused_in_time(int fd, struct sz_text *got)
{
    if (client_closed_within(fd, 4500))
        return true;
    sz_text_add(got, "; the connection stays open");
    return false;
}

static bool http1_passes(json_t *v, struct sz_pool *pool, struct sz_text *got)
{
    struct sz_slice raw = vector_bytes(v, "raw_b64", pool);
    bool either, accept = vector_expects_accept(v, &either), closed;
    char answer[65536];

    recorder_clear(&upstream);
    int fd = client_open(gateway.port);
    cr_assert_geq(fd, 0);
    client_send(fd, raw);
    client_read(fd, answer, sizeof(answer), accept ? 150 : 400, &closed);
    sz_text_set(got, "status %d%s", raw_status(answer), closed ? ", closed" : "");
    bool ok;
    if (accept) {
        ok = forwarded_is(json_object_get(v, "forward"), got) && stripped(json_object_get(v, "must_strip"), got);
    } else {
        size_t allowed = json_is_true(json_object_get(v, "incomplete")) ? complete_before(raw) : 0;
        ok = recorder_count(&upstream) <= allowed && (allowed > 0 || raw_status(answer) != 200) &&
             (closed || refused_in_time(fd, got));
        if (recorder_count(&upstream) > allowed)
            sz_text_add(got, "; %zu requests arrived", recorder_count(&upstream));
    }
    close(fd);
    return ok;
}

Test(http1, vectors_through_the_gateway, .timeout = 300)
{
    recorder_start(&upstream);
    cr_assert(gateway_start(&gateway, YAML, upstream.port));
    vectors_run("http1", http1_passes);
    cr_expect(gateway_stop(&gateway));
    scratch_remove();
}
