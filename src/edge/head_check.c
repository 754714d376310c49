/*
 * Line by line over the raw bytes: the request line, then the fields, each held to RFC 9112 without its leniencies.
 * Whatever another parser on the way could read differently ends in 400 and a closed connection, because after a
 * framing error nobody can say where the next request begins.
 */
#include "edge/head_check.h"

#include "subzero/crypto.h"
#include "subzero/scan.h"

static const char bad_line_end[] = "a line does not end in CRLF";

/* reg-name of RFC 3986, without the comma, by which proxies join two Hosts. */
static bool is_reg_name(struct sz_slice s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '%') {
            if (i + 2 >= s.n || sz_hex_digit(s.p[i + 1]) < 0 || sz_hex_digit(s.p[i + 2]) < 0)
                return false;
            i += 2;
            continue;
        }
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == 0 || strchr("-._~!$&'()*+;=", c) == NULL))
            return false;
    }
    return s.n > 0;
}

bool sz_head_authority(struct sz_slice s)
{
    struct sz_slice rest;
    if (s.n == 0)
        return false;
    if (s.p[0] == '[') {
        ptrdiff_t close = sz_find_byte(s, ']');
        struct sz_addr addr;
        if (close < 0 || sz_addr_parse(sz_sub(s, 1, (size_t)close - 1), &addr) != 0)
            return false;
        rest = sz_from(s, (size_t)close + 1);
    } else {
        ptrdiff_t colon = sz_find_byte(s, ':');
        struct sz_slice name = colon < 0 ? s : sz_sub(s, 0, (size_t)colon);
        if (!is_reg_name(name))
            return false;
        rest = sz_from(s, name.n);
    }
    if (rest.n == 0)
        return true;
    uint64_t port;
    return rest.p[0] == ':' && rest.n > 1 && rest.n <= 6 && sz_parse_u64(sz_from(rest, 1), 65535, &port) == 0;
}

struct sz_slice sz_head_host(struct sz_slice authority)
{
    bool literal = authority.n > 0 && authority.p[0] == '[';
    ptrdiff_t end = sz_find_byte(authority, literal ? ']' : ':');
    if (literal)
        return end > 0 ? sz_sub(authority, 1, (size_t)end - 1) : SZ_S("");
    return end < 0 ? authority : sz_sub(authority, 0, (size_t)end);
}

/* The next line without its CRLF; false when it does not end in CRLF.  A bare CR inside is no character of any part. */
static bool next_line(struct sz_slice *rest, struct sz_slice *line)
{
    ptrdiff_t lf = sz_find_byte(*rest, '\n');
    if (lf < 1 || rest->p[lf - 1] != '\r')
        return false;
    *line = sz_sub(*rest, 0, (size_t)lf - 1);
    *rest = sz_from(*rest, (size_t)lf + 1);
    return true;
}

/* absolute-form: scheme "://" authority [path] ["?" query].  The authority replaces Host (RFC 9112 3.2.2). */
static bool absolute_form(struct sz_head *head, struct sz_slice target)
{
    size_t scheme = sz_ieq(sz_sub(target, 0, 7), SZ_S("http://"))    ? 7
                    : sz_ieq(sz_sub(target, 0, 8), SZ_S("https://")) ? 8
                                                                     : 0;
    if (scheme == 0)
        return false;
    struct sz_slice rest = sz_from(target, scheme);
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?' && rest.p[end] != '#')
        end++;
    head->absolute = true;
    head->authority = sz_sub(rest, 0, end);
    head->target = sz_from(rest, end);
    if (head->target.n == 0)
        head->target = sz_eq(head->method, SZ_S("OPTIONS")) ? SZ_S("*") : SZ_S("/");
    return sz_head_authority(head->authority);
}

static const char *request_line(struct sz_head *head, struct sz_slice line)
{
    struct sz_slice rest = line, target, version, more;
    if (!sz_split(&rest, ' ', &head->method) || !sz_split(&rest, ' ', &target) || !sz_split(&rest, ' ', &version) ||
        sz_split(&rest, ' ', &more))
        return "the request line is not 'method target version'";
    if (!sz_scan_token(head->method) || head->method.n > 32)
        return "the method is not a token";
    if (!sz_scan_target(target))
        return "the target holds a blank or a control character";
    head->http_1_0 = sz_eq(version, SZ_S("HTTP/1.0"));
    if (!head->http_1_0 && !sz_eq(version, SZ_S("HTTP/1.1")))
        return "the version is neither HTTP/1.1 nor HTTP/1.0";
    head->target = target;
    if (target.p[0] == '/' || (sz_eq(target, SZ_S("*")) && sz_eq(head->method, SZ_S("OPTIONS"))))
        return NULL;
    return absolute_form(head, target) ? NULL : "the target is neither a path nor an http(s) URI";
}

static const char *content_length(struct sz_head *head, struct sz_slice value)
{
    if (head->has_length)
        return "Content-Length appears twice";
    head->has_length = true;
    if (value.n == 0 || value.n > 19 || sz_parse_u64(value, INT64_MAX, &head->content_length) != 0)
        return "Content-Length is not a number";
    return NULL;
}

static const char *transfer_encoding(struct sz_head *head, struct sz_slice value)
{
    if (head->chunked)
        return "Transfer-Encoding appears twice";
    head->chunked = true;
    return sz_ieq(value, SZ_S("chunked")) ? NULL : "Transfer-Encoding is not exactly 'chunked'";
}

static const char *host(struct sz_head *head, struct sz_slice value, bool *seen)
{
    if (*seen)
        return "Host appears twice";
    *seen = true;
    if (!sz_head_authority(value))
        return "Host is malformed";
    if (!head->absolute)
        head->authority = value;
    return NULL;
}

struct seen {
    bool host, authorization;
};

static const char *authorization(struct seen *seen)
{
    if (seen->authorization)
        return "Authorization appears twice";
    seen->authorization = true;
    return NULL;
}

/* Fields whose meaning the gateway depends on; most names are told apart by their length alone. */
static const char *known_field(struct sz_head *head, struct sz_slice name, struct sz_slice value, struct seen *seen)
{
    switch (name.n) {
    case 4:
        return sz_ieq(name, SZ_S("host")) ? host(head, value, &seen->host) : NULL;
    case 7:
        if (sz_ieq(name, SZ_S("upgrade")))
            head->upgrade = head->upgrade.p == NULL ? value : SZ_S(",");
        return NULL;
    case 13:
        return sz_ieq(name, SZ_S("authorization")) ? authorization(seen) : NULL;
    case 14:
        return sz_ieq(name, SZ_S("content-length")) ? content_length(head, value) : NULL;
    case 17:
        return sz_ieq(name, SZ_S("transfer-encoding")) ? transfer_encoding(head, value) : NULL;
    default:
        return NULL;
    }
}

static const char *field_line(struct sz_head *head, struct sz_slice line, struct seen *seen)
{
    if (line.p[0] == ' ' || line.p[0] == '\t')
        return "a header line is folded";
    ptrdiff_t colon = sz_find_byte(line, ':');
    if (colon < 0)
        return "a header line has no colon";
    struct sz_slice name = sz_sub(line, 0, (size_t)colon);
    struct sz_slice value = sz_trim(sz_from(line, (size_t)colon + 1));
    if (!sz_scan_token(name))
        return "a header name is not a token";
    if (!sz_scan_field_value(value))
        return "a header value holds a control character";
    head->fields[head->fields_n++] = (struct sz_header){.name = name, .value = value};
    return known_field(head, name, value, seen);
}

static const char *framing(const struct sz_head *head, const struct seen *seen)
{
    if (head->chunked && head->has_length)
        return "Content-Length beside Transfer-Encoding";
    if (head->chunked && head->http_1_0)
        return "Transfer-Encoding in HTTP/1.0";
    if (!seen->host && !head->http_1_0)
        return "Host is missing";
    return NULL;
}

int sz_head_check(struct sz_slice bytes, const struct sz_head_limits *limits, struct sz_head *head, const char **why)
{
    struct sz_slice rest = bytes, line;
    struct seen seen = {.host = false};
    size_t most = limits->fields < SZ_HEAD_HEADERS_MAX ? limits->fields : SZ_HEAD_HEADERS_MAX;

    memset(head, 0, offsetof(struct sz_head, fields));
    *why = bad_line_end;
    if (!next_line(&rest, &line))
        return SZ_HEAD_BAD;
    *why = request_line(head, line);
    while (*why == NULL) {
        if (!next_line(&rest, &line)) {
            *why = bad_line_end;
            break;
        }
        if (line.n == 0)
            break;
        if (head->fields_n == most) {
            *why = "too many header lines";
            return SZ_HEAD_TOO_LARGE;
        }
        *why = field_line(head, line, &seen);
    }
    if (*why == NULL)
        *why = framing(head, &seen);
    if (*why != NULL)
        return SZ_HEAD_BAD;
    head->length = bytes.n - rest.n;
    if (head->length <= limits->bytes)
        return 0;
    *why = "the request head is too long";
    return SZ_HEAD_TOO_LARGE;
}
