/* SPDX-License-Identifier: MIT */
/* Rounds operands of bf16's arithmetic and packs them into the tiles that bf16.h describes. */
#ifndef WF_DOUBLE
#include <weft/internal/runtime.h>

#include <string.h>

#include "../bf16_lanes.h"
#include "../transpose.h"
#include "bf16.h"

enum {
    PAIRS = BF16_K / 2,
    LINES_AHEAD = 64, /* speed: with contiguous lines, packing fetches this many lines ahead, */
    K_AHEAD = 128,    /* speed: and with contiguous k this many steps of k */
};

/* `by_processor`: rounding takes the processor's instruction.
 *
 * Loads a square into registers: V_LANES lines with V_LANES pairs of k, beginning at s. Lines beyond `lines` and elements beyond `k` are 0.
 * If lines are contiguous (`is` is 1), register i has pair i of all lines; otherwise it has all pairs of line i. */
V_INLINE void load_square(const bool by_processor, int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, vr r[V_LANES])
{
    if (is == 1) { /* contiguous lines: register i has pair i of all lines */
        const v_mask mask = V_FIRST((int)WF_MIN(lines, V_LANES));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++) {
            const vr even = 2 * i < k ? v_load_mask(s + 2 * i * ps, mask) : v_set(0);
            const vr odd = 2 * i + 1 < k ? v_load_mask(s + (2 * i + 1) * ps, mask) : v_set(0);
            r[i] = by_processor ? bf16_paired_by_processor(even, odd) : bf16_paired(even, odd);
        }
    } else { /* contiguous k: register i has all pairs of line i */
        const v_mask first = V_FIRST((int)WF_MIN(k, V_LANES)), second = V_FIRST((int)WF_MAX(0, WF_MIN(k - V_LANES, V_LANES)));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++) {
            const vr x = i < lines ? v_load_mask(s + i * is, first) : v_set(0);
            const vr y = i < lines && k > V_LANES ? v_load_mask(s + i * is + V_LANES, second) : v_set(0);
            r[i] = by_processor ? bf16_narrowed_by_processor(x, y) : bf16_narrowed(x, y);
        }
    }
}

/* Fetches what a later tile reads: the hardware does not follow so many rows. */
V_INLINE void fetch(int64_t is, int64_t ps, const float *s)
{
    if (is == 1)
        for (int p = 0; p < BF16_K; p++)
            __builtin_prefetch(s + p * ps + LINES_AHEAD);
    else
        for (int i = 0; i < BF16_LINES; i++) {
            __builtin_prefetch(s + i * is + K_AHEAD);
            __builtin_prefetch(s + i * is + K_AHEAD + CACHE_LINE / sizeof(float));
        }
}

/* One tile: `lines` lines with k elements, k at most BF16_K. `by_pair`: the tile's rows are pairs of k (B), otherwise lines (A). */
V_INLINE void pack_tile(const bool by_processor, const bool by_pair, int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps,
                        float *tile)
{
    float copy[BF16_LINES * BF16_K];
    if (is != 1 && ps != 1) {
        for (int64_t i = 0; i < lines; i++)
            for (int64_t p = 0; p < k; p++)
                copy[i * BF16_K + p] = s[i * is + p * ps];
        s = copy;
        is = BF16_K;
        ps = 1;
    }
    for (int line = 0; line < BF16_LINES; line += V_LANES)
        for (int pair = 0; pair < PAIRS; pair += V_LANES) {
            vr r[V_LANES];
            if (lines > line && k > 2 * pair) {
                load_square(by_processor, lines - line, k - 2 * pair, s + line * is + 2 * pair * ps, is, ps, r);
                if ((is == 1) != by_pair)
                    v_transpose(r);
            } else {
                V_EACH(i) r[i] = v_set(0);
            }
            float *to = by_pair ? tile + pair * BF16_LINES + line : tile + line * PAIRS + pair;
#pragma GCC unroll 16
            for (int i = 0; i < V_LANES; i++)
                v_store(to + i * 16, r[i]);
        }
}

/* Packs `steps` tiles. The tiles of a whole panel come first, in loops in which the compiler knows all of pack_tile's conditions. */
V_INLINE void pack_steps(const bool by_processor, const bool by_pair, int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps,
                         int64_t steps, wf_bf16 *tiles)
{
    float *tile = (float *)tiles;
    if (lines == BF16_LINES && is == 1)
        for (; steps > 0 && k >= BF16_K; steps--, k -= BF16_K, s += BF16_K * ps, tile += BF16_TILE / 2) {
            fetch(1, ps, s);
            pack_tile(by_processor, by_pair, BF16_LINES, BF16_K, s, 1, ps, tile);
        }
    else if (lines == BF16_LINES && ps == 1)
        for (; steps > 0 && k >= BF16_K; steps--, k -= BF16_K, s += BF16_K, tile += BF16_TILE / 2) {
            fetch(is, 1, s);
            pack_tile(by_processor, by_pair, BF16_LINES, BF16_K, s, is, 1, tile);
        }
    for (; steps > 0; steps--, k -= BF16_K, s += BF16_K * ps, tile += BF16_TILE / 2)
        pack_tile(by_processor, by_pair, lines, WF_MIN(k, BF16_K), s, is, ps, tile);
}

void WF_GEMM(bf16_pack_a)(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles)
{
    if (wf_bf16_rounding())
        pack_steps(true, false, lines, k, s, is, ps, steps, tiles);
    else
        pack_steps(false, false, lines, k, s, is, ps, steps, tiles);
}

void WF_GEMM(bf16_pack_b)(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles)
{
    if (wf_bf16_rounding())
        pack_steps(true, true, lines, k, s, is, ps, steps, tiles);
    else
        pack_steps(false, true, lines, k, s, is, ps, steps, tiles);
}

#if defined WF_ISA_AVX512
/* A tile whose lines have their k side by side: pairs as they are. Denormals stay, since products take them for zeros (BF16_FLUSH, AMX). */
V_INLINE void pack_stored_pairs(const wf_bf16 *s, int64_t is, float *tile)
{
    vr r[V_LANES];
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++) {
        r[i] = (vr)_mm512_loadu_si512(s + i * is);
        __builtin_prefetch(s + i * is + 2 * K_AHEAD);
    }
    v_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
        v_store(tile + i * 16, r[i]);
}
#endif

void WF_GEMM(bf16_pack_b_stored)(int64_t lines, int64_t k, const wf_bf16 *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles)
{
#if defined WF_ISA_AVX512
    for (; lines == BF16_LINES && ps == 1 && is != 1 && steps > 0 && k >= BF16_K; steps--, k -= BF16_K, s += BF16_K, tiles += BF16_TILE)
        pack_stored_pairs(s, is, (float *)tiles);
#endif
    _Alignas(64) float piece[BF16_TILE];
    for (; steps > 0; steps--, k -= BF16_K, s += BF16_K * ps, tiles += BF16_TILE) {
        const bool by_line = is != 1; /* lines of k, or steps of lines */
        const int64_t most = WF_MIN(k, BF16_K), runs = by_line ? lines : most, length = by_line ? most : lines;
        const int64_t run = by_line ? BF16_K : BF16_LINES;
        for (int64_t i = 0; i < runs; i++)
            bf16_widen(length, s + i * (by_line ? is : ps), by_line ? ps : is, piece + i * run);
        pack_tile(false, true, lines, most, piece, by_line ? run : 1, by_line ? 1 : run, (float *)tiles);
    }
}

/* The elements rounded to bf16 in the high halves of the lanes. A denormal becomes the smallest one of its sign. */
V_INLINE vu kept(vr x)
{
    const vu size = (vu)x & (vu)v_seti(0x7fffffff);
    const vi denormal = ((vi)size < v_seti(0x00800000)) & ((vi)size > v_seti(0));
    return bf16_rounded(x) | ((vu)denormal & (vu)v_seti(0x00010000));
}

void WF_GEMM(bf16_keep)(int64_t n, const float *from, wf_bf16 *to)
{
    int64_t i = 0;
    for (; i + 2 * V_LANES <= n; i += 2 * V_LANES) {
        const vr both = bf16_halves(kept(v_load(from + i)), kept(v_load(from + i + V_LANES)));
        memcpy(to + i, &both, sizeof both);
    }
    if (i < n) {
        float last[2 * V_LANES] = {0};
        memcpy(last, from + i, (size_t)(n - i) * sizeof *from);
        const vr both = bf16_halves(kept(v_load(last)), kept(v_load(last + V_LANES)));
        memcpy(to + i, &both, (size_t)(n - i) * sizeof *to);
    }
}

void WF_GEMM(bf16_widen)(int64_t n, const wf_bf16 *from, float *to)
{
    bf16_widen(n, from, 1, to);
}
#endif
