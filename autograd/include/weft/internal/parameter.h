/* SPDX-License-Identifier: MIT */
/* Making parameters, for the room nn. */
#ifndef WEFT_INTERNAL_PARAMETER_H
#define WEFT_INTERNAL_PARAMETER_H

#include <weft/op.h>

/* Of a registry's values, shared by all its parameters. */
struct wf_values_use {
    uint64_t updates; /* how often values were replaced, by a load or wf_parameter_set: as wf_grads.updates, which optimisers count */
};

size_t wf_parameter_size(void); /* bytes of a parameter's tensor */
wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info);

#endif
