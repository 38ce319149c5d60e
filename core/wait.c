/* SPDX-License-Identifier: MIT */
/* Waits for other threads by spins and futexes (weft/internal/wait.h). */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weft/internal/wait.h>

/* Spins are short, because a thread that spins uses up processor time that the system would grant it for the next job. With other busy
 * programs, spins of 500 microseconds make a training step twice as slow; without other programs they gain nothing (bench/neighbours). A
 * spin looks at the value LOOKS times between two readings of the clock. */
enum { SPIN_NS = 50000, LOOKS = 16 };

static inline void pause_core(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

int64_t wf_nanoseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool wf_spin_until(const _Atomic uint32_t *at, uint32_t mask, bool equal, uint32_t value)
{
    for (int64_t time = 0, end = 0; time <= end; time = wf_nanoseconds(), end = end == 0 ? time + SPIN_NS : end)
        for (int i = 0; i < LOOKS; i++) {
            if (((atomic_load_explicit(at, memory_order_acquire) & mask) == value) == equal)
                return true;
            pause_core();
        }
    return false;
}

void wf_futex_wait(const _Atomic uint32_t *at, uint32_t value)
{
    const int error = errno; /* a program may read errno after a call of the library that waited here */
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    errno = error;
}

void wf_futex_wake(const _Atomic uint32_t *at, int count)
{
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* A waiter increments `sleepers`, then reads `left`. The thread that ends work decrements `left`, then reads `sleepers`. All four
 * accesses are seq_cst, so at least one of the threads sees the other's write, and no wake-up is lost. */
uint32_t wf_countdown_add(struct wf_countdown *c, int change)
{
    const uint32_t left = atomic_fetch_add(&c->left, (uint32_t)change) + (uint32_t)change;
    if (left == 0 && change < 0 && atomic_load(&c->sleepers) > 0)
        wf_futex_wake(&c->left, INT_MAX);
    return left;
}

void wf_countdown_wait(struct wf_countdown *c)
{
    if (wf_spin_until(&c->left, UINT32_MAX, true, 0))
        return;
    atomic_fetch_add(&c->sleepers, 1);
    for (uint32_t left; (left = atomic_load(&c->left)) != 0;)
        wf_futex_wait(&c->left, left);
    atomic_fetch_sub(&c->sleepers, 1);
}
