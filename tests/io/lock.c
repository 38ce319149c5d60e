/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/wait.h>

#include "io_test.h"

START_TEST(one_at_a_time_in_a_process)
{
    wf_error bad = {0};
    wf_lock *lock = wf_lock_take(in_folder("lock"), &bad);
    ck_assert_msg(lock != NULL, "%s", bad.message);
    ck_assert_ptr_null(wf_lock_take(in_folder("lock"), &bad));
    char pid[64];
    snprintf(pid, sizeof pid, "/lock: process %ld holds the lock", (long)getpid());
    assert_message(&bad, WF_ERR_BUSY, pid);
    wf_lock_release(lock);
    ck_assert(!wf_file_exists(in_folder("lock")));
    wf_error_clear(&bad);
    lock = wf_lock_take(in_folder("lock"), &bad);
    ck_assert_ptr_nonnull(lock);
    wf_lock_release(lock);
    wf_lock_release(NULL);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(another_process_holds_it_until_it_dies)
{
    int ready[2];
    char byte;
    wf_error bad = {0};
    ck_assert_int_eq(pipe(ready), 0);
    in_folder("");
    pid_t child = fork();
    if (child == 0) {
        wf_lock *lock = wf_lock_take(in_folder("lock"), NULL);
        if (!lock || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_ptr_null(wf_lock_take(in_folder("lock"), &bad));
    char pid[64];
    snprintf(pid, sizeof pid, "process %ld holds the lock", (long)child);
    assert_message(&bad, WF_ERR_BUSY, pid);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert(wf_file_exists(in_folder("lock"))); /* left over, and meaning nothing */
    wf_error_clear(&bad);
    wf_lock *lock = wf_lock_take(in_folder("lock"), &bad);
    ck_assert_msg(lock != NULL, "%s", bad.message);
    wf_lock_release(lock);
}
END_TEST

/* Processes that take, hold and release the lock all the time: two at once in the guarded part would find the marker. */
START_TEST(never_two_at_once)
{
    in_folder("");
    pid_t child[4];
    for (int c = 0; c < 4; c++) {
        if ((child[c] = fork()) != 0)
            continue;
        int taken = 0;
        for (long tries = 0; taken < 200 && tries < 10000000; tries++) {
            wf_error bad = {0};
            wf_lock *lock = wf_lock_take(in_folder("lock"), &bad);
            if (!lock) {
                if (bad.code != WF_ERR_BUSY)
                    _exit(2);
                usleep(50);
                continue;
            }
            taken++;
            if (mkdir(in_folder("marker"), 0777) != 0)
                _exit(3);
            if (rmdir(in_folder("marker")) != 0)
                _exit(4);
            wf_lock_release(lock);
        }
        _exit(taken == 200 ? 0 : 5);
    }
    for (int c = 0; c < 4; c++) {
        int status;
        waitpid(child[c], &status, 0);
        ck_assert_int_eq(status, 0);
    }
}
END_TEST

START_TEST(says_why_it_cannot)
{
    wf_error bad = {0};
    ck_assert_ptr_null(wf_lock_take(in_folder("missing/lock"), &bad));
    assert_message(&bad, WF_ERR_IO, "missing/lock: the lock file cannot be created: No such file or directory");
    wf_error_clear(&bad);
    ck_assert_ptr_null(wf_lock_take(folder_of_test, &bad));
    assert_message(&bad, WF_ERR_IO, "Is a directory");
}
END_TEST

WF_TEST_MAIN("lock", one_at_a_time_in_a_process, another_process_holds_it_until_it_dies, never_two_at_once, says_why_it_cannot)
