/* SPDX-License-Identifier: MIT */
/* Several processes of one program, which mpirun or srun started:
 *
 *   mpirun -n 4 ./program
 *
 *   wf_dist *dist = wf_dist_world(&error);
 *   ...
 *   wf_dist_sum(dist, values, count, &error);
 *   if (wf_dist_rank(dist) == 0) ...
 *
 * wf_fit and wf_train use them without being asked. A program that is started alone has rank 0 and a world size of 1, and every function
 * works.
 *
 * Each rank calls the same functions in the same order, from one thread, with the same sizes. A rank that fails between two calls must not
 * leave the others waiting: call wf_dist_agree. A rank that exits with a code other than 0, before such an agreement, ends all of them.
 * Results have the same bits on every rank, each time, with any MPI: Weft adds the numbers, since MPI promises no order. */
#ifndef WEFT_DIST_H
#define WEFT_DIST_H

#include <weft/core.h>

WF_BEGIN_DECLS

typedef struct wf_dist wf_dist;

/* The processes that were started together with this one. The first call opens the connection; it closes when the program exits. NULL with
 * *error, WF_ERR_STATE: there is no plug-in for the MPI of the launcher, the MPI does not start, or its world size is not the launcher's.
 */
WF_API wf_dist *wf_dist_world(wf_error *error);
WF_API int wf_dist_rank(const wf_dist *dist);       /* 0 .. size - 1; NULL: 0 */
WF_API int wf_dist_size(const wf_dist *dist);       /* NULL: 1 */
WF_API int wf_dist_local_rank(const wf_dist *dist); /* among those of this node */

/* Reports long waits. A rank that was stopped (SIGSTOP), or whose machine is lost, leaves the others waiting silently. `waits` is called
 * once in each wait that takes longer than `seconds` (0: 60), by the waiting thread, with a line that names the late ranks: "waiting for
 * rank 2 since 60 s: is its process stopped?". Then the wait goes on. `waits` calls no function of this header. watch NULL, or without
 * `waits` (the default): nothing is reported. Returns the former watch. While wf_fit and wf_train run they set their own, which reports
 * rank 0's waits as WF_EVENT_WARNING after the same `seconds`. */
struct wf_dist_watch {
    double seconds;
    void (*waits)(void *ctx, const char *text);
    void *ctx;
};
WF_API struct wf_dist_watch wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch);

/* Returns when all processes have called it. */
WF_API wf_status wf_dist_barrier(wf_dist *dist, wf_error *error) WF_CHECKED;
/* data[bytes] of process `root` to all. */
WF_API wf_status wf_dist_broadcast(wf_dist *dist, void *data, int64_t bytes, int root, wf_error *error) WF_CHECKED;
/* mine[bytes] of all processes to all: all[size][bytes], in the order of the ranks. */
WF_API wf_status wf_dist_all_gather(wf_dist *dist, const void *mine, int64_t bytes, void *all, wf_error *error) WF_CHECKED;
/* data[count] becomes the sum over all processes, on each: added as a binary tree over the ranks, ((0 + 1) + (2 + 3)) + ..., whose left
 * half is the largest power of two that is smaller than the number of ranks. */
WF_API wf_status wf_dist_sum(wf_dist *dist, wf_real *data, int64_t count, wf_error *error) WF_CHECKED;
/* One outcome for all ranks. Each gives its status, with a message in *error unless it is WF_OK. If ranks have failed, all get the status
 * and the message of the lowest of them; unless that is rank 0 the message begins with it: "rank 2: ...". */
WF_API wf_status wf_dist_agree(wf_dist *dist, wf_status status, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
