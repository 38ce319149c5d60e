/* SPDX-License-Identifier: MIT */
/* Mixture of experts: against PyTorch (tests/golden/make_moe.py), rows alone, empty batches, experts that no row chose, mistakes. */
#include <weft/moe.h>

#include "../golden/golden.h"
#include "nn_test.h"

static void against_torch(const char *name, int experts, struct wf_moe_options o, double balance)
{
    struct rig r = rig_open("moe", name);
    struct wf_moe m;
    struct wf_moe_routing routing;
    wf_moe_init_with(wf_root(r.registry), &m, 6, 10, experts, &o);
    rig_start(&r, WF_GRADIENTS, 0.5);
    wf_tensor *y = wf_moe_forward(&m, rig_input(&r, "x", WF_SHAPE(3, 5, 6), 1), .routing = &routing);
    rig_check(&r, balance > 0 ? wf_add(y, wf_scale(wf_moe_balance(&routing, 1), balance)) : y);
}

START_TEST(as_pytorch)
{
    against_torch("mixtral", 5, (struct wf_moe_options){.activation = WF_SWIGLU, .no_bias = true}, 0.7);
    against_torch("switch", 4, (struct wf_moe_options){.chosen = 1, .raw_weights = true, .activation = WF_GELU}, 0.3);
    against_torch("dense", 3, (struct wf_moe_options){.chosen = 3, .activation = WF_RELU}, 0);
    against_torch("one", 1, (struct wf_moe_options){.activation = WF_SILU}, 0);
}
END_TEST

START_TEST(balance_over_two_layers)
{
    struct rig r = rig_open("moe", "two");
    struct wf_moe a, b;
    struct wf_moe_routing routing[2];
    wf_moe_init(wf_sub(wf_root(r.registry), "a"), &a, 6, 10, 4, .activation = WF_SWIGLU, .no_bias = true);
    wf_moe_init(wf_sub(wf_root(r.registry), "b"), &b, 6, 10, 4, .activation = WF_SWIGLU, .no_bias = true);
    rig_start(&r, WF_GRADIENTS, 0.5);
    wf_tensor *x = rig_input(&r, "x", WF_SHAPE(3, 5, 6), 1);
    x = wf_moe_forward(&a, x, .residual = x, .routing = &routing[0]);
    wf_tensor *y = wf_moe_forward(&b, x, .routing = &routing[1]);
    rig_check(&r, wf_add(y, wf_scale(wf_moe_balance(routing, 2), 0.5)));
}
END_TEST

enum { D = 48, FF = 96, EXPERTS = 6, ROWS = 70 };

struct trial {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_moe m;
    wf_real *x; /* [ROWS, D] */
};

static struct trial begin(void)
{
    struct trial t = {.registry = new_registry(), .tape = new_tape(), .x = malloc(ROWS * D * sizeof(wf_real))};
    wf_moe_init(wf_root(t.registry), &t.m, D, FF, EXPERTS, .activation = WF_SWIGLU);
    ck_ok(wf_registry_build(t.registry, 3, error));
    wf_fill_normal(t.x, ROWS * D, 0, 1, 5, 1);
    return t;
}

static void end(struct trial *t)
{
    wf_tape_free(t->tape);
    wf_registry_free(t->registry);
    free(t->x);
}

START_TEST(a_row_alone_has_the_same_bits)
{
    struct trial t = begin();
    wf_real all[ROWS * D], some[ROWS * D];
    for (int threads = 1; threads <= 5; threads += 2) {
        ck_ok(wf_set_threads(threads, error));
        wf_tape_reset(t.tape, WF_INFER);
        ck_read(wf_moe_forward(&t.m, wf_input(t.tape, t.x, WF_SHAPE(7, 10, D), false)), threads == 1 ? all : some, ROWS * D);
        ck_assert_msg(threads == 1 || memcmp(all, some, sizeof all) == 0, "%d threads give other bits", threads);
    }
    static const int range[][2] = {{0, 1}, {69, 1}, {33, 1}, {3, 2}, {10, 31}, {1, 69}};
    for (int i = 0; i < 6; i++) {
        const int first = range[i][0], n = range[i][1];
        wf_tape_reset(t.tape, WF_INFER);
        wf_tensor *x = wf_input(t.tape, t.x + first * D, WF_SHAPE(n, D), false);
        ck_read(wf_moe_forward(&t.m, x), some, (int64_t)n * D);
        ck_assert_msg(memcmp(some, all + first * D, (size_t)n * D * sizeof *some) == 0, "rows %d + %d", first, n);
    }
    end(&t);
}
END_TEST

/* A router that sends all rows to two of the experts: none is dropped, and the others have a gradient of zeros or none. */
START_TEST(an_even_or_uneven_load)
{
    struct trial t = begin();
    wf_real *w = wf_registry_values(t.registry) + wf_parameter_info(t.m.router.weight)->offset, y[ROWS * D], all[ROWS * D];
    struct wf_moe_routing routing;
    double loss;
    memset(w, 0, EXPERTS * D * sizeof *w); /* ties: the first two */
    for (int pass = 0; pass < 2; pass++) {
        wf_tape_reset(t.tape, WF_GRADIENTS);
        wf_tensor *x = wf_input(t.tape, t.x, WF_SHAPE(ROWS, D), true), *out = wf_keep(wf_moe_forward(&t.m, x, .routing = &routing));
        ck_assert_int_eq(wf_dim(routing.chosen, 0), ROWS);
        ck_assert(wf_item(wf_moe_balance(&routing, 1), &loss) == WF_OK && fabs(loss - 2) < 1e-5); /* p is even: 6 (1/6 + 1/6) */
        ck_backward(out);
        ck_read(out, y, ROWS * D);
        wf_array g;
        if (wf_grad(t.m.expert[4].up.weight, &g) == WF_OK)
            for (int64_t i = 0; i < FF * D; i++)
                ck_assert(((const wf_real *)g.data)[i] == 0);
        wf_tape_reset(t.tape, WF_GRADIENTS);
        x = wf_input(t.tape, t.x, WF_SHAPE(ROWS, D), false);
        wf_tensor *both = wf_scale(wf_add(wf_ffn_forward(&t.m.expert[0], x), wf_ffn_forward(&t.m.expert[1], x)), 0.5);
        ck_read(both, all, ROWS * D);
        for (int i = 0; i < ROWS * D; i++)
            ck_assert(fabs((double)y[i] - (double)all[i]) < 1e-5);
    }
    end(&t);
}
END_TEST

START_TEST(empty_batches_vectors_and_views)
{
    struct trial t = begin();
    wf_real y[ROWS * D], row[D];
    struct wf_moe_routing routing;
    double loss;
    wf_tape_reset(t.tape, WF_TRAIN);
    wf_tensor *none = wf_input(t.tape, t.x, WF_SHAPE(0, 3, D), true),
              *out = wf_moe_forward(&t.m, none, .residual = none, .routing = &routing);
    ck_assert_msg(wf_item(wf_moe_balance(&routing, 1), &loss) == WF_OK, "%s", wf_tape_error(t.tape)->message);
    ck_assert(wf_dim(out, 1) == 3 && loss == 0);
    ck_backward(wf_sum(out));
    wf_tape_reset(t.tape, WF_INFER);
    wf_tensor *x = wf_input(t.tape, t.x, WF_SHAPE(ROWS, D), false);
    ck_read(wf_moe_forward(&t.m, x), y, ROWS * D);
    ck_read(wf_moe_forward(&t.m, wf_reshape(wf_slice(x, 0, 9, 1), D)), row, D);
    ck_assert_mem_eq(row, y + 9 * D, sizeof row);
    wf_tensor *turned = wf_transpose(wf_contiguous(wf_transpose(x, 0, 1)), 0, 1); /* strided */
    wf_real again[ROWS * D];
    ck_read(wf_moe_forward(&t.m, turned), again, ROWS * D);
    ck_assert_mem_eq(again, y, sizeof y);
    end(&t);
}
END_TEST

static wf_tensor *recomputed(void *ctx, wf_tensor *x)
{
    return wf_moe_forward(ctx, x, .residual = x);
}

/* A checkpoint routes the rows as before. The memory of a pass does not grow with the steps. */
START_TEST(checkpoints_and_memory_of_steps)
{
    struct trial t = begin();
    wf_real gradient[2][ROWS * D];
    size_t reserved = 0;
    for (int pass = 0; pass < 6; pass++) {
        wf_tape_reset(t.tape, WF_TRAIN, .step = (uint64_t)pass / 2);
        wf_tensor *x = wf_input(t.tape, t.x, WF_SHAPE(ROWS, D), true);
        ck_backward(pass % 2 ? wf_checkpoint(recomputed, &t.m, x) : recomputed(&t.m, x));
        memcpy(gradient[pass % 2], gradient_of(x), sizeof *gradient);
        ck_assert(pass % 2 == 0 || memcmp(gradient[0], gradient[1], sizeof *gradient) == 0);
        ck_assert(pass < 3 || wf_tape_stats(t.tape).reserved == reserved);
        reserved = wf_tape_stats(t.tape).reserved;
    }
    end(&t);
}
END_TEST

START_TEST(mistakes_are_named)
{
    static const struct {
        int experts, chosen;
    } bad[] = {{0, 0}, {3, 4}, {2, -1}};
    for (int i = 0; i < 3; i++) {
        wf_registry *registry = new_registry();
        struct wf_moe m;
        wf_moe_init(wf_root(registry), &m, 4, 8, bad[i].experts, .chosen = bad[i].chosen);
        declared_wrong(registry, "a row cannot go to ");
    }
    struct trial t = begin();
    ck_poison(wf_moe_forward(&t.m, wf_zeros(t.tape, WF_SHAPE(5))), "linear(reshape [1,5], router.weight [6,48])");
    ck_poison(wf_moe_forward(&t.m, wf_zeros(t.tape, &(wf_shape){0})), "moe: x must be [...,d]");
    ck_poison(wf_moe_forward(&t.m, NULL), "is NULL");
    end(&t);
}
END_TEST

WF_TEST_MAIN("moe", as_pytorch, balance_over_two_layers, a_row_alone_has_the_same_bits, an_even_or_uneven_load,
             empty_batches_vectors_and_views, checkpoints_and_memory_of_steps, mistakes_are_named)
