/* SPDX-License-Identifier: MIT */
/* The ops. An op takes tensors of one tape, and parameters, as operands and returns a tensor of that tape.
 *
 * Shapes broadcast by NumPy's rule where this is stated. Real operands have the dtype WF_REAL, ids have WF_I32. Every failure (shapes,
 * dtypes, ids out of range, operands of two tapes) is the tape's error, and the op returns poison. No op works in place.
 *
 * Gradients of gradients: see .create_graph of wf_gradients (weft/tape.h), which lists the ops that have none. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include <weft/packed.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

/* --- convolution ------------------------------------------------------------------------------------------------------ */
/* One axis of a convolution: the distance of successive positions of the kernel (0: 1), the zeros before and after x, and the distance of
 * successive elements of the kernel (0: 1). */
struct wf_conv_axis {
    int64_t stride, before, after, dilation;
};
struct wf_conv_options {
    int64_t stride, padding, dilation; /* of all axes, with the padding on both sides; 0 means a stride or dilation of 1 */
    int64_t groups;                    /* divides channels and filters: filter f reads only the channels of its own group; 0 means 1 */
    /* [axes of x]: numbers for each axis instead of those for all, for example {{.before = K - 1}} for a causal convolution. NULL: none.
     * Together with one of stride, padding and dilation it is WF_ERR_ARGUMENT. */
    const struct wf_conv_axis *axes;
};
/* Convolution (cross-correlation, as torch.nn.functional.conv1d and conv2d): x [B,C,T], weight [F,C/groups,K], bias [F] or NULL ->
 * [B,F,T'], or x [B,C,H,W], weight [F,C/groups,Kh,Kw] -> [B,F,H',W'].
 *
 *   y[b,f,i,j] = bias[f] + sum over c,r,q of weight[f,c,r,q] x[b,c, i stride + r dilation - before, j stride + q dilation - before]
 *
 * where x is 0 outside of its bounds, and T' = floor((T + before + after - dilation (K-1) - 1) / stride) + 1. The products are in wf_real,
 * also in a pass with products in bf16. WF_ERR_SHAPE: the shapes do not fit, or the kernel reaches over more than x with its padding. */
WF_API wf_tensor *wf_conv_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const struct wf_conv_options *options);
#ifndef __cplusplus
#define wf_conv(x, weight, bias, ...) wf_conv_with(x, weight, bias, &(struct wf_conv_options){__VA_ARGS__})
#endif
struct wf_conv_transpose_options {
    int64_t stride, padding, dilation, groups; /* those of the convolution whose transpose this is */
    int64_t output_padding;                    /* elements that the result has more at its end, below the stride or the dilation */
    const struct wf_conv_axis *axes;           /* as above; output padding is subtracted from `after`, which may be negative */
};
/* Transposed convolution (torch.nn.functional.conv_transpose1d and conv_transpose2d), the gradient of wf_conv with respect to its x: x
 * [B,C,T], weight [C,F/groups,K], bias [F] or NULL -> [B,F,T'], T' = (T-1) stride - before - after + dilation (K-1) + 1, or with two axes.
 */
WF_API wf_tensor *wf_conv_transpose_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, const struct wf_conv_transpose_options *options);
#ifndef __cplusplus
#define wf_conv_transpose(x, weight, bias, ...) wf_conv_transpose_with(x, weight, bias, &(struct wf_conv_transpose_options){__VA_ARGS__})
#endif

/* --- pooling and resizing: x [B,C,T] or [B,C,H,W] --------------------------------------------------------------------- */
/* One axis of pooling: the size of a window, the distance of successive windows (0: the size), and the padding, less than the size. */
struct wf_pool_axis {
    int64_t size, stride, before, after;
};
struct wf_pool_options {
    int64_t stride;    /* of all axes; 0: the size, so that windows do not overlap */
    int64_t padding;   /* on both sides of all axes */
    bool skip_padding; /* wf_avg_pool: a mean over the elements inside of x; otherwise the padding counts as zeros, as by PyTorch's default
                        */
    const struct wf_pool_axis *axes; /* numbers for each axis, instead of those for all and of `size`, which must then be 0; NULL: none */
};
/* The largest element of each window, or the mean (torch.nn.functional.max_pool2d, avg_pool2d and those of 1 dimension, with ceil_mode =
 * False). For wf_max_pool no element of the padding is the largest. A NaN is larger than all numbers. Of equal elements the first gets the
 * gradient. */
WF_API wf_tensor *wf_max_pool_with(wf_tensor *x, int64_t size, const struct wf_pool_options *options);
WF_API wf_tensor *wf_avg_pool_with(wf_tensor *x, int64_t size, const struct wf_pool_options *options);
#ifndef __cplusplus
#define wf_max_pool(x, size, ...) wf_max_pool_with(x, size, &(struct wf_pool_options){__VA_ARGS__})
#define wf_avg_pool(x, size, ...) wf_avg_pool_with(x, size, &(struct wf_pool_options){__VA_ARGS__})
#endif
/* Means over windows that divide each axis into `rows` and `cols` parts, which may overlap by one element
 * (torch.nn.functional.adaptive_avg_pool2d): part i of n elements begins at floor(i n / rows) and ends before ceil((i + 1) n / rows). For
 * [B,C,T] give 1 row, and `cols` parts. */
WF_API wf_tensor *wf_adaptive_avg_pool(wf_tensor *x, int64_t rows, int64_t cols);
enum wf_resize {
    WF_RESIZE_NEAREST,       /* element floor(i n / size) */
    WF_RESIZE_LINEAR,        /* between the elements beside (i + 1/2) n / size - 1/2: bilinear for pictures */
    WF_RESIZE_LINEAR_CORNERS /* between the elements beside i (n - 1) / (size - 1): the first and the last elements stay */
};
/* x with `rows` rows and `cols` columns, as torch.nn.functional.interpolate: WF_RESIZE_NEAREST is `nearest`, WF_RESIZE_LINEAR is `linear`
 * or `bilinear` with align_corners = False, and WF_RESIZE_LINEAR_CORNERS with True. For [B,C,T] give 1 row, and `cols` steps. */
WF_API wf_tensor *wf_resize(wf_tensor *x, int64_t rows, int64_t cols, enum wf_resize how);

/* --- arithmetic: a and b broadcast ------------------------------------------------------------------------------------ */
WF_API wf_tensor *wf_add(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_subtract(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_mul(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_div(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_affine(wf_tensor *x, double scale, double shift); /* scale x + shift */
WF_API wf_tensor *wf_scale(wf_tensor *x, double scale);
WF_API wf_tensor *wf_neg(wf_tensor *x);
/* wf_maximum gives the greater of two elements, wf_minimum the smaller; NaN if either is NaN. If the two are equal, each gets half of the
 * gradient. */
WF_API wf_tensor *wf_maximum(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_minimum(wf_tensor *a, wf_tensor *b);
/* ln(e^a + e^b) without overflow: the sum of two numbers that are kept as logarithms. If both are -inf, the result is -inf with zero
 * gradient. */
WF_API wf_tensor *wf_logaddexp(wf_tensor *a, wf_tensor *b);
/* a^b with the special values of C's pow: a^0 = 1, also for a = 0, and a negative a gives NaN unless b is a whole number. The gradient of a
 * is b a^(b-1), and 0 where b = 0. The gradient of b is a^b ln a: NaN for a negative a, and 0 where a = 0 and b >= 0. */
WF_API wf_tensor *wf_pow(wf_tensor *a, wf_tensor *b);
/* Arithmetic with one number: x + c, c - x, x / c, c / x, x^c. For c x there is wf_scale; for x - c add -c. */
WF_API wf_tensor *wf_add_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_constant_minus(double c, wf_tensor *x);
WF_API wf_tensor *wf_div_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_constant_over(double c, wf_tensor *x);
WF_API wf_tensor *wf_pow_constant(wf_tensor *x, double c); /* c is any real number; x^0.5 and x^-0.5 are computed by sqrt */

/* --- element-wise functions, any shape ---------------------------------------------------------------------------- */
WF_API wf_tensor *wf_exp(wf_tensor *x);
WF_API wf_tensor *wf_log(wf_tensor *x);
WF_API wf_tensor *wf_sqrt(wf_tensor *x);
WF_API wf_tensor *wf_tanh(wf_tensor *x);
WF_API wf_tensor *wf_sigmoid(wf_tensor *x);
WF_API wf_tensor *wf_relu(wf_tensor *x);
WF_API wf_tensor *wf_gelu(wf_tensor *x);      /* x Phi(x), through erf (Hendrycks and Gimpel 2016) */
WF_API wf_tensor *wf_gelu_tanh(wf_tensor *x); /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in GPT-2 */
WF_API wf_tensor *wf_silu(wf_tensor *x);      /* x sigmoid(x) */
/* silu(gate) * up (Shazeer 2020) for two tensors of one shape. The result has the same bits as wf_mul(wf_silu(gate), up), but silu(gate)
 * takes no memory. */
WF_API wf_tensor *wf_swiglu(wf_tensor *gate, wf_tensor *up);
/* gelu_tanh(gate) * up (Shazeer 2020), as wf_swiglu. */
WF_API wf_tensor *wf_geglu_tanh(wf_tensor *gate, wf_tensor *up);
WF_API wf_tensor *wf_square(wf_tensor *x);
WF_API wf_tensor *wf_abs(wf_tensor *x); /* the gradient at 0 is 0 */
/* min(max(x, low), high). With low = -INFINITY or high = INFINITY there is no bound on that side. A NaN stays NaN. The gradient is 1 where
 * low <= x <= high, else 0. WF_ERR_ARGUMENT unless low <= high. */
WF_API wf_tensor *wf_clamp(wf_tensor *x, double low, double high);
/* ln(1 + e^(beta x)) / beta, with beta > 0, usually 1. It does not overflow. PyTorch returns x itself for large x; this op computes the
 * formula for every x. */
WF_API wf_tensor *wf_softplus(wf_tensor *x, double beta);
WF_API wf_tensor *wf_leaky_relu(wf_tensor *x, double slope); /* x where x > 0, else slope x (Maas et al. 2013) */
WF_API wf_tensor *wf_elu(wf_tensor *x, double alpha);        /* x where x > 0, else alpha (e^x - 1) (Clevert et al. 2015) */
/* c tanh(x / c) for the bound c, 1e-30 .. 1e30 (Gemma 2, 2024): nearly x near 0, and always between -c and c. */
WF_API wf_tensor *wf_softcap(wf_tensor *x, double bound);

WF_API wf_tensor *wf_rsqrt(wf_tensor *x);       /* 1 / sqrt(x): infinite at 0, NaN below */
WF_API wf_tensor *wf_sin(wf_tensor *x);         /* x in radians; NaN for infinite x */
WF_API wf_tensor *wf_cos(wf_tensor *x);         /* as wf_sin */
WF_API wf_tensor *wf_erf(wf_tensor *x);         /* the error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x */
WF_API wf_tensor *wf_log_sigmoid(wf_tensor *x); /* log sigmoid(x) = -ln(1 + e^-x), without overflow */
WF_API wf_tensor *wf_hard_swish(wf_tensor *x);  /* x min(max(x + 3, 0), 6) / 6 (Howard et al. 2019) */
WF_API wf_tensor *wf_mish(wf_tensor *x);        /* x tanh(ln(1 + e^x)) (Misra 2020) */
/* Steps: their gradient is 0 everywhere. wf_sign gives -1, 0 or 1, and 0 for a NaN. wf_floor gives the greatest whole number that is at
 * most x. wf_round gives the nearest whole number, and of two equally near ones the even one. */
WF_API wf_tensor *wf_sign(wf_tensor *x);
WF_API wf_tensor *wf_floor(wf_tensor *x);
WF_API wf_tensor *wf_round(wf_tensor *x);
/* Bools: where x is NaN, and where x is neither NaN nor infinite. */
WF_API wf_tensor *wf_isnan(wf_tensor *x);
WF_API wf_tensor *wf_isfinite(wf_tensor *x);

/* --- comparisons and choices: the operands broadcast ------------------------------------------------------------------- */
/* a == b, a != b, a < b, a <= b, a > b, a >= b as bools. Both operands have the same dtype: reals, ids, or for wf_eq and wf_ne also bools.
 * If an element is NaN, a != b is true there, and the other comparisons are false. The results have no gradient. */
WF_API wf_tensor *wf_eq(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_ne(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_lt(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_le(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_gt(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_ge(wf_tensor *a, wf_tensor *b);
/* The same with one number on the right, for example wf_ne_constant(ids, padding). Reals are compared with c rounded to wf_real, ids with c
 * itself. */
WF_API wf_tensor *wf_eq_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_ne_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_lt_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_le_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_gt_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_ge_constant(wf_tensor *x, double c);
/* Logical operations on bools. */
WF_API wf_tensor *wf_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_not(wf_tensor *a);
/* condition ? a : b element by element. `condition` holds bools; a and b have the same dtype. An element's gradient goes to the operand
 * that was chosen; the other operand gets 0 there, even if its value is NaN or infinite. */
WF_API wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b);
/* x, but `value` where mask (bools) is true. The gradient of x is 0 there. */
WF_API wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value);
/* Bools as 0 and 1, or ids as reals; the result has no gradient. A real tensor is returned as it is. */
WF_API wf_tensor *wf_to_real(wf_tensor *x);

/* --- views: nothing is copied, except where a reshape must copy --------------------------------------------------------
 *
 * Views of one tensor may overlap (windows by wf_slice that begin at 0, 1, 2, ...). They read the same memory, and an element's gradient is
 * the sum over all views that show it. A single view that shows an element several times and needs a gradient is made only by wf_expand, or
 * by an op with .view (weft/op.h). wf_apply_view fails if it would make such a view; the message names the op and the tensor. */
WF_API wf_tensor *wf_reshape_to(wf_tensor *x, const wf_shape *shape); /* one size may be -1: it follows from the others */
#ifndef __cplusplus
#define WF_SHAPE(...) (&(wf_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define wf_reshape(x, ...) wf_reshape_to(x, WF_SHAPE(__VA_ARGS__)) /* wf_reshape(x, B, T, -1) */
#endif
/* x broadcast to a larger shape by NumPy's rule: dimensions of size 1, and new leading dimensions, are repeated; -1 keeps a size. Nothing
 * is copied, because repeated dimensions have stride 0. The gradient of x is the sum over the repetitions. If x needs a gradient in a pass
 * with gradients, wf_slice and the other ops of this section copy the expanded tensor before they make a view of it. */
WF_API wf_tensor *wf_expand_to(wf_tensor *x, const wf_shape *shape);
#ifndef __cplusplus
#define wf_expand(x, ...) wf_expand_to(x, WF_SHAPE(__VA_ARGS__)) /* queries [T, D]: wf_expand(queries, B, T, D) */
#endif
WF_API wf_tensor *wf_transpose(wf_tensor *x, int dim0, int dim1); /* negative dims count from the end */
/* The dimensions of x in another order: dimension d of the result is dimension order[d] of x. Each dimension appears once. */
WF_API wf_tensor *wf_permute_to(wf_tensor *x, const wf_shape *order);
#ifndef __cplusplus
#define wf_permute(x, ...) wf_permute_to(x, WF_SHAPE(__VA_ARGS__)) /* [B, T, H, E] -> [B, H, T, E]: wf_permute(x, 0, 2, 1, 3) */
#endif
/* The part of x at `index` of dimension `dim`. The result lacks this dimension. A negative index counts from the end. */
WF_API wf_tensor *wf_select(wf_tensor *x, int dim, int64_t index);
WF_API wf_tensor *wf_unsqueeze(wf_tensor *x, int dim);           /* adds a dimension of size 1, which is dimension `dim` of the result */
WF_API wf_tensor *wf_squeeze(wf_tensor *x, int dim);             /* removes dimension `dim`, whose size must be 1 */
WF_API wf_tensor *wf_flatten(wf_tensor *x, int first, int last); /* dimensions `first` to `last` become one */
/* The part of x with the indices `start` .. `start` + `length` - 1 of dimension `dim`; a negative `start` counts from the end. */
WF_API wf_tensor *wf_slice(wf_tensor *x, int dim, int64_t start, int64_t length);
/* Sets parts[0 .. n-1] to slices of equal length along dimension `dim`. n must divide the size of that dimension. */
WF_API void wf_split(wf_tensor *x, int dim, int n, wf_tensor *parts[]);
WF_API wf_tensor *wf_contiguous(wf_tensor *x); /* x itself if it is row-major, else a copy */
/* Joins n tensors along dimension `dim`. Their other dimensions must agree. */
WF_API wf_tensor *wf_concat(wf_tensor *const parts[], int n, int dim);
/* Joins n tensors of one shape along a new dimension of size n, which is dimension `dim` of the result. */
WF_API wf_tensor *wf_stack(wf_tensor *const parts[], int n, int dim);

/* --- arrangement: copies; x holds reals, ids or bools ------------------------------------------------------------------- */
WF_API wf_tensor *wf_flip(wf_tensor *x, int dim); /* dimension `dim` in reverse order */
/* Dimension `dim` moved by `shift` places; what leaves it at one end comes back at the other. A negative shift moves to lower indices. */
WF_API wf_tensor *wf_roll(wf_tensor *x, int64_t shift, int dim);
/* x with `before` and `after` more elements at the ends of dimension `dim`, all equal to `value`. The numbers are not negative, and may
 * exceed the size of the dimension. wf_pad_dims does this for n dimensions at once, each of which occurs once in `sizes`. */
struct wf_pad_size {
    int dim; /* a negative number counts from the end */
    int64_t before, after;
};
WF_API wf_tensor *wf_pad(wf_tensor *x, int dim, int64_t before, int64_t after, double value);
WF_API wf_tensor *wf_pad_dims(wf_tensor *x, const struct wf_pad_size sizes[], int n, double value);
/* The lower and the upper triangle of matrices x [..., n, m], and 0 elsewhere. Element [i, j] stays if j - i <= diagonal (wf_tril), or if j
 * - i >= diagonal (wf_triu). */
WF_API wf_tensor *wf_tril(wf_tensor *x, int64_t diagonal);
WF_API wf_tensor *wf_triu(wf_tensor *x, int64_t diagonal);
/* x several times along each dimension, one after the other: dimension d of the result is times[d] times as long. Further leading numbers
 * add dimensions. x [2, 3], repeated 4, 1, 2 times -> [4, 2, 6]. */
WF_API wf_tensor *wf_repeat_to(wf_tensor *x, const wf_shape *times);
#ifndef __cplusplus
#define wf_repeat(x, ...) wf_repeat_to(x, WF_SHAPE(__VA_ARGS__))
#endif
/* The windows of `size` elements along dimension `dim`, each `step` elements behind the one before, as a view: dimension `dim` becomes the
 * number of windows, (n - size) / step + 1, and a last dimension of `size` is added. x [B, n, C], dim 1 -> [B, windows, C, size]. Elements
 * behind the last whole window are left out. The gradient of an element is the sum over the windows that show it. */
WF_API wf_tensor *wf_unfold(wf_tensor *x, int dim, int64_t size, int64_t step);
/* The sum of windows at their places, with the shapes of wf_unfold exchanged: x [B, windows, C, size], dim 1 -> [B, length, C]. Elements in
 * no window are 0. WF_ERR_SHAPE if the windows reach beyond `length`. */
WF_API wf_tensor *wf_fold(wf_tensor *x, int dim, int64_t length, int64_t step);
/* For each id in 0 .. classes-1 a row with 1 at this index and 0 elsewhere: ids [...] -> reals [..., classes], without a gradient. */
WF_API wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes);

/* --- constants of a tape -------------------------------------------------------------------------------------------- */
/* start, start + step, start + 2 step, ... below `end` (above it if step < 0), as reals or as ids: ceil((end - start) / step) elements, as
 * in PyTorch, so that rounding may add one at `end`. WF_ERR_ARGUMENT if the step is 0 or leads away from `end`. */
WF_API wf_tensor *wf_arange(wf_tape *tape, double start, double end, double step);
WF_API wf_tensor *wf_arange_ids(wf_tape *tape, int32_t start, int32_t end, int32_t step);
WF_API wf_tensor *wf_eye(wf_tape *tape, int64_t rows, int64_t columns); /* 1 where row and column are equal, else 0 */

/* --- sums ---------------------------------------------------------------------------------------------------------- */
WF_API wf_tensor *wf_sum(wf_tensor *x);  /* the sum of all elements -> [] */
WF_API wf_tensor *wf_mean(wf_tensor *x); /* the mean of all elements -> []; 0 if there are none */
/* The sum and the mean over dimension `dim`. With `keep` this dimension stays, with size 1; otherwise it is removed. */
WF_API wf_tensor *wf_sum_dim(wf_tensor *x, int dim, bool keep);
WF_API wf_tensor *wf_mean_dim(wf_tensor *x, int dim, bool keep);

/* --- moments, norms and products ----------------------------------------------------------------------------------- */
/* The variance over dimension `dim`, or over all elements -> []: the sum of (x - mean)^2, divided by n - correction for n elements. The
 * correction is 0 or 1 (Bessel's). The result is NaN if n - correction is 0. `keep` is as in wf_sum_dim. */
WF_API wf_tensor *wf_var_dim(wf_tensor *x, int dim, bool keep, int correction);
WF_API wf_tensor *wf_var(wf_tensor *x, int correction);
/* The standard deviation, the root of the variance. Where it is 0, the gradient is 0. */
WF_API wf_tensor *wf_std_dim(wf_tensor *x, int dim, bool keep, int correction);
WF_API wf_tensor *wf_std(wf_tensor *x, int correction);
/* The p-norm over dimension `dim`, or over all elements -> []: (sum |x|^p)^(1/p) for p > 0, and the greatest |x| for p = INFINITY. The norm
 * of no elements is 0; for p = INFINITY it is WF_ERR_SHAPE. Where the norm is 0, the gradient is 0; the gradient of that
 * gradient (.create_graph) is NaN there for p = 2. For p = INFINITY elements with the greatest magnitude share the gradient equally. */
WF_API wf_tensor *wf_norm_dim(wf_tensor *x, double p, int dim, bool keep);
WF_API wf_tensor *wf_norm(wf_tensor *x, double p);
/* The product over dimension `dim`, or over all elements -> [], computed in double; 1 for no elements. The gradient of an
 * element is that of the result times the product of the other elements, also where elements are 0. */
WF_API wf_tensor *wf_prod_dim(wf_tensor *x, int dim, bool keep);
WF_API wf_tensor *wf_prod(wf_tensor *x);
WF_API wf_tensor *wf_cumprod(wf_tensor *x, int dim); /* y_t = x_1 x_2 ... x_t along dimension `dim`, as wf_prod */

/* --- greatest and smallest ----------------------------------------------------------------------------------------- */
/* The greatest or the smallest element along dimension `dim`. With `keep` this dimension stays, with size 1; otherwise it is removed. If
 * elements are equal, the first of them is taken. If there is a NaN, the first NaN is taken. The gradient goes to the element that was
 * taken. If `ids` is not NULL, *ids is set to the indices of these elements in the dimension (WF_I32, in the shape of the result).
 * WF_ERR_SHAPE if the dimension has size 0. */
WF_API wf_tensor *wf_max_dim(wf_tensor *x, int dim, bool keep, wf_tensor **ids);
WF_API wf_tensor *wf_min_dim(wf_tensor *x, int dim, bool keep, wf_tensor **ids);
WF_API wf_tensor *wf_max(wf_tensor *x); /* the greatest of all elements -> [] */
WF_API wf_tensor *wf_min(wf_tensor *x);
WF_API wf_tensor *wf_argmax(wf_tensor *x, int dim, bool keep); /* only the ids that wf_max_dim writes to *ids */
WF_API wf_tensor *wf_argmin(wf_tensor *x, int dim, bool keep);
/* The k greatest elements along dimension `dim`, whose size becomes k, in descending order: NaN comes first, and equal elements stay in
 * order of index. Gradients go back to these elements. If k is the size of the dimension, the op sorts. For the k smallest elements of x,
 * call wf_top_k with wf_neg(x) and negate the result. k must be from 1 to the size of the dimension. `ids` is as in wf_max_dim. */
WF_API wf_tensor *wf_top_k(wf_tensor *x, int64_t k, int dim, wf_tensor **ids);

/* x sorted along dimension `dim`, from the smallest to the greatest, or with `descending` from the greatest to the smallest. NaN counts as
 * greater than all numbers, and equal elements stay in order of index. The gradient goes back to where an element was. If `ids` is not
 * NULL, *ids is set to the indices in x of the elements of the result (WF_I32, in its shape). */
WF_API wf_tensor *wf_sort(wf_tensor *x, int dim, bool descending, wf_tensor **ids);
WF_API wf_tensor *wf_argsort(wf_tensor *x, int dim, bool descending); /* only the ids that wf_sort writes to *ids */

/* --- products ------------------------------------------------------------------------------------------------------ */
/* a [..., m, k], b [..., k, n] -> [..., m, n]; the leading dimensions broadcast. Views such as transposes are not copied. */
WF_API wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b);
/* x weight^T + bias: x [..., in], weight [out, in], bias [out] or NULL -> [..., out]. */
WF_API wf_tensor *wf_linear(wf_tensor *x, wf_tensor *weight, wf_tensor *bias);

/* --- embedding ----------------------------------------------------------------------------------------------------- */
/* For each id, the row of `weight` with this number: weight [V, D], ids [...] in 0 .. V-1 -> [..., D]. */
WF_API wf_tensor *wf_embedding(wf_tensor *weight, wf_tensor *ids);

/* --- indexing ----------------------------------------------------------------------------------------------------------
 *
 * Ids are int32; the error for an id out of range says which id. If an id occurs several times, its values are added up in the order of
 * these occurrences, so the bits do not depend on the number of threads. Negative dims count from the end. */
/* Slices of x along dimension `dim`: ids [n], each from 0 to the size of the dimension - 1. For dim = 1: x [A, V, B] -> [A, n, B],
 * y[a][i][b] = x[a][ids[i]][b]. */
WF_API wf_tensor *wf_index_select(wf_tensor *x, int dim, wf_tensor *ids);
/* A copy y of x, to which slices of `source` are added. `source` has the shape of x, but size n along dimension `dim`. For dim = 1:
 * y[a][ids[i]][b] += source[a][i][b]. */
WF_API wf_tensor *wf_index_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source);
/* Elements of x along dimension `dim`, as in torch.gather. `ids` has as many dimensions as x, and in the dimensions other than `dim` at
 * most the sizes of x. The result has the shape of the ids. For dim = 1: y[i][j][k] = x[i][ids[i][j][k]][k]. */
WF_API wf_tensor *wf_gather(wf_tensor *x, int dim, wf_tensor *ids);
/* A copy y of x, to which the elements of `source` are added; `source` has the shape of the ids. For dim = 1: y[i][ids[i][j][k]][k] +=
 * source[i][j][k]. */
WF_API wf_tensor *wf_scatter_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source);

/* --- packed rows (weft/packed.h) ------------------------------------------------------------------------------------ */
/* Packed rows x [N, ...] -> y [n, L, ...] for n sequences, of which the longest has L rows. y[i][t] is row t of sequence i, or `fill` after
 * the sequence's last row. x holds reals, ids or bools. The offsets are copied. */
WF_API wf_tensor *wf_pad_rows(wf_tensor *x, struct wf_packed packed, double fill);
/* The inverse of wf_pad_rows: x [n, L, ...] -> [N, ...]. L is at least the number of rows of the longest sequence. Rows of x after a
 * sequence's last row are ignored. */
WF_API wf_tensor *wf_pack_rows(wf_tensor *x, struct wf_packed packed);
/* The mean of each sequence's rows: x [N, ...] -> [n, ...]. It is 0 for an empty sequence. */
WF_API wf_tensor *wf_mean_packed(wf_tensor *x, struct wf_packed packed);

/* --- over a dimension; negative dims count from the end ------------------------------------------------------------ */
/* log sum e^x over dimension `dim`. With `keep` this dimension stays, with size 1; otherwise it is removed. Nothing overflows. If all x are
 * -inf, or if the dimension has size 0, the result is -inf with zero gradient. */
WF_API wf_tensor *wf_logsumexp(wf_tensor *x, int dim, bool keep);
/* x - logsumexp(x) over dimension `dim`, the logarithm of softmax. If all x are -inf, the result is -inf with zero gradient. */
WF_API wf_tensor *wf_log_softmax(wf_tensor *x, int dim);
/* y_t = x_1 + ... + x_t along dimension `dim`, added up in this order and in double. */
WF_API wf_tensor *wf_cumsum(wf_tensor *x, int dim);
/* h_t = a_t h_(t-1) + b_t along dimension `dim`, element by element: the recurrence of linear attention and of state-space models (Martin
 * and Cundy 2018; Gu and Dao 2023). a, b and the result have one shape. `initial` is h_0, in that shape without dimension `dim`; NULL means
 * 0. The steps along this dimension are serial, so the bits do not depend on the number of threads. The other dimensions are computed in
 * parallel; the op is fastest if `dim` is not the last one. */
WF_API wf_tensor *wf_scan(wf_tensor *a, wf_tensor *b, wf_tensor *initial, int dim);

/* --- over the last dimension --------------------------------------------------------------------------------------- */
WF_API wf_tensor *wf_softmax(wf_tensor *x); /* a row in which all elements are -inf gives zeros */
/* (x - mean) / sqrt(var + eps) * weight + bias (Ba et al. 2016). weight and bias are [D]; either may be NULL. */
WF_API wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps);
/* x / sqrt(mean(x^2) + eps) * weight (Zhang and Sennrich 2019). weight is [D] or NULL. */
WF_API wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *weight, double eps);
/* The same with 1 + weight, as in Gemma. weight is [D]. */
WF_API wf_tensor *wf_rms_norm_from_one(wf_tensor *x, wf_tensor *weight, double eps);
/* Rows scaled to length 1: x / max(|x|, eps), as torch.nn.functional.normalize computes it; there eps is 1e-12 by default. */
WF_API wf_tensor *wf_l2_normalize(wf_tensor *x, double eps);
/* The cosine of the angle between rows: the sum of wf_l2_normalize(a, eps) * wf_l2_normalize(b, eps) over the last dimension. a and b [...,
 * D] broadcast, and the result is [...]. For all pairs of rows in two batches [N, D], use wf_matmul(wf_l2_normalize(a, eps),
 * wf_transpose(wf_l2_normalize(b, eps), 0, 1)). */
WF_API wf_tensor *wf_cosine_similarity(wf_tensor *a, wf_tensor *b, double eps);

/* --- batch normalisation ------------------------------------------------------------------------------------------- */
/* Each channel of x is normalised over all other dimensions (Ioffe and Szegedy 2015): x [N,C], [B,C,T] or [B,C,H,W] -> the same shape,
 *
 *   y = (x - mean) / sqrt(variance + eps) * weight + bias, with a mean, a variance, a weight and a bias for each channel.
 *
 * weight and bias are [C]; either may be NULL. wf_batch_norm takes the statistics of the batch, the variance divided by the number n of
 * values of a channel. *mean and *variance (each may be NULL) become the mean [C], and the variance [C] divided by n - 1, as running
 * statistics take it; gradients flow through both. In each mode a row depends on the others. n = 1 is WF_ERR_SHAPE, as in PyTorch; with
 * n = 0 both are 0. */
WF_API wf_tensor *wf_batch_norm(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, double eps, wf_tensor **mean, wf_tensor **variance);
/* The same with given statistics [C], which have no gradient: WF_ERR_ARGUMENT if one needs a gradient. */
WF_API wf_tensor *wf_batch_norm_running(wf_tensor *x, wf_tensor *mean, wf_tensor *variance, wf_tensor *weight, wf_tensor *bias, double eps);

/* --- groups of channels -------------------------------------------------------------------------------------------- */
/* x [N,C], [B,C,T] or [B,C,H,W] -> the same shape. The channels of each picture are cut into `groups` groups, whose number divides C; all
 * elements of a group are normalised together (Wu and He 2018), and each channel has its weight and bias:
 *
 *   y = (x - mean) / sqrt(variance + eps) * weight + bias, with a mean and a variance for each group of each picture.
 *
 * weight and bias are [C]; either may be NULL. With groups = C this is instance normalisation. */
WF_API wf_tensor *wf_group_norm(wf_tensor *x, int64_t groups, wf_tensor *weight, wf_tensor *bias, double eps);

/* --- dropout ------------------------------------------------------------------------------------------------------- */
/* In WF_TRAIN each element becomes 0 with probability p (rounded to steps of 1/65536), and is otherwise divided by 1 - p. In other modes
 * the result is x itself. The mask depends on seed, step and pass (struct wf_tape_options), on the number of the call in this pass, on the
 * row's index in the global batch, and on the element's offset in the row. A row consists of the elements that differ only in the index of
 * the last dimension. p is in 0 .. 1; with p = 1 all elements become 0, also NaN, and so do the gradients. */
WF_API wf_tensor *wf_dropout(wf_tensor *x, double p);
/* Dropout with one mask for several elements: the mask has this shape, which broadcasts to x. For x [N, C, H, W] the shape [N, C, 1, 1]
 * drops whole channels, as nn.Dropout2d, and [N, 1, 1, 1] whole items; for x [B, T, D] the shape [B, T, 1] drops whole rows, and [B, 1, D]
 * whole columns. p and the modes are as in wf_dropout. */
WF_API wf_tensor *wf_dropout_shared(wf_tensor *x, double p, const wf_shape *shape);
/* residual + dropout(x, p), and dropout(relu(x), p). Each result has the same bits as its two ops, but is computed in one loop, without a
 * tensor between the ops. If x and residual have different shapes, they broadcast as in wf_add, and the two ops run one after the other. */
WF_API wf_tensor *wf_dropout_add(wf_tensor *x, wf_tensor *residual, double p);
WF_API wf_tensor *wf_relu_dropout(wf_tensor *x, double p);

/* --- noise --------------------------------------------------------------------------------------------------------- */
/* Random numbers as constants of the tape, in every mode. For example, wf_add(mean, wf_mul(deviation, wf_normal(tape, &shape, 0, 1))) is
 * the sample of a VAE.
 *
 * A random number depends on what a dropout mask depends on (seed, step, pass, number of the call, row in the global batch, offset in the
 * row). So it depends neither on the number of threads nor, with .exact and .first_row, on how a batch is divided, and the second call of a
 * checkpoint's function draws the same numbers as the first. Each pass in WF_TRAIN draws new numbers, unless .exact is set; passes in other
 * modes draw the same numbers again unless .seed or .step differ. Both precisions draw the same numbers, up to rounding. */
WF_API wf_tensor *wf_normal(wf_tape *tape, const wf_shape *shape, double mean, double deviation); /* Box and Muller 1958 */
WF_API wf_tensor *wf_uniform(wf_tape *tape, const wf_shape *shape, double low, double high);      /* [low, high), in 2^24 steps */
WF_API wf_tensor *wf_bernoulli(wf_tape *tape, const wf_shape *shape, double p);                   /* 1 with probability p, else 0 */

/* Ids drawn from each row of weights [..., n] with probabilities in proportion to the weights -> WF_I32 [..., draws]. A row's weights are
 * finite and at least 0; they need not add up to 1. With `replacement` each draw is made from all elements, else no element is drawn twice,
 * and the ids are in the order of the draws. WF_ERR_ARGUMENT if a weight is negative, infinite or NaN, or if a row has fewer weights above
 * 0 than it needs (`draws` without replacement, else 1). The random numbers depend on what those above depend on. */
WF_API wf_tensor *wf_multinomial(wf_tensor *weights, int64_t draws, bool replacement);

/* --- attention ----------------------------------------------------------------------------------------------------- */
/* softmax(scale q k^T, masked) v for each head. The product is computed in tiles: no [T, S] tensor is stored unless .weights asks for it,
 * and fully masked tiles are skipped (Dao et al. 2022).
 *
 *   q [B, T, H*E], k [B, S, G*E], v [B, S, G*F] -> [B, T, H*F]
 *
 * H query heads share G = kv_heads heads of keys and values (grouped-query attention, Ainslie et al. 2023). E is the width of a head's
 * queries and keys, F the width of its values.
 *
 * A query may attend to a key if `causal`, `key_lengths`, `mask` and `window` all allow it. With `causal`, query t may attend to key s only
 * if s <= t + S - T, so the last query sees every key, also if a cache makes S greater than T. In `mask` true means "may attend". A row
 * that may attend to no key gives zeros and has zero gradient. Masked keys never contribute, even if they are NaN.
 *
 * `window` = W > 0 is a sliding window (Beltagy et al. 2020). Query t has the position p = t + S - T among the keys, or, if `starts` is
 * given, p = t + starts[b] in row b of the batch. It attends to the keys p-W+1 .. p if causal, else to the keys s with |p - s| < W. For
 * each head, the time is that of T W scores and the memory is O(T), in the backward too. A window that excludes no key changes no bit of
 * the result.
 *
 * Packed rows (weft/packed.h): q [N, H*E] and k, v [M, ...] hold sequences end to end. Sequence i of q attends to sequence i of k. */
struct wf_attention_options {
    int heads;    /* H; 0 means 1 */
    int kv_heads; /* G, which divides H; 0 means H */
    double scale; /* 0 means 1 / sqrt(E) */
    bool causal;
    const int32_t *key_lengths; /* [B]: row b has only the keys s < key_lengths[b]; copied */
    /* [B], 0 .. S, for caches whose rows have different lengths: `causal` allows s <= t + starts[b] in row b. NULL means S - T in every
     * row. Needs `causal` or `window`; not with packed rows. Copied. */
    const int32_t *starts;
    /* Bools that broadcast to [B, H, T, S]. For n packed sequences they broadcast to [n, H, L, K], where element [i, h, t, s] is for query
     * t and key s of sequence i. L and K are at least the numbers of rows of the longest sequences of q and of k. */
    wf_tensor *mask;
    struct wf_packed packed;   /* the sequences of q, and also those of k and v unless k_packed is given; copied */
    struct wf_packed k_packed; /* the sequences of k and v, as many as in `packed` */
    double dropout;            /* the probability of dropout on the weights, in WF_TRAIN */
    /* If not NULL, *weights is set to the weights [B, H, T, S] before dropout, without a gradient. Not with packed rows. */
    wf_tensor **weights;
    int64_t window; /* W; 0 means no window */
    double softcap; /* c > 0: scores become c tanh(score / c) before masks (Gemma 2, 2024); 0 means that scores stay */
    /* Reals that broadcast as `mask` does. They are added to the scores after `softcap` and before masks. The bias gets a gradient if it
     * needs one. An element of -inf masks its key for its query. */
    wf_tensor *bias;
};
WF_API wf_tensor *wf_attention_with(wf_tensor *q, wf_tensor *k, wf_tensor *v, const struct wf_attention_options *options);
#ifndef __cplusplus
#define wf_attention(q, k, v, ...) wf_attention_with(q, k, v, &(struct wf_attention_options){__VA_ARGS__})
#endif

/* --- LSTM and GRU -------------------------------------------------------------------------------------------------- */
/* A recurrent layer over whole sequences, in one direction: x [B,T,in] -> y [B,T,H], which holds the state h after each step. Weights,
 * biases and the order of the gates are PyTorch's: weight_ih [G*H,in] and weight_hh [G*H,H], bias_ih and bias_hh [G*H], each of which may
 * be NULL. G is 4 for an LSTM (Hochreiter and Schmidhuber 1997), with blocks of H rows for i, f, g and o:
 *
 *   i, f, o = sigmoid(...), g = tanh(...) of weight_ih x + bias_ih + weight_hh h + bias_hh;   c' = f c + i g,   h' = o tanh(c')
 *
 * and 3 for a GRU (Cho et al. 2014), with blocks for r, z and n:
 *
 *   r, z = sigmoid(...) likewise;   n = tanh(W_in x + b_in + r (W_hn h + b_hn));   h' = (1 - z) n + z h
 *
 * One product computes weight_ih x for all steps; then the steps run in their order, each with one product with weight_hh, which is
 * computed in wf_real also if the pass computes products in bf16. Packed rows (weft/packed.h): x [N,in] holds sequences end to end, y is
 * [N,H], and B is the number of sequences. A sequence may be empty; its last state is its initial one. */
struct wf_recurrent_options {
    bool reverse;            /* the steps run from the last to the first. Packed sequences begin at their own ends */
    struct wf_packed packed; /* copied */
    wf_tensor *h, *c;        /* the initial states [B,H]; NULL: zeros. c is for the LSTM */
    /* If not NULL, set to the states [B,H] after the last step (in reverse, after the first row of x). last_c is for the LSTM. */
    wf_tensor **last_h, **last_c;
};
WF_API wf_tensor *wf_lstm_with(wf_tensor *x, wf_tensor *weight_ih, wf_tensor *weight_hh, wf_tensor *bias_ih, wf_tensor *bias_hh,
                               const struct wf_recurrent_options *options);
WF_API wf_tensor *wf_gru_with(wf_tensor *x, wf_tensor *weight_ih, wf_tensor *weight_hh, wf_tensor *bias_ih, wf_tensor *bias_hh,
                              const struct wf_recurrent_options *options);
#ifndef __cplusplus
#define wf_lstm(x, weight_ih, weight_hh, bias_ih, bias_hh, ...)                                                                            \
    wf_lstm_with(x, weight_ih, weight_hh, bias_ih, bias_hh, &(struct wf_recurrent_options){__VA_ARGS__})
#define wf_gru(x, weight_ih, weight_hh, bias_ih, bias_hh, ...)                                                                             \
    wf_gru_with(x, weight_ih, weight_hh, bias_ih, bias_hh, &(struct wf_recurrent_options){__VA_ARGS__})
#endif

/* --- selective state-space layers ---------------------------------------------------------------------------------- */
/* The scan of a selective state-space layer (Mamba: Gu and Dao 2023): E channels with N states each, over all steps in their order.
 *
 *   h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t        y_t = sum over the states of C_t h_t, plus d x_t
 *
 * x [B,T,E], dt [B,T,E], a [E,N], whose elements are negative in a model, b [B,T,N], c [B,T,N] -> y [B,T,E]. Nothing of size [B,T,E,N] is
 * ever in memory: a backward keeps the states of every 32nd step and computes those between them again. All operands get gradients. In
 * WF_INFER a row has the same bits alone, with others, and in any division of its steps into calls. */
struct wf_selective_scan_options {
    wf_tensor *d;     /* [E]; NULL: zeros */
    wf_tensor *state; /* the states [B,E,N] before the first step; NULL: zeros */
    wf_tensor **last; /* if not NULL, set to the states [B,E,N] after the last step */
    bool softplus;    /* ln(1 + e^dt) takes the place of dt. This needs no pass over memory of its own */
};
WF_API wf_tensor *wf_selective_scan_with(wf_tensor *x, wf_tensor *dt, wf_tensor *a, wf_tensor *b, wf_tensor *c,
                                         const struct wf_selective_scan_options *options);
#ifndef __cplusplus
#define wf_selective_scan(x, dt, a, b, c, ...) wf_selective_scan_with(x, dt, a, b, c, &(struct wf_selective_scan_options){__VA_ARGS__})
#endif

/* --- rotary positions ---------------------------------------------------------------------------------------------- */
/* In each head, pair i of elements (a, b) of a row at position p is rotated by the angle p f_i (Su et al. 2021):
 *
 *   (a cos - b sin, b cos + a sin),   f_i = base^(-2i / width), i < width / 2
 *
 * So the positions of a query and a key change their product only through the distance of the positions. Angles are computed in double:
 * sines and cosines are right to about the last bit of wf_real, at positions of 100,000 too. The bits of the sine and the cosine for a
 * position do not depend on the rest of the call. */
enum wf_rope_scaling {
    WF_ROPE_UNSCALED,
    WF_ROPE_LINEAR, /* f_i / factor, which interpolates positions (Chen et al. 2023) */
    /* The base becomes base factor^(width / (width - 2)), so that the lowest frequency is divided by factor, and the highest stays. */
    WF_ROPE_NTK,
    /* As in Llama 3.1. In the original context pair i makes n = original_context f_i / (2 pi) turns. The frequency stays f_i for n above
     * high_frequency, and becomes f_i / factor for n below low_frequency. Between these bounds it becomes s f_i + (1 - s) f_i / factor,
     * with s = (n - low_frequency) / (high_frequency - low_frequency). */
    WF_ROPE_LLAMA3
};
struct wf_rotary {
    int64_t width; /* how many elements of a head are rotated, beginning with the first; even; the others are copied. 0 means all */
    /* Pairs are (2i, 2i + 1), as in GPT-J and the paper; if false, pairs are (i, i + width / 2), as in Llama and GPT-NeoX. */
    bool interleaved;
    double base; /* 0 means 10000 */
    enum wf_rope_scaling scaling;
    double factor;           /* the factor of the scaling, > 0 */
    double low_frequency;    /* for WF_ROPE_LLAMA3 */
    double high_frequency;   /* for WF_ROPE_LLAMA3 */
    double original_context; /* for WF_ROPE_LLAMA3 */
    /* One of these two members may give the frequencies f_i [width / 2] in place of base and scaling. The array must stay valid while this
     * struct is in use: for wf_rope, until it returns. The tensor may be a buffer of a module. It must not need a gradient, because
     * frequencies get none. */
    const double *frequencies;
    wf_tensor *frequency_tensor;
};
/* x [B,T,H*E] -> [B,T,H*E], or x [N,H*E] for one sequence or for packed ones. Row t of a sequence is at position start + t, unless `starts`
 * or `positions` say otherwise. */
struct wf_rope_options {
    int heads; /* H; 0 means 1 */
    struct wf_rotary rotary;
    int64_t start; /* the position of a sequence's first row, -2^31 .. 2^31 */
    /* [B]: row t of sequence b is at position starts[b] + t, for caches whose rows have different lengths; copied. */
    const int32_t *starts;
    struct wf_packed packed; /* the sequences of x [N,H*E]; copied */
    /* WF_I32 [B,T], or [T] for all B, or [N] for x [N,H*E]: the position of each row. Every value is allowed. Not together with start,
     * starts or packed. */
    wf_tensor *positions;
};
WF_API wf_tensor *wf_rope_with(wf_tensor *x, const struct wf_rope_options *options);
#ifndef __cplusplus
#define wf_rope(x, ...) wf_rope_with(x, &(struct wf_rope_options){__VA_ARGS__})
#endif

/* --- losses of elements -------------------------------------------------------------------------------------------- */
/* How the losses of elements (in cross-entropy: of rows) are reduced. The result is [] except for WF_REDUCE_NONE. If there are no losses,
 * the mean is 0. */
enum wf_reduction {
    WF_REDUCE_MEAN,
    WF_REDUCE_SUM,
    WF_REDUCE_NONE,      /* no reduction: the tensor of all losses */
    WF_REDUCE_BATCH_MEAN /* the sum, divided by the size of the first dimension; not for cross-entropy */
};
/* (x - target)^2. In this section both operands of a loss must have the same shape (use wf_expand on a smaller one), and both get
 * gradients. */
WF_API wf_tensor *wf_mse(wf_tensor *x, wf_tensor *target, enum wf_reduction reduction);
WF_API wf_tensor *wf_l1(wf_tensor *x, wf_tensor *target, enum wf_reduction reduction); /* |x - target|; its gradient at 0 is 0 */
/* With d = x - target: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2), for delta > 0 (Huber 1964). PyTorch's smooth_l1_loss with
 * beta is this loss with delta = beta, divided by beta. */
WF_API wf_tensor *wf_huber(wf_tensor *x, wf_tensor *target, double delta, enum wf_reduction reduction);
/* Binary cross-entropy of the probabilities sigmoid(x) with targets t in 0 .. 1: -w t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)). It is
 * computed without overflow and without terms that cancel. If the factor t or 1 - t of a term is 0, the term is 0, even if its logarithm is
 * -inf. A target out of range is an error. */
struct wf_bce_options {
    enum wf_reduction reduction;
    wf_tensor *positive_weight; /* w, which broadcasts to x: how many times a positive target counts; NULL means 1 */
};
WF_API wf_tensor *wf_bce_with_logits_with(wf_tensor *logits, wf_tensor *targets, const struct wf_bce_options *options);
/* The Kullback-Leibler divergence KL(p || q) of elements, p (log p - log q), from log q and p, or with .log_target from log q and log p.
 * The divergence is 0 where p = 0. For distributions take WF_REDUCE_SUM or WF_REDUCE_BATCH_MEAN, because WF_REDUCE_MEAN also divides by the
 * number of classes. */
struct wf_kl_options {
    enum wf_reduction reduction;
    bool log_target;
};
WF_API wf_tensor *wf_kl_div_with(wf_tensor *log_q, wf_tensor *target, const struct wf_kl_options *options);
/* KL(N(m, e^s) || N(0, 1)) of elements, (m^2 + e^s - 1 - s) / 2, from means m and logarithms s of variances (Kingma and Welling 2014).
 * WF_REDUCE_BATCH_MEAN adds the elements up over the latent dimensions. */
WF_API wf_tensor *wf_kl_normal(wf_tensor *mean, wf_tensor *log_variance, enum wf_reduction reduction);
#ifndef __cplusplus
#define wf_bce_with_logits(logits, targets, ...) wf_bce_with_logits_with(logits, targets, &(struct wf_bce_options){__VA_ARGS__})
#define wf_kl_div(log_q, target, ...) wf_kl_div_with(log_q, target, &(struct wf_kl_options){__VA_ARGS__})
#endif

/* --- losses -------------------------------------------------------------------------------------------------------- */
/* By default the mean cross-entropy, in nats, over all targets that are not ignored -> []. If there are none, the mean is 0 with zero
 * gradients. With label smoothing e the target distribution is (1 - e) one-hot + e / V. */
struct wf_cross_entropy_options {
    bool has_ignore; /* targets equal to `ignore` are ignored */
    int32_t ignore;
    double label_smoothing;
    /* The number by which the mean divides the sum of losses. 0 means the number of targets in this call that are not ignored, or with
     * class_weights the sum of their weights. With micro-batches give this number for all of them together, so that the accumulated
     * gradients equal those of the undivided batch. */
    double normalizer;
    wf_tensor **plain; /* if not NULL, *plain is set to the loss without smoothing, a constant in the result's shape */
    /* The mean, the sum, or (WF_REDUCE_NONE) the losses of all rows in the shape of the targets, which the caller can weight, as in policy
     * gradients. An ignored target's loss is 0. */
    enum wf_reduction reduction;
    /* [V], without a gradient: a target t counts w_t times, and the mean divides by the sum of the w_t. With smoothing, the share of class
     * j in the target distribution counts w_j times. NULL means 1. */
    wf_tensor *class_weights;
    /* c > 0, 1e-30 .. 1e30: the loss is that of the logits c tanh(logit / c) (wf_softcap). 0: the logits stay. */
    double softcap;
};
/* The cross-entropy of logits [..., V] with targets [...] in 0 .. V-1. */
WF_API wf_tensor *wf_cross_entropy_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_options *options);
/* The same with logits = x weight^T + bias, where x is [..., D], weight [V, D], and bias [V] or NULL. The logits of all rows are never
 * stored at once. */
WF_API wf_tensor *wf_linear_cross_entropy_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, wf_tensor *targets,
                                               const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_cross_entropy(logits, targets, ...) wf_cross_entropy_with(logits, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#define wf_linear_cross_entropy(x, weight, bias, targets, ...)                                                                             \
    wf_linear_cross_entropy_with(x, weight, bias, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

/* The cross-entropy of logits [..., V] with distributions: targets [..., V] are the probabilities of the classes, for example those of a
 * teacher or of mixed pictures. The loss of a row is -sum_j w_j t_j log softmax(logits)_j, where w are the class weights. It is reduced
 * over rows: WF_REDUCE_MEAN divides by the number of rows, also with class weights, WF_REDUCE_BATCH_MEAN by the size of the first
 * dimension. The targets may have a gradient, and need not add up to 1. */
struct wf_cross_entropy_soft_options {
    enum wf_reduction reduction;
    double label_smoothing;   /* e: the target becomes (1 - e) t + e / V */
    wf_tensor *class_weights; /* [V]; NULL means 1 */
};
WF_API wf_tensor *wf_cross_entropy_soft_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_soft_options *options);
/* The triplet margin loss of rows [..., D], max(0, d(a, p) - d(a, n) + margin) for anchor a, positive p and negative n (Schroff et al.
 * 2015), with the distance d(x, y) = |x - y + eps|_p. The shapes broadcast. It is reduced over rows. */
struct wf_triplet_options {
    enum wf_reduction reduction;
    double margin; /* 0 means 1 */
    double p;      /* the p of the norm; 0 means 2 */
    double eps;    /* 0 means 1e-6 */
    bool swap;     /* d(p, n) takes the place of d(a, n) where it is smaller (Balntas et al. 2016) */
};
WF_API wf_tensor *wf_triplet_margin_with(wf_tensor *anchor, wf_tensor *positive, wf_tensor *negative,
                                         const struct wf_triplet_options *options);
/* InfoNCE (van den Oord et al. 2018): the cross-entropy of query i with key i as its class, among all keys and negatives. The logits are
 * cosines divided by the temperature. queries and keys [N, D]. It is reduced over queries. */
struct wf_info_nce_options {
    enum wf_reduction reduction;
    double temperature;   /* 0 means 0.1 */
    wf_tensor *negatives; /* [M, D]: further keys that belong to no query; NULL: none */
    bool symmetric;       /* the mean of this loss and that with queries and keys exchanged, as in CLIP; not with negatives */
};
WF_API wf_tensor *wf_info_nce_with(wf_tensor *queries, wf_tensor *keys, const struct wf_info_nce_options *options);
#ifndef __cplusplus
#define wf_cross_entropy_soft(logits, targets, ...)                                                                                        \
    wf_cross_entropy_soft_with(logits, targets, &(struct wf_cross_entropy_soft_options){__VA_ARGS__})
#define wf_triplet_margin(anchor, positive, negative, ...)                                                                                 \
    wf_triplet_margin_with(anchor, positive, negative, &(struct wf_triplet_options){__VA_ARGS__})
#define wf_info_nce(queries, keys, ...) wf_info_nce_with(queries, keys, &(struct wf_info_nce_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
