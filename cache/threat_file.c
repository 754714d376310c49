#include "cache/threat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER    "{\"subzero\":\"threat records\",\"version\":1}\n"
#define FILE_MOST ((size_t)64 << 20)
#define SUM       64 /* hex digits */

/* ---- text -------------------------------------------------------------------------------------------------------- */

void sz_threat_file_add(struct sz_buf *out, const struct sz_threat_record *r)
{
    char addr[SZ_ADDR_TEXT];
    sz_buf_printf(out, "{\"id\":\"%016llx\",\"kind\":\"%s\",", (unsigned long long)r->id,
                  r->is_event        ? "event"
                  : r->until.us == 0 ? "lift"
                                     : "block");
    if (r->is_event)
        sz_buf_printf(out, "\"type\":\"%s\",", sz_signal_row(r->signal)->name);
    if (r->is_subject) {
        sz_buf_printf(out, "\"issuer\":");
        sz_buf_json(out, sz_cstr(r->issuer));
        sz_buf_printf(out, ",\"subject\":");
        sz_buf_json(out, sz_cstr(r->subject));
    } else {
        sz_buf_printf(out, "\"address\":\"%.*s\"", (int)sz_addr_format(r->addr, addr), addr);
    }
    sz_buf_printf(out, ",\"made\":%lld,\"until\":%lld,", (long long)r->made.us, (long long)r->until.us);
    if (!r->is_event && r->keep.us != r->until.us)
        sz_buf_printf(out, "\"keep\":%lld,", (long long)r->keep.us);
    sz_buf_printf(out, "\"reason\":");
    sz_buf_json(out, sz_cstr(r->reason));
    sz_buf_printf(out, "}\n");
}

static void checksum(struct sz_slice text, char out[SUM + 1])
{
    uint8_t sum[32];
    sz_sha256(text, sum);
    sz_hex_encode(sum, sizeof(sum), out);
    out[SUM] = '\0';
}

void sz_threat_file_begin(struct sz_buf *out)
{
    sz_buf_adds(out, SZ_S(HEADER));
}

void sz_threat_file_end(struct sz_buf *out)
{
    char sum[SUM + 1];
    checksum(sz_buf_slice(out), sum);
    sz_buf_printf(out, "{\"sha256\":\"%s\"}\n", sum);
}

static bool text_of(const json_t *object, const char *key, char out[SZ_THREAT_TEXT])
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_string(value) || json_string_length(value) >= SZ_THREAT_TEXT)
        return false;
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return strlen(out) == json_string_length(value);
}

static bool read_whom(const json_t *object, struct sz_threat_record *r)
{
    char text[SZ_THREAT_TEXT];
    if (text_of(object, "address", text))
        return sz_addr_parse(sz_cstr(text), &r->addr) == 0;
    r->is_subject = true;
    return text_of(object, "issuer", r->issuer) && text_of(object, "subject", r->subject);
}

static bool read_record(const json_t *object, struct sz_threat_record *r)
{
    char id[SZ_THREAT_TEXT], kind[SZ_THREAT_TEXT], type[SZ_THREAT_TEXT] = "";
    char *end;
    *r = (struct sz_threat_record){.signal = SZ_SIGNALS};
    if (!text_of(object, "id", id) || !text_of(object, "kind", kind) || !text_of(object, "reason", r->reason) ||
        !read_whom(object, r))
        return false;
    r->id = strtoull(id, &end, 16);
    r->made.us = json_integer_value(json_object_get(object, "made"));
    r->until.us = json_integer_value(json_object_get(object, "until"));
    r->keep.us = json_integer_value(json_object_get(object, "keep"));
    if (r->keep.us < r->until.us)
        r->keep = r->until;
    r->is_event = strcmp(kind, "event") == 0;
    if (r->is_event && text_of(object, "type", type))
        r->signal = sz_signal_from(sz_cstr(type));
    if (r->id == 0 || *end != '\0' || r->made.us <= 0 || r->keep.us <= 0)
        return false;
    if (r->is_event)
        return r->until.us > 0 && r->signal < SZ_SIGNALS_COUNTED;
    return strcmp(kind, r->until.us > 0 ? "block" : "lift") == 0;
}

static bool sum_is_right(struct sz_slice text)
{
    char sum[SUM + 1];
    struct sz_buf wanted = {0};
    size_t tail = sizeof("{\"sha256\":\"\"}\n") - 1 + SUM;
    if (text.n < tail + sizeof(HEADER) - 1)
        return false;
    checksum(sz_sub(text, 0, text.n - tail), sum);
    sz_buf_printf(&wanted, "{\"sha256\":\"%s\"}\n", sum);
    bool right = sz_eq(sz_from(text, text.n - tail), sz_buf_slice(&wanted));
    sz_buf_fini(&wanted);
    return right;
}

int sz_threat_file_read(struct sz_slice text, void (*see)(void *arg, const struct sz_threat_record *r), void *arg,
                        struct sz_text *why)
{
    struct sz_slice rest = text, line;
    if (!sz_starts_with(text, SZ_S("{\"subzero\":\"threat records\",\"version\":1}\n"))) {
        sz_text_set(why, "line 1: not a file of ours, or of a newer version");
        return -EINVAL;
    }
    if (!sum_is_right(text)) {
        sz_text_set(why, "its checksum is wrong: the file is damaged; restore it, or remove it and block anew");
        return -EINVAL;
    }
    for (unsigned n = 1; sz_split(&rest, '\n', &line); n++) {
        struct sz_threat_record record;
        if (n == 1 || line.n == 0 || sz_starts_with(line, SZ_S("{\"sha256\"")))
            continue;
        json_t *object = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);
        bool good = json_is_object(object) && read_record(object, &record);
        json_decref(object);
        if (!good) {
            sz_text_set(why, "line %u: not a record", n);
            return -EINVAL;
        }
        see(arg, &record);
    }
    return 0;
}

/* ---- disk -------------------------------------------------------------------------------------------------------- */

static int write_all(int fd, struct sz_slice text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text = sz_from(text, (size_t)n);
    }
    return fsync(fd) == 0 ? 0 : -errno;
}

/* The name is durable when its directory is. */
static int sync_dir(const char *path)
{
    char dir[4096];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash != NULL ? (int)(slash - path) : 1, slash != NULL ? path : ".");
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) != 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return rc;
}

int sz_threat_file_replace(const char *path, struct sz_slice text)
{
    char fresh[4096];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int rc = write_all(fd, text);
    if (close(fd) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(fresh, path) != 0)
        rc = -errno;
    if (rc != 0)
        (void)unlink(fresh);
    return rc != 0 ? rc : sync_dir(path);
}

int sz_threat_file_load(const char *path, struct sz_buf *text)
{
    char chunk[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    text->limit = FILE_MOST;
    while ((n = read(fd, chunk, sizeof(chunk))) > 0)
        sz_buf_add(text, chunk, (size_t)n);
    int rc = n < 0 ? -errno : text->overflow ? -EFBIG : 0;
    close(fd);
    return rc;
}
