/* What Redis's error replies mean: their first word decides. */
#include "cache/redis_client.h"

static const struct {
    struct sz_slice word;
    enum sz_redis_result result;
} words[] = {
    {SZ_S("NOSCRIPT"), SZ_REDIS_NOSCRIPT},    {SZ_S("OOM"), SZ_REDIS_OOM},
    {SZ_S("LOADING"), SZ_REDIS_NOT_READY},    {SZ_S("BUSY"), SZ_REDIS_NOT_READY},
    {SZ_S("MASTERDOWN"), SZ_REDIS_NOT_READY}, {SZ_S("CLUSTERDOWN"), SZ_REDIS_NOT_READY},
    {SZ_S("READONLY"), SZ_REDIS_NOT_READY},   {SZ_S("NOAUTH"), SZ_REDIS_NOT_READY},
    {SZ_S("TRYAGAIN"), SZ_REDIS_NOT_READY},   {SZ_S("NOREPLICAS"), SZ_REDIS_NOT_READY},
};

/* Further ones that people may be shown. */
static const char *const others[] = {"ERR",     "WRONGPASS", "NOPERM",     "WRONGTYPE", "MOVED",
                                     "MISCONF", "DENIED",    "NOREPLICAS", "EXECABORT", "UNKILLABLE"};

static struct sz_slice word_of(struct sz_slice text)
{
    ptrdiff_t blank = sz_find_byte(text, ' ');
    return blank < 0 ? text : sz_sub(text, 0, (size_t)blank);
}

enum sz_redis_result sz_redis_classify(struct sz_slice error)
{
    struct sz_slice word = word_of(error);
    for (size_t i = 0; i < SZ_COUNT(words); i++)
        if (sz_eq(word, words[i].word))
            return words[i].result;
    return SZ_REDIS_ERROR;
}

const char *sz_redis_error_word(struct sz_slice error)
{
    struct sz_slice word = word_of(error);
    for (size_t i = 0; i < SZ_COUNT(words); i++)
        if (sz_eq(word, words[i].word))
            return words[i].word.p;
    for (size_t i = 0; i < SZ_COUNT(others); i++)
        if (sz_eq(word, sz_cstr(others[i])))
            return others[i];
    return "an error";
}

/* "MOVED 3999 127.0.0.1:6381"; an address may be IPv6, so its last colon counts.  An empty host: the one that answered.
 */
bool sz_redis_redirect(struct sz_slice error, bool *ask, unsigned *slot, struct sz_slice *host, uint16_t *port)
{
    struct sz_slice word, number, where;
    uint64_t n = 0, p = 0;
    if (!sz_split(&error, ' ', &word) || !sz_split(&error, ' ', &number) || !sz_split(&error, ' ', &where))
        return false;
    *ask = sz_eq(word, SZ_S("ASK"));
    if (!*ask && !sz_eq(word, SZ_S("MOVED")))
        return false;
    const char *colon = memrchr(where.p, ':', where.n);
    if (colon == NULL || sz_parse_u64(number, SZ_REDIS_SLOTS - 1, &n) != 0)
        return false;
    size_t at = (size_t)(colon - where.p);
    if (sz_parse_u64(sz_from(where, at + 1), 65535, &p) != 0 || p == 0)
        return false;
    *slot = (unsigned)n;
    *host = sz_sub(where, 0, at);
    *port = (uint16_t)p;
    return true;
}

const char *sz_redis_result_name(enum sz_redis_result result)
{
    static const char *const names[SZ_REDIS_RESULTS] = {[SZ_REDIS_ANSWERED] = "answered",
                                                        [SZ_REDIS_ERROR] = "error",
                                                        [SZ_REDIS_NOSCRIPT] = "noscript",
                                                        [SZ_REDIS_OOM] = "oom",
                                                        [SZ_REDIS_NOT_READY] = "not_ready",
                                                        [SZ_REDIS_TIMEOUT] = "timeout",
                                                        [SZ_REDIS_CONNECTION] = "connection",
                                                        [SZ_REDIS_OPEN] = "open",
                                                        [SZ_REDIS_FULL] = "full"};
    return result > 0 && result < SZ_REDIS_RESULTS ? names[result] : "unknown";
}

enum sz_breaker_outcome sz_redis_outcome(const struct sz_redis_answer *answer)
{
    switch (answer->result) {
    case SZ_REDIS_ANSWERED:
        return SZ_BREAKER_SUCCESS;
    case SZ_REDIS_ERROR:
    case SZ_REDIS_NOSCRIPT:
    case SZ_REDIS_OOM:
    case SZ_REDIS_NOT_READY:
    case SZ_REDIS_TIMEOUT:
    case SZ_REDIS_CONNECTION:
        return SZ_BREAKER_FAILURE;
    case SZ_REDIS_OPEN:
    case SZ_REDIS_FULL:
    case SZ_REDIS_RESULTS:
        break;
    }
    return SZ_BREAKER_UNKNOWN;
}
