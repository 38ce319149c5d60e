/* SPDX-License-Identifier: MIT */
/* A team that is held: its threads stay within one region of OpenMP and wait for jobs, so that a job costs a fifth of what a region
 * costs. (hold.c) */
#ifndef WEFT_HOLD_H
#define WEFT_HOLD_H

#include <stdbool.h>

struct hold;

/* The team that the calling thread holds while it is in none of its jobs; else NULL. */
struct hold *hold_mine(void);
/* Whether its threads spin before they sleep. */
bool hold_spins(const struct hold *h);
/* Calls job(ctx, thread) on each thread of it, 0 being the caller, and returns when all have. */
void hold_run(struct hold *h, void (*job)(void *ctx, int thread), void *ctx);

#endif
