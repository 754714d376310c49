/* An echo: whoever tries the gateway sees what an upstream would see behind it. */
#include "edge/demo_upstream.h"

#include "edge/head_parse.h"
#include "edge/iovec.h"
#include "edge/respond.h"

int sz_demo_upstream_on_req(h2o_handler_t *handler, h2o_req_t *req)
{
    struct sz_header type = {SZ_S("content-type"), SZ_S("application/json")};
    struct sz_headers headers = {.v = &type, .n = 1};
    struct sz_buf buf = {0};

    (void)handler;
    if (sz_head_parse_failed()) {
        req->http1_is_persistent = 0;
        sz_respond_problem(req, 400, SZ_REASON_bad_request, NULL);
        return 0;
    }
    sz_buf_printf(&buf, "{\"upstream\":\"echo\",\"method\":");
    sz_buf_json(&buf, sz_iovec(req->input.method));
    sz_buf_printf(&buf, ",\"path\":");
    sz_buf_json(&buf, sz_iovec(req->input.path));
    sz_buf_printf(&buf, ",\"headers\":{\"host\":");
    sz_buf_json(&buf, sz_iovec(req->input.authority));
    for (size_t i = 0; i < req->headers.size; i++) {
        sz_buf_printf(&buf, ",");
        sz_buf_json(&buf, sz_iovec(*req->headers.entries[i].name));
        sz_buf_printf(&buf, ":");
        sz_buf_json(&buf, sz_iovec(req->headers.entries[i].value));
    }
    sz_buf_printf(&buf, "},\"body_bytes\":%zu}\n", req->entity.len);
    char *body = h2o_mem_alloc_pool(&req->pool, buf.n);
    memcpy(body, buf.p, buf.n);
    sz_respond(req, 200, &headers, sz_slice(body, buf.n));
    sz_buf_fini(&buf);
    return 0;
}
