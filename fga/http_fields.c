/* Header fields: which may be sent, finding one in an answer, and the one whose value is read here, Retry-After. */
#include <errno.h>
#include <time.h>

#include "fga/http_client.h"

#define DAY        INT64_C(86400)
#define RESET_MAX  1800
#define TIMESTAMPS 1000000000 /* what is larger is no number of seconds to wait, but a moment */

static bool token_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool sz_http_field_valid(const struct sz_http_field *field)
{
    if (field->name.n == 0)
        return false;
    for (size_t i = 0; i < field->name.n; i++)
        if (!token_byte((unsigned char)field->name.p[i]))
            return false;
    for (size_t i = 0; i < field->value.n; i++) {
        unsigned char c = (unsigned char)field->value.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return sz_trim(field->value).n != 0; /* libcurl takes "Name:" for an order to leave the field out */
}

struct sz_slice sz_http_answer_field(const struct sz_http_answer *answer, struct sz_slice name)
{
    struct sz_slice rest = answer->head, line;
    while (sz_split(&rest, '\n', &line)) {
        ptrdiff_t colon = sz_find_byte(line, ':');
        if (colon > 0 && sz_ieq(sz_sub(line, 0, (size_t)colon), name)) {
            struct sz_slice value = sz_from(line, (size_t)colon + 1);
            if (value.n != 0 && value.p[value.n - 1] == '\r')
                value.n--;
            return sz_trim(value);
        }
    }
    return SZ_NONE;
}

int sz_http_date(struct sz_slice value, int64_t *seconds)
{
    static const char *const forms[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    char text[64];
    if (value.n >= sizeof(text))
        return -EINVAL;
    memcpy(text, value.p, value.n);
    text[value.n] = '\0';
    for (size_t i = 0; i < SZ_COUNT(forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        if (end == text + value.n) {
            *seconds = timegm(&tm);
            return 0;
        }
    }
    return -EINVAL;
}

struct sz_span sz_http_retry_after(struct sz_slice value, struct sz_wall now)
{
    uint64_t seconds = 0;
    int64_t date = 0;
    if (value.n == 0)
        return (struct sz_span){0};
    if (value.p[0] >= '0' && value.p[0] <= '9') {
        int rc = sz_parse_u64(value, INT64_MAX, &seconds);
        return SZ_SEC(rc != 0 ? 0 : seconds < DAY ? (int64_t)seconds : DAY);
    }
    int64_t left = sz_http_date(value, &date) == 0 ? date - sz_wall_seconds(now) : 0;
    return SZ_SEC(left <= 0 ? 0 : left < DAY ? left : DAY);
}

struct sz_span sz_http_rate_reset(struct sz_slice value, struct sz_wall now)
{
    uint64_t n = 0;
    if (value.n == 0 || sz_parse_u64(value, INT64_MAX, &n) != 0)
        return (struct sz_span){0};
    int64_t left = n > TIMESTAMPS ? (int64_t)n - sz_wall_seconds(now) : (int64_t)n;
    return SZ_SEC(left > 0 && left <= RESET_MAX ? left : 0);
}
