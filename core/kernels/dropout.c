/* SPDX-License-Identifier: MIT */
/* Dropout of a row: sets random elements to 0 and scales the other elements. */
#include "../philox.h"

#define ELEMENTS (2 * PHILOX_WORDS) /* the number of elements to which one call of philox_draw gives 16 random bits each */

typedef uint16_t v_bits __attribute__((vector_size(2 * V_LANES), aligned(2), may_alias));

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
        philox_draw((uint64_t)j / 8, row, call, key, bits); /* bits[i] decides on element j + i */
        int64_t count = d - j;
        if (count >= ELEMENTS)
            for (int64_t i = 0; i < ELEMENTS; i += V_N)
                drop(i, V_N, bits, least, v_set(scale), x + j, y + j);
        else
            V_LOOP(count, drop, bits, least, v_set(scale), x + j, y + j);
    }
}
