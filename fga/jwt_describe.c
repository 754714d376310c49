/*
 * A token for people: header and claims as they are, nothing verified.  Everything beyond ASCII is escaped, because the
 * text goes to a terminal and was written by whoever made the token.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "fga/jws_verify.h"
#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { DEPTH = 64 };

static json_t *decode(struct sz_slice encoded, const char *what, struct sz_text *why)
{
    char *text = sz_xmalloc(SZ_B64_BYTES(encoded.n) + 1);
    size_t n = 0, at;
    json_t *value = NULL;
    if (encoded.n == 0 || sz_b64url_decode(encoded, text, &n) != 0)
        sz_text_set(why, "the %s is empty, or not base64url without padding", what);
    else if (sz_json_check(sz_slice(text, n), DEPTH, &at) != 0)
        sz_text_set(why, "the %s is not strict JSON at byte %zu", what, at);
    else if ((value = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL)) == NULL)
        sz_text_set(why, "the %s has a name twice, or a number out of range", what);
    if (value != NULL && !json_is_object(value)) {
        sz_text_set(why, "the %s is not a JSON object", what);
        json_decref(value);
        value = NULL;
    }
    sz_wipe(text, n);
    free(text);
    return value;
}

static void print(struct sz_buf *out, const char *what, const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENSURE_ASCII);
    sz_buf_printf(out, "%s: %s\n", what, text != NULL ? text : "?");
    free(text);
}

static void print_distance(struct sz_buf *out, int64_t seconds)
{
    static const struct {
        int64_t length;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    int64_t size = seconds < 0 ? -seconds : seconds;
    size_t i = 0;
    while (i < SZ_COUNT(units) - 1 && size < units[i].length)
        i++;
    sz_buf_printf(out, seconds < 0 ? "%lld%s ago" : "in %lld%s", (long long)(size / units[i].length), units[i].unit);
}

/* The times once more in words; what is no sensible number is left to the JSON above. */
static void print_times(struct sz_buf *out, const json_t *claims, struct sz_wall now)
{
    static const char *const names[] = {"iat", "nbf", "exp", "auth_time"};
    const int64_t limit = INT64_C(253402300800); /* the year 10000 */
    for (size_t i = 0; i < SZ_COUNT(names); i++) {
        const json_t *value = json_object_get(claims, names[i]);
        char text[32];
        if (!json_is_number(value) || json_number_value(value) < 0 || json_number_value(value) >= (double)limit)
            continue;
        int64_t seconds = (int64_t)json_number_value(value);
        (void)sz_wall_format((struct sz_wall){seconds * 1000000}, 0, text);
        sz_buf_printf(out, "%s: %s, ", names[i], text);
        print_distance(out, seconds - sz_wall_seconds(now));
        sz_buf_printf(out, "\n");
    }
}

int sz_jwt_describe(struct sz_slice token, struct sz_wall now, struct sz_buf *out, struct sz_text *why)
{
    struct sz_jws jws;
    if (sz_jws_split(token, &jws) != 0) {
        sz_text_set(why, "not a JWT: three segments with dots between them are needed");
        return -EINVAL;
    }
    json_t *header = decode(jws.header, "header", why);
    json_t *claims = header != NULL ? decode(jws.payload, "payload", why) : NULL;
    if (claims != NULL) {
        print(out, "header", header);
        print(out, "claims", claims);
        print_times(out, claims, now);
    }
    json_decref(header);
    json_decref(claims);
    return claims != NULL ? 0 : -EINVAL;
}
