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
 * wf_fit and wf_train use all processes without further calls. Every function also works in a program that is started alone: its rank is 0
 * and the world size is 1.
 *
 * All ranks call the same functions in the same order, each from one thread, with the same sizes. If a rank may fail between two calls, all
 * ranks call wf_dist_agree between these calls; without it, the other ranks would wait for the failed rank. If a rank exits with a code
 * other than 0 and the ranks have not agreed on an error by wf_dist_agree, all ranks are aborted.
 *
 * Results have the same bits on every rank, in every run and with any MPI library. Since MPI promises no order of additions, Weft uses MPI
 * only for messages and adds the numbers itself. */
#ifndef WEFT_DIST_H
#define WEFT_DIST_H

#include <weft/core.h>

WF_BEGIN_DECLS

typedef struct wf_dist wf_dist;

/* Returns the world: all processes that were started together with this one. The first call opens the connection between them, which is
 * closed when the program exits. On failure returns NULL and sets *error. WF_ERR_STATE: Weft has no plug-in for the MPI library of the
 * launcher (mpirun or srun), MPI does not start, or MPI has another world size than the launcher. WF_ERR_MEMORY: there is no memory. */
WF_API wf_dist *wf_dist_world(wf_error *error);
/* Returns the rank of this process, 0 .. size - 1, or 0 if `dist` is NULL. */
WF_API int wf_dist_rank(const wf_dist *dist);
/* Returns the world size, or 1 if `dist` is NULL. */
WF_API int wf_dist_size(const wf_dist *dist);
/* Returns the rank of this process among the processes of its node, or 0 if `dist` is NULL. */
WF_API int wf_dist_local_rank(const wf_dist *dist);

/* Sets the watch, which reports long waits. If a rank was stopped (SIGSTOP) or its machine is lost, the other ranks wait silently. With a
 * watch, `waits` is called once in each wait that takes longer than `seconds` (0: 60). The waiting thread calls it, with a line that names
 * the late ranks: "waiting for rank 2 since 60 s: is its process stopped?". After the call the wait goes on. `waits` must not call
 * functions of this header.
 *
 * If `watch` is NULL or its `waits` is NULL, nothing is reported; this is the default. Returns the watch that was set before. While wf_fit
 * and wf_train run, they set another watch, which reports the waits of rank 0 as WF_EVENT_WARNING; the `seconds` of this watch are
 * those of the program's watch. */
struct wf_dist_watch {
    double seconds;
    void (*waits)(void *ctx, const char *text);
    void *ctx; /* is passed to `waits` */
};
WF_API struct wf_dist_watch wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch);

/* In the following functions, WF_ERR_STATE means that a message between ranks has failed. The ranks are then out of step, and all further
 * messages fail. WF_ERR_ARGUMENT means that an argument is invalid. */

/* Waits until all ranks have called this function. */
WF_API wf_status wf_dist_barrier(wf_dist *dist, wf_error *error) WF_CHECKED;
/* Copies data[bytes] of rank `root` into `data` on all ranks. */
WF_API wf_status wf_dist_broadcast(wf_dist *dist, void *data, int64_t bytes, int root, wf_error *error) WF_CHECKED;
/* Gathers mine[bytes] of all ranks into all[size][bytes] on all ranks, in the order of the ranks. */
WF_API wf_status wf_dist_all_gather(wf_dist *dist, const void *mine, int64_t bytes, void *all, wf_error *error) WF_CHECKED;
/* Replaces each element of data[count], on all ranks, by the sum of this element over all ranks. The additions form a binary tree over the
 * ranks, ((0 + 1) + (2 + 3)) + ... . In a tree of n ranks, the left branch has as many ranks as the largest power of two below n. */
WF_API wf_status wf_dist_sum(wf_dist *dist, wf_real *data, int64_t count, wf_error *error) WF_CHECKED;
/* Gives all ranks the same outcome. Each rank passes its status and, unless that is WF_OK, a message in *error. If ranks have failed, all
 * ranks return the status, and get the message, of the failed rank with the smallest number. The message begins with this number, "rank 2:
 * ...", unless it is 0. */
WF_API wf_status wf_dist_agree(wf_dist *dist, wf_status status, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
