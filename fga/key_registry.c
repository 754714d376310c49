/*
 * Two small tables behind one lock.  Both are used when key sets are built and freed, never while a
 * request is verified, so they are plain lists.  Key numbers come from a counter and
 * are not reused: a cached fact that names a dead key can then never name another one.
 */
#include "fga/key_registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct key_entry {
    uint8_t fingerprint[32];
    uint32_t id, holders;
    uint16_t issuer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct sz_buf *names; /* name and iss, length-prefixed; the index is the number */
    size_t n;
} issuers;
static struct {
    struct key_entry *v;
    size_t n, cap;
    uint32_t last;
} keys;
static _Atomic uint64_t epoch;

static void add_field(struct sz_buf *b, struct sz_slice s)
{
    uint32_t n = (uint32_t)s.n;
    sz_buf_add(b, &n, sizeof(n));
    sz_buf_adds(b, s);
}

int sz_issuer_register(struct sz_slice name, struct sz_slice iss, uint16_t *id)
{
    struct sz_buf key = {0};
    add_field(&key, name);
    add_field(&key, iss);
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < issuers.n && !sz_eq(sz_buf_slice(&issuers.names[i]), sz_buf_slice(&key)))
        i++;
    int rc = i < SZ_ISSUERS_MAX ? 0 : -ENOSPC;
    if (i == issuers.n && rc == 0) {
        issuers.names = sz_xrealloc(issuers.names, (issuers.n + 1) * sizeof(*issuers.names));
        issuers.names[issuers.n++] = key;
        key = (struct sz_buf){0};
    }
    pthread_mutex_unlock(&lock);
    sz_buf_fini(&key);
    *id = (uint16_t)i;
    return rc;
}

static struct key_entry *find(uint16_t issuer, const uint8_t fingerprint[32])
{
    for (size_t i = 0; i < keys.n; i++) {
        if (keys.v[i].issuer == issuer && sz_eq(sz_slice(keys.v[i].fingerprint, 32), sz_slice(fingerprint, 32)))
            return &keys.v[i];
    }
    return NULL;
}

static struct key_entry *add(uint16_t issuer, const uint8_t fingerprint[32])
{
    if (keys.n == keys.cap) {
        keys.cap = keys.cap == 0 ? 16 : keys.cap * 2;
        keys.v = sz_xrealloc(keys.v, keys.cap * sizeof(*keys.v));
    }
    SZ_ASSERT(keys.last < UINT32_MAX); /* a rotation every second for 136 years */
    struct key_entry *entry = &keys.v[keys.n++];
    *entry = (struct key_entry){.id = ++keys.last, .issuer = issuer};
    memcpy(entry->fingerprint, fingerprint, sizeof(entry->fingerprint));
    return entry;
}

uint32_t sz_key_take(uint16_t issuer, const uint8_t fingerprint[32])
{
    pthread_mutex_lock(&lock);
    struct key_entry *entry = find(issuer, fingerprint);
    if (entry == NULL)
        entry = add(issuer, fingerprint);
    entry->holders++;
    uint32_t id = entry->id;
    pthread_mutex_unlock(&lock);
    return id;
}

static void remove_at(size_t i)
{
    keys.v[i] = keys.v[--keys.n];
    if (keys.n == 0) {
        free(keys.v);
        keys.v = NULL;
        keys.cap = 0;
    }
    atomic_fetch_add_explicit(&epoch, 1, memory_order_release);
}

void sz_key_drop(uint32_t id)
{
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < keys.n && keys.v[i].id != id)
        i++;
    SZ_ASSERT(i < keys.n && keys.v[i].holders > 0);
    if (--keys.v[i].holders == 0)
        remove_at(i);
    pthread_mutex_unlock(&lock);
}

uint64_t sz_keys_epoch(void)
{
    return atomic_load_explicit(&epoch, memory_order_acquire);
}

size_t sz_keys_count(void)
{
    pthread_mutex_lock(&lock);
    size_t n = keys.n;
    pthread_mutex_unlock(&lock);
    return n;
}
