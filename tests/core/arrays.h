/* SPDX-License-Identifier: MIT */
#ifndef WEFT_TEST_ARRAYS_H
#define WEFT_TEST_ARRAYS_H

#include "check_weft.h"

#include <weft/ops.h>

/* An array of wf_real without gaps: REALS(data, size, ...). */
#define REALS(data, ...) wf_array_contiguous(data, WF_REAL, WF_SHAPE(__VA_ARGS__))

#endif
