/* SPDX-License-Identifier: MIT */
/* logaddexp: the sum of two numbers that are kept as logarithms, with broadcasting. */
#include <math.h>

#include "common.h"

enum { PIECE = 512 }; /* elements for which the stack has room */

/* y = ln(e^a + e^b) = max(a, b) + ln(1 + e^-|a - b|), without overflow. The difference of equal infinities counts as 0. y may be a or b. */
static void add_pieces(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)
{
    wf_real larger[PIECE];
    for (int64_t done = 0, now; done < n; done += now) {
        const wf_real *a = in[0] + done, *b = in[1] + done, *at = y + done;
        now = WF_MIN(n - done, PIECE);
        wf_kernel->internal->maximum(now, a, 1, b, 1, larger);
        for (int64_t i = 0; i < now; i++)
            y[done + i] = a[i] < b[i] ? a[i] - b[i] : a[i] == b[i] ? 0 : b[i] - a[i];
        wf_kernel->internal->softplus(ctx, now, &at, y + done);
        wf_kernel->add(now, larger, 1, at, 1, y + done);
    }
}

/* The gradient of one operand, x, where the other is z: dy s(x - z) with the sigmoid s. If both are -inf, it is 0, as that of logsumexp. */
static void grad_pieces(const void *ctx, int64_t n, const wf_real *const in[], wf_real *dx)
{
    wf_real slope[PIECE];
    (void)ctx;
    for (int64_t done = 0, now; done < n; done += now) {
        const wf_real *x = in[0] + done, *z = in[1] + done;
        now = WF_MIN(n - done, PIECE);
        for (int64_t i = 0; i < now; i++)
            slope[i] = x[i] != z[i] ? x[i] - z[i] : x[i] > -(wf_real)INFINITY ? 0 : x[i];
        wf_kernel->sigmoid(now, slope, slope);
        wf_kernel->mul(now, slope, 1, in[2] + done, 1, dx + done);
    }
}

static wf_status logaddexp_forward(wf_call *c)
{
    const wf_real beta = 1; /* of softplus */
    return wf_map(add_pieces, &beta, 2, (const wf_array *const[]){&c->in[0], &c->in[1]}, &c->out[0], 0.8);
}

static wf_status logaddexp_backward(wf_call *c)
{
    const wf_shape shape = wf_array_shape(&c->out[0]);
    wf_status status = WF_OK;
    for (int i = 0; i < 2 && status == WF_OK; i++)
        if (c->need[i]) {
            wf_array g = wf_call_temp(c, WF_REAL, &shape);
            status = wf_map(grad_pieces, NULL, 3, (const wf_array *const[]){&c->in[i], &c->in[1 - i], &c->dout[0]}, &g, 0.5);
            wf_grad_give(c, i, &g);
        }
    return status;
}

static void logaddexp_gradient(const wf_gradient_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->need[i]) {
            wf_tensor *x = c->x[i], *z = c->x[1 - i], *infinite = wf_and(wf_eq(x, z), wf_not(wf_isfinite(x)));
            wf_tensor *slope = wf_sigmoid(wf_masked_fill(wf_subtract(x, z), infinite, 0));
            c->dx[i] = wf_mul(c->dy[0], wf_masked_fill(slope, wf_and(infinite, wf_lt_constant(x, 0)), 0));
        }
}

const wf_op wf_op_logaddexp = {.name = "logaddexp",
                               .operands = "a b",
                               .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
                               .shape = wf_broadcast_shape,
                               .forward = logaddexp_forward,
                               .backward = logaddexp_backward,
                               .gradient = logaddexp_gradient,
                               .cases =
                                   WF_CASES({"one shape", {{3, 5}, {3, 5}}}, {"row", {{4, 5}, {5}}}, {"column", {{4, 5}, {4, 1}}},
                                            {"outer", {{4, 1}, {1, 5}}}, {"scalar", {{3, 7}, {-2}}}, {"scalar on the left", {{-2}, {3, 7}}},
                                            {"scalars", {{-2}, {-2}}}, {"empty", {{-1, 3}, {1, 3}}}, {"odd", {{13, 17}, {13, 17}}},
                                            {"long", {{3, 701}, {701}}}, {"six dims", {{2, 1, 2, 1, 2, 3}, {1, 2, 1, 2, 2, 1}}})};

wf_tensor *wf_logaddexp(wf_tensor *a, wf_tensor *b)
{
    return wf_apply(&wf_op_logaddexp, NULL, 2, (wf_tensor *[]){a, b});
}
