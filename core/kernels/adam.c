/* SPDX-License-Identifier: MIT */
/* Adam and AdamW in one pass. The pass reads 4 arrays and writes 3, so the speed of memory limits it and the arithmetic costs no extra
 * time. */
#include "../simd.h"

struct step {
    vr grad_scale, beta1, rest1, beta2, rest2, eps, size, inv_bias2, keep, l2;
};

V_INLINE void adam_part(int64_t i, int64_t count, wf_real *p, const wf_real *g, wf_real *m, wf_real *v, const struct step *s)
{
    vr old = v_get(p + i, count);
    vr grad = v_fma(s->l2, old, v_get(g + i, count) * s->grad_scale);
    vr mean = v_fma(s->rest1, grad, s->beta1 * v_get(m + i, count));
    vr square = v_fma(s->rest2 * grad, grad, s->beta2 * v_get(v + i, count));
    vr below = v_fma(v_sqrt(square), s->inv_bias2, s->eps);
    v_put(m + i, mean, count);
    v_put(v + i, square, count);
    v_put(p + i, v_fnma(s->size, mean / below, s->keep * old), count);
}

void WF_KERNEL(adam)(int64_t n, wf_real *p, const wf_real *g, wf_real *m, wf_real *v, wf_real grad_scale, double beta1, double beta2,
                     wf_real eps, wf_real step_size, wf_real inv_bias2, wf_real lr_wd, wf_real l2)
{
    /* Compute 1 - beta in double: in float, the rounding of 0.999 would give 1 - beta a relative error of about 1e-5. */
    const struct step s = {v_set(grad_scale),
                           v_set((wf_real)beta1),
                           v_set((wf_real)(1 - beta1)),
                           v_set((wf_real)beta2),
                           v_set((wf_real)(1 - beta2)),
                           v_set(eps),
                           v_set(step_size),
                           v_set(inv_bias2),
                           v_set(1 - lr_wd),
                           v_set(l2)};
    V_LOOP(n, adam_part, p, g, m, v, &s);
}
