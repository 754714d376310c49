/* See revoke_kit.h. */
#include "integration/revoke_kit.h"

#include <stdio.h>
#include <stdlib.h>

int revoke_post(struct gateway *g, const char *body, const char *fields, struct http1_response *r)
{
    struct sz_buf request = {0};
    sz_buf_printf(&request, "POST /revocations HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n%s\r\n%s",
                  strlen(body), fields != NULL ? fields : "", body);
    int status = http1_exchange(g->admin, sz_buf_slice(&request), r);
    sz_buf_fini(&request);
    return status;
}

int revoke_by(struct gateway *g, const char *fmt, ...)
{
    char body[16 * 1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(body, sizeof(body), fmt, args);
    va_end(args);
    return revoke_post(g, body, NULL, NULL);
}

int revoke_get(struct gateway *g, const char *token)
{
    struct http1_response r = {0};
    int status = http1_ask(g->port, "GET", "/x", token, NULL, NULL, &r);
    char reason[64] = "";
    http1_field(&r, "x-subzero-reason", reason, sizeof(reason));
    if (status == 401)
        cr_expect_str_eq(reason, "revoked_token");
    http1_response_fini(&r);
    return status;
}

int64_t revoke_becomes(struct gateway *g, const char *token, int status, int ms)
{
    struct sz_mono begun = sz_mono_read();
    int64_t took = 0;
    while (took < (int64_t)ms * 1000) {
        int got = revoke_get(g, token);
        took = sz_between(begun, sz_mono_read()).us;
        if (got == status)
            return took;
        usleep(200);
    }
    return -1;
}

bool revoke_health(struct gateway *g, const char *text)
{
    bool found = false;
    for (int i = 0; i < 200 && !found; i++) {
        char *health = gateway_admin(g, "/health");
        found = health != NULL && strstr(health, text) != NULL;
        free(health);
        usleep(found ? 0 : 50000);
    }
    return found;
}
