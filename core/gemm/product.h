/* SPDX-License-Identifier: MIT */
/* A product with our own kernels, and a part of it on one thread. (part.c) */
#ifndef WEFT_GEMM_PRODUCT_H
#define WEFT_GEMM_PRODUCT_H

#include "parts.h"

/* The product, turned so that rows of C are stored where that is possible, with its bias along the row or the column. */
struct product {
    struct wf_gemm g;
    const wf_real *bias_n, *bias_m;
    int64_t k_block;
    int64_t more; /* of k after the end, for another product */
};

struct part {
    int64_t m0, m1, n0, n1, k0, k1;
};

enum { GEMM_STEPS = 16 }; /* of k, that are packed together where they lie apart */

static inline int64_t gemm_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t gemm_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gemm_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether A is read where it lies, for so many columns of C, or B, for so many rows. */
bool wf_gemm_rows_in_place(const struct wf_gemm *g, int64_t columns);
bool wf_gemm_columns_in_place(const struct wf_gemm *g, int64_t rows);
/* This thread's room for so many packed rows in blocks of k; NULL without memory. */
wf_real *wf_gemm_room_for_rows(int64_t rows, int64_t k);
/* A k-block of a part, all but B. */
struct gemm_block wf_gemm_block_of(const struct product *p, const struct part *part, int64_t k0, int64_t k1);
/* Packs the rows of a block and makes it read them there. */
void wf_gemm_pack_rows(struct gemm_block *b, wf_real *room);
/* Packs k steps of n columns of B, from b on, to panels. */
void wf_gemm_pack_columns(const struct wf_gemm *g, int64_t n, int64_t k, const wf_real *b, wf_real *panels);
/* A part on the calling thread, which packs what it needs for itself. False without memory. */
bool wf_gemm_part(const struct product *p, const struct part *part) WF_CHECKED;

/* slices.c: few elements of C and long sums: k in slices, whose results are added in their order. Never under the row rule. `cost` as for
 * wf_gemm_phases; false without memory. */
bool wf_gemm_slices_pay(const struct wf_gemm *g);
bool wf_gemm_in_slices(const struct product *p, double cost, bool serial) WF_CHECKED;

#endif
