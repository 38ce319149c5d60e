/* SPDX-License-Identifier: MIT */
/* The ops of ops.def by number: how many there are, and the descriptor of each. */
#include <weft/internal/ops_all.h>

static const wf_op *const ops[] = {
#define OP(name) &wf_op_##name,
#include "ops.def"
#undef OP
};

int wf_op_count(void)
{
    return (int)(sizeof ops / sizeof *ops);
}

const wf_op *wf_op_at(int index)
{
    return index >= 0 && index < wf_op_count() ? ops[index] : NULL;
}
