/* SPDX-License-Identifier: MIT */
/* wf_hvp and wf_jvp: products of derivatives and vectors, by gradients of gradients. */
#include <string.h>

#include <weft/internal/shape.h>
#include <weft/ops.h>

#include "engine.h"

/* The sum over i of <g[i], v[i]>; poison with an error that names `call` if a v[i] is missing or has another shape than x[i]. */
static wf_tensor *recorded_product(const char *call, wf_tape *tape, int count, wf_tensor *const x[], wf_tensor *const g[],
                                   wf_tensor *const v[])
{
    wf_tensor *sum = NULL;
    for (int i = 0; i < count; i++) {
        if (!v[i])
            return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: v[%d] is NULL", call, i);
        wf_shape have = wf_shape_of(v[i]), want = wf_shape_of(x[i]);
        char text[2][96];
        if (!wf_is_poison(v[i]) && !wf_shape_equal(&have, &want))
            return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: v[%d] has shape %s, but '%s' has shape %s", call, i,
                                wf_shape_text(&have, text[0], sizeof text[0]), wf_name_of(x[i]),
                                wf_shape_text(&want, text[1], sizeof text[1]));
        wf_tensor *term = wf_sum(wf_mul(g[i], wf_detach(v[i])));
        sum = sum ? wf_add(sum, term) : term;
    }
    return sum;
}

/* The same, recorded also where the caller records nothing. */
static wf_tensor *product(const char *call, wf_tape *tape, int count, wf_tensor *const x[], wf_tensor *const g[], wf_tensor *const v[])
{
    const bool no_grad = wf_tape_no_grad(tape, false);
    wf_tensor *sum = recorded_product(call, tape, count, x, g, v);
    wf_tape_no_grad(tape, no_grad);
    return sum;
}

/* The gradients of a sum by x; zeros where it depends on nothing that needs a gradient, as when the first derivatives are constants. */
static wf_status gradients_or_zeros(wf_tape *tape, wf_tensor *sum, int count, wf_tensor *const x[], wf_tensor *out[], bool create_graph)
{
    if (!wf_is_poison(sum) && sum->needs_grad)
        return wf_gradients(sum, count, x, out, .create_graph = create_graph, .retain = true, .allow_unused = true);
    for (int i = 0; i < count; i++) {
        wf_shape shape = wf_shape_of(x[i]);
        out[i] = wf_is_poison(sum) ? &tape->poison : wf_zeros(tape, &shape);
    }
    return tape->error.code;
}

/* The tape of y. NULL, with every result poison, if there is none or an argument is missing. */
static wf_tape *begin(const char *call, const wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *const v[], wf_tensor *out[],
                      int results)
{
    wf_tape *tape = wf_tape_of(y);
    for (int i = 0; i < results && out; i++)
        out[i] = tape ? &tape->poison : &tapeless_poison;
    if (!tape) {
        if (!y)
            wf_tape_fail(NULL, WF_ERR_ARGUMENT, "%s: y is NULL", call);
        return NULL;
    }
    if (tape->error.code == WF_OK && (count < 1 || !x || !v || !out))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: no tensors are given, or no vectors, or no places for the results", call);
    return tape->error.code == WF_OK ? tape : NULL;
}

static wf_status failed(const wf_tensor *y)
{
    const wf_tape *tape = wf_tape_of(y);
    return tape ? tape->error.code : y ? WF_ERR_STATE : WF_ERR_ARGUMENT;
}

wf_status wf_hvp_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *const v[], wf_tensor *hv[],
                      const struct wf_backward_options *options)
{
    wf_tape *tape = begin("wf_hvp", y, count, x, v, hv, count);
    wf_tensor **g = tape ? wf_tape_memory(tape, (size_t)count * sizeof *g) : NULL;
    if (!g)
        return failed(y);
    if (wf_gradients(y, count, x, g, .create_graph = true, .allow_unused = true) != WF_OK)
        return tape->error.code;
    return gradients_or_zeros(tape, product("wf_hvp", tape, count, x, g, v), count, x, hv, options && options->create_graph);
}

wf_status wf_jvp_with(wf_tensor *y, int count, wf_tensor *const x[], wf_tensor *const v[], wf_tensor **jv,
                      const struct wf_backward_options *options)
{
    wf_tape *tape = begin("wf_jvp", y, count, x, v, jv, 1);
    wf_tensor **g = tape ? wf_tape_memory(tape, (size_t)count * sizeof *g) : NULL;
    if (!g)
        return failed(y);
    /* The gradients of y by x for a gradient u of y are J^T u: linear in u. So their derivative along v, by u, is J v, for any u. */
    wf_shape shape = wf_shape_of(y);
    wf_real *zeros = wf_tape_memory(tape, (size_t)(wf_shape_count(&shape) + 1) * sizeof *zeros);
    if (!zeros)
        return tape->error.code;
    memset(zeros, 0, (size_t)wf_shape_count(&shape) * sizeof *zeros);
    wf_tensor *u = wf_input(tape, zeros, &shape, true);
    if (wf_gradients(y, count, x, g, .gradient = u, .create_graph = true, .allow_unused = true) != WF_OK)
        return tape->error.code;
    return gradients_or_zeros(tape, product("wf_jvp", tape, count, x, g, v), 1, &u, jv, options && options->create_graph);
}
