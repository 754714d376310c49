/* The fake provider's answers over HTTP/1.1, and all that can be wrong with one. */
#include <errno.h>
#include <poll.h>
#include <strings.h>

#include "fake/provider_state.h"

#define HUGE_BODY (UINT64_C(100) * 1000 * 1000)

/* SZ_NEVER's worth of waiting ends when upstream_stop shuts the connection down. */
bool provider_pause(const struct wire *w, unsigned ms)
{
    struct pollfd p = {.fd = w->fd, .events = POLLRDHUP};
    struct sz_mono end = in_time(SZ_MS(ms));
    int rc = 0;
    do {
        int64_t left = (sz_between(sz_mono_read(), end).us + 999) / 1000;
        rc = poll(&p, 1, left > 0 ? (int)left : 0);
    } while (rc < 0 && errno == EINTR);
    return rc == 0;
}

static void hang(const struct wire *w)
{
    while (provider_pause(w, 60000))
        ;
}

static bool send_all(struct wire *w, struct sz_slice bytes)
{
    return wire_send_by(w, bytes, SZ_NEVER);
}

static bool send_head(struct wire *w, const struct provider_answer *answer, const char *framing)
{
    struct sz_buf head = {0};
    sz_buf_printf(&head, "HTTP/1.1 %d Whatever\r\n%.*s%s\r\n", answer->status, SZ_FMT(sz_buf_slice(&answer->fields)),
                  framing);
    bool sent = send_all(w, sz_buf_slice(&head));
    sz_buf_fini(&head);
    return sent;
}

static bool send_huge(struct wire *w, const struct provider_answer *answer, bool announced)
{
    static const char block[65536] = "{\"keys\":[";
    struct sz_text framing;
    sz_text_set(&framing, announced ? "Content-Length: %llu\r\n" : "Connection: close\r\n",
                (unsigned long long)HUGE_BODY);
    if (!send_head(w, answer, framing.s))
        return false;
    for (uint64_t left = HUGE_BODY; left > 0;) {
        size_t n = left < sizeof(block) ? (size_t)left : sizeof(block);
        if (!send_all(w, sz_slice(block, n)))
            return false;
        left -= n;
    }
    return announced;
}

static bool send_flood(struct wire *w)
{
    bool sent = send_all(w, SZ_S("HTTP/1.1 200 OK\r\n"));
    for (unsigned i = 0; sent && i < 1000000; i++) {
        struct sz_text line;
        sz_text_set(&line, "X-Flood-%u: %0200u\r\n", i, i);
        sent = send_all(w, sz_cstr(line.s));
    }
    return false;
}

static bool send_dripping(struct wire *w, struct sz_slice bytes)
{
    for (; bytes.n > 0; bytes = sz_from(bytes, 1))
        if (!send_all(w, sz_sub(bytes, 0, 1)) || !provider_pause(w, 100))
            return false;
    return true;
}

static bool send_part(struct wire *w, const struct provider_answer *answer, bool cut)
{
    struct sz_slice body = sz_buf_slice(&answer->body);
    struct sz_buf whole = {0};
    sz_buf_printf(&whole, "HTTP/1.1 %d Whatever\r\n%.*sContent-Length: %zu\r\n\r\n", answer->status,
                  SZ_FMT(sz_buf_slice(&answer->fields)), body.n);
    sz_buf_adds(&whole, cut ? sz_sub(body, 0, body.n / 2) : body);
    bool sent = answer->script.fault == PROVIDER_DRIP ? send_dripping(w, sz_buf_slice(&whole))
                                                      : send_all(w, sz_buf_slice(&whole));
    sz_buf_fini(&whole);
    return sent && !cut;
}

static bool say(struct wire *w, const struct provider_answer *answer)
{
    switch (answer->script.fault) {
    case PROVIDER_TRUNCATE:
        return send_part(w, answer, true);
    case PROVIDER_HUGE:
    case PROVIDER_ENDLESS:
        return send_huge(w, answer, answer->script.fault == PROVIDER_HUGE);
    case PROVIDER_HANG:
        hang(w);
        return false;
    case PROVIDER_RESET:
        wire_reset(w);
        return false;
    case PROVIDER_CLOSE:
        return false;
    case PROVIDER_GARBAGE:
        (void)send_all(w, SZ_S("220 mail.example ESMTP\r\n\r\n"));
        return false;
    case PROVIDER_FLOOD:
        return send_flood(w);
    case PROVIDER_WELL:
    case PROVIDER_STATUS:
    case PROVIDER_HTML:
    case PROVIDER_REDIRECT:
    case PROVIDER_EMPTY:
    case PROVIDER_DRIP:
    case PROVIDER_FAULTS:
        break;
    }
    return send_part(w, answer, false);
}

bool provider_speak(struct wire *w, const struct upstream_request *request, void *provider)
{
    struct provider *p = provider;
    struct provider_answer answer;
    char value[32];
    if (sz_eq(request->method, SZ_S("PRI")))
        return provider_speak_h2(w, request, p);
    provider_answer(p, request, &answer);
    bool goes_on = answer.script.latency_ms == 0 || provider_pause(w, answer.script.latency_ms);
    goes_on = goes_on && say(w, &answer);
    provider_answer_fini(&answer);
    return goes_on && !(upstream_field(request, "connection", value, sizeof(value)) && strcasecmp(value, "close") == 0);
}
