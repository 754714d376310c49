/*
 * libcurl, loaded when somebody is to be asked, not when the program starts.  With the 32 libraries that it brings
 * along it costs 4.5 MB of resident memory, more than half of a gateway that verifies by local keys and asks nobody.
 *
 * Called through this table alone, so that the linker needs no libcurl.  The types are those of its header; the
 * header's macros that check options only work on direct calls, so options are set by the functions below.
 */
#ifndef SZ_FGA_HTTP_LIB_H
#define SZ_FGA_HTTP_LIB_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "subzero/base.h"

/* clang-format off */
#define SZ_CURL_FUNCTIONS(X) \
    X(global_init_mem) \
    X(version_info) \
    X(easy_init) \
    X(easy_cleanup) \
    X(easy_reset) \
    X(easy_setopt) \
    X(easy_getinfo) \
    X(easy_strerror) \
    X(slist_append) \
    X(slist_free_all) \
    X(multi_init) \
    X(multi_cleanup) \
    X(multi_setopt) \
    X(multi_add_handle) \
    X(multi_remove_handle) \
    X(multi_info_read) \
    X(multi_socket_action)
/* clang-format on */

struct sz_curl {
#define SZ_CURL_MEMBER(name) __typeof__(&curl_##name) name;
    SZ_CURL_FUNCTIONS(SZ_CURL_MEMBER)
#undef SZ_CURL_MEMBER
};
extern struct sz_curl sz_curl; /* filled by sz_http_prepare, then never changed */

bool sz_curl_loaded(void);

/* An option that libcurl does not take is a mistake of ours: it fails with every call, in the first test. */
static inline void sz_curl_set_long(CURL *easy, CURLoption option, long value)
{
    SZ_ASSERT(option < CURLOPTTYPE_OBJECTPOINT && sz_curl.easy_setopt(easy, option, value) == CURLE_OK);
}
static inline void sz_curl_set_size(CURL *easy, CURLoption option, size_t value)
{
    SZ_ASSERT(option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB &&
              sz_curl.easy_setopt(easy, option, (curl_off_t)value) == CURLE_OK);
}
static inline void sz_curl_set_pointer(CURL *easy, CURLoption option, const void *value)
{
    SZ_ASSERT(option >= CURLOPTTYPE_OBJECTPOINT && option < CURLOPTTYPE_FUNCTIONPOINT &&
              sz_curl.easy_setopt(easy, option, value) == CURLE_OK);
}
#define sz_curl_set_callback(easy, option, function)                                   \
    SZ_ASSERT((option) >= CURLOPTTYPE_FUNCTIONPOINT && (option) < CURLOPTTYPE_OFF_T && \
              sz_curl.easy_setopt((easy), (option), (function)) == CURLE_OK)

#endif
