/* "did you mean": the nearest name by optimal string alignment distance (a swap of neighbours counts one). */
#include "conf/loader.h"

#define WORD_MAX 40

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

static unsigned distance(struct sz_slice a, struct sz_slice b)
{
    unsigned row[3][WORD_MAX + 1];
    for (unsigned j = 0; j <= b.n; j++)
        row[0][j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned *now = row[i % 3], *before = row[(i + 2) % 3], *older = row[(i + 1) % 3];
        now[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            now[j] = least(before[j] + 1, now[j - 1] + 1, before[j - 1] + (a.p[i - 1] != b.p[j - 1]));
            if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1] && older[j - 2] + 1 < now[j])
                now[j] = older[j - 2] + 1;
        }
    }
    return row[a.n % 3][b.n];
}

const char *sz_suggest(struct sz_slice word, const char *const *names, size_t n)
{
    const char *best = NULL;
    unsigned best_distance = word.n < 5 ? 2 : word.n < 9 ? 3 : 4; /* only nearer than this */
    if (word.n < 2 || word.n > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        struct sz_slice name = sz_cstr(names[i]);
        if (name.n > WORD_MAX)
            continue;
        unsigned d = distance(word, name);
        if (d < best_distance)
            best = names[i], best_distance = d;
    }
    return best;
}
