#include "conformance/issuer_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct sz_slice text_of(const json_t *value)
{
    return sz_slice(json_string_value(value), json_string_length(value));
}

/* A string or a list of strings. */
static struct sz_strings strings_of(const json_t *value, struct sz_slice *room, size_t max)
{
    size_t n = 0;
    if (json_is_string(value))
        room[n++] = text_of(value);
    for (size_t i = 0; i < json_array_size(value) && n < max; i++)
        room[n++] = text_of(json_array_get(value, i));
    return (struct sz_strings){room, n};
}

static void write_keys(struct issuer_fixture *f, const json_t *jwks)
{
    snprintf(f->path, sizeof(f->path), "/tmp/sz-vectors-XXXXXX");
    int fd = mkstemp(f->path);
    char *text = json_dumps(jwks, 0);
    cr_assert(fd >= 0 && text != NULL && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    free(text);
}

static void open_fixture(struct issuer_fixture *f, const json_t *policy, const json_t *jwks, bool asked)
{
    memset(f, 0, sizeof(*f));
    write_keys(f, jwks);
    const json_t *iss = json_object_get(policy, "iss"), *skew = json_object_get(policy, "skew");
    f->issuer.name = SZ_S("vectors");
    f->issuer.issuer = iss != NULL ? text_of(iss) : SZ_S("https://issuer.example");
    f->issuer.audiences = strings_of(json_object_get(policy, "aud"), f->audiences, SZ_COUNT(f->audiences));
    f->issuer.any_audience = f->issuer.audiences.n == 0;
    f->issuer.algorithms = ((1u << SZ_ALG_COUNT) - 1) & ~(1u << SZ_ALG_HS256 | 1u << SZ_ALG_HS384 | 1u << SZ_ALG_HS512);
    if (asked)
        f->issuer.introspection.on = true;
    else
        f->issuer.jwks_file = sz_cstr(f->path);
    f->issuer.leeway = SZ_SEC(json_integer_value(skew));
    f->issuer.required_claims = strings_of(json_object_get(policy, "require"), f->required, SZ_COUNT(f->required));
    f->issuer.types = strings_of(json_object_get(policy, "typ"), f->types, SZ_COUNT(f->types));
    f->issuer.settings = 1;
    f->conf.issuers = &f->issuer;
    f->conf.issuers_n = 1;
    f->conf.vocabulary.scopes = strings_of(json_object_get(policy, "required_scope"), f->scopes, SZ_COUNT(f->scopes));
    sz_mistakes_init(&f->mistakes);
    f->issuers = sz_issuers_new(&f->conf, &f->mistakes);
    cr_assert(f->issuers != NULL);
}

void issuer_fixture_init(struct issuer_fixture *f, const json_t *policy, const json_t *jwks)
{
    open_fixture(f, policy, jwks, false);
}

void issuer_fixture_asked(struct issuer_fixture *f, const json_t *policy, const json_t *jwks)
{
    open_fixture(f, policy, jwks, true);
}

void issuer_fixture_fini(struct issuer_fixture *f)
{
    sz_issuers_free(&f->issuers);
    sz_mistakes_fini(&f->mistakes);
    unlink(f->path);
}
