/*
 * libcurl's memory.  What it is given to send (credentials, tokens) it copies into buffers of its own and frees
 * them as they are; with these functions in malloc's place they are wiped first.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "fga/http_client.h"
#include "subzero/crypto.h"

static void wiping_free(void *p)
{
    if (p != NULL)
        sz_wipe(p, malloc_usable_size(p));
    free(p);
}

/* Never in place: realloc would leave the old bytes behind where it moves. */
static void *wiping_realloc(void *p, size_t size)
{
    if (p == NULL)
        return malloc(size);
    size_t had = malloc_usable_size(p);
    if (size <= had && size > had / 2)
        return p;
    void *q = malloc(size);
    if (q == NULL)
        return NULL;
    memcpy(q, p, had < size ? had : size);
    wiping_free(p);
    return q;
}

static int result;

static void init(void)
{
    result = curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup, calloc) == CURLE_OK
                 ? 0
                 : -ENOMEM;
}

int sz_http_memory_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init);
    return result;
}
