/*
 * A ring in order of arrival, and a table of positions by key.  The oldest leaves first, when its day is over or its
 * place is needed; keys and bodies are kept as digests, since a body may hold a token.
 */
#include "edge/idempotency.h"

#include <stdlib.h>

#include "subzero/crypto.h"

struct entry {
    uint8_t key[16], body[16];
    struct sz_mono made;
    uint64_t ticket; /* 0: free */
    unsigned status; /* 0: under way */
    struct sz_buf answer;
    uint32_t next; /* in its chain: position + 1 */
};

struct sz_idempotency {
    size_t max, first, n;
    uint64_t tickets;
    uint32_t *heads;
    size_t heads_n;
    struct entry *v;
};

struct sz_idempotency *sz_idempotency_new(size_t max)
{
    struct sz_idempotency *s = sz_xcalloc(1, sizeof(*s));
    s->max = max;
    s->heads_n = max * 2;
    s->heads = sz_xcalloc(s->heads_n, sizeof(*s->heads));
    s->v = sz_xcalloc(max, sizeof(*s->v));
    return s;
}

void sz_idempotency_free(struct sz_idempotency **store)
{
    struct sz_idempotency *s = *store;
    *store = NULL;
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->max; i++)
        sz_buf_fini(&s->v[i].answer);
    free(s->heads);
    free(s->v);
    free(s);
}

static uint32_t *chain_of(struct sz_idempotency *s, const uint8_t key[16])
{
    uint64_t word;
    memcpy(&word, key, sizeof(word));
    return &s->heads[word % s->heads_n];
}

static struct entry *find(struct sz_idempotency *s, const uint8_t key[16])
{
    for (uint32_t at = *chain_of(s, key); at != 0; at = s->v[at - 1].next) {
        if (sz_eq(sz_slice(s->v[at - 1].key, 16), sz_slice(key, 16)))
            return &s->v[at - 1];
    }
    return NULL;
}

static void unlink_entry(struct sz_idempotency *s, struct entry *entry)
{
    uint32_t *at = chain_of(s, entry->key);
    if (entry->ticket == 0)
        return;
    while (*at != (uint32_t)(entry - s->v) + 1)
        at = &s->v[*at - 1].next;
    *at = entry->next;
    entry->ticket = 0;
    sz_buf_fini(&entry->answer);
}

static void drop_first(struct sz_idempotency *s)
{
    unlink_entry(s, &s->v[s->first]);
    s->first = (s->first + 1) % s->max;
    s->n--;
}

static struct entry *add(struct sz_idempotency *s, const uint8_t key[16], const uint8_t body[16], struct sz_mono now)
{
    if (s->n == s->max)
        drop_first(s);
    struct entry *entry = &s->v[(s->first + s->n++) % s->max];
    uint32_t *chain = chain_of(s, key);
    *entry = (struct entry){.made = now, .ticket = ++s->tickets, .next = *chain};
    memcpy(entry->key, key, sizeof(entry->key));
    memcpy(entry->body, body, sizeof(entry->body));
    *chain = (uint32_t)(entry - s->v) + 1;
    return entry;
}

static bool key_ok(struct sz_slice key)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] <= ' ' || key.p[i] > '~')
            return false;
    }
    return key.n > 0 && key.n <= SZ_IDEMPOTENT_KEY;
}

static void digest(struct sz_slice a, struct sz_slice b, uint8_t out[16])
{
    struct sz_buf fields = {0};
    uint8_t hash[32];
    sz_key_field(&fields, 1, a);
    sz_key_field(&fields, 2, b);
    sz_sha256(sz_buf_slice(&fields), hash);
    sz_wipe(fields.p, fields.n);
    sz_buf_fini(&fields);
    memcpy(out, hash, 16);
}

enum sz_idempotent sz_idempotency_begin(struct sz_idempotency *s, struct sz_slice what, struct sz_slice key,
                                        struct sz_slice body, struct sz_mono now, uint64_t *ticket, unsigned *status,
                                        struct sz_slice *answer)
{
    uint8_t key_digest[16], body_digest[16];
    if (!key_ok(key))
        return SZ_IDEMPOTENT_BAD;
    digest(what, key, key_digest);
    digest(SZ_NONE, body, body_digest);
    while (s->n > 0 && sz_after(s->v[s->first].made, SZ_SEC(86400)).us <= now.us)
        drop_first(s);
    struct entry *entry = find(s, key_digest);
    if (entry == NULL) {
        *ticket = add(s, key_digest, body_digest, now)->ticket;
        return SZ_IDEMPOTENT_NEW;
    }
    if (!sz_eq(sz_slice(entry->body, 16), sz_slice(body_digest, 16)))
        return SZ_IDEMPOTENT_OTHER;
    *status = entry->status;
    *answer = sz_buf_slice(&entry->answer);
    return entry->status == 0 ? SZ_IDEMPOTENT_BUSY : SZ_IDEMPOTENT_KNOWN;
}

void sz_idempotency_end(struct sz_idempotency *s, uint64_t ticket, unsigned status, struct sz_slice answer)
{
    for (size_t i = s->n; i > 0; i--) { /* most likely among the last */
        struct entry *entry = &s->v[(s->first + i - 1) % s->max];
        if (entry->ticket != ticket)
            continue;
        if (status >= 500 || answer.n > SZ_IDEMPOTENT_ANSWER) {
            unlink_entry(s, entry); /* its place stays empty until its turn to leave comes */
            return;
        }
        entry->status = status;
        sz_buf_adds(&entry->answer, answer);
        return;
    }
}
