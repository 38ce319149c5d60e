/* SPDX-License-Identifier: MIT */
/* One row times a matrix whose k is contiguous (a linear layer on one token). Squares of the matrix are turned in registers
 * on their way from memory, so that the additions go in the order of the tiles (isa.h) and a row alone has the bits that it
 * has in a batch. Two groups of outputs at a time: each is one chain of dependent multiply-adds. */
#include "../transpose.h"
#include "isa.h"

enum { GROUPS = 2, OUTPUTS = GROUPS * V_LANES, SHORT_ROW = 4096 / sizeof(wf_real), AHEAD = 1024 / sizeof(wf_real) };

/* sum[g] over a k-block for outputs that all exist; k is a multiple of nothing. `row`: what is left of the rows, with this block. They are
 * more than the processor follows by itself: a line of each is fetched for later, of the next group of rows where these are short. */
V_INLINE void rows_of(int64_t outputs, int64_t k, const wf_real *a, int64_t as, const wf_real *b, int64_t bs, int64_t row, vr sum[GROUPS])
{
    const int groups = outputs > V_LANES ? 2 : 1;
    int64_t p = 0;
    const int64_t then = bs <= SHORT_ROW ? OUTPUTS * bs : AHEAD;
    sum[0] = sum[1] = v_set(0);
    if (outputs == OUTPUTS) {
        for (; p + V_LANES <= k; p += V_LANES) {
            const int64_t ahead = then - (then < bs && p + then >= row ? row - OUTPUTS * bs : 0);
#pragma GCC unroll 2
            for (int g = 0; g < GROUPS; g++) {
                vr r[V_LANES];
                const wf_real *s = b + p + g * V_LANES * bs;
#pragma GCC unroll 16
                for (int i = 0; i < V_LANES; i++) {
                    r[i] = v_load(s + i * bs);
                    __builtin_prefetch(s + i * bs + ahead, 0, 2);
                }
                v_transpose(r);
#pragma GCC unroll 16
                for (int i = 0; i < V_LANES; i++)
                    sum[g] = v_fma(v_set(a[(p + i) * as]), r[i], sum[g]);
            }
        }
    }
    for (; p < k; p += V_LANES) {
        const int64_t steps = k - p < V_LANES ? k - p : V_LANES;
        const v_mask m = V_FIRST((int)steps);
        for (int g = 0; g < groups; g++) {
            vr r[V_LANES];
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++)
                r[i] = g * V_LANES + i < outputs ? v_load_mask(b + p + (g * V_LANES + i) * bs, m) : v_set(0);
            v_transpose(r);
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++)
                if (i < steps)
                    sum[g] = v_fma(v_set(a[(p + i) * as]), r[i], sum[g]);
        }
    }
}

void WF_GEMM(vector)(int64_t n, int64_t k, const wf_real *a, int64_t as, const wf_real *b, int64_t bs, wf_real *c, int64_t cs,
                     const struct gemm_end *end)
{
    const int64_t block = gemm_k_block(k);
    const vr alpha = v_set(end->alpha);
    for (int64_t j = 0; j < n; j += OUTPUTS) {
        const int64_t outputs = n - j < OUTPUTS ? n - j : OUTPUTS;
        vr value[GROUPS];
        for (int64_t p = 0; p < k; p += block) {
            vr sum[GROUPS];
            const bool last = k - p <= block;
            rows_of(outputs, last ? k - p : block, a + p * as, as, b + j * bs + p, bs, k - p, sum);
            for (int g = 0; g < GROUPS && g * V_LANES < outputs; g++) {
                const int64_t from = j + g * V_LANES, left = outputs - g * V_LANES;
                const v_mask m = V_FIRST((int)(left < V_LANES ? left : V_LANES));
                vr rest = v_set(0);
                if (last && end->bias_n)
                    rest = v_load_mask(end->bias_n + from, m);
                else if (last && end->bias_m)
                    rest = v_set(end->bias_m[0]);
                if (p > 0)
                    rest = v_fma(v_set(1), value[g], rest);
                else if (end->beta != 0) {
                    vr old = v_set(0);
                    if (cs == 1)
                        old = v_load_mask(c + from, m);
                    else
                        for (int i = 0; i < V_LANES && i < left; i++)
                            old[i] = c[(from + i) * cs];
                    rest = v_fma(v_set(end->beta), old, rest);
                }
                value[g] = v_fma(alpha, sum[g], rest);
                if (!last)
                    continue;
                if (cs == 1)
                    v_store_mask(c + from, m, value[g]);
                else
                    for (int i = 0; i < V_LANES && i < left; i++)
                        c[(from + i) * cs] = value[g][i];
            }
        }
    }
}
