/* SPDX-License-Identifier: MIT */
/* The kernels of elementwise.c and pow.c against libm in long double: accuracy, special values, and bits that do not depend on the place
 * in a call. */
#include "kernels_common.h"

enum { N = 20000, SPAN = 150, GUARD = 16 };

/* The bound is in units of the result: however large y ln x is. */
START_TEST(pow_accuracy)
{
    static const struct {
        double low, high, size;
    } ranges[] = {{0, 20, 25}, {0.9, 1.1, 800}, {0, 1e-37, 1}, {0, 1e30, 1.2}, {0.5, 2, 100}, {0, 1e-30, 40}};
    static wf_real x[N], y[N], z[N];
    static ld want[N];
    EACH_ISA
    {
        for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
            numbers(x, N, 1 + k, ranges[k].low, ranges[k].high);
            numbers(y, N, 20 + k, -ranges[k].size, ranges[k].size);
            for (int i = 0; i < N; i++)
                want[i] = powl((ld)x[i], (ld)y[i]);
            wf_kernel->internal->pow(N, x, 1, y, 1, z);
            ck_near(isa, "pow", N, x, z, want, 0, 3);
        }
    }
}
END_TEST

START_TEST(pow_specials)
{
    EACH_ISA
    {
        for (int i = 0; i < SPECIALS; i++)
            for (int j = 0; j < SPECIALS; j++)
                for (int sides = 0; sides < 4; sides++) {
                    wf_real a = specials[i], b = specials[j], y;
                    wf_kernel->internal->pow(1, &a, sides & 1, &b, sides >> 1, &y);
                    ld want = powl((ld)a, (ld)b);
                    ck_assert_msg(distance(y, want, 0) <= 3, "%s pow(%.9g, %.9g) = %.9g, not %.9Lg", isa, (double)a, (double)b, (double)y,
                                  want);
                    ck_assert_msg(isnan(want) || !signbit(want) == !signbit(y), "%s pow(%.9g, %.9g) = %.9g: the sign", isa, (double)a,
                                  (double)b, (double)y);
                }
    }
}
END_TEST

static ld ref_softplus(ld x, ld beta)
{
    return ((x * beta > 0 ? x * beta : 0) + log1pl(expl(-fabsl(x * beta)))) / beta;
}

START_TEST(functions)
{
    static wf_real x[N], y[N];
    static ld want[N];
    EACH_ISA
    {
        for (int k = 0; k < 3; k++) {
            const wf_real beta = k == 0 ? 1 : k == 1 ? (wf_real)0.25 : 8, *in[] = {x};
            numbers(x, N, 3, -60, 60);
            for (int i = 0; i < N; i++)
                want[i] = ref_softplus((ld)x[i], (ld)beta);
            wf_kernel->internal->softplus(&beta, N, in, y);
            /* what the exponential makes of the rounded exponent */
            ck_near(isa, "softplus", N, x, y, want, 1e-20L, 4);
            numbers(x, N, 4, -50, k ? 0.001 : 2);
            for (int i = 0; i < N; i++)
                want[i] = x[i] > 0 ? (ld)x[i] : expm1l((ld)x[i]) * (ld)beta;
            wf_kernel->internal->elu(&beta, N, in, y);
            ck_near(isa, "elu", N, x, y, want, 0, 4);
        }
        wf_real one = 1, in[] = {-(wf_real)INFINITY, (wf_real)INFINITY, (wf_real)NAN, -2000, 2000, 0}, out[6], dy[] = {1, 1, 1, 1, 1, 1};
        wf_kernel->internal->softplus(&one, 6, (const wf_real *const[]){in}, out);
        ck_assert(out[0] == 0 && isinf(out[1]) && isnan(out[2]) && out[3] == 0 && out[4] == 2000 && distance(out[5], logl(2), 0) <= 2);
        wf_kernel->internal->softplus_grad(&one, 6, (const wf_real *const[]){in, dy}, out);
        ck_assert(out[0] == 0 && out[1] == 1 && isnan(out[2]) && out[3] == 0 && out[4] == 1 && out[5] == (wf_real)0.5);
        wf_kernel->internal->elu(&one, 6, (const wf_real *const[]){in}, out);
        ck_assert(out[0] == -1 && isinf(out[1]) && isnan(out[2]) && out[3] == -1 && out[4] == 2000 && out[5] == 0);
        wf_kernel->internal->elu_grad(&one, 6, (const wf_real *const[]){in, dy}, out);
        ck_assert(out[0] == 0 && out[1] == 1 && out[2] == 1 && out[3] == 0 && out[4] == 1 && out[5] == 1);
    }
}
END_TEST

/* --- bits ------------------------------------------------------------------------------------------------------------ */

#define M(name, inputs, ...)                                                                                                               \
    {                                                                                                                                      \
#name, offsetof(struct wf_internal_kernels, name), inputs,                                                                         \
        {                                                                                                                                  \
            __VA_ARGS__                                                                                                                    \
        }                                                                                                                                  \
    }
static const struct map {
    const char *name;
    size_t kernel;
    int inputs;
    wf_real constants[2];
} maps[] = {M(abs, 1, 0),
            M(abs_grad, 2, 0),
            M(clamp, 1, -1, (wf_real)0.5),
            M(clamp_grad, 2, -1, (wf_real)0.5),
            M(softplus, 1, 2),
            M(softplus_grad, 2, 2),
            M(leaky_relu, 1, (wf_real)0.1),
            M(leaky_relu_grad, 2, (wf_real)0.1),
            M(elu, 1, (wf_real)0.7),
            M(elu_grad, 2, (wf_real)0.7),
            M(pow_constant, 1, (wf_real)2.2),
            M(pow_constant, 1, 3),
            M(pow_constant, 1, (wf_real)-0.5),
            M(pow_constant_grad, 2, (wf_real)2.2),
            M(pow_constant_grad, 2, 0),
            M(pow_constant_grad, 2, 2),
            M(maximum_grad, 3, 0),
            M(minimum_grad, 3, 0),
            M(pow_base_grad, 3, 0),
            M(pow_exponent_grad, 4, 0),
            M(swiglu, 2, 0),
            M(swiglu_slope, 3, 0),
            M(geglu_tanh, 2, 0),
            M(geglu_tanh_slope, 3, 0),
            M(softcap, 1, (wf_real)1.5),
            M(softcap_grad, 2, (wf_real)1.5),
            M(rsqrt, 1, 0),
            M(rsqrt_grad, 2, 0),
            M(sin, 1, 0),
            M(sin_grad, 2, 0),
            M(cos, 1, 0),
            M(cos_grad, 2, 0),
            M(erf, 1, 0),
            M(erf_grad, 2, 0),
            M(sign, 1, 0),
            M(floor, 1, 0),
            M(round, 1, 0),
            M(log_sigmoid, 1, 0),
            M(log_sigmoid_grad, 2, 0),
            M(hard_swish, 1, 0),
            M(hard_swish_grad, 2, 0),
            M(mish, 1, 0),
            M(mish_grad, 2, 0)};

/* Every length and offset gives an element the bits that it has alone; nothing beyond the last is written. */
START_TEST(bits)
{
    static wf_real x[4][SPAN], alone[SPAN], y[SPAN + GUARD], guard[GUARD];
    for (int k = 0; k < 4; k++)
        numbers(x[k], SPAN, 30 + (uint64_t)k, -3, 3);
    for (int i = 0; i < SPECIALS; i++) {
        x[0][i] = x[1][2 * i] = specials[i];
        x[0][60 + i] = x[1][60 + i] = specials[i]; /* ties */
    }
    numbers(guard, GUARD, 99, 0, 1);
    EACH_ISA
    {
        for (size_t m = 0; m < sizeof maps / sizeof *maps; m++) {
            wf_map_kernel *f = *(wf_map_kernel *const *)((const char *)wf_kernel->internal + maps[m].kernel);
            for (int i = 0; i < SPAN; i++)
                f(maps[m].constants, 1, (const wf_real *const[]){x[0] + i, x[1] + i, x[2] + i, x[3] + i}, alone + i);
            for (int n = 0; n <= 70; n++)
                for (int from = 0; from < 60; from += n % 5 + 1) {
                    memcpy(y + n, guard, sizeof guard);
                    f(maps[m].constants, n, (const wf_real *const[]){x[0] + from, x[1] + from, x[2] + from, x[3] + from}, y);
                    ck_assert_msg(same_numbers(y, alone + from, n), "%s %s of %d from %d", isa, maps[m].name, n, from);
                    ck_assert_msg(same_bits(y + n, guard, GUARD), "%s %s writes beyond %d", isa, maps[m].name, n);
                }
        }
    }
}
END_TEST

static ld ref_rsqrt(ld x)
{
    return 1 / sqrtl(x);
}

static ld ref_log_sigmoid(ld x)
{
    return (x < 0 ? x : 0) - log1pl(expl(-fabsl(x)));
}

static ld ref_mish(ld x)
{
    return x * tanhl(log1pl(expl(x)));
}

static ld ref_hard_swish(ld x)
{
    return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6;
}

static ld ref_sign(ld x)
{
    return (x > 0) - (x < 0);
}

/* Each function of functions.c over a range; the bound is in units of EPS max(|y|, floor). */
START_TEST(more_functions)
{
#define R(name) offsetof(struct wf_internal_kernels, name), #name
    static const struct {
        size_t kernel;
        const char *name;
        ld (*reference)(ld);
        double low, high, floor, bound;
    } list[] = {{R(rsqrt), ref_rsqrt, 0, 100, 0, 3},  {R(rsqrt), ref_rsqrt, 0, 1e-30, 0, 3},
                {R(sin), sinl, -4, 4, 0, 2},          {R(sin), sinl, -1e6, 1e6, 0, 2},
                {R(sin), sinl, -1e9, 1e9, 0, 2},      {R(sin), sinl, -1e-7, 1e-7, 0, 2},
                {R(cos), cosl, -4, 4, 0, 2},          {R(cos), cosl, -1e6, 1e6, 0, 2},
                {R(cos), cosl, -1e9, 1e9, 0, 2},      {R(erf), erfl, -0.75, 0.75, 0, 4},
                {R(erf), erfl, -7, 7, 0, 4},          {R(erf), erfl, -1e-20, 1e-20, 0, 4},
                {R(floor), floorl, -50, 50, 0, 0},    {R(floor), floorl, -1e10, 1e10, 0, 0},
                {R(round), rintl, -50, 50, 0, 0},     {R(round), rintl, -1e10, 1e10, 0, 0},
                {R(sign), ref_sign, -1, 1, 0, 0},     {R(log_sigmoid), ref_log_sigmoid, -80, 80, 1e-20, 5},
                {R(mish), ref_mish, -30, 30, 0.1, 6}, {R(hard_swish), ref_hard_swish, -9, 9, 0.5, 4}};
    static wf_real x[N], y[N];
    static ld want[N];
    EACH_ISA
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        wf_map_kernel *f = *(wf_map_kernel *const *)((const char *)wf_kernel->internal + list[k].kernel);
        numbers(x, N, 50 + k, list[k].low, list[k].high);
        for (int i = 0; i < 200; i++) /* ties of round, and the ends of steps */
            x[i] = list[k].low < 0 ? (wf_real)((i - 100) * (list[k].high > 9 ? 0.5 : list[k].high / 100)) : x[i];
        for (int i = 0; i < N; i++)
            want[i] = list[k].reference((ld)x[i]);
        f(NULL, N, (const wf_real *const[]){x}, y);
        ck_near(isa, list[k].name, N, x, y, want, (ld)list[k].floor, list[k].bound);
    }
}
END_TEST

typedef void (*binary)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);

START_TEST(two_operands)
{
    static wf_real a[SPAN], b[SPAN], c[SPAN + 1];
    numbers(a, SPAN, 1, -3, 3);
    numbers(b, SPAN, 2, -3, 3);
    memcpy(a + 20, specials, sizeof specials);
    memcpy(b + 30, specials, sizeof specials);
    b[0] = (wf_real)NAN;
    EACH_ISA
    {
        const binary kernels[] = {wf_kernel->internal->maximum, wf_kernel->internal->minimum, wf_kernel->internal->pow};
        for (int k = 0; k < 3; k++)
            for (int n = 0; n <= SPAN; n++)
                for (int sides = 0; sides < 4; sides++) {
                    int sa = sides & 1, sb = sides >> 1;
                    c[n] = 77;
                    kernels[k](n, a, sa, b, sb, c);
                    ck_assert(c[n] == 77);
                    for (int i = 0; i < n; i++) {
                        wf_real x = a[i * sa], y = b[i * sb], want;
                        if (k == 2)
                            kernels[2](1, &x, 1, &y, 1, &want);
                        else
                            want = isnan(x) || isnan(y) ? (wf_real)NAN : (k == 0 ? x > y : x < y) ? x : y;
                        ck_assert_msg(same_numbers(&c[i], &want, 1) || (want == 0 && c[i] == 0), "%s kernel %d of %g and %g is %g", isa, k,
                                      (double)x, (double)y, (double)c[i]);
                    }
                }
    }
}
END_TEST

WF_TEST_MAIN("elementwise kernels", pow_accuracy, pow_specials, functions, bits, more_functions, two_operands)
