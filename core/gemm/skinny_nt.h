/* SPDX-License-Identifier: MIT */
/* The epilogue of the skinny kernels for a B whose k is contiguous. */
#ifndef WEFT_GEMM_SKINNY_NT_H
#define WEFT_GEMM_SKINNY_NT_H

#include "../simd.h"
#include "private.h"

/* Not inlined: the loops over lanes would be compiled once for each row of each kernel. */
V_NOINLINE vr load_apart(const wf_real *c, int64_t c_cs, int64_t count)
{
    vr x = v_set(0);
    for (int i = 0; i < V_LANES && i < count; i++)
        x[i] = c[i * c_cs];
    return x;
}

V_NOINLINE void store_apart(wf_real *c, int64_t c_cs, int64_t count, vr x)
{
    for (int i = 0; i < V_LANES && i < count; i++)
        c[i * c_cs] = x[i];
}

V_INLINE vr load_c(const wf_real *c, int64_t c_cs, int64_t count)
{
    return c_cs == 1 ? v_load_mask(c, V_FIRST((int)count)) : load_apart(c, c_cs, count);
}

V_INLINE void store_c(wf_real *c, int64_t c_cs, int64_t count, vr x)
{
    if (c_cs == 1)
        v_store_mask(c, V_FIRST((int)count), x);
    else
        store_apart(c, c_cs, count, x);
}

/* Stores the sums of `count` columns of a row, with the epilogue. `bias` has the bias of these elements, or zeros. */
V_INLINE void store_sums(wf_real *c, int64_t c_cs, int64_t count, wf_real alpha, vr sum, wf_real beta, vr bias)
{
    if (beta != 0)
        bias = v_fma(v_set(beta), load_c(c, c_cs, count), bias);
    store_c(c, c_cs, count, v_fma(v_set(alpha), sum, bias));
}

#endif
