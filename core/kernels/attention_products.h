/* SPDX-License-Identifier: MIT */
/* Products of tiles of attention. All have the form C[i][lanes] += A(i, p) B[p][lanes]. Each element of C is one chain of multiply-adds in
 * the order of p, whatever the blocking; its bits depend only on its row of A and its column of B. The products in bf16's arithmetic, which
 * have another order of additions, are in attention_bf16.h. */
#ifndef WEFT_KERNELS_ATTENTION_PRODUCTS_H
#define WEFT_KERNELS_ATTENTION_PRODUCTS_H

#include <weft/internal/attention.h>

#include "../simd.h"

enum {
    QUERIES = WF_ATTENTION_QUERIES,
    KEYS = WF_ATTENTION_KEYS,
    QV = QUERIES / V_LANES /* registers that hold a row of a tile */
};

/* Rows of C that the micro-kernel `block` keeps in registers. Each row is at most two registers wide. */
#if defined(WF_ISA_AVX512)
#define BLOCK_ROWS 8
#elif defined(WF_ISA_AVX2)
#define BLOCK_ROWS 6
#else
#define BLOCK_ROWS 4
#endif

/* C = A B, or C += A B if `add`, where C has `rows` rows of `registers` registers and the sums run over p < depth. A(i, p) is a[i *
 * a_step + p] if `by_rows`, else a[p * a_step + i]. */
V_INLINE void block(int rows, int registers, bool by_rows, bool add, int64_t depth, const wf_real *restrict a, int64_t a_step,
                    const wf_real *restrict b, int64_t b_step, wf_real *restrict c, int64_t c_step)
{
    vr sum[BLOCK_ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            sum[i][j] = add ? v_load(c + i * c_step + j * V_LANES) : v_set(0);
    for (int64_t p = 0; p < depth; p++) {
        vr right[2];
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            right[j] = v_load(b + p * b_step + j * V_LANES);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            vr left = v_set(by_rows ? a[i * a_step + p] : a[p * a_step + i]);
#pragma GCC unroll 2
            for (int j = 0; j < registers; j++)
                sum[i][j] = v_fma(left, right[j], sum[i][j]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < registers; j++)
            v_store(c + i * c_step + j * V_LANES, sum[i][j]);
}

V_INLINE void blocks(int64_t rows, int registers, bool by_rows, bool add, int64_t depth, const wf_real *a, int64_t a_step, const wf_real *b,
                     int64_t b_step, wf_real *c, int64_t c_step)
{
    int64_t down = by_rows ? a_step : 1;
    while (rows >= BLOCK_ROWS) {
        block(BLOCK_ROWS, registers, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
        a += BLOCK_ROWS * down;
        c += BLOCK_ROWS * c_step;
        rows -= BLOCK_ROWS;
    }
    switch (rows) {
#define REST(n)                                                                                                                            \
    case n:                                                                                                                                \
        block(n, registers, by_rows, add, depth, a, a_step, b, b_step, c, c_step);                                                         \
        break;
        REST(1)
        REST(2)
        REST(3)
#if BLOCK_ROWS > 4
        REST(4)
        REST(5)
#endif
#if BLOCK_ROWS > 6
        REST(6)
        REST(7)
#endif
#undef REST
    default:
        break;
    }
}

/* C = A B, or C += A B with `add`, for any number of rows and for `width` registers of columns. */
V_INLINE void product(int64_t rows, int64_t width, bool by_rows, bool add, int64_t depth, const wf_real *a, int64_t a_step,
                      const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    for (; width >= 2; width -= 2, b += 2 * V_LANES, c += 2 * V_LANES)
        blocks(rows, 2, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
    if (width)
        blocks(rows, 1, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
}

/* Declares a function that computes a product of tiles. Its parameters are those of `product`. */
#define TILE_PRODUCT(name)                                                                                                                 \
    V_NOINLINE void name(int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step, const wf_real *b, int64_t b_step,   \
                         wf_real *c, int64_t c_step)

TILE_PRODUCT(product_rows)
{
    product(rows, width, true, false, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(product_rows_add)
{
    product(rows, width, true, true, depth, a, a_step, b, b_step, c, c_step);
}

TILE_PRODUCT(product_columns_add)
{
    product(rows, width, false, true, depth, a, a_step, b, b_step, c, c_step);
}

/* product_columns_add for tiles that hold a NaN or an infinity. B holds the weights. Terms whose weight is 0 are left out, because a masked
 * key must contribute nothing, and 0 times a NaN would be a NaN. The other terms are added in the same order, so that a sum of finite terms
 * has the same bits. */
TILE_PRODUCT(masked_columns_add)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width * V_LANES; j += V_LANES) {
            vr sum = v_load(c + i * c_step + j);
            for (int64_t p = 0; p < depth; p++) {
                vr w = v_load(b + p * b_step + j);
                sum = v_select((vi)(w == 0), sum, v_fma(v_set(a[p * a_step + i]), w, sum));
            }
            v_store(c + i * c_step + j, sum);
        }
}

/* product_rows_add for tiles that hold a NaN or an infinity. A holds the weights, and terms whose weight is 0 are left out, as in
 * masked_columns_add. */
TILE_PRODUCT(masked_rows_add)
{
    (void)width; /* it counts whole registers, but c may be half a register wide: c_step is the width of c in elements */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < c_step; j += V_LANES) {
            vr sum = v_load_at_most(c + i * c_step + j, c_step - j);
            for (int64_t p = 0; p < depth; p++)
                if (a[i * a_step + p] != 0)
                    sum = v_fma(v_set(a[i * a_step + p]), v_load_at_most(b + p * b_step + j, c_step - j), sum);
            v_store_at_most(c + i * c_step + j, sum, c_step - j);
        }
}

/* In the gradients of keys and values, the lanes hold columns of a head. A head of at most HALF_LANES columns fills only half a register of
 * AVX-512. Half registers are faster for such heads, because some processors take one cycle for a multiply-add of half a register and two
 * for a whole one. */
#if defined(WF_ISA_AVX512)
typedef wf_real v_half __attribute__((vector_size(V_BYTES / 2)));
typedef wf_real v_half_memory __attribute__((vector_size(V_BYTES / 2), aligned(sizeof(wf_real)), may_alias));
enum { HALF_LANES = V_LANES / 2 };

/* c[rows][HALF_LANES] += a[rows][depth] b[depth][HALF_LANES], where the rows of `a` lie QUERIES apart. The sums have the same bits as in
 * product_rows_add. */
V_INLINE void half_block(const int rows, int64_t depth, const wf_real *restrict a, const wf_real *restrict b, wf_real *restrict c)
{
    v_half sum[BLOCK_ROWS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        sum[i] = *(const v_half_memory *)(c + i * HALF_LANES);
    for (int64_t p = 0; p < depth; p++, b += HALF_LANES) {
        const v_half right = *(const v_half_memory *)b;
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
            sum[i] = V_PASTE(_mm256, fmadd, V_SUFFIX)(a[i * QUERIES + p] - (v_half){0}, right, sum[i]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        *(v_half_memory *)(c + i * HALF_LANES) = sum[i];
}

TILE_PRODUCT(half_rows_add)
{
    (void)width, (void)a_step, (void)b_step, (void)c_step;
    for (; rows >= BLOCK_ROWS; rows -= BLOCK_ROWS, a += BLOCK_ROWS * QUERIES, c += BLOCK_ROWS * HALF_LANES)
        half_block(BLOCK_ROWS, depth, a, b, c);
    for (; rows > 0; rows--, a += QUERIES, c += HALF_LANES)
        half_block(1, depth, a, b, c);
}
#else
enum { HALF_LANES = 0 };
#define half_rows_add product_rows_add
#endif

#endif
