/* SPDX-License-Identifier: MIT */
/* What the attention kernels share: tiles with the queries in the lanes.
 *
 * A tile of scores is kept as S^T [keys][WF_ATTENTION_QUERIES]: maxima, sums and exponentials then run down the tile
 * without a reduction across lanes, and heads of any width fill the registers. Both products of a tile have the form
 * C[i][lanes] += A(i, p) B[p][lanes]; each element of C is one chain of multiply-adds in the order of p, whatever the
 * blocking, so its bits depend on its own row and column alone. */
#ifndef WEFT_KERNELS_ATTENTION_TILE_H
#define WEFT_KERNELS_ATTENTION_TILE_H

#include <string.h>

#include <weft/internal/attention.h>

#include "../simd.h"
#include "vmath.h"

enum {
    QUERIES = WF_ATTENTION_QUERIES,
    KEYS = WF_ATTENTION_KEYS,
    QV = QUERIES / V_LANES /* registers of a row of a tile */
};

/* Rows of C that a micro-kernel keeps in registers, two registers wide. */
#if defined(WF_ISA_AVX512)
#define BLOCK_ROWS 8
#elif defined(WF_ISA_AVX2)
#define BLOCK_ROWS 6
#else
#define BLOCK_ROWS 4
#endif

/* C[rows][registers] (+)= A B over p < depth. A(i, p) = a[i * a_step + p] when by_rows, else a[p * a_step + i]. */
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

/* The same over `width` registers of columns. */
V_INLINE void product(int64_t rows, int64_t width, bool by_rows, bool add, int64_t depth, const wf_real *a, int64_t a_step,
                      const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    for (; width >= 2; width -= 2, b += 2 * V_LANES, c += 2 * V_LANES)
        blocks(rows, 2, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
    if (width)
        blocks(rows, 1, by_rows, add, depth, a, a_step, b, b_step, c, c_step);
}

static __attribute__((noinline, unused)) void product_rows(int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step,
                                                           const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    product(rows, width, true, false, depth, a, a_step, b, b_step, c, c_step);
}

static __attribute__((noinline, unused)) void product_rows_add(int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step,
                                                               const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    product(rows, width, true, true, depth, a, a_step, b, b_step, c, c_step);
}

static __attribute__((noinline, unused)) void product_columns_add(int64_t rows, int64_t width, int64_t depth, const wf_real *a,
                                                                  int64_t a_step, const wf_real *b, int64_t b_step, wf_real *c,
                                                                  int64_t c_step)
{
    product(rows, width, false, true, depth, a, a_step, b, b_step, c, c_step);
}

/* For tiles that hold a NaN or an infinity: the same sums, the same bits, but weights of 0 leave their terms out, so that
 * what is masked contributes nothing. The weights are B here ... */
static __attribute__((noinline, unused)) void masked_columns_add(int64_t rows, int64_t width, int64_t depth, const wf_real *a,
                                                                 int64_t a_step, const wf_real *b, int64_t b_step, wf_real *c,
                                                                 int64_t c_step)
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

/* ... and A here. */
static __attribute__((noinline, unused)) void masked_rows_add(int64_t rows, int64_t width, int64_t depth, const wf_real *a, int64_t a_step,
                                                              const wf_real *b, int64_t b_step, wf_real *c, int64_t c_step)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < width * V_LANES; j += V_LANES) {
            vr sum = v_load(c + i * c_step + j);
            for (int64_t p = 0; p < depth; p++)
                if (a[i * a_step + p] != 0)
                    sum = v_fma(v_set(a[i * a_step + p]), v_load(b + p * b_step + j), sum);
            v_store(c + i * c_step + j, sum);
        }
}

/* attention_mask.c */
#define attention_allowed WF_KERNEL(attention_allowed)
#define attention_dropout WF_KERNEL(attention_dropout)
/* Which keys of a tile may be attended: written to allow[key][QUERIES] as 0 or -1 when it is some of them. */
enum allowed { ALLOWED_NONE, ALLOWED_SOME, ALLOWED_ALL };
enum allowed attention_allowed(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys,
                               v_lane *allow);
/* drop[key][QUERIES] = 0 or keep_scale, in the registers that hold `rows` queries. */
void attention_dropout(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, wf_real *drop);

/* Calls f(..., n) with the number of registers that hold `rows` queries, as a constant: short sentences fill one, and what the
 * others would hold is neither computed nor read. */
#define WITH_REGISTERS(rows, f, ...)                                                                                                       \
    do {                                                                                                                                   \
        if ((rows) <= V_LANES)                                                                                                             \
            f(__VA_ARGS__, 1);                                                                                                             \
        else if (QV > 2 && (rows) <= 2 * V_LANES)                                                                                          \
            f(__VA_ARGS__, 2);                                                                                                             \
        else if (QV > 4 && (rows) <= 4 * V_LANES)                                                                                          \
            f(__VA_ARGS__, 4);                                                                                                             \
        else                                                                                                                               \
            f(__VA_ARGS__, QV);                                                                                                            \
    } while (0)

/* Keys that any of the queries q0 .. q0 + rows - 1 may attend to. */
V_INLINE int64_t last_limit(const struct wf_attention *a, int64_t q0, int64_t rows)
{
    int64_t limit = a->first_limit >= WF_ATTENTION_ALL ? a->keys : a->first_limit + q0 + rows - 1;
    return limit < 0 ? 0 : limit < a->keys ? limit : a->keys;
}

/* Cuts `count` elements off the scratch, in whole cache lines. */
V_INLINE wf_real *take(wf_real **scratch, int64_t count)
{
    wf_real *p = *scratch;
    *scratch += (count + 15) / 16 * 16;
    return p;
}

#endif
