/* SPDX-License-Identifier: MIT */
/* The check of an op's `gradient`: it must give what `backward` gives, and be differentiable itself. */
#include <stdio.h>

#include <weft/internal/ops_all.h>
#include <weft/ops.h>

#include "gradcheck.h"

/* --- as backward gives it ------------------------------------------------------------------------------------------- */

/* Runs the op on operands in the layout, and compares the gradients of wf_gradients with .create_graph with those of the plain run. */
static wf_status as_backward(struct check *k, enum layout layout, const char *situation)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS], *x[WF_MAX_INPUTS], *g[WF_MAX_INPUTS];
    int input[WF_MAX_INPUTS], count = 0;
    wf_status status = check_operands(k, k->mode, ~0u, layout, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *loss = check_weighted_sum(k, k->fn(k->ctx, k->tape, operand));
    for (int i = 0; i < k->inputs; i++)
        if (check_has_gradient(&k->in[i])) {
            input[count] = i;
            x[count++] = operand[i];
        }
    if (wf_gradients(loss, count, x, g, .create_graph = true) != WF_OK)
        return check_status(k, situation);
    for (int n = 0; n < count && status == WF_OK; n++) {
        wf_array view;
        if (wf_view(g[n], &view) != WF_OK)
            return check_status(k, situation);
        status = check_same(k, situation, ".gradient of input", input[n], &view, k->in[input[n]].grad);
    }
    return status;
}

/* --- its own gradient ------------------------------------------------------------------------------------------------- */

/* All gradients of the op, flat in one vector, for a gradient dy of its result, which is the input after the op's own. */
static wf_tensor *gradients_of_op(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    const struct applied *a = ctx;
    wf_tensor *y = wf_apply(a->op, a->attr, a->inputs, in), *x[WF_MAX_INPUTS], *g[WF_MAX_INPUTS], *parts[WF_MAX_INPUTS];
    int count = 0;
    for (int i = 0; i < a->inputs; i++)
        if (in[i] && wf_dtype_of(in[i]) == WF_REAL && !(a->constant >> i & 1))
            x[count++] = in[i];
    if (wf_gradients(y, count, x, g, .create_graph = true, .gradient = in[a->inputs]) != WF_OK)
        return wf_tape_fail(tape, WF_ERR_STATE, "a gradient failed"); /* the first error stays */
    wf_tensor *zero = wf_sum(wf_scale(in[a->inputs], 0)); /* so that a gradient reaches all inputs, also if the op is linear in them */
    for (int n = 0; n < count; n++)
        zero = wf_add(zero, wf_sum(wf_scale(x[n], 0)));
    for (int n = 0; n < count; n++)
        parts[n] = wf_add(wf_reshape(g[n], -1), zero);
    return wf_concat(parts, count, 0);
}

static wf_status differentiable(const struct check *k, const struct wf_gradcheck_options *options)
{
    struct applied applied = *(const struct applied *)k->ctx;
    char what[200];
    snprintf(what, sizeof what, "%s, gradient of its .gradient", k->what);
    struct check second = {.fn = gradients_of_op,
                           .ctx = &applied,
                           .what = what,
                           .mode = k->mode,
                           .inputs = k->inputs + 1,
                           .differentiates = true,
                           .error = k->error};
    for (int i = 0; i < k->inputs; i++) {
        second.in[i] =
            (struct check_input){.shape = k->in[i].shape, .fill = k->in[i].fill, .limit = k->in[i].limit, .constant = k->in[i].constant};
        applied.constant |= (unsigned)k->in[i].constant << i;
    }
    second.in[k->inputs] = (struct check_input){.shape = k->result_shape, .fill = WF_FILL_NORMAL};
    struct wf_gradcheck_options o = options ? *options : (struct wf_gradcheck_options){0};
    /* Gradients of long rows are sums that cancel, so rounding shows with small steps, and steep functions bend with large ones. */
    if (o.step == 0)
        o.step = 5e-5;
    if (o.tolerance == 0)
        o.tolerance = 1e-5;
    wf_status status = check_begin(&second, &o);
    if (status == WF_OK)
        status = check_plain_run(&second);
    if (status == WF_OK)
        status = check_numeric(&second);
    check_end(&second);
    return status;
}

wf_status check_gradient(struct check *k, const struct wf_gradcheck_options *options)
{
    bool any = false;
    for (int i = 0; i < k->inputs; i++)
        any = any || (check_has_gradient(&k->in[i]) && k->in[i].count > 0);
    wf_status status = as_backward(k, LAYOUT_CONTIGUOUS, "with .create_graph");
    if (status == WF_OK)
        status = as_backward(k, LAYOUT_SLICED, "with .create_graph, sliced operands");
    /* Differences in float are too coarse for second derivatives. */
    if (status == WF_OK && sizeof(wf_real) == 8 && any && k->inputs < WF_MAX_INPUTS)
        status = differentiable(k, options);
    return status;
}
