/* Telling and hearing the other instances. */
#include "cache/revocation.h"

void sz_revocation_shared_kick(struct sz_revocations *set)
{
    (void)set;
}

void sz_revocation_shared_stop(struct sz_revocations *set)
{
    (void)set;
}

bool sz_revocation_shared_idle(const struct sz_revocations *set)
{
    return set->shared == NULL;
}

void sz_revocation_shared_forget(struct sz_revocations *set, uint64_t number)
{
    (void)set;
    (void)number;
}

void sz_revocation_shared_look(const struct sz_revocations *set, struct sz_revocations_look *out)
{
    (void)set;
    (void)out;
}
