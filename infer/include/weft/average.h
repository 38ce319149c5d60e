/* SPDX-License-Identifier: MIT */
/* The average of a run's last checkpoints, which often translates better than each of them (Vaswani et al. 2017, 6.1). */
#ifndef WEFT_AVERAGE_H
#define WEFT_AVERAGE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Writes the folder `out` with config.json, the tokenizers, and as model.safetensors the mean, computed in double, of the last `last`
 * checkpoints/step-*.safetensors of the run. It can be used like any run, but training cannot be resumed from it. model.safetensors is
 * written last: without it the folder is incomplete. *step (may be NULL): the step of the last checkpoint.
 * Fewer checkpoints than `last` are WF_ERR_ARGUMENT with their number; checkpoints that differ in names or shapes WF_ERR_FORMAT; an `out`
 * with the state of a training, or with a model that is not an average, WF_ERR_EXISTS. */
WF_API wf_status wf_average(const char *folder, int64_t last, const char *out, int64_t *step, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
