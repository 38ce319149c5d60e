/* SPDX-License-Identifier: MIT */
/* exp, exp2, log, tanh, the logistic function and the normal distribution function on whole registers, without libm. One source serves
 * float and double. The polynomials are minimax fits that were computed for Weft by Remez exchange in 40 digits. The error of a fit is the
 * largest error of the polynomial itself, without rounding. */
#ifndef WEFT_KERNELS_VMATH_H
#define WEFT_KERNELS_VMATH_H

#include "../simd.h"

#define V_INF ((wf_real)__builtin_inf())
#define V_LOG2_E ((wf_real)1.44269504088896340736)

/* Evaluates c[0] + c[1] x + ... by Horner's scheme. */
#define V_POLY(x, c) v_poly(x, c, (int)(sizeof(c) / sizeof *(c)))
V_INLINE vr v_poly(vr x, const wf_real *c, int count)
{
    vr p = v_set(c[count - 1]);
#pragma GCC unroll 32
    for (int i = count - 2; i >= 0; i--)
        p = v_fmak(p, x, c[i]);
    return p;
}

#ifdef WF_DOUBLE
#define V_MANTISSA 52
#define V_BIAS 1023
#define V_MAGIC 6755399441055744.0            /* 1.5 * 2^52: adding this rounds a number to an integer, in the low bits of the sum */
#define V_LN2_HIGH 6.93147180369123816490e-01 /* ln 2 = HIGH + LOW; HIGH ends in zero bits, so that n * HIGH is exact */
#define V_LN2_LOW 1.90821492927058770002e-10
#define V_EXP_MIN (-746.0) /* e^x is 0 below V_EXP_MIN, and infinite above V_EXP_MAX */
#define V_EXP_MAX 710.0
#define V_EXP_SAFE 709.0 /* e^V_EXP_SAFE is finite, and 1 / e^(2 V_EXP_SAFE) is 0 */
#define V_TANH_MAX 20.0  /* tanh(x) rounds to +-1 beyond V_TANH_MAX */
#define V_LEAST_NORMAL 0x1p-1022
/* (2^r - 1) / r as a polynomial in r, for |r| <= 1/2. Error of the fit: 1.8e-17 relative to 2^r - 1 */
static const wf_real v_exp2_poly[] = {0.69314718055994530942, 0.240226506959100961,   0.0555041086648213223,    0.00961812910760772246,
                                      0.00133335581465183887, 0.00015403530440711391, 0.0000152527337100776374, 1.32154430818664689e-6,
                                      1.01781186266053831e-7, 7.07250417443241401e-9, 4.44583438328698628e-10};
/* (2 atanh(s) / s - 2) / s^2 as a polynomial in s^2, for |s| <= (sqrt 2 - 1) / (sqrt 2 + 1). Error of the fit: 1.2e-18 relative to the
 * logarithm */
static const wf_real v_log_poly[] = {0.666666666666673446, 0.399999999994143209, 0.285714287424747822, 0.222221985634995436,
                                     0.18183564865922806,  0.153140358538677551, 0.147961052565755847};
/* Phi(-t) e^(t^2/2) (t + 5) as a polynomial in (t - 5) / (t + 5), for 0 <= t <= 39. Error of the fit: 5.9e-18, relative */
#define V_PHI_K 5.0
#define V_PHI_MAX 39.0
static const wf_real v_phi_poly[] = {
    0.769193049750062956,      -0.665382502890056781,     0.495305615969977299,     -0.313533156671296194,    0.165020366170337417,
    -0.0691186387065700295,    0.0207950668008377848,     -0.00299337676670524229,  -0.000797869408011110561, 0.000544899033386983038,
    -0.0000593756747839269762, -0.0000497626548904933574, 0.0000166810411931121838, 3.98038463316920035e-6,   -2.76895242052949848e-6,
    -3.35537041766850039e-7,   4.32884042019825562e-7,    4.0880286167454837e-8,    -6.60115119526981614e-8,  -8.29466164498231193e-9,
    7.94220476654705005e-9,    1.43192984055345026e-9,    -3.02913841458944908e-10};
#else /* float: the constants mean the same as those for double above; V_MAGIC is 1.5 * 2^23 */
#define V_MANTISSA 23
#define V_BIAS 127
#define V_MAGIC 12582912.0f
#define V_LN2_HIGH 0.693359375f
#define V_LN2_LOW (-2.12194440e-4f)
#define V_EXP_MIN (-104.0f)
#define V_EXP_MAX 89.0f
#define V_EXP_SAFE 88.0f
#define V_TANH_MAX 10.0f
#define V_LEAST_NORMAL 0x1p-126f
/* (2^r - 1) / r as a polynomial in r, for |r| <= 1/2. Error of the fit: 1.3e-8 relative to 2^r - 1 */
static const wf_real v_exp2_poly[] = {0.69314718055994530942f, 0.240226498090046424f,   0.0555036988930906647f,
                                      0.00961825218846803563f, 0.00133866585870280257f, 0.000153964682532207025f};
/* (2 atanh(s) / s - 2) / s^2 as a polynomial in s^2, for |s| <= (sqrt 2 - 1) / (sqrt 2 + 1). Error of the fit: 8.1e-10 relative to the
 * logarithm */
static const wf_real v_log_poly[] = {0.666667764151592187f, 0.399775369853291321f, 0.298718618962773363f};
/* Phi(-t) e^(t^2/2) (t + 3.5) as a polynomial in (t - 3.5) / (t + 3.5), for 0 <= t <= 14.5. Error of the fit: 7.2e-9, relative */
#define V_PHI_K 3.5f
#define V_PHI_MAX 14.5f
static const wf_real v_phi_poly[] = {0.744416074141453681f,    -0.565561745098272307f,  0.315425048717786812f,    -0.116053040798940392f,
                                     0.0174063783189374905f,   0.00649311570903241834f, -0.00317531019571244062f, -0.000494942899030776442f,
                                     0.000421897192843046649f, 0.000110688668422975601f};
#endif

/* Splits x into n ln 2 + r, where n is whole and |r| <= ln 2 / 2. Returns e^r - 1 and stores n. For V_EXP_MIN <= x <= V_EXP_MAX. */
V_INLINE vr v_exp_reduced(vr x, vr *n)
{
    vr magic = v_set((wf_real)V_MAGIC);
    *n = v_fma(x, v_set(V_LOG2_E), magic) - magic;
    vr r = v_fnma(*n, v_set((wf_real)V_LN2_HIGH), x);
    r = v_fnma(*n, v_set((wf_real)V_LN2_LOW), r);
    r *= V_LOG2_E;
    return r * V_POLY(r, v_exp2_poly);
}

/* Returns 2^n for a whole n, if 2^n is a normal number. */
V_INLINE vr v_power_of_2(vr n)
{
    return (vr)((vu)(n + v_set((wf_real)V_MAGIC + V_BIAS)) << V_MANTISSA);
}

/* Returns e 2^n for a whole n and an e near 1; denormal results are correct. */
V_INLINE vr v_times_power_of_2(vr e, vr n)
{
#if defined(WF_ISA_AVX512)
    return V_OP(scalef)(e, n);
#else
    /* Multiply in two steps, because 2^n itself may be out of range. */
    vr magic = v_set((wf_real)V_MAGIC);
    vr half = v_fma(n, v_set((wf_real)0.5), magic) - magic;
    return e * v_power_of_2(half) * v_power_of_2(n - half);
#endif
}

/* e^x for x from V_EXP_MIN, or a little less, to V_EXP_MAX. Denormal results are correct; a NaN stays. */
V_INLINE vr v_exp_bounded(vr x)
{
    vr n;
    vr e = v_exp_reduced(x, &n) + 1;
    return v_times_power_of_2(e, n);
}

/* e^x for x <= V_EXP_MAX, also for -inf; a NaN stays. */
V_INLINE vr v_exp_low(vr x)
{
    return v_exp_bounded(v_max(v_set((wf_real)V_EXP_MIN), x)); /* a NaN stays: for a NaN, v_max returns its second operand */
}

/* e^x for every x: infinite for large x; a NaN stays. */
V_INLINE vr v_exp(vr x)
{
    return v_exp_low(v_min(v_set((wf_real)V_EXP_MAX), x));
}

/* 2^x for x <= 0, or a little above 0. Attention uses it with scores times log2 e, which saves v_exp's reduction by ln 2. Exactly 1 for
 * x = 0, and exactly 0 for x <= -V_BIAS. Results below the normal numbers are inaccurate. A NaN stays. */
V_INLINE vr v_exp2_low(vr x)
{
    x = v_max(v_set(-V_BIAS), x);
    vr magic = v_set((wf_real)V_MAGIC);
    vr shifted = x + magic;
    vr r = x - (shifted - magic);
    vr p = v_fmak(r, V_POLY(r, v_exp2_poly), 1);
    return (vr)((vu)p + ((vu)shifted << V_MANTISSA)); /* unsigned, because the sum overflows if x is a NaN */
}

/* Splits x >= 0, which may be denormal, into 2^n (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2). Returns f and stores n. */
V_INLINE vr v_log_reduced(vr x, vr *n)
{
    vr least = v_set((wf_real)V_LEAST_NORMAL);
    vr scaled = v_if_less(x, least, x * v_set((wf_real)((v_ulane)1 << V_MANTISSA)), x);
    vr bump = v_if_less(x, least, v_set(V_MANTISSA), v_set(0));
    /* n changes where x is sqrt(1/2) times a power of 2. Subtracting the bits of sqrt(1/2) leaves n in the exponent bits. */
    const v_ulane cut = sizeof(wf_real) == 4 ? 0x3f3504f3u : (v_ulane)0x3fe6a09e667f3bcdu;
    vu bits = (vu)scaled - cut, whole = (vu)v_seti((v_lane)(((v_ulane) ~(v_ulane)0) << V_MANTISSA));
    /* Convert n to wf_real. n + 2 V_BIAS is not negative, so that a logical shift, which every instruction set has, is enough. */
    vu up = (bits + ((v_ulane)2 * V_BIAS << V_MANTISSA)) >> V_MANTISSA;
    *n = (vr)(up + (vu)v_set((wf_real)V_MAGIC)) - v_set((wf_real)V_MAGIC + 2 * V_BIAS) - bump;
    return (vr)((vu)scaled - (bits & whole)) - 1;
}

/* ln x, computed as in fdlibm: x = 2^n (1 + f), s = f / (2 + f), ln(1 + f) = f - f^2/2 + s (f^2/2 + s^2 poly(s^2)).
 * The result is NaN for x < 0, -inf for 0, and correct for denormals. */
V_INLINE vr v_log(vr x)
{
    vr zero = v_set(0), n, f = v_log_reduced(x, &n);
    vr s = f / (f + 2), z = s * s;
    vr half = f * f * (wf_real)0.5;
    vr low = v_fma(s, v_fma(z, V_POLY(z, v_log_poly), half), n * v_set((wf_real)V_LN2_LOW));
    vr y = v_fma(n, v_set((wf_real)V_LN2_HIGH), f - (half - low));
    y = v_if_less(x, v_set(V_INF), y, x); /* +inf and NaN stay */
    y = v_if_less(x, zero, v_set((wf_real)__builtin_nan("")), y);
    vr none = v_if_less_equal(x, zero, v_set(-V_INF), y); /* -inf for 0; the next line restores NaN for x < 0 */
    return v_if_less(x, zero, y, none);
}

/* ln(1 + t) for 0 <= t <= 1, with a correction for the rounding error of 1 + t. */
V_INLINE vr v_log_1_plus(vr t)
{
    vr u = t + 1;
    return v_log(u) + (t - (u - 1)) / u;
}

/* ln(1 + e^x), computed as max(x, 0) + ln(1 + e^-|x|). This form cannot overflow and is accurate for every x. */
V_INLINE vr v_softplus(vr x)
{
    return v_max(v_set(0), x) + v_log_1_plus(v_exp(-v_abs(x)));
}

/* tanh x = (e^2x - 1) / (e^2x + 1), where e^2x - 1 is computed without cancellation, so that small x keep their accuracy. */
V_INLINE vr v_tanh(vr x)
{
    vr a = v_min(v_set((wf_real)V_TANH_MAX), v_abs(x)), n;
    vr p = v_exp_reduced(a + a, &n);
    vr power = v_power_of_2(n);
    vr e = v_fma(p, power, power - 1);
    return v_with_sign(e / (e + 2), x);
}

/* 1 / (1 + e^-x) */
V_INLINE vr v_sigmoid(vr x)
{
    return v_set(1) / (v_exp(-x) + 1);
}

/* Returns Phi(-t), the normal distribution function, for 0 <= t <= V_PHI_MAX (0 at V_PHI_MAX), and stores e^(-t^2/2) in *bell. The formula
 * is Phi(-t) = e^(-t^2/2) P(y) / (t + K) with y = (t - K) / (t + K), where K is V_PHI_K and P is the polynomial v_phi_poly. It is a form of
 * Shepherd and Laframboise's erfc (1981), which is accurate even if Phi(-t) is small. */
V_INLINE vr v_phi_minus(vr t, vr *bell)
{
    *bell = v_exp_bounded(t * t * (wf_real)-0.5);
    vr q = v_set(1) / (t + (wf_real)V_PHI_K);
    vr y = (t - (wf_real)V_PHI_K) * q;
    return *bell * q * V_POLY(y, v_phi_poly);
}

#endif
