/* SPDX-License-Identifier: MIT */
/* The smaller and the larger of two numbers that have one type after the usual conversions. Each argument is evaluated once. If a or b
 * is NaN, the result is b. In constant expressions and on vectors write a < b ? a : b instead. */
#ifndef WEFT_INTERNAL_MINMAX_H
#define WEFT_INTERNAL_MINMAX_H

#define WF_MIN(a, b) WF_MINMAX(min, a, b)
#define WF_MAX(a, b) WF_MINMAX(max, a, b)

#define WF_MINMAX(which, a, b)                                                                                                             \
    _Generic((a) + (b), int                                                                                                                \
             : which##_of_int, unsigned                                                                                                    \
             : which##_of_unsigned, long                                                                                                   \
             : which##_of_long, unsigned long                                                                                              \
             : which##_of_unsigned_long, long long                                                                                         \
             : which##_of_long_long, unsigned long long                                                                                    \
             : which##_of_unsigned_long_long, float                                                                                        \
             : which##_of_float, double                                                                                                    \
             : which##_of_double)(a, b)

#define WF_MINMAX_OF(type, name)                                                                                                           \
    static inline type min_of_##name(type a, type b)                                                                                       \
    {                                                                                                                                      \
        return a < b ? a : b;                                                                                                              \
    }                                                                                                                                      \
    static inline type max_of_##name(type a, type b)                                                                                       \
    {                                                                                                                                      \
        return a > b ? a : b;                                                                                                              \
    }
WF_MINMAX_OF(int, int)
WF_MINMAX_OF(unsigned, unsigned)
WF_MINMAX_OF(long, long)
WF_MINMAX_OF(unsigned long, unsigned_long)
WF_MINMAX_OF(long long, long_long)
WF_MINMAX_OF(unsigned long long, unsigned_long_long)
WF_MINMAX_OF(float, float)
WF_MINMAX_OF(double, double)
#undef WF_MINMAX_OF

#endif
