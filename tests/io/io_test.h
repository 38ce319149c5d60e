/* SPDX-License-Identifier: MIT */
/* Shared by the tests of this room and of others: a folder for each test, files, child processes, full disks, failing allocations. */
#ifndef TESTS_IO_TEST_H
#define TESTS_IO_TEST_H

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void remove_folder(void);
#define WF_TEST_TEARDOWN remove_folder
#include <check_weft.h>
#include <weft/internal/files.h>
#include <weft/io.h>

/* A call that must succeed and whose value is a pointer; prints its message otherwise. The call's last argument is `error`. */
#define ck_makes(call)                                                                                                                     \
    ({                                                                                                                                     \
        wf_error ck_error = {0};                                                                                                           \
        wf_error *error = &ck_error;                                                                                                       \
        __auto_type ck_made = (call);                                                                                                      \
        ck_assert_msg(ck_made != NULL, "%s: %s", #call, ck_error.message);                                                                 \
        ck_made;                                                                                                                           \
    })

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

/* A path in the test's folder, which goes when the test ends. The last 256 of them are valid. */
static inline const char *in_folder(const char *name)
{
    static char paths[256][512];
    static int next;
    if (!folder_owner) {
        snprintf(folder_of_test, sizeof folder_of_test, "%s/XXXXXX", folder_of_all);
        ck_assert_ptr_nonnull(mkdtemp(folder_of_test));
        folder_owner = getpid();
    }
    char *path = paths[next++ % 256];
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

/* The value of a call that can write no file beyond this size: the write fails as on a full disk. */
#define with_file_size(bytes, call)                                                                                                        \
    ({                                                                                                                                     \
        limit_file_size((rlim_t)(bytes));                                                                                                  \
        __auto_type ck_limited = (call);                                                                                                   \
        limit_file_size(RLIM_INFINITY);                                                                                                    \
        ck_limited;                                                                                                                        \
    })

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

/* A whole file, to be freed; `bytes` may be NULL. */
static inline char *load_file(const char *path, int64_t *bytes)
{
    return ck_makes(wf_file_load(path, 1 << 28, bytes, error));
}

static inline void assert_file_is(const char *path, const void *data, int64_t bytes)
{
    int64_t length;
    char *text = load_file(path, &length);
    ck_assert_msg(length == bytes && !memcmp(text, data, (size_t)bytes), "%s holds %lld bytes: %.80s", path, (long long)length, text);
    wf_free(text);
}

static inline void assert_text_is(const char *path, const char *text)
{
    assert_file_is(path, text, (int64_t)strlen(text));
}

static inline void assert_same_files(const char *path, const char *other)
{
    int64_t bytes;
    char *data = load_file(other, &bytes);
    assert_file_is(path, data, bytes);
    wf_free(data);
}

static inline int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* The number of names in a folder, hidden ones too. */
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

/* See with_file_size. Lift it (RLIM_INFINITY) before anything is asserted: Check passes its messages through a file. */
static inline void limit_file_size(rlim_t bytes)
{
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}) != 0)
        ck_abort_msg("setrlimit");
}

/* Runs work(0), work(1), ... at once, each in a child process. Each must return 0. */
static inline void in_processes(int count, int (*work)(int number))
{
    pid_t child[8];
    for (int c = 0; c < count; c++)
        if ((child[c] = fork()) == 0)
            _exit(work(c));
    for (int c = 0; c < count; c++) {
        int status;
        ck_assert_int_eq(waitpid(child[c], &status, 0), child[c]);
        ck_assert_int_eq(status, 0);
    }
}

/* Runs `work` in a child process, which writes the number of each finished step to `report`, and kills the child after some microseconds.
 * Returns the last number, or `last` if there was none. */
static inline int last_before_kill(void (*work)(int report, int last), int last, useconds_t after)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        work(ends[1], last);
        _exit(1);
    }
    close(ends[1]);
    usleep(after);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    ck_assert(WIFSIGNALED(status));
    for (int step; read(ends[0], &step, sizeof step) == sizeof step;)
        last = step;
    close(ends[0]);
    return last;
}

static inline wf_array contiguous(void *data, wf_dtype dtype, int ndim, int64_t d0, int64_t d1, int64_t d2)
{
    return wf_array_contiguous(data, dtype, &(wf_shape){ndim, {d0, d1, d2}});
}

static inline wf_safetensors *open_tensors(const char *path)
{
    return ck_makes(wf_safetensors_open(path, error));
}

/* Saves one tensor in the file x of the test's folder. */
static inline void save_tensor(const char *name, const wf_array *a)
{
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, name, a);
    ck_ok(wf_safetensors_commit(w, in_folder("x"), error));
}

static inline void assert_message(const wf_error *error, wf_status code, const char *part)
{
    ck_assert_msg(error->code == code, "%s instead of %s: %s", wf_status_name(error->code), wf_status_name(code), error->message);
    ck_says(error->message, part);
}

/* Calls `run` with the first, second, ... allocation failing until it succeeds. Every failure must be WF_ERR_MEMORY, with a message, and
 * leak nothing. Returns the number of failures. */
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
