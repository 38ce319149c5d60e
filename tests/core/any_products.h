/* SPDX-License-Identifier: MIT */
/* Random products with any strides, scales and numbers, for the tests of bf16. */
#ifndef WEFT_TEST_ANY_PRODUCTS_H
#define WEFT_TEST_ANY_PRODUCTS_H

#include "products.h"

enum kind { PLAIN, TINY, SPECIAL, KINDS };

static inline float a_number(enum kind kind)
{
    static const float special[] = {0,           -0.f,        INFINITY,   -INFINITY,  NAN,         1,
                                    -1,          0x1p-126f,   -0x1p-126f, 0x1p-127f,  0x1p-149f,   0x1.fffffep127f,
                                    0x1.fep127f, 0x1.ffp127f, 0x1.008p0f, 0x1.018p0f, 0x1.00a8p0f, 0x1.ffffp-127f,
                                    0x1p-63f,    -0x1p-63f};
    const float x = (float)((double)below(1 << 30) / (1 << 29) - 1);
    if (kind == PLAIN)
        return x;
    if (kind == TINY)
        return ldexpf(x, -50 - (int)below(40));
    return below(4) ? x : special[below(sizeof special / sizeof *special)];
}

static inline float *some_numbers(int64_t n, enum kind kind)
{
    float *x = room_of(n);
    for (int64_t i = 0; i < n; i++)
        x[i] = a_number(kind);
    return x;
}

/* Any order, or one row for all rows. */
static inline struct order operand_of(int64_t rows, int64_t columns)
{
    const int kind = (int)below(ORDERS + 1);
    return kind < ORDERS ? order_of(kind, rows, columns) : (struct order){0, 1, columns, 0};
}

static inline struct wf_gemm random_product(int64_t m, int64_t n, int64_t k, enum kind kind, float **memory, int64_t *room)
{
    static const float scales[] = {1, 1, 0.125f, -0.3f}, betas[] = {0, 0, 1, 0.7f};
    const struct order a = operand_of(m, k), b = operand_of(k, n), c = order_of((int)below(ORDERS), m, n);
    *room = c.room;
    *memory = some_numbers(c.room, kind);
    return (struct wf_gemm){.m = m,
                            .n = n,
                            .k = k,
                            .alpha = scales[below(4)],
                            .beta = betas[below(4)],
                            .a = some_numbers(a.room, kind) + a.from,
                            .a_rs = a.rs,
                            .a_cs = a.cs,
                            .b = some_numbers(b.room, kind) + b.from,
                            .b_rs = b.rs,
                            .b_cs = b.cs,
                            .c = *memory + c.from,
                            .c_rs = c.rs,
                            .c_cs = c.cs,
                            .bias = below(2) ? some_numbers(n, kind) : NULL};
}

#endif
