/* SPDX-License-Identifier: MIT */
/* Products of random matrices, for the tests of core/gemm. */
#ifndef WEFT_TEST_PRODUCTS_H
#define WEFT_TEST_PRODUCTS_H

#include "kernels_common.h"

/* ck_assert_msg writes to a file each time; this only where it fails. */
#define expect(condition, ...)                                                                                                             \
    do {                                                                                                                                   \
        if (!(condition))                                                                                                                  \
            ck_abort_msg(__VA_ARGS__);                                                                                                     \
    } while (0)

static uint64_t state = 88172645463325252u;

static inline uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static inline int64_t below(int64_t n)
{
    return (int64_t)(next() % (uint64_t)n);
}

/* Memory of a case, until free_case. */
static void *blocks[32];
static int block_count;

static inline wf_real *room_of(int64_t n)
{
    wf_real *x = malloc((size_t)n * sizeof *x + 1);
    ck_assert(x && block_count < 32);
    return blocks[block_count++] = x;
}

static inline void free_case(void)
{
    while (block_count > 0)
        free(blocks[--block_count]);
}

/* From -1 to 1, others in each call. */
static inline wf_real *random_numbers(int64_t n)
{
    wf_real *x = room_of(n);
    numbers(x, n, next(), -1, 1);
    return x;
}

static inline wf_real *copy_of(const wf_real *x, int64_t n)
{
    return memcpy(room_of(n), x, (size_t)n * sizeof *x);
}

/* The strides of a matrix, the memory that it takes, and the place of element (0, 0). */
struct order {
    int64_t rs, cs, room, from;
};

/* Rows, columns, both with gaps, and both backwards. `from`: where element (0, 0) lies. */
static inline struct order order_of(int kind, int64_t rows, int64_t columns)
{
    switch (kind) {
    case 0:
        return (struct order){columns, 1, rows * columns, 0};
    case 1:
        return (struct order){1, rows, rows * columns, 0};
    case 2:
        return (struct order){3 * columns + 5, 3, rows * (3 * columns + 5), 0};
    case 3:
        return (struct order){2, 2 * rows + 1, columns * (2 * rows + 1), 0};
    default:
        return (struct order){-columns, -1, rows * columns, rows * columns - 1};
    }
}
enum { ORDERS = 5 };

/* Whether A, and whether B, is stored transposed. */
enum form { NN, NT, TN, TT };

/* C [m, n] = A [m, k] B [k, n] without gaps, with memory for `count` such products end to end and one number behind C. */
static inline struct wf_gemm product(int64_t m, int64_t n, int64_t k, enum form form, int64_t count)
{
    const bool ta = form & TN, tb = form & NT;
    return (struct wf_gemm){.m = m,
                            .n = n,
                            .k = k,
                            .alpha = 1,
                            .a = random_numbers(m * k * count),
                            .a_rs = ta ? 1 : k,
                            .a_cs = ta ? m : 1,
                            .b = random_numbers(k * n * count),
                            .b_rs = tb ? 1 : n,
                            .b_cs = tb ? k : 1,
                            .c = random_numbers(m * n * count + 1),
                            .c_rs = n,
                            .c_cs = 1};
}

static inline const char *describe(const struct wf_gemm *g)
{
    static char text[320];
    snprintf(text, sizeof text,
             "%s %s: m %lld n %lld k %lld, alpha %g beta %g bias %d rows_alone %d, strides %lld %lld, %lld %lld, %lld %lld", wf_isa(),
             wf_gemm_mode(), (long long)g->m, (long long)g->n, (long long)g->k, (double)g->alpha, (double)g->beta, g->bias != NULL,
             g->rows_alone, (long long)g->a_rs, (long long)g->a_cs, (long long)g->b_rs, (long long)g->b_cs, (long long)g->c_rs,
             (long long)g->c_cs);
    return text;
}

#endif
