/* SPDX-License-Identifier: MIT */
/* The shape function and the forward of an op that copies its first operand. */
#ifndef TESTS_COPY_OP_H
#define TESTS_COPY_OP_H

#include <weft/op.h>

static inline wf_status like_first(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static inline wf_status copy_first(wf_call *c)
{
    wf_array_copy(&c->out[0], &c->in[0]);
    return WF_OK;
}

#endif
