/*
 * Loading libcurl, and its memory.  What it is given to send (credentials, tokens) it copies into buffers of its own
 * and frees them as they are; with the functions here in malloc's place they are wiped first.
 */
#include "fga/http_lib.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "subzero/crypto.h"
#include "subzero/http.h"

#define LIBRARY "libcurl.so.4"
#define LEAST   0x075700 /* 7.87: CURLOPT_QUICK_EXIT, CURLOPT_CA_CACHE_TIMEOUT */

struct sz_curl sz_curl;

/* ---- memory ------------------------------------------------------------------------------------------------------ */

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

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    atomic_bool loaded;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool sz_curl_loaded(void)
{
    return atomic_load_explicit(&state.loaded, memory_order_acquire);
}

static int bad(struct sz_text *why, const char *what)
{
    sz_text_set(why, "%s: %s; install libcurl 7.87 or newer, built with OpenSSL 3 (Debian: libcurl4)", LIBRARY, what);
    return -ELIBACC;
}

static const char *find_functions(void *library)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
#define FUNCTION(name) {"curl_" #name, offsetof(struct sz_curl, name)},
        SZ_CURL_FUNCTIONS(FUNCTION)
#undef FUNCTION
    };
    for (size_t i = 0; i < SZ_COUNT(functions); i++) {
        void *found = dlsym(library, functions[i].name);
        if (found == NULL)
            return functions[i].name;
        memcpy((char *)&sz_curl + functions[i].at, &found, sizeof(found));
    }
    return NULL;
}

/* SSL contexts of its OpenSSL are handed to ours: both must be the same. */
static const char *unfit(void)
{
    const curl_version_info_data *info = sz_curl.version_info(CURLVERSION_NOW);
    if (info->version_num < LEAST)
        return info->version;
    if (info->ssl_version == NULL || strncmp(info->ssl_version, "OpenSSL/3", 9) != 0)
        return info->ssl_version != NULL ? info->ssl_version : "without TLS";
    return (info->features & CURL_VERSION_HTTP2) == 0 ? "without HTTP/2" : NULL;
}

static int load(struct sz_text *why)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* never closed: it has state in every thread */
    if (library == NULL)
        return bad(why, dlerror());
    const char *wrong = find_functions(library);
    if (wrong == NULL)
        wrong = unfit();
    if (wrong != NULL)
        return bad(why, wrong);
    if (sz_curl.global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc, strdup, calloc) != CURLE_OK)
        return bad(why, "it cannot be set up");
    return 0;
}

int sz_http_prepare(struct sz_text *why)
{
    pthread_mutex_lock(&state.lock);
    int rc = sz_curl_loaded() ? 0 : load(why);
    if (rc == 0)
        atomic_store_explicit(&state.loaded, true, memory_order_release);
    pthread_mutex_unlock(&state.lock);
    return rc;
}
