/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the kernels: every instruction set in turn, numbers, and distances to long double references. */
#ifndef TESTS_CORE_KERNELS_COMMON_H
#define TESTS_CORE_KERNELS_COMMON_H

#include "../check_weft.h"

#include <float.h>
#include <math.h>

#include <weft/internal/kernels.h>

#ifdef WF_DOUBLE
#define EPS 0x1p-53
#define LEAST 0x1p-1074 /* the least denormal */
#define HUGEST DBL_MAX
#else
#define EPS 0x1p-24
#define LEAST 0x1p-149
#define HUGEST FLT_MAX
#endif

typedef long double ld;

/* Runs the statement that follows once for each instruction set of this processor; `isa` is its name. */
#define EACH_ISA                                                                                                                           \
    for (const char *const *all = isas, *isa = *all; isa; isa = *++all)                                                                    \
        if (use_isa(isa))

static const char *const isas[] = {"avx512", "avx2", "base", NULL};

static inline bool use_isa(const char *isa)
{
    if (!wf_isa_supported(isa))
        return false;
    ck_ok(wf_isa_use(isa, error));
    ck_assert_str_eq(wf_kernel->isa, isa);
    return true;
}

/* Zeros, infinities, NaN, the ends of the range, integers about 2^23, 2^24 and 2^53, and exponents at which e^x overflows and underflows.
 */
static const wf_real specials[] = {0,          -0.0,
                                   INFINITY,   -INFINITY,
                                   NAN,        LEAST,
                                   -LEAST,     LEAST * 1000,
                                   HUGEST,     -HUGEST,
                                   1,          -1,
                                   2,          -2,
                                   3,          -3,
                                   0.5,        -0.5,
                                   2.5,        4,
                                   1e-30,      -1e-30,
                                   1e30,       -1e30,
                                   88,         88.72,
                                   89,         -87,
                                   -103.2,     -103.98,
                                   -200,       709,
                                   710,        -745,
                                   -746,       5000,
                                   -5000,      8388607,
                                   8388609,    16777216,
                                   16777217.0, 9007199254740991.0,
                                   1.0000001,  -0.9999999};
enum { SPECIALS = sizeof specials / sizeof *specials };

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Uniform in [low, high), the same on every call with the same index. */
static inline wf_real number(uint64_t index, double low, double high)
{
    return (wf_real)(low + (high - low) * (double)(mix((index + 1) * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53);
}

static inline void numbers(wf_real *x, int64_t n, uint64_t seed, double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = number(seed * 1000003 + (uint64_t)i, low, high);
}

static inline bool same_bits(const void *a, const void *b, int64_t n)
{
    return n == 0 || memcmp(a, b, (size_t)n * sizeof(wf_real)) == 0;
}

/* The same, but any NaN is as good as another: which operand's sign it takes is up to the order of a product's factors. */
static inline bool same_numbers(const wf_real *a, const wf_real *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!same_bits(a + i, b + i, 1) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* |got - want| in units of EPS max(|want|, floor): about 1 for a correctly rounded result. NaN and infinities must be met. */
static inline double distance(wf_real got, ld want, ld floor)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf((wf_real)want) || isinf(got))
        return (wf_real)want == got ? 0 : INFINITY;
    ld unit = EPS * (fabsl(want) > floor ? fabsl(want) : floor);
    return (double)(fabsl((ld)got - want) / (unit > (ld)LEAST ? unit : (ld)LEAST));
}

/* The results y for x are at most `bound` units from want. WEFT_KERNELS_VERBOSE prints the largest distance. */
static inline void ck_near(const char *isa, const char *what, int n, const wf_real *x, const wf_real *y, const ld *want, ld floor,
                           double bound)
{
    double worst = 0;
    int at = 0;
    for (int i = 0; i < n; i++) {
        double e = distance(y[i], want[i], floor);
        if (e > worst) {
            worst = e;
            at = i;
        }
    }
    if (getenv("WEFT_KERNELS_VERBOSE"))
        fprintf(stderr, "%-7s %-10s %.2f at %.9g\n", isa, what, worst, (double)x[at]);
    ck_assert_msg(worst <= bound, "%s %s(%.17g) = %.17g: off by %.2f units, %.2f allowed", isa, what, (double)x[at], (double)y[at], worst,
                  bound);
}

#endif
