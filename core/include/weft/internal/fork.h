/* SPDX-License-Identifier: MIT */
/* Locks and fork(): a child has the calling thread only, and a lock that another thread held would stay closed there. */
#ifndef WEFT_INTERNAL_FORK_H
#define WEFT_INTERNAL_FORK_H

#include <pthread.h>

/* In the file of a static mutex: fork() waits until it is free, and both processes go on with it free. No thread that holds it calls fork
 * or takes another of these. */
#define WF_FREE_AFTER_FORK(mutex)                                                                                                          \
    static void mutex##_before_fork(void)                                                                                                  \
    {                                                                                                                                      \
        pthread_mutex_lock(&(mutex));                                                                                                      \
    }                                                                                                                                      \
    static void mutex##_after_fork(void)                                                                                                   \
    {                                                                                                                                      \
        pthread_mutex_unlock(&(mutex));                                                                                                    \
    }                                                                                                                                      \
    __attribute__((constructor)) static void mutex##_at_load(void)                                                                         \
    {                                                                                                                                      \
        pthread_atfork(mutex##_before_fork, mutex##_after_fork, mutex##_after_fork);                                                       \
    }

#endif
