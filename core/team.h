/* SPDX-License-Identifier: MIT */
/* The library's worker threads: one team for the life of the library, to which one caller at a time posts a job. */
#ifndef WEFT_TEAM_H
#define WEFT_TEAM_H

#include <weft/error.h>

typedef void team_job(void *ctx, int worker);

/* Takes the team for the calling thread, and starts it if there is none (after a fork, or before wf_init). False: another caller has it, or
 * there are no workers. */
bool team_take(void);
void team_give_back(void);
/* By the caller that has the team: calls job(ctx, 0) on the calling thread and job(ctx, worker) on at most `helpers` workers. A worker
 * takes part only if it comes before job(ctx, 0) returns. */
void team_run(int helpers, team_job *job, void *ctx);
/* The same on every worker, once each: the caller waits for all. */
void team_run_all(team_job *job, void *ctx);

/* Waits for the job that runs, ends the team, starts one of `workers` threads (fewer if the system refuses some), and calls
 * changed(workers) before another job can begin. */
void team_restart(int workers, void (*changed)(int workers));
/* Whether the calling thread runs a job, as the caller or as a worker. */
bool team_inside(void);

#endif
