/* SPDX-License-Identifier: MIT */
/* For commands that mpirun can start as several processes, which then work together: train, evaluate and translate. If one process fails,
 * all processes fail, and the error is printed once. */
#ifndef WEFT_CLI_SEVERAL_H
#define WEFT_CLI_SEVERAL_H

#include <weft/internal/several.h>

/* Opens the group of all processes that mpirun started; without mpirun the group is this process alone. Afterwards only rank 0 prints.
 * error->code is the status, which is the same on all processes: WF_ERR_ARGUMENT if they run different commands. `command` is the name of
 * this process's command, such as "train". After an error the processes must end and must not use the group. */
wf_dist *open_world(const char *command, wf_error *error);
/* Calls `open` first on one process of each machine, where it writes the caches, and afterwards on the other processes, where it finds
 * the caches ready. Returns the same status on all processes. */
wf_status open_in_turn(wf_dist *dist, wf_status (*open)(void *ctx, wf_error *error), void *ctx, wf_error *error);

#endif
