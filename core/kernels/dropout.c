/* SPDX-License-Identifier: MIT */
/* Dropout. */
#include "../philox.h"

#define COUNTERS (V_BYTES / 8)  /* in a register */
#define ELEMENTS (8 * COUNTERS) /* 16 bits each */

typedef uint16_t v_bits __attribute__((vector_size(2 * V_LANES), aligned(2), may_alias));

/* The lanes' counters in the order in which interleaving pairs of lanes, as below, brings them back in line. */
#if COUNTERS == 8
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 4, 1, 5, 2, 6, 3, 7                                                                                                             \
    }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#elif COUNTERS == 4
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 2, 1, 3                                                                                                                         \
    }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#define ORDER                                                                                                                              \
    {                                                                                                                                      \
        0, 1                                                                                                                               \
    }
#define EVEN(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ODD(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* The 16 random bits of elements 8 first .. 8 first + ELEMENTS - 1. */
V_INLINE void draw(uint64_t first, uint64_t row, uint32_t call, uint64_t key, uint16_t bits[ELEMENTS])
{
    const vu64 low = 0xffffffffu + (vu64){0};
    vu64 c[4] = {first + (vu64)ORDER, philox_wide(row & 0xffffffffu), philox_wide(row >> 32), philox_wide(call)};
    philox_wide_rounds(key, c);
    vu64 front = (c[0] & low) | (c[1] << 32), back = (c[2] & low) | (c[3] << 32);
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
    const uint64_t key = philox_key(seed, step);
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
