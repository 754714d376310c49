/*
 * Messages of bounded length.  A cut message ends in "...", so that nobody takes the
 * rest for the whole; it is cut between UTF-8 characters, so that it stays printable
 * in a JSON log line.
 */
#include "subzero/base.h"

#include <stdio.h>

static void cut(struct sz_text *t)
{
    size_t end = sizeof(t->s) - 4; /* room for the dots and the NUL */
    while (end > 0 && ((unsigned char)t->s[end] & 0xC0) == 0x80)
        end--;
    memcpy(t->s + end, "...", 4);
}

SZ_PRINTF(3, 0) static void print_at(struct sz_text *t, size_t at, const char *fmt, va_list args)
{
    int n = vsnprintf(t->s + at, sizeof(t->s) - at, fmt, args);
    if (n < 0)
        t->s[at] = '\0'; /* an unprintable argument: what stood before stays whole */
    else if ((size_t)n >= sizeof(t->s) - at)
        cut(t);
}

void sz_text_set(struct sz_text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_at(t, 0, fmt, args);
    va_end(args);
}

void sz_text_add(struct sz_text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    print_at(t, strnlen(t->s, sizeof(t->s) - 1), fmt, args);
    va_end(args);
}
