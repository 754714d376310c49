/* Bytes to replies and back: in any pieces, within the limit; error replies; slots. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "cache/redis_client.h"

static void encode(struct sz_buf *out, const struct sz_redis_reply *r)
{
    switch (r->type) {
    case SZ_REDIS_NIL:
        sz_buf_printf(out, "nil ");
        break;
    case SZ_REDIS_INTEGER:
        sz_buf_printf(out, ":%lld ", (long long)r->integer);
        break;
    case SZ_REDIS_STRING:
    case SZ_REDIS_STATUS:
        sz_buf_printf(out, "%s%.*s ", r->type == SZ_REDIS_STATUS ? "+" : "$", SZ_FMT(r->text));
        break;
    case SZ_REDIS_ARRAY:
        sz_buf_printf(out, "[ ");
        for (size_t i = 0; i < r->items_n; i++)
            encode(out, &r->items[i]);
        sz_buf_printf(out, "] ");
        break;
    }
}

/* Everything that comes out, as text; "BAD" at the end when that is how it ends. */
static char *read_in_pieces(struct sz_slice wire, size_t piece, size_t limit)
{
    struct sz_redis_reader *reader = sz_redis_reader_new();
    struct sz_buf out = {0};
    bool good = true;
    for (size_t at = 0; good && at < wire.n; at += piece) {
        struct sz_slice part = sz_sub(wire, at, piece);
        good = sz_redis_reader_feed(reader, part.p, part.n);
        for (;;) {
            const struct sz_redis_reply *reply;
            struct sz_slice error;
            enum sz_redis_read rc = sz_redis_reader_next(reader, limit, &reply, &error);
            if (rc == SZ_REDIS_READ_BAD) {
                sz_buf_printf(&out, "BAD");
                good = false;
            }
            if (rc != SZ_REDIS_READ_REPLY)
                break;
            if (reply == NULL)
                sz_buf_printf(&out, "-%.*s ", SZ_FMT(error));
            else
                encode(&out, reply);
        }
    }
    sz_redis_reader_free(&reader);
    sz_buf_add(&out, "", 1);
    return out.p;
}

Test(redis_codec, replies_in_any_pieces)
{
    static const struct {
        const char *wire, *wanted;
    } cases[] = {
        {"+OK\r\n", "+OK "},
        {"$5\r\nhello\r\n:42\r\n", "$hello :42 "},
        {"$-1\r\n*-1\r\n", "nil nil "},
        {"$0\r\n\r\n*0\r\n", "$ [ ] "},
        {"*3\r\n:-1\r\n$2\r\nab\r\n*2\r\n+x\r\n$-1\r\n", "[ :-1 $ab [ +x nil ] ] "},
        {"-ERR no\r\n+OK\r\n", "-ERR no +OK "},
        {"*2\r\n*1\r\n:1\r\n*1\r\n:2\r\n*1\r\n:3\r\n", "[ [ :1 ] [ :2 ] ] [ :3 ] "},
        {":9223372036854775807\r\n", ":9223372036854775807 "},
        {":9223372036854775808\r\n", "BAD"},
        {"+a\r\nx", "+a BAD"},
        {"$-2\r\n", "BAD"},
        {"*-2\r\n", "BAD"},
        {"$x\r\n", "BAD"},
        {"\r\n", "BAD"},
        {"*99999999999\r\n", "BAD"},
        {"_\r\n", "BAD"}, /* RESP3 was not asked for */
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++) {
        for (size_t piece = 1; piece < 64; piece = piece * 2 + 1) {
            char *got = read_in_pieces(sz_cstr(cases[i].wire), piece, 1024);
            cr_expect_str_eq(got, cases[i].wanted, "%zu in pieces of %zu: %s", i, piece, got);
            free(got);
        }
    }
}

Test(redis_codec, the_limit_is_of_one_reply)
{
    struct sz_buf wire = {0};
    for (int i = 0; i < 100; i++)
        sz_buf_printf(&wire, "$20\r\n%020d\r\n", i);
    char *got = read_in_pieces(sz_buf_slice(&wire), 1000, 27);
    cr_expect_eq(strlen(got), 100 * 22);
    free(got);
    got = read_in_pieces(sz_buf_slice(&wire), 1000, 26);
    cr_expect_str_eq(got, "BAD");
    free(got);
    got = read_in_pieces(SZ_S("$1000000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 10, 32);
    cr_expect_str_eq(got, "BAD");
    free(got);
    /* Items that cannot fit what is left are refused before they are made room for. */
    got = read_in_pieces(SZ_S("*9\r\n"), 10, 32);
    cr_expect_str_eq(got, "BAD");
    free(got);
    got = read_in_pieces(SZ_S("*4\r\n*4\r\n*4\r\n"), 10, 44);
    cr_expect_str_eq(got, "BAD");
    free(got);
    sz_buf_fini(&wire);
}

Test(redis_codec, commands)
{
    struct sz_buf out = {0};
    sz_redis_encode(&out, (struct sz_slice[]){SZ_S("SET"), SZ_S("a\r\n\0b"), SZ_S("")}, 3);
    cr_expect(sz_eq(sz_buf_slice(&out), SZ_S("*3\r\n$3\r\nSET\r\n$5\r\na\r\n\0b\r\n$0\r\n\r\n")));
    sz_buf_fini(&out);
}

Test(redis_codec, errors_by_their_first_word)
{
    static const struct {
        const char *text;
        enum sz_redis_result result;
    } cases[] = {
        {"ERR unknown command", SZ_REDIS_ERROR},
        {"WRONGTYPE Operation against", SZ_REDIS_ERROR},
        {"NOSCRIPT No matching", SZ_REDIS_NOSCRIPT},
        {"OOM command not allowed", SZ_REDIS_OOM},
        {"LOADING Redis is", SZ_REDIS_NOT_READY},
        {"BUSY Redis is busy", SZ_REDIS_NOT_READY},
        {"BUSYKEY Target key", SZ_REDIS_ERROR},
        {"CLUSTERDOWN", SZ_REDIS_NOT_READY},
        {"", SZ_REDIS_ERROR},
    };
    for (size_t i = 0; i < SZ_COUNT(cases); i++)
        cr_expect_eq(sz_redis_classify(sz_cstr(cases[i].text)), cases[i].result, "%s", cases[i].text);
}

Test(redis_codec, redirections)
{
    bool ask;
    unsigned slot;
    struct sz_slice host;
    uint16_t port;
    cr_expect(sz_redis_redirect(SZ_S("MOVED 3999 127.0.0.1:6381"), &ask, &slot, &host, &port));
    cr_expect(!ask && slot == 3999 && sz_eq(host, SZ_S("127.0.0.1")) && port == 6381);
    cr_expect(sz_redis_redirect(SZ_S("ASK 0 ::1:1"), &ask, &slot, &host, &port));
    cr_expect(ask && slot == 0 && sz_eq(host, SZ_S("::1")) && port == 1);
    cr_expect(sz_redis_redirect(SZ_S("MOVED 1 :6381"), &ask, &slot, &host, &port));
    cr_expect_eq(host.n, 0);
    static const char *const none[] = {"MOVED",       "MOVED 3999",      "MOVED 16384 a:1", "MOVED x a:1", "MOVED 1 a",
                                       "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:",      "ERR 1 a:1",   "",
                                       "MOVED -1 a:1"};
    for (size_t i = 0; i < SZ_COUNT(none); i++)
        cr_expect_not(sz_redis_redirect(sz_cstr(none[i]), &ask, &slot, &host, &port), "%s", none[i]);
}

/* An error may repeat what was sent: of its text nothing is shown but a word of Redis's. */
Test(redis_codec, what_is_shown_of_an_error)
{
    cr_expect_str_eq(sz_redis_error_word(SZ_S("ERR unknown command 'AUTH', with args beginning with: 'hunter2'")),
                     "ERR");
    cr_expect_str_eq(sz_redis_error_word(SZ_S("WRONGPASS invalid")), "WRONGPASS");
    cr_expect_str_eq(sz_redis_error_word(SZ_S("LOADING")), "LOADING");
    cr_expect_str_eq(sz_redis_error_word(SZ_S("hunter2 is wrong")), "an error");
    cr_expect_str_eq(sz_redis_error_word(SZ_S("")), "an error");
}

/* Figures of CLUSTER KEYSLOT. */
Test(redis_codec, slots)
{
    cr_expect_eq(sz_redis_slot(SZ_S("foo")), 12182);
    cr_expect_eq(sz_redis_slot(SZ_S("123456789")), 0x31c3);
    cr_expect_eq(sz_redis_slot(SZ_S("")), 0);
    cr_expect_eq(sz_redis_slot(SZ_S("{user1000}.following")), sz_redis_slot(SZ_S("user1000")));
    cr_expect_eq(sz_redis_slot(SZ_S("foo{}{bar}")), sz_redis_slot(SZ_S("foo{}{bar}")));
    cr_expect_eq(sz_redis_slot(SZ_S("foo{{bar}}zap")), sz_redis_slot(SZ_S("{bar")));
    cr_expect_eq(sz_redis_slot(SZ_S("foo{bar}{zap}")), sz_redis_slot(SZ_S("bar")));
    cr_expect_neq(sz_redis_slot(SZ_S("foo{}{bar}")), sz_redis_slot(SZ_S("bar")));
}
