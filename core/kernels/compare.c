/* SPDX-License-Identifier: MIT */
/* Comparisons of reals, and selection of elements by bools. The compiler vectorises these plain loops. All instruction sets give the same
 * results, because nothing is rounded. */
#include "../simd.h"

#define COMPARE(name, op)                                                                                                                  \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const void *const in[], void *y)                                                      \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const wf_real *restrict a = in[0], *restrict b = in[1];                                                                            \
        uint8_t *restrict to = y;                                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                                    \
            to[i] = a[i] op b[i];                                                                                                          \
    }
COMPARE(compare_eq, ==)
COMPARE(compare_ne, !=)
COMPARE(compare_lt, <)
COMPARE(compare_le, <=)
COMPARE(compare_gt, >)
COMPARE(compare_ge, >=)

/* x - x is a NaN for infinities and NaN. */
void WF_KERNEL(is_finite)(const void *ctx, int64_t n, const void *const in[], void *y)
{
    (void)ctx;
    const wf_real *restrict x = in[0];
    uint8_t *restrict to = y;
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i] - x[i] == 0;
}

/* Lets the compiler vectorise a loop. This is correct even if y is in[1] or in[2], because no element depends on another. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define SELECT(name, type)                                                                                                                 \
    void WF_KERNEL(name)(const void *ctx, int64_t n, const void *const in[], void *y)                                                      \
    {                                                                                                                                      \
        (void)ctx;                                                                                                                         \
        const uint8_t *c = in[0];                                                                                                          \
        const type *a = in[1], *b = in[2];                                                                                                 \
        type *to = y;                                                                                                                      \
        INDEPENDENT for (int64_t i = 0; i < n; i++) to[i] = c[i] ? a[i] : b[i];                                                            \
    }
SELECT(select_1, uint8_t)
SELECT(select_4, uint32_t)
SELECT(select_8, uint64_t)
