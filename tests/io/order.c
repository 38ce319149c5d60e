/* SPDX-License-Identifier: MIT */
/* A save is on the disk before it gets its name, and the system may refuse any of the steps: a kill can't show that. The program's own
 * fsync, rename and flock take the place of the C library's. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "io_test.h"

static char steps[64];
static int refuse_at, refuse_with; /* the step, counted from 1, and its errno */
static void (*before_lock)(void);

static int step(const char *name)
{
    strcat(steps, name);
    if (refuse_at == (int)strlen(steps)) {
        errno = refuse_with;
        return -1;
    }
    return 0;
}

int fsync(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || step(S_ISDIR(info.st_mode) ? "D" : "F") != 0)
        return -1;
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *old, const char *new)
{
    return step("R") != 0 ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
}

int flock(int fd, int operation)
{
    void (*hook)(void) = before_lock;
    before_lock = NULL;
    if (hook)
        hook();
    return step("L") != 0 ? -1 : (int)syscall(SYS_flock, fd, operation);
}

START_TEST(synced_before_renamed)
{
    write_text(in_folder("x"), "old");
    steps[0] = 0;
    ck_ok(wf_file_save(in_folder("x"), "new", 3, error));
    ck_assert_str_eq(steps, "LFRD"); /* lock, file, rename, folder */
    assert_text_is(in_folder("x"), "new");
    ck_assert_int_eq(chdir(folder_of_test), 0);
    steps[0] = 0;
    ck_ok(wf_file_save("x", "here", 4, error));
    ck_assert_str_eq(steps, "LFRD");
}
END_TEST

START_TEST(a_refused_step_leaves_the_old_file)
{
    static const struct {
        int at, with;
        const char *file, *message; /* NULL: no failure */
    } cases[] = {
        {2, EIO, "old", "x: cannot be synced: Input/output error"},
        {2, ENOSPC, "old", "x: cannot be synced: No space left on device"},
        {3, EXDEV, "old", "x: cannot be replaced: Invalid cross-device link"},
        {4, EIO, "new", "the folder cannot be synced: Input/output error"}, /* it already has its name */
        {4, EINVAL, "new", NULL},                                           /* file systems that can't sync a folder, */
        {1, ENOLCK, "new", NULL},                                           /* and those without locks */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_error bad = {0};
        write_text(in_folder("x"), "old");
        steps[0] = 0;
        refuse_at = cases[i].at, refuse_with = cases[i].with;
        wf_status status = wf_file_save(in_folder("x"), "new", 3, &bad);
        refuse_at = 0;
        ck_assert_int_eq(status, cases[i].message ? WF_ERR_IO : WF_OK);
        assert_message(&bad, status, cases[i].message ? cases[i].message : "");
        assert_text_is(in_folder("x"), cases[i].file);
        ck_assert_int_eq(count_names(folder_of_test), 1);
        ck_assert_int_eq(wf_alloc_live(), 0);
    }
}
END_TEST

static int swept;

static void sweep_now(void)
{
    int removed;
    ck_ok(wf_file_sweep(folder_of_test, &removed, error));
    swept += removed;
}

/* A sweep between the making of the temporary file and its lock takes it away; the writer must notice. */
START_TEST(a_sweep_at_the_worst_moment)
{
    in_folder("");
    before_lock = sweep_now;
    ck_ok(wf_file_save(in_folder("x"), "new", 3, error));
    ck_assert_int_eq(swept, 1);
    assert_text_is(in_folder("x"), "new");
    ck_assert_int_eq(count_names(folder_of_test), 1);
}
END_TEST

WF_TEST_MAIN("order", synced_before_renamed, a_refused_step_leaves_the_old_file, a_sweep_at_the_worst_moment)
