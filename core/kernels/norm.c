/* SPDX-License-Identifier: MIT */
/* LayerNorm (Ba et al. 2016), RMSNorm (Zhang and Sennrich 2019) and L2 normalisation. A row is read several times; it stays in the
 * first-level cache meanwhile. */
#include "../simd.h"

/* Sums over a row run in two independent chains: chain 0 adds the even registers, chain 1 the odd ones. Chain 1 also adds the tail, even if
 * the tail would be an even register. */
#define CHAINS_LOOP(n, PART, ...)                                                                                                          \
    do {                                                                                                                                   \
        int64_t v_at = 0;                                                                                                                  \
        for (; v_at + 2 * V_N <= (n); v_at += 2 * V_N) {                                                                                   \
            PART(v_at, V_N, 0, __VA_ARGS__);                                                                                               \
            PART(v_at + V_N, V_N, 1, __VA_ARGS__);                                                                                         \
        }                                                                                                                                  \
        if (v_at + V_N <= (n)) {                                                                                                           \
            PART(v_at, V_N, 0, __VA_ARGS__);                                                                                               \
            v_at += V_N;                                                                                                                   \
        }                                                                                                                                  \
        if (v_at < (n))                                                                                                                    \
            PART(v_at, (n)-v_at, 1, __VA_ARGS__);                                                                                          \
    } while (0)

/* Sets the lanes from `count` on to 0, because they lie beyond the row. */
V_INLINE vr keep_first(vr x, int64_t count)
{
#if defined(WF_ISA_AVX512)
    return __builtin_constant_p(count) && count == V_N ? x : (vr)V_OP(maskz_mov)(V_FIRST(count), x);
#elif defined(WF_ISA_AVX2)
    return __builtin_constant_p(count) && count == V_N ? x : (vr)((vi)x & V_FIRST(count));
#else
    V_EACH(lane)
    {
        if (lane >= count)
            x[lane] = 0;
    }
    return x;
#endif
}

V_INLINE vr gain_of(const wf_real *gain, int64_t j, int64_t count)
{
    return gain ? v_get(gain + j, count) : v_set(1);
}

V_INLINE void sum_part(int64_t j, int64_t count, int chain, const wf_real *x, vr sum[2])
{
    sum[chain] += v_get(x + j, count);
}

V_INLINE void variance_part(int64_t j, int64_t count, int chain, const wf_real *x, vr mean, vr sum[2])
{
    vr c = keep_first(v_get(x + j, count) - mean, count);
    sum[chain] = v_fma(c, c, sum[chain]);
}

V_INLINE void normalize_part(int64_t j, int64_t count, const wf_real *x, const wf_real *gain, const wf_real *bias, vr mean, vr rstd,
                             wf_real *y)
{
    vr hat = (v_get(x + j, count) - mean) * rstd;
    if (gain)
        hat = bias ? v_fma(hat, v_get(gain + j, count), v_get(bias + j, count)) : hat * v_get(gain + j, count);
    else if (bias)
        hat += v_get(bias + j, count);
    v_put(y + j, hat, count);
}

V_INLINE void layer_norm_row(int64_t d, const wf_real *x, const wf_real *gain, const wf_real *bias, wf_real eps, wf_real *y,
                             wf_real *mean_out, wf_real *rstd_out)
{
    vr sum[2] = {{0}, {0}}, squares[2] = {{0}, {0}};
    CHAINS_LOOP(d, sum_part, x, sum);
    vr mean = v_sum(sum[0] + sum[1]) / v_set((wf_real)d);
    CHAINS_LOOP(d, variance_part, x, mean, squares);
    vr rstd = 1 / v_sqrt(v_sum(squares[0] + squares[1]) / v_set((wf_real)d) + eps);
    V_LOOP(d, normalize_part, x, gain, bias, mean, rstd, y);
    if (mean_out)
        *mean_out = mean[0];
    if (rstd_out)
        *rstd_out = rstd[0];
}

void WF_KERNEL(layer_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *bias, wf_real eps, wf_real *y,
                           wf_real *mean, wf_real *rstd)
{
    for (int64_t i = 0; i < rows; i++)
        layer_norm_row(d, x + i * d, gain, bias, eps, y + i * d, mean ? mean + i : NULL, rstd ? rstd + i : NULL);
}

/* First pass of the gradient: sums h = dy gain and h xhat over the row, where xhat = (x - mean) rstd, and adds the terms of this row to
 * dgain and dbias. */
V_INLINE void layer_grad_sums(int64_t j, int64_t count, int chain, const wf_real *x, const wf_real *gain, vr mean, vr rstd,
                              const wf_real *dy, wf_real *dgain, wf_real *dbias, vr sum_h[2], vr sum_hx[2])
{
    vr g = v_get(dy + j, count), hat = (v_get(x + j, count) - mean) * rstd; /* g is 0 beyond the row */
    vr h = g * gain_of(gain, j, count);
    sum_h[chain] += h;
    sum_hx[chain] = v_fma(h, hat, sum_hx[chain]);
    if (dgain)
        v_put(dgain + j, v_fma(g, hat, v_get(dgain + j, count)), count);
    if (dbias)
        v_put(dbias + j, v_get(dbias + j, count) + g, count);
}

/* dx = rstd (h - mean(h) - xhat mean(h xhat)) */
V_INLINE void layer_grad_dx(int64_t j, int64_t count, const wf_real *x, const wf_real *gain, vr mean, vr rstd, const wf_real *dy,
                            wf_real *dx, bool add, vr mean_h, vr mean_hx)
{
    vr hat = (v_get(x + j, count) - mean) * rstd;
    vr h = v_get(dy + j, count) * gain_of(gain, j, count);
    vr g = v_fnma(hat, mean_hx, h - mean_h);
    v_put(dx + j, add ? v_fma(g, rstd, v_get(dx + j, count)) : g * rstd, count);
}

void WF_KERNEL(layer_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *mean, const wf_real *rstd,
                                const wf_real *dy, wf_real *dx, bool add, wf_real *dgain, wf_real *dbias)
{
    for (int64_t i = 0; i < rows; i++, x += d, dy += d) {
        vr m = v_set(mean[i]), r = v_set(rstd[i]);
        vr sum_h[2] = {{0}, {0}}, sum_hx[2] = {{0}, {0}};
        CHAINS_LOOP(d, layer_grad_sums, x, gain, m, r, dy, dgain, dbias, sum_h, sum_hx);
        if (!dx)
            continue;
        vr mean_h = v_sum(sum_h[0] + sum_h[1]) / v_set((wf_real)d);
        vr mean_hx = v_sum(sum_hx[0] + sum_hx[1]) / v_set((wf_real)d);
        V_LOOP(d, layer_grad_dx, x, gain, m, r, dy, dx + i * d, add, mean_h, mean_hx);
    }
}

V_INLINE void squares_part(int64_t j, int64_t count, int chain, const wf_real *x, vr sum[2])
{
    vr v = v_get(x + j, count);
    sum[chain] = v_fma(v, v, sum[chain]);
}

V_INLINE void rms_part(int64_t j, int64_t count, const wf_real *x, const wf_real *gain, vr rstd, wf_real *y)
{
    v_put(y + j, v_get(x + j, count) * rstd * gain_of(gain, j, count), count);
}

void WF_KERNEL(rms_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, wf_real eps, wf_real *y, wf_real *rstd)
{
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        vr squares[2] = {{0}, {0}};
        CHAINS_LOOP(d, squares_part, x, squares);
        vr r = 1 / v_sqrt(v_sum(squares[0] + squares[1]) / v_set((wf_real)d) + eps);
        V_LOOP(d, rms_part, x, gain, r, y);
        if (rstd)
            rstd[i] = r[0];
    }
}

V_INLINE void rms_grad_sums(int64_t j, int64_t count, int chain, const wf_real *x, const wf_real *gain, vr rstd, const wf_real *dy,
                            wf_real *dgain, vr sum_hx[2])
{
    vr g = v_get(dy + j, count), hat = v_get(x + j, count) * rstd;
    sum_hx[chain] = v_fma(g * gain_of(gain, j, count), hat, sum_hx[chain]);
    if (dgain)
        v_put(dgain + j, v_fma(g, hat, v_get(dgain + j, count)), count);
}

/* dx = rstd (h - xhat mean(h xhat)), where h = dy gain and xhat = x rstd */
V_INLINE void rms_grad_dx(int64_t j, int64_t count, const wf_real *x, const wf_real *gain, vr rstd, const wf_real *dy, wf_real *dx,
                          bool add, vr mean_hx)
{
    vr hat = v_get(x + j, count) * rstd;
    vr g = v_fnma(hat, mean_hx, v_get(dy + j, count) * gain_of(gain, j, count));
    v_put(dx + j, add ? v_fma(g, rstd, v_get(dx + j, count)) : g * rstd, count);
}

void WF_KERNEL(rms_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *rstd, const wf_real *dy,
                              wf_real *dx, bool add, wf_real *dgain)
{
    for (int64_t i = 0; i < rows; i++, x += d, dy += d) {
        vr r = v_set(rstd[i]), sum_hx[2] = {{0}, {0}};
        CHAINS_LOOP(d, rms_grad_sums, x, gain, r, dy, dgain, sum_hx);
        if (!dx)
            continue;
        vr mean_hx = v_sum(sum_hx[0] + sum_hx[1]) / v_set((wf_real)d);
        V_LOOP(d, rms_grad_dx, x, gain, r, dy, dx + i * d, add, mean_hx);
    }
}

V_INLINE void scale_part(int64_t j, int64_t count, const wf_real *x, vr scale, wf_real *y)
{
    v_put(y + j, v_get(x + j, count) * scale, count);
}

/* y = x / max(|x|, eps). The squares are summed in double, because a sum in float could overflow and loses accuracy in long rows. */
void WF_KERNEL(l2_normalize)(int64_t rows, int64_t d, const wf_real *x, wf_real eps, wf_real *y, wf_real *length)
{
    for (int64_t i = 0; i < rows; i++, x += d, y += d) {
        double norm = __builtin_sqrt(WF_KERNEL(sum_squares)(d, x));
        V_LOOP(d, scale_part, x, v_set((wf_real)(1 / (norm > (double)eps || norm != norm ? norm : (double)eps))), y);
        if (length)
            length[i] = (wf_real)norm;
    }
}

V_INLINE void normalize_grad_part(int64_t j, int64_t count, const wf_real *y, const wf_real *dy, vr dot, vr scale, wf_real *dx)
{
    v_put(dx + j, v_fnma(v_get(y + j, count), dot, v_get(dy + j, count)) * scale, count);
}

/* dx = (dy - y sum(y dy)) / length, or dy / eps if length < eps. */
void WF_KERNEL(l2_normalize_grad)(int64_t rows, int64_t d, const wf_real *y, const wf_real *length, wf_real eps, const wf_real *dy,
                                  wf_real *dx)
{
    for (int64_t i = 0; i < rows; i++, y += d, dy += d, dx += d) {
        bool cut = length[i] < eps;
        vr dot = v_set(cut ? 0 : (wf_real)WF_KERNEL(dot)(d, y, dy));
        V_LOOP(d, normalize_grad_part, y, dy, dot, v_set(1 / (cut ? eps : length[i])), dx);
    }
}
