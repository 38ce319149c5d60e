/* SPDX-License-Identifier: MIT */
/* c = a op b where either side may be one number, and the linear updates. */
#include "../simd.h"

#define BINARY(name, op)                                                                                                                   \
    V_INLINE void name##_both(int64_t i, int64_t count, const wf_real *a, const wf_real *b, wf_real *c)                                    \
    {                                                                                                                                      \
        v_put(c + i, v_get(a + i, count) op v_get(b + i, count), count);                                                                   \
    }                                                                                                                                      \
    V_INLINE void name##_left(int64_t i, int64_t count, const wf_real *a, vr b, wf_real *c)                                                \
    {                                                                                                                                      \
        v_put(c + i, v_get(a + i, count) op b, count);                                                                                     \
    }                                                                                                                                      \
    V_INLINE void name##_right(int64_t i, int64_t count, vr a, const wf_real *b, wf_real *c)                                               \
    {                                                                                                                                      \
        v_put(c + i, a op v_get(b + i, count), count);                                                                                     \
    }                                                                                                                                      \
    void WF_KERNEL(name)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c)                                        \
    {                                                                                                                                      \
        if (n < 1)                                                                                                                         \
            return;                                                                                                                        \
        if (sa && sb)                                                                                                                      \
            V_LOOP(n, name##_both, a, b, c);                                                                                               \
        else if (sa)                                                                                                                       \
            V_LOOP(n, name##_left, a, v_set(*b), c);                                                                                       \
        else if (sb)                                                                                                                       \
            V_LOOP(n, name##_right, v_set(*a), b, c);                                                                                      \
        else                                                                                                                               \
            WF_KERNEL(fill)(n, *a op * b, c);                                                                                              \
    }

BINARY(add, +)
BINARY(sub, -)
BINARY(mul, *)
BINARY(div, /)

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
