/* SPDX-License-Identifier: MIT */
/* The ops. Each takes tensors of one tape (parameters may stand anywhere) and returns a tensor of that tape.
 *
 * Shapes broadcast by NumPy's rule where stated. Real operands are of dtype WF_REAL, ids WF_I32. Every failure
 * (shapes, dtypes, ids out of range, two tapes) is the tape's error and gives poison. There are no in-place ops.
 *
 * There is no convolution: its windows are views, and its weights those of a linear map. Of x [B,T,C] and a kernel of K steps, weight
 * [out, K C]: wf_linear(wf_concat(parts, K, 2), weight, bias) with parts[i] = wf_slice(x, 1, i, T - K + 1). Patches that do not overlap are
 * a wf_reshape and a wf_permute. Nor are there gradients of gradients: wf_gradients in weft/tape.h has the way around. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include <weft/packed.h>
#include <weft/tape.h>

WF_BEGIN_DECLS

/* --- arithmetic: a, b broadcast ------------------------------------------------------------------------------------ */
WF_API wf_tensor *wf_add(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_subtract(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_mul(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_div(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_affine(wf_tensor *x, double scale, double shift); /* scale x + shift */
WF_API wf_tensor *wf_scale(wf_tensor *x, double scale);
WF_API wf_tensor *wf_neg(wf_tensor *x);
/* The greater, and the smaller, of two elements; NaN if one is NaN. A tie gives half of the gradient to each. */
WF_API wf_tensor *wf_maximum(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_minimum(wf_tensor *a, wf_tensor *b);
/* a^b with the special values of C's pow: a^0 = 1, 0^0 too, and a negative base takes whole exponents (else NaN). The gradient of a is
 * b a^(b-1), 0 where b = 0; that of b is a^b ln a: NaN at a negative base, 0 where a = 0 and b >= 0. */
WF_API wf_tensor *wf_pow(wf_tensor *a, wf_tensor *b);
/* With one number: x + c, c - x, x / c, c / x, x^c; c x is wf_scale, x - c is x + (-c). */
WF_API wf_tensor *wf_add_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_constant_minus(double c, wf_tensor *x);
WF_API wf_tensor *wf_div_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_constant_over(double c, wf_tensor *x);
WF_API wf_tensor *wf_pow_constant(wf_tensor *x, double c); /* any real c; x^0.5 and x^-0.5 are made of sqrt */

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
/* silu(gate) * up, of two tensors of one shape (Shazeer 2020): the bits of the two ops, without the tensor between them. */
WF_API wf_tensor *wf_swiglu(wf_tensor *gate, wf_tensor *up);
WF_API wf_tensor *wf_square(wf_tensor *x);
WF_API wf_tensor *wf_abs(wf_tensor *x); /* gradient at 0: 0 */
/* min(max(x, low), high); -INFINITY or INFINITY for no bound. A NaN stays. The gradient is 1 from low to high, both included, else 0.
 * WF_ERR_ARGUMENT unless low <= high. */
WF_API wf_tensor *wf_clamp(wf_tensor *x, double low, double high);
/* ln(1 + e^(beta x)) / beta, without overflow and without a threshold; beta > 0, usually 1. */
WF_API wf_tensor *wf_softplus(wf_tensor *x, double beta);
WF_API wf_tensor *wf_leaky_relu(wf_tensor *x, double slope); /* x where x > 0, else slope x (Maas et al. 2013) */
WF_API wf_tensor *wf_elu(wf_tensor *x, double alpha);        /* x where x > 0, else alpha (e^x - 1) (Clevert et al. 2015) */

/* --- comparisons and choices: operands broadcast ------------------------------------------------------------------- */
/* a == b, a != b, a < b, a <= b, a > b, a >= b as bools, from two tensors of one dtype: reals, ids, and for eq and ne also bools. With a
 * NaN only ne is true. They have no gradient. */
WF_API wf_tensor *wf_eq(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_ne(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_lt(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_le(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_gt(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_ge(wf_tensor *a, wf_tensor *b);
/* The same with one number on the right: wf_ne_constant(ids, padding). Reals are compared with c rounded to wf_real, ids with c itself. */
WF_API wf_tensor *wf_eq_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_ne_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_lt_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_le_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_gt_constant(wf_tensor *x, double c);
WF_API wf_tensor *wf_ge_constant(wf_tensor *x, double c);
/* Of bools. */
WF_API wf_tensor *wf_and(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_or(wf_tensor *a, wf_tensor *b);
WF_API wf_tensor *wf_not(wf_tensor *a);
/* condition ? a : b element by element; condition: bools; a and b of one dtype. An element's gradient goes to the chosen one; the other
 * gets 0, even if it is NaN or infinite there. */
WF_API wf_tensor *wf_where(wf_tensor *condition, wf_tensor *a, wf_tensor *b);
/* x with `value` where mask (bools) is true; the gradient is 0 there. */
WF_API wf_tensor *wf_masked_fill(wf_tensor *x, wf_tensor *mask, double value);
/* Bools as 0 and 1, ids as numbers; a real tensor itself. It has no gradient. */
WF_API wf_tensor *wf_to_real(wf_tensor *x);

/* --- views: no copy, unless a reshape needs one ----------------------------------------------------------------------
 *
 * Views of one tensor may overlap (windows by wf_slice at 0, 1, 2, ...): each reads the same memory, and an element's gradient is the sum
 * over all views that show it. A single view that shows an element more than once is wf_expand's, or that of an op with .view (weft/op.h);
 * wf_apply_view refuses it by name where a gradient is needed. */
WF_API wf_tensor *wf_reshape_to(wf_tensor *x, const wf_shape *shape); /* one dim may be -1 */
#ifndef __cplusplus
#define WF_SHAPE(...) (&(wf_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define wf_reshape(x, ...) wf_reshape_to(x, WF_SHAPE(__VA_ARGS__)) /* wf_reshape(x, B, T, -1) */
#endif
/* x broadcast to a larger shape by NumPy's rule: sizes of 1 and new leading dims are repeated, -1 keeps a size. No copy: their strides
 * are 0. The gradient of x is the sum over them. In a pass with gradients, views of the result copy it. */
WF_API wf_tensor *wf_expand_to(wf_tensor *x, const wf_shape *shape);
#ifndef __cplusplus
#define wf_expand(x, ...) wf_expand_to(x, WF_SHAPE(__VA_ARGS__)) /* queries [T, D]: wf_expand(queries, B, T, D) */
#endif
WF_API wf_tensor *wf_transpose(wf_tensor *x, int dim0, int dim1); /* negative dims count from the end */
/* The dimensions in another order, each once: y's dimension d is x's order[d]. */
WF_API wf_tensor *wf_permute_to(wf_tensor *x, const wf_shape *order);
#ifndef __cplusplus
#define wf_permute(x, ...) wf_permute_to(x, WF_SHAPE(__VA_ARGS__)) /* [B, T, H, E] -> [B, H, T, E]: wf_permute(x, 0, 2, 1, 3) */
#endif
WF_API wf_tensor *wf_select(wf_tensor *x, int dim, int64_t index); /* one index of dim, which goes; a negative one counts from the end */
WF_API wf_tensor *wf_unsqueeze(wf_tensor *x, int dim);             /* with a dimension of size 1 at place dim of the result */
WF_API wf_tensor *wf_squeeze(wf_tensor *x, int dim);               /* without dim, whose size must be 1 */
WF_API wf_tensor *wf_flatten(wf_tensor *x, int first, int last);   /* dimensions first to last become one */
WF_API wf_tensor *wf_slice(wf_tensor *x, int dim, int64_t start, int64_t length); /* a negative start counts from the end */
/* parts[0 .. n-1] of equal length along dim, which n must divide. */
WF_API void wf_split(wf_tensor *x, int dim, int n, wf_tensor *parts[]);
WF_API wf_tensor *wf_contiguous(wf_tensor *x); /* x itself if row-major, else a copy */
/* Joins n tensors along dim; the other dims must agree. */
WF_API wf_tensor *wf_concat(wf_tensor *const parts[], int n, int dim);
/* Joins n tensors of one shape along a new dimension, of size n, at place dim of the result. */
WF_API wf_tensor *wf_stack(wf_tensor *const parts[], int n, int dim);

/* --- sums ---------------------------------------------------------------------------------------------------------- */
WF_API wf_tensor *wf_sum(wf_tensor *x);  /* over all elements -> [] */
WF_API wf_tensor *wf_mean(wf_tensor *x); /* of zero elements: 0 */
/* Over dim, which keeps size 1 if `keep`. */
WF_API wf_tensor *wf_sum_dim(wf_tensor *x, int dim, bool keep);
WF_API wf_tensor *wf_mean_dim(wf_tensor *x, int dim, bool keep);

/* --- greatest and smallest ----------------------------------------------------------------------------------------- */
/* Over dim, which goes or keeps size 1. Of equal elements the first counts, and the first NaN before all numbers. The gradient goes to the
 * element that counts. ids, if not NULL, receives its index in dim (I32, in the shape of the result). WF_ERR_SHAPE if dim has size 0. */
WF_API wf_tensor *wf_max_dim(wf_tensor *x, int dim, bool keep, wf_tensor **ids);
WF_API wf_tensor *wf_min_dim(wf_tensor *x, int dim, bool keep, wf_tensor **ids);
WF_API wf_tensor *wf_max(wf_tensor *x); /* of all elements -> [] */
WF_API wf_tensor *wf_min(wf_tensor *x);
WF_API wf_tensor *wf_argmax(wf_tensor *x, int dim, bool keep); /* those ids alone */
WF_API wf_tensor *wf_argmin(wf_tensor *x, int dim, bool keep);
/* The k greatest along dim, which gets size k: NaN first, then falling, the first of equals first; their gradients go back to them. With k
 * the size of dim it sorts; the k smallest are those of wf_neg(x). 1 <= k <= the size of dim. ids as above. */
WF_API wf_tensor *wf_top_k(wf_tensor *x, int64_t k, int dim, wf_tensor **ids);

/* --- products ------------------------------------------------------------------------------------------------------ */
/* a [..., m, k], b [..., k, n] -> [..., m, n]; the leading dims broadcast. Views (transposes) cost no copy. */
WF_API wf_tensor *wf_matmul(wf_tensor *a, wf_tensor *b);
/* x [..., in], weight [out, in], bias [out] or NULL -> [..., out]:  x weight^T + bias */
WF_API wf_tensor *wf_linear(wf_tensor *x, wf_tensor *weight, wf_tensor *bias);

/* --- embedding ----------------------------------------------------------------------------------------------------- */
/* weight [V, D], ids [...] in 0 .. V-1 -> [..., D] */
WF_API wf_tensor *wf_embedding(wf_tensor *weight, wf_tensor *ids);

/* --- indexing: ids are int32; one out of range is an error that says which. Sums are in the order of the ids, so that their bits do not
 * depend on the number of threads, with repeated ids too. Negative dims count from the end. ------------------------------------------ */
/* Slices of dim: ids [n] in 0 .. size of dim - 1; x [A, V, B] -> [A, n, B], y[a][i][b] = x[a][ids[i]][b]. */
WF_API wf_tensor *wf_index_select(wf_tensor *x, int dim, wf_tensor *ids);
/* x with slices added: source as x, but n along dim; y[a][ids[i]][b] += source[a][i][b]. */
WF_API wf_tensor *wf_index_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source);
/* Elements along dim: ids have the rank of x, and at most its sizes in the other dimensions -> the shape of the ids; of dim 1:
 * y[i][j][k] = x[i][ids[i][j][k]][k], as torch.gather. */
WF_API wf_tensor *wf_gather(wf_tensor *x, int dim, wf_tensor *ids);
/* x with elements added: source has the shape of the ids; of dim 1: y[i][ids[i][j][k]][k] += source[i][j][k]. */
WF_API wf_tensor *wf_scatter_add(wf_tensor *x, int dim, wf_tensor *ids, wf_tensor *source);

/* --- packed rows (weft/packed.h) ------------------------------------------------------------------------------------ */
/* Packed rows x [N, ...] -> [n, L, ...], n sequences, L rows of the longest: y[i][t] is row t of sequence i, and `fill` behind its last
 * one. Of reals, ids or bools; the offsets are copied. */
WF_API wf_tensor *wf_pad_rows(wf_tensor *x, struct wf_packed packed, double fill);
/* The inverse: x [n, L, ...], with L of at least that -> [N, ...]. Rows of x behind the sequences are ignored. */
WF_API wf_tensor *wf_pack_rows(wf_tensor *x, struct wf_packed packed);
/* The mean of each sequence's rows: x [N, ...] -> [n, ...]. Of an empty one it is 0. */
WF_API wf_tensor *wf_mean_packed(wf_tensor *x, struct wf_packed packed);

/* --- over a dimension; negative dims count from the end ------------------------------------------------------------ */
/* log sum e^x over dim, which keeps size 1 if `keep`. Nothing overflows; where all x are -inf, and of nothing, -inf with zero gradient. */
WF_API wf_tensor *wf_logsumexp(wf_tensor *x, int dim, bool keep);
/* x - logsumexp of x over dim, the logarithm of softmax. Where all x are -inf: -inf, with zero gradient. */
WF_API wf_tensor *wf_log_softmax(wf_tensor *x, int dim);
/* y_t = x_1 + ... + x_t along dim, in this order and added up in double. */
WF_API wf_tensor *wf_cumsum(wf_tensor *x, int dim);
/* h_t = a_t h_(t-1) + b_t along dim, element by element: the recurrence of linear attention and state-space models (Martin and Cundy 2018;
 * Gu and Dao 2023). a, b and the result have one shape; the initial state h_0 has it without dim, and is 0 if NULL. Serial over dim, so
 * that the bits depend on no threads; in parallel over the rest, fastest where dim is not the last. */
WF_API wf_tensor *wf_scan(wf_tensor *a, wf_tensor *b, wf_tensor *initial, int dim);

/* --- over the last dimension --------------------------------------------------------------------------------------- */
WF_API wf_tensor *wf_softmax(wf_tensor *x); /* a row of -inf gives zeros */
/* Ba et al. 2016: (x - mean) / sqrt(var + eps) * gain + bias; gain, bias [D], either may be NULL. */
WF_API wf_tensor *wf_layer_norm(wf_tensor *x, wf_tensor *gain, wf_tensor *bias, double eps);
/* Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) * gain; gain [D] or NULL. */
WF_API wf_tensor *wf_rms_norm(wf_tensor *x, wf_tensor *gain, double eps);
/* Rows of length 1: x / max(|x|, eps), as torch.nn.functional.normalize, whose eps is 1e-12. */
WF_API wf_tensor *wf_l2_normalize(wf_tensor *x, double eps);
/* The cosine of rows, [...]: sum of l2_normalize(a, eps) l2_normalize(b, eps); a, b [..., D] broadcast. All pairs of two batches [N, D]:
 * wf_matmul(wf_l2_normalize(a, eps), wf_transpose(wf_l2_normalize(b, eps), 0, 1)). */
WF_API wf_tensor *wf_cosine_similarity(wf_tensor *a, wf_tensor *b, double eps);

/* --- dropout ------------------------------------------------------------------------------------------------------- */
/* In WF_TRAIN each element is 0 with probability p (in steps of 1/65536) and else divided by 1 - p; in other modes x
 * itself. The mask depends on (seed, step and pass: wf_tape_options, number of the call in this pass, global row, offset in the row),
 * where a row is what x's last dimension holds. 0 <= p < 1. */
WF_API wf_tensor *wf_dropout(wf_tensor *x, double p);
/* residual + dropout(x, p), and dropout(relu(x), p): the bits of the two ops in one pass, and one tensor less. Operands of other
 * shapes broadcast as in wf_add, in two passes. */
WF_API wf_tensor *wf_dropout_add(wf_tensor *x, wf_tensor *residual, double p);
WF_API wf_tensor *wf_relu_dropout(wf_tensor *x, double p);

/* --- noise --------------------------------------------------------------------------------------------------------- */
/* Random numbers as constants of the tape, in every mode; a VAE's sample: wf_add(mean, wf_mul(deviation, wf_normal(tape, &shape, 0, 1))).
 * They depend on what dropout's masks depend on (above: seed, step and pass, number of the call, global row, place in the row), so not on
 * threads or on how a batch is cut, and a checkpoint draws the same again. Passes in WF_TRAIN draw anew; those in other modes repeat
 * unless .seed or .step differ. Both precisions draw the same numbers, to rounding. */
WF_API wf_tensor *wf_normal(wf_tape *tape, const wf_shape *shape, double mean, double deviation); /* Box and Muller 1958 */
WF_API wf_tensor *wf_uniform(wf_tape *tape, const wf_shape *shape, double low, double high);      /* [low, high), in 2^24 steps */
WF_API wf_tensor *wf_bernoulli(wf_tape *tape, const wf_shape *shape, double p);                   /* 1 with probability p, else 0 */

/* --- attention ----------------------------------------------------------------------------------------------------- */
/* softmax(scale q k^T, masked) v for each head, in tiles: no [T, S] tensor is stored, fully masked tiles are
 * skipped (Dao et al. 2022).
 *
 *   q [B, T, H*E], k [B, S, G*E], v [B, S, G*F] -> [B, T, H*F]
 *
 * H query heads share G = kv_heads heads of keys and values (grouped-query attention, Ainslie et al. 2023); E and F are the widths of a
 * head's keys and values.
 *
 * A query may attend to a key if all of these allow it: `causal` (key s for query t when s <= t + S - T, so that with a cache
 * the last query sees everything), `key_lengths`, `mask` (true = may attend). A row that may attend to nothing gives
 * zeros and has zero gradient. Masked keys never contribute, even if they are NaN.
 * With `window` = W > 0 a query at position p attends to the keys p-W+1 .. p if causal, else to those with |p - s| < W, where query t is at
 * position t + S - T of the keys, or at t + starts[b]: a sliding window (Beltagy et al. 2020). Time is that of T W scores and memory O(T),
 * in backward too; a window that leaves out nothing changes no bit.
 * Packed rows (weft/packed.h): q [N, H*E] and k, v [M, ...] hold sequences end to end; sequence i of q attends to sequence i of k. */
struct wf_attention_options {
    int heads;    /* H; 0: 1 */
    int kv_heads; /* G, divides H; 0: H */
    double scale; /* 0: 1 / sqrt(E) */
    bool causal;
    const int32_t *key_lengths; /* [B]: keys s < key_lengths[b] only; copied */
    const int32_t *starts;      /* [B], 0 .. S: causal is s <= t + starts[b] in row b, for caches of rows of different lengths;
                                   copied; NULL: S - T in every row; with causal or window, not with packed rows */
    wf_tensor *mask;            /* bools that broadcast to [B, H, T, S]; of packed rows to [n, H, L, M]: L x M of n sequences, by places of
                                   queries and keys in their sequences, at least as many as the longest has */
    struct wf_packed packed;    /* of q, and of k and v too unless k_packed is given; copied */
    struct wf_packed k_packed;  /* of k and v; the same number of sequences */
    double dropout;             /* on the weights, in WF_TRAIN */
    wf_tensor **weights;        /* if not NULL: receives the weights [B, H, T, S] (before dropout), without a gradient;
                                   not with packed rows */
    int64_t window;             /* 0: none */
    double softcap;             /* c: scores become c tanh(score / c), before masks (Gemma 2, 2024); 0: none */
    wf_tensor *bias;            /* reals that broadcast as a mask does, added to the scores (capped, before masks), with a gradient if it
                                   needs one; -inf masks */
};
WF_API wf_tensor *wf_attention_with(wf_tensor *q, wf_tensor *k, wf_tensor *v, const struct wf_attention_options *options);
#ifndef __cplusplus
#define wf_attention(q, k, v, ...) wf_attention_with(q, k, v, &(struct wf_attention_options){__VA_ARGS__})
#endif

/* --- rotary positions ---------------------------------------------------------------------------------------------- */
/* Su et al. 2021: in each head, pair i of elements (a, b) of a row at position p is turned by the angle p f_i,
 *
 *   (a cos - b sin, b cos + a sin),   f_i = base^(-2i / width), i < width / 2
 *
 * so that the product of a query and a key depends on their distance. Angles are in double precision: sines and cosines are right to the
 * last bit or so of wf_real at positions of 100,000 too, and those of a position have the same bits whatever else the call holds. */
enum wf_rope_scaling {
    WF_ROPE_UNSCALED,
    WF_ROPE_LINEAR, /* f_i / factor: positions are interpolated (Chen et al. 2023) */
    WF_ROPE_NTK,    /* base factor^(width / (width - 2)) instead of base: the lowest frequency is divided by factor, the highest stays */
    /* As Llama 3.1: with n = original_context f_i / (2 pi) turns in the original context, f_i where n > high_frequency, f_i / factor where
     * n < low_frequency, and between them s f_i + (1 - s) f_i / factor, s = (n - low_frequency) / (high_frequency - low_frequency). */
    WF_ROPE_LLAMA3
};
struct wf_rotary {
    int64_t width;    /* elements of a head that are turned, the first ones; even; the others are copied. 0: all of the head */
    bool interleaved; /* pairs are (2i, 2i + 1), as in GPT-J and the paper; default: (i, i + width / 2), as in Llama and GPT-NeoX */
    double base;      /* 0: 10000 */
    enum wf_rope_scaling scaling;
    double factor;                                          /* > 0, of the scaling */
    double low_frequency, high_frequency, original_context; /* of WF_ROPE_LLAMA3 */
    /* f_i given instead of base and scaling: one of these, [width / 2]. The array must stay valid as long as this struct is used (of ops:
     * for the call); the tensor, a buffer for instance, needs no gradient: there is none for frequencies. */
    const double *frequencies;
    wf_tensor *frequency_tensor;
};
/* x [B,T,H*E] -> [B,T,H*E]; or x [N,H*E], one sequence or packed ones. Row t of a sequence is at position start + t,
 * or where one of the following says so. */
struct wf_rope_options {
    int heads; /* H; 0: 1 */
    struct wf_rotary rotary;
    int64_t start;           /* -2^31 .. 2^31 */
    const int32_t *starts;   /* [B]: row t of sequence b is at starts[b] + t, for caches of rows of different lengths; copied */
    struct wf_packed packed; /* sequences of [N,H*E]; copied */
    wf_tensor *positions;    /* WF_I32 [B,T], or [T] for all B; of x [N,H*E]: [N]. Any values; without start, starts and packed */
};
WF_API wf_tensor *wf_rope_with(wf_tensor *x, const struct wf_rope_options *options);
#ifndef __cplusplus
#define wf_rope(x, ...) wf_rope_with(x, &(struct wf_rope_options){__VA_ARGS__})
#endif

/* --- losses of elements -------------------------------------------------------------------------------------------- */
/* How losses of elements (of rows for cross-entropy) are reduced; the result is [] except for WF_REDUCE_NONE. The mean of none is 0. */
enum wf_reduction {
    WF_REDUCE_MEAN,
    WF_REDUCE_SUM,
    WF_REDUCE_NONE,      /* each, as a tensor */
    WF_REDUCE_BATCH_MEAN /* the sum divided by the size of the first dimension; not for cross-entropy */
};
/* Operands have one shape (wf_expand repeats a smaller one), and all of them have gradients. (x - target)^2: */
WF_API wf_tensor *wf_mse(wf_tensor *x, wf_tensor *target, enum wf_reduction reduction);
/* Binary cross-entropy of probabilities sigmoid(x) with targets t in 0 .. 1: -w t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), without
 * overflow and without terms that cancel. A target out of range is an error. A term whose factor t or 1 - t is 0 is 0. */
struct wf_bce_options {
    enum wf_reduction reduction;
    wf_tensor *positive_weight; /* w, broadcasts to x: how often a positive counts; NULL: 1 */
};
WF_API wf_tensor *wf_bce_with_logits_with(wf_tensor *logits, wf_tensor *targets, const struct wf_bce_options *options);
/* Kullback-Leibler divergence KL(p || q) of elements, p (log p - log q), from log q and p; with .log_target from log q and log p. 0 where
 * p = 0. Of distributions take WF_REDUCE_SUM or WF_REDUCE_BATCH_MEAN, for the mean over elements divides by the classes too. */
struct wf_kl_options {
    enum wf_reduction reduction;
    bool log_target;
};
WF_API wf_tensor *wf_kl_div_with(wf_tensor *log_q, wf_tensor *target, const struct wf_kl_options *options);
/* KL(N(m, e^s) || N(0, 1)) of elements, (m^2 + e^s - 1 - s) / 2, from means m and logarithms s of variances (Kingma and Welling 2014);
 * WF_REDUCE_BATCH_MEAN sums it over the latent dimensions. */
WF_API wf_tensor *wf_kl_normal(wf_tensor *mean, wf_tensor *log_variance, enum wf_reduction reduction);
#ifndef __cplusplus
#define wf_bce_with_logits(logits, targets, ...) wf_bce_with_logits_with(logits, targets, &(struct wf_bce_options){__VA_ARGS__})
#define wf_kl_div(log_q, target, ...) wf_kl_div_with(log_q, target, &(struct wf_kl_options){__VA_ARGS__})
#endif

/* --- losses -------------------------------------------------------------------------------------------------------- */
/* Mean cross-entropy in nats over the targets that are not ignored -> []. With label smoothing e the target is
 * (1 - e) one-hot + e / V. The mean over zero targets is 0, with zero gradients. */
struct wf_cross_entropy_options {
    bool has_ignore; /* ignore targets equal to `ignore` */
    int32_t ignore;
    double label_smoothing;
    double normalizer;           /* divisor of the sum: with micro-batches the targets of all of them, so that accumulated gradients
                                    equal those of the large batch. 0: the number of targets here */
    wf_tensor **plain;           /* if not NULL: receives the loss without smoothing, a constant of the result's shape */
    enum wf_reduction reduction; /* a sum, or each row's loss in the shape of the targets, 0 of ignored ones: for rows that count
                                    differently, policy gradients */
    wf_tensor *class_weights;    /* [V], constants: a target t counts w_t times, and the mean divides by the sum of the w_t; with smoothing
                                    the part of class j counts w_j times. NULL: 1 */
};
/* logits [..., V], targets [...] in 0 .. V-1. */
WF_API wf_tensor *wf_cross_entropy_with(wf_tensor *logits, wf_tensor *targets, const struct wf_cross_entropy_options *options);
/* The same on logits = x weight^T + bias, x [..., D], weight [V, D], bias [V] or NULL, without storing all logits. */
WF_API wf_tensor *wf_linear_cross_entropy_with(wf_tensor *x, wf_tensor *weight, wf_tensor *bias, wf_tensor *targets,
                                               const struct wf_cross_entropy_options *options);
#ifndef __cplusplus
#define wf_cross_entropy(logits, targets, ...) wf_cross_entropy_with(logits, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#define wf_linear_cross_entropy(x, weight, bias, targets, ...)                                                                             \
    wf_linear_cross_entropy_with(x, weight, bias, targets, &(struct wf_cross_entropy_options){__VA_ARGS__})
#endif

WF_END_DECLS

#endif
