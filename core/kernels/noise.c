/* SPDX-License-Identifier: MIT */
/* Fills rows with uniform or normal random numbers. */
#include "../philox.h"
#include "vmath.h"

typedef uint32_t v_words __attribute__((vector_size(4 * V_LANES), aligned(4), may_alias));

/* Converts random words to numbers from 0 to 2^32. In float, they are rounded to 24 bits. */
V_INLINE vr number_of(const uint32_t *word)
{
    return __builtin_convertvector(*(const v_words *)word, vr);
}

/* Uniform numbers low + width u, at most `last`. u is a multiple of 2^-24, which float represents exactly, so that both precisions draw the
 * same u. */
V_INLINE void uniform_part(int64_t i, int64_t count, const uint32_t *word, wf_real low, wf_real width, wf_real last, wf_real *y)
{
    vr u = __builtin_convertvector(*(const v_words *)(word + i) >> 8, vr) * (wf_real)0x1p-24;
    v_put(y + i, v_min(v_set(last), v_fmak(u, v_set(width), low)), count);
}

/* Coefficients (-1)^k (2 pi)^(2 k + 1) / (2 k + 1)!: sin(2 pi b) is b times this polynomial in b^2, for |b| <= 1/4. */
static const wf_real sine_poly[] = {
    (wf_real)6.283185307179586476925286766559,     (wf_real)-41.341702240399760233967765317736,
    (wf_real)81.605249276075054203397682678250,    (wf_real)-76.705859753061385841630641093893,
    (wf_real)42.058693944897653144986811099652,    (wf_real)-15.094642576822990391826616232532,
    (wf_real)3.8199525848482821277337920673404,    (wf_real)-0.71812230177850050957300437590955,
#ifdef WF_DOUBLE
    (wf_real)0.10422916220813984037626681573405,   (wf_real)-0.012031585942120627233202567845286,
    (wf_real)0.0011309237482517961949862869180466, (wf_real)-0.000088235335992430032821257474093,
#endif
};

/* Box and Muller (1958). For an even j, words j and j + 1 give the uniform numbers u and v, and elements j and j + 1 are r cos t and r sin
 * t with r = sqrt(-2 ln u) and t = 2 pi v. */
V_INLINE void normal_part(int64_t i, int64_t count, const uint32_t *word, wf_real mean, wf_real deviation, wf_real *y)
{
#define EVEN(lane, k) ((lane) / 2 * 2)
#define ODD(lane, k) ((lane) / 2 * 2 + 1)
    vr number = number_of(word + i), turn = v_set(0);
    V_EACH(lane) turn[lane] = lane % 2 ? (wf_real)0.25 : 0; /* odd lanes: sin t = cos(t - a quarter turn) */
    vr u = __builtin_shufflevector(number, number, V_LIST(EVEN, 0)), v = __builtin_shufflevector(number, number, V_LIST(ODD, 0));
    vr r = v_sqrt(v_log((u + (wf_real)0.5) * (wf_real)0x1p-32) * (wf_real)-2);
    vr t = v * (wf_real)0x1p-32 - turn, magic = v_set((wf_real)V_MAGIC);
    t -= (t + magic) - magic;
    vr b = (wf_real)0.25 - v_abs(t); /* here t is in turns: cos(2 pi t) = sin(2 pi (1/4 - |t|)) */
    vr z = r * (b * V_POLY(b * b, sine_poly));
    v_put(y + i, v_fmak(z, v_set(deviation), mean), count);
}

enum { WORDS = 512 };

void WF_KERNEL(noise)(int64_t d, uint64_t seed, uint64_t step, uint32_t call, uint64_t row, enum wf_noise kind, wf_real a, wf_real b,
                      wf_real last, wf_real *y)
{
    const uint64_t key = philox_key(seed, step);
    for (int64_t j = 0; j < d; j += WORDS) {
        uint32_t word[WORDS] __attribute__((aligned(V_BYTES)));
        int64_t count = WF_MIN(d - j, WORDS);
        for (int64_t i = 0; i < count; i += PHILOX_WORDS)
            philox_draw((uint64_t)(j + i) / 4, row, call, key, word + i);
        if (kind == WF_NOISE_UNIFORM)
            V_LOOP(count, uniform_part, word, a, b, last, y + j);
        else
            V_LOOP(count, normal_part, word, a, b, y + j);
    }
}
