/* SPDX-License-Identifier: MIT */
/* Matrix products: C = alpha A B + beta C over any strides. One dispatcher chooses BLIS or own micro-kernels by a compiled-in
 * table of shapes and strides, never by the number of threads. */
#ifndef WEFT_INTERNAL_GEMM_H
#define WEFT_INTERNAL_GEMM_H

#include <weft/error.h>

/* Row i, column j of a matrix lies at data[i * rs + j * cs]; any strides, 0 and negative included (not 0 for C). */
struct wf_gemm {
    int64_t m, n, k;
    wf_real alpha, beta; /* beta 0: C is written, never read (NaN in it does not matter) */
    const wf_real *a;    /* [m, k] */
    int64_t a_rs, a_cs;
    const wf_real *b; /* [k, n] */
    int64_t b_rs, b_cs;
    wf_real *c; /* [m, n]; overlaps neither a nor b */
    int64_t c_rs, c_cs;
    const wf_real *bias; /* [n], added to every row after alpha A B + beta C; may be NULL */
    bool rows_alone;     /* the row rule: bits of row i of C depend on row i of A, B, n and k alone, never on m or i.
                            Set by every product in no-gradient mode. */
};

/* In parallel; from inside a parallel body serially. m, n or k of 0 are fine (k = 0: C = beta C + bias).
 * WF_ERR_MEMORY: no memory for packing; C then holds anything. There is no slower way that does without: it would have other bits. */
wf_status wf_gemm(const struct wf_gemm *g) WF_CHECKED;

/* Products that differ by constant steps (elements) between a, b and c, as one parallel loop over products: one for each index of a batch
 * with `dims` dimensions, the innermost first. */
enum { WF_GEMM_BATCH_DIMS = 4 };
struct wf_gemm_batch {
    int dims;
    int64_t size[WF_GEMM_BATCH_DIMS], a_step[WF_GEMM_BATCH_DIMS], b_step[WF_GEMM_BATCH_DIMS], c_step[WF_GEMM_BATCH_DIMS];
};
wf_status wf_gemm_batched(const struct wf_gemm *g, const struct wf_gemm_batch *batch) WF_CHECKED;

#endif
