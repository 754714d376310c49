/* fga/issuers.c: loading, generations, and what a reload keeps. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "unit/fga/issuer_world.h"

TestSuite(issuers);

#define GOOD "{\"iss\":\"https://issuer.test/\",\"aud\":\"api\",\"exp\":" WORLD_LATER "}"
#define OTHER_KEY                                                    \
    "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"e\"," \
    "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"

static bool mistake_says(struct world *w, const char *part)
{
    bool found = false;
    sz_mistakes_init(&w->mistakes);
    struct sz_issuers *issuers = sz_issuers_new(&w->conf, &w->mistakes);
    for (size_t i = 0; i < w->mistakes.n; i++)
        found = found || (!w->mistakes.v[i].warning && strstr(w->mistakes.v[i].message.p, part) != NULL);
    cr_expect(issuers == NULL && w->mistakes.errors != 0);
    sz_mistakes_fini(&w->mistakes);
    return found;
}

Test(issuers, unusable_keys_stop_the_start)
{
    struct world w;
    world_init(&w);
    world_keys(&w, SZ_S("{\"keys\":[]}"));
    cr_expect(mistake_says(&w, "no usable key"));
    world_keys(&w, SZ_S("not json"));
    cr_expect(mistake_says(&w, "not strict JSON"));
    w.issuer[0].jwks_file = SZ_S("/nonexistent/jwks.json");
    cr_expect(mistake_says(&w, "cannot read"));
    w.issuer[0].jwks_file = SZ_S("/dev/zero");
    cr_expect(mistake_says(&w, "not a regular file"));
    w.issuer[0].jwks_file = SZ_NONE;
    cr_expect(mistake_says(&w, "has no keys"));
    w.issuer[0].secret = (struct sz_secret){SZ_S("short"), true};
    cr_expect(mistake_says(&w, "secret_file"));
    w.issuer[0].secret = (struct sz_secret){0};
    w.issuer[0].jwks_file = sz_cstr(w.path);
    world_keys(&w, w.jwks);
    w.issuer[0].algorithms |= 1u << SZ_ALG_HS256;
    cr_expect(mistake_says(&w, "need secret_file"), "HS256 without a secret could only be a confusion");
    world_fini(&w);
}

Test(issuers, a_reload_that_changes_nothing_keeps_facts_good)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    world_init(&w);
    world_open(&w);
    cr_assert_eq(world_verify(&w, world_token(&w, GOOD), &id, &verified), SZ_REASON_allowed);
    cr_expect_eq(id.generation, sz_issuer_generation(w.issuers, id.issuer));
    cr_expect(sz_issuer_key_alive(w.issuers, id.issuer, id.key_id));
    uint64_t all = sz_issuers_generation(w.issuers);
    world_open(&w);
    cr_expect_eq(id.generation, sz_issuer_generation(w.issuers, id.issuer));
    cr_expect(sz_issuer_key_alive(w.issuers, id.issuer, id.key_id));
    cr_expect_eq(sz_issuers_generation(w.issuers), all);
    cr_expect_eq(sz_issuer_index(w.issuers, id.issuer), 0);
    cr_expect_eq(sz_issuer_id(w.issuers, 0), id.issuer);
    world_fini(&w);
}

Test(issuers, settings_vocabulary_keys_and_absence_end_facts)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    world_init(&w);
    world_open(&w);
    cr_assert_eq(world_verify(&w, world_token(&w, GOOD), &id, &verified), SZ_REASON_allowed);
    uint64_t all = sz_issuers_generation(w.issuers);
    w.issuer[0].settings++;
    world_open(&w);
    cr_expect_neq(sz_issuer_generation(w.issuers, id.issuer), id.generation);
    cr_expect_neq(sz_issuers_generation(w.issuers), all);
    w.issuer[0].settings--;
    w.conf.vocabulary.hash = 5;
    world_open(&w);
    cr_expect_neq(sz_issuer_generation(w.issuers, id.issuer), id.generation);
    w.conf.vocabulary.hash = 0;
    world_keys(&w, SZ_S(OTHER_KEY));
    world_open(&w);
    cr_expect_eq(sz_issuer_generation(w.issuers, id.issuer), id.generation, "keys are not settings");
    cr_expect(!sz_issuer_key_alive(w.issuers, id.issuer, id.key_id), "but the removed key ends its own");
    cr_expect_neq(sz_issuers_generation(w.issuers), all, "and rejections are forgotten");
    w.issuer[0].issuer = SZ_S("https://other.test/");
    world_open(&w);
    cr_expect_eq(sz_issuer_index(w.issuers, id.issuer), -1);
    cr_expect_eq(sz_issuer_generation(w.issuers, id.issuer), 0);
    cr_expect(!sz_issuer_key_alive(w.issuers, id.issuer, id.key_id));
    world_fini(&w);
}

Test(issuers, a_key_set_is_swapped_whole)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    struct sz_jwks *next;
    struct sz_text why;
    world_init(&w);
    world_open(&w);
    struct sz_issuer *issuer = &w.issuers->v[0];
    struct sz_jwks *old = sz_key_slot_keys(issuer->slot);
    struct sz_slice token = world_token(&w, GOOD);
    cr_assert_eq(world_verify(&w, token, &id, &verified), SZ_REASON_allowed);
    uint64_t all = sz_issuers_generation(w.issuers);
    cr_assert_eq(sz_jwks_parse(SZ_S(OTHER_KEY), issuer->id, SZ_JWKS_PUBLIC, NULL, &next, &why), 0);
    sz_key_slot_set(issuer->slot, next);
    cr_expect_eq(world_verify(&w, token, &id, &verified), SZ_REASON_invalid_token);
    cr_expect(verified.heals && verified.heals_at == 0, "new keys may heal an unknown kid");
    cr_expect_neq(sz_issuers_generation(w.issuers), all);
    cr_expect(sz_issuers_usable(w.issuers));
    sz_key_slot_set(issuer->slot, sz_jwks_empty());
    cr_expect(!sz_issuers_usable(w.issuers));
    cr_expect_eq(world_verify(&w, token, &id, &verified), SZ_REASON_identity_unavailable, "no keys is not 'no'");
    sz_key_slot_set(issuer->slot, old);
    cr_expect_eq(world_verify(&w, token, &id, &verified), SZ_REASON_allowed);
    world_fini(&w);
}

Test(issuers, two_of_one_iss_each_get_their_chance)
{
    struct world w;
    struct sz_identity id;
    struct sz_verified verified;
    world_init(&w);
    w.audiences[1] = SZ_S("other");
    w.issuer[1] = w.issuer[0];
    w.issuer[1].name = SZ_S("second");
    w.issuer[1].audiences = (struct sz_strings){&w.audiences[1], 1};
    w.conf.issuers_n = 2;
    world_open(&w);
    cr_expect_neq(sz_issuer_id(w.issuers, 0), sz_issuer_id(w.issuers, 1));
    struct sz_slice second =
        world_token(&w, "{\"iss\":\"https://issuer.test/\",\"aud\":\"other\",\"exp\":" WORLD_LATER "}");
    struct sz_slice none = world_token(&w, "{\"iss\":\"https://issuer.test/\",\"aud\":\"x\",\"exp\":" WORLD_LATER "}");
    cr_expect_eq(world_verify(&w, world_token(&w, GOOD), &id, &verified), SZ_REASON_allowed);
    cr_expect_eq(sz_issuer_index(w.issuers, id.issuer), 0);
    cr_expect_eq(world_verify(&w, second, &id, &verified), SZ_REASON_allowed);
    cr_expect_eq(sz_issuer_index(w.issuers, id.issuer), 1);
    cr_expect_eq(world_judge(&w, none), SZ_REASON_wrong_audience);
    w.issuer[1].algorithms = 1u << SZ_ALG_RS256; /* its verdict comes later but says less */
    world_open(&w);
    cr_expect_eq(world_judge(&w, none), SZ_REASON_wrong_audience);
    world_fini(&w);
}

Test(issuers, the_same_kid_at_two_issuers_never_crosses)
{
    struct world w;
    struct sz_text why;
    struct sz_jwks *keys;
    struct sz_buf other = {0};
    world_init(&w);
    w.issuer[0].algorithms |= 1u << SZ_ALG_EDDSA;
    w.issuer[1] = w.issuer[0];
    w.issuer[1].name = SZ_S("second");
    w.issuer[1].issuer = SZ_S("https://second.test/");
    w.conf.issuers_n = 2;
    world_open(&w);
    sz_buf_printf(&other, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k1\","
                          "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}");
    cr_assert_eq(sz_jwks_parse(sz_buf_slice(&other), w.issuers->v[1].id, SZ_JWKS_PUBLIC, NULL, &keys, &why), 0);
    sz_key_slot_set(w.issuers->v[1].slot, keys);
    cr_expect_eq(world_judge(&w, world_token(&w, GOOD)), SZ_REASON_allowed);
    struct sz_slice forged =
        world_token(&w, "{\"iss\":\"https://second.test/\",\"aud\":\"api\",\"exp\":" WORLD_LATER "}");
    cr_expect_neq(world_judge(&w, forged), SZ_REASON_allowed, "the first issuer's key under the second's name");
    sz_buf_fini(&other);
    world_fini(&w);
}

Test(issuers, an_issuer_is_found_by_its_exact_bytes)
{
    struct sz_conf_issuer issuers[64];
    char names[64][40];
    struct world w;
    world_init(&w);
    for (size_t i = 0; i < SZ_COUNT(issuers); i++) {
        issuers[i] = w.issuer[0];
        snprintf(names[i], sizeof(names[i]), "https://%02zu.test/", (i * 37) % 64);
        issuers[i].name = issuers[i].issuer = sz_cstr(names[i]);
    }
    w.conf.issuers = issuers;
    w.conf.issuers_n = SZ_COUNT(issuers);
    world_open(&w);
    for (size_t i = 0; i < SZ_COUNT(issuers); i++) {
        size_t first;
        cr_expect_eq(sz_issuers_find(w.issuers, issuers[i].issuer, &first), 1);
        cr_expect_eq(w.issuers->by_iss[first], i);
        struct sz_slice shorter = sz_sub(issuers[i].issuer, 0, issuers[i].issuer.n - 1);
        cr_expect_eq(sz_issuers_find(w.issuers, shorter, &first), 0);
    }
    world_fini(&w);
}
