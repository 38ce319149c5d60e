/* SPDX-License-Identifier: MIT */
/* Products of tiles of attention in bf16's arithmetic (gemm/bf16.h). Their operands are floats that packing has rounded to bf16.
 *
 *   S = q k^T       k of a product is the columns of a head; the scale multiplies the sum in float
 *   O += P V        k is the keys, in steps that begin at multiples of WF_BF16_K from key 0 on
 *   dP = g V^T      as S, without a scale
 *   dV += P'^T g    k is the queries of a tile, which are one step; dK likewise
 *   dQ += dS K      as O
 *
 * Terms of masked keys and queries are left out, or their weights are 0. Which of the two depends on the tile around a query, and it may
 * change the sign of a zero, or a denormal that the factor of the running maximum leaves. So products that add to C end with the addition
 * of +0: after each tile the sum is the same in both cases. The padding of a last step is computed by AMX alone: it can change only the
 * sign of a score of zero, which no result shows. */
#ifndef WEFT_KERNELS_ATTENTION_BF16_H
#define WEFT_KERNELS_ATTENTION_BF16_H

#include <weft/internal/gemm.h>

#include "../bf16_lanes.h"
#include "attention_amx.h"
#include "attention_products.h"

#ifdef WF_DOUBLE
/* Chooses a function: its variant in bf16, or in wf_real. */
#define CHOOSE(bf16, name) ((void)(bf16), name)

V_INLINE bool in_bf16(const struct wf_attention *a)
{
    (void)a;
    return false;
}

V_INLINE vr operand(const bool bf16, vr x)
{
    (void)bf16;
    return x;
}

V_INLINE unsigned begin_products(const bool bf16)
{
    return bf16;
}

V_INLINE void end_products(const bool bf16, unsigned mode)
{
    (void)bf16, (void)mode;
}
#else
#define CHOOSE(bf16, name) ((bf16) ? name##_bf16 : name)

V_INLINE bool in_bf16(const struct wf_attention *a)
{
    return a->precision == WF_PRECISION_BF16;
}

/* Elements of an operand: in bf16 they are rounded. */
V_INLINE vr operand(const bool bf16, vr x)
{
    return bf16 ? bf16_floats(x) : x;
}

/* Products of tiles stand between begin_products and end_products, and no other arithmetic does. */
V_INLINE unsigned begin_products(const bool bf16)
{
    return bf16 ? bf16_mode(BF16_FLUSH) : 0;
}

V_INLINE void end_products(const bool bf16, unsigned mode)
{
    if (bf16)
        bf16_mode(mode);
}

_Static_assert(KEYS % WF_BF16_K == 0 && QUERIES == (int)WF_BF16_K, "tiles are whole steps");

/* Rows of C whose two chains a block keeps in registers. Each row is at most two registers wide. */
#if defined(WF_ISA_AVX512)
#define BF16_ROWS 4
#else
#define BF16_ROWS 3
#endif

/* Term p of a chain, for all elements of a block. */
V_INLINE void term(const int rows, const int registers, const bool by_rows, int64_t p, const wf_real *restrict a, int64_t a_step,
                   const wf_real *restrict b, int64_t b_step, vr sum[BF16_ROWS][2])
{
    vr right[2];
#pragma GCC unroll 2
    for (int j = 0; j < registers; j++)
        right[j] = v_load(b + p * b_step + j * V_LANES);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        const vr left = v_set(by_rows ? a[i * a_step + p] : a[p * a_step + i]);
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            sum[i][j] = bf16_v_fma(left, right[j], sum[i][j]);
    }
}

/* Block of C = scale A B, or C += A B if `add`. The parameters are those of `block` in attention_products.h. */
V_INLINE void block_bf16(const int rows, const int registers, const bool by_rows, const bool add, wf_real scale, int64_t depth,
                         const wf_real *restrict a, int64_t a_step, const wf_real *restrict b, int64_t b_step, wf_real *restrict c,
                         int64_t c_step)
{
    int64_t p = 0;
    do {
        const bool first = !add && p == 0;
        const int64_t end = WF_MIN(depth, p + WF_BF16_K);
        const bool last = end == depth;
        vr sum[2][BF16_ROWS][2]; /* of even p, of odd p */
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; odd++)
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
                for (int j = 0; j < registers; j++)
                    sum[odd][i][j] = v_set(0);
        for (; p + 2 <= end; p += 2) {
            term(rows, registers, by_rows, p, a, a_step, b, b_step, sum[0]);
            term(rows, registers, by_rows, p + 1, a, a_step, b, b_step, sum[1]);
        }
        if (p < end)
            term(rows, registers, by_rows, p++, a, a_step, b, b_step, sum[0]);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
            for (int j = 0; j < registers; j++) {
                wf_real *at = c + i * c_step + j * V_LANES;
                vr d = bf16_v_add(first ? v_set(0) : v_load(at), bf16_v_add(sum[0][i][j], sum[1][i][j]));
                if (last)
                    d = add ? bf16_v_add(d, v_set(0)) : d * scale;
                v_store(at, d);
            }
    } while (p < depth);
}

V_INLINE void blocks_bf16(int64_t rows, const int registers, const bool by_rows, const bool add, wf_real scale, int64_t depth,
                          const wf_real *a, int64_t a_step, const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    const int64_t down = by_rows ? a_step : 1;
    for (; rows >= BF16_ROWS; rows -= BF16_ROWS, a += BF16_ROWS * down, c += BF16_ROWS * c_step)
        block_bf16(BF16_ROWS, registers, by_rows, add, scale, depth, a, a_step, b, b_step, c, c_step);
    for (; rows > 0; rows--, a += down, c += c_step)
        block_bf16(1, registers, by_rows, add, scale, depth, a, a_step, b, b_step, c, c_step);
}

V_INLINE void multiply_bf16(int64_t rows, int64_t width, const bool by_rows, const bool add, wf_real scale, int64_t depth, const wf_real *a,
                            int64_t a_step, const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
#if ATTENTION_HAS_AMX
    if (amx_pays(rows, width, depth)) {
        multiply_amx(rows, width, by_rows, add, scale, depth, a, a_step, b, b_step, c, c_step);
        return;
    }
#endif
    for (; width >= 2; width -= 2, b += 2 * V_LANES, c += 2 * V_LANES)
        blocks_bf16(rows, 2, by_rows, add, scale, depth, a, a_step, b, b_step, c, c_step);
    if (width)
        blocks_bf16(rows, 1, by_rows, add, scale, depth, a, a_step, b, b_step, c, c_step);
}

/* c[keys][QUERIES] = scale a[keys][depth] b[depth][QUERIES] */
V_NOINLINE void scores_bf16(wf_real scale, int64_t keys, int64_t width, int64_t depth, const wf_real *a, const wf_real *b, wf_real *c)
{
    multiply_bf16(keys, width, true, false, scale, depth, a, depth, b, QUERIES, c, QUERIES);
}

TILE_PRODUCT(product_rows_add_bf16)
{
    multiply_bf16(rows, width, true, true, 1, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(product_columns_add_bf16)
{
    multiply_bf16(rows, width, false, true, 1, depth, a, a_step, b, b_step, c, c_step);
}

/* For tiles that hold a NaN or an infinity, as masked_columns_add and masked_rows_add: terms whose weight is 0 are left out. The weights
 * are B, or A if `by_rows`. */
V_INLINE void masked_bf16(const bool by_rows, int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step,
                          const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width * V_LANES; j += V_LANES) {
            vr d = v_load(c + i * c_step + j);
            for (int64_t p = 0; p < depth;) {
                vr sum[2] = {v_set(0), v_set(0)};
                for (const int64_t end = WF_MIN(depth, p + WF_BF16_K); p < end; p++) {
                    const vr left = v_set(by_rows ? a[i * a_step + p] : a[p * a_step + i]), right = v_load(b + p * b_step + j);
                    const vr x = sum[p % 2];
                    sum[p % 2] = v_select((vi)((by_rows ? left : right) == 0), x, bf16_v_fma(left, right, x));
                }
                d = bf16_v_add(d, bf16_v_add(sum[0], sum[1]));
            }
            v_store(c + i * c_step + j, bf16_v_add(d, v_set(0)));
        }
}

TILE_PRODUCT(masked_columns_add_bf16)
{
    masked_bf16(false, rows, width, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(masked_rows_add_bf16)
{
    masked_bf16(true, rows, width, depth, a, a_step, b, b_step, c, c_step);
}
#endif

#endif
