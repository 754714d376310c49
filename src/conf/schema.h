/*
 * The schema: every key once, with its type, default, range, unit, help and whether a reload can
 * change it.  Reading, the dump, the reference page, the JSON Schema and the generated tests
 * walk these tables; nothing about a key is said anywhere else but its meaning across keys (build_*.c).
 */
#ifndef SZ_CONF_SCHEMA_H
#define SZ_CONF_SCHEMA_H

#include "conf/loader.h"
#include "subzero/base.h"

enum sz_field_type {
    SZ_F_BOOL,         /* bool */
    SZ_F_COUNT,        /* u32 or u64: digits */
    SZ_F_SIZE,         /* u32 or u64 bytes: 4MB */
    SZ_F_SPAN,         /* struct sz_span: 10s */
    SZ_F_ENUM,         /* int: one of `choices` */
    SZ_F_TEXT,         /* struct sz_slice */
    SZ_F_FILE,         /* struct sz_slice: absolute path of a readable regular file */
    SZ_F_TEXT_OR_FILE, /* struct sz_slice pair (path, text): a block of several lines is the text itself */
    SZ_F_SECRET,       /* struct sz_raw_secret: file whose content is the value */
    SZ_F_TEXTS,        /* struct sz_strings */
    SZ_F_TEXT_MAP,     /* struct sz_raw_list of sz_raw_entry, one value each */
    SZ_F_TEXTS_MAP,    /* ... one or several values each */
    SZ_F_OBJECT,       /* a struct in place */
    SZ_F_LIST,         /* struct sz_raw_list of structs */
    SZ_F_MAP,          /* struct sz_raw_list of structs with a name */
    SZ_F_LATER,        /* a key that this version does not have: refused, not ignored */
};

enum {
    SZ_FIELD_REQUIRED = 1 << 0,
    SZ_FIELD_RESTART = 1 << 1,  /* a reload cannot change it */
    SZ_FIELD_OPTIONAL = 1 << 2, /* OBJECT: absent stays absent, no defaults */
    SZ_FIELD_BLANK = 1 << 3,    /* OBJECT: may be empty ({}) */
    SZ_FIELD_MANY = 1 << 4,     /* TEXTS: large lists are fine (no duplicate check) */
    SZ_FIELD_LOGIN = 1 << 5,    /* TEXT: a url that may hold a user and a password: dumps keep them back */
    SZ_FIELD_ONE = 1 << 6,      /* TEXTS: one value may stand without brackets */
};

struct sz_choice {
    const char *name;
    int value;
    bool later; /* refused: not in this version */
};

struct sz_object;
struct sz_field {
    const char *name;
    enum sz_field_type type;
    uint16_t offset, size;
    unsigned flags;
    const char *def;                 /* as it would be written; NULL: none */
    uint64_t min, max;               /* COUNT, SIZE (bytes), SPAN (us): value; TEXT: bytes; lists and maps: entries */
    const struct sz_choice *choices; /* ends with name == NULL */
    const struct sz_object *object;  /* OBJECT, LIST, MAP */
    const char *help;
};

struct sz_object {
    const char *what; /* "a route", "limits": as messages say it */
    size_t size;
    const struct sz_field *fields; /* ends with name == NULL */
};

/* Every raw struct begins with it. */
struct sz_raw_head {
    const struct sz_node *node; /* NULL: absent, defaults alone */
    struct sz_slice name;       /* MAP: its key */
};
struct sz_raw_list {
    void *v;
    size_t n;
};
struct sz_raw_entry {
    struct sz_raw_head head;
    struct sz_strings values;
    bool expanded; /* a ${...} is in it: may be a secret, so the dump keeps it back */
    bool plain;    /* one value, written without quotes and a JSON number or boolean as it stands */
};
struct sz_raw_secret {
    struct sz_slice path;
    struct sz_secret secret;
};

extern const struct sz_object sz_schema; /* the whole file */

/*
 * Fills `out` (object->size bytes, cleared here) from `node`; NULL: defaults, and `parent` is where a missing key is
 * reported.
 */
void sz_read_object(struct sz_loader *l, const struct sz_object *object, const struct sz_node *node,
                    const struct sz_node *parent, void *out);

static inline const void *sz_field_at(const struct sz_field *field, const void *object)
{
    return (const char *)object + field->offset;
}
/* The number of a BOOL, COUNT, SIZE, SPAN or ENUM field, whatever its width. */
uint64_t sz_field_number(const struct sz_field *field, const void *object);
/* A COUNT, SIZE or SPAN as it would be written. */
void sz_field_print(const struct sz_field *field, uint64_t value, struct sz_buf *out);

#endif
