/* SPDX-License-Identifier: MIT */
/* Rotary position embedding: rotates pairs of elements of each head by angles that depend on the position of the row. */
#include <string.h>

#include <weft/internal/kernels.h>

#include "../simd.h"

#define EVEN_LANES(lane, k) (2 * (lane) + (k))
#define TOGETHER(lane, k) (((lane) + (k)*V_LANES) / 2 + (lane) % 2 * V_LANES)

/* Rotates pairs, whose first elements are in *a and second elements in *b, by the angles with cosine c and sine s. With `back`, rotates by
 * the negative angles. */
V_INLINE void turn(bool back, vr c, vr s, vr *a, vr *b)
{
    vr x = *a, y = *b;
    *a = back ? v_fma(y, s, x * c) : v_fnma(y, s, x * c);
    *b = back ? v_fnma(x, s, y * c) : v_fma(x, s, y * c);
}

V_INLINE void put(wf_real *p, vr x, int64_t n, bool add)
{
    v_store_at_most(p, add ? v_load_at_most(p, n) + x : x, n);
}

V_INLINE void turn_halves(int64_t n, bool back, bool add, const wf_real *x, const wf_real *table, wf_real *y)
{
    for (int64_t j = 0; j < n; j += V_LANES) {
        vr a = v_load_at_most(x + j, n - j), b = v_load_at_most(x + n + j, n - j);
        turn(back, v_load_at_most(table + j, n - j), v_load_at_most(table + n + j, n - j), &a, &b);
        put(y + j, a, n - j, add);
        put(y + n + j, b, n - j, add);
    }
}

V_INLINE void turn_pairs(int64_t n, bool back, bool add, const wf_real *x, const wf_real *table, wf_real *y)
{
    for (int64_t j = 0; j < n; j += V_LANES) {
        const int64_t left = 2 * (n - j);
        const bool both = left > V_LANES;
        vr low = v_load_at_most(x + 2 * j, left), high = both ? v_load_at_most(x + 2 * j + V_LANES, left - V_LANES) : v_set(0);
        vr a = __builtin_shufflevector(low, high, V_LIST(EVEN_LANES, 0)), b = __builtin_shufflevector(low, high, V_LIST(EVEN_LANES, 1));
        turn(back, v_load_at_most(table + j, n - j), v_load_at_most(table + n + j, n - j), &a, &b);
        put(y + 2 * j, __builtin_shufflevector(a, b, V_LIST(TOGETHER, 0)), left, add);
        if (both)
            put(y + 2 * j + V_LANES, __builtin_shufflevector(a, b, V_LIST(TOGETHER, 1)), left - V_LANES, add);
    }
}

V_INLINE void one_row(int64_t heads, int64_t e, int64_t n, bool interleaved, bool back, bool add, const wf_real *x, const wf_real *table,
                      wf_real *y)
{
    for (int64_t h = 0; h < heads; h++, x += e, y += e) {
        if (interleaved)
            turn_pairs(n, back, add, x, table, y);
        else
            turn_halves(n, back, add, x, table, y);
        for (int64_t j = 2 * n; j < e; j += V_LANES)
            put(y + j, v_load_at_most(x + j, e - j), e - j, add);
    }
}

void WF_KERNEL(rope)(int64_t heads, int64_t e, int64_t n, bool interleaved, bool back, bool add, const wf_real *x, const wf_real *table,
                     wf_real *y)
{
    if (back && add)
        one_row(heads, e, n, interleaved, true, true, x, table, y);
    else if (back)
        one_row(heads, e, n, interleaved, true, false, x, table, y);
    else
        one_row(heads, e, n, interleaved, false, false, x, table, y);
}
