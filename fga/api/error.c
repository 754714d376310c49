/* Answers that say what went wrong, in OpenFGA's words: the code's name is on the wire, its number decides the status.
 */
#include <stdio.h>

#include "fga/api/hub.h"

static const struct {
    int code;
    const char *name;
} names[] = {
    {409, "Aborted"},
    {1005, "auth_failed_invalid_bearer_token"},
    {1010, "bearer_token_missing"},
    {1500, "unauthenticated"},
    {1600, "forbidden"},
    {2000, "validation_error"},
    {2001, "authorization_model_not_found"},
    {2002, "authorization_model_resolution_too_complex"},
    {2003, "invalid_write_input"},
    {2004, "cannot_allow_duplicate_tuples_in_one_request"},
    {2007, "invalid_continuation_token"},
    {2010, "invalid_expand_input"},
    {2017, "write_failed_due_to_invalid_input"},
    {2020, "latest_authorization_model_not_found"},
    {2021, "type_not_found"},
    {2022, "relation_not_found"},
    {2027, "invalid_tuple"},
    {2030, "store_id_invalid_length"},
    {2033, "assertions_too_many_items"},
    {2036, "authorization_model_id_too_long"},
    {2037, "tuple_key_value_not_specified"},
    {2038, "tuple_keys_too_many_or_too_few_items"},
    {2039, "page_size_invalid"},
    {2043, "object_too_long"},
    {2044, "relation_too_long"},
    {2045, "type_definitions_too_few_items"},
    {2047, "type_invalid_pattern"},
    {2052, "query_string_type_continuation_token_mismatch"},
    {2053, "exceeded_entity_limit"},
    {2056, "invalid_authorization_model"},
    {2058, "cancelled"},
    {2059, "invalid_start_time"},
    {4000, "internal_error"},
    {4004, "deadline_exceeded"},
    {4006, "resource_exhausted"},
    {5000, "undefined_endpoint"},
    {5002, "store_id_not_found"},
    {5004, "unimplemented"},
};

const char *sz_ofga_code_name(int code)
{
    for (size_t i = 0; i < SZ_COUNT(names); i++)
        if (names[i].code == code)
            return names[i].name;
    return "internal_error";
}

static unsigned status_of(int code)
{
    if (code == SZ_OFGA_ABORTED)
        return 409;
    if (code == 1600)
        return 403;
    if (code >= 5000)
        return 404;
    if (code >= 4000 || code < 1000)
        return 500;
    if (code >= 3500)
        return 422;
    return code >= 2000 ? 400 : 401;
}

/* What a stream ends with has no code of ours, but gRPC's. */
static int grpc_code(unsigned status)
{
    switch (status) {
    case 401:
        return 16;
    case 403:
        return 7;
    case 404:
        return 5;
    case 500:
        return 13;
    default:
        return 3;
    }
}

static enum sz_ofga_step fail(struct sz_ofga *api, int code, struct sz_slice message)
{
    api->status = status_of(code);
    api->out.n = 0;
    if (api->endpoint != NULL && api->endpoint->serve == sz_ofga_stream_objects) {
        sz_buf_printf(&api->out, "{\"error\":{\"code\":%d,\"message\":", grpc_code(api->status));
        sz_buf_json(&api->out, message);
        sz_buf_printf(&api->out, ",\"details\":[]}}\n");
        return SZ_OFGA_DONE;
    }
    sz_buf_printf(&api->out, "{\"code\":\"%s\",\"message\":", sz_ofga_code_name(code));
    sz_buf_json(&api->out, message);
    sz_buf_printf(&api->out, "}");
    return SZ_OFGA_DONE;
}

enum sz_ofga_step sz_ofga_fail(struct sz_ofga *api, int code, const char *fmt, ...)
{
    char room[2048];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(room, sizeof(room), fmt, args);
    va_end(args);
    return fail(api, code, sz_slice(room, n < 0 ? 0 : (size_t)n < sizeof(room) ? (size_t)n : sizeof(room) - 1));
}

enum sz_ofga_step sz_ofga_fault(struct sz_ofga *api, const struct sz_fault *fault)
{
    return fail(api, fault->code, sz_cstr(fault->message.s));
}
