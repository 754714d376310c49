/*
 * A second, slow evaluator: the rules of checks written down as directly as possible, on strings, without index,
 * numbers or memory of earlier answers.  The engine is compared with it.
 */
#ifndef NAIVE_H
#define NAIVE_H

#include "fga/engine/model.h"

/* The conditions of random models: c1(x: int) { x > 1 }, c2(y: bool) { y }.  Values as small numbers. */
enum { ABSENT = -1 };
struct naive_values {
    int x, y;
};

struct naive_tuple {
    char object[16], relation[8], user[24];
    int condition; /* 0 none, 1, 2 */
    struct naive_values values;
    bool contextual;
};

struct naive {
    const struct sz_model *m;
    const struct naive_tuple *tuples;
    size_t n;
    struct naive_values request;
    unsigned long steps; /* in: how many may be taken */
    bool met_cycle;      /* out: a cycle was met anywhere */
};

enum naive_answer { N_NO, N_YES, N_CYCLE, N_ERROR, N_GAVE_UP };

enum naive_answer naive_check(struct naive *v, const char *object, const char *relation, const char *user);

#endif
