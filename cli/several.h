/* SPDX-License-Identifier: MIT */
/* Commands that mpirun starts several times, to work together: train, evaluate, translate. If one process fails, all fail, and the error is
 * printed once. */
#ifndef WEFT_CLI_SEVERAL_H
#define WEFT_CLI_SEVERAL_H

#include <weft/internal/several.h>

/* The processes that mpirun started; one without it. From here on only rank 0 prints. The code of *error is the status, the same on all:
 * WF_ERR_ARGUMENT if they run different commands ("train"). After an error they end, and call nothing more together. */
wf_dist *open_world(const char *command, wf_error *error);
/* `open` on the first process of each node, which writes the caches, and then on the others, which find them there. */
wf_status open_in_turn(wf_dist *dist, wf_status (*open)(void *ctx, wf_error *error), void *ctx, wf_error *error);

#endif
