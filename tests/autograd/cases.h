/* SPDX-License-Identifier: MIT */
/* Tests that walk over all ops share these questions about an op and its cases. */
#ifndef TESTS_CASES_H
#define TESTS_CASES_H

#include <weft/internal/ops_all.h>
#include <weft/tape.h>

/* Whether the op's gradient is 0 everywhere, as that of sign: a factor of it, or its sign, makes no difference. */
static inline bool is_step(const wf_op *op)
{
    return op->backward == wf_op_sign.backward;
}

/* Whether operand i has a gradient in a case. */
static inline bool case_has_gradient(const struct wf_case *c, int i)
{
    wf_shape shape;
    return i < wf_case_operands(c) && wf_case_operand(c, i, &shape) && wf_fill_is_real(c->fill[i]) && !c->constant[i];
}

/* Whether operand i has a gradient in some case of the op. */
static inline bool operand_has_gradient(const wf_op *op, int i)
{
    for (int k = 0; k < op->cases.count && !op->constant && !is_step(op); k++)
        if (case_has_gradient(&op->cases.list[k], i))
            return true;
    return false;
}

/* An operand of what wf_case_fill has filled. */
static inline wf_tensor *case_tensor(wf_tape *on, enum wf_fill fill, const void *values, const wf_shape *shape, bool needs_grad)
{
    return fill == WF_FILL_IDS     ? wf_ids_of(on, values, shape)
           : fill == WF_FILL_BOOLS ? wf_bools(on, values, shape)
                                   : wf_input(on, values, shape, needs_grad);
}

#endif
