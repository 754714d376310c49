/* How clients prove themselves to the fake provider (RFC 6749 section 2.3.1, RFC 7523 section 3). */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake/provider_state.h"
#include "fga/jws_verify.h"
#include "subzero/crypto.h"

#define JWT_BEARER "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

static bool decode(struct sz_slice in, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        if (n + 1 >= size)
            return false;
        if (c == '%') {
            int high = i + 2 < in.n ? sz_hex_digit(in.p[i + 1]) : -1, low = high < 0 ? -1 : sz_hex_digit(in.p[i + 2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+') {
            c = ' ';
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

bool provider_form(struct sz_slice body, const char *name, char *out, size_t size)
{
    struct sz_slice rest = body, pair;
    char key[128];
    while (sz_split(&rest, '&', &pair)) {
        ptrdiff_t eq = sz_find_byte(pair, '=');
        if (eq >= 0 && decode(sz_sub(pair, 0, (size_t)eq), key, sizeof(key)) && strcmp(key, name) == 0)
            return decode(sz_from(pair, (size_t)eq + 1), out, size);
    }
    return false;
}

static bool is_client(const struct provider *p, const char *id, const char *secret)
{
    return strcmp(id, p->options.client_id) == 0 && strcmp(secret, PROVIDER_SECRET) == 0;
}

/* The header holds both form-encoded: a secret that is not is refused here, as some providers do. */
static bool basic(const struct provider *p, const char *value)
{
    char text[512], id[256], secret[256];
    size_t n = 0;
    struct sz_slice encoded = sz_cstr(value + strlen("Basic "));
    if (encoded.n > sizeof(text) || sz_b64_decode(encoded, text, &n) != 0)
        return false;
    ptrdiff_t colon = sz_find_byte(sz_slice(text, n), ':');
    return colon >= 0 && decode(sz_slice(text, (size_t)colon), id, sizeof(id)) &&
           decode(sz_from(sz_slice(text, n), (size_t)colon + 1), secret, sizeof(secret)) && is_client(p, id, secret);
}

static bool fresh_jti(struct provider *p, const char *jti)
{
    for (size_t i = 0; i < PROVIDER_JTIS; i++)
        if (p->jtis[i] != NULL && strcmp(p->jtis[i], jti) == 0)
            return false;
    char **place = &p->jtis[p->jtis_n++ % PROVIDER_JTIS];
    free(*place);
    *place = sz_xstrdup(jti);
    return true;
}

static bool good_claims(struct provider *p, const char *payload, size_t n)
{
    const char *iss, *sub, *aud, *jti;
    json_int_t exp;
    char token_url[128];
    int64_t now = sz_wall_seconds(sz_wall_read());
    json_t *claims = json_loadb(payload, n, JSON_REJECT_DUPLICATES, NULL);
    if (claims == NULL)
        return false;
    snprintf(token_url, sizeof(token_url), "%s/token", p->url);
    bool good = json_unpack(claims, "{s:s, s:s, s:s, s:s, s:I}", "iss", &iss, "sub", &sub, "aud", &aud, "jti", &jti,
                            "exp", &exp) == 0 &&
                strcmp(iss, p->options.client_id) == 0 && strcmp(sub, iss) == 0 &&
                (strcmp(aud, token_url) == 0 || strcmp(aud, p->issuer) == 0) && exp > now && exp <= now + 300 &&
                fresh_jti(p, jti);
    json_decref(claims);
    return good;
}

static bool assertion(struct provider *p, const char *token)
{
    struct sz_jwks *keys = NULL;
    struct sz_jws jws;
    struct sz_jose jose;
    const struct sz_jwk *by;
    struct sz_text why;
    char payload[4096];
    size_t n = 0;
    if (p->client_keys == NULL || strlen(token) > sizeof(payload))
        return false;
    if (sz_jwks_parse(sz_cstr(p->client_keys), 1, SZ_JWKS_PUBLIC, NULL, &keys, &why) != 0)
        return false;
    bool good = sz_jws_split(sz_cstr(token), &jws) == 0 && sz_jose_parse(jws.header, &jose, &why) == 0 &&
                sz_jws_verify(keys, &jose, &jws, &by) == 0 && sz_jws_payload(&jws, &jose, payload, &n) == 0 &&
                good_claims(p, payload, n);
    sz_jwks_unref(&keys);
    return good;
}

bool provider_client_known(struct provider *p, const struct upstream_request *request)
{
    char field[1024], id[256], secret[256], token[4096], kind[128];
    bool by_header = upstream_field(request, "authorization", field, sizeof(field));
    bool by_secret = provider_form(request->body, "client_secret", secret, sizeof(secret));
    bool by_assertion = provider_form(request->body, "client_assertion", token, sizeof(token));
    if (by_header + by_secret + by_assertion != 1) /* RFC 6749: one method a request */
        return false;
    if (by_header)
        return strncmp(field, "Basic ", 6) == 0 && basic(p, field);
    if (by_secret)
        return provider_form(request->body, "client_id", id, sizeof(id)) && is_client(p, id, secret);
    return provider_form(request->body, "client_assertion_type", kind, sizeof(kind)) && strcmp(kind, JWT_BEARER) == 0 &&
           assertion(p, token);
}
