/* SPDX-License-Identifier: MIT */
/* Products of tiles of attention on AMX: the bits of attention_bf16.h's. Their operands are floats that are rounded already, so packing
 * takes the high halves. The kernels of attention enter AMX once for all their products. */
#ifndef WEFT_KERNELS_ATTENTION_AMX_H
#define WEFT_KERNELS_ATTENTION_AMX_H

#include <weft/internal/attention.h>
#include <weft/internal/gemm.h>
#include <weft/internal/runtime.h>

#include "../simd.h"

#if defined WF_ISA_AVX512 && !defined WF_DOUBLE
#define ATTENTION_HAS_AMX 1
#include "../bf16_lanes.h"
#include "../tiles.h"
#include "../transpose.h"

enum {
    AMX_STEPS = 8,         /* speed: steps of k that are packed at a time */
    AMX_TILE = 16 * 16,    /* floats of a tile */
    AMX_DEPTH = WF_BF16_K, /* speed: products with a smaller depth, */
    AMX_TERMS = 1 << 15,   /* speed: or fewer multiply-adds, are left to the vector units */
};

/* A tile of B, or with `transposed` of A: elements p < depth of up to 16 lines, which are contiguous. */
V_INLINE void pack_lines(const bool transposed, int64_t lines, int64_t depth, const float *from, int64_t step, float *tile)
{
    const v_mask mask = V_FIRST((int)WF_MIN(lines, 16));
    vr r[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const vr even = 2 * i < depth ? v_load_mask(from + 2 * i * step, mask) : v_set(0);
        const vr odd = 2 * i + 1 < depth ? v_load_mask(from + (2 * i + 1) * step, mask) : v_set(0);
        r[i] = bf16_high_pairs(even, odd);
    }
    if (transposed)
        v_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        v_store(tile + 16 * i, r[i]);
}

/* A tile of A whose elements p are contiguous. */
V_INLINE void pack_depth(int64_t lines, int64_t depth, const float *from, int64_t step, float *tile)
{
    const v_mask first = V_FIRST((int)WF_MIN(depth, 16)), second = V_FIRST((int)WF_MAX(0, WF_MIN(depth - 16, 16)));
    for (int i = 0; i < 16; i++) {
        vr r = v_set(0);
        if (i < lines)
            r = bf16_high_halves(v_load_mask(from + i * step, first), depth > 16 ? v_load_mask(from + i * step + 16, second) : v_set(0));
        v_store(tile + 16 * i, r);
    }
}

/* Whole tiles, in loops in which the compiler knows the conditions. */
V_INLINE void pack_a(const bool by_rows, int64_t lines, int64_t depth, const float *a, int64_t a_step, float *tiles)
{
    for (; depth > 0; depth -= WF_BF16_K, tiles += AMX_TILE, a += by_rows ? WF_BF16_K : WF_BF16_K * a_step) {
        const bool whole = lines >= 16 && depth >= WF_BF16_K;
        if (by_rows && whole)
            pack_depth(16, WF_BF16_K, a, a_step, tiles);
        else if (by_rows)
            pack_depth(lines, depth, a, a_step, tiles);
        else if (whole)
            pack_lines(true, 16, WF_BF16_K, a, a_step, tiles);
        else
            pack_lines(true, lines, depth, a, a_step, tiles);
    }
}

V_INLINE void pack_b(int64_t depth, const float *b, int64_t b_step, float *tiles)
{
    for (; depth >= WF_BF16_K; depth -= WF_BF16_K, tiles += AMX_TILE, b += WF_BF16_K * b_step)
        pack_lines(false, 16, WF_BF16_K, b, b_step, tiles);
    if (depth > 0)
        pack_lines(false, 16, depth, b, b_step, tiles);
}

/* One tile of C, or two side by side. `begin`: its sums begin at +0. `end`: they end with the addition of +0. */
V_INLINE void amx_tiles(const bool two, bool begin, bool end, int64_t steps, const float *a, const float *b, float *c, int64_t c_step)
{
    const int64_t stride = c_step * (int64_t)sizeof *c, right = AMX_STEPS * AMX_TILE;
    if (begin) {
        TILE_ZERO(0);
        TILE_ZERO(1);
    } else {
        TILE_LOAD(0, c, stride);
        if (two)
            TILE_LOAD(1, c + 16, stride);
    }
    for (; steps > 0; steps--, a += AMX_TILE, b += AMX_TILE) {
        TILE_LOAD(2, a, TILE_ROW);
        TILE_LOAD(3, b, TILE_ROW);
        if (two)
            TILE_LOAD(4, b + right, TILE_ROW);
        TILE_MULTIPLY(0, 2, 3);
        if (two)
            TILE_MULTIPLY(1, 2, 4);
    }
    if (end) {
        TILE_ZERO(2);
        TILE_ZERO(3);
        TILE_MULTIPLY(0, 2, 3);
        if (two)
            TILE_MULTIPLY(1, 2, 3);
    }
    TILE_STORE(0, c, stride);
    if (two)
        TILE_STORE(1, c + 16, stride);
}

/* The same for fewer than 16 rows of C. */
V_INLINE void amx_some_rows(const bool two, int64_t rows, bool begin, bool end, int64_t steps, const float *a, const float *b, float *c,
                            int64_t c_step)
{
    float copy[2 * AMX_TILE] __attribute__((aligned(64)));
    for (int64_t i = 0; i < 16; i++)
        for (int j = 0; j < (two ? 32 : 16); j += 16)
            v_store(copy + i * 32 + j, i < rows && !begin ? v_load(c + i * c_step + j) : v_set(0));
    amx_tiles(two, begin, end, steps, a, b, copy, 32);
    for (int64_t i = 0; i < rows; i++)
        for (int j = 0; j < (two ? 32 : 16); j += 16)
            v_store(c + i * c_step + j, v_load(copy + i * 32 + j));
}

/* C = scale A B, or C += A B if `add`. The parameters are those of `block` in attention_products.h, with 16 lanes a register. */
V_INLINE void multiply_amx(int64_t rows, int64_t width, const bool by_rows, const bool add, float scale, int64_t depth, const float *a,
                           int64_t a_step, const float *b, int64_t b_step, float *c, int64_t c_step)
{
    float left[AMX_STEPS * AMX_TILE] __attribute__((aligned(64))), right[2 * AMX_STEPS * AMX_TILE] __attribute__((aligned(64)));
    enum { PART = AMX_STEPS * WF_BF16_K };
    for (int64_t p = 0; p < depth; p += PART) {
        const int64_t part = WF_MIN(depth - p, PART), steps = (part + WF_BF16_K - 1) / WF_BF16_K;
        const bool begin = !add && p == 0, end = add && p + PART >= depth;
        for (int64_t j = 0; j < width; j += 2) {
            const bool two = j + 1 < width;
            pack_b(part, b + p * b_step + 16 * j, b_step, right);
            if (two)
                pack_b(part, b + p * b_step + 16 * j + 16, b_step, right + AMX_STEPS * AMX_TILE);
            for (int64_t i = 0; i < rows; i += 16) {
                float *at = c + i * c_step + 16 * j;
                pack_a(by_rows, rows - i, part, by_rows ? a + i * a_step + p : a + p * a_step + i, a_step, left);
                if (i + 16 > rows && two)
                    amx_some_rows(true, rows - i, begin, end, steps, left, right, at, c_step);
                else if (i + 16 > rows)
                    amx_some_rows(false, rows - i, begin, end, steps, left, right, at, c_step);
                else if (two)
                    amx_tiles(true, begin, end, steps, left, right, at, c_step);
                else
                    amx_tiles(false, begin, end, steps, left, right, at, c_step);
            }
        }
    }
    for (int64_t i = 0; i < rows && !add && scale != 1; i++)
        for (int64_t j = 0; j < 16 * width; j += 16)
            v_store(c + i * c_step + j, v_load(c + i * c_step + j) * scale);
}

V_INLINE bool amx_pays(int64_t rows, int64_t width, int64_t depth)
{
    return depth >= AMX_DEPTH && rows * width * 16 * depth >= AMX_TERMS && wf_amx();
}

/* Around all products of a call of a kernel. */
V_INLINE bool enter_amx(const struct wf_attention *a)
{
    const bool used = a->precision == WF_PRECISION_BF16 && wf_amx();
    if (used)
        wf_amx_enter();
    return used;
}

V_INLINE void leave_amx(bool used)
{
    if (used)
        wf_amx_leave();
}
#else
#define ATTENTION_HAS_AMX 0
V_INLINE bool enter_amx(const struct wf_attention *a)
{
    (void)a;
    return false;
}

V_INLINE void leave_amx(bool used)
{
    (void)used;
}
#endif

#endif
