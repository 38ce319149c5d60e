/* SPDX-License-Identifier: MIT */
/* The team: the library's worker threads. One caller at a time has the team and gives it jobs. */
#ifndef WEFT_TEAM_H
#define WEFT_TEAM_H

#include <weft/error.h>

typedef void team_job(void *ctx, int worker);

/* Gives the team to the calling thread. If there is no team (after a fork, or before wf_init), starts one first. Returns false if another
 * caller has the team, or if the team has no workers. */
bool team_take(void);
void team_give_back(void);
/* Called by the caller that has the team: calls job(ctx, 0) on the calling thread and job(ctx, worker) on at most `helpers` workers. A
 * worker takes part only if it arrives before job(ctx, 0) returns. */
void team_run(int helpers, team_job *job, void *ctx);
/* Calls job once on every worker and on the calling thread, and waits for all. */
void team_run_all(team_job *job, void *ctx);

/* Waits for the running job, ends the team, starts a team of `workers` threads (fewer if the system refuses some), and calls
 * changed(workers) before another job can start. */
void team_restart(int workers, void (*changed)(int workers));
/* Whether the calling thread runs a job, as the caller or as a worker. */
bool team_inside(void);

#endif
