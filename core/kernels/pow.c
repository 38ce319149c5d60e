/* SPDX-License-Identifier: MIT */
/* x^y and its gradients. The logarithm is computed as a sum of two numbers. With one number, y ln x would have a rounding error of up to
 * one ulp. The absolute error of y ln x is the relative error of e^(y ln x), so that the result in float, where y ln x can be 88, would be
 * wrong by up to 88 ulps. */
#include "vmath.h"

/* Returns the rounded sum a + b, and its exact rounding error in *error. Requires |a| >= |b| or a = 0. */
V_INLINE vr two_sum(vr a, vr b, vr *error)
{
    vr sum = a + b;
    *error = b - (sum - a);
    return sum;
}

/* Returns the rounded product a b, and its rounding error in *error. */
V_INLINE vr two_product(vr a, vr b, vr *error)
{
    vr product = a * b;
#if defined(V_HAS_FMA)
    *error = v_fma(a, b, -product);
#else /* Dekker (1971): the factors are split into halves, whose products are exact */
    const vi upper = v_seti((v_lane)(~(v_ulane)0 << (V_MANTISSA / 2 + 1)));
    vr ah = (vr)((vi)a & upper), al = a - ah, bh = (vr)((vi)b & upper), bl = b - bh;
    *error = ((ah * bh - product) + ah * bl + al * bh) + al * bl;
#endif
    return product;
}

/* Returns `high`, where high + *low = ln x for x > 0. The method is that of v_log, except that s = f / (2 + f) is a sum of two numbers.
 * For x = 0 returns -inf; +inf and NaN stay. */
V_INLINE vr log_parts(vr x, vr *low)
{
    vr n, f = v_log_reduced(x, &n), rounded, missed;
    vr d = two_sum(v_set(2), f, &rounded), s = f / d, z = s * s;
    vr product = two_product(s, d, &missed), rest = v_fnma(s, rounded, (f - product) - missed) / d;
    vr tail = v_fma(s * z, V_POLY(z, v_log_poly), rest + rest);
    vr high = two_sum(n * v_set((wf_real)V_LN2_HIGH), s + s, &rounded); /* n * V_LN2_HIGH is exact */
    tail = rounded + v_fma(n, v_set((wf_real)V_LN2_LOW), tail);
    high = two_sum(high, tail, low);
    vr none = v_set(0);
    *low = v_if_less(x, v_set(V_INF), v_if_less(none, x, *low, none), none);
    return v_if_less(x, v_set(V_INF), v_if_less(none, x, high, v_set(-V_INF)), x);
}

/* Returns e^(high + low), where |low| is at most a rounding error of `high`. */
V_INLINE vr exp_parts(vr high, vr low)
{
    /* From |high| = 2 V_EXP_MAX on, the result is 0 or infinite, and low may be a NaN, which must not reach the result. */
    low = v_if_less(v_abs(high), v_set((wf_real)(2 * V_EXP_MAX)), low, v_set(0));
    vr x = v_max(v_set((wf_real)V_EXP_MIN), v_min(v_set((wf_real)V_EXP_MAX), high)), magic = v_set((wf_real)V_MAGIC);
    vr n = v_fma(x, v_set(V_LOG2_E), magic) - magic;
    vr r = v_fnma(n, v_set((wf_real)V_LN2_LOW), v_fnma(n, v_set((wf_real)V_LN2_HIGH), x)) + low;
    r *= V_LOG2_E;
    return v_times_power_of_2(v_fma(r, V_POLY(r, v_exp2_poly), v_set(1)), n);
}

/* Returns the lanes in which size = |y| is a whole number. From 2^V_MANTISSA on all numbers are whole; infinity counts as whole. */
V_INLINE vi is_whole(vr size)
{
    vr limit = v_set((wf_real)((v_ulane)1 << V_MANTISSA));
    return (size >= limit) | ((size + limit) - limit == size);
}

/* x^y, with the special values of C99's pow. */
V_INLINE vr pow_of(vr x, vr y)
{
    vr one = v_set(1), size = v_abs(y), a = v_abs(x), low, missed;
    vr high = log_parts(a, &low);
    vr product = two_product(y, high, &missed);
    vr r = exp_parts(product, v_fma(y, low, missed));
    vi whole = is_whole(size), odd = whole & ~is_whole(size * (wf_real)0.5);
    r = (vr)((vi)r ^ ((vi)x & v_seti(V_SIGN) & odd));
    r = v_select((x < 0) & (a < V_INF) & (size < V_INF) & ~whole, v_set((wf_real)__builtin_nan("")), r);
    return v_select((y == 0) | (x == one) | ((a == one) & (size == V_INF)), one, r);
}

V_BINARY(pow, pow_of(a, b))

/* For y = a^b: da = b a^(b-1) dy, or 0 if b = 0. */
V_INLINE void base_grad_part(int64_t i, int64_t count, const wf_real *a, const wf_real *b, const wf_real *dy, wf_real *da)
{
    vr y = v_get(b + i, count), slope = y * pow_of(v_get(a + i, count), y - 1);
    v_put(da + i, v_select(y == 0, v_set(0), v_get(dy + i, count) * slope), count);
}

void WF_KERNEL(pow_base_grad)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *da)
{
    (void)ctx;
    const wf_real *a = in[0], *b = in[1], *dy = in[2];
    V_LOOP(n, base_grad_part, a, b, dy, da);
}

/* db = y ln(a) dy, or 0 if a = 0 and b >= 0. */
V_INLINE void exponent_grad_part(int64_t i, int64_t count, const wf_real *a, const wf_real *b, const wf_real *y, const wf_real *dy,
                                 wf_real *db)
{
    vr x = v_get(a + i, count), slope = v_get(y + i, count) * v_log(x);
    v_put(db + i, v_get(dy + i, count) * v_select((x == 0) & (v_get(b + i, count) >= 0), v_set(0), slope), count);
}

void WF_KERNEL(pow_exponent_grad)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *db)
{
    (void)ctx;
    const wf_real *a = in[0], *b = in[1], *y = in[2], *dy = in[3];
    V_LOOP(n, exponent_grad_part, a, b, y, dy, db);
}

/* --- constant exponents; common ones need no logarithm ---------------------------------------------------------------- */

enum kind { ANY, ZERO, ONE, TWO, THREE, HALF, MINUS_HALF, MINUS_ONE, MINUS_TWO };

V_INLINE enum kind kind_of(wf_real p)
{
    return p == 0               ? ZERO
           : p == 1             ? ONE
           : p == 2             ? TWO
           : p == 3             ? THREE
           : p == (wf_real)0.5  ? HALF
           : p == (wf_real)-0.5 ? MINUS_HALF
           : p == -1            ? MINUS_ONE
           : p == -2            ? MINUS_TWO
                                : ANY;
}

V_INLINE vr power(enum kind kind, vr x, wf_real p)
{
    switch (kind) {
    case ZERO:
        return v_set(1);
    case ONE:
        return x;
    case TWO:
        return x * x;
    case THREE:
        return x * x * x;
    case HALF:
        return v_sqrt(x);
    case MINUS_HALF:
        return v_set(1) / v_sqrt(x);
    case MINUS_ONE:
        return v_set(1) / x;
    case MINUS_TWO:
        return v_set(1) / (x * x);
    default:
        return pow_of(x, v_set(p));
    }
}

V_INLINE void constant_part(int64_t i, int64_t count, enum kind kind, wf_real p, const wf_real *x, wf_real *y)
{
    v_put(y + i, power(kind, v_get(x + i, count), p), count);
}

V_INLINE void constant_grad_part(int64_t i, int64_t count, enum kind kind, wf_real p, const wf_real *x, const wf_real *dy, wf_real *dx)
{
    v_put(dx + i, v_get(dy + i, count) * (power(kind, v_get(x + i, count), p - 1) * p), count);
}

/* A separate loop for each kind of exponent, so that the kind is a constant in the loop. */
#define EACH_KIND(exponent, n, PART, ...)                                                                                                  \
    switch (kind_of(exponent)) {                                                                                                           \
        KIND(ZERO, n, PART, __VA_ARGS__)                                                                                                   \
        KIND(ONE, n, PART, __VA_ARGS__)                                                                                                    \
        KIND(TWO, n, PART, __VA_ARGS__)                                                                                                    \
        KIND(THREE, n, PART, __VA_ARGS__)                                                                                                  \
        KIND(HALF, n, PART, __VA_ARGS__)                                                                                                   \
        KIND(MINUS_HALF, n, PART, __VA_ARGS__)                                                                                             \
        KIND(MINUS_ONE, n, PART, __VA_ARGS__)                                                                                              \
        KIND(MINUS_TWO, n, PART, __VA_ARGS__)                                                                                              \
    default:                                                                                                                               \
        V_LOOP(n, PART, ANY, __VA_ARGS__);                                                                                                 \
    }
#define KIND(kind, n, PART, ...)                                                                                                           \
    case kind:                                                                                                                             \
        V_LOOP(n, PART, kind, __VA_ARGS__);                                                                                                \
        break;

void WF_KERNEL(pow_constant)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y)
{
    const wf_real p = *(const wf_real *)ctx, *x = in[0];
    EACH_KIND(p, n, constant_part, p, x, y)
}

/* dx = p x^(p-1) dy, or 0 if p = 0. */
void WF_KERNEL(pow_constant_grad)(const void *ctx, int64_t n, const wf_real *const in[], wf_real *dx)
{
    const wf_real p = *(const wf_real *)ctx, *x = in[0], *dy = in[1];
    if (p == 0) {
        WF_KERNEL(fill)(n, 0, dx);
        return;
    }
    EACH_KIND(p - 1, n, constant_grad_part, p, x, dy, dx)
}
