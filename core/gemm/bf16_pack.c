/* SPDX-License-Identifier: MIT */
/* Rounds operands of bf16's arithmetic and packs them into the tiles that bf16.h describes. */
#ifndef WF_DOUBLE
#include "../transpose.h"
#include "bf16.h"

enum { PAIRS = BF16_K / 2 };

/* The elements rounded to bf16, in the high halves of the lanes; the low halves are anything. Integers alone, so that no mode of the
 * processor's floating-point unit matters. */
V_INLINE vu rounded(vr x)
{
    const vu bits = (vu)x, size = bits & (vu)v_seti(0x7fffffff);
    const vu nearest = bits + (vu)v_seti(0x7fff) + (bits >> 16 & 1);
#if defined(WF_ISA_AVX512)
    const __mmask16 nan = _mm512_cmpgt_epu32_mask((__m512i)size, _mm512_set1_epi32(0x7f800000));
    const __mmask16 denormal = _mm512_cmplt_epu32_mask((__m512i)size, _mm512_set1_epi32(0x00800000));
    const __m512i y = _mm512_mask_or_epi32((__m512i)nearest, nan, (__m512i)bits, _mm512_set1_epi32(0x00400000));
    return (vu)_mm512_mask_and_epi32(y, denormal, (__m512i)bits, _mm512_set1_epi32((int)0x80000000));
#else
    const vi nan = (vi)size > v_seti(0x7f800000), denormal = (vi)size < v_seti(0x00800000);
    const vr y = v_select(nan, (vr)(bits | (vu)v_seti(0x00400000)), (vr)nearest);
    return (vu)v_select(denormal, (vr)(bits & (vu)v_seti(V_SIGN)), y);
#endif
}

/* Pairs of elements, the even one in the low half. */
V_INLINE vr paired(vr even, vr odd)
{
    return (vr)((rounded(even) >> 16) | (rounded(odd) & (vu)v_seti((v_lane)0xffff0000)));
}

/* The 2 V_LANES elements of x and y in their order. */
V_INLINE vr narrowed(vr x, vr y)
{
    const vu low = rounded(x), high = rounded(y);
#if defined(WF_ISA_AVX512)
    const __m512i index = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25, 23, 21, 19, 17,
                                           15, 13, 11, 9, 7, 5, 3, 1);
    return (vr)_mm512_permutex2var_epi16((__m512i)low, index, (__m512i)high);
#elif defined(WF_ISA_AVX2)
    return (vr)_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)(low >> 16), (__m256i)(high >> 16)), 0xd8);
#else
    union {
        wf_bf16 half[2 * V_LANES];
        vr whole;
    } both;
    V_EACH(i)
    {
        both.half[i] = (wf_bf16)(low[i] >> 16);
        both.half[V_LANES + i] = (wf_bf16)(high[i] >> 16);
    }
    return both.whole;
#endif
}

/* Loads a square into registers: V_LANES lines with V_LANES pairs of k, beginning at s. Lines beyond `lines` and elements beyond `k` are 0.
 * If lines are contiguous (`is` is 1), register i has pair i of all lines; otherwise it has all pairs of line i. */
V_INLINE void load_square(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, vr r[V_LANES])
{
    if (is == 1) { /* contiguous lines: register i has pair i of all lines */
        const v_mask mask = V_FIRST((int)WF_MIN(lines, V_LANES));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++) {
            const vr even = 2 * i < k ? v_load_mask(s + 2 * i * ps, mask) : v_set(0);
            const vr odd = 2 * i + 1 < k ? v_load_mask(s + (2 * i + 1) * ps, mask) : v_set(0);
            r[i] = paired(even, odd);
        }
    } else { /* contiguous k: register i has all pairs of line i */
        const v_mask first = V_FIRST((int)WF_MIN(k, V_LANES)), second = V_FIRST((int)WF_MAX(0, WF_MIN(k - V_LANES, V_LANES)));
#pragma GCC unroll 16
        for (int i = 0; i < V_LANES; i++)
            r[i] = i < lines ? narrowed(v_load_mask(s + i * is, first), k > V_LANES ? v_load_mask(s + i * is + V_LANES, second) : v_set(0))
                             : v_set(0);
    }
}

/* One tile: `lines` lines with k elements, k at most BF16_K. `by_pair`: the tile's rows are pairs of k (B), otherwise lines (A). */
V_INLINE void pack_tile(const bool by_pair, int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, float *tile)
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
                load_square(lines - line, k - 2 * pair, s + line * is + 2 * pair * ps, is, ps, r);
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
V_INLINE void pack_steps(const bool by_pair, int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps,
                         wf_bf16 *tiles)
{
    float *tile = (float *)tiles;
    if (lines == BF16_LINES && is == 1)
        for (; steps > 0 && k >= BF16_K; steps--, k -= BF16_K, s += BF16_K * ps, tile += BF16_TILE / 2)
            pack_tile(by_pair, BF16_LINES, BF16_K, s, 1, ps, tile);
    else if (lines == BF16_LINES && ps == 1)
        for (; steps > 0 && k >= BF16_K; steps--, k -= BF16_K, s += BF16_K, tile += BF16_TILE / 2)
            pack_tile(by_pair, BF16_LINES, BF16_K, s, is, 1, tile);
    for (; steps > 0; steps--, k -= BF16_K, s += BF16_K * ps, tile += BF16_TILE / 2)
        pack_tile(by_pair, lines, WF_MIN(k, BF16_K), s, is, ps, tile);
}

void WF_GEMM(bf16_pack_a)(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles)
{
    pack_steps(false, lines, k, s, is, ps, steps, tiles);
}

void WF_GEMM(bf16_pack_b)(int64_t lines, int64_t k, const float *s, int64_t is, int64_t ps, int64_t steps, wf_bf16 *tiles)
{
    pack_steps(true, lines, k, s, is, ps, steps, tiles);
}
#endif
