/* SPDX-License-Identifier: MIT */
/* One row times a matrix whose k is contiguous (a linear layer on one token). Squares of the matrix are turned in registers
 * on their way from memory, so that the additions go in the order of the tiles (isa.h) and a row alone has the bits that it
 * has in a batch. Two groups of outputs at a time: each is one chain of dependent multiply-adds. */
#include "simd.h"

enum { GROUPS = 2, OUTPUTS = GROUPS * LANES };

/* sum[g] over a k-block for outputs that all exist; k is a multiple of nothing. */
INLINE void rows_of(int64_t outputs, int64_t k, const wf_real *a, int64_t as, const wf_real *b, int64_t bs, vec sum[GROUPS])
{
    const int groups = outputs > LANES ? 2 : 1;
    int64_t p = 0;
    sum[0] = sum[1] = zero();
    if (outputs == OUTPUTS) {
        for (; p + LANES <= k; p += LANES) {
#pragma GCC unroll 2
            for (int g = 0; g < GROUPS; g++) {
                vec r[LANES];
                const wf_real *s = b + p + g * LANES * bs;
#pragma GCC unroll 16
                for (int i = 0; i < LANES; i++)
                    r[i] = load(s + i * bs);
                transpose(r);
#pragma GCC unroll 16
                for (int i = 0; i < LANES; i++)
                    sum[g] = fma_v(fill(a[(p + i) * as]), r[i], sum[g]);
            }
        }
    }
    for (; p < k; p += LANES) {
        const int64_t steps = k - p < LANES ? k - p : LANES;
        const mask m = first((int)steps);
        for (int g = 0; g < groups; g++) {
            vec r[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                r[i] = g * LANES + i < outputs ? load_first(b + p + (g * LANES + i) * bs, m) : zero();
            transpose(r);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                if (i < steps)
                    sum[g] = fma_v(fill(a[(p + i) * as]), r[i], sum[g]);
        }
    }
}

void WF_GEMM(vector)(int64_t n, int64_t k, const wf_real *a, int64_t as, const wf_real *b, int64_t bs, wf_real *c, int64_t cs,
                     const struct gemm_end *end)
{
    const int64_t block = gemm_k_block(k);
    const vec alpha = fill(end->alpha);
    for (int64_t j = 0; j < n; j += OUTPUTS) {
        const int64_t outputs = n - j < OUTPUTS ? n - j : OUTPUTS;
        vec value[GROUPS];
        for (int64_t p = 0; p < k; p += block) {
            vec sum[GROUPS];
            const bool last = k - p <= block;
            rows_of(outputs, last ? k - p : block, a + p * as, as, b + j * bs + p, bs, sum);
            for (int g = 0; g < GROUPS && g * LANES < outputs; g++) {
                const int64_t from = j + g * LANES, left = outputs - g * LANES;
                const mask m = first((int)(left < LANES ? left : LANES));
                vec rest = zero();
                if (last && end->bias_n)
                    rest = load_first(end->bias_n + from, m);
                else if (last && end->bias_m)
                    rest = fill(end->bias_m[0]);
                if (p > 0)
                    rest = fma_v(fill(1), value[g], rest);
                else if (end->beta != 0) {
                    vec old = zero();
                    if (cs == 1)
                        old = load_first(c + from, m);
                    else
                        for (int i = 0; i < LANES && i < left; i++)
                            old[i] = c[(from + i) * cs];
                    rest = fma_v(fill(end->beta), old, rest);
                }
                value[g] = fma_v(alpha, sum[g], rest);
                if (!last)
                    continue;
                if (cs == 1)
                    store_first(c + from, m, value[g]);
                else
                    for (int i = 0; i < LANES && i < left; i++)
                        c[(from + i) * cs] = value[g][i];
            }
        }
    }
}
