/* SPDX-License-Identifier: MIT */
/* The mean of a run's last checkpoints, which often translates better than any one of them (Vaswani et al. 2017, 6.1). */
#ifndef WEFT_AVERAGE_H
#define WEFT_AVERAGE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Writes the folder `out` with config.json, the tokenizers, and as model.safetensors the mean, taken in double, of the last `last`
 * checkpoints/step-*.safetensors of the run. It can be used as any run, but not be trained on. model.safetensors is written last: a
 * folder in which it is missing was not finished. *step (may be NULL): that of the last checkpoint.
 * Fewer checkpoints than asked for is WF_ERR_ARGUMENT with their number; weights of other names or shapes WF_ERR_FORMAT; an `out` that
 * holds a training's state, or a model that is no mean, WF_ERR_EXISTS. */
WF_API wf_status wf_average(const char *folder, int64_t last, const char *out, int64_t *step, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
