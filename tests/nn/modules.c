/* SPDX-License-Identifier: MIT */
/* The modules against PyTorch: results and all gradients, from the same weights and inputs (tests/golden/make_torch.py). */
#include "../golden/golden.h"
#include "nn_test.h"

START_TEST(linear)
{
    struct rig r = rig_open("modules", "linear");
    struct wf_linear m;
    wf_linear_init(wf_root(r.registry), &m, 7, 11);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_linear_forward(&m, rig_input(&r, "x", WF_SHAPE(3, 5, 7), 1)));

    r = rig_open("modules", "linear_plain");
    wf_linear_init(wf_root(r.registry), &m, 7, 11, .no_bias = true);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_linear_forward(&m, rig_input(&r, "x", WF_SHAPE(4, 7), 1)));
}
END_TEST

START_TEST(embedding)
{
    struct rig r = rig_open("modules", "embedding");
    struct wf_embedding m;
    wf_embedding_init(wf_root(r.registry), &m, 9, 6, .scale = 2.5);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_embedding_forward(&m, rig_ids(&r, "ids", 3, 5, 9)));
}
END_TEST

START_TEST(norms)
{
    struct rig r = rig_open("modules", "layer_norm");
    struct wf_layer_norm m;
    wf_layer_norm_init(wf_root(r.registry), &m, 10);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_layer_norm_forward(&m, rig_input(&r, "x", WF_SHAPE(4, 3, 10), 1)));

    r = rig_open("modules", "layer_norm_plain");
    wf_layer_norm_init(wf_root(r.registry), &m, 10, .no_bias = true, .eps = 1e-3);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_layer_norm_forward(&m, rig_input(&r, "x", WF_SHAPE(4, 3, 10), 1)));

    r = rig_open("modules", "rms_norm");
    struct wf_rms_norm n;
    wf_rms_norm_init(wf_root(r.registry), &n, 10);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_rms_norm_forward(&n, rig_input(&r, "x", WF_SHAPE(4, 3, 10), 1)));

    r = rig_open("modules", "rms_norm_from_one");
    wf_rms_norm_init(wf_root(r.registry), &n, 10, .eps = 1e-6, .from_one = true);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_rms_norm_forward(&n, rig_input(&r, "x", WF_SHAPE(4, 3, 10), 1)));
}
END_TEST

START_TEST(feed_forward)
{
    static const char *const names[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu_tanh"};
    for (int a = WF_RELU; a <= WF_GEGLU_TANH + 1; a++) {
        bool plain = a > WF_GEGLU_TANH;
        enum wf_activation activation = plain ? WF_SWIGLU : (enum wf_activation)a;
        char name[64];
        snprintf(name, sizeof name, "ffn_%s%s", names[activation], plain ? "_plain" : "");
        struct rig r = rig_open("modules", name);
        struct wf_ffn m;
        wf_ffn_init(wf_root(r.registry), &m, 6, 10, .activation = activation, .no_bias = plain);
        rig_start(&r, WF_GRADIENTS, 0.5);
        rig_check(&r, wf_ffn_forward(&m, rig_input(&r, "x", WF_SHAPE(3, 4, 6), 1)));
    }
}
END_TEST

START_TEST(positions)
{
    for (int learned = 0; learned < 2; learned++) {
        struct rig r = rig_open("modules", learned ? "positions_learned" : "positions");
        struct wf_positions m;
        wf_positions_init(wf_root(r.registry), &m, 12, 10, .learned = learned);
        rig_start(&r, WF_GRADIENTS, 0.5);
        ck_assert_int_eq(wf_registry_parameters(r.registry), learned ? 120 : 0); /* the table is no parameter */
        rig_check(&r, wf_positions_forward(&m, rig_input(&r, "x", WF_SHAPE(2, 7, 10), 1), NULL));
    }
}
END_TEST

START_TEST(positions_past_the_end_are_an_error)
{
    struct rig r = rig_open("modules", "positions");
    struct wf_positions m;
    wf_positions_init(wf_root(r.registry), &m, 12, 10);
    rig_start(&r, WF_GRADIENTS, 0.5);
    ck_poison(wf_positions_forward(&m, rig_input(&r, "x", WF_SHAPE(2, 13, 10), 1), NULL),
              "positions: 13 positions are needed, the model has 12: shorten the input");
    rig_close(&r);
}
END_TEST

/* --- attention: B 2, T 5, S 7, d 12 -------------------------------------------------------------------------------- */

static struct rig attend(const char *name, struct wf_mha *m, int heads, const struct wf_mha_options *o)
{
    struct rig r = rig_open("modules", name);
    wf_mha_init_with(wf_root(r.registry), m, 12, heads, o);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_input(&r, "x", WF_SHAPE(2, 5, 12), 1);
    if (o->cross)
        rig_input(&r, "memory", WF_SHAPE(2, 7, o->d_memory ? o->d_memory : 12), 1);
    return r;
}
#define ATTEND(name, m, heads, ...) attend(name, m, heads, &(struct wf_mha_options){__VA_ARGS__})

/* Result, attention weights and gradients of self-attention. */
static void check_weights(struct rig *r, struct wf_mha *m, wf_tensor *mask)
{
    wf_tensor *weights, *y = wf_mha_forward(m, r->input[0], .mask = mask, .weights = &weights);
    rig_compare(r, "weights", weights, false);
    rig_check(r, y);
}

START_TEST(attention_alone)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_self", &m, 4, 0);
    check_weights(&r, &m, NULL);

    r = ATTEND("mha_causal", &m, 4, 0);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));

    r = ATTEND("mha_gqa", &m, 4, .kv_heads = 2);
    ck_assert_int_eq(wf_dim(m.qkv.weight, 0), 12 + 2 * 6);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true, .key_lengths = (int32_t[]){5, 4}));

    r = ATTEND("mha_widths", &m, 4, .d_key = 5, .d_value = 3);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));

    /* One head, values as wide as the model, no projection: attention as its first drawing has it. */
    r = ATTEND("mha_no_output", &m, 1, .d_key = 4, .d_value = 12, .no_bias = true, .no_output = true);
    check_weights(&r, &m, NULL);
}
END_TEST

/* Row 1 may attend to nothing, and so may query 2 of row 0 under the mask: zeros, with zero gradients. */
START_TEST(attention_masked)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_lengths", &m, 4, 0);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .key_lengths = (int32_t[]){3, 0}));

    r = ATTEND("mha_mask", &m, 4, 0);
    bool may[50];
    for (int i = 0; i < 50; i++)
        may[i] = formula_id(formula_name("mha_mask/mask", NULL), i, 2) && i / 5 != 2;
    check_weights(&r, &m, wf_bools(r.tape, may, WF_SHAPE(2, 1, 5, 5)));
}
END_TEST

START_TEST(attention_across)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_cross", &m, 4, .cross = true, .d_memory = 8);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .memory = r.input[1], .key_lengths = (int32_t[]){7, 4}));

    r = ATTEND("mha_cross_gqa", &m, 4, .cross = true, .kv_heads = 1, .no_bias = true);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .memory = r.input[1]));
}
END_TEST

START_TEST(attention_refuses)
{
    const struct {
        int heads;
        struct wf_mha_options options;
        const char *message;
    } bad[] = {
        {5, {0}, "a.b: heads = 5 does not divide the width 12: choose a divisor"},
        {0, {0}, "a.b: heads = 0 does not divide the width 12: choose a divisor"},
        {4, {.kv_heads = 3}, "a.b: kv_heads = 3 does not divide heads = 4"},
        {4, {.dropout = 1.5}, "a.b: dropout 1.5 is not in 0 <= p < 1"},
        {4, {.dropout = NAN}, "a.b: dropout nan is not in 0 <= p < 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_mha m;
        wf_registry *registry = new_registry();
        wf_mha_init_with(wf_sub(wf_sub(wf_root(registry), "a"), "b"), &m, 12, bad[i].heads, &bad[i].options);
        declared_wrong(registry, bad[i].message);
    }
    struct wf_mha m;
    struct rig r = ATTEND("mha_cross", &m, 4, .cross = true, .d_memory = 8);
    ck_poison(wf_mha_forward(&m, r.input[0]), "attention: cross-attention needs .memory or .memory_kv");
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("modules", linear, embedding, norms, feed_forward, positions, positions_past_the_end_are_an_error, attention_alone,
             attention_masked, attention_across, attention_refuses)
