/* SPDX-License-Identifier: MIT */
/* The tape memory that modules hold; a module with .residual has the bits of a sum outside of it. */
#include <weft/memory.h>

#include "nn_test.h"

enum { B = 2, T = 96, D = 64, HEADS = 2 };

struct rig {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_mha self, cross, bare;
    struct wf_ffn ffn[WF_GEGLU_TANH + 1];
    wf_real x[B * T * D], memory[B * T * D];
};

static struct rig *start(double dropout)
{
    struct rig *r = wf_alloc_zero(1, sizeof *r);
    r->registry = new_registry();
    r->tape = new_tape();
    wf_scope s = wf_root(r->registry);
    wf_mha_init(wf_sub(s, "self"), &r->self, D, HEADS, .dropout = dropout, .residual_dropout = dropout);
    wf_mha_init(wf_sub(s, "cross"), &r->cross, D, HEADS, .cross = true, .residual_dropout = dropout);
    wf_mha_init(wf_sub(s, "bare"), &r->bare, D, HEADS, .no_output = true, .residual_dropout = dropout);
    for (int a = WF_RELU; a <= WF_GEGLU_TANH; a++)
        wf_ffn_init(wf_sub_at(s, "ffn", a), &r->ffn[a], D, 4 * D, .activation = (enum wf_activation)a, .dropout = dropout,
                    .residual_dropout = dropout);
    ck_ok(wf_registry_build(r->registry, 4, error));
    wf_fill_normal(r->x, B * T * D, 0, 1, 1, 1);
    wf_fill_normal(r->memory, B * T * D, 0, 1, 1, 2);
    return r;
}

static void stop(struct rig *r)
{
    wf_tape_free(r->tape);
    wf_registry_free(r->registry);
    wf_free(r);
}

enum { SELF, CROSS, CROSS_KV, BARE, FFN, CALLS = FFN + WF_GEGLU_TANH + 1 };

/* One of the modules; with `outside` its dropout and its sum are ops of the caller. */
static wf_tensor *call(const struct rig *r, int which, wf_tensor *x, wf_tensor *memory, bool outside)
{
    struct wf_mha self = r->self, cross = r->cross, bare = r->bare;
    struct wf_ffn ffn = r->ffn[which < FFN ? 0 : which - FFN];
    const double p = self.residual_dropout;
    if (outside)
        self.residual_dropout = cross.residual_dropout = bare.residual_dropout = ffn.residual_dropout = 0;
    wf_tensor *residual = outside ? NULL : x, *y = NULL, *kv = which == CROSS_KV ? wf_mha_memory(&cross, memory) : NULL;
    switch (which) {
    case SELF:
        y = wf_mha_forward(&self, x, .causal = true, .residual = residual);
        break;
    case CROSS:
        y = wf_mha_forward(&cross, x, .memory = memory, .residual = residual);
        break;
    case CROSS_KV:
        y = wf_mha_forward(&cross, x, .memory_kv = kv, .residual = residual);
        ck_assert(!wf_is_poison(wf_scale(kv, 2))); /* the caller's */
        break;
    case BARE:
        y = wf_mha_forward(&bare, x, .residual = residual);
        break;
    default:
        y = wf_ffn_forward(&ffn, x, .residual = residual);
    }
    return outside ? wf_add(x, p > 0 ? wf_dropout(y, p) : y) : y;
}

START_TEST(residual_is_the_sum)
{
    for (int dropout = 0; dropout < 2; dropout++) {
        struct rig *r = start(dropout ? 0.25 : 0);
        wf_grads *grads = wf_registry_grads(r->registry);
        const int64_t slab = grads->count;
        wf_real *value[2], *of_x[2], *of_weights[2];
        for (int o = 0; o < 2; o++) {
            value[o] = wf_alloc(sizeof r->x);
            of_x[o] = wf_alloc_zero(1, sizeof r->x);
            of_weights[o] = wf_alloc((size_t)slab * sizeof(wf_real));
        }
        for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++)
            for (int which = 0; which < CALLS; which++) {
                for (int o = 0; o < 2; o++) {
                    wf_tape_reset(r->tape, (wf_mode)mode, .seed = 3, .exact = true);
                    wf_grads_zero(grads);
                    memset(grads->slab, 0, (size_t)slab * sizeof(wf_real));
                    wf_tensor *x = wf_input(r->tape, r->x, WF_SHAPE(B, T, D), true);
                    wf_tensor *memory = wf_input(r->tape, r->memory, WF_SHAPE(B, T, D), true);
                    wf_tensor *y = wf_keep(call(r, which, wf_scale(x, 1), memory, o == 1));
                    ck_read(y, value[o], B * T * D);
                    if (mode == WF_INFER)
                        continue;
                    wf_array g;
                    ck_backward(wf_sum(wf_mul(y, y)));
                    ck_assert_int_eq(wf_grad(x, &g), WF_OK);
                    wf_array to = wf_array_contiguous(of_x[o], WF_REAL, WF_SHAPE(B, T, D));
                    wf_array_copy(&to, &g);
                    memcpy(of_weights[o], grads->slab, (size_t)slab * sizeof(wf_real));
                }
                ck_assert_msg(memcmp(value[0], value[1], sizeof r->x) == 0, "the value of %d in mode %d", which, mode);
                ck_assert_msg(memcmp(of_x[0], of_x[1], sizeof r->x) == 0, "the gradient of x of %d in mode %d", which, mode);
                ck_assert_msg(mode == WF_INFER || memcmp(of_weights[0], of_weights[1], (size_t)slab * sizeof(wf_real)) == 0,
                              "the gradients of the weights of %d in mode %d", which, mode);
            }
        for (int o = 0; o < 2; o++) {
            wf_free(value[o]);
            wf_free(of_x[o]);
            wf_free(of_weights[o]);
        }
        stop(r);
    }
}
END_TEST

/* Memory that each further call holds at the end of a forward, in multiples of [B,T,D]. */
static double held(struct rig *r, wf_mode mode, int which)
{
    enum { FEW = 3, MANY = 11 };
    size_t used[2];
    for (int i = 0; i < 2; i++) {
        wf_tape_reset(r->tape, mode);
        wf_tensor *x = wf_input(r->tape, r->x, WF_SHAPE(B, T, D), true), *memory = wf_input(r->tape, r->memory, WF_SHAPE(B, T, D), true);
        for (int n = 0; n < (i ? MANY : FEW); n++)
            x = call(r, which, x, memory, false);
        ck_assert_msg(!wf_is_poison(x), "%s", wf_tape_error(r->tape)->message);
        used[i] = wf_tape_stats(r->tape).used;
    }
    return (double)(used[1] - used[0]) / (MANY - FEW) / (double)sizeof r->x;
}

START_TEST(inner_tensors_are_released)
{
    const double records = 16 * 1024.0 / (B * T * D * sizeof(wf_real)); /* of a call */
    static const struct {
        int which;
        double most; /* in training: what backwards read, the result included */
    } row[] = {{SELF, 5},
               {CROSS, 5},
               {BARE, 5},
               {FFN + WF_RELU, 5},
               {FFN + WF_GELU, 9},
               {FFN + WF_SILU, 9},
               {FFN + WF_SWIGLU, 17},
               {FFN + WF_GEGLU_TANH, 17}};
    struct rig *r = start(0);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        double infer = held(r, WF_INFER, row[i].which), train = held(r, WF_TRAIN, row[i].which);
        ck_assert_msg(infer < 1 + records / 16, "%d holds %g x [B,T,D] in WF_INFER", row[i].which, infer);
        ck_assert_msg(train < row[i].most + records, "%d holds %g x [B,T,D] in WF_TRAIN, not %g", row[i].which, train, row[i].most);
    }
    stop(r);
}
END_TEST

START_TEST(operands_stay_the_callers)
{
    struct rig *r = start(0.1);
    for (int mode = WF_INFER; mode <= WF_TRAIN; mode++)
        for (int which = 0; which < CALLS; which++) {
            wf_tape_reset(r->tape, (wf_mode)mode);
            wf_tensor *x = wf_scale(wf_input(r->tape, r->x, WF_SHAPE(B, T, D), true), 2);
            wf_tensor *memory = wf_scale(wf_input(r->tape, r->memory, WF_SHAPE(B, T, D), true), 2);
            wf_tensor *y = call(r, which, x, memory, false);
            static wf_real before[B * T * D], after[B * T * D];
            ck_read(x, before, B * T * D);
            for (int i = 0; i < B * T * D; i++)
                ck_assert(before[i] == 2 * r->x[i]);
            ck_read(wf_add(wf_add(x, memory), y), after, B * T * D);
        }
    stop(r);
}
END_TEST

START_TEST(a_bad_dropout_of_the_residual)
{
    for (int i = 0; i < 2; i++) {
        wf_registry *registry = new_registry();
        struct wf_ffn ffn;
        struct wf_mha mha;
        if (i == 0)
            wf_ffn_init(wf_sub(wf_root(registry), "m"), &ffn, 4, 8, .residual_dropout = 1);
        else
            wf_mha_init(wf_sub(wf_root(registry), "m"), &mha, 4, 2, .residual_dropout = -0.5);
        declared_wrong(registry, i == 0 ? "dropout 1 is not in" : "dropout -0.5 is not in");
    }
}
END_TEST

WF_TEST_MAIN("lifetimes", residual_is_the_sum, inner_tensors_are_released, operands_stay_the_callers, a_bad_dropout_of_the_residual)
