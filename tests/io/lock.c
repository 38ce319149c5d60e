/* SPDX-License-Identifier: MIT */
#include "io_test.h"

static void is_held_by(pid_t process)
{
    char words[64];
    snprintf(words, sizeof words, "/lock: process %ld holds the lock", (long)process);
    ck_fails_null(wf_lock_take(in_folder("lock"), error), WF_ERR_BUSY, words);
}

START_TEST(one_at_a_time_in_a_process)
{
    wf_lock *lock = ck_makes(wf_lock_take(in_folder("lock"), error));
    is_held_by(getpid());
    wf_lock_release(lock);
    ck_assert(!wf_file_exists(in_folder("lock")));
    wf_lock_release(ck_makes(wf_lock_take(in_folder("lock"), error)));
    wf_lock_release(NULL);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(another_process_holds_it_until_it_dies)
{
    int ready[2];
    char byte;
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
    is_held_by(child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ck_assert(wf_file_exists(in_folder("lock"))); /* left over, and meaning nothing */
    wf_lock_release(ck_makes(wf_lock_take(in_folder("lock"), error)));
}
END_TEST

static int take_and_release(int number)
{
    (void)number;
    int taken = 0;
    for (long tries = 0; taken < 200 && tries < 10000000; tries++) {
        wf_error bad = {0};
        wf_lock *lock = wf_lock_take(in_folder("lock"), &bad);
        if (!lock) {
            if (bad.code != WF_ERR_BUSY)
                return 2;
            usleep(50);
            continue;
        }
        taken++;
        if (mkdir(in_folder("marker"), 0777) != 0 || rmdir(in_folder("marker")) != 0)
            return 3;
        wf_lock_release(lock);
    }
    return taken == 200 ? 0 : 5;
}

/* Processes that take, hold and release the lock all the time: two that hold it at once would find the marker. */
START_TEST(never_two_at_once)
{
    in_folder("");
    in_processes(4, take_and_release);
}
END_TEST

START_TEST(says_why_it_cannot)
{
    ck_fails_null(wf_lock_take(in_folder("missing/lock"), error), WF_ERR_IO,
                  "missing/lock: the lock file cannot be created: No such file or directory");
    ck_fails_null(wf_lock_take(folder_of_test, error), WF_ERR_IO, "Is a directory");
}
END_TEST

WF_TEST_MAIN("lock", one_at_a_time_in_a_process, another_process_holds_it_until_it_dies, never_two_at_once, says_why_it_cannot)
