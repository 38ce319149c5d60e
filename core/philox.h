/* SPDX-License-Identifier: MIT */
/* Philox4x32-10 (Salmon et al. 2011), for one counter or for a register of counters. */
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

/* Defines NAME(key, word), which replaces the four words of a counter by random words. In a register a word is the low half of a 64-bit
 * lane. The upper half may contain anything, because the product of 32 x 32 bits does not read it. `spread` converts 32 bits to the type
 * of a word. */
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

#define PHILOX_COUNTERS (V_BYTES / 8)      /* counters in a register */
#define PHILOX_WORDS (4 * PHILOX_COUNTERS) /* random words from these counters */

/* The order of the counters in the lanes. PHILOX_EVEN and PHILOX_ODD interleave pairs of lanes, which puts the random words in the order
 * 0, 1, 2, ... of their counters. */
#if PHILOX_COUNTERS == 8
#define PHILOX_ORDER                                                                                                                       \
    {                                                                                                                                      \
        0, 4, 1, 5, 2, 6, 3, 7                                                                                                             \
    }
#define PHILOX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define PHILOX_ODD(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#elif PHILOX_COUNTERS == 4
#define PHILOX_ORDER                                                                                                                       \
    {                                                                                                                                      \
        0, 2, 1, 3                                                                                                                         \
    }
#define PHILOX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define PHILOX_ODD(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#define PHILOX_ORDER                                                                                                                       \
    {                                                                                                                                      \
        0, 1                                                                                                                               \
    }
#define PHILOX_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#define PHILOX_ODD(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* Writes PHILOX_WORDS random words: those of the counters (first, row, call), (first + 1, row, call), ... in order. */
V_INLINE void philox_draw(uint64_t first, uint64_t row, uint32_t call, uint64_t key, void *words)
{
    const vu64 low = 0xffffffffu + (vu64){0};
    vu64 c[4] = {first + (vu64)PHILOX_ORDER, philox_wide(row & 0xffffffffu), philox_wide(row >> 32), philox_wide(call)};
    philox_wide_rounds(key, c);
    vu64 front = (c[0] & low) | (c[1] << 32), back = (c[2] & low) | (c[3] << 32);
    vu64 even = PHILOX_EVEN(front, back), odd = PHILOX_ODD(front, back);
    __builtin_memcpy(words, &even, sizeof even);
    __builtin_memcpy((char *)words + sizeof even, &odd, sizeof odd);
}

/* Mixes the bits of x, so that similar numbers become different ones (the last step of the generator splitmix64). */
static inline uint64_t philox_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The key of the dropout masks and of the noise in a training step. */
static inline uint64_t philox_key(uint64_t seed, uint64_t step)
{
    return philox_mix(philox_mix(seed + 0x9e3779b97f4a7c15u) ^ step);
}

#endif
