/*
 * What a token costs a server that asks libjwt about each one anew: jwt_decode with the issuer's key as PEM, as its
 * examples do.  It checks the signature alone, no end, issuer or audience.  The token is made here: libjwt refuses a
 * `typ` other than JWT, such as that of our own access tokens.
 *
 *   micro_libjwt REPETITIONS CALLS PRIVATE_PEM PUBLIC_PEM      prints the microseconds of one call, as JSON
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jwt.h>

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int decode(const char *token, const unsigned char *pem, size_t n)
{
    jwt_t *jwt = NULL;
    int failed = jwt_decode(&jwt, token, pem, (int)n);
    jwt_free(jwt);
    return failed;
}

static size_t read_pem(const char *path, char *out, size_t size)
{
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(out, 1, size - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    return n;
}

/* About as long as an ordinary provider's, signed with RS256; NULL when it cannot be. */
static char *make_token(const char *path)
{
    char pem[8192];
    size_t n = read_pem(path, pem, sizeof(pem));
    jwt_t *jwt = NULL;
    char *token = NULL;
    if (n == 0 || jwt_new(&jwt) != 0)
        return NULL;
    jwt_add_grant(jwt, "iss", "https://bench.example/");
    jwt_add_grant(jwt, "aud", "https://api.bench.example");
    jwt_add_grant(jwt, "sub", "auth0|0123456789abcdef01234567");
    jwt_add_grant(jwt, "azp", "abcdefghijklmnopqrstuvwxyz012345");
    jwt_add_grant(jwt, "scope", "openid profile email read:documents write:documents read:reports write:reports");
    jwt_add_grant_int(jwt, "iat", 1700000000);
    jwt_add_grant_int(jwt, "exp", 4000000000);
    if (jwt_set_alg(jwt, JWT_ALG_RS256, (unsigned char *)pem, (int)n) == 0)
        token = jwt_encode_str(jwt);
    jwt_free(jwt);
    return token;
}

int main(int argc, char **argv)
{
    char pem[8192];
    if (argc != 5)
        return 2;
    size_t n = read_pem(argv[4], pem, sizeof(pem));
    char *token = make_token(argv[3]);
    long repetitions = strtol(argv[1], NULL, 10), calls = strtol(argv[2], NULL, 10);
    if (n == 0 || token == NULL || repetitions < 1 || calls < 1)
        return 2;
    if (decode(token, (unsigned char *)pem, n) != 0) {
        fprintf(stderr, "micro_libjwt: the token does not verify\n");
        return 1;
    }
    double *values = calloc((size_t)repetitions, sizeof(double));
    if (values == NULL)
        return 2;
    for (long i = 0; i < repetitions; i++) {
        double start = now_us();
        for (long k = 0; k < calls; k++)
            (void)decode(token, (unsigned char *)pem, n);
        values[i] = (now_us() - start) / (double)calls;
    }
    qsort(values, (size_t)repetitions, sizeof(double), by_value);
    printf("{\"median\": %.3f, \"min\": %.3f, \"max\": %.3f, \"n\": %ld}\n", values[repetitions / 2], values[0],
           values[repetitions - 1], repetitions);
    free(values);
    free(token);
    return 0;
}
