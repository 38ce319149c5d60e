/* SPDX-License-Identifier: MIT */
/* Philox4x32-10 (Salmon et al. 2011), one counter or a register of them. */
#ifndef WEFT_PHILOX_H
#define WEFT_PHILOX_H

#include "simd.h"

V_INLINE uint32_t philox_word(uint32_t x)
{
    return x;
}

V_INLINE uint64_t philox_product(uint32_t a, uint32_t b)
{
    return (uint64_t)a * b;
}

V_INLINE vu64 philox_wide(uint64_t x)
{
    return x + (vu64){0};
}

V_INLINE vu64 philox_wide_product(vu64 a, uint32_t b)
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

/* NAME(key, word): the counter's four words become the random ones. In registers a word is the low half of a 64-bit lane, whose upper
 * half carries anything: the 32 x 32 -> 64 bit product does not read it. `spread` makes a word of 32 bits. */
#define PHILOX(NAME, word_type, product_type, product, spread)                                                                             \
    V_INLINE void NAME(uint64_t key, word_type word[4])                                                                                    \
    {                                                                                                                                      \
        word_type c0 = word[0], c1 = word[1], c2 = word[2], c3 = word[3];                                                                  \
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);                                                                           \
        _Pragma("GCC unroll 10") for (int round = 0; round < 10; round++)                                                                  \
        {                                                                                                                                  \
            product_type p0 = product(c0, 0xd2511f53u), p1 = product(c2, 0xcd9e8d57u);                                                     \
            c0 = (word_type)(p1 >> 32) ^ c1 ^ spread(k0);                                                                                  \
            c2 = (word_type)(p0 >> 32) ^ c3 ^ spread(k1);                                                                                  \
            c1 = (word_type)p1;                                                                                                            \
            c3 = (word_type)p0;                                                                                                            \
            k0 += 0x9e3779b9u;                                                                                                             \
            k1 += 0xbb67ae85u;                                                                                                             \
        }                                                                                                                                  \
        word[0] = c0;                                                                                                                      \
        word[1] = c1;                                                                                                                      \
        word[2] = c2;                                                                                                                      \
        word[3] = c3;                                                                                                                      \
    }
PHILOX(philox_rounds, uint32_t, uint64_t, philox_product, philox_word)
PHILOX(philox_wide_rounds, vu64, vu64, philox_wide_product, philox_wide)

/* splitmix64's finaliser. */
static inline uint64_t philox_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The key of a training step's masks of dropout. */
static inline uint64_t philox_key(uint64_t seed, uint64_t step)
{
    return philox_mix(philox_mix(seed + 0x9e3779b97f4a7c15u) ^ step);
}

#endif
