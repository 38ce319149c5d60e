/* SPDX-License-Identifier: MIT */
/* Dropout with Philox4x32-10 in registers: a 64-bit lane a counter, of which the low halves hold the 32-bit words. The upper
 * halves carry rubbish between rounds: the 32 x 32 -> 64 bit product doesn't look at them. */
#include "simd.h"

#define COUNTERS (V_BYTES / 8)  /* in a register */
#define ELEMENTS (8 * COUNTERS) /* 16 bits each */

typedef uint16_t v_bits __attribute__((vector_size(2 * V_LANES), aligned(2), may_alias));

V_INLINE vu64 product(vu64 a, uint32_t b)
{
    vu64 c = (uint64_t)b + (vu64){0};
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

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The lanes' counters in the order in which interleaving pairs of lanes, as below, brings them back in line. */
#if COUNTERS == 8
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 4, 1, 5, 2, 6, 3, 7                                                                                                             \
    }
#define EVEN(a, b) __builtin_shuffle(a, b, (vu64){0, 8, 2, 10, 4, 12, 6, 14})
#define ODD(a, b) __builtin_shuffle(a, b, (vu64){1, 9, 3, 11, 5, 13, 7, 15})
#elif COUNTERS == 4
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 2, 1, 3                                                                                                                         \
    }
#define EVEN(a, b) __builtin_shuffle(a, b, (vu64){0, 4, 2, 6})
#define ODD(a, b) __builtin_shuffle(a, b, (vu64){1, 5, 3, 7})
#else
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 1                                                                                                                               \
    }
#define EVEN(a, b) __builtin_shuffle(a, b, (vu64){0, 2})
#define ODD(a, b) __builtin_shuffle(a, b, (vu64){1, 3})
#endif

/* The 16 random bits of elements 8 first .. 8 first + ELEMENTS - 1. */
V_INLINE void draw(uint64_t first, uint64_t row, uint32_t call, uint64_t key, uint16_t bits[ELEMENTS])
{
    const vu64 low = 0xffffffffu + (vu64){0};
    vu64 c0 = first + (vu64)ORDER;
    vu64 c1 = (row & 0xffffffffu) + (vu64){0}, c2 = (row >> 32) + (vu64){0}, c3 = (uint64_t)call + (vu64){0};
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        vu64 p0 = product(c0, 0xd2511f53u), p1 = product(c2, 0xcd9e8d57u);
        c0 = (p1 >> 32) ^ c1 ^ ((uint64_t)k0 + (vu64){0});
        c2 = (p0 >> 32) ^ c3 ^ ((uint64_t)k1 + (vu64){0});
        c1 = p1;
        c3 = p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    vu64 front = (c0 & low) | (c1 << 32), back = (c2 & low) | (c3 << 32);
    vu64 even = EVEN(front, back), odd = ODD(front, back);
    __builtin_memcpy(bits, &even, sizeof even);
    __builtin_memcpy(bits + ELEMENTS / 2, &odd, sizeof odd);
}

V_INLINE void drop(int64_t i, int64_t count, const uint16_t *bits, vi threshold, vr scale, const wf_real *x, wf_real *y)
{
    vi random = __builtin_convertvector(*(const v_bits *)(bits + i), vi);
    v_put(y + i, (vr)((vi)(v_get(x + i, count) * scale) & (random >= threshold)), count);
}

void WF_KERNEL(dropout)(int64_t d, uint64_t seed, uint64_t step, uint32_t call, uint64_t row, uint32_t threshold, wf_real scale,
                        const wf_real *x, wf_real *y)
{
    const uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ step);
    const vi least = v_seti((v_lane)threshold);
    for (int64_t j = 0; j < d; j += ELEMENTS) {
        uint16_t bits[ELEMENTS] __attribute__((aligned(V_BYTES)));
        draw((uint64_t)j / 8, row, call, key, bits);
        int64_t count = d - j;
        if (count >= ELEMENTS)
            for (int64_t i = 0; i < ELEMENTS; i += V_N)
                drop(i, V_N, bits, least, v_set(scale), x + j, y + j);
        else
            V_LOOP(count, drop, bits, least, v_set(scale), x + j, y + j);
    }
}
