/* SPDX-License-Identifier: MIT */
/* Who computes a product, BLIS or our own kernels: by shape, strides and instruction set, as bench/gemm measured it. */
#ifndef WEFT_GEMM_TABLE_H
#define WEFT_GEMM_TABLE_H

#include "isa.h"

/* BLIS where each side is at least this long, and the product m n k at least this large; 0: never. */
struct gemm_choice {
    const char *isa;
    int64_t m, n, k;
    double size;
};

static const struct gemm_choice gemm_choices[] = {
    {"avx512", 0, 0, 0, 0},
    {"avx2", 0, 0, 0, 0},
    {"base", 0, 0, 0, 0},
};

#endif
