/*
 * The format: text lines, an empty line, the document.
 *
 *   subzero keys 1
 *   issuer "https://idp.example/"
 *   source "https://idp.example/jwks"
 *   fetched 1767225600
 *   lifetime 600
 *   bytes 1234
 *   sha256 <hex>       of all else
 *
 *   {"keys":[...]}
 *
 * Another first line with a higher number is a newer version's file: neither read nor replaced.
 */
#include "fga/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fga/jwks.h"
#include "subzero/crypto.h"
#include "subzero/state_dir.h"

enum { VERSION = 1, NAME = 48, BYTES_MAX = SZ_JWKS_BYTES_MAX + 16 * 1024, LIFETIME_MAX = 366 * 86400 };
#define MAGIC "subzero keys "

static ssize_t system_write(int fd, const void *bytes, size_t n)
{
    return write(fd, bytes, n);
}

static int system_rename(int dir, const char *from, const char *to)
{
    return renameat(dir, from, dir, to);
}

const struct sz_key_file_calls sz_key_file_system = {system_write, fsync, system_rename};

static int failed(struct sz_text *why, int error, const char *what)
{
    sz_text_set(why, "%s: %s", what, strerror(error));
    return -error;
}

int sz_key_dir_open(const char *path, struct sz_text *why)
{
    return sz_state_dir_open(path, why);
}

static void file_name(const struct sz_key_record *record, char out[NAME])
{
    struct sz_buf b = {0};
    uint8_t digest[32];
    char hex[32];
    sz_key_field(&b, 1, record->issuer);
    sz_key_field(&b, 2, record->source);
    sz_sha256(sz_buf_slice(&b), digest);
    sz_buf_fini(&b);
    sz_hex_encode(digest, 16, hex);
    snprintf(out, NAME, "keys-%.32s", hex);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* At most `max` bytes.  -EFBIG: longer. */
static int read_whole(int dir, const char *name, size_t max, struct sz_buf *out)
{
    char chunk[8192];
    struct stat st;
    ssize_t n = 0;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) != 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    while (rc == 0 && (n = read(fd, chunk, sizeof(chunk))) > 0) {
        sz_buf_add(out, chunk, (size_t)n);
        if (out->n > max)
            rc = -EFBIG;
    }
    if (n < 0)
        rc = -errno;
    close(fd);
    return rc;
}

static void write_head(struct sz_buf *b, const struct sz_key_record *record)
{
    sz_buf_printf(b, MAGIC "%d\nissuer ", VERSION);
    sz_buf_json(b, record->issuer);
    sz_buf_printf(b, "\nsource ");
    sz_buf_json(b, record->source);
    sz_buf_printf(b, "\n");
}

/* "name 123\n" at the front of *rest. */
static bool take_number(struct sz_slice *rest, const char *name, uint64_t max, uint64_t *out)
{
    struct sz_slice line;
    size_t n = strlen(name);
    if (!sz_split(rest, '\n', &line) || !sz_starts_with(line, sz_slice(name, n)) || line.n <= n || line.p[n] != ' ')
        return false;
    return sz_parse_u64(sz_from(line, n + 1), max, out) == 0;
}

/* Of everything but itself; `head` ends before it. */
static void digest_of(struct sz_slice head, struct sz_slice document, char out[64])
{
    struct sz_buf all = {0};
    uint8_t digest[32];
    sz_buf_adds(&all, head);
    sz_buf_adds(&all, document);
    sz_sha256(sz_buf_slice(&all), digest);
    sz_hex_encode(digest, sizeof(digest), out);
    sz_buf_fini(&all);
}

/* rest: text from behind the first lines on. */
static bool read_rest(struct sz_slice text, struct sz_slice rest, struct sz_key_record *record)
{
    uint64_t fetched, lifetime, bytes;
    struct sz_slice sum, empty;
    char digest[64];
    if (!take_number(&rest, "fetched", INT64_MAX / 1000000, &fetched) ||
        !take_number(&rest, "lifetime", LIFETIME_MAX, &lifetime) ||
        !take_number(&rest, "bytes", SZ_JWKS_BYTES_MAX, &bytes))
        return false;
    struct sz_slice head = sz_sub(text, 0, text.n - rest.n);
    if (!sz_split(&rest, '\n', &sum) || !sz_split(&rest, '\n', &empty) || empty.n != 0 || rest.n != bytes)
        return false;
    digest_of(head, rest, digest);
    record->fetched = (int64_t)fetched;
    record->lifetime = (int64_t)lifetime;
    record->document = rest;
    return sz_starts_with(sum, SZ_S("sha256 ")) && sz_eq(sz_from(sum, 7), sz_slice(digest, sizeof(digest)));
}

/* The version of a file of ours; 0: it is none. */
static uint64_t version_of(struct sz_slice text)
{
    uint64_t version;
    struct sz_slice line;
    if (!sz_split(&text, '\n', &line) || !sz_starts_with(line, SZ_S(MAGIC)) ||
        sz_parse_u64(sz_from(line, sizeof(MAGIC) - 1), UINT32_MAX, &version) != 0)
        return 0;
    return version;
}

int sz_key_file_load(int dir, struct sz_key_record *record, struct sz_buf *room, struct sz_text *why)
{
    char name[NAME];
    file_name(record, name);
    int rc = read_whole(dir, name, BYTES_MAX, room);
    if (rc == -EINVAL)
        sz_text_set(why, "%s is not a regular file", name);
    else if (rc != 0)
        failed(why, -rc, name);
    if (rc != 0)
        return rc;
    struct sz_slice text = sz_buf_slice(room);
    if (version_of(text) > VERSION) {
        sz_text_set(why, "%s was written by a newer version; it is left alone", name);
        return -EPROTONOSUPPORT;
    }
    struct sz_buf head = {0};
    write_head(&head, record);
    bool ours = sz_starts_with(text, sz_buf_slice(&head));
    struct sz_slice rest = sz_from(text, ours ? head.n : text.n);
    sz_buf_fini(&head);
    if (ours && read_rest(text, rest, record))
        return 0;
    sz_text_set(why, ours ? "%s is damaged" : "%s does not hold this issuer's keys", name);
    return ours ? -EBADMSG : -EINVAL;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* A file that a newer version wrote has to stay: its owner may come back. */
static int may_replace(int dir, const char *name, struct sz_text *why)
{
    char start[64];
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, start, sizeof(start));
    close(fd);
    if (n <= 0 || version_of(sz_slice(start, (size_t)n)) <= VERSION)
        return 0;
    sz_text_set(why, "%s was written by a newer version; it is left alone", name);
    return -EPROTONOSUPPORT;
}

static int write_all(int fd, struct sz_slice bytes, const struct sz_key_file_calls *calls)
{
    while (bytes.n > 0) {
        ssize_t n = calls->write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes = sz_from(bytes, (size_t)n);
    }
    return 0;
}

static int write_new(int dir, const char *name, struct sz_slice bytes, const struct sz_key_file_calls *calls,
                     struct sz_text *why)
{
    (void)unlinkat(dir, name, 0); /* left over from a process that died */
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(why, errno, "cannot create a file");
    int rc = write_all(fd, bytes, calls);
    if (rc != 0)
        failed(why, -rc, "cannot write");
    else if (calls->fsync(fd) != 0)
        rc = failed(why, errno, "cannot sync the file");
    if (close(fd) != 0 && rc == 0)
        rc = failed(why, errno, "cannot close the file");
    return rc;
}

int sz_key_file_save(int dir, const struct sz_key_record *record, const struct sz_key_file_calls *calls,
                     struct sz_text *why)
{
    char name[NAME], fresh[NAME + 8], digest[64];
    struct sz_buf text = {0};
    file_name(record, name);
    snprintf(fresh, sizeof(fresh), "%s.new", name);
    int rc = may_replace(dir, name, why);
    if (rc != 0)
        return rc;
    write_head(&text, record);
    sz_buf_printf(&text, "fetched %" PRId64 "\nlifetime %" PRId64 "\nbytes %zu\n", record->fetched, record->lifetime,
                  record->document.n);
    digest_of(sz_buf_slice(&text), record->document, digest);
    sz_buf_printf(&text, "sha256 %.64s\n\n", digest);
    sz_buf_adds(&text, record->document);
    rc = write_new(dir, fresh, sz_buf_slice(&text), calls, why);
    sz_buf_fini(&text);
    if (rc == 0 && calls->rename(dir, fresh, name) != 0)
        rc = failed(why, errno, "cannot rename");
    if (rc != 0) {
        (void)unlinkat(dir, fresh, 0);
        return rc;
    }
    return calls->fsync(dir) != 0 ? failed(why, errno, "cannot sync the directory") : 0;
}
