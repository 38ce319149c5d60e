/* SPDX-License-Identifier: MIT */
/* Locks and fork(). The child has only the calling thread, so a lock that another thread held at the fork would stay locked in the
 * child. */
#ifndef WEFT_INTERNAL_FORK_H
#define WEFT_INTERNAL_FORK_H

#include <pthread.h>

/* In the file of a static mutex, this macro makes fork() wait until the mutex is free, and leaves the mutex free in both processes. A
 * thread that holds the mutex must not call fork or lock another mutex that uses this macro. */
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
