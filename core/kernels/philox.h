/* SPDX-License-Identifier: MIT */
/* Philox4x32-10 in registers, for dropout: a 64-bit lane a counter, of which the low halves hold the 32-bit words. The upper
 * halves carry rubbish between rounds: the 32 x 32 -> 64 bit product doesn't look at them. */
#ifndef WEFT_KERNELS_PHILOX_H
#define WEFT_KERNELS_PHILOX_H

#include "simd.h"

V_INLINE vu64 philox_wide(uint64_t x)
{
    return x + (vu64){0};
}

V_INLINE vu64 philox_product(vu64 a, uint32_t b)
{
    vu64 c = philox_wide(b);
#if defined(WF_ISA_AVX512)
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)c);
#elif defined(WF_ISA_AVX2)
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)c);
#elif defined(V_X86)
    return (vu64)_mm_mul_epu32((__m128i)a, (__m128i)c);
#else
    return (a & 0xffffffffu) * c;
#endif
}

/* The counter's four words become the random ones (Salmon et al. 2011). */
V_INLINE void philox_rounds(uint64_t key, vu64 word[4])
{
    vu64 c0 = word[0], c1 = word[1], c2 = word[2], c3 = word[3];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        vu64 p0 = philox_product(c0, 0xd2511f53u), p1 = philox_product(c2, 0xcd9e8d57u);
        c0 = (p1 >> 32) ^ c1 ^ philox_wide(k0);
        c2 = (p0 >> 32) ^ c3 ^ philox_wide(k1);
        c1 = p1;
        c3 = p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
}

/* splitmix64's finaliser. */
static inline uint64_t philox_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The key of a training step's masks. */
static inline uint64_t philox_key(uint64_t seed, uint64_t step)
{
    return philox_mix(philox_mix(seed + 0x9e3779b97f4a7c15u) ^ step);
}

#endif
