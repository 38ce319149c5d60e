/* SPDX-License-Identifier: MIT */
/* Who computes a product, BLIS or our own kernels: by shape, strides and instruction set, as bench/gemm measured it. */
#ifndef WEFT_GEMM_TABLE_H
#define WEFT_GEMM_TABLE_H

#include "isa.h"

/* BLIS where each side is at least this long and A is stored by columns (a weight's gradient); 0: never.
 *
 * One Zen 5 core, GFLOP/s of processor time, own / BLIS. AVX-512 against skx: NT 256x512x2048 191 / 153, 2048x2048x512 223 / 193,
 * NN 1024x1024x1024 226 / 209, TN 2048x512x2048 220 / 203, 1024x1024x1024 218 / 212, 512x128x768 253 / 210: own everywhere.
 * AVX2 against zen3: NT 768x384x128 131 / 123, 2048x2048x512 125 / 117, NN 64x64x64 128 / 69, 1024x1024x1024 119 / 121,
 * TN 64x64x4096 124 / 96, 512x128x768 118 / 109, but TN 384x384x1024 112 / 121, 512x512x2048 105 / 118, 1024x1024x1024 112 / 120. */
struct gemm_choice {
    const char *isa;
    int64_t m, n, k;
};

static const struct gemm_choice gemm_choices[] = {
    {"avx512", 0, 0, 0},
    {"avx2", 384, 384, 512},
    {"base", 0, 0, 0},
};

#endif
