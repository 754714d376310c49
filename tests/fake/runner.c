/*
 * In every test program.  Criterion runs each test in a process of its own; the one that starts them now and then
 * loses the record of a test's `.timeout` (libcriterion 2.4.1), and LeakSanitizer's report of that would hide what ours
 * says.  That process runs no code of ours: its leaks are not looked for.  Those of the tests are.
 */
#include <stdlib.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

/* Criterion hands its own parameters to the processes that run a test in this variable. */
__attribute__((constructor)) static void trust_the_starter(void)
{
    if (getenv("BXFI_MAP") == NULL)
        __lsan_disable();
}
#else
typedef int nothing_to_do_without_leak_detection;
#endif
