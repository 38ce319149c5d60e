/* SPDX-License-Identifier: MIT */
/* Waiting for another thread of a team, which is mostly there within a microsecond. */
#ifndef WEFT_INTERNAL_WAIT_H
#define WEFT_INTERNAL_WAIT_H

#include <sched.h>

/* A moment, in a loop that reads what another thread writes. */
static inline void wf_wait_a_moment(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* The same in the loop's round `spins`: after some it leaves the processor to another thread, which may be the one that is waited for. */
static inline void wf_wait(int spins)
{
    if (spins > 2000)
        sched_yield();
    wf_wait_a_moment();
}

#endif
