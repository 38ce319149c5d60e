/* SPDX-License-Identifier: MIT */
/* Functions from which a program can make a new op (docs/ops.md): maps over arrays, sums, matrix products, parallel ranges, and the
 * kernels of the instruction set in use. Weft's own ops use the same functions.
 *
 *   wf_map_unary(wf_kernel->gelu, &x, &y, 0.3);                                        y = gelu(x), any strides
 *   status = wf_array_sum(&db, &dy, 1, true);                                          db += the sum of dy over its other dimensions
 *   status = wf_array_matmul(&x, &w, &y, &error, .bias = b);                           y = x w + b
 *   wf_parallel_ranges(rows, 16, 50.0 * (double)rows, normalise, &work);               normalise(&work, begin, end), on all threads
 *
 * Start the library first: call wf_init, or create a tape, which calls it. Before that everything runs on one thread with portable
 * kernels.
 *
 * The rule of bits: every function of this header gives the same bits with any number of threads. Work is divided into blocks that the
 * shapes alone determine, and the result of a block does not depend on the thread that computes it. An op follows the rule if its own
 * blocks do so. In a pass of mode WF_INFER (weft/tape.h), in which wf_call.rows_alone is set, the bits of a row must not depend on the
 * other rows either. */
#ifndef WEFT_COMPUTE_H
#define WEFT_COMPUTE_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* --- maps over arrays -----------------------------------------------------------------------------------------------
 *
 * out[i] = f(in[0][i], in[1][i], ...), in parallel. Inputs are WF_REAL with any strides, and broadcast to the shape of `out`. `out` is
 * contiguous; it may be the same array as an input, but must not overlap the inputs otherwise. If out->data is NULL, as in a temporary that
 * could not be allocated, nothing happens.
 *
 * f runs along the innermost dimension, over at most 8,192 elements at a time. Dimensions that lie end to end in all operands are merged
 * first; contiguous operands of one shape thus become one flat dimension. An input that is not contiguous along the innermost dimension is
 * copied in small blocks to the stack.
 *
 * `cost` is an estimate of the time of f in nanoseconds per element, about 0.1 for an addition and 0.3 for a gelu; wf_parallel_ranges below
 * says what it decides. */

/* Maps for the kernels of struct wf_kernels below, for example wf_map_unary(wf_kernel->exp, x, out, 0.2). These functions do not check
 * the operands. */
typedef void wf_unary_kernel(int64_t n, const wf_real *x, wf_real *y);
typedef void wf_binary_kernel(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
typedef void wf_grad_kernel(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
WF_API void wf_map_unary(wf_unary_kernel *f, const wf_array *x, const wf_array *out, double cost);
WF_API void wf_map_binary(wf_binary_kernel *f, const wf_array *a, const wf_array *b, const wf_array *out, double cost);
WF_API void wf_map_grad(wf_grad_kernel *f, const wf_array *x, const wf_array *dy, const wf_array *out, double cost);
/* out = scale x + shift */
WF_API void wf_map_affine(double scale, double shift, const wf_array *x, const wf_array *out);

/* A map of 1 to WF_MAP_INPUTS inputs. f receives n contiguous elements of each input and writes n elements of y, which may be in[k]. The
 * value that f writes for an element must not depend on n. WF_ERR_ARGUMENT: `inputs` is out of range, a dtype is not WF_REAL, or out has
 * gaps. WF_ERR_SHAPE: an input does not broadcast to out. WF_ERR_MEMORY: out->data is NULL. */
enum { WF_MAP_INPUTS = 4 };
typedef void wf_map_kernel(const void *ctx, int64_t n, const wf_real *const in[], wf_real *y);
WF_API wf_status wf_map(wf_map_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out,
                        double cost) WF_CHECKED;
/* wf_map for inputs and an output of any dtypes, such as bools and ids; f gets bare pointers, so it must know the dtypes. */
typedef void wf_map_any_kernel(const void *ctx, int64_t n, const void *const in[], void *y);
WF_API wf_status wf_map_any(wf_map_any_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out,
                            double cost) WF_CHECKED;

/* --- sums over dimensions ------------------------------------------------------------------------------------------- */

/* dst = scale * sum; if `add`, dst += scale * sum. The shapes are aligned at the last dimension, and src is summed over each dimension that
 * has size 1 in dst or is absent there. This computes the gradient of an operand that was broadcast. Both arrays are WF_REAL with any
 * strides, and must not overlap. The function runs in parallel, in blocks that the shape and the strides of src determine. The rounding
 * error is as small as that of a few dozen additions, whatever the number of elements. The sum of no elements is 0. WF_ERR_ARGUMENT:
 * another dtype. WF_ERR_SHAPE: dst does not broadcast to src. WF_ERR_MEMORY: no memory for partial sums; dst is unchanged. */
WF_API wf_status wf_array_sum(const wf_array *dst, const wf_array *src, double scale, bool add) WF_CHECKED;

/* --- matrix products ------------------------------------------------------------------------------------------------ */

struct wf_matmul_options {
    double scale;        /* a factor of the product; 0 means 1 */
    bool add;            /* add the result to out; otherwise out is overwritten */
    const wf_real *bias; /* [n], added to every row; may be NULL */
    bool rows_alone;     /* true: the bits of row i of out depend on row i of a, on b, n and k, but not on m or i (wf_call.rows_alone) */
    enum wf_precision precision; /* the arithmetic of the product */
};
/* out = scale a b + bias; if `add`, out += scale a b + bias. a [..., m, k], b [..., k, n] and out [..., m, n] are WF_REAL with any strides,
 * so transposed views need not be copied. Batch dimensions of a and b broadcast to those of out. out must not overlap a or b, and no two
 * elements of out may have the same address. The product runs in parallel, or serially with the same bits if the caller is a body of
 * wf_parallel. In the library of floats b may be WF_BF16; the bits are those of a product with the same numbers as floats.
 *
 * WF_ERR_ARGUMENT or WF_ERR_SHAPE: the operands do not fit, or bf16 in the library of doubles. WF_ERR_MEMORY: there is no memory for
 * packing, and then the contents of out are undefined; or the data of an operand are NULL, and then nothing is written. */
WF_API wf_status wf_array_matmul_with(const wf_array *a, const wf_array *b, const wf_array *out, const struct wf_matmul_options *options,
                                      wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_array_matmul(a, b, out, error, ...) wf_array_matmul_with(a, b, out, &(struct wf_matmul_options){__VA_ARGS__}, error)
#endif

/* --- parallel ranges ------------------------------------------------------------------------------------------------ */

/* Divides 0 .. n-1 into blocks of `grain` >= 1 elements, calls body(ctx, begin, end) once for each block, in any order and on any thread,
 * and returns after the last call. `grain` must be a function of shapes only; blocks that take 10 to 50 microseconds spread the work
 * evenly. For n <= 0 nothing happens.
 *
 * `cost` is roughly the time in nanoseconds that all blocks take together on one fast core. It decides only whether the library's threads,
 * the team, share the work. If `cost` is below about 2,500 (60,000 with more threads than processors), the calling thread runs all blocks,
 * because sharing would cost more than it saves. The calling thread also runs all blocks if it is inside a body or a parallel region of
 * OpenMP, or if another thread of the program uses the team.
 *
 * A body must not write where another block reads or writes. It must return normally (no longjmp), and must not fork or call
 * wf_set_threads or wf_init. */
WF_API void wf_parallel_ranges(int64_t n, int64_t grain, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx);
/* wf_parallel_ranges for numbered blocks: calls body(ctx, block) once for each block = 0 .. blocks-1. */
WF_API void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx);
/* The number of the calling worker in the running wf_parallel, 0 .. wf_threads()-1; 0 outside of wf_parallel. Blocks that run at the same
 * time run on workers with different numbers, so each worker can use its own section of a buffer. The worker that runs a block varies from
 * run to run. Therefore a sum that a worker accumulates over its blocks has other bits in another run: keep one partial sum per block
 * instead. */
WF_API int wf_worker(void);

/* --- kernels --------------------------------------------------------------------------------------------------------
 *
 * Serial functions over contiguous rows, compiled once for each instruction set. *wf_kernel is the table of the instruction set in use:
 * wf_kernel->gelu(n, x, y). Kernels neither lock nor allocate, so bodies of wf_parallel and wf_map may call them.
 *
 * n is a number of elements and may be 0; `rows` and `d` describe a contiguous block [rows, d]. Outputs must not overlap inputs, except
 * that an output may have the address of an input where a comment says "may alias". No alignment is needed. The result of an element (of a
 * row, for kernels of rows) depends on that element (row) alone, not on its position or on the number of elements in the call. New members
 * are only added at the end. */
struct wf_kernels {
    const char *isa;                            /* "avx512", "avx2" or "base" */
    const struct wf_internal_kernels *internal; /* for Weft's own files */

    /* y[i] = f(x[i]); y may alias x. gelu is the form with erf; gelu_tanh is GPT-2's approximation (Hendrycks and Gimpel 2016). */
    void (*exp)(int64_t n, const wf_real *x, wf_real *y);
    void (*log)(int64_t n, const wf_real *x, wf_real *y);
    void (*sqrt)(int64_t n, const wf_real *x, wf_real *y);
    void (*tanh)(int64_t n, const wf_real *x, wf_real *y);
    void (*sigmoid)(int64_t n, const wf_real *x, wf_real *y);
    void (*relu)(int64_t n, const wf_real *x, wf_real *y);
    void (*gelu)(int64_t n, const wf_real *x, wf_real *y);
    void (*gelu_tanh)(int64_t n, const wf_real *x, wf_real *y);
    void (*silu)(int64_t n, const wf_real *x, wf_real *y);
    /* dx[i] = dy[i] f'(x[i]); the derivative of relu at 0 is 0. dx may alias x or dy. tanh_grad and sigmoid_grad take the result y
     * instead of x. */
    void (*tanh_grad)(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx);
    void (*sigmoid_grad)(int64_t n, const wf_real *y, const wf_real *dy, wf_real *dx);
    void (*relu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*gelu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*gelu_tanh_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);
    void (*silu_grad)(int64_t n, const wf_real *x, const wf_real *dy, wf_real *dx);

    /* c[i] = a[i * sa] op b[i * sb]. The steps sa and sb are 1, or 0 for an operand that is a single number. c may alias a or b. */
    void (*add)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*sub)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*mul)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    void (*div)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c);
    /* affine: y[i] = s x[i] + t, and y may alias x. axpy: y[i] += s x[i]. fill: y[i] = v. */
    void (*affine)(int64_t n, wf_real s, wf_real t, const wf_real *x, wf_real *y);
    void (*axpy)(int64_t n, wf_real s, const wf_real *x, wf_real *y);
    void (*fill)(int64_t n, wf_real v, wf_real *y);

    /* Reductions. The sizes (n, or rows and d) alone determine the order of the additions. sum, sum_squares and dot accumulate in double.
     */
    double (*sum)(int64_t n, const wf_real *x);
    double (*sum_squares)(int64_t n, const wf_real *x);
    double (*dot)(int64_t n, const wf_real *x, const wf_real *y);
    wf_real (*max)(int64_t n, const wf_real *x); /* n >= 1; NaN if an element is NaN */
    /* y[j] = sum over i of x[i * stride + j], for i < rows and j < d; if `add`, the sum is added to y[j]. Sums of 32 rows are computed
     * in wf_real; these sums are added in double. */
    void (*sum_rows)(int64_t rows, int64_t d, const wf_real *x, int64_t stride, bool add, wf_real *y);
    /* The index of the first element that is not finite, or -1. */
    int64_t (*find_nonfinite)(int64_t n, const wf_real *x);

    /* softmax: the softmax of each row of d elements; a row of only -inf gives zeros. y may alias x. softmax_grad: dx = y (dy - sum of
     * dy y); dx may alias dy. */
    void (*softmax)(int64_t rows, int64_t d, const wf_real *x, wf_real *y);
    void (*softmax_grad)(int64_t rows, int64_t d, const wf_real *y, const wf_real *dy, wf_real *dx);
    /* The cross-entropy of rows of logits [rows, v] against targets. If target == ignore, the losses are 0 and the gradient is zeros.
     * loss[i] = logsumexp - logit[target], always without smoothing. smoothed[i] = (1 - e) loss + e (logsumexp - mean logit) with e =
     * smoothing; `smoothed` may be NULL. dlogits = scale (softmax - (1 - e) onehot - e / v); it may be NULL or alias logits. */
    void (*cross_entropy)(int64_t rows, int64_t v, const wf_real *logits, const int32_t *target, int32_t ignore, wf_real smoothing,
                          wf_real scale, double *loss, double *smoothed, wf_real *dlogits);

    /* LayerNorm (Ba et al. 2016) of rows of d elements: y = (x - mean) rstd gain + bias, where rstd = 1 / sqrt(variance + eps) with the
     * biased variance. RMSNorm (Zhang and Sennrich 2019): y = x rstd gain, where rstd = 1 / sqrt(mean(x^2) + eps). gain and bias [d] may be
     * NULL, and so may mean and rstd [rows]. The gradient of x is written to dx, or added to it if `add`; dx may be NULL. The gradients of
     * gain and bias, summed over the rows, are always ADDED to dgain and dbias [d], which may be NULL. */
    void (*layer_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *bias, wf_real eps, wf_real *y,
                       wf_real *mean, wf_real *rstd);
    void (*layer_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *mean, const wf_real *rstd,
                            const wf_real *dy, wf_real *dx, bool add, wf_real *dgain, wf_real *dbias);
    void (*rms_norm)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, wf_real eps, wf_real *y, wf_real *rstd);
    void (*rms_norm_grad)(int64_t rows, int64_t d, const wf_real *x, const wf_real *gain, const wf_real *rstd, const wf_real *dy,
                          wf_real *dx, bool add, wf_real *dgain);

    /* One row of dropout. Element j has 16 random bits, which form a number. If the number is >= threshold (= round(p 65536)), the element
     * is multiplied by `scale`; otherwise it becomes 0. Forward and backward use the same bits.
     *
     * The bits come from Philox (weft/random.h). The counter is (j / 8, low word of row, high word of row, call); the key is the low and
     * the high word of mix(mix(seed + c) ^ step), where mix is splitmix64's finaliser and c = 0x9e3779b97f4a7c15. Element j takes the 16
     * bits of word j % 8 / 2 that begin at bit 16 (j % 2). seed, step, first_row and dropout_call are members of wf_call. y may alias x. */
    void (*dropout)(int64_t d, uint64_t seed, uint64_t step, uint32_t call, uint64_t row, uint32_t threshold, wf_real scale,
                    const wf_real *x, wf_real *y);
};
WF_API extern const struct wf_kernels *wf_kernel; /* only wf_init changes it */

/* --- expert: products of pointers, and scratch memory --------------------------------------------------------------- */

/* The product that wf_array_matmul calls, on pointers and strides: C = alpha A B + beta C + bias. Element (i, j) of a matrix lies at
 * data[i * rs + j * cs]. Strides may be negative, and those of A and B also 0. With one instruction set and one value of WEFT_GEMM
 * (weft/runtime.h), shapes, strides and rows_alone decide whether BLIS or Weft's own kernels compute a product; the number of threads does
 * not. */
struct wf_gemm {
    int64_t m, n, k;
    wf_real alpha;
    wf_real beta;     /* if 0, C is written but not read, so that a NaN in C does not matter */
    const wf_real *a; /* [m, k] */
    int64_t a_rs, a_cs;
    const wf_real *b; /* [k, n] */
    int64_t b_rs, b_cs;
    wf_real *c; /* [m, n]; overlaps neither a nor b */
    int64_t c_rs, c_cs;
    const wf_real *bias; /* [n], added to every row after alpha A B + beta C; may be NULL */
    bool rows_alone;     /* as in wf_matmul_options; every product of a pass of mode WF_INFER sets it */
    enum wf_precision precision;
    wf_dtype b_stored; /* WF_BF16, in the library of floats alone: b is the address of uint16_t numbers in bf16, and its strides count
                          these; the bits are those of a product with the same numbers as floats. Any other value: wf_real */
};
/* Runs in parallel, or serially if the caller is a body of wf_parallel. m, n and k may be 0; for k = 0, C = beta C + bias. WF_ERR_MEMORY:
 * no memory for packing; the contents of C are then undefined. wf_gemm does not fall back on a slower method without packing, because the
 * result of such a method would have other bits. WF_ERR_ARGUMENT: bf16 in the library of doubles, as precision or as b_stored. */
WF_API wf_status wf_gemm(const struct wf_gemm *g) WF_CHECKED;

/* A batch of products that have the same shape and strides. The batch has `dims` dimensions, the innermost first. From one index to the
 * next along dimension d, the pointers a, b and c advance by a_step[d], b_step[d] and c_step[d] elements. Small products run in parallel
 * with each other; large ones run one after the other, each on all threads. */
enum { WF_GEMM_BATCH_DIMS = 4 };
struct wf_gemm_batch {
    int dims;
    int64_t size[WF_GEMM_BATCH_DIMS];
    int64_t a_step[WF_GEMM_BATCH_DIMS];
    int64_t b_step[WF_GEMM_BATCH_DIMS];
    int64_t c_step[WF_GEMM_BATCH_DIMS];
};
WF_API wf_status wf_gemm_batched(const struct wf_gemm *g, const struct wf_gemm_batch *batch) WF_CHECKED;

/* Scratch memory of the calling thread: at least `bytes` bytes, 64-byte aligned, with undefined contents. The thread keeps the memory,
 * so that later calls do not allocate. The block is valid until the thread asks for the same slot again or resets a tape; ask for it in
 * the body that uses it. Returns NULL if there is no memory or no such slot. The two slots are independent, and Weft's own functions,
 * including products, use other slots. All ops share the two slots, so nothing in them lasts from one call of an op to the next. */
enum { WF_SCRATCH_OP, WF_SCRATCH_OP_2, WF_SCRATCH_PUBLIC_SLOTS };
WF_API void *wf_scratch(int slot, size_t bytes);

WF_END_DECLS

#endif
