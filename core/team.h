/* SPDX-License-Identifier: MIT */
/* The library's worker threads: one team for the life of the library, to which one caller at a time posts a job. */
#ifndef WEFT_TEAM_H
#define WEFT_TEAM_H

#include <weft/error.h>

typedef void team_job(void *ctx, int worker);

/* Takes the team for the calling thread; it starts if it is not there (after a fork, or before wf_init). False: another caller has it, or
 * there are no workers. */
bool team_take(void);
void team_give_back(void);
/* By the caller that has the team: calls job(ctx, 0) on the calling thread, and job(ctx, worker) on at most `helpers` workers, those that
 * come before the call on the calling thread ends. A worker that wakes up late is not waited for. */
void team_run(int helpers, team_job *job, void *ctx);
/* The same on every worker, once each: the caller waits for all. */
void team_run_all(team_job *job, void *ctx);

/* Ends the team and starts one of `workers` threads, after the job that runs; calls changed(workers) before another job can begin. Fewer
 * are there if the system refuses threads. */
void team_restart(int workers, void (*changed)(int workers));
/* Whether the calling thread runs a job, as the caller or as a worker. */
bool team_inside(void);

#endif
