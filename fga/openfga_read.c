/*
 * Answers of an OpenFGA server.  Three things are told apart: a yes or a no that is wholly clear; an error about the
 * question, which asking again will not heal; and everything else, which is no answer.  Nothing unclear becomes a no.
 */
#include <jansson.h>
#include <stdio.h>

#include "fga/openfga.h"
#include "subzero/crypto.h"

#define DEPTH 32

static const struct code {
    const char *name;
    int number;
} codes[] = {
    {"validation_error", 2000},
    {"authorization_model_not_found", 2001},
    {"authorization_model_resolution_too_complex", 2002},
    {"invalid_write_input", 2003},
    {"cannot_allow_duplicate_tuples_in_one_request", 2004},
    {"cannot_allow_duplicate_types_in_one_request", 2005},
    {"cannot_allow_multiple_references_to_one_relation", 2006},
    {"invalid_continuation_token", 2007},
    {"invalid_tuple_set", 2008},
    {"invalid_check_input", 2009},
    {"invalid_expand_input", 2010},
    {"unsupported_user_set", 2011},
    {"invalid_object_format", 2012},
    {"write_failed_due_to_invalid_input", 2017},
    {"authorization_model_assertions_not_found", 2018},
    {"latest_authorization_model_not_found", 2020},
    {"type_not_found", 2021},
    {"relation_not_found", 2022},
    {"empty_relation_definition", 2023},
    {"invalid_user", 2025},
    {"invalid_tuple", 2027},
    {"unknown_relation", 2028},
    {"store_id_invalid_length", 2030},
    {"assertions_too_many_items", 2033},
    {"id_too_long", 2034},
    {"authorization_model_id_too_long", 2036},
    {"tuple_key_value_not_specified", 2037},
    {"tuple_keys_too_many_or_too_few_items", 2038},
    {"page_size_invalid", 2039},
    {"param_missing_value", 2040},
    {"difference_base_missing_value", 2041},
    {"subtract_base_missing_value", 2042},
    {"object_too_long", 2043},
    {"relation_too_long", 2044},
    {"type_definitions_too_few_items", 2045},
    {"type_invalid_length", 2046},
    {"type_invalid_pattern", 2047},
    {"relations_too_few_items", 2048},
    {"relations_too_long", 2049},
    {"relations_invalid_pattern", 2050},
    {"object_invalid_pattern", 2051},
    {"query_string_type_continuation_token_mismatch", 2052},
    {"exceeded_entity_limit", 2053},
    {"invalid_contextual_tuple", 2054},
    {"duplicate_contextual_tuple", 2055},
    {"invalid_authorization_model", 2056},
    {"unsupported_schema_version", 2057},
    {"cancelled", 2058},
    {"invalid_start_time", 2059},
    {"auth_failed_invalid_subject", 1001},
    {"auth_failed_invalid_audience", 1002},
    {"auth_failed_invalid_issuer", 1003},
    {"invalid_claims", 1004},
    {"auth_failed_invalid_bearer_token", 1005},
    {"bearer_token_missing", 1010},
    {"unauthenticated", 1500},
    {"forbidden", 1600},
    {"throttled_timeout_error", 3500},
    {"internal_error", 4000},
    {"deadline_exceeded", 4004},
    {"already_exists", 4005},
    {"resource_exhausted", 4006},
    {"failed_precondition", 4007},
    {"aborted", 4008},
    {"out_of_range", 4009},
    {"unavailable", 4010},
    {"data_loss", 4011},
    {"undefined_endpoint", 5000},
    {"store_id_not_found", 5002},
    {"unimplemented", 5004},
};

static int number_of(const char *name)
{
    for (size_t i = 0; i < SZ_COUNT(codes); i++) {
        if (strcmp(codes[i].name, name) == 0)
            return codes[i].number;
    }
    return 0;
}

void *sz_fga_read_object(struct sz_slice body)
{
    size_t at;
    if (body.n == 0 || sz_json_check(body, DEPTH, &at) != 0)
        return NULL;
    json_t *json = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    if (json_is_object(json))
        return json;
    json_decref(json);
    return NULL;
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *s = json_string_value(json_object_get(object, name));
    return s != NULL ? s : "";
}

static enum sz_breaker_outcome unavailable(struct sz_authz_answer *answer, const char *what)
{
    answer->outcome = SZ_AUTHZ_UNAVAILABLE;
    answer->code = 0;
    sz_text_set(&answer->message, "%s", what);
    return SZ_BREAKER_FAILURE;
}

/* About the question or the store it is put to, and the same whenever it is asked; 2058 says that it was given up. */
static bool about_question(int number)
{
    return (number >= 2000 && number < 3000 && number != 2058) || number == 5002;
}

void sz_fga_read_error(int status, struct sz_slice body, int *number, struct sz_text *message)
{
    json_t *json = sz_fga_read_object(body);
    const char *code = text_of(json, "code"), *said = text_of(json, "message");
    *number = number_of(code);
    if (*number == 0 && status == 400 && *code != '\0')
        *number = 2000; /* a code that is newer than this list: its status says what kind it is */
    if (*code != '\0')
        sz_text_set(message, "%s (HTTP %d): %s", code, status, said);
    else
        sz_text_set(message, "HTTP %d without a body of OpenFGA's", status);
    json_decref(json);
}

static enum sz_breaker_outcome read_refusal(int status, struct sz_slice body, struct sz_authz_answer *answer)
{
    int number;
    sz_fga_read_error(status, body, &number, &answer->message);
    answer->outcome = about_question(number) && status < 500 ? SZ_AUTHZ_ERROR : SZ_AUTHZ_UNAVAILABLE;
    answer->code = answer->outcome == SZ_AUTHZ_ERROR ? number : 0;
    if (status == 429)
        return SZ_BREAKER_UNKNOWN;
    return status >= 500 || status == 408 ? SZ_BREAKER_FAILURE : SZ_BREAKER_SUCCESS;
}

/* {"allowed": true|false}, and that alone: nothing else is a yes or a no. */
static bool read_allowed(const json_t *object, struct sz_authz_answer *answer)
{
    const json_t *allowed = json_object_get(object, "allowed");
    if (!json_is_boolean(allowed))
        return false;
    answer->outcome = json_is_true(allowed) ? SZ_AUTHZ_ALLOWED : SZ_AUTHZ_DENIED;
    answer->code = 0;
    answer->message.s[0] = '\0';
    return true;
}

enum sz_breaker_outcome sz_fga_read_check(int status, struct sz_slice body, struct sz_authz_answer *answer)
{
    if (status != 200)
        return read_refusal(status, body, answer);
    json_t *json = sz_fga_read_object(body);
    bool good = json != NULL && read_allowed(json, answer);
    enum sz_breaker_outcome outcome = SZ_BREAKER_SUCCESS;
    if (!good)
        outcome = unavailable(answer, json == NULL ? "the answer is no JSON object"
                                                   : "the answer has no true or false 'allowed'");
    json_decref(json);
    return outcome;
}

/* {"error": {"input_error"|"internal_error": CODE, "message": ...}} */
static void read_item_error(const json_t *error, struct sz_authz_answer *answer)
{
    const char *input = text_of(error, "input_error"), *internal = text_of(error, "internal_error");
    const char *code = *input != '\0' ? input : internal;
    int number = number_of(code);
    if (number == 0 && *input != '\0')
        number = 2000;
    answer->outcome = *input != '\0' && about_question(number) ? SZ_AUTHZ_ERROR : SZ_AUTHZ_UNAVAILABLE;
    answer->code = answer->outcome == SZ_AUTHZ_ERROR ? number : 0;
    sz_text_set(&answer->message, "%s: %s", *code != '\0' ? code : "an error without a code",
                text_of(error, "message"));
}

static bool read_item(const json_t *one, struct sz_authz_answer *answer)
{
    const json_t *error = json_object_get(one, "error");
    if (error == NULL)
        return json_is_object(one) && read_allowed(one, answer);
    if (!json_is_object(error) || json_object_get(one, "allowed") != NULL)
        return false; /* both, or neither: whom to believe? */
    read_item_error(error, answer);
    return true;
}

enum sz_breaker_outcome sz_fga_read_batch(int status, struct sz_slice body, struct sz_authz_answer *answers, size_t n)
{
    enum sz_breaker_outcome outcome = SZ_BREAKER_SUCCESS;
    json_t *json = status == 200 ? sz_fga_read_object(body) : NULL;
    const json_t *result = json_object_get(json, "result");
    for (size_t i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof(id), "%zu", i);
        if (status != 200)
            outcome = read_refusal(status, body, &answers[i]);
        else if (!json_is_object(result))
            outcome = unavailable(&answers[i], "the answer to a batch has no 'result'");
        else if (!read_item(json_object_get(result, id), &answers[i]))
            outcome = unavailable(&answers[i], "the answer to a batch has no clear answer to this check");
    }
    json_decref(json);
    return outcome;
}
