/* SPDX-License-Identifier: MIT */
/* Averages the weights of a run's last checkpoints. The average often translates better than each single checkpoint (Vaswani et al. 2017,
 * section 6.1). */
#ifndef WEFT_AVERAGE_H
#define WEFT_AVERAGE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Averages the weights in the `last` newest checkpoints (checkpoints/step-*.safetensors) of the run `folder`, and writes the run folder
 * `out`. The mean is computed in double and written as model.safetensors; config.json and the tokenizers are copied from the
 * run. `out` can be used like any run, but training cannot be resumed from it. model.safetensors is written last, so a folder without that
 * file is incomplete. *step is set to the step of the newest checkpoint; `step` may be NULL.
 *
 * WF_ERR_ARGUMENT: the run has fewer than `last` checkpoints; the message says how many. WF_ERR_FORMAT: checkpoints differ in names or
 * shapes of their tensors. WF_ERR_EXISTS: `out` holds the state of a training, or a model that is not an average. */
WF_API wf_status wf_average(const char *folder, int64_t last, const char *out, int64_t *step, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
