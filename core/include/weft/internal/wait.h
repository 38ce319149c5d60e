/* SPDX-License-Identifier: MIT */
/* Waiting for another thread. Most waits are shorter than a microsecond, so a thread spins first, and sleeps on a futex only later.
 * (wait.c) */
#ifndef WEFT_INTERNAL_WAIT_H
#define WEFT_INTERNAL_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The time in nanoseconds of a clock that never goes back. */
int64_t wf_nanoseconds(void);
/* Spins for at most some tens of microseconds. Returns true as soon as (*at & mask) is equal to `value` (different from `value` if `equal`
 * is false), and false after the spin. */
bool wf_spin_until(const _Atomic uint32_t *at, uint32_t mask, bool equal, uint32_t value);
/* futex(2). wf_futex_wait sleeps only if *at equals `value`, and may wake without a reason. wf_futex_wake wakes at most `count` threads
 * that sleep on `at`. */
void wf_futex_wait(const _Atomic uint32_t *at, uint32_t value);
void wf_futex_wake(const _Atomic uint32_t *at, int count);

/* Counts tasks down; threads can wait until no task is left. Initialise it with zeros. */
struct wf_countdown {
    _Atomic uint32_t left;     /* number of tasks that have not ended */
    _Atomic uint32_t sleepers; /* number of threads that sleep until `left` is 0 */
};

/* Adds `change` to the number of tasks and returns the new number. A negative `change` reports tasks that have ended; the call that
 * makes the number 0 wakes the sleepers. */
uint32_t wf_countdown_add(struct wf_countdown *c, int change);
/* Returns when no task is left. */
void wf_countdown_wait(struct wf_countdown *c);

#endif
