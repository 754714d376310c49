/*
 * Many distinct tokens at once: a process for each of them would cost more than the measurement that they are for.
 * They carry the claims of an ordinary provider's token, about 900 bytes when signed with RS256.
 *
 *   mint_tokens KEY ALG COUNT ISSUER AUDIENCE SCOPE PREFIX      prints one a line; subjects are PREFIX-0, PREFIX-1 ...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "subzero/crypto.h"
#include "subzero/issuers.h"

enum { LIFETIME = 6 * 3600 };

static int die(const char *what)
{
    fprintf(stderr, "mint_tokens: %s\n", what);
    return 1;
}

static struct sz_signer *load(const char *path)
{
    char text[16384];
    struct sz_text why = {""};
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(text, 1, sizeof(text), f) : 0;
    if (f != NULL)
        fclose(f);
    struct sz_signer *signer = sz_signer_new(sz_slice(text, n), &why);
    if (signer == NULL)
        die(why.s);
    return signer;
}

static int mint(struct sz_signer *signer, enum sz_alg alg, char **argv, unsigned i)
{
    struct sz_arena arena;
    struct sz_slice token;
    long long now = (long long)time(NULL);
    sz_arena_init(&arena);
    struct sz_slice claims =
        sz_pool_printf(&arena.pool,
                       "{\"iss\":\"%s\",\"sub\":\"%s-%u\",\"aud\":[\"%s\",\"https://tenant.example/"
                       "userinfo\"],\"iat\":%lld,\"exp\":%lld,"
                       "\"azp\":\"my_client_id_of_thirty_two_chars\",\"scope\":\"openid profile email %s "
                       "write:documents read:reports\","
                       "\"jti\":\"3f1c9d52-7a0e-4f6b-9b6e-6a4f6f7c%08x\",\"https://example.com/tenant\":\"acme-%u\","
                       "\"https://example.com/roles\":[\"reader\",\"writer\"],\"permissions\":[\"read:documents\"]}",
                       argv[4], argv[7], i, argv[5], now, now + LIFETIME, argv[6], i, i % 7);
    int rc = sz_signer_sign(signer, alg, "at+jwt", claims, &arena.pool, &token);
    if (rc == 0)
        printf("%.*s\n", SZ_FMT(token));
    sz_arena_fini(&arena);
    return rc;
}

int main(int argc, char **argv)
{
    enum sz_alg alg = 0;
    if (argc != 8)
        return die("usage: mint_tokens KEY ALG COUNT ISSUER AUDIENCE SCOPE PREFIX");
    while (alg < SZ_ALG_COUNT && strcmp(sz_alg_name(alg), argv[2]) != 0)
        alg++;
    if (alg == SZ_ALG_COUNT)
        return die("no such algorithm");
    sz_crypto_init();
    struct sz_signer *signer = load(argv[1]);
    if (signer == NULL)
        return 1;
    unsigned long count = strtoul(argv[3], NULL, 10);
    for (unsigned i = 0; i < count; i++) {
        if (mint(signer, alg, argv, i) != 0)
            return die("cannot sign");
    }
    sz_signer_free(&signer);
    return fflush(stdout) == 0 ? 0 : die("cannot write");
}
