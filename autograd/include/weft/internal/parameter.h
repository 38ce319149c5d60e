/* SPDX-License-Identifier: MIT */
/* Making parameters, for the room nn. */
#ifndef WEFT_INTERNAL_PARAMETER_H
#define WEFT_INTERNAL_PARAMETER_H

#include <weft/op.h>

size_t wf_parameter_size(void); /* bytes of a parameter's tensor */
wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info);

#endif
