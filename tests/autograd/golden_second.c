/* SPDX-License-Identifier: MIT */
/* Second derivatives against PyTorch, also at edge values: the file that tests/golden/make_second.py wrote. The gradients g_i of an op are
 * those of wf_gradients with .create_graph, and wf_backward differentiates s = sum of w_i g_i, by the operands and by the gradient v that
 * the op's result was given. */
#include "golden_ops.h"

static const struct wf_packed packed = {(const int32_t[]){0, 4, 5, 9}, 3};

CALL(f_abs, wf_abs(x[0]))
CALL(f_clamp, wf_clamp(x[0], -1, 1.5))
CALL(f_softplus, wf_softplus(x[0], 2))
CALL(f_leaky_relu, wf_leaky_relu(x[0], 0.25))
CALL(f_elu, wf_elu(x[0], 0.75))
CALL(f_softcap, wf_softcap(x[0], 2))
CALL(f_square, wf_square(x[0]))
CALL(f_pow_zero, wf_pow_constant(x[0], 0))
CALL(f_pow_one, wf_pow_constant(x[0], 1))
CALL(f_pow_two, wf_pow_constant(x[0], 2))
CALL(f_pow_three, wf_pow_constant(x[0], 3))
CALL(f_pow_five, wf_pow_constant(x[0], 5))
CALL(f_pow_half, wf_pow_constant(x[0], 0.5))
CALL(f_pow_minus_one, wf_pow_constant(x[0], -1))
CALL(f_pow_other, wf_pow_constant(x[0], 2.25))
CALL(f_pow, wf_pow(x[0], x[1]))
CALL(f_pow_of_zero, wf_pow(x[0], wf_input(tape, (const wf_real[]){-1.5, -1, 0, 0.5, 1, 2, 3.25}, WF_SHAPE(7), false)))
CALL(f_logaddexp, wf_logaddexp(x[0], x[1]))
CALL(f_rsqrt, wf_rsqrt(x[0]))
CALL(f_sin, wf_sin(x[0]))
CALL(f_cos, wf_cos(x[0]))
CALL(f_erf, wf_erf(x[0]))
CALL(f_sign, wf_sign(x[0]))
CALL(f_floor, wf_floor(x[0]))
CALL(f_log_sigmoid, wf_log_sigmoid(x[0]))
CALL(f_hard_swish, wf_hard_swish(x[0]))
CALL(f_mish, wf_mish(x[0]))
CALL(f_swiglu, wf_swiglu(x[0], x[1]))
CALL(f_geglu_tanh, wf_geglu_tanh(x[0], x[1]))

/* A part of the case as an input, or NULL if the file has none. */
static wf_tensor *part_of(const wf_safetensors *file, const char *name, const char *part)
{
    char key[96];
    const struct wf_safetensors_entry *entry = golden_find(file, name, part, key);
    return entry ? golden_operand(file, entry) : NULL;
}

static void compare(const wf_safetensors *file, const struct golden_case *g, const char *part, const wf_tensor *x)
{
    char key[96];
    wf_array view;
    ck_assert_msg(golden_find(file, g->name, part, key) != NULL, "%s is not in the file", key);
    ck_assert_msg(wf_grad(x, &view) == WF_OK, "%s: no gradient", key);
    golden_same(file, key, &view, sizeof(wf_real) == 8 ? g->size : fmax(g->size, 4)); /* sums of terms of about this size */
}

static void run(const wf_safetensors *file, const struct golden_case *g)
{
    begin(WF_GRADIENTS);
    enum { MOST = 4 };
    wf_tensor *operand[MOST], *real[MOST], *gradient[MOST], *w[MOST];
    int number[MOST], n = 0, reals = 0;
    char part[16];
    for (; snprintf(part, sizeof part, "%d", n), (operand[n] = part_of(file, g->name, part)) != NULL; n++)
        if (wf_dtype_of(operand[n]) == WF_REAL) {
            snprintf(part, sizeof part, "w.%d", n);
            w[reals] = part_of(file, g->name, part);
            number[reals] = n;
            real[reals++] = operand[n];
        }
    ck_assert_msg(reals > 0, "%s is not in the file", g->name);
    wf_tensor *v = part_of(file, g->name, "v"), *s = wf_scale(wf_sum(v), 0);
    ck_assert_msg(wf_gradients(g->function(operand), reals, real, gradient, .create_graph = true, .gradient = v) == WF_OK, "%s: %s",
                  g->name, trouble(v));
    for (int i = 0; i < reals; i++) { /* operands on which the gradients do not depend get zeros */
        s = wf_add(s, wf_sum(wf_mul(wf_detach(w[i]), gradient[i])));
        s = wf_add(s, wf_sum(wf_where(wf_bools(tape, &(bool){false}, WF_SHAPE(1)), real[i], wf_zeros(tape, WF_SHAPE(1)))));
    }
    ck_assert_msg(wf_backward(s) == WF_OK, "%s: %s", g->name, trouble(s));
    for (int i = 0; i < reals; i++) {
        snprintf(part, sizeof part, "d.%d", number[i]);
        compare(file, g, part, real[i]);
    }
    char key[96];
    if (golden_find(file, g->name, "d.v", key))
        compare(file, g, "d.v", v);
}

static void run_all(const struct golden_case *cases, size_t count)
{
    wf_safetensors *file = golden_open("ops_second");
    for (int s = 0; s < ISAS; s++)
        for (size_t i = 0; isa_used(s) && i < count; i++)
            run(file, &cases[i]);
    wf_safetensors_close(file);
}

START_TEST(elements)
{
    static const struct golden_case cases[] = {
        {"abs", f_abs},
        {"clamp", f_clamp},
        {"softplus", f_softplus},
        {"leaky_relu", f_leaky_relu},
        {"elu", f_elu},
        {"softcap", f_softcap, 1},
        {"square", f_square},
        {"pow_zero", f_pow_zero},
        {"pow_one", f_pow_one},
        {"pow_two", f_pow_two},
        {"pow_three", f_pow_three},
        {"pow_five", f_pow_five},
        {"pow_half", f_pow_half},
        {"pow_minus_one", f_pow_minus_one},
        {"pow_other", f_pow_other},
        {"pow", f_pow},
        {"pow_of_zero", f_pow_of_zero},
        {"logaddexp", f_logaddexp, 1},
        {"rsqrt", f_rsqrt},
        {"sin", f_sin},
        {"cos", f_cos},
        {"erf", f_erf},
        {"sign", f_sign},
        {"floor", f_floor},
        {"log_sigmoid", f_log_sigmoid, 1},
        {"hard_swish", f_hard_swish},
        {"mish", f_mish},
        {"swiglu", f_swiglu},
        {"geglu_tanh", f_geglu_tanh},
    };
    run_all(cases, sizeof cases / sizeof *cases);
}
END_TEST

CALL(f_var_0, wf_var_dim(x[0], 1, false, 0))
CALL(f_var_1, wf_var_dim(x[0], 1, false, 1))
CALL(f_std_0, wf_std_dim(x[0], 1, false, 0))
CALL(f_std_1, wf_std_dim(x[0], 1, false, 1))
CALL(f_norm_one, wf_norm_dim(x[0], 1, 1, false))
CALL(f_norm_two, wf_norm_dim(x[0], 2, 1, false))
CALL(f_norm_three, wf_norm_dim(x[0], 3, 1, false))
CALL(f_norm_half, wf_norm_dim(x[0], 0.5, 1, false))
CALL(f_norm_infinite, wf_norm_dim(x[0], INFINITY, 1, false))
CALL(f_prod, wf_prod_dim(x[0], 1, false))
CALL(f_prod_all, wf_prod(x[0]))
CALL(f_cumprod, wf_cumprod(x[0], 1))
CALL(f_cumprod_first, wf_cumprod(x[0], 0))
CALL(f_max, wf_max_dim(x[0], 1, false, NULL))
CALL(f_min, wf_min_dim(x[0], 0, true, NULL))
CALL(f_top_k, wf_top_k(x[0], 2, 1, NULL))
CALL(f_sort, wf_sort(x[0], 1, true, NULL))

START_TEST(reductions)
{
    static const struct golden_case cases[] = {
        {"var_0", f_var_0},
        {"var_1", f_var_1},
        {"std_0", f_std_0},
        {"std_1", f_std_1},
        {"std_same", f_std_1},
        {"norm_one", f_norm_one},
        {"norm_one_zeros", f_norm_one},
        {"norm_two", f_norm_two},
        {"norm_two_zeros", f_norm_two},
        {"norm_three", f_norm_three},
        {"norm_three_zeros", f_norm_three},
        {"norm_half", f_norm_half},
        {"norm_infinite", f_norm_infinite},
        {"norm_infinite_zeros", f_norm_infinite},
        {"prod", f_prod},
        {"prod_all", f_prod_all},
        {"cumprod", f_cumprod},
        {"cumprod_first", f_cumprod_first},
        {"max", f_max},
        {"min", f_min},
        {"top_k", f_top_k},
        {"sort", f_sort},
    };
    run_all(cases, sizeof cases / sizeof *cases);
}
END_TEST

CALL(f_flip, wf_flip(x[0], 1))
CALL(f_roll, wf_roll(x[0], 2, 1))
CALL(f_pad, wf_pad(x[0], 1, 1, 2, 0.5))
CALL(f_tril, wf_tril(x[0], -1))
CALL(f_triu, wf_triu(x[0], 1))
CALL(f_unfold, wf_unfold(x[0], 1, 3, 1))
CALL(f_embedding, wf_embedding(x[0], x[1]))
CALL(f_index_select, wf_index_select(x[0], 0, x[1]))
CALL(f_index_add, wf_index_add(x[0], 0, x[1], x[2]))
CALL(f_gather, wf_gather(x[0], 1, x[1]))
CALL(f_scatter_add, wf_scatter_add(x[0], 1, x[1], x[2]))
CALL(f_cumsum, wf_cumsum(x[0], 1))
CALL(f_scan, wf_scan(x[0], x[1], x[2], 1))
CALL(f_pad_rows, wf_pad_rows(x[0], packed, 0.5))
CALL(f_pack_rows, wf_pack_rows(x[0], packed))
CALL(f_mean_packed, wf_mean_packed(x[0], packed))
CALL(f_avg_pool, wf_avg_pool(x[0], 3, .stride = 2, .padding = 1))
CALL(f_avg_pool_inside, wf_avg_pool(x[0], 3, .stride = 2, .padding = 1, .skip_padding = true))
CALL(f_adaptive, wf_adaptive_avg_pool(x[0], 3, 4))
CALL(f_max_pool, wf_max_pool(x[0], 3, .stride = 2, .padding = 1))
CALL(f_nearest, wf_resize(x[0], 7, 4, WF_RESIZE_NEAREST))
CALL(f_linear, wf_resize(x[0], 7, 4, WF_RESIZE_LINEAR))
CALL(f_corners, wf_resize(x[0], 7, 4, WF_RESIZE_LINEAR_CORNERS))

START_TEST(places)
{
    static const struct golden_case cases[] = {
        {"flip", f_flip},
        {"roll", f_roll},
        {"pad", f_pad},
        {"tril", f_tril},
        {"triu", f_triu},
        {"unfold", f_unfold},
        {"embedding", f_embedding},
        {"index_select", f_index_select},
        {"index_add", f_index_add},
        {"gather", f_gather},
        {"scatter_add", f_scatter_add},
        {"cumsum", f_cumsum},
        {"scan", f_scan},
        {"pad_rows", f_pad_rows},
        {"pack_rows", f_pack_rows},
        {"mean_packed", f_mean_packed},
        {"avg_pool", f_avg_pool},
        {"avg_pool_inside", f_avg_pool_inside},
        {"adaptive", f_adaptive},
        {"max_pool", f_max_pool},
        {"nearest", f_nearest},
        {"linear", f_linear},
        {"corners", f_corners},
    };
    run_all(cases, sizeof cases / sizeof *cases);
}
END_TEST

/* The gradient of an op that takes elements reads their ids, so that x may be released. */
START_TEST(released)
{
    for (int which = 0; which < 4; which++) {
        begin(WF_GRADIENTS);
        wf_tensor *x = normal(1, WF_SHAPE(1, 2, 4, 6)), *h = wf_scale(x, 2), *y, *g, *expected;
        switch (which) {
        case 0:
            y = wf_max_pool(h, 2);
            break;
        case 1:
            y = wf_max_dim(h, 3, false, NULL);
            break;
        case 2:
            y = wf_top_k(h, 2, 3, NULL);
            break;
        default:
            y = wf_sort(h, 3, false, NULL);
        }
        wf_release(h);
        ck_assert_msg(wf_gradients(wf_square(wf_square(y)), 1, &x, &g, .create_graph = true) == WF_OK, "%s", trouble(y));
        wf_tensor *taken = wf_to_real(wf_ne_constant(g, 0));
        expected = wf_keep(wf_mul(taken, wf_scale(wf_square(x), 3 * 4 * 16)));
        ran(wf_gradients(wf_sum(g), 1, &x, &g));
        wf_real *want = value_of(expected), *have = value_of(g);
        same_numbers("the second derivative", have, want, 48, loose);
        free(want);
        free(have);
    }
}
END_TEST

WF_TEST_MAIN("second derivatives", elements, reductions, places, released)
