/* Writing a whole response to h2o. */
#include "edge/respond.h"

const char *sz_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < SZ_COUNT(rows); i++) {
        if (rows[i].status == status)
            return rows[i].text;
    }
    return "Unknown";
}

void sz_respond_headers(h2o_req_t *req, const struct sz_headers *headers)
{
    int as_token =
        req->version >= 0x200; /* HPACK has short forms of h2o's tokens; HTTP/1 gains nothing by the search */
    h2o_vector_reserve(&req->pool, &req->res.headers, req->res.headers.size + headers->n);
    for (size_t i = 0; i < headers->n; i++) {
        const struct sz_header *h = &headers->v[i];
        h2o_add_header_by_str(&req->pool, &req->res.headers, h->name.p, h->name.n, as_token, NULL, h->value.p,
                              h->value.n);
    }
}

void sz_respond(h2o_req_t *req, unsigned status, const struct sz_headers *headers, struct sz_slice body)
{
    static h2o_generator_t generator = {NULL, NULL};
    h2o_iovec_t buf = h2o_iovec_init(body.p, body.n);
    bool bodiless = body.n == 0 || h2o_memis(req->input.method.base, req->input.method.len, H2O_STRLIT("HEAD"));

    req->res.status = (int)status;
    req->res.reason = sz_status_text(status);
    req->res.content_length = status == 204 || status == 304 ? SIZE_MAX : body.n;
    sz_respond_headers(req, headers);
    h2o_start_response(req, &generator);
    h2o_send(req, &buf, bodiless ? 0 : 1, H2O_SEND_STATE_FINAL);
}

void sz_respond_problem(h2o_req_t *req, unsigned status, enum sz_reason reason, const char *detail)
{
    const struct sz_reason_row *row = sz_reason_row(reason);
    struct sz_header v[] = {
        {SZ_S("content-type"), SZ_S("application/problem+json")},
        {SZ_S("cache-control"), SZ_S("no-store")},
        {SZ_S("x-subzero-reason"), sz_cstr(row->name)},
    };
    struct sz_headers headers = {.v = v, .n = SZ_COUNT(v)};
    struct sz_buf buf = {0};

    sz_buf_printf(&buf, "{\"type\":\"urn:subzero:problem:%s\",\"title\":\"%s\",\"status\":%u,\"reason\":\"%s\"",
                  row->name, row->title, status, row->name);
    if (detail != NULL) {
        sz_buf_printf(&buf, ",\"detail\":");
        sz_buf_json(&buf, sz_cstr(detail));
    }
    sz_buf_printf(&buf, "}\n");
    char *body = h2o_mem_alloc_pool(&req->pool, buf.n);
    memcpy(body, buf.p, buf.n);
    sz_respond(req, status, &headers, sz_slice(body, buf.n));
    sz_buf_fini(&buf);
}
