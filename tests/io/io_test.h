/* SPDX-License-Identifier: MIT */
/* What the tests of this room share: a folder of their own, files made from text, and the sweep over failing allocations. */
#ifndef TESTS_IO_TEST_H
#define TESTS_IO_TEST_H

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_folder(void);
#define WF_TEST_TEARDOWN remove_folder
#include <check_weft.h>
#include <weft/internal/files.h>
#include <weft/io.h>

static char folder_of_all[] = "/tmp/weft-io-XXXXXX", folder_of_test[64];
static pid_t program_of_tests, folder_owner;

static void remove_tree(const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "PATH=/usr/bin:/bin; chmod -R u+rwx %s; rm -rf %s", path, path); /* a test may have set another */
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", path);
}

static void remove_all(void)
{
    if (getpid() == program_of_tests && chdir("/") == 0) /* a test may have gone into its folder */
        remove_tree(folder_of_all);
}

/* Before Check forks: a test that fails ends at once, without teardown or atexit, and its folder goes with the program. */
__attribute__((constructor)) static void make_folder_of_all(void)
{
    if (!mkdtemp(folder_of_all)) {
        perror(folder_of_all);
        exit(EXIT_FAILURE);
    }
    program_of_tests = getpid();
    atexit(remove_all);
}

/* After each test, also when all run in one process. */
__attribute__((unused)) static void remove_folder(void)
{
    if (getpid() != folder_owner) /* a child that a test forked ends without it */
        return;
    remove_tree(folder_of_test);
    folder_owner = 0;
}

/* A path in the test's folder, which goes when the test ends. Eight of them are valid at once. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][512];
    static int next;
    if (!folder_owner) {
        snprintf(folder_of_test, sizeof folder_of_test, "%s/XXXXXX", folder_of_all);
        ck_assert_ptr_nonnull(mkdtemp(folder_of_test));
        folder_owner = getpid();
    }
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder_of_test, name);
    return path;
}

static inline const char *golden(const char *name)
{
    static char path[4096];
    const char *root = getenv("WEFT_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/golden/io/%s", root ? root : ".", name);
    return path;
}

static inline void write_file(const char *path, const void *data, size_t bytes)
{
    remove(path); /* ext4 syncs a file that is truncated and written again, which takes its time */
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, bytes, f), bytes);
    ck_assert_int_eq(fclose(f), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static inline void assert_file_is(const char *path, const void *data, int64_t bytes)
{
    wf_error error = {0};
    int64_t length;
    char *text = wf_file_load(path, 1 << 28, &length, &error);
    ck_assert_msg(text != NULL, "%s", error.message);
    ck_assert_msg(length == bytes && !memcmp(text, data, (size_t)bytes), "%s holds %lld bytes: %.80s", path, (long long)length, text);
    wf_free(text);
}

static inline void assert_text_is(const char *path, const char *text)
{
    assert_file_is(path, text, (int64_t)strlen(text));
}

/* How many names, hidden ones too, a folder holds. */
static inline int count_names(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return count;
}

/* All files that are written may be no longer; SIGXFSZ becomes an error, as that of a full disk. Lift it (RLIM_INFINITY) before
 * anything is asserted: Check passes its messages through a file. */
static inline void limit_file_size(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}) != 0)
        ck_abort_msg("setrlimit");
}

static inline void assert_message(const wf_error *error, wf_status code, const char *part)
{
    ck_assert_msg(error->code == code, "%s instead of %s: %s", wf_status_name(error->code), wf_status_name(code), error->message);
    ck_assert_msg(strstr(error->message, part) != NULL, "\"%s\" does not say \"%s\"", error->message, part);
    ck_assert_ptr_null(strchr(error->message, '\n'));
}

/* Calls `run` with the first, second, ... allocation failing until it succeeds. Every failure must be WF_ERR_MEMORY, with a message,
 * and leave as many blocks alive as there were. Returns how many failures there were. */
static inline int sweep_allocations(wf_status (*run)(wf_error *error))
{
    for (int n = 0; n < 5000; n++) {
        wf_error error = {0};
        int64_t before = wf_alloc_live();
        wf_alloc_fail_after(n);
        wf_status status = run(&error);
        wf_alloc_fail_after(-1);
        ck_assert_msg(wf_alloc_live() == before, "failure %d: %lld blocks leaked", n, (long long)(wf_alloc_live() - before));
        if (status == WF_OK)
            return n;
        ck_assert_msg(status == WF_ERR_MEMORY, "failure %d: %s: %s", n, wf_status_name(status), error.message);
        ck_assert_int_eq(error.code, WF_ERR_MEMORY);
        ck_assert_str_ne(error.message, "");
    }
    ck_abort_msg("does not come to an end");
    return 0;
}

#endif
