/* SPDX-License-Identifier: MIT */
/* Calls of ops with random, often wrong arguments: all ops in their test cases, and functions with arguments of their own. */
#ifndef TESTS_ANY_CALLS_OPS_H
#define TESTS_ANY_CALLS_OPS_H

#include "any_calls_options.h"
#include "any_ops.h"
#include "cases.h"

enum { CASE_ELEMENTS = 2000 };

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
    static wf_tensor *(*const functions[])(wf_tensor *) = {wf_neg,  wf_exp,     wf_log,    wf_relu,        wf_contiguous, wf_sum,
                                                           wf_mean, wf_softmax, wf_detach, wf_retain_grad, wf_keep};
    return functions[below((int64_t)(sizeof functions / sizeof *functions))](x);
}

/* No larger than `shape` in any dimension, because the attributes of a case may hold lists that are as long as its operands. */
static wf_tensor *odd_operand(const wf_shape *shape)
{
    wf_tensor *x = any();
    wf_shape s = *shape;
    bool within = !x || wf_ndim(x) == s.ndim;
    for (int d = 0; d < s.ndim; d++) {
        within = within && wf_dim(x, d) <= s.dim[d];
        s.dim[d] = below(2) ? s.dim[d] : below(s.dim[d] + 1);
    }
    return within     ? x
           : below(2) ? wf_input(tape, any_data, &s, below(2))
           : below(2) ? wf_ids_of(tape, (const int32_t *)any_data, &s)
                      : wf_bools(tape, (const bool *)any_data, &s);
}

/* An op of ops.def in one of its test cases, with operands that mostly fit. */
static wf_tensor *any_case(void)
{
    static wf_real values[CASE_ELEMENTS];
    const wf_op *op = wf_op_at((int)below(wf_op_count()));
    const struct wf_case *c = &op->cases.list[below(op->cases.count)];
    const int64_t odd = below(4) ? -1 : below(3);
    const int n = wf_case_operands(c), outputs = seldom(20) ? 1 + (int)below(WF_MAX_OUTPUTS) : 1;
    wf_tensor *in[WF_MAX_INPUTS] = {NULL}, *out[WF_MAX_OUTPUTS];
    for (int i = 0; i < n; i++) {
        wf_shape shape;
        if (!wf_case_operand(c, i, &shape))
            continue;
        const int64_t count = wf_shape_count(&shape);
        if (count > CASE_ELEMENTS)
            return NULL;
        wf_case_fill(c->fill[i], c->limit[i] + seldom(50), count, &any_rng, values);
        in[i] = i == odd ? odd_operand(&shape) : case_tensor(tape, c->fill[i], values, &shape, below(2));
    }
    wf_apply_multi(op, seldom(100) ? NULL : c->attr, n, in, outputs, out);
    for (int j = 1; j < outputs; j++)
        add_to_pool(out[j]);
    return out[0];
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

static wf_tensor *with_constants(wf_tensor *a)
{
    static wf_tensor *(*const of_number[])(wf_tensor *, double) = {wf_pow_constant, wf_softplus,     wf_leaky_relu,
                                                                   wf_elu,          wf_add_constant, wf_div_constant};
    const double p = any_number(1);
    switch (below(10)) {
    case 0:
        return wf_pow_constant(a, (double)below(7) - 3);
    case 1:
        return wf_clamp(a, p, any_number(2));
    case 2:
        return wf_constant_minus(p, a);
    case 3:
        return wf_constant_over(p, a);
    default:
        return of_number[below(6)](a, p);
    }
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
    static wf_tensor *(*const constant[])(wf_tensor *, double) = {wf_eq_constant, wf_ne_constant, wf_lt_constant,
                                                                  wf_le_constant, wf_gt_constant, wf_ge_constant};
    wf_tensor *c = seldom(9) ? any() : constant[below(6)](a, any_number(0));
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
    switch (below(42)) {
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
        return with_constants(a);
    case 27:
        return any_choice(a, b);
    case 28:
        return below(3) == 0 ? mistaken_call(parts) : make((int)below(9));
    default:
        return any_case();
    }
}

#endif
