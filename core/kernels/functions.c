/* SPDX-License-Identifier: MIT */
/* Functions of one element without constants, and their gradients: rsqrt, sin, cos, erf, sign, floor, round, log_sigmoid, hard_swish, mish.
 * At the infinities gradients return their limits. The polynomials are minimax fits that were computed for Weft by Remez exchange in 40
 * digits. */
#include <math.h>

#include "vmath.h"

/* MAP_1(name, formula) defines a kernel whose formula uses x = in[0]; in MAP_2 it also uses dy = in[1]. */
#define MAP_1(name, ...)                                                                                                                   \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *from, wf_real *y)                                                   \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count);                                                                                               \
        v_put(y + i, __VA_ARGS__, count);                                                                                                  \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)                                                \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *x = in[0];                                                                                                          \
        V_LOOP(n, name##_part, x, y);                                                                                                      \
    }
#define MAP_2(name, ...)                                                                                                                   \
    V_INLINE void name##_part(int64_t i, int64_t count, const wf_real *from, const wf_real *with, wf_real *dx)                             \
    {                                                                                                                                      \
        const vr x = v_get(from + i, count), dy = v_get(with + i, count);                                                                  \
        v_put(dx + i, __VA_ARGS__, count);                                                                                                 \
    }                                                                                                                                      \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *dx)                                               \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *x = in[0], *dy = in[1];                                                                                             \
        V_LOOP(n, name##_part, x, dy, dx);                                                                                                 \
    }

/* --- sin and cos ------------------------------------------------------------------------------------------------------
 *
 * Computed in double, also for floats, so that x near a multiple of pi loses no digits. Let n be the whole number nearest to x 2/pi. Then
 * r = x - n pi/2 is at most pi/4, and n mod 4 says which of sin r, cos r, -sin r and -cos r is the result. pi/2 is a sum of three doubles,
 * of which the first two have 33 bits, so that their products with n are exact up to TRIG_MAX. */

#define TRIG_MAX ((wf_real)1e6) /* libm computes the sine of a larger number */
#define PI_2_1 1.57079632673412561417e+00
#define PI_2_2 6.07710050630396597660e-11
#define PI_2_3 2.02226624879595063154e-21
#define V_MAGIC_D 6755399441055744.0 /* 1.5 * 2^52, as V_MAGIC in vmath.h */

/* (sin r - r) / r^3 and (cos r - 1 + r^2/2) / r^4 as polynomials in r^2, for |r| <= pi/4. Errors of the fits: 3.7e-18, relative, and
 * 4.7e-20 */
static const double sin_poly[] = {-0.166666666666666307,  0.00833333333332210732,  -0.000198412698295801632,
                                  2.75573136180165685e-6, -2.50507472180919679e-8, 1.58961976306331366e-10};
static const double cos_poly[] = {0.0416666666666665995,   -0.00138888888888741239, 0.000024801587289482175,
                                  -2.75573143523293506e-7, 2.08757232726967136e-9,  -1.13596477735046015e-11};

V_INLINE vd set_d(double x)
{
    return x - (vd){0};
}

/* a b + c; explicit, so that the compiler chooses no other product to fuse */
V_INLINE vd fma_d(vd a, vd b, vd c)
{
#if defined(WF_ISA_AVX512)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(WF_ISA_AVX2)
    return _mm256_fmadd_pd(a, b, c);
#else
    return a * b + c;
#endif
}

V_INLINE vd poly_d(vd x, const double c[6])
{
    vd p = set_d(c[5]);
#pragma GCC unroll 8
    for (int i = 4; i >= 0; i--)
        p = fma_d(p, x, set_d(c[i]));
    return p;
}

V_INLINE vd select_d(vi64 mask, vd yes, vd no)
{
    return (vd)(((vi64)yes & mask) | ((vi64)no & ~mask));
}

/* The sine of x + quarter pi/2, for |x| <= TRIG_MAX. */
V_INLINE vd sine_d(vd x, int64_t quarter)
{
    vd shifted = fma_d(x, set_d(0.63661977236758134308), set_d(V_MAGIC_D)), n = shifted - V_MAGIC_D;
    /* r + low = x - n pi/2; each difference carries its rounding error to the next part */
    vd t = x - n * PI_2_1, w = n * PI_2_2, u = t - w;
    vd rest = n * PI_2_3 - ((t - u) - w);
    vd r = u - rest, low = (u - r) - rest, z = r * r, half = z * 0.5, one = 1 - half;
    vd sine = r + fma_d(r * z, poly_d(z, sin_poly), low * one);
    vd cosine = one + (fma_d(z * z, poly_d(z, cos_poly), -(r * low)) + ((1 - one) - half));
    sine = select_d((vi64)(r == 0), r, sine); /* the sine of -0 is -0 */
    vi64 turns = (vi64)shifted + quarter;     /* its lowest bits are those of n + quarter */
    vd y = select_d(-(turns & 1), cosine, sine);
    return (vd)((vu64)y ^ ((vu64)(turns & 2) << 62));
}

V_INLINE vr sine_of(vr x, int quarter)
{
    vd halves[V_HALVES];
    for (int half = 0; half < V_HALVES; half++)
        halves[half] = sine_d(v_widen(x, half), quarter);
    vr y = v_narrow(halves);
    vi large = ~(vi)(v_abs(x) <= v_set(TRIG_MAX)); /* also a NaN */
    if (v_any(large))
        V_EACH(i)
        {
            if (large[i])
                y[i] = (wf_real)(quarter ? cos((double)x[i]) : sin((double)x[i]));
        }
    return y;
}

/* --- erf ---------------------------------------------------------------------------------------------------------------
 *
 * erf(x) / x as a polynomial in x^2, for |x| <= ERF_SMALL. Error of the fit: 7.8e-19 relative in double, 1.5e-9 in float */
#define ERF_SMALL ((wf_real)0.75)
#ifdef WF_DOUBLE
static const wf_real erf_poly[] = {1.12837916709551257,    -0.376126389031837149,    0.112837916709524807,    -0.0268661706444024712,
                                   0.00522397761512218227, -0.000854832616908366095, 0.000120552887769189054, -0.0000149241766300839413,
                                   1.64303881184865112e-6, -1.59375992979027332e-7,  1.14637555886297362e-8};
#else
static const wf_real erf_poly[] = {1.12837916549645391f,    -0.37612618756774598f,  0.112833765750587937f,
                                   -0.0268346246060706775f, 0.0051143456286658545f, -0.00067495138045204031f};
#endif

V_INLINE vr erf_of(vr x)
{
    vr a = v_abs(x), bell, t = v_min(v_set(V_PHI_MAX), a * (wf_real)1.41421356237309504880);
    vr tail = v_phi_minus(t, &bell), far = v_with_sign(v_fnma(tail, v_set(2), v_set(1)), x);
    return v_if_less_equal(a, v_set(ERF_SMALL), x * V_POLY(x * x, erf_poly), far);
}

/* --- the others -------------------------------------------------------------------------------------------------------- */

/* x rounded to a whole number, ties to even: adding 2^V_MANTISSA leaves no bits for the fraction. Larger numbers are whole already. */
V_INLINE vr round_of(vr x)
{
    vr limit = v_set((wf_real)((v_ulane)1 << V_MANTISSA)), a = v_abs(x);
    return v_if_less(a, limit, v_with_sign((a + limit) - limit, x), x);
}

V_INLINE vr floor_of(vr x)
{
    vr y = round_of(x);
    return v_if_less(x, y, y - 1, y);
}

V_INLINE vr rsqrt_grad_of(vr x, vr dy)
{
    vr y = v_set(1) / v_sqrt(x);
    return dy * (y * y * y * (wf_real)-0.5);
}

/* tanh(ln(1 + e^x)) = n / (n + 2) with e = e^x and n = e (e + 2). It rounds to 1 at MISH_MAX, where n^2 does not overflow yet. */
#define MISH_MAX ((wf_real)40)
V_INLINE vr mish_of(vr x)
{
    vr e = v_exp(v_min(v_set(MISH_MAX), x)), n = e * (e + 2);
    return x * (n / (n + 2));
}

/* y' = n / (n + 2) + 4 x e (e + 1) / (n + 2)^2 */
V_INLINE vr mish_grad_of(vr x, vr dy)
{
    x = v_max(v_set((wf_real)V_EXP_MIN), v_min(v_set(MISH_MAX), x)); /* clamped, because inf * 0 would be a NaN */
    vr e = v_exp_low(x), n = e * (e + 2), d = n + 2;
    return dy * v_fma(x * (e * 4 / d), (e + 1) / d, n / d);
}

/* Not formatted automatically, because clang-format takes some products for pointer declarations. */
/* clang-format off */
MAP_1(rsqrt, v_set(1) / v_sqrt(x))
MAP_2(rsqrt_grad, rsqrt_grad_of(x, dy))
MAP_1(sin, sine_of(x, 0))
MAP_2(sin_grad, dy * sine_of(x, 1))
MAP_1(cos, sine_of(x, 1))
MAP_2(cos_grad, dy * -sine_of(x, 0))
MAP_1(erf, erf_of(x))
MAP_2(erf_grad, dy * (v_exp_low(-(x * x)) * (wf_real)1.12837916709551257390))
MAP_1(sign, v_if_less(v_set(0), x, v_set(1), v_if_less(x, v_set(0), v_set(-1), v_set(0)))) /* 0 for a NaN */
MAP_1(floor, floor_of(x))
MAP_1(round, round_of(x))
MAP_1(log_sigmoid, v_min(v_set(0), x) - v_log_1_plus(v_exp_low(-v_abs(x))))
MAP_2(log_sigmoid_grad, dy * v_sigmoid(-x))
MAP_1(hard_swish, x * v_min(v_set(6), v_max(v_set(0), x + 3)) / 6)
MAP_2(hard_swish_grad, v_if_less_equal(x, v_set(-3), v_set(0), v_if_less_equal(v_set(3), x, dy, dy * (x / 3 + (wf_real)0.5))))
MAP_1(mish, mish_of(x))
MAP_2(mish_grad, mish_grad_of(x, dy))
/* clang-format on */
