/* SPDX-License-Identifier: MIT */
/* wf_release: the user releases a value before the pass ends. */
#include "engine.h"

void wf_release(wf_tensor *x)
{
    if (!x || x->kind != TENSOR_INNER || !x->tape || x->tape->error.code != WF_OK)
        return;
    wf_tape *tape = x->tape;
    wf_tensor *root = value_root(x);
    if (x->generation == tape->generation && (x->value != VALUE_LIVE || value_is_released(root)))
        return;
    if (!tape_accepts(tape, "wf_release", x))
        return;
    x->value = VALUE_FOR_BACKWARD;
    if (!x->buffer || x->readers > 0)
        return; /* x is a view, or a backward will read the value and release it then */
    x->value = VALUE_USER_RELEASED;
    pool_release(tape, x->buffer);
}
