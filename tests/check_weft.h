/* SPDX-License-Identifier: MIT */
/* What every test program shares: Check, and a main that runs one suite.
 *
 *   START_TEST(adds) { ... } END_TEST
 *   WF_TEST_MAIN("arena", adds, grows, ...)                                                                           */
#ifndef TESTS_CHECK_WEFT_H
#define TESTS_CHECK_WEFT_H

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <weft/core.h>
#include <weft/internal/testing.h>

/* Check writes down the place of every assertion that holds, to name it if a later line crashes. In loops over millions of numbers that
 * took most of a test's time. Without it a crash is reported with the name of its test, and an assertion that fails as ever. */
#define _mark_point(file, line) ((void)0)

static inline int run_tests(const char *name, const TTest *const *tests, int count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 120);
#ifdef WF_TEST_TEARDOWN /* what a header of tests wants done after each */
    tcase_add_checked_fixture(tcase, NULL, WF_TEST_TEARDOWN);
#endif
    for (int i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Check's tests are pointers since 0.15. The parent opens no parallel region: each test forks and initialises for itself. */
#define WF_TEST_MAIN(name, ...)                                                                                                            \
    int main(void)                                                                                                                         \
    {                                                                                                                                      \
        const TTest *const tests[] = {__VA_ARGS__};                                                                                        \
        return run_tests(name, tests, (int)(sizeof tests / sizeof *tests));                                                                \
    }

/* A call that must succeed; prints its message otherwise. */
#define ck_ok(call)                                                                                                                        \
    do {                                                                                                                                   \
        wf_error ck_error = {0};                                                                                                           \
        wf_error *error = &ck_error;                                                                                                       \
        ck_assert_msg((call) == WF_OK, "%s: %s", #call, ck_error.message);                                                                 \
    } while (0)

/* One line that has these words. */
#define ck_says(message, words) ck_assert_msg(strstr(message, words) && !strchr(message, '\n'), "\"%s\" lacks \"%s\"", message, words)

/* A call that must fail, with this status and these words in its message; its last argument is `error`. */
#define ck_fails(call, status, words)                                                                                                      \
    do {                                                                                                                                   \
        wf_error ck_error = {0};                                                                                                           \
        wf_error *error = &ck_error;                                                                                                       \
        const wf_status ck_got = (call);                                                                                                   \
        ck_assert_msg(ck_got == (status) && ck_error.code == ck_got, "%s: %s, \"%s\"", #call, wf_status_name(ck_got), ck_error.message);   \
        ck_says(ck_error.message, words);                                                                                                  \
    } while (0)

/* The same for a call that returns a pointer: NULL. */
#define ck_fails_null(call, status, words)                                                                                                 \
    do {                                                                                                                                   \
        wf_error ck_error = {0};                                                                                                           \
        wf_error *error = &ck_error;                                                                                                       \
        ck_assert_ptr_null(call);                                                                                                          \
        ck_assert_msg(ck_error.code == (status), "%s: %s, \"%s\"", #call, wf_status_name(ck_error.code), ck_error.message);                \
        ck_says(ck_error.message, words);                                                                                                  \
    } while (0)

/* Built with the sanitizers, which take ten times as long: a test of many like cases takes a sample of them then. */
static inline bool sanitized(void)
{
    const char *sanitizers = getenv("WEFT_SANITIZE");
    return sanitizers && strcmp(sanitizers, "none") != 0;
}

/* In the suite slow (tests/meson.build): all cases, also those that take long. */
static inline bool thorough(void)
{
    return getenv("WEFT_TEST_ALL") != NULL;
}

/* A test of many like cases takes a sample of them. */
static inline bool sampled(void)
{
    return sanitized() || !thorough();
}

/* Switches to a locale with a decimal comma, in which nothing that Weft reads or writes may differ; the build makes one
 * (tests/meson.build). False, and it says so, where the system's sources of locales are not installed. */
static inline bool use_comma_locale(void)
{
    const char *name = getenv("WEFT_LOCALE");
    if (!name) {
        fprintf(stderr, "skipped: no locale with a decimal comma (Debian: the package locales)\n");
        return false;
    }
    ck_assert_msg(setlocale(LC_ALL, name) && localeconv()->decimal_point[0] == ',', "%s has no decimal comma", name);
    return true;
}

/* Page faults of the process so far. A loaded system may take an idle page back, so that single ones are no fault of the code: a test of
 * the steady state counts windows of several steps, and one of FAULT_WINDOWS must be without any. What touches new pages does so in each.
 */
enum { FAULT_WINDOWS = 5 };

static inline long page_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* The folder with the shared data, or NULL when it is absent (then the test says so and passes). */
static inline const char *shared_folder(void)
{
    static char path[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/../shared", root ? root : ".");
    FILE *f;
    char probe[4200];
    snprintf(probe, sizeof probe, "%s/data/README.md", path);
    if (!(f = fopen(probe, "r"))) {
        fprintf(stderr, "skipped: %s is absent\n", probe);
        return NULL;
    }
    fclose(f);
    return path;
}

#endif
