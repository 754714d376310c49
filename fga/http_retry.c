/*
 * Whether a failed try may pass if made again, and when: a calculator.  Pauses double from 50 ms to 2 s, and each is
 * cut at random to between half and all of itself, so that a thousand callers who failed together do not come
 * back together.  A server that says when to come back is not asked before; when that is too late for the deadline,
 * waiting would only hold the caller up, so the failure is told at once.
 */
#include "fga/http_client.h"

#define FIRST_PAUSE SZ_MS(50)
#define LONG_PAUSE  SZ_SEC(2)
#define WORTH_WHILE SZ_MS(5) /* less than this left after the pause is no try */

static bool may_pass(enum sz_http_result result, int status)
{
    switch (result) {
    case SZ_HTTP_ANSWERED:
        return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
    case SZ_HTTP_REFUSED:
    case SZ_HTTP_RESOLVE:
    case SZ_HTTP_TIMEOUT:
    case SZ_HTTP_TRUNCATED:
        return true;
    case SZ_HTTP_TLS:
    case SZ_HTTP_TOO_LARGE:
    case SZ_HTTP_REDIRECT:
    case SZ_HTTP_MALFORMED:
    case SZ_HTTP_BUSY:
    case SZ_HTTP_CANCELLED:
    case SZ_HTTP_RESULTS:
        break;
    }
    return false;
}

static struct sz_span pause_after(unsigned made, uint64_t random)
{
    struct sz_span pause = FIRST_PAUSE;
    for (unsigned i = 1; i < made && pause.us < LONG_PAUSE.us; i++)
        pause.us *= 2;
    if (pause.us > LONG_PAUSE.us)
        pause = LONG_PAUSE;
    pause.us = pause.us / 2 + (int64_t)(random % (uint64_t)(pause.us / 2 + 1));
    return pause;
}

bool sz_http_retry(const struct sz_http_try *t, uint64_t random, struct sz_mono *at)
{
    if (t->made > t->allowed || !may_pass(t->result, t->status))
        return false;
    struct sz_span pause = pause_after(t->made, random);
    if (t->retry_after.us > pause.us)
        pause = t->retry_after;
    *at = sz_after(t->now, pause);
    return sz_after(*at, WORTH_WHILE).us < t->deadline.us;
}
