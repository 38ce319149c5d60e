/* SPDX-License-Identifier: MIT */
/* The kernels that work element by element, and the reductions, against libm in long double. */
#include "kernels_common.h"

#include <stddef.h>

static ld ref_sigmoid(ld x)
{
    return 1 / (1 + expl(-x));
}

static ld ref_relu(ld x)
{
    return x < 0 ? 0 : x;
}

static ld ref_gelu(ld x)
{
    return isinf(x) && x < 0 ? 0 : x * erfcl(-x * sqrtl(0.5L)) / 2;
}

static ld ref_gelu_tanh(ld x)
{
    return x / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)));
}

static ld ref_silu(ld x)
{
    return x / (1 + expl(-x));
}

typedef void (*unary)(int64_t n, const wf_real *x, wf_real *y);
typedef void (*unary_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);

/* Bounds in units of EPS max(|y|, floor): for the processors with a fused multiply-add and for base, float and double. */
static const struct function {
    const char *name;
    size_t kernel, grad; /* grad 0: none */
    bool of_result;      /* the gradient takes y */
    ld (*reference)(ld);
    double low, high, floor, bound;
    double at_plus, at_minus; /* the derivative at the infinities */
} functions[] = {
#define F(name, has_grad, of_result, reference, ...)                                                                                       \
    {                                                                                                                                      \
#name, offsetof(struct wf_kernels, name), has_grad, of_result, reference, __VA_ARGS__                                              \
    }
#define G(name) offsetof(struct wf_kernels, name##_grad)
    F(exp, 0, false, expl, -110, 90, 0, 4, 0, 0),
    F(exp, 0, false, expl, -2, 2, 0, 3, 0, 0),
    F(log, 0, false, logl, 0, 2, 0, 4, 0, 0),
    F(log, 0, false, logl, 0, 1e30, 0, 3, 0, 0),
    F(log, 0, false, logl, 0, 1e-37, 0, 3, 0, 0),
    F(sqrt, 0, false, sqrtl, 0, 100, 0, 1.01, 0, 0),
    F(tanh, G(tanh), true, tanhl, -1, 1, 0, 5, 0, 0),
    F(tanh, G(tanh), true, tanhl, -12, 12, 0, 5, 0, 0),
    F(sigmoid, G(sigmoid), true, ref_sigmoid, -20, 20, 0, 6, 0, 0),
    F(relu, G(relu), false, ref_relu, -5, 5, 0, 0, 1, 0),
    F(gelu, G(gelu), false, ref_gelu, -4, 4, 0.25, 4, 1, 0),
    F(gelu, G(gelu), false, ref_gelu, -12, 12, 0.5, 3.3, 1, 0),
    F(gelu_tanh, G(gelu_tanh), false, ref_gelu_tanh, -12, 12, 0.25, 4, 1, 0),
    F(silu, G(silu), false, ref_silu, -30, 30, 0.25, 4, 1, 0),
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

static unary kernel_of(const struct function *f)
{
    return *(const unary *)((const char *)wf_kernel + f->kernel);
}

static unary_grad grad_of(const struct function *f)
{
    return *(const unary_grad *)((const char *)wf_kernel + f->grad);
}

START_TEST(unary_accuracy)
{
    enum { N = 20000 };
    static wf_real x[N], y[N];
    static ld want[N];
    EACH_ISA
    for (size_t k = 0; k < FUNCTIONS; k++) {
        const struct function *f = &functions[k];
        numbers(x, N, 7, f->low, f->high);
        for (int i = 0; i < N; i++)
            want[i] = f->reference((ld)x[i]);
        kernel_of(f)(N, x, y);
        ck_near(isa, f->name, N, x, y, want, (ld)f->floor, f->bound);
    }
}
END_TEST

/* The derivative of the reference by a central difference of fourth order in long double: good to 1e-14. */
static ld slope(ld (*f)(ld), ld x)
{
    const ld h = 0x1p-12L;
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

START_TEST(unary_gradients)
{
    enum { N = 4000 };
    static wf_real x[N], y[N], dy[N], dx[N];
    const double bound = sizeof(wf_real) == 4 ? 5e-7 : 3e-14;
    EACH_ISA
    {
        for (size_t k = 0; k < FUNCTIONS; k++) {
            const struct function *f = &functions[k];
            if (!f->grad)
                continue;
            numbers(x, N, 11, f->low, f->high);
            numbers(dy, N, 12, -2, 2);
            kernel_of(f)(N, x, y);
            grad_of(f)(N, f->of_result ? y : x, dy, dx);
            for (int i = 0; i < N; i++) {
                if (f->reference == ref_relu && fabsl((ld)x[i]) < 1e-3L)
                    continue;
                double e = (double)fabsl((ld)dx[i] - (ld)dy[i] * slope(f->reference, (ld)x[i]));
                ck_assert_msg(e <= bound, "%s %s_grad(%.9g) off by %g", isa, f->name, (double)x[i], e);
            }
            wf_real *first = f->of_result ? y : x;
            static wf_real on[N];
            memcpy(on, dy, sizeof on);
            grad_of(f)(N, first, on, on); /* dx on dy */
            ck_assert(same_bits(dx, on, N));
            grad_of(f)(N, first, dy, first); /* dx on x */
            ck_assert(same_bits(dx, first, N));
        }
    }
}
END_TEST

START_TEST(unary_specials)
{
    wf_real y[SPECIALS], dx[SPECIALS], ones[SPECIALS];
    EACH_ISA
    {
        for (size_t k = 0; k < FUNCTIONS; k++) {
            const struct function *f = &functions[k];
            kernel_of(f)(SPECIALS, specials, y);
            for (int i = 0; i < SPECIALS; i++) {
                ld want = f->reference((ld)specials[i]);
                /* 1 / (1 + e^x) leaves out what is less than the least normal number; from 1 to 30 the error of its exponent counts. */
                const double size = fabs((double)specials[i]);
                const bool logistic = f->reference == ref_sigmoid || f->reference == ref_silu || f->reference == ref_gelu_tanh;
                const ld floor = logistic && (size <= 1 || size > 30) ? 1e-20L : (ld)f->floor;
                double e = distance(y[i], want, floor);
                ck_assert_msg(e <= (f->bound > 2 ? f->bound : 2), "%s %s(%g) = %.17g, not %.17Lg (%.1f)", isa, f->name, (double)specials[i],
                              (double)y[i], want, e);
                if (specials[i] == 0 && want == 0 && f->reference != ref_relu)
                    ck_assert_int_eq(!!signbit(y[i]), !!signbit(specials[i]));
            }
            if (!f->grad)
                continue;
            for (int i = 0; i < SPECIALS; i++)
                ones[i] = 1;
            grad_of(f)(SPECIALS, f->of_result ? y : specials, ones, dx);
            for (int i = 0; i < SPECIALS; i++) {
                if (isnan(specials[i]))
                    ck_assert(f->reference == ref_relu ? dx[i] == 1 : isnan(dx[i]));
                else if (fabs((double)specials[i]) > 1e3)
                    ck_assert_msg(fabs((double)dx[i] - (specials[i] > 0 ? f->at_plus : f->at_minus)) < 1e-30, "%s %s_grad(%g) = %g", isa,
                                  f->name, (double)specials[i], (double)dx[i]);
                else
                    ck_assert(isfinite(dx[i]));
            }
        }
        wf_real zero[] = {0, (wf_real)-0.0}, one[] = {1, 1}, d[2];
        wf_kernel->relu_grad(2, zero, one, d);
        ck_assert(d[0] == 0 && d[1] == 0);
        wf_kernel->exp(1, (wf_real[]){-(wf_real)INFINITY}, d);
        ck_assert(same_bits(d, zero, 1));
    }
}
END_TEST

enum { SPAN = 150, GUARD = 16 };

/* Every length and offset gives an element the bits that it has alone; nothing beyond the last is written, in place too. */
START_TEST(unary_bits)
{
    wf_real x[SPAN], dy[SPAN], alone[SPAN], y[SPAN + GUARD], guard[GUARD];
    numbers(guard, GUARD, 99, 0, 1);
    numbers(dy, SPAN, 98, -1, 1);
    EACH_ISA
    {
        for (size_t k = 0; k < FUNCTIONS; k++) {
            const struct function *f = &functions[k];
            for (int grad = 0; grad <= (f->grad != 0); grad++) {
                numbers(x, SPAN, 5, f->low, f->high);
                memcpy(x + 20, specials, sizeof specials);
                for (int i = 0; i < SPAN; i++)
                    grad ? grad_of(f)(1, x + i, dy + i, alone + i) : kernel_of(f)(1, x + i, alone + i);
                for (int n = 0; n <= 70; n++)
                    for (int offset = 0; offset < 40; offset += n % 5 + 1) {
                        memcpy(y + n, guard, sizeof guard);
                        if (n % 2)
                            memcpy(y, (grad ? dy : x) + offset, (size_t)n * sizeof *y);
                        grad ? grad_of(f)(n, x + offset, n % 2 ? y : dy + offset, y) : kernel_of(f)(n, n % 2 ? y : x + offset, y);
                        ck_assert_msg(same_numbers(y, alone + offset, n), "%s %s%s of %d from %d", isa, f->name, grad ? "_grad" : "", n,
                                      offset);
                        ck_assert_msg(same_bits(y + n, guard, GUARD), "%s %s writes beyond %d", isa, f->name, n);
                    }
            }
        }
    }
}
END_TEST

START_TEST(binary)
{
    wf_real a[SPAN], b[SPAN], c[SPAN + 1];
    numbers(a, SPAN, 1, -3, 3);
    numbers(b, SPAN, 2, 1, 3);
    memcpy(a + 30, specials, sizeof specials);
    EACH_ISA
    {
        for (int n = 0; n <= SPAN; n++)
            for (int sides = 0; sides < 4; sides++) {
                int sa = sides & 1, sb = sides >> 1;
#define BINARY(name, op)                                                                                                                   \
    c[n] = 77;                                                                                                                             \
    wf_kernel->name(n, a, sa, b, sb, c);                                                                                                   \
    for (int i = 0; i < n; i++) {                                                                                                          \
        wf_real want = a[i * sa] op b[i * sb];                                                                                             \
        ck_assert_msg(same_numbers(&c[i], &want, 1), "%s " #name, isa);                                                                    \
    }                                                                                                                                      \
    ck_assert(c[n] == 77);                                                                                                                 \
    if (sa) {                                                                                                                              \
        wf_real kept[SPAN + 1];                                                                                                            \
        memcpy(kept, c, sizeof c);                                                                                                         \
        memcpy(c, a, sizeof a);                                                                                                            \
        wf_kernel->name(n, c, sa, b, sb, c);                                                                                               \
        ck_assert(same_numbers(c, kept, n));                                                                                               \
    }
                BINARY(add, +)
                BINARY(sub, -)
                BINARY(mul, *)
                BINARY(div, /)
            }
        numbers(a, SPAN, 1, -3, 3);
        for (int n = 0; n <= SPAN; n++) {
            c[n] = 77;
            wf_kernel->affine(n, (wf_real)1.3, (wf_real)-0.7, a, c);
            for (int i = 0; i < n; i++)
                ck_assert(distance(c[i], (ld)(wf_real)1.3 * (ld)a[i] + (ld)(wf_real)-0.7, 4) <= 2);
            memcpy(c, b, (size_t)n * sizeof *c);
            wf_kernel->axpy(n, (wf_real)1.3, a, c);
            for (int i = 0; i < n; i++)
                ck_assert(distance(c[i], (ld)(wf_real)1.3 * (ld)a[i] + (ld)b[i], 4) <= 2);
            wf_kernel->fill(n, (wf_real)2.5, c);
            for (int i = 0; i < n; i++)
                ck_assert(c[i] == (wf_real)2.5);
            ck_assert(c[n] == 77);
        }
        wf_real alone[SPAN];
        for (int i = 0; i < SPAN; i++)
            wf_kernel->affine(1, (wf_real)1.3, (wf_real)-0.7, a + i, alone + i);
        for (int n = 0; n < 70; n++) {
            wf_kernel->affine(n, (wf_real)1.3, (wf_real)-0.7, a + n, c);
            ck_assert(same_bits(c, alone + n, n));
        }
    }
}
END_TEST

START_TEST(reductions)
{
    enum { LARGE = 100003 };
    static wf_real x[LARGE], y[LARGE];
    numbers(x, LARGE, 3, -1, 1.5);
    numbers(y, LARGE, 4, -1, 1);
    EACH_ISA
    {
        for (int64_t n = 0; n <= LARGE; n += n < 300 ? 1 : 33234) {
            ld sum = 0, squares = 0, dot = 0, size = 0;
            wf_real top = -(wf_real)INFINITY;
            for (int64_t i = 0; i < n; i++) {
                sum += (ld)x[i];
                squares += (ld)x[i] * (ld)x[i];
                dot += (ld)x[i] * (ld)y[i];
                size += fabsl((ld)x[i]) + (ld)x[i] * (ld)x[i];
                top = x[i] > top ? x[i] : top;
            }
            ld bound = size * 1.2e-16L * (10 + sqrtl((ld)n));
            ck_assert(fabsl(wf_kernel->sum(n, x) - sum) <= bound);
            ck_assert(fabsl(wf_kernel->sum_squares(n, x) - squares) <= bound);
            ck_assert(fabsl(wf_kernel->dot(n, x, y) - dot) <= bound);
            if (n)
                ck_assert(wf_kernel->max(n, x) == top);
            ck_assert_int_eq(wf_kernel->find_nonfinite(n, x), -1);
        }
        for (int64_t n = 1; n < 300; n += 7)
            for (int64_t at = 0; at < n; at++) {
                static const wf_real bad[] = {(wf_real)NAN, (wf_real)INFINITY, (wf_real)-INFINITY};
                wf_real kept = x[at], after = x[n - 1];
                x[n - 1] = (wf_real)INFINITY;
                x[at] = bad[at % 3];
                ck_assert_int_eq(wf_kernel->find_nonfinite(n, x), at);
                x[at] = (wf_real)NAN;
                ck_assert(isnan(wf_kernel->max(n, x)));
                x[n - 1] = after;
                x[at] = kept;
            }
        ck_assert(wf_kernel->max(1, (wf_real[]){-(wf_real)INFINITY}) == -(wf_real)INFINITY);
    }
}
END_TEST

START_TEST(column_sums)
{
    enum { STRIDE = 301 };
    static wf_real x[200 * STRIDE], y[STRIDE + 1], alone[STRIDE];
    numbers(x, 200 * STRIDE, 6, -1, 1);
    EACH_ISA
    {
        for (int64_t rows = 0; rows <= 200; rows += rows < 5 ? 1 : 39) {
            for (int64_t j = 0; j < STRIDE; j++)
                wf_kernel->sum_rows(rows, 1, x + j, STRIDE, false, alone + j);
            for (int64_t d = 0; d <= STRIDE; d += d < 70 ? 1 : 77)
                for (int add = 0; add < 2; add++) {
                    for (int64_t j = 0; j <= d; j++)
                        y[j] = 5;
                    wf_kernel->sum_rows(rows, d, x, STRIDE, add, y);
                    for (int64_t j = 0; j < d; j++) {
                        ld want = 5 * add, size = want;
                        for (int64_t i = 0; i < rows; i++) {
                            want += (ld)x[i * STRIDE + j];
                            size += fabsl((ld)x[i * STRIDE + j]);
                        }
                        ck_assert(fabsl((ld)y[j] - want) <= 40 * EPS * size);
                    }
                    ck_assert(y[d] == 5);
                    if (!add)
                        ck_assert(same_bits(y, alone, d));
                }
        }
    }
}
END_TEST

WF_TEST_MAIN("kernels", unary_accuracy, unary_gradients, unary_specials, unary_bits, binary, reductions, column_sums)
