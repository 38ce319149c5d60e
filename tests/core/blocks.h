/* SPDX-License-Identifier: MIT */
/* A body of wf_parallel that counts what it is called for; and the threads of the process. */
#ifndef WEFT_TEST_BLOCKS_H
#define WEFT_TEST_BLOCKS_H

#include "check_weft.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { BLOCKS = 1000 };
struct tally {
    _Atomic int seen[BLOCKS];
    _Atomic int nested;
    pthread_t owner;
    _Atomic int foreign;
    bool sleepy;
};

static inline void note(void *ctx, int64_t block)
{
    struct tally *t = ctx;
    t->seen[block]++;
    if (!pthread_equal(pthread_self(), t->owner))
        t->foreign++;
    if (t->sleepy)
        usleep(50);
}

static inline void ck_once(const struct tally *t, int64_t blocks)
{
    for (int64_t i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(t->seen[i], i < blocks);
}

static inline int threads_of_process(void)
{
    int count = 0;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Threads: %d", &count) == 1)
            break;
    if (f)
        fclose(f);
    return count;
}

#endif
