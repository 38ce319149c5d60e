/* SPDX-License-Identifier: MIT */
/* The greatest or smallest of elements, and where it stands: the first of equals, and a NaN before all numbers. */
#include "../simd.h"

/* Lanes in which v comes before the best so far. */
V_INLINE vi before(vr v, vr best, bool least)
{
    return (least ? v < best : v > best) | ((v != v) & (best == best));
}

typedef int32_t v_ids __attribute__((vector_size(4 * V_LANES), aligned(4), may_alias));

/* Columns j .. j + count - 1. */
V_INLINE void columns(int64_t j, int64_t count, int64_t rows, const wf_real *x, int64_t stride, bool least, wf_real *y, int32_t *id)
{
    vr best = v_get(x + j, count);
    vi at = {0};
    for (int64_t i = 1; i < rows; i++) {
        vr v = v_get(x + i * stride + j, count);
        vi wins = before(v, best, least);
        best = v_select(wins, v, best);
        at = (vi)v_select(wins, (vr)v_seti((v_lane)i), (vr)at);
    }
    v_put(y + j, best, count);
    v_ids ids = __builtin_convertvector(at, v_ids);
    for (int64_t k = 0; k < count; k++)
        id[j + k] = ids[k];
}

void WF_KERNEL(extreme_columns)(int64_t rows, int64_t d, const wf_real *x, int64_t stride, bool least, wf_real *y, int32_t *id)
{
    if (least)
        V_LOOP(d, columns, rows, x, stride, true, y, id);
    else
        V_LOOP(d, columns, rows, x, stride, false, y, id);
}

/* Each lane finds its own first; then the lanes are compared. */
V_INLINE int32_t row(int64_t n, const wf_real *x, bool least)
{
    enum { CHAINS = 4 };
    vr best[CHAINS];
    vi at[CHAINS], here;
    V_EACH(lane) here[lane] = lane;
    for (int k = 0; k < CHAINS; k++) {
        best[k] = v_load(x + k * V_N);
        at[k] = here + v_seti((v_lane)(k * V_N));
    }
    int64_t i = CHAINS * V_N;
    for (; i + CHAINS * V_N <= n; i += CHAINS * V_N)
        for (int k = 0; k < CHAINS; k++) {
            vr v = v_load(x + i + k * V_N);
            vi wins = before(v, best[k], least);
            best[k] = v_select(wins, v, best[k]);
            at[k] = (vi)v_select(wins, (vr)(here + v_seti((v_lane)(i + k * V_N))), (vr)at[k]);
        }
    wf_real top = best[0][0];
    int64_t first = at[0][0];
    for (int k = 0; k < CHAINS; k++)
        V_EACH(lane)
        {
            wf_real v = best[k][lane];
            int64_t place = at[k][lane];
            bool same = v == top || (v != v && top != top);
            if (same ? place < first : top == top && (v != v || (least ? v < top : v > top))) {
                top = v;
                first = place;
            }
        }
    for (; i < n; i++)
        if (top == top && (x[i] != x[i] || (least ? x[i] < top : x[i] > top))) {
            top = x[i];
            first = i;
        }
    return (int32_t)first;
}

int32_t WF_KERNEL(extreme)(int64_t n, const wf_real *x, bool least)
{
    if (n >= 4 * V_N)
        return least ? row(n, x, true) : row(n, x, false);
    int32_t first = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[first] == x[first] && (x[i] != x[i] || (least ? x[i] < x[first] : x[i] > x[first])))
            first = (int32_t)i;
    return first;
}
