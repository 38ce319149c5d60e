/* SPDX-License-Identifier: MIT */
/* Vectors for the matrix kernels: loads with masks, multiply-add, transposes of a square of registers; float and double, for
 * the instruction set that the file is compiled for. */
#ifndef WEFT_GEMM_SIMD_H
#define WEFT_GEMM_SIMD_H

#include <string.h>

#include "isa.h"

#if defined WF_ISA_AVX512 || defined WF_ISA_AVX2
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline, unused))

#if defined WF_ISA_AVX512
enum { TILE_M = 14 };
#define VECTOR_BYTES 64
#define LAST_IS_FREE 1 /* a masked load or store costs what a whole one does */
#else
enum { TILE_M = 6 };
#define LAST_IS_FREE 0
#if defined WF_ISA_AVX2
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#endif
enum { LANES = VECTOR_BYTES / sizeof(wf_real), TILE_V = 2, TILE_N = TILE_V * LANES };

typedef wf_real vec __attribute__((vector_size(VECTOR_BYTES)));
typedef wf_real vec_anywhere __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(wf_real)), may_alias));

INLINE vec load(const wf_real *p)
{
    return *(const vec_anywhere *)p;
}

INLINE void store(wf_real *p, vec x)
{
    *(vec_anywhere *)p = x;
}

INLINE vec zero(void)
{
    return (vec){0};
}

/* A mask of the first n lanes, 0 <= n <= LANES. */
#if defined WF_ISA_AVX512
#ifdef WF_DOUBLE
typedef __mmask8 mask;
#define OP(name) _mm512_##name##_pd
#else
typedef __mmask16 mask;
#define OP(name) _mm512_##name##_ps
#endif

INLINE mask first(int n)
{
    return (mask)((1u << n) - 1);
}

INLINE vec load_first(const wf_real *p, mask m)
{
    return OP(maskz_loadu)(m, p);
}

INLINE void store_first(wf_real *p, mask m, vec x)
{
    OP(mask_storeu)(p, m, x);
}

INLINE vec fill(wf_real x)
{
    return OP(set1)(x);
}

#elif defined WF_ISA_AVX2
typedef __m256i mask;
#ifdef WF_DOUBLE
#define OP(name) _mm256_##name##_pd
#else
#define OP(name) _mm256_##name##_ps
#endif

INLINE mask first(int n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - n * (8 / LANES)));
}

INLINE vec load_first(const wf_real *p, mask m)
{
    return OP(maskload)(p, m);
}

INLINE void store_first(wf_real *p, mask m, vec x)
{
    OP(maskstore)(p, m, x);
}

INLINE vec fill(wf_real x)
{
    return OP(set1)(x);
}

#else
typedef int mask;

INLINE mask first(int n)
{
    return n;
}

INLINE vec load_first(const wf_real *p, mask m)
{
    vec x = {0};
    for (int i = 0; i < LANES; i++)
        if (i < m)
            x[i] = p[i];
    return x;
}

INLINE void store_first(wf_real *p, mask m, vec x)
{
    for (int i = 0; i < LANES; i++)
        if (i < m)
            p[i] = x[i];
}

INLINE vec fill(wf_real x)
{
    return x - (vec){0};
}
#endif

/* a b + c: in one rounding where there is an instruction for it. */
INLINE vec fma_v(vec a, vec b, vec c)
{
#if defined WF_ISA_AVX512 || defined WF_ISA_AVX2
    return OP(fmadd)(a, b, c);
#else
    return a * b + c;
#endif
}

/* r[i][j] <-> r[j][i] over LANES registers. */
INLINE void transpose(vec r[LANES])
{
#if defined WF_ISA_AVX512 && !defined WF_DOUBLE
    vec t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512d a = (__m512d)t[4 * i], b = (__m512d)t[4 * i + 1], c = (__m512d)t[4 * i + 2], d = (__m512d)t[4 * i + 3];
        r[4 * i] = (vec)_mm512_unpacklo_pd(a, c);
        r[4 * i + 1] = (vec)_mm512_unpackhi_pd(a, c);
        r[4 * i + 2] = (vec)_mm512_unpacklo_pd(b, d);
        r[4 * i + 3] = (vec)_mm512_unpackhi_pd(b, d);
    }
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
#elif defined WF_ISA_AVX512
    vec t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        vec a = _mm512_shuffle_f64x2(t[j], t[2 + j], 0x88), b = _mm512_shuffle_f64x2(t[j], t[2 + j], 0xdd);
        vec c = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0x88), d = _mm512_shuffle_f64x2(t[4 + j], t[6 + j], 0xdd);
        r[j] = _mm512_shuffle_f64x2(a, c, 0x88);
        r[2 + j] = _mm512_shuffle_f64x2(b, d, 0x88);
        r[4 + j] = _mm512_shuffle_f64x2(a, c, 0xdd);
        r[6 + j] = _mm512_shuffle_f64x2(b, d, 0xdd);
    }
#elif defined WF_ISA_AVX2 && !defined WF_DOUBLE
    vec t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        r[i] = t[i];
#elif defined WF_ISA_AVX2
    vec a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    vec c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
#elif !defined WF_DOUBLE
    vec a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
    vec b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    vec c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    vec d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
#else
    vec a = __builtin_shufflevector(r[0], r[1], 0, 2);
    r[1] = __builtin_shufflevector(r[0], r[1], 1, 3);
    r[0] = a;
#endif
}

#endif
