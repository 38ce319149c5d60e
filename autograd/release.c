/* SPDX-License-Identifier: MIT */
/* wf_release: the user releases a value before the pass ends. If only backwards that compute products in bf16 will read it, they get it in
 * bf16, and it takes half the memory until then. */
#include <weft/internal/bf16.h>

#include "engine.h"

/* Values of at most SMALL bytes stay as they are, because their memory is not worth the time. */
enum { SMALL = 4096 };

static void round_value(wf_tape *tape, wf_tensor *x)
{
    const int64_t count = wf_array_count(&x->a);
    struct buffer *b = pool_take(tape, (size_t)count * wf_dtype_size(WF_BF16));
    if (!b) {
        wf_error_clear(&tape->error); /* the value stays as it is */
        return;
    }
    wf_bf16_keep(count, x->a.data, b->data);
    pool_release(tape, x->buffer);
    x->buffer = b;
    x->rounded = true;
    tape->events++; /* so that a rewind to a mark before this call, which would drop the buffer, is refused */
}

wf_array value_for_backward(wf_tensor *x)
{
    const wf_tensor *root = value_root(x);
    wf_array a = x->a;
    if (!root->rounded)
        return a;
    const int64_t offset = (const wf_real *)a.data - (const wf_real *)root->a.data;
    a.dtype = WF_BF16;
    a.data = (uint16_t *)root->buffer->data + offset;
    return a;
}

void wf_release(wf_tensor *x)
{
    if (!x || x->kind != TENSOR_INNER || !x->tape || x->tape->error.code != WF_OK)
        return;
    wf_tape *tape = x->tape;
    wf_tensor *root = value_root(x);
    if (x->generation == tape->generation && (x->value != VALUE_LIVE || value_is_released(root)))
        return;
    if (x->generation == 0)
        return; /* a rewind has dropped it */
    if (!tape_accepts(tape, "wf_release", x))
        return;
    x->value = VALUE_FOR_BACKWARD;
    if (!x->buffer)
        return; /* x is a view */
    if (x->readers == 0) {
        x->value = VALUE_USER_RELEASED;
        pool_release(tape, x->buffer);
        return;
    }
    /* A checkpoint that runs for the first time may still become a reader. A mark of a loop without gradients must stay valid. */
    const bool now = tape->to_repeat == 0 && !tape->no_grad && x->a.dtype == WF_REAL;
    if (now && x->readers == x->rounding && (x->buffer->bytes > SMALL || tape->erase))
        round_value(tape, x);
}
