/* SPDX-License-Identifier: MIT */
/* Declares the descriptor of every line of ops.def. */
#ifndef WEFT_INTERNAL_OPS_ALL_H
#define WEFT_INTERNAL_OPS_ALL_H

#include <weft/op.h>

#define OP(name) extern const wf_op wf_op_##name;
#include "../../../ops.def"
#undef OP

#endif
