/* An event on its way from a loop to the writer, as bytes in the queue; and the line that it becomes. */
#ifndef SZ_OBS_AUDIT_EVENT_H
#define SZ_OBS_AUDIT_EVENT_H

#include "obs/audit/index.h"
#include "subzero/audit.h"

enum { SZ_AUDIT_EVENT_MAX = 4096 };

/* Writes at most SZ_AUDIT_EVENT_MAX bytes; port: whose wait ends with this record, 0 = nobody's. */
size_t sz_audit_event_pack(const struct sz_audit_event *event, uint32_t port, char out[SZ_AUDIT_EVENT_MAX]);
/* Texts point into `bytes`. */
void sz_audit_event_unpack(struct sz_slice bytes, struct sz_audit_event *event, uint32_t *port);

const char *sz_audit_kind_name(enum sz_audit_kind kind);
struct sz_slice sz_audit_text_name(enum sz_audit_text text);
size_t sz_audit_text_max(enum sz_audit_text text);

/* What lines have in common with the ones before them, as text.  Zero at first. */
struct sz_audit_memo {
    int64_t second;
    struct sz_addr address;
    uint8_t address_n;
    char time[20], address_text[SZ_ADDR_TEXT];
};
struct sz_audit_stamp {
    uint64_t seq;
    uint64_t boot;                      /* random, of this process: event ids */
    const struct sz_secret *pseudonyms; /* key; NULL: names as they are */
    struct sz_slice extra;              /* members of the journal's own records: `,"lost":3` */
    struct sz_audit_memo *memo;         /* of whoever formats many lines */
};
/* Appends an open line: no tail, no closing brace, no newline.  places: where its values are, from its beginning. */
void sz_audit_format(struct sz_buf *out, const struct sz_audit_event *event, const struct sz_audit_stamp *stamp,
                     struct sz_audit_places *places);

struct sz_secret;
/* The pseudonym of a name: "p-" and 32 hex digits.  kind: 's' subject, 'a' address, 'c' client. */
enum { SZ_AUDIT_PSEUDONYM = 34 };
void sz_audit_pseudonym(const struct sz_secret *key, char kind, struct sz_slice name, char out[SZ_AUDIT_PSEUDONYM]);

#endif
