/* SPDX-License-Identifier: MIT */
/* Transposes squares of elements in registers, to pack operands of products and attention, and to copy arrays. */
#ifndef WEFT_TRANSPOSE_H
#define WEFT_TRANSPOSE_H

#include "simd.h"

/* Transpose 2 or 4 registers r of 16 bytes, which have 2 or 4 lanes of any type. */
#define V_TRANSPOSE_2(r)                                                                                                                   \
    do {                                                                                                                                   \
        __typeof__(*(r)) v_a = __builtin_shufflevector((r)[0], (r)[1], 0, 2);                                                              \
        (r)[1] = __builtin_shufflevector((r)[0], (r)[1], 1, 3);                                                                            \
        (r)[0] = v_a;                                                                                                                      \
    } while (0)
#define V_TRANSPOSE_4(r)                                                                                                                   \
    do {                                                                                                                                   \
        __typeof__(*(r)) v_a = __builtin_shufflevector((r)[0], (r)[1], 0, 4, 1, 5);                                                        \
        __typeof__(*(r)) v_b = __builtin_shufflevector((r)[0], (r)[1], 2, 6, 3, 7);                                                        \
        __typeof__(*(r)) v_c = __builtin_shufflevector((r)[2], (r)[3], 0, 4, 1, 5);                                                        \
        __typeof__(*(r)) v_d = __builtin_shufflevector((r)[2], (r)[3], 2, 6, 3, 7);                                                        \
        (r)[0] = __builtin_shufflevector(v_a, v_c, 0, 1, 4, 5);                                                                            \
        (r)[1] = __builtin_shufflevector(v_a, v_c, 2, 3, 6, 7);                                                                            \
        (r)[2] = __builtin_shufflevector(v_b, v_d, 0, 1, 4, 5);                                                                            \
        (r)[3] = __builtin_shufflevector(v_b, v_d, 2, 3, 6, 7);                                                                            \
    } while (0)

/* The steps of v_transpose within blocks of 16 bytes. `lo` interleaves the low halves of two registers, `hi` the high halves.
 * V_INTERLEAVE interleaves single elements, from r to t. V_INTERLEAVE_PAIRS, which only float needs, interleaves pairs of elements as
 * doubles, from t to r. */
#define V_INTERLEAVE(lo, hi)                                                                                                               \
    _Pragma("GCC unroll 8") for (int i = 0; i < V_LANES / 2; i++)                                                                          \
    {                                                                                                                                      \
        t[2 * i] = lo(r[2 * i], r[2 * i + 1]);                                                                                             \
        t[2 * i + 1] = hi(r[2 * i], r[2 * i + 1]);                                                                                         \
    }
#define V_INTERLEAVE_PAIRS(wide, lo, hi)                                                                                                   \
    _Pragma("GCC unroll 4") for (int i = 0; i < V_LANES / 4; i++)                                                                          \
    {                                                                                                                                      \
        wide a = (wide)t[4 * i], b = (wide)t[4 * i + 1], c = (wide)t[4 * i + 2], d = (wide)t[4 * i + 3];                                   \
        r[4 * i] = (vr)lo(a, c);                                                                                                           \
        r[4 * i + 1] = (vr)hi(a, c);                                                                                                       \
        r[4 * i + 2] = (vr)lo(b, d);                                                                                                       \
        r[4 * i + 3] = (vr)hi(b, d);                                                                                                       \
    }

/* Transposes V_LANES registers by the cheapest shuffles of the instruction set. */
V_INLINE void v_transpose(vr r[V_LANES])
{
#if defined(WF_ISA_AVX512) && !defined(WF_DOUBLE)
    vr t[16];
    V_INTERLEAVE(_mm512_unpacklo_ps, _mm512_unpackhi_ps)
    V_INTERLEAVE_PAIRS(__m512d, _mm512_unpacklo_pd, _mm512_unpackhi_pd)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        t[j] = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88);
        t[4 + j] = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd);
        t[8 + j] = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88);
        t[12 + j] = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
        r[j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0x88);
        r[4 + j] = _mm512_shuffle_f32x4(t[4 + j], t[12 + j], 0x88);
        r[8 + j] = _mm512_shuffle_f32x4(t[j], t[8 + j], 0xdd);
        r[12 + j] = _mm512_shuffle_f32x4(t[4 + j], t[12 + j], 0xdd);
    }
#elif defined(WF_ISA_AVX512)
    vr t[8];
    V_INTERLEAVE(_mm512_unpacklo_pd, _mm512_unpackhi_pd)
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        vr a = _mm512_shuffle_f64x2(t[j], t[2 + j], 0x88), b = _mm512_shuffle_f64x2(t[j], t[2 + j], 0xdd);
        vr c = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0x88), d = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0xdd);
        r[j] = _mm512_shuffle_f64x2(a, c, 0x88);
        r[2 + j] = _mm512_shuffle_f64x2(b, d, 0x88);
        r[4 + j] = _mm512_shuffle_f64x2(a, c, 0xdd);
        r[6 + j] = _mm512_shuffle_f64x2(b, d, 0xdd);
    }
#elif defined(WF_ISA_AVX2) && !defined(WF_DOUBLE)
    vr t[8];
    V_INTERLEAVE(_mm256_unpacklo_ps, _mm256_unpackhi_ps)
    V_INTERLEAVE_PAIRS(__m256d, _mm256_unpacklo_pd, _mm256_unpackhi_pd)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
#elif defined(WF_ISA_AVX2)
    vr a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    vr c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
#elif V_LANES == 4
    V_TRANSPOSE_4(r);
#else
    V_TRANSPOSE_2(r);
#endif
}

/* Loads n columns of rows that are `stride` elements apart: r[j] becomes column j; 0 < n <= V_LANES. If there are fewer rows than lanes,
 * the lanes from `rows` on repeat row 0. */
V_INLINE void v_load_columns(const wf_real *x, int64_t rows, int64_t stride, int64_t n, vr r[V_LANES])
{
#pragma GCC unroll 16
    for (int i = 0; i < V_LANES; i++)
        r[i] = v_load_at_most(i < rows ? x + i * stride : x, n);
    v_transpose(r);
}

/* v_transpose_halves transposes the two squares that V_LANES / 2 registers hold side by side. V_SWAP(h, r) is one step: registers that
 * are h apart swap blocks of h elements. */
#define V_FIRST_OF_PAIR(lane, h) ((lane) & (h) ? V_LANES + (lane) - (h) : (lane))
#define V_SECOND_OF_PAIR(lane, h) ((lane) & (h) ? V_LANES + (lane) : (lane) + (h))
#define V_SWAP(h, r)                                                                                                                       \
    _Pragma("GCC unroll 8") for (int i = 0; i < V_LANES / 2; i++) if (!(i & h))                                                            \
    {                                                                                                                                      \
        vr a = r[i], b = r[i + h];                                                                                                         \
        r[i] = __builtin_shufflevector(a, b, V_LIST(V_FIRST_OF_PAIR, h));                                                                  \
        r[i + h] = __builtin_shufflevector(a, b, V_LIST(V_SECOND_OF_PAIR, h));                                                             \
    }

V_INLINE void v_transpose_halves(vr r[V_LANES / 2])
{
    (void)r;
#if V_LANES >= 4
    V_SWAP(1, r)
#endif
#if V_LANES >= 8
    V_SWAP(2, r)
#endif
#if V_LANES >= 16
    V_SWAP(4, r)
#endif
}

#endif
