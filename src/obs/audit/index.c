/* The filter and its side file: see the header. */
#include "obs/audit/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "subzero/crypto.h"

enum { WORDS = 8 /* of a block */, BITS = 6 /* a value sets */, VALUE_MAX = 1024 };
enum { RECORD = 512 /* bytes, a small one */, BITS_EACH = 16, BLOCKS_MAX = 4096 };

enum { MEMO = 48 };
struct memo { /* the value added last: most members repeat from record to record */
    uint8_t n;
    char text[MEMO];
};
struct sz_audit_index {
    uint32_t blocks;
    struct memo memo[SZ_AUDIT_FIELDS];
    _Atomic int64_t oldest, newest;
    _Atomic uint64_t words[];
};

struct file_head { /* followed by the words; the digest is over all of it with the digest zero */
    char magic[8];
    uint64_t blocks, size;
    int64_t oldest, newest;
    uint8_t last[32], digest[32];
};
static const char magic[8] = "SZAUIX1";

struct sz_slice sz_audit_field_name(enum sz_audit_field field)
{
    static const char *const names[SZ_AUDIT_FIELDS] = {
        [SZ_AUDIT_BY_KIND] = "kind",       [SZ_AUDIT_BY_SUBJECT] = "subject",       [SZ_AUDIT_BY_CLIENT] = "client",
        [SZ_AUDIT_BY_ADDRESS] = "address", [SZ_AUDIT_BY_ROUTE] = "route",           [SZ_AUDIT_BY_DECISION] = "decision",
        [SZ_AUDIT_BY_REASON] = "reason",   [SZ_AUDIT_BY_REQUEST_ID] = "request_id", [SZ_AUDIT_BY_TRACE_ID] = "trace_id",
    };
    return sz_cstr(names[field]);
}

static struct sz_audit_index *make(uint32_t blocks)
{
    struct sz_audit_index *index = sz_xcalloc(1, sizeof(*index) + (size_t)blocks * WORDS * sizeof(uint64_t));
    index->blocks = blocks;
    atomic_init(&index->oldest, INT64_MAX);
    atomic_init(&index->newest, INT64_MIN);
    return index;
}

struct sz_audit_index *sz_audit_index_new(uint64_t bytes)
{
    uint64_t blocks = bytes / RECORD * BITS_EACH / (WORDS * 64) + 1;
    return make(blocks < BLOCKS_MAX ? (uint32_t)blocks : BLOCKS_MAX);
}

void sz_audit_index_free(struct sz_audit_index **index)
{
    free(*index);
    *index = NULL;
}

/* The hash needs no secret: whoever makes values collide makes a search slower, not wrong. */
static struct sz_hash128 hash(enum sz_audit_field field, struct sz_slice value)
{
    static const struct sz_key128 key = {"subzero audit ix"};
    char bytes[1 + VALUE_MAX];
    size_t n = value.n < VALUE_MAX ? value.n : VALUE_MAX;
    bytes[0] = (char)field;
    memcpy(bytes + 1, value.p, n);
    return sz_hash128(&key, sz_slice(bytes, n + 1));
}

static bool repeats(struct memo *memo, struct sz_slice value)
{
    if (value.n == 0 || value.n > MEMO)
        return false;
    if (sz_eq(sz_slice(memo->text, memo->n), value))
        return true;
    memo->n = (uint8_t)value.n;
    memcpy(memo->text, value.p, value.n);
    return false;
}

static void add_value(struct sz_audit_index *index, enum sz_audit_field field, struct sz_slice value)
{
    if (repeats(&index->memo[field], value))
        return;
    struct sz_hash128 h = hash(field, value);
    _Atomic uint64_t *block = index->words + h.w[0] % index->blocks * WORDS;
    for (unsigned i = 0; i < BITS; i++) {
        unsigned bit = (unsigned)(h.w[1] >> (9 * i)) & 511;
        uint64_t word = atomic_load_explicit(&block[bit / 64], memory_order_relaxed);
        atomic_store_explicit(&block[bit / 64], word | (uint64_t)1 << bit % 64, memory_order_relaxed);
    }
}

bool sz_audit_index_may_have(const struct sz_audit_index *index, enum sz_audit_field field, struct sz_slice value)
{
    struct sz_hash128 h = hash(field, value);
    const _Atomic uint64_t *block = index->words + h.w[0] % index->blocks * WORDS;
    for (unsigned i = 0; i < BITS; i++) {
        unsigned bit = (unsigned)(h.w[1] >> (9 * i)) & 511;
        if ((atomic_load_explicit(&block[bit / 64], memory_order_relaxed) >> bit % 64 & 1) == 0)
            return false;
    }
    return true;
}

static void add_time(struct sz_audit_index *index, int64_t us)
{
    if (us < atomic_load_explicit(&index->oldest, memory_order_relaxed))
        atomic_store_explicit(&index->oldest, us, memory_order_relaxed);
    if (us > atomic_load_explicit(&index->newest, memory_order_relaxed))
        atomic_store_explicit(&index->newest, us, memory_order_relaxed);
}

void sz_audit_index_add(struct sz_audit_index *index, struct sz_slice line)
{
    struct sz_slice value;
    uint64_t seq;
    int64_t us;
    for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (sz_audit_line_text(line, sz_audit_field_name(f), &value))
            add_value(index, f, value);
    }
    if (sz_audit_line_head(line, &seq, &value) && sz_audit_time_parse(value, &us))
        add_time(index, us);
}

void sz_audit_index_add_known(struct sz_audit_index *index, const char *line, const struct sz_audit_places *places,
                              int64_t us)
{
    for (enum sz_audit_field f = 0; f < SZ_AUDIT_FIELDS; f++) {
        if (places->at[f] != 0)
            add_value(index, f, sz_slice(line + places->at[f], places->n[f]));
    }
    add_time(index, us);
}

bool sz_audit_index_times(const struct sz_audit_index *index, int64_t *oldest, int64_t *newest)
{
    *oldest = atomic_load_explicit(&index->oldest, memory_order_relaxed);
    *newest = atomic_load_explicit(&index->newest, memory_order_relaxed);
    return *oldest <= *newest;
}

/* ---- the side file ------------------------------------------------------------------------------------- */

static size_t words_size(uint64_t blocks)
{
    return (size_t)blocks * WORDS * sizeof(uint64_t);
}

static char *image(const struct sz_audit_index *index, struct file_head *head, size_t *n)
{
    *n = sizeof(*head) + words_size(index->blocks);
    char *bytes = sz_xmalloc(*n);
    memset(head->digest, 0, sizeof(head->digest));
    memcpy(bytes, head, sizeof(*head));
    for (size_t i = 0; i < (size_t)index->blocks * WORDS; i++) {
        uint64_t word = atomic_load_explicit(&index->words[i], memory_order_relaxed);
        memcpy(bytes + sizeof(*head) + i * sizeof(word), &word, sizeof(word));
    }
    sz_sha256(sz_slice(bytes, *n), head->digest);
    memcpy(bytes, head, sizeof(*head));
    return bytes;
}

static void names_of(const char *segment, char name[64], char temporary[64])
{
    snprintf(name, 64, "%s.idx", segment);
    snprintf(temporary, 64, "%s.idx.tmp", segment);
}

static int write_whole(const struct sz_audit_io *io, int dir, const char *name, const char *bytes, size_t n)
{
    int fd = io->open(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t written = io->write(fd, bytes, n, 0);
    int rc = written == (ssize_t)n ? 0 : written < 0 ? -errno : -ENOSPC;
    close(fd);
    return rc;
}

int sz_audit_index_save(const struct sz_audit_index *index, const struct sz_audit_io *io, int dir, const char *segment,
                        uint64_t size, const struct sz_audit_hash *last)
{
    struct file_head head = {.blocks = index->blocks, .size = size};
    char name[64], temporary[64];
    size_t n;
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.last, last->b, sizeof(head.last));
    sz_audit_index_times(index, &head.oldest, &head.newest);
    char *bytes = image(index, &head, &n);
    names_of(segment, name, temporary);
    int rc = write_whole(io, dir, temporary, bytes, n);
    if (rc == 0 && io->rename(dir, temporary, name) != 0)
        rc = -errno;
    if (rc != 0)
        (void)io->unlink(dir, temporary);
    free(bytes);
    return rc;
}

static bool fits(struct file_head *head, const char *bytes, size_t n, uint64_t size, const struct sz_audit_hash *last)
{
    uint8_t told[32], made[32];
    if (n < sizeof(*head))
        return false;
    memcpy(head, bytes, sizeof(*head));
    if (!sz_eq(sz_slice(head->magic, sizeof(magic)), sz_slice(magic, sizeof(magic))) || head->size != size ||
        head->blocks == 0 || head->blocks > BLOCKS_MAX || n != sizeof(*head) + words_size(head->blocks) ||
        !sz_eq(sz_slice(head->last, 32), sz_slice(last->b, 32)))
        return false;
    char *copy = sz_xmalloc(n);
    memcpy(copy, bytes, n);
    memcpy(told, head->digest, sizeof(told));
    memset(copy + offsetof(struct file_head, digest), 0, sizeof(told));
    sz_sha256(sz_slice(copy, n), made);
    free(copy);
    return sz_eq(sz_slice(told, 32), sz_slice(made, 32));
}

struct sz_audit_index *sz_audit_index_load(int dir, const char *segment, uint64_t size,
                                           const struct sz_audit_hash *last)
{
    const size_t most = sizeof(struct file_head) + words_size(BLOCKS_MAX);
    struct sz_audit_index *index = NULL;
    struct file_head head;
    char name[64], temporary[64];
    names_of(segment, name, temporary);
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size <= most) {
        size_t n = (size_t)st.st_size;
        char *bytes = sz_xmalloc(n);
        if (pread(fd, bytes, n, 0) == (ssize_t)n && fits(&head, bytes, n, size, last)) {
            index = make((uint32_t)head.blocks);
            atomic_init(&index->oldest, head.oldest);
            atomic_init(&index->newest, head.newest);
            memcpy((void *)index->words, bytes + sizeof(head), words_size(head.blocks));
        }
        free(bytes);
    }
    close(fd);
    return index;
}
