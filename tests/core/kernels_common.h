/* SPDX-License-Identifier: MIT */
/* What the tests of the kernels share: every instruction set in turn, numbers, and distances to long double references. */
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

/* Uniform in [low, high), the same on every call with the same index. */
static inline wf_real number(uint64_t index, double low, double high)
{
    uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (wf_real)(low + (high - low) * (double)((x ^ (x >> 31)) >> 11) * 0x1p-53);
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

#define VERBOSE(...)                                                                                                                       \
    do {                                                                                                                                   \
        if (getenv("WEFT_KERNELS_VERBOSE"))                                                                                                \
            fprintf(stderr, __VA_ARGS__);                                                                                                  \
    } while (0)

#endif
