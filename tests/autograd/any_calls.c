/* SPDX-License-Identifier: MIT */
/* Random calls of tapes, tensors and ops with random, often wrong arguments. Every call returns a tensor, and poison comes with a message
 * on the tape. Under the sanitizers it shows that nothing outside is touched. WF_FUZZ_CALLS=N makes N calls. */
#include "any.h"
#include "any_ops.h"

enum { POOL = 24, CALLS = 7, PASSES = 10000, MARKS = 3 };

static wf_tensor *pool[POOL];
static wf_tape *tape, *other;
static const wf_tensor *of_other;
static wf_tape_mark mark[MARKS];

static wf_tensor *any(void)
{
    return below(300) ? pool[below(POOL)] : NULL;
}

/* Mostly a real tensor. */
static wf_tensor *real(void)
{
    for (int i = 0; i < 20; i++) {
        wf_tensor *x = any();
        if (x && wf_dtype_of(x) == WF_REAL && !wf_is_poison(x) && x != of_other)
            return x;
    }
    return any();
}

/* Mostly one that suits a. */
static wf_tensor *like(wf_tensor *a, bool matrix)
{
    for (int i = 0; a && i < 60; i++) {
        wf_tensor *x = real();
        if (matrix ? wf_ndim(x) == 2 && wf_dim(x, 1) == wf_dim(a, -1)
                   : wf_ndim(x) <= wf_ndim(a) && (wf_ndim(x) == 0 || wf_dim(x, -1) == wf_dim(a, -1)))
            return x;
    }
    return any();
}

static wf_tensor *make(int kind)
{
    int32_t ids[64];
    bool may[64];
    wf_shape s = any_shape();
    for (int i = 0; i < 64; i++) {
        ids[i] = (int32_t)(below(3000) ? below(2) : below(3) - 4);
        may[i] = below(2);
    }
    int64_t count = wf_shape_count(&s);
    switch (kind < 2 ? kind : below(9) ? 4 : 2 + (int)below(2)) {
    case 0:
        return count <= 64 ? wf_ids_of(tape, seldom(500) ? NULL : ids, seldom(500) ? NULL : &s) : wf_ids(tape, ids, 2, 4);
    case 1:
        return count <= 64 ? wf_bools(tape, may, &s) : NULL;
    case 2:
        return has_data(&s) ? wf_zeros(tape, seldom(500) ? NULL : &s) : NULL;
    case 3: {
        wf_array a = wf_array_contiguous((void *)any_data, below(200) ? WF_REAL : (wf_dtype)below(40), &s);
        return has_data(&s) && (a.dtype == WF_REAL || count <= 64) ? wf_borrow(tape, &a) : NULL;
    }
    default:
        return has_data(&s) ? wf_input(tape, below(5000) ? any_data : NULL, &s, below(2)) : NULL;
    }
}

static wf_tensor *any_attention(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const int32_t lengths[] = {1, 2, 0, 3, 2, 1}, half = (int32_t)below(5);
    wf_tensor *weights = NULL;
    struct wf_attention_options o = {
        .heads = any_count(3), .kv_heads = any_count(2), .scale = any_number(0), .causal = below(2), .dropout = any_number(0.1)};
    bool packed = !below(3);
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != (packed ? 2 : 3)); i++)
        a = real();
    const int32_t offsets[] = {0, half, seldom(9) ? half - 1 : half, a && wf_dim(a, 0) < 1 << 30 ? (int32_t)wf_dim(a, 0) : 3};
    if (packed) {
        o.packed = (struct wf_packed){seldom(20) ? NULL : offsets, seldom(9) ? (int)below(5) - 1 : 3};
        if (below(2))
            o.k_packed = (struct wf_packed){offsets, seldom(9) ? (int)below(4) : 3};
    }
    if (a && wf_dim(a, 0) <= 6 && below(2) && (!packed || seldom(9)))
        o.key_lengths = lengths;
    if (seldom(9))
        o.bias = below(2) ? a : any();
    if (seldom(packed ? 20 : 5))
        o.mask = below(9) ? pool[7] : any();
    if (seldom(packed ? 20 : 5))
        o.weights = &weights;
    wf_tensor *y = wf_attention_with(a, below(6) ? a : b, below(6) ? a : c, seldom(50) ? NULL : &o);
    if (weights)
        pool[8 + below(POOL - 8)] = weights;
    return y;
}

/* Mostly weights that fit, of zeros, so that the call goes on to the sequences and states. */
static wf_tensor *any_recurrent(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const bool gru = below(2), packed = !below(3);
    const int64_t H = seldom(20) ? any_size() : below(4), rows = (gru ? 3 : 4) * H;
    wf_tensor *last[2] = {NULL};
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != (packed ? 2 : 3)); i++)
        a = real();
    const int64_t in = a ? wf_dim(a, -1) : 3;
    const int32_t half = (int32_t)below(5),
                  offsets[] = {0, half, seldom(9) ? half - 1 : half, a && wf_dim(a, 0) < 1 << 30 ? (int32_t)wf_dim(a, 0) : 3};
    struct wf_recurrent_options o = {.reverse = below(2), .h = seldom(5) ? b : NULL, .c = seldom(9) ? c : NULL};
    if (packed)
        o.packed = (struct wf_packed){seldom(20) ? NULL : offsets, seldom(9) ? (int)below(5) - 1 : 3};
    if (below(2))
        o.last_h = &last[0];
    if (seldom(gru ? 50 : 2))
        o.last_c = &last[1];
    wf_tensor *w = seldom(20) ? b : wf_zeros(tape, &(wf_shape){2, {rows, in}}),
              *u = seldom(20) ? c : wf_zeros(tape, &(wf_shape){2, {rows, H}}), *bias = seldom(9) ? b : NULL,
              *y = (gru ? wf_gru_with : wf_lstm_with)(a, w, u, bias, bias, seldom(50) ? NULL : &o);
    for (int i = 0; i < 2; i++)
        if (last[i])
            pool[8 + below(POOL - 8)] = last[i];
    return y;
}

/* Mostly operands that fit, of zeros. */
static wf_tensor *any_selective_scan(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    wf_tensor *last = NULL;
    for (int i = 0; i < 20 && (!a || wf_ndim(a) != 3); i++)
        a = real();
    const bool fits = a && wf_ndim(a) == 3;
    const int64_t B = fits ? wf_dim(a, 0) : 2, T = fits ? wf_dim(a, 1) : 3, E = fits ? wf_dim(a, 2) : 4,
                  N = seldom(20) ? any_size() : below(6);
    const wf_shape chosen = {3, {B, T, N}}, state = {3, {B, E, N}}, zeros = {2, {E, N}};
    struct wf_selective_scan_options o = {.d = seldom(9) ? c : NULL, .softplus = below(2), .last = below(2) ? &last : NULL};
    if (below(2))
        o.state = seldom(9) ? b : wf_zeros(tape, &state);
    wf_tensor *y =
        wf_selective_scan_with(a, seldom(9) ? b : a, seldom(20) ? c : wf_zeros(tape, &zeros), seldom(20) ? b : wf_zeros(tape, &chosen),
                               seldom(20) ? c : wf_zeros(tape, &chosen), seldom(50) ? NULL : &o);
    if (last)
        pool[8 + below(POOL - 8)] = last;
    return y;
}

static wf_tensor *any_loss(wf_tensor *a, wf_tensor *m, wf_tensor *bias, wf_tensor *targets)
{
    wf_tensor *plain = NULL;
    struct wf_cross_entropy_options o = {
        .has_ignore = below(2), .ignore = -3, .label_smoothing = any_number(0.1), .normalizer = any_number(0)};
    if (below(2))
        o.plain = &plain;
    if (seldom(3))
        o.reduction = (enum wf_reduction)below(5);
    if (seldom(4))
        o.class_weights = any();
    const enum wf_reduction how = (enum wf_reduction)below(5);
    switch (below(8)) {
    case 0:
        return wf_mse(a, like(a, false), how);
    case 1:
        return wf_bce_with_logits(a, wf_sigmoid(below(9) ? a : bias), .reduction = how, .positive_weight = below(2) ? NULL : bias);
    case 2:
        return wf_kl_div(a, below(9) ? a : bias, .reduction = how, .log_target = below(2));
    case 3:
        return wf_kl_normal(a, like(a, false), how);
    }
    wf_tensor *y =
        below(2) ? wf_cross_entropy_with(a, targets, seldom(50) ? NULL : &o) : wf_linear_cross_entropy_with(a, m, bias, targets, &o);
    if (plain)
        pool[8 + below(POOL - 8)] = plain;
    return y;
}

/* A view with random dims and strides, which may reach outside. */
static wf_tensor *any_view(wf_tensor *x)
{
    wf_array a;
    if (!x || wf_view(x, &a) != WF_OK)
        return x;
    for (int64_t i = below(2); i > 0 && a.ndim > 0; i--) {
        int d = (int)below(a.ndim);
        if (below(2))
            a.dim[d] = any_size();
        else
            a.stride[d] = below(3) ? below(5) - 2 : any_size();
    }
    if (!below(4))
        a.data = (wf_real *)a.data + below(9) - 4;
    if (seldom(30))
        a.ndim = (int)below(10) - 2;
    if (seldom(30))
        a.dtype = (wf_dtype)below(30);
    return wf_apply_view("any view", x, &a);
}

static wf_tensor *function_of(wf_tensor *x)
{
    static wf_tensor *(*const functions[])(wf_tensor *) = {
        wf_neg, wf_exp,  wf_log,     wf_sqrt,   wf_tanh,        wf_sigmoid,    wf_relu, wf_gelu,   wf_gelu_tanh, wf_silu, wf_contiguous,
        wf_sum, wf_mean, wf_softmax, wf_detach, wf_retain_grad, wf_keep,       wf_abs,  wf_square, wf_rsqrt,     wf_sin,  wf_cos,
        wf_erf, wf_sign, wf_floor,   wf_round,  wf_log_sigmoid, wf_hard_swish, wf_mish, wf_isnan,  wf_isfinite};
    return functions[below((int64_t)(sizeof functions / sizeof *functions))](x);
}

static wf_tensor *any_indexing(wf_tensor *a, wf_tensor *m, wf_tensor *b, wf_tensor *ids)
{
    const int64_t rows = a && wf_dim(a, 0) < 1 << 20 ? wf_dim(a, 0) : 1;
    const int32_t some = (int32_t)below(rows + 1), offsets[] = {0, seldom(20) ? some + 1 : some, some, (int32_t)rows};
    const struct wf_packed packed = {seldom(50) ? NULL : offsets, seldom(9) ? (int)below(5) - 1 : 3};
    switch (below(8)) {
    case 5:
        return wf_pad_rows(below(9) ? a : ids, packed, any_number(0));
    case 6:
        return wf_pack_rows(below(2) ? wf_pad_rows(a, packed, 1) : a, packed);
    case 7:
        return wf_mean_packed(a, packed);
    case 0:
        return wf_index_select(a, any_dim(), below(3) ? wf_reshape(ids, -1) : ids);
    case 1:
        return wf_index_add(a, any_dim(), wf_reshape(ids, -1), below(2) ? a : b);
    case 2:
        return wf_gather(a, any_dim(), ids);
    case 3:
        return wf_scatter_add(a, any_dim(), ids, below(2) ? a : b);
    default:
        return wf_embedding(m, ids);
    }
}

static wf_tensor *with_constants(wf_tensor *a, wf_tensor *b)
{
    static wf_tensor *(*const of_two[])(wf_tensor *, wf_tensor *) = {wf_swiglu, wf_maximum, wf_minimum, wf_pow};
    static wf_tensor *(*const of_number[])(wf_tensor *, double) = {wf_pow_constant, wf_softplus,     wf_leaky_relu,
                                                                   wf_elu,          wf_add_constant, wf_div_constant};
    const double p = any_number(1);
    switch (below(13)) {
    case 0:
        return wf_pow_constant(a, (double)below(7) - 3);
    case 1:
        return wf_clamp(a, p, any_number(2));
    case 2:
        return wf_constant_minus(p, a);
    case 3:
        return wf_constant_over(p, a);
    case 4:
    case 5:
    case 6:
        return of_two[below(4)](a, b);
    default:
        return of_number[below(6)](a, p);
    }
}

static wf_tensor *any_convolution(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    const struct wf_conv_axis axes[2] = {{below(4) - 1, below(4) - 1, below(4) - 1, below(4) - 1},
                                         {below(3), below(3), below(3), below(3)}};
    const struct wf_conv_axis *some = below(2) ? axes : NULL;
    const int64_t stride = some ? 0 : below(4) - 1, padding = some ? 0 : below(4) - 1, groups = below(4) - 1;
    wf_tensor *bias = below(2) ? NULL : c;
    switch (below(6)) {
    case 0:
        return wf_max_pool(a, below(4) - 1, .stride = below(3), .padding = below(3) - 1);
    case 1:
        return wf_avg_pool(a, below(4) - 1, .padding = below(3), .skip_padding = below(2));
    case 2:
        return below(2) ? wf_adaptive_avg_pool(a, below(4) - 1, below(4) - 1)
                        : wf_resize(a, below(5) - 1, below(5) - 1, (enum wf_resize)(below(5) - 1));
    default:
        break;
    }
    if (below(2))
        return wf_conv(a, b, bias, .stride = stride, .padding = padding, .groups = groups, .axes = some);
    return wf_conv_transpose(a, b, bias, .stride = stride, .padding = padding, .output_padding = some ? 0 : below(2), .groups = groups,
                             .axes = some);
}

static wf_tensor *any_reduction(wf_tensor *a, wf_tensor *b, wf_tensor *c)
{
    switch (below(9)) {
    case 8:
        return any_convolution(a, b, c);
    case 0:
        return wf_logsumexp(a, any_dim(), below(2));
    case 1:
        return wf_log_softmax(a, any_dim());
    case 2:
        return wf_cumsum(a, any_dim());
    case 3:
        return wf_scan(a, b, below(2) ? NULL : c, any_dim());
    case 4:
        return wf_l2_normalize(a, any_number(1e-12));
    case 5:
        return wf_cosine_similarity(a, b, any_number(1e-8));
    case 6:
        return wf_sum_dim(a, any_dim(), below(2));
    default:
        return wf_mean_dim(a, any_dim(), below(2));
    }
}

static wf_tensor *any_choice(wf_tensor *a, wf_tensor *b)
{
    static wf_tensor *(*const compare[])(wf_tensor *, wf_tensor *) = {wf_eq, wf_ne, wf_lt, wf_le, wf_gt, wf_ge, wf_and, wf_or};
    static wf_tensor *(*const constant[])(wf_tensor *, double) = {wf_eq_constant, wf_ne_constant, wf_lt_constant,
                                                                  wf_le_constant, wf_gt_constant, wf_ge_constant};
    wf_tensor *c = seldom(9) ? any() : below(2) ? constant[below(6)](a, any_number(0)) : compare[seldom(20) ? below(8) : below(6)](a, b);
    wf_shape order = {(int)below(4), {below(3), below(4) - 2, below(3)}};
    wf_tensor *const parts[] = {a, below(3) ? a : b, b};
    wf_tensor *ids = NULL;
    switch (below(17)) {
    case 16:
        order.dim[1] = below(4);
        return below(3) == 0   ? wf_normal(tape, seldom(200) ? NULL : &order, any_number(0), any_number(1))
               : below(2) == 0 ? wf_uniform(tape, &order, any_number(0), any_number(1))
                               : wf_bernoulli(tape, &order, any_number(0.5));
    case 12:
        return wf_max_dim(a, any_dim(), below(2), below(2) ? &ids : NULL);
    case 13:
        return below(2) ? wf_argmin(a, any_dim(), below(2)) : wf_argmax(a, any_dim(), below(2));
    case 14:
        return below(2) ? wf_min(a) : wf_max(a);
    case 15:
        a = wf_top_k(a, seldom(4) ? any_size() : 1, any_dim(), below(2) ? &ids : NULL);
        return ids && below(2) ? ids : a;
    case 6:
        return wf_permute_to(a, seldom(200) ? NULL : seldom(3) ? &order : WF_SHAPE(1, 0));
    case 7:
        return wf_select(a, any_dim(), below(2) ? any_size() : 0);
    case 8:
        return wf_unsqueeze(a, any_dim());
    case 9:
        return wf_squeeze(a, any_dim());
    case 10:
        return wf_flatten(a, any_dim(), any_dim());
    case 11:
        return wf_stack(parts, seldom(20) ? (int)below(5) - 1 : 1 + (int)below(2), any_dim());
    case 0:
        return c;
    case 1:
        return wf_to_real(below(2) ? c : wf_not(c));
    case 2:
        return wf_masked_fill(a, c, any_number(1));
    case 3:
        return wf_where(wf_and(c, below(3) ? c : any()), a, b);
    default:
        return wf_where(c, a, b);
    }
}

static wf_tensor *any_arrangement(wf_tensor *a, wf_tensor *ids)
{
    const struct wf_pad_size sizes[WF_MAX_DIMS] = {{any_dim(), below(4), seldom(9) ? any_size() : below(3)},
                                                   {any_dim(), seldom(9) ? -1 : 1, 0}};
    wf_shape times = {seldom(9) ? (int)below(9) - 1 : wf_ndim(a), {below(3), seldom(9) ? any_size() : 1 + below(2), 1, 2}};
    wf_tensor *x = below(5) ? a : any(), *sorted = NULL;
    switch (below(16)) {
    case 0:
        return wf_flip(x, any_dim());
    case 1:
        return wf_roll(x, seldom(9) ? any_size() : below(9) - 4, any_dim());
    case 2:
        return wf_pad_dims(x, seldom(50) ? NULL : sizes, seldom(20) ? (int)below(9) - 1 : 1 + (int)below(2), any_number(0));
    case 3:
        return below(2) ? wf_tril(x, any_size()) : wf_triu(x, below(4) - 2);
    case 4:
        return wf_repeat_to(x, seldom(50) ? NULL : &times);
    case 5:
        return wf_unfold(x, any_dim(), seldom(9) ? any_size() : 1 + below(3), seldom(9) ? any_size() : 1 + below(2));
    case 6:
        return wf_fold(x, any_dim(), seldom(9) ? any_size() : below(12), seldom(9) ? any_size() : 1 + below(2));
    case 7:
        return wf_one_hot(below(9) ? ids : x, seldom(9) ? any_size() : 300);
    case 8:
        x = wf_sort(x, any_dim(), below(2), below(2) ? &sorted : NULL);
        return sorted && below(2) ? sorted : x;
    case 9:
        return wf_argsort(x, any_dim(), below(2));
    case 10:
        return wf_multinomial(below(2) ? wf_square(x) : x, seldom(9) ? any_size() : below(5), below(2));
    case 11:
        return below(2) ? wf_eye(tape, below(4) - 1, below(5)) : wf_arange(tape, any_number(0), any_number(3), any_number(0.5));
    case 12:
        return wf_dropout_shared(x, any_number(0.3), seldom(50) ? NULL : below(2) ? WF_SHAPE(1) : &times);
    case 13:
        return below(2) ? wf_var_dim(x, any_dim(), below(2), (int)below(3)) : wf_std(x, (int)below(2));
    case 14:
        return below(2) ? wf_norm_dim(x, any_number(2), any_dim(), below(2)) : wf_norm(x, any_number(1));
    default:
        return below(2) ? wf_prod_dim(x, any_dim(), below(2)) : wf_cumprod(x, any_dim());
    }
}

static wf_tensor *any_row_loss(wf_tensor *a, wf_tensor *b)
{
    const enum wf_reduction how = (enum wf_reduction)below(5);
    switch (below(5)) {
    case 0:
        return wf_l1(a, b, how);
    case 1:
        return wf_huber(a, b, any_number(1), how);
    case 2:
        return wf_cross_entropy_soft(a, below(9) ? wf_softmax(b) : b, how, any_number(0.1), seldom(9) ? any() : NULL);
    case 3:
        return wf_triplet_margin(a, b, seldom(9) ? any() : a, how, any_number(1), any_number(2), .swap = below(2));
    default:
        return wf_info_nce(a, b, how, any_number(0.1), seldom(4) ? any() : NULL, below(2));
    }
}

static wf_tensor *any_op(void);

/* Its random numbers start at those of `ctx`, so that backward repeats the calls. By then the pool may have other operands for them. */
static wf_tensor *several_ops(void *ctx, wf_tensor *x)
{
    const wf_rng outside = any_rng;
    any_rng = *(const wf_rng *)ctx;
    for (int64_t i = below(4); i > 0; i--) {
        wf_tensor *y = seldom(3) ? any_op() : function_of(x);
        x = !y || seldom(5) ? x : below(2) ? y : wf_add(x, y);
    }
    any_rng = outside;
    return seldom(100) ? NULL : x;
}

static wf_tensor *any_checkpoint(wf_tensor *x)
{
    static wf_rng starts[256];
    wf_rng *start = &starts[below(256)];
    *start = wf_rng_new((uint64_t)below(1 << 30), 3);
    return wf_checkpoint(seldom(200) ? NULL : several_ops, start, x);
}

static wf_tensor *any_op(void)
{
    wf_tensor *a = below(50) ? real() : any(), *b = below(50) ? like(a, false) : any(), *c = below(50) ? like(a, false) : any();
    wf_tensor *m = below(50) ? like(a, true) : b, *ids = pool[4 + below(3)], *parts[12] = {a, b, c, a, b, c, a, b, NULL};
    wf_shape s = any_shape();
    static wf_tensor *(*const arithmetic[])(wf_tensor *, wf_tensor *) = {wf_add, wf_subtract, wf_mul, wf_div};
    switch (below(35)) {
    case 29:
    case 30:
    case 31:
        return any_arrangement(a, ids);
    case 32:
        return any_row_loss(a, below(9) ? like(a, false) : b);
    case 33:
        return any_recurrent(a, b, c);
    case 34:
        return any_selective_scan(a, b, c);
    case 0:
    case 1:
    case 2:
    case 3:
        return arithmetic[below(4)](a, b);
    case 4:
        return below(2) ? wf_affine(a, any_number(2), any_number(1)) : wf_scale(a, any_number(2));
    case 5:
    case 6:
    case 7:
        return function_of(a);
    case 8:
        return wf_reshape_to(a, seldom(200) ? NULL : seldom(4) ? &s : below(2) ? WF_SHAPE(-1) : WF_SHAPE(2, -1));
    case 9:
        return wf_transpose(a, any_dim(), any_dim());
    case 10:
        return wf_slice(a, any_dim(), below(2), below(9) ? 1 : any_size());
    case 11:
        wf_split(a, any_dim(), seldom(4) ? (int)below(9) : 1 + (int)below(2), parts);
        return parts[0];
    case 12:
        parts[1] = below(2) ? a : b;
        return wf_concat(parts, seldom(20) ? (int)below(12) - 1 : 1 + (int)below(2), any_dim());
    case 13:
        return wf_expand_to(a, seldom(200) ? NULL : seldom(4) ? &s : below(2) ? WF_SHAPE(2, 3, -1, 6) : WF_SHAPE(2, -1, -1));
    case 14:
        return any_reduction(a, b, c);
    case 15:
        return wf_matmul(a, seldom(3) ? b : wf_transpose(a, -1, -2));
    case 16:
        return wf_matmul(a, wf_transpose(m, -1, -2));
    case 17:
        return wf_linear(a, m, below(9) ? NULL : c);
    case 18:
        return any_indexing(a, m, b, below(9) ? ids : b);
    case 19:
        if (seldom(2))
            return seldom(2) ? wf_batch_norm_running(a, b, c, below(9) ? NULL : m, NULL, any_number(1e-5))
                             : wf_batch_norm(a, below(9) ? NULL : b, below(9) ? NULL : c, any_number(1e-5), &parts[1], &parts[2]);
        return below(2) ? wf_layer_norm(a, below(9) ? NULL : b, below(9) ? NULL : c, any_number(1e-5))
                        : wf_rms_norm(a, below(9) ? NULL : b, any_number(1e-5));
    case 20:
        return below(2)   ? wf_dropout(a, any_number(0.3))
               : below(2) ? wf_relu_dropout(a, any_number(0.3))
                          : wf_dropout_add(a, b, any_number(0.3));
    case 21:
    case 22:
        return any_attention(a, b, c);
    case 23:
        return any_loss(a, m, c, below(9) ? ids : b);
    case 24:
        return any_view(a);
    case 25:
        return any_checkpoint(a);
    case 26:
        return with_constants(a, b);
    case 27:
        return any_choice(a, b);
    default:
        return below(3) == 0 ? mistaken_call(parts) : make((int)below(9));
    }
}

static bool sometimes(void *ctx)
{
    (void)ctx;
    return seldom(40);
}

/* Calls that leave the tensors as they are, and reads. */
static void other_call(void)
{
    static wf_real out[64];
    wf_tensor *x = any();
    wf_array a;
    wf_shape s;
    double value;
    wf_status status = WF_OK;
    switch (below(19)) {
    case 0:
        if (!seldom(9))
            x = wf_sum(real());
        status = wf_item(x, &value);
        break;
    case 1:
        s = wf_shape_of(x);
        status = wf_read(x, out, seldom(9) || wf_shape_count(&s) > 64 ? below(65) : wf_shape_count(&s));
        break;
    case 2:
        status = wf_view(x, &a);
        break;
    case 3: /* no gradient is no error of the tape */
        status = wf_grad(x, &a) == WF_OK ? WF_OK : wf_tape_error(tape)->code;
        break;
    case 4:
        wf_name(x, below(9) ? "a name" : NULL);
        break;
    case 5:
        ck_assert_ptr_nonnull(wf_name_of(x));
        ck_assert(wf_dim(x, any_dim()) >= 0 && wf_ndim(x) >= 0 && (int)wf_dtype_of(x) >= 0);
        break;
    case 6:
        wf_tape_first_row(tape, (uint64_t)any_size());
        break;
    case 7:
        wf_tape_check_finite(tape, below(2));
        break;
    case 8:
        mark[below(MARKS)] = wf_tape_here(below(20) ? tape : other);
        break;
    case 9:
        if (seldom(4)) {
            wf_tape_mark at = mark[below(MARKS)];
            wf_tensor *kept = below(3) ? wf_tape_rewind(tape, at, below(2) ? x : NULL) : wf_tape_compact(at, x);
            if (kept || wf_tape_error(tape)->code == WF_OK)
                for (int i = 4; i < POOL; i++) /* some of them are gone */
                    pool[i] = i == 9 && kept ? kept : make(i < 7 ? 0 : (int)below(9));
            return;
        }
        break;
    case 10:
        ck_assert(wf_tape_stats(tape).used <= wf_tape_stats(tape).reserved);
        break;
    case 11:
        wf_tape_memory(tape, seldom(50) ? SIZE_MAX >> below(20) : (size_t)below(5000));
        break;
    case 12:
        wf_tape_use(below(4) ? tape : other);
        break;
    case 13:
        wf_release(x);
        break;
    case 14:
        if (seldom(20))
            wf_tape_fail(tape, (wf_status)below(12), "line %d", 1);
        break;
    case 15:
        wf_tape_no_grad(tape, seldom(3));
        break;
    case 16: {
        wf_tensor *of[] = {x, real(), NULL, any()};
        wf_tape *its = wf_tape_of_operands((int)below(5), of);
        ck_assert(!its || its == tape || its == other);
        break;
    }
    case 17: {
        wf_tensor *of[] = {real(), real(), x}, *g[3];
        int count = seldom(50) ? (int)below(4) : 1 + (int)below(2);
        x = below(2) ? wf_sum(real()) : real();
        if (seldom(8)) {
            wf_tensor *v[] = {real(), x, any()};
            status = below(2) ? wf_hvp(x, count, of, v, g) : wf_jvp(x, count, of, v, &g[0], .create_graph = below(2));
            count = status == WF_OK ? count : 0;
            break;
        }
        status = wf_gradients(x, count, of, g, .gradient = seldom(9) ? any() : NULL, .retain = below(2), .create_graph = below(3) == 0,
                              .allow_unused = below(2));
        for (int i = 0; i < count; i++)
            pool[8 + below(POOL - 8)] = g[i];
        break;
    }
    default:
        if (seldom(9))
            status = wf_backward(x = real(), .gradient = seldom(3) ? any() : NULL, .retain = below(2));
        break;
    }
    if (status != WF_OK) {
        wf_error copy = {0};
        ck_assert_int_ne(wf_tape_status(tape, &copy), WF_OK);
    }
    /* NULL and parameters stand for the tape that was used last. */
    ck_assert_msg(status == WF_OK || wf_tape_error(tape)->code != WF_OK || !x || wf_tape_of(x) != tape, "a status %d without a message",
                  (int)status);
}

/* The tape goes on after this: from its next pass. */
static void look(wf_tensor *x)
{
    static wf_real out[1 << 16];
    const wf_error *e = wf_tape_error(tape);
    ck_assert_ptr_nonnull(x);
    if (e->code != WF_OK) {
        check_message(e, "a tape");
        return;
    }
    if (wf_is_poison(x)) { /* poison of the pass before: reading it fails */
        double value;
        ck_assert_int_ne(wf_item(x, &value), WF_OK);
        ck_assert_msg(wf_tape_of(x) != tape || e->code != WF_OK, "poison without a message");
        return;
    }
    wf_shape s = wf_shape_of(x);
    int64_t count = wf_shape_count(&s);
    ck_assert(count >= 0);
    if (wf_tape_of(x) == tape && wf_dtype_of(x) == WF_REAL && count <= 1 << 16)
        ck_assert_msg(wf_read(x, out, count) == WF_OK || e->code != WF_OK, "a read failed without a message");
}

START_TEST(any_calls)
{
    wf_error e = {0};
    wf_registry *registry = wf_registry_new(&e);
    wf_scope root = wf_root(registry);
    wf_tensor *parameter[] = {wf_parameter(root, "a", WF_SHAPE(4, 6)), wf_parameter(root, "b", WF_SHAPE(6)),
                              wf_parameter(root, "c", WF_SHAPE(3, 2), .frozen = true), wf_parameter(root, "d", WF_SHAPE(2, 2))};
    wf_tensor *w = wf_parameter(root, "w", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 2});
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_set_threads(1, error));
    tape = wf_tape_new(&e);
    other = wf_tape_new(&e);
    ck_assert_msg(tape && other, "%s", e.message);
    any_rng = wf_rng_new(11, 5);
    int64_t good = 0, failed = 0, backward = 0,
            passes = getenv("WF_FUZZ_CALLS") ? atoll(getenv("WF_FUZZ_CALLS")) / 2
                     : sanitized()           ? PASSES / 5
                                             : PASSES;
    for (int64_t pass = 0; pass < passes; pass++) {
        wf_tape_reset(other, WF_TRAIN);
        of_other = wf_zeros(other, WF_SHAPE(2, 2));
        wf_tape_cancel(tape, seldom(50) ? sometimes : NULL, NULL);
        wf_tape_reset(tape, (wf_mode)(below(200) ? below(3) : below(9) - 2), .seed = (uint64_t)pass, .step = (uint64_t)below(3),
                      .first_row = (uint64_t)below(4), .exact = below(2));
        for (int i = 0; i < POOL; i++)
            if (pass == 0 || below(400)) /* otherwise one of the pass before */
                pool[i] = i < 4 ? parameter[i] : below(400) ? make(i < 7 ? 0 : i == 7 ? 1 : (int)below(60)) : (wf_tensor *)of_other;
        for (int64_t i = below(CALLS); i >= 0 && wf_tape_error(tape)->code == WF_OK; i--) {
            wf_tensor *x = any_op();
            if (x || wf_tape_error(tape)->code != WF_OK) {
                look(x ? x : wf_zeros(tape, WF_SHAPE(1)));
                pool[8 + below(POOL - 8)] = x;
                good++;
            }
            if (below(2))
                other_call();
        }
        failed += wf_tape_error(tape)->code != WF_OK;
        wf_tensor *loss = below(3) ? wf_sum(real()) : any();
        wf_status status = wf_backward(loss);
        ck_assert(status == WF_OK || !loss || wf_tape_of(loss) != tape || wf_tape_error(tape)->code == status);
        backward += status == WF_OK;
        if (pass % 8 == 0)
            check_right_pass(tape, w);
    }
    ck_assert_msg(good > passes / 20 && failed > passes / 200 && backward > passes / 400,
                  "%lld calls, %lld passes that failed, %lld backward", (long long)good, (long long)failed, (long long)backward);
    if (getenv("VERBOSE"))
        printf("%lld passes, %lld calls, %lld passes that failed, %lld backward\n", (long long)passes, (long long)good, (long long)failed,
               (long long)backward);
    wf_tape_free(tape);
    wf_tape_free(other);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("any_calls", any_calls)
