/*
 * What the executable defines in libh2o's place.  libh2o 2.2.5 calls its exported functions through the symbol table,
 * so a definition in the executable wins; this is how the gateway closes holes that no option closes:
 *
 *   phr_decode_chunked                  lenient chunked decoding            (edge/chunked.c)
 *   h2o_http2_handle_upgrade            "Upgrade: h2c" switches protocols behind the head check
 *   h2o_url_normalize_path              a second reading of the path; prints it to stderr when it fails
 *   gettimeofday,
 *   h2o_context_update_timestamp_cache  timers on the wall clock: a step closes every connection
 *   h2o_socket_read_start               request bodies are buffered without a bound for the whole process
 *   phr_parse_request                   heads that it gives up on are answered behind our back (edge/head_parse.c)
 *   h2o_send_error_generic              error texts of its own, in text/plain           (edge/refuse.c)
 *   h2o_http2_decode_frame,
 *   h2o_hpack_parse_headers             trusts HTTP/2 clients                (edge/h2_guard.c)
 *
 * A linker that drops or hides one of them would bring the hole back without a word, hence the self-test at the start.
 */
#ifndef SZ_EDGE_OVERRIDES_H
#define SZ_EDGE_OVERRIDES_H

#include "subzero/base.h"

/* How often each was called on this thread: the self-test looks whether it was at all. */
struct sz_overrides_seen {
    unsigned chunked, upgrade, normalize, clock, date, read_start, parse, error, frame, header;
};
extern __thread struct sz_overrides_seen sz_overrides_seen;

/* h2o's clock, in microseconds: the time of its timestamps.  Steady. */
int64_t sz_h2o_now_us(void);

/*
 * Drives one request through libh2o over a socket pair and looks whether each override was reached and the TLS
 * structure has the layout that edge/tls_peer.c relies on.  Start only, before the threads.  -ENOTSUP: *why says which.
 */
int sz_overrides_self_test(struct sz_text *why) SZ_MUST_CHECK;

#endif
