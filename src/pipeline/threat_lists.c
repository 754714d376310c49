/* The address lists of a configuration, read into sets.  At the start or by a reload's own thread: blocking. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "pipeline/threat_lists.h"
#include "subzero/prefixes.h"

#define FILE_MAX ((size_t)64 << 20)

/* The whole file; false: *why. */
static bool read_file(const char *path, struct sz_buf *out, struct sz_text *why)
{
    char chunk[65536];
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    out->limit = FILE_MAX;
    while (fd >= 0 && (n = read(fd, chunk, sizeof(chunk))) > 0 && !out->overflow)
        sz_buf_add(out, chunk, (size_t)n);
    if (n < 0)
        sz_text_set(why, "cannot read it: %s", strerror(errno));
    else if (out->overflow)
        sz_text_set(why, "it is larger than 64 MiB");
    if (fd >= 0)
        close(fd);
    return n >= 0 && !out->overflow;
}

static bool add_file(struct sz_prefixes_builder *into, const struct sz_conf_threat_list *list, struct sz_text *why)
{
    struct sz_buf text = {0};
    bool good = read_file(list->file.p, &text, why) &&
                sz_prefixes_read(into, sz_buf_slice(&text), (uint8_t)list->what, why) == 0;
    sz_buf_fini(&text);
    return good;
}

static bool add_allowed(struct sz_prefixes_builder *into, const struct sz_conf_threat *conf)
{
    struct sz_text why;
    for (size_t i = 0; i < conf->allow.n; i++) {
        struct sz_cidr range;
        if (sz_cidr_parse(conf->allow.v[i], &range, &why) != 0 || sz_prefixes_add(into, &range, SZ_LIST_ALLOW) != 0)
            return false; /* checked when the configuration was built */
    }
    return true;
}

static struct sz_prefixes *finish(struct sz_prefixes_builder **builder)
{
    struct sz_prefixes *set = sz_prefixes_new(builder);
    if (sz_prefixes_count(set) == 0)
        sz_prefixes_free(&set);
    return set;
}

int sz_threat_lists_load(const struct sz_conf *conf, struct sz_prefixes **allowed, struct sz_prefixes **listed,
                         struct sz_mistakes *m)
{
    struct sz_prefixes_builder *allow = sz_prefixes_builder_new(), *list = sz_prefixes_builder_new();
    int rc = add_allowed(allow, &conf->threat) ? 0 : -EINVAL;
    for (size_t i = 0; i < conf->threat.lists_n; i++) {
        const struct sz_conf_threat_list *one = &conf->threat.lists[i];
        struct sz_text why = {""};
        char path[64];
        if (add_file(one->what == SZ_LIST_ALLOW ? allow : list, one, &why))
            continue;
        snprintf(path, sizeof(path), "threat.lists.%zu.file", i);
        sz_conf_mistake(conf, path, m, "%.*s: %s", SZ_FMT(one->file), why.s);
        rc = -EINVAL;
    }
    *allowed = finish(&allow);
    *listed = finish(&list);
    return rc;
}
