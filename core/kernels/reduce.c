/* SPDX-License-Identifier: MIT */
/* Sums, dot products, maxima, and the search for NaN and infinities. The order of additions depends only on the sizes and the instruction
 * set. */
#include <string.h>

#include "../transpose.h"

/* Four independent sums in double, which hide the latency of an addition. */
struct chains {
    vd sum[4];
};

V_INLINE double chains_total(const struct chains *c)
{
    return v_sum_d((c->sum[0] + c->sum[1]) + (c->sum[2] + c->sum[3]));
}

#define CHAINS_LOOP(n, PART, ...)                                                                                                          \
    struct chains c = {{{0}}};                                                                                                             \
    int64_t i = 0;                                                                                                                         \
    for (; i + 4 / V_HALVES * V_N <= (n); i += 4 / V_HALVES * V_N)                                                                         \
        for (int k = 0; k < 4 / V_HALVES; k++)                                                                                             \
            PART(i + k * V_N, V_N, &c, k * V_HALVES, __VA_ARGS__);                                                                         \
    for (; i + V_N <= (n); i += V_N)                                                                                                       \
        PART(i, V_N, &c, 0, __VA_ARGS__);                                                                                                  \
    if (i < (n))                                                                                                                           \
        PART(i, (n)-i, &c, 0, __VA_ARGS__);                                                                                                \
    return chains_total(&c)

V_INLINE void sum_part(int64_t i, int64_t count, struct chains *c, int k, const wf_real *x)
{
    for (int half = 0; half < V_HALVES; half++)
        c->sum[k + half] += v_widen(v_get(x + i, count), half);
}

double WF_KERNEL(sum)(int64_t n, const wf_real *x)
{
    CHAINS_LOOP(n, sum_part, x);
}

V_INLINE void dot_part(int64_t i, int64_t count, struct chains *c, int k, const wf_real *x, const wf_real *y)
{
    for (int half = 0; half < V_HALVES; half++)
        c->sum[k + half] += v_widen(v_get(x + i, count), half) * v_widen(v_get(y + i, count), half);
}

double WF_KERNEL(dot)(int64_t n, const wf_real *x, const wf_real *y)
{
    CHAINS_LOOP(n, dot_part, x, y);
}

double WF_KERNEL(sum_squares)(int64_t n, const wf_real *x)
{
    CHAINS_LOOP(n, dot_part, x, x);
}

wf_real WF_KERNEL(max)(int64_t n, const wf_real *x)
{
    const wf_real least = -(wf_real)__builtin_inf();
    vr m[4] = {v_set(least), v_set(least), v_set(least), v_set(least)};
    vi nan = {0};
    int64_t i = 0;
    for (; i + 4 * V_N <= n; i += 4 * V_N)
        for (int k = 0; k < 4; k++) {
            vr v = v_load(x + i + k * V_N);
            nan |= v != v;
            m[k] = v_max(v, m[k]);
        }
    for (; i < n; i += V_N) {
        vr v = i + V_N <= n ? v_load(x + i) : v_load_n(x + i, n - i, least);
        nan |= v != v;
        m[0] = v_max(v, m[0]);
    }
    if (v_any(nan))
        return (wf_real)__builtin_nan("");
    return v_greatest(v_max(v_max(m[0], m[1]), v_max(m[2], m[3])))[0];
}

/* Takes V_LANES rows at a time and transposes them, so that each lane adds up one row. */
void WF_KERNEL(sum_each_row)(int64_t rows, int64_t n, const wf_real *x, double *y)
{
    for (int64_t i = 0; i < rows; i += V_N) {
        const int64_t lanes = WF_MIN(rows - i, V_N);
        vd sum[V_HALVES] = {{0}};
        for (int64_t from = 0; from < n; from += V_N) {
            const int64_t count = WF_MIN(n - from, V_N);
            vr column[V_LANES];
            v_load_columns(x + i * n + from, lanes, n, count, column);
            for (int64_t j = 0; j < count; j++)
                v_add_widened(sum, column[j]);
        }
        memcpy(y + i, sum, (size_t)lanes * sizeof *y);
    }
}

/* Sums up to 4 registers of columns over all rows. Each group of group_rows rows is summed in wf_real, and the sums of the groups are added
 * in double, so that the rounding error does not grow with the number of rows. Row i lies at x + offset[i], or at x + i * stride if
 * `offset` is NULL. With `add`, the result is added to y. */
V_INLINE void sum_columns(int64_t rows, int registers, int64_t count, const wf_real *x, int64_t stride, const int64_t *offset,
                          int group_rows, bool add, wf_real *y)
{
    vd total[4][V_HALVES] = {{{0}}, {{0}}, {{0}}, {{0}}};
    for (int64_t begin = 0; begin < rows; begin += group_rows) {
        int64_t end = WF_MIN(begin + group_rows, rows);
        vr group[4] = {{0}, {0}, {0}, {0}};
        for (int64_t i = begin; i < end; i++) {
            const wf_real *row = x + (offset ? offset[i] : i * stride);
            for (int k = 0; k < registers; k++)
                group[k] += v_get(row + k * V_N, count);
        }
        for (int k = 0; k < registers; k++)
            v_add_widened(total[k], group[k]);
    }
    for (int k = 0; k < registers; k++) {
        if (add)
            v_add_widened(total[k], v_get(y + k * V_N, count));
        v_put(y + k * V_N, v_narrow(total[k]), count);
    }
}

V_INLINE void sum_all_columns(int64_t rows, int64_t d, const wf_real *x, int64_t stride, const int64_t *offset, int group_rows, bool add,
                              wf_real *y)
{
    int64_t j = 0;
    for (; j + 4 * V_N <= d; j += 4 * V_N)
        sum_columns(rows, 4, V_N, x + j, stride, offset, group_rows, add, y + j);
    for (; j + V_N <= d; j += V_N)
        sum_columns(rows, 1, V_N, x + j, stride, offset, group_rows, add, y + j);
    if (j < d)
        sum_columns(rows, 1, d - j, x + j, stride, offset, group_rows, add, y + j);
}

enum {
    GROUP_ROWS = 32, /* rows of a group */
    /* Rows of a group if the rows are partial sums, whose sum must be more accurate. In float, a group has one row, so that all
     * additions are in double. In double, which has no wider type, groups are small. */
    GROUP_PARTIALS = sizeof(wf_real) == 4 ? 1 : 16
};

void WF_KERNEL(sum_rows)(int64_t rows, int64_t d, const wf_real *x, int64_t stride, bool add, wf_real *y)
{
    sum_all_columns(rows, d, x, stride, NULL, GROUP_ROWS, add, y);
}

void WF_KERNEL(sum_rows_at)(int64_t rows, int64_t d, const wf_real *x, const int64_t *offset, bool add, wf_real *y)
{
    sum_all_columns(rows, d, x, 0, offset, GROUP_ROWS, add, y);
}

void WF_KERNEL(sum_partials)(int64_t rows, int64_t d, const wf_real *x, int64_t stride, bool add, wf_real *y)
{
    sum_all_columns(rows, d, x, stride, NULL, GROUP_PARTIALS, add, y);
}

int64_t WF_KERNEL(find_nonfinite)(int64_t n, const wf_real *x)
{
    const int64_t block = 16 * V_N;
    for (int64_t i = 0; i < n; i += block) {
        int64_t end = WF_MIN(i + block, n), j = i;
        vi bad = {0};
        for (; j + V_N <= end; j += V_N) {
            vr zero = v_load(x + j) - v_load(x + j); /* 0, or NaN if x is not finite */
            bad |= zero != zero;
        }
        if (j < end) {
            vr zero = v_load_n(x + j, end - j, 0) - v_load_n(x + j, end - j, 0);
            bad |= zero != zero;
        }
        if (v_any(bad))
            for (j = i; j < end; j++)
                if (!__builtin_isfinite(x[j]))
                    return j;
    }
    return -1;
}
