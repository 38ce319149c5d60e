/* SPDX-License-Identifier: MIT */
/* For ops of your own (docs/ops.md): maps over arrays, sums, matrix products, parallel ranges, and the kernels of the instruction set in
 * use. Weft's ops are made of the same functions.
 *
 *   wf_map_unary(wf_kernel->gelu, &x, &y, 0.3);                                        y = gelu(x), any strides
 *   status = wf_array_sum(&db, &dy, 1, true);                                          db += the sum of dy over its other dimensions
 *   status = wf_array_matmul(&x, &w, &y, &error, .bias = b);                           y = x w + b
 *   wf_parallel_ranges(rows, 16, 50.0 * (double)rows, normalise, &work);               normalise(&work, begin, end), on all threads
 *
 * Start the library first (wf_init, or a tape does it); before that everything runs on one thread with portable kernels.
 *
 * Bits: every function here gives the same bits with any number of threads. Work is cut into blocks that the shapes alone
 * determine, and each block's result does not depend on which thread computes it. An op keeps this rule if its blocks do. With
 * WF_INFER (wf_call.rows_alone) a row's bits must not depend on the other rows either. */
#ifndef WEFT_COMPUTE_H
#define WEFT_COMPUTE_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* --- maps over arrays -----------------------------------------------------------------------------------------------
 *
 * out[i] = f(in[0][i], in[1][i], ...) in parallel. Inputs are WF_REAL, of any strides, and broadcast to the shape of `out`, which is
 * contiguous and overlaps none of them, or is one of them. Dimensions that lie end to end in all operands are merged, so that contiguous
 * operands of one shape are one flat pass; f then runs along the innermost dimension, over at most 8,192 elements at a time. An input that
 * is not contiguous there is gathered piece by piece on the stack. Nothing happens if out->data is NULL (a temporary for which there was no
 * memory). `cost`: nanoseconds an element, about 0.1 for a sum, 0.3 for a gelu. */

/* For the kernels below: wf_map_unary(wf_kernel->exp, x, out, 0.2). These leave checks of the operands to the caller. */
typedef void wf_unary_kernel(int64_t n, const wf_real *x, wf_real *y);
typedef void wf_binary_kernel(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
typedef void wf_grad_kernel(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
WF_API void wf_map_unary(wf_unary_kernel *f, const wf_array *x, const wf_array *out, double cost);
WF_API void wf_map_binary(wf_binary_kernel *f, const wf_array *a, const wf_array *b, const wf_array *out, double cost);
WF_API void wf_map_grad(wf_grad_kernel *f, const wf_array *x, const wf_array *dy, const wf_array *out, double cost);
/* out = scale x + shift */
WF_API void wf_map_affine(double scale, double shift, const wf_array *x, const wf_array *out);

/* For 1 to WF_MAP_INPUTS inputs: f gets n contiguous elements of each and writes n elements of y, which may be in[k]. What it
 * gives for an element must not depend on n. WF_ERR_ARGUMENT: inputs out of range, a dtype that is not WF_REAL, or an out with gaps;
 * WF_ERR_SHAPE: an input does not broadcast to out; WF_ERR_MEMORY: out->data is NULL. */
enum { WF_MAP_INPUTS = 4 };
typedef void wf_map_kernel(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y);
WF_API wf_status wf_map(wf_map_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out,
                        double cost) WF_CHECKED;
/* The same for operands and an out of any dtypes (bools, ids), which f knows. */
typedef void wf_map_any_kernel(const void *ctx, int64_t n, const void *const in[], void *y);
WF_API wf_status wf_map_any(wf_map_any_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out,
                            double cost) WF_CHECKED;

/* --- sums over dimensions ------------------------------------------------------------------------------------------- */

/* dst (+)= scale times the sum of src over the dimensions where dst, aligned at the last, has size 1 or none: what a broadcast
 * operand's gradient is. WF_REAL, any strides; in parallel for every pattern, in blocks that the shape and the strides of src determine.
 * The error is that of a few dozen additions however many elements there are. They must not overlap. Without elements to sum the sum is 0.
 * WF_ERR_ARGUMENT: another dtype; WF_ERR_SHAPE: dst does not broadcast to src; WF_ERR_MEMORY: no memory for partial sums, dst is unchanged.
 */
WF_API wf_status wf_array_sum(const wf_array *dst, const wf_array *src, double scale, bool add) WF_CHECKED;

/* --- matrix products ------------------------------------------------------------------------------------------------ */

struct wf_matmul_options {
    double scale;        /* of the product; 0: 1 */
    bool add;            /* add to what out holds; otherwise it is only written */
    const wf_real *bias; /* [n], added to every row; NULL: none */
    bool rows_alone;     /* bits of row i of out depend on row i of a, b, n and k alone, never on m or i: wf_call.rows_alone */
};
/* out = scale a b + bias (+ out): a [..., m, k], b [..., k, n], out [..., m, n], all WF_REAL with any strides, so that transposed views
 * cost no copy. Batch dimensions of a and b broadcast to those of out. In parallel; from inside a body of wf_parallel serially, with the
 * same bits. out overlaps neither a nor b and shows no element twice. WF_ERR_ARGUMENT or WF_ERR_SHAPE: the operands do not fit;
 * WF_ERR_MEMORY: no memory for packing, out then holds anything; or data that are NULL, where nothing happens. */
WF_API wf_status wf_array_matmul_with(const wf_array *a, const wf_array *b, const wf_array *out, const struct wf_matmul_options *options,
                                      wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_array_matmul(a, b, out, error, ...) wf_array_matmul_with(a, b, out, &(struct wf_matmul_options){__VA_ARGS__}, error)
#endif

/* --- parallel ranges ------------------------------------------------------------------------------------------------ */

/* Cuts 0 .. n-1 into blocks of `grain` >= 1 elements, calls body(ctx, begin, end) once for each, in any order, on any thread, and returns
 * after the last. `grain` must be a function of shapes only; blocks of 10 to 50 microseconds balance well. Nothing happens for n <= 0.
 *
 * `cost`: nanoseconds that all blocks take together on one fast core, roughly. It decides only whether the work is divided. Below about
 * 2,500 the caller runs all blocks, since dividing costs more; with more threads than processors, below about 60,000. The caller also runs
 * them all within a body, within a parallel region of OpenMP, and while another thread of the program has the team.
 *
 * A body must not write where another block reads or writes, returns normally (no longjmp), and neither forks nor calls wf_set_threads or
 * wf_init. */
WF_API void wf_parallel_ranges(int64_t n, int64_t grain, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx);
/* The same for numbered blocks: calls body(ctx, block) once for each block = 0 .. blocks-1. */
WF_API void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx);
/* The number of the calling worker in the running wf_parallel, 0 .. wf_threads()-1; outside of one 0. Blocks that run at the same time have
 * different numbers, so that each worker can have its part of a buffer. Which worker runs a block varies from run to run. A sum over a
 * worker's blocks therefore varies in its bits: keep one partial sum per block. */
WF_API int wf_worker(void);

/* --- kernels --------------------------------------------------------------------------------------------------------
 *
 * Serial functions over contiguous rows, compiled for each instruction set; the table of the one in use is *wf_kernel:
 * wf_kernel->gelu(n, x, y). They take no lock and no memory: call them from bodies of wf_parallel, or through wf_map.
 *
 * n is a number of elements, 0 too; rows and d are a contiguous [rows, d] block. Outputs overlap no inputs unless a line says "may alias",
 * which allows the same address. No alignment is needed. What a kernel gives for an element (or a row, for kernels of rows) depends on that
 * element (row) alone, not on its place or on how much else the call holds. Members are only ever added at the end. */
struct wf_kernels {
    const char *isa;                            /* "avx512", "avx2" or "base" */
    const struct wf_internal_kernels *internal; /* for Weft's own files */

    /* y[i] = f(x[i]); y may alias x. gelu is the erf form, gelu_tanh GPT-2's approximation (Hendrycks and Gimpel 2016). */
    void (*exp)(int64_t n, const wf_real *x, wf_real *y);
    void (*log)(int64_t n, const wf_real *x, wf_real *y);
    void (*sqrt)(int64_t n, const wf_real *x, wf_real *y);
    void (*tanh)(int64_t n, const wf_real *x, wf_real *y);
    void (*sigmoid)(int64_t n, const wf_real *x, wf_real *y);
    void (*relu)(int64_t n, const wf_real *x, wf_real *y);
    void (*gelu)(int64_t n, const wf_real *x, wf_real *y);
    void (*gelu_tanh)(int64_t n, const wf_real *x, wf_real *y);
    void (*silu)(int64_t n, const wf_real *x, wf_real *y);
    /* dx[i] = dy[i] f'(x[i]); of relu at 0: 0. dx may alias x or dy. tanh and sigmoid take their result y instead of x. */
    void (*tanh_grad)(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx);
    void (*sigmoid_grad)(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx);
    void (*relu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*gelu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*gelu_tanh_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*silu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);

    /* c[i] = a[i * sa] op b[i * sb]; sa and sb are 1 or 0 (one number for all). c may alias a or b. */
    void (*add)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*sub)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*mul)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*div)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    /* y[i] = s x[i] + t; y may alias x.   y[i] += s x[i].   y[i] = v */
    void (*affine)(int64_t n, wf_real s, wf_real t, const wf_real *x, wf_real *y);
    void (*axpy)(int64_t n, wf_real s, const wf_real *x, wf_real *y);
    void (*fill)(int64_t n, wf_real v, wf_real *y);

    /* Reductions in an order of additions that n alone determines. sum, sum_squares and dot accumulate in double. */
    double (*sum)(int64_t n, const wf_real *x);
    double (*sum_squares)(int64_t n, const wf_real *x);
    double (*dot)(int64_t n, const wf_real *x, const wf_real *y);
    wf_real (*max)(int64_t n, const wf_real *x); /* n >= 1; NaN if one is NaN */
    /* y[j] (+)= sum over i of x[i * stride + j], i < rows, j < d; groups of 32 rows in wf_real, the groups in double */
    void (*sum_rows)(int64_t rows, int64_t d, const wf_real *x, int64_t stride, bool add, wf_real *y);
    /* Index of the first element that is not finite, or -1. */
    int64_t (*find_nonfinite)(int64_t n, const wf_real *x);

    /* Softmax over rows of d; a row of only -inf gives zeros. y may alias x.
     * Its gradient dx = y (dy - sum of dy y); dx may alias dy. */
    void (*softmax)(int64_t rows, int64_t d, const wf_real *x, wf_real *y);
    void (*softmax_grad)(int64_t rows, int64_t d, const wf_real *y, const wf_real *dy, wf_real *dx);
    /* Cross-entropy of rows of logits [rows, v] against targets. For a target == ignore: loss 0 and a gradient of zeros.
     * loss[i] (always plain) = logsumexp - logit[target]; smoothed[i] (may be NULL) = (1 - e) loss + e (logsumexp - mean logit) with
     * e = smoothing; dlogits (may be NULL, may alias logits) = scale (softmax - (1 - e) onehot - e / v). */
    void (*cross_entropy)(int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, int32_t ignore, wf_real smoothing,
                          wf_real scale, double *loss, double *smoothed, wf_real *dlogits);

    /* LayerNorm (Ba et al. 2016) of rows of d: y = (x - mean) rstd gain + bias, biased variance; gain and bias [d] may be NULL, mean and
     * rstd [rows] too. RMSNorm (Zhang and Sennrich 2019): y = x rstd gain.
     * Gradients: dx (may be NULL; with `add` added to); the rows' shares of dgain and dbias [d] are ADDED (may be NULL). */
    void (*layer_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *bias, wf_real eps, wf_real *y,
                       wf_real *mean, wf_real *rstd);
    void (*layer_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *mean, const wf_real *rstd,
                            const wf_real *dy, wf_real *dx, bool add, wf_real *dgain, wf_real *dbias);
    void (*rms_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, wf_real eps, wf_real *y, wf_real *rstd);
    void (*rms_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *rstd, const wf_real *dy,
                          wf_real *dx, bool add, wf_real *dgain);

    /* One row of dropout: element j is kept when its 16 random bits are >= threshold (= round(p 65536)), then multiplied by scale. The
     * same bits for forward and backward, from Philox: counter = (j / 8, low and high word of row, call), key = the low and
     * high word of mix(mix(seed + c) ^ step), mix splitmix64's finaliser, c = 0x9e3779b97f4a7c15. Element j takes bits 16 (j % 2) and up
     * of word j % 8 / 2. wf_call has seed, step, first_row and dropout_call. y may alias x. */
    void (*dropout)(int64_t d, uint64_t seed, uint64_t step, uint32_t call, uint64_t row, uint32_t threshold, wf_real scale,
                    const wf_real *x, wf_real *y);
};
WF_API extern const struct wf_kernels *wf_kernel; /* changes only in wf_init */

/* --- expert: products of pointers, and scratch memory --------------------------------------------------------------- */

/* The product of pointers and strides below wf_array_matmul: C = alpha A B + beta C + bias. Row i, column j of a matrix lies at
 * data[i * rs + j * cs]; any strides, 0 and negative included (not 0 for C). One dispatcher chooses BLIS or Weft's own kernels by shapes
 * and strides, never by the number of threads. */
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
    bool rows_alone;     /* as in wf_matmul_options; set by every product in WF_INFER */
};
/* In parallel; from inside a body serially. m, n or k of 0 are fine (k = 0: C = beta C + bias).
 * WF_ERR_MEMORY: no memory for packing; C then holds anything. There is no slower way that does without: it would have other bits. */
WF_API wf_status wf_gemm(const struct wf_gemm *g) WF_CHECKED;

/* Products that differ by constant steps (elements) between a, b and c, as one parallel loop over products: one for each index of a batch
 * with `dims` dimensions, the innermost first. */
enum { WF_GEMM_BATCH_DIMS = 4 };
struct wf_gemm_batch {
    int dims;
    int64_t size[WF_GEMM_BATCH_DIMS], a_step[WF_GEMM_BATCH_DIMS], b_step[WF_GEMM_BATCH_DIMS], c_step[WF_GEMM_BATCH_DIMS];
};
WF_API wf_status wf_gemm_batched(const struct wf_gemm *g, const struct wf_gemm_batch *batch) WF_CHECKED;

/* Scratch memory of the calling thread: at least `bytes`, 64-byte aligned. It stays the thread's, so that no step allocates, and holds
 * anything until the thread asks for the same slot again or resets a tape; ask in the body that uses it. NULL without memory, or for
 * another slot. The slots are independent; Weft's functions, products too, use other slots. All ops share these two: nothing lasts from one
 * call of an op to the next. */
enum { WF_SCRATCH_OP, WF_SCRATCH_OP_2, WF_SCRATCH_PUBLIC_SLOTS };
WF_API void *wf_scratch(int slot, size_t bytes);

WF_END_DECLS

#endif
