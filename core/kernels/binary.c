/* SPDX-License-Identifier: MIT */
/* Arithmetic of two arrays, either of which may be a single number, and the kernels affine, axpy and fill. */
#include "../simd.h"

/* Not formatted automatically, because clang-format takes a product for a pointer declaration. */
/* clang-format off */
V_BINARY(add, a + b)
V_BINARY(sub, a - b)
V_BINARY(mul, a * b)
V_BINARY(div, a / b)
/* clang-format on */

V_INLINE void affine_part(int64_t i, int64_t count, vr s, vr t, const wf_real *x, wf_real *y)
{
    v_put(y + i, v_fma(v_get(x + i, count), s, t), count);
}

void WF_KERNEL(affine)(int64_t n, wf_real s, wf_real t, const wf_real *x, wf_real *y)
{
    V_LOOP(n, affine_part, v_set(s), v_set(t), x, y);
}

V_INLINE void axpy_part(int64_t i, int64_t count, vr s, const wf_real *x, wf_real *y)
{
    v_put(y + i, v_fma(v_get(x + i, count), s, v_get(y + i, count)), count);
}

void WF_KERNEL(axpy)(int64_t n, wf_real s, const wf_real *x, wf_real *y)
{
    V_LOOP(n, axpy_part, v_set(s), x, y);
}

V_INLINE void fill_part(int64_t i, int64_t count, vr v, wf_real *y)
{
    v_put(y + i, v, count);
}

void WF_KERNEL(fill)(int64_t n, wf_real v, wf_real *y)
{
    V_LOOP(n, fill_part, v_set(v), y);
}
