#include "facts.h"

uint64_t fact_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

struct sz_fingerprint fact_fp(uint32_t set, uint16_t tag, uint32_t n)
{
    return (struct sz_fingerprint){{{(uint64_t)set << 32 | n, (uint64_t)n << 16 | tag}}};
}

void fact_identity(struct sz_identity *id, uint64_t seed, size_t text, bool wide, int64_t exp)
{
    uint64_t state = seed;
    char *bytes = (char *)id;

    memset(id, 0xa5, sizeof(*id)); /* what is not in use is not zero either */
    for (size_t i = 0; i < offsetof(struct sz_identity, text) + text; i++)
        bytes[i] = (char)fact_random(&state);
    if (!wide) {
        memset(&id->scopes[1], 0, sizeof(id->scopes) - sizeof(id->scopes[0]));
        memset(id->x5t, 0, sizeof(id->x5t));
    }
    id->exp = exp;
    id->text_n = (uint16_t)text;
}

bool fact_same(const struct sz_identity *a, const struct sz_identity *b)
{
    return a->text_n == b->text_n && memcmp(a, b, sz_identity_size(a)) == 0;
}
