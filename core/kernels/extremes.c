/* SPDX-License-Identifier: MIT */
/* Finds the greatest or smallest element and its index. The first of several equal elements wins, and a NaN wins against all numbers. */
#include <string.h>

#include "../transpose.h"

/* Returns the lanes in which v wins against the best element so far. */
V_INLINE vi before(vr v, vr best, bool least)
{
    return (least ? v < best : v > best) | ((v != v) & (best == best));
}

typedef int32_t v_ids __attribute__((vector_size(4 * V_LANES), aligned(4), may_alias));

/* Finds the extremes of columns j .. j + count - 1. */
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

/* Finds the extreme of a row: each lane finds its own best element, then the lanes are compared. */
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

/* Takes V_LANES rows at a time and transposes them, so that each lane compares the elements of one row. */
V_INLINE void rows_side_by_side(int64_t rows, int64_t n, const wf_real *x, bool least, wf_real *y, int32_t *id)
{
    for (int64_t i = 0; i < rows; i += V_N) {
        const int64_t lanes = WF_MIN(rows - i, V_N);
        vr best = {0};
        vi at = {0};
        for (int64_t from = 0; from < n; from += V_N) {
            const int64_t count = WF_MIN(n - from, V_N);
            vr column[V_LANES];
            v_load_columns(x + i * n + from, lanes, n, count, column);
            if (from == 0)
                best = column[0];
            for (int64_t j = from == 0; j < count; j++) {
                vi wins = before(column[j], best, least);
                best = v_select(wins, column[j], best);
                at = (vi)v_select(wins, (vr)v_seti((v_lane)(from + j)), (vr)at);
            }
        }
        v_ids ids = __builtin_convertvector(at, v_ids);
        if (y)
            v_store_at_most(y + i, best, lanes);
        if (id)
            memcpy(id + i, &ids, (size_t)lanes * sizeof *id);
    }
}

void WF_KERNEL(extreme_rows)(int64_t rows, int64_t n, const wf_real *x, bool least, wf_real *y, int32_t *id)
{
    if (least)
        rows_side_by_side(rows, n, x, true, y, id);
    else
        rows_side_by_side(rows, n, x, false, y, id);
}

/* Finds the k greatest elements of each of `rows` <= V_LANES rows, with one row in each lane. The best elements so far are kept in order,
 * and each column is inserted among them. Lanes without a row hold arbitrary values. */
V_INLINE void top_of_rows(int64_t rows, int64_t n, const wf_real *x, int64_t k, wf_real *y, int32_t *id)
{
    vr best[WF_TOP_ROWS], column[V_LANES];
    vi at[WF_TOP_ROWS];
    int64_t held = 0;
    for (int64_t j = 0; j < n; j++) {
        if (j % V_N == 0)
            v_load_columns(x + j, rows, n, WF_MIN(n - j, V_N), column);
        const vr v = column[j % V_N];
        vr moved = v;
        vi moved_at = v_seti((v_lane)j);
        for (int64_t s = 0; s < held; s++) {
            const vr old = best[s];
            const vi old_at = at[s], wins = before(v, old, false); /* if v wins against an entry, it wins against all entries after it */
            best[s] = v_select(wins, moved, old);
            at[s] = (vi)v_select(wins, (vr)moved_at, (vr)old_at);
            moved = v_select(wins, old, moved);
            moved_at = (vi)v_select(wins, (vr)old_at, (vr)moved_at);
        }
        if (held < k) {
            best[held] = moved;
            at[held++] = moved_at;
        }
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t s = 0; s < k; s++) {
            y[i * k + s] = best[s][i];
            if (id)
                id[i * k + s] = (int32_t)at[s][i];
        }
}

void WF_KERNEL(top_rows)(int64_t rows, int64_t n, const wf_real *x, int64_t k, wf_real *y, int32_t *id)
{
    for (int64_t i = 0; i < rows; i += V_N)
        top_of_rows(WF_MIN(rows - i, V_N), n, x + i * n, k, y + i * k, id ? id + i * k : NULL);
}

int64_t WF_KERNEL(first_above)(int64_t n, const wf_real *x, wf_real bound)
{
    const vr limit = v_set(bound);
    for (int64_t i = 0; i < n; i += V_N) {
        vr v = i + V_N <= n ? v_load(x + i) : v_load_n(x + i, n - i, bound);
        if (!v_any((v > limit) | (v != v)))
            continue;
        for (int64_t end = WF_MIN(i + V_N, n); i < end; i++)
            if (!(x[i] <= bound))
                return i;
        return n; /* not reached: one of the elements is not <= bound */
    }
    return n;
}
