/* SPDX-License-Identifier: MIT */
/* Lion in one pass over memory (Chen et al. 2023, algorithm 2). */
#include "../simd.h"

struct step {
    vr grad_scale, beta1, rest1, beta2, rest2, lr, keep;
};

V_INLINE void lion_part(int64_t i, int64_t count, wf_real *p, const wf_real *g, wf_real *m, const struct step *s)
{
    vr grad = v_get(g + i, count) * s->grad_scale, mean = v_get(m + i, count), zero = v_set(0);
    vr sum = v_fma(s->rest1, grad, s->beta1 * mean);
    vr sign = v_if_less(zero, sum, v_set(1), v_if_less(sum, zero, v_set(-1), zero));
    v_put(p + i, v_fnma(s->lr, sign, s->keep * v_get(p + i, count)), count);
    v_put(m + i, v_fma(s->rest2, grad, s->beta2 * mean), count);
}

void WF_KERNEL(lion)(int64_t n, wf_real *p, const wf_real *g, wf_real *m, wf_real grad_scale, double beta1, double beta2, wf_real lr,
                     wf_real lr_wd)
{
    const struct step s = {v_set(grad_scale),     v_set((wf_real)beta1),       v_set((wf_real)(1 - beta1)),
                           v_set((wf_real)beta2), v_set((wf_real)(1 - beta2)), v_set(lr),
                           v_set(1 - lr_wd)};
    V_LOOP(n, lion_part, p, g, m, &s);
}
