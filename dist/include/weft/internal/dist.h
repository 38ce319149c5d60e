/* SPDX-License-Identifier: MIT */
/* For the rooms that train on several processes. */
#ifndef WEFT_INTERNAL_DIST_H
#define WEFT_INTERNAL_DIST_H

#include <weft/dist.h>
#include <weft/internal/transport.h>

WF_BEGIN_DECLS

/* Sends `out` and receives `in`, and returns when both are done. Nothing with one process. */
wf_status wf_dist_exchange(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins, wf_error *error);
/* Between begin and end a process that exits ends them all: the others would wait for it. */
void wf_dist_together(wf_dist *dist, bool begin);
/* wf_dist_agree, where the failure of the greatest weight is told, of the lowest rank among equals: one that only echoes another's weighs
 * less. *sent: false where the processes could not tell each other. */
wf_status wf_dist_agree_as(wf_dist *dist, wf_status status, int weight, bool *sent, wf_error *error);

WF_END_DECLS

#endif
