/* SPDX-License-Identifier: MIT */
/* Numbers in bf16 in the lanes of vectors, and the mode of the floating-point unit in which bf16's arithmetic computes (gemm/bf16.h). */
#ifndef WEFT_BF16_LANES_H
#define WEFT_BF16_LANES_H
#ifndef WF_DOUBLE

#include "simd.h"
#if defined V_HAS_FMA
#include <xmmintrin.h>
#endif

/* Values of MXCSR. */
enum {
    BF16_EXACT = 0x1f80,              /* the default: rounds to nearest, keeps denormals, raises no exception */
    BF16_FLUSH = BF16_EXACT | 0x8040, /* the same with DAZ and FTZ */
};

/* Sets the mode of the floating-point unit, which does not depend on the caller's: AMX uses neither. Returns the mode before. */
V_INLINE unsigned bf16_mode(unsigned mode)
{
#if defined V_HAS_FMA
    const unsigned before = _mm_getcsr();
    _mm_setcsr(mode);
    return before;
#else
    return mode;
#endif
}

#if !defined V_HAS_FMA
/* a b + c in one rounding, and a denormal result as a zero of its sign. The product of two bf16 values is exact in double. The sum is
 * rounded to double by rounding to odd, which a second rounding to float does not show (Boldo and Melquiond 2008). */
V_INLINE float bf16_fma(float a, float b, float c)
{
    const double product = (double)a * b, sum = product + c, back = sum - product;
    const double error = (product - (sum - back)) + (c - back);
    union {
        double value;
        int64_t bits;
    } odd = {sum};
    if ((error > 0 || error < 0) && !(odd.bits & 1)) /* an infinite sum has an error of NaN */
        odd.bits += (error > 0) == (sum > 0) ? 1 : -1;
    /* FTZ asks whether the result is below the smallest normal number after rounding to 24 bits. */
    const double size = odd.value < 0 ? -odd.value : odd.value;
    if (size < 0x1.ffffffp-127)
        return sum < 0 || (sum == 0 && __builtin_signbit(sum)) ? -0.f : 0.f;
    return (float)odd.value;
}

V_INLINE float bf16_flushed(float x)
{
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0, x) : x;
}
#endif

/* The elements rounded to bf16, in the high halves of the lanes; the low halves are anything. Integers alone, so that no mode of the
 * processor's floating-point unit matters. */
V_INLINE vu bf16_rounded(vr x)
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

/* The same as floats, whose low halves are 0. */
V_INLINE vr bf16_floats(vr x)
{
    return (vr)(bf16_rounded(x) & (vu)v_seti((v_lane)0xffff0000));
}

/* a b + c and a + b for all lanes, where denormals are zeros of their sign. With multiply-adds in the instruction set, the mode must be
 * BF16_FLUSH. a and b of the first are bf16. */
V_INLINE vr bf16_v_fma(vr a, vr b, vr c)
{
#if defined V_HAS_FMA
    return v_fma(a, b, c);
#else
    V_EACH(i) c[i] = bf16_fma(a[i], b[i], c[i]);
    return c;
#endif
}

V_INLINE vr bf16_v_add(vr a, vr b)
{
#if defined V_HAS_FMA
    return a + b;
#else
    V_EACH(i) a[i] = bf16_flushed(bf16_flushed(a[i]) + bf16_flushed(b[i]));
    return a;
#endif
}

/* The high halves of the lanes as pairs, that of x in the low half. */
V_INLINE vr bf16_high_pairs(vr x, vr y)
{
    return (vr)(((vu)x >> 16) | ((vu)y & (vu)v_seti((v_lane)0xffff0000)));
}

/* Pairs of elements, the even one in the low half. */
V_INLINE vr bf16_paired(vr even, vr odd)
{
    return bf16_high_pairs((vr)bf16_rounded(even), (vr)bf16_rounded(odd));
}

/* The even and the odd elements of pairs, as floats. */
V_INLINE vr bf16_even(vr pairs)
{
    return (vr)((vu)pairs << 16);
}

V_INLINE vr bf16_odd(vr pairs)
{
    return (vr)((vu)pairs & (vu)v_seti((v_lane)0xffff0000));
}

#if defined(WF_ISA_AVX512)
/* The high halves of the lanes of x and y in their order. */
V_INLINE vr bf16_high_halves(vr x, vr y)
{
    const __m512i index = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31, 29, 27, 25, 23, 21, 19, 17,
                                           15, 13, 11, 9, 7, 5, 3, 1);
    return (vr)_mm512_permutex2var_epi16((__m512i)x, index, (__m512i)y);
}
#endif

/* The high halves of the 2 V_LANES lanes of low and high in their order. */
V_INLINE vr bf16_halves(vu low, vu high)
{
#if defined(WF_ISA_AVX512)
    return bf16_high_halves((vr)low, (vr)high);
#elif defined(WF_ISA_AVX2)
    return (vr)_mm256_permute4x64_epi64(_mm256_packus_epi32((__m256i)(low >> 16), (__m256i)(high >> 16)), 0xd8);
#else
    union {
        uint16_t half[2 * V_LANES];
        vr whole;
    } both;
    V_EACH(i)
    {
        both.half[i] = (uint16_t)(low[i] >> 16);
        both.half[V_LANES + i] = (uint16_t)(high[i] >> 16);
    }
    return both.whole;
#endif
}

/* The 2 V_LANES elements of x and y in their order. */
V_INLINE vr bf16_narrowed(vr x, vr y)
{
    return bf16_halves(bf16_rounded(x), bf16_rounded(y));
}

#if defined(WF_ISA_AVX512)
/* bf16_narrowed and bf16_paired with the processor's instruction, which rounds in the same way whatever its mode: for wf_bf16_rounding().
 * In assembler, since the files of this instruction set are compiled without AVX512-BF16. */
V_INLINE vr bf16_narrowed_by_processor(vr x, vr y)
{
    vr both;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(both) : "v"(x), "v"(y));
    return both;
}

V_INLINE vr bf16_paired_by_processor(vr even, vr odd)
{
    const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                           18, 2, 17, 1, 16, 0);
    return (vr)_mm512_permutexvar_epi16(pairs, (__m512i)bf16_narrowed_by_processor(even, odd));
}
#else
#define bf16_narrowed_by_processor bf16_narrowed
#define bf16_paired_by_processor bf16_paired
#endif

/* n numbers in bf16, `step` elements apart, as floats. */
V_INLINE void bf16_widen(int64_t n, const uint16_t *from, int64_t step, float *to)
{
    int64_t i = 0;
#if defined(WF_ISA_AVX512)
    for (; step == 1 && i + 16 <= n; i += 16)
        _mm512_storeu_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(from + i))), 16));
#elif defined(WF_ISA_AVX2)
    for (; step == 1 && i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i_u *)(to + i),
                            _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(from + i))), 16));
#endif
    for (; i < n; i++) {
        union {
            uint32_t bits;
            float value;
        } x = {(uint32_t)from[i * step] << 16};
        to[i] = x.value;
    }
}

#endif
#endif
