/* SPDX-License-Identifier: MIT */
/* Waiting for another thread, which is mostly there within a microsecond: in a short spin, then asleep on a futex. (wait.c) */
#ifndef WEFT_INTERNAL_WAIT_H
#define WEFT_INTERNAL_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Of a clock that never goes back. */
int64_t wf_nanoseconds(void);
/* Whether (*at & mask) has become equal to `value`, or different from it, within the time of a spin: some tens of microseconds. */
bool wf_spin_until(const _Atomic uint32_t *at, uint32_t mask, bool equal, uint32_t value);
/* futex(2): sleeps unless *at differs from `value`, perhaps for no reason; wakes at most `count` threads that sleep there. */
void wf_futex_wait(const _Atomic uint32_t *at, uint32_t value);
void wf_futex_wake(const _Atomic uint32_t *at, int count);

/* The number of tasks that are left, and the number of threads that sleep until none is. Zero at first. */
struct wf_countdown {
    _Atomic uint32_t left, sleepers;
};

/* Adds to what is left. A negative `change` reports work as done; the last such call wakes the sleepers. Returns what is left. */
uint32_t wf_countdown_add(struct wf_countdown *c, int change);
/* Returns when nothing is left. */
void wf_countdown_wait(struct wf_countdown *c);

#endif
