/* SPDX-License-Identifier: MIT */
/* Stochastic gradient descent with or without momentum, in one pass over memory. */
#include "../simd.h"

struct step {
    vr grad_scale, momentum, lr, l2;
    bool nesterov;
};

V_INLINE void plain_part(int64_t i, int64_t count, wf_real *p, const wf_real *g, const struct step *s)
{
    vr old = v_get(p + i, count);
    vr grad = v_fma(s->l2, old, v_get(g + i, count) * s->grad_scale);
    v_put(p + i, v_fnma(s->lr, grad, old), count);
}

V_INLINE void momentum_part(int64_t i, int64_t count, wf_real *p, const wf_real *g, wf_real *b, const struct step *s)
{
    vr old = v_get(p + i, count);
    vr grad = v_fma(s->l2, old, v_get(g + i, count) * s->grad_scale);
    vr mean = v_fma(s->momentum, v_get(b + i, count), grad);
    v_put(b + i, mean, count);
    v_put(p + i, v_fnma(s->lr, s->nesterov ? v_fma(s->momentum, mean, grad) : mean, old), count);
}

void WF_KERNEL(sgd)(int64_t n, wf_real *p, const wf_real *g, wf_real *b, wf_real grad_scale, wf_real momentum, bool nesterov, wf_real lr,
                    wf_real l2)
{
    const struct step s = {v_set(grad_scale), v_set(momentum), v_set(lr), v_set(l2), nesterov};
    if (b)
        V_LOOP(n, momentum_part, p, g, b, &s);
    else
        V_LOOP(n, plain_part, p, g, &s);
}
