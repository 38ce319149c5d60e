/* SPDX-License-Identifier: MIT */
/* Rotary positions and the options of attention against PyTorch (tests/golden/make_attention.py); refusals. */
#include "../golden/golden.h"
#include "nn_test.h"

/* --- wf_rope -------------------------------------------------------------------------------------------------------- */

static void rotate(const char *name, const wf_shape *shape, const struct wf_rope_options *o)
{
    struct rig r = rig_open("attention", name);
    rig_start(&r, WF_GRADIENTS, 1);
    rig_check(&r, wf_rope_with(rig_input(&r, "x", shape, 1), o));
}
#define ROTATE(name, shape, ...) rotate(name, shape, &(struct wf_rope_options){__VA_ARGS__})
#define I32(...)                                                                                                                           \
    (const int32_t[])                                                                                                                      \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

START_TEST(rope)
{
    const wf_shape *x = WF_SHAPE(2, 5, 24), *y = WF_SHAPE(2, 5, 20), *z = WF_SHAPE(1, 4, 74), *u = WF_SHAPE(1, 5, 8);
    ROTATE("rope_halves", x, .heads = 3);
    ROTATE("rope_interleaved", x, .heads = 3, .rotary = {.interleaved = true}, .start = 11);
    ROTATE("rope_part", y, .heads = 2, .rotary = {.width = 6}, .start = 11);
    ROTATE("rope_part_interleaved", y, .heads = 2, .rotary = {.width = 6, .interleaved = true}, .start = 11);
    ROTATE("rope_wide", z, .rotary = {.base = 500000}, .start = 61);
    ROTATE("rope_wide_interleaved", z, .rotary = {.base = 500000, .interleaved = true}, .start = 61);
    ROTATE("rope_linear", u, .rotary = {.scaling = WF_ROPE_LINEAR, .factor = 4}, .start = 1000);
    ROTATE("rope_ntk", u, .rotary = {.scaling = WF_ROPE_NTK, .factor = 4}, .start = 1000);
    ROTATE("rope_llama3", WF_SHAPE(1, 5, 64), .start = 9000,
           .rotary = {
               .base = 500000, .scaling = WF_ROPE_LLAMA3, .factor = 8, .low_frequency = 1, .high_frequency = 4, .original_context = 8192});
    ROTATE("rope_given", u, .heads = 2, .rotary = {.frequencies = (const double[]){1, -0.25}}, .start = 3);
    ROTATE("rope_starts", WF_SHAPE(3, 4, 8), .heads = 2, .starts = I32(7, 0, 300));
    ROTATE("rope_packed", WF_SHAPE(9, 8), .heads = 2, .packed = {I32(0, 4, 5, 5, 9), 4});
}
END_TEST

/* The result alone, within a tolerance in double and one in float. */
static void rig_near(struct rig *r, const wf_tensor *y, double tolerance, double tolerance_f32)
{
    char key[64];
    wf_array view;
    snprintf(key, sizeof key, "%s/out", r->name);
    ck_assert_msg(wf_view(y, &view) == WF_OK, "%s: %s", key, wf_tape_error(r->tape)->message);
    golden_near(r->file, key, &view, sizeof(wf_real) == 8 ? tolerance : tolerance_f32);
    rig_close(r);
}

/* An angle of 100,000 has seven digits before those that the sine needs. The reference's own rounding is 1e-11 there. */
START_TEST(rope_far)
{
    struct rig r = rig_open("attention", "rope_far");
    rig_start(&r, WF_GRADIENTS, 1);
    rig_near(&r, wf_rope(rig_input(&r, "x", WF_SHAPE(1, 5, 16), 1), .start = 100000), 1e-11, 1e-7);
}
END_TEST

START_TEST(rope_positions)
{
    struct rig r = rig_open("attention", "rope_ids");
    rig_start(&r, WF_GRADIENTS, 1);
    wf_tensor *ids = wf_ids(r.tape, I32(5, 5, 90000, -2, 0, 1), 2, 3);
    rig_near(&r, wf_rope(rig_input(&r, "x", WF_SHAPE(2, 3, 8), 1), .heads = 2, .positions = ids), 1e-11, 1e-7);

    /* The same frequencies as a tensor, and positions for all sequences. */
    r = rig_open("attention", "rope_given");
    rig_start(&r, WF_GRADIENTS, 1);
    wf_tensor *frequencies = wf_input(r.tape, (const wf_real[]){1, (wf_real)-0.25}, WF_SHAPE(2), false);
    ids = wf_ids_of(r.tape, I32(3, 4, 5, 6, 7), WF_SHAPE(5));
    rig_check(&r,
              wf_rope(rig_input(&r, "x", WF_SHAPE(1, 5, 8), 1), .heads = 2, .rotary = {.frequency_tensor = frequencies}, .positions = ids));
}
END_TEST

/* --- wf_mha --------------------------------------------------------------------------------------------------------- */

enum { D = 16, T = 7 };

static struct rig attend(const char *name, struct wf_mha *m, const wf_shape *shape, const struct wf_mha_options *o)
{
    struct rig r = rig_open("attention", name);
    wf_mha_init_with(wf_root(r.registry), m, D, 4, o);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_input(&r, "x", shape, 1);
    return r;
}
#define ATTEND(name, m, shape, ...) attend(name, m, shape, &(struct wf_mha_options){__VA_ARGS__})

/* Result, attention weights and gradients of self-attention. */
static void check_weights(struct rig *r, struct wf_mha *m, bool causal)
{
    wf_tensor *weights, *y = wf_mha_forward(m, r->input[0], .causal = causal, .weights = &weights);
    rig_compare(r, "weights", weights, false);
    rig_check(r, y);
}

START_TEST(mha_rope)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_rope", &m, WF_SHAPE(2, T, D), .rope = true);
    check_weights(&r, &m, true);

    r = ATTEND("mha_rope_gptj", &m, WF_SHAPE(2, T, D), .kv_heads = 2, .d_key = 6, .d_value = 3, .rope = true,
               .rotary = {.base = 500, .width = 4, .interleaved = true});
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));

    for (int i = 0; i < 4; i++) { /* the offsets of keys are left out, or given; so are the positions */
        r = ATTEND("mha_rope_packed", &m, WF_SHAPE(9, D), .kv_heads = 1, .rope = true);
        wf_tensor *positions = i < 2 ? NULL : wf_ids_of(r.tape, I32(0, 1, 2, 3, 0, 0, 1, 2, 3), WF_SHAPE(9));
        rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true, .packed = {I32(0, 4, 5, 9), 3}, .positions = positions,
                                     .k_packed = {i % 2 ? I32(0, 4, 5, 9) : NULL, i % 2 ? 3 : 0}));
    }
}
END_TEST

/* Each packed sequence has the bits that it has alone. */
START_TEST(mha_rope_packed_alone)
{
    enum { N = 9 };
    static const int32_t offsets[] = {0, 4, 5, 5, N};
    struct wf_mha m;
    struct rig r = ATTEND("mha_rope_packed", &m, WF_SHAPE(N, D), .kv_heads = 1, .rope = true);
    wf_real all[N * D], one[N * D], x[N * D];
    ck_read(r.input[0], x, N * D);
    wf_tape_reset(r.tape, WF_INFER);
    wf_tensor *packed = wf_mha_forward(&m, wf_input(r.tape, x, WF_SHAPE(N, D), false), .causal = true, .packed = {offsets, 4});
    ck_read(packed, all, N * D);
    for (int i = 0; i < 4; i++) {
        int64_t n = offsets[i + 1] - offsets[i], at = (int64_t)offsets[i] * D;
        wf_tensor *y = wf_mha_forward(&m, wf_input(r.tape, x + at, WF_SHAPE(1, n, D), false), .causal = true);
        ck_read(y, one, n * D);
        ck_assert_mem_eq(one, all + at, (size_t)(n * D) * sizeof *one);
    }
    rig_close(&r);
}
END_TEST

START_TEST(mha_rope_ids)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_rope_ids", &m, WF_SHAPE(2, T, D), .rope = true);
    wf_tensor *ids = wf_ids(r.tape, I32(0, 0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 9, 9, 70000), 2, T);
    rig_near(&r, wf_mha_forward(&m, r.input[0], .causal = true, .positions = ids), 1e-11, 2e-6);
}
END_TEST

START_TEST(mha_window)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_window", &m, WF_SHAPE(2, T, D), .rope = true, .window = 3);
    check_weights(&r, &m, true);
    r = ATTEND("mha_window_both", &m, WF_SHAPE(2, T, D), .kv_heads = 2, .window = 2);
    check_weights(&r, &m, false);
    r = ATTEND("mha_window_long", &m, WF_SHAPE(1, 150, D), .kv_heads = 2, .d_key = 6, .d_value = 5, .window = 37);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));
    r = ATTEND("mha_window_packed", &m, WF_SHAPE(9, D), .window = 2);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true, .packed = {I32(0, 4, 5, 9), 3}));
}
END_TEST

START_TEST(mha_scale)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_scale", &m, WF_SHAPE(2, T, D), .scale = 1);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));
}
END_TEST

START_TEST(mha_softcap)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_softcap", &m, WF_SHAPE(2, T, D), .kv_heads = 2, .softcap = 0.3);
    check_weights(&r, &m, true);
    r = ATTEND("mha_softcap_long", &m, WF_SHAPE(1, 75, D), .kv_heads = 1, .d_key = 6, .window = 70, .softcap = 0.5);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true));
}
END_TEST

static void biased(const char *name, const wf_shape *shape, int64_t t, int64_t s, int kv_heads, const int32_t *hidden, int count,
                   bool causal)
{
    struct rig r = rig_open("attention", name);
    rig_start(&r, WF_GRADIENTS, 1);
    wf_tensor *q = rig_input(&r, "q", WF_SHAPE(2, t, 24), 1), *k = rig_input(&r, "k", WF_SHAPE(2, s, 6 * kv_heads), 1);
    wf_tensor *v = rig_input(&r, "v", WF_SHAPE(2, s, 5 * kv_heads), 1), *bias = rig_input(&r, "bias", shape, 1);
    wf_real minus[16] = {0};
    for (int i = 0; i < count; i++)
        minus[hidden[i]] = -INFINITY;
    if (count)
        bias = wf_add(bias, wf_input(r.tape, minus, WF_SHAPE(s), false));
    rig_check(&r, wf_attention(q, k, v, .heads = 4, .kv_heads = kv_heads, .causal = causal, .bias = bias));
}

START_TEST(with_bias)
{
    biased("bias_full", WF_SHAPE(2, 4, 7, 9), 7, 9, 2, NULL, 0, false);
    biased("bias_heads", WF_SHAPE(4, 7, 7), 7, 7, 2, NULL, 0, true);
    biased("bias_keys", WF_SHAPE(2, 1, 1, 9), 7, 9, 2, I32(2, 8), 2, false);
    biased("bias_long", WF_SHAPE(4, 40, 75), 40, 75, 4, NULL, 0, true);
}
END_TEST

/* The module passes the bias on, also with a cache, a row at a time. */
START_TEST(mha_bias)
{
    enum { N = 2 * T * D };
    struct wf_mha m;
    struct rig r = ATTEND("mha_softcap", &m, WF_SHAPE(2, T, D), .kv_heads = 2, .softcap = 0.3);
    wf_real x[N], whole[N], parts[N], step[2 * D], plain[N], numbers[4 * T * T];
    for (int i = 0; i < 4 * T * T; i++)
        numbers[i] = (wf_real)(i % 13) / 4 - 1;
    ck_read(r.input[0], x, N);
    wf_tape_reset(r.tape, WF_INFER);
    wf_tensor *in = wf_input(r.tape, x, WF_SHAPE(2, T, D), false), *bias = wf_input(r.tape, numbers, WF_SHAPE(4, T, T), false);
    ck_read(wf_mha_forward(&m, in, .causal = true), plain, N);
    ck_read(wf_mha_forward(&m, in, .causal = true, .bias = bias), whole, N);
    ck_assert_mem_ne(plain, whole, sizeof whole);
    struct wf_mha_parts p = wf_mha_project(&m, in, .causal = true);
    wf_tensor *y =
        wf_linear_forward(&m.out, wf_attention(p.q, p.k, p.v, .heads = 4, .kv_heads = 2, .causal = true, .softcap = 0.3, .bias = bias));
    ck_read(y, parts, N);
    ck_assert_mem_eq(whole, parts, sizeof whole);
    struct wf_cache cache = {0};
    ck_ok(wf_cache_init(&cache, 1, 2, T, 8, 8, error));
    for (int t = 0; t < T; t++) {
        wf_tape_reset(r.tape, WF_INFER);
        in = wf_slice(wf_input(r.tape, x, WF_SHAPE(2, T, D), false), 1, t, 1);
        bias = wf_slice(wf_slice(wf_input(r.tape, numbers, WF_SHAPE(4, T, T), false), 1, t, 1), 2, 0, t + 1);
        y = wf_mha_forward(&m, in, .causal = true, .bias = bias, .cache = cache.layer);
        ck_read(y, step, 2 * D);
        wf_cache_advance(&cache, 1);
        for (int b = 0; b < 2; b++)
            ck_assert_mem_eq(step + b * D, whole + (b * T + t) * D, D * sizeof *step);
    }
    wf_cache_free(&cache);
    rig_close(&r);
}
END_TEST

START_TEST(mha_qk_norm)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_qk_norm", &m, WF_SHAPE(2, T, D), .kv_heads = 2, .d_key = 6, .d_value = 5, .rope = true, .qk_norm = true,
                          .qk_norm_eps = 1e-6);
    check_weights(&r, &m, true);
    r = ATTEND("mha_qk_norm_packed", &m, WF_SHAPE(9, D), .rope = true, .qk_norm = true);
    rig_check(&r, wf_mha_forward(&m, r.input[0], .causal = true, .packed = {I32(0, 4, 5, 9), 3}));
    for (int i = 0; i < 2; i++) {
        r = ATTEND("mha_qk_norm_cross", &m, WF_SHAPE(2, T, D), .cross = true, .qk_norm = true, .qk_norm_eps = 1e-3);
        wf_tensor *memory = rig_input(&r, "memory", WF_SHAPE(2, 5, D), 1);
        wf_tensor *kv = i ? wf_mha_memory(&m, memory) : NULL;
        rig_check(&r, wf_mha_forward(&m, r.input[0], .memory = i ? NULL : memory, .memory_kv = kv));
    }
}
END_TEST

/* Keys and values of two inputs, also through wf_mha_memory_apart; refusals. */
START_TEST(mha_apart)
{
    static const struct {
        bool memory, value, kv;
        const char *refused;
    } calls[] = {{true, true, false, NULL},
                 {false, false, true, NULL},
                 {true, false, false, ".memory needs .value"},
                 {false, true, false, ".memory or .memory_kv"},
                 {false, true, true, "leave .value out"},
                 {true, true, true, "either .memory or .memory_kv"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct wf_mha m;
        struct rig r =
            ATTEND("mha_apart", &m, WF_SHAPE(2, T, D), .cross = true, .apart = true, .d_memory = 9, .d_values = 11, .no_bias = true);
        wf_tensor *memory = rig_input(&r, "memory", WF_SHAPE(2, 5, 9), 1), *value = rig_input(&r, "value", WF_SHAPE(2, 5, 11), 1);
        wf_tensor *y = wf_mha_forward(&m, r.input[0], .memory = calls[i].memory ? memory : NULL, .value = calls[i].value ? value : NULL,
                                      .memory_kv = calls[i].kv ? wf_mha_memory_apart(&m, memory, value) : NULL);
        if (!calls[i].refused) {
            rig_check(&r, y);
            continue;
        }
        ck_poison(y, calls[i].refused);
        ck_poison(wf_mha_memory(&m, wf_zeros(r.tape, WF_SHAPE(2, 5, 9))), "call wf_mha_memory_apart");
        rig_close(&r);
    }
}
END_TEST

/* The halves have the bits of the whole, with a cache too. */
START_TEST(mha_halves)
{
    enum { ROWS = 2, N = ROWS * T * D };
    for (int cached = 0; cached < 2; cached++) {
        struct wf_mha m;
        struct wf_cache cache[2] = {0};
        struct rig r = ATTEND("mha_rope", &m, WF_SHAPE(ROWS, T, D), .rope = true, .qk_norm = true, .window = 5, .kv_heads = 2);
        wf_real x[N], whole[N], halves[N];
        ck_read(r.input[0], x, N);
        for (int i = 0; i < 2 && cached; i++)
            ck_ok(wf_cache_init(&cache[i], 1, ROWS, 3 * T, 8, 8, error));
        for (int step = 0; step < 2; step++) {
            wf_tape_reset(r.tape, WF_INFER);
            wf_tensor *in = wf_input(r.tape, x, WF_SHAPE(ROWS, T, D), false);
            wf_tensor *y = wf_mha_forward(&m, in, .causal = true, .residual = in, .cache = cached ? cache[0].layer : NULL);
            ck_read(y, whole, N);
            struct wf_mha_parts parts = wf_mha_project(&m, in, .cache = cached ? cache[1].layer : NULL);
            ck_assert(wf_dim(parts.q, -1) == D && wf_dim(parts.k, -1) == D / 2 && wf_dim(parts.v, -1) == D / 2);
            y = wf_mha_attend(&m, parts, .causal = true, .residual = in, .cache = cached ? cache[1].layer : NULL);
            ck_read(y, halves, N);
            ck_assert_mem_eq(whole, halves, sizeof whole);
            for (int i = 0; i < 2 && cached; i++) {
                wf_cache_advance(&cache[i], T);
                wf_cache_rewind(&cache[i], 0, 3); /* rows of different lengths */
            }
        }
        /* Values of another input. */
        wf_tape_reset(r.tape, WF_INFER);
        wf_tensor *in = wf_input(r.tape, x, WF_SHAPE(ROWS, T, D), false);
        struct wf_mha_parts parts = wf_mha_project(&m, in, .causal = true);
        parts.v = wf_zeros(r.tape, WF_SHAPE(ROWS, T, D / 2));
        ck_read(wf_mha_attend(&m, parts, .causal = true), halves, N);
        for (int i = 0; i < N; i++)
            ck_assert(halves[i] == ((const wf_real *)wf_parameter_info(m.out.bias)->value.data)[i % D]);
        wf_cache_free(&cache[0]);
        wf_cache_free(&cache[1]);
        rig_close(&r);
    }
}
END_TEST

/* --- refusals ------------------------------------------------------------------------------------------------------- */

START_TEST(options_refused)
{
    static const struct {
        struct wf_mha_options options;
        const char *says;
    } bad[] = {
        {{.rope = true, .cross = true}, "rope is for self-attention, not for cross-attention: turn queries and keys with wf_rope"},
        {{.rope = true, .d_key = 5}, "rope needs an even rotary.width in 2 .. d_key = 5, not 5"},
        {{.rope = true, .rotary = {.width = 6}}, "rope needs an even rotary.width in 2 .. d_key = 4, not 6"},
        {{.rope = true, .rotary = {.width = -2}}, "rope needs an even rotary.width in 2 .. d_key = 4, not -2"},
        {{.qk_norm_eps = 1e-6}, "qk_norm_eps = 1e-06 is given without qk_norm: set .qk_norm = true, too"},
        {{.qk_norm = true, .qk_norm_eps = -1}, "eps = -1 must be a number of at least 0"},
        {{.qk_norm_from_one = true}, "qk_norm_from_one is given without qk_norm"},
        {{.softcap = -1}, "softcap = -1 is not in 1e-30 .. 1e30; 0 stands for none"},
        {{.softcap = NAN}, "softcap = nan is not in"},
        {{.scale = INFINITY}, "scale = inf is not finite; 0 stands for 1 / sqrt(d_key)"},
        {{.window = -3}, "window = -3 is negative; 0 stands for none"},
        {{.window = 3, .cross = true}, "window = 3 is for self-attention, not for cross-attention: use wf_attention, or a mask"},
        {{.rotary = {.base = 100}}, "rotary is given without rope: set .rope = true, too"},
        {{.apart = true}, "apart is for cross-attention: set .cross = true, too"},
        {{.cross = true, .d_values = 8}, "d_values is given without apart: set .apart = true, too"},
        {{.d_values = -1}, "d_memory = 0 or d_values = -1 is out of range"},
        {{.cross = true, .window = 3, .scale = NAN, .dropout = 2}, "dropout 2 is not in 0 <= p < 1"}, /* the first of several */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_mha m;
        wf_registry *registry = new_registry();
        wf_mha_init_with(wf_sub(wf_root(registry), "attn"), &m, D, 4, &bad[i].options);
        ck_says(wf_registry_error(registry)->message, "attn");
        declared_wrong(registry, bad[i].says);
    }
}
END_TEST

START_TEST(calls_refused)
{
    struct wf_mha m;
    struct rig r = ATTEND("mha_rope", &m, WF_SHAPE(2, T, D), .no_bias = false);
    wf_tensor *ids = wf_ids_of(r.tape, I32(0, 1, 2, 3, 4, 5, 6), WF_SHAPE(T));
    wf_tensor *weights = NULL; /* can be used although the call failed */
    wf_tensor *y = wf_mha_forward(&m, r.input[0], .positions = ids, .weights = &weights);
    ck_assert(wf_is_poison(y) && weights);
    ck_poison(wf_mean(weights), "attention: .positions requires rotary positions (.rope)");
    weights = NULL;
    y = wf_mha_forward(&m, wf_add(wf_zeros(r.tape, WF_SHAPE(2)), wf_zeros(r.tape, WF_SHAPE(3))), .weights = &weights);
    ck_assert(wf_is_poison(y) && weights);
    ck_poison(wf_mean(weights), "add");
    /* packed rows, without saying so */
    ck_poison(wf_mha_forward(&m, wf_zeros(r.tape, WF_SHAPE(T, D))),
              "q must be [B,T,H*E], k [B,S,G*E] and v [B,S,G*F]; or [N,H*E], [M,G*E] and [M,G*F] with .packed");
    rig_close(&r);
    r = ATTEND("mha_rope", &m, WF_SHAPE(2, T, D), .rope = true);
    ids = wf_ids_of(r.tape, I32(0, 1, 2), WF_SHAPE(3));
    ck_poison(wf_mha_forward(&m, r.input[0], .positions = ids), "rope(slice [2,7,32], ids [3]): positions must be [B,T] or [T]");
    wf_tensor *x = wf_zeros(r.tape, WF_SHAPE(1, 2, D));
    ck_poison(wf_mha_forward(&m, x, .value = x), "attention: .value requires a module whose values come from");
    /* The halves refuse what the whole refuses, and parts that do not fit. */
    x = wf_zeros(r.tape, WF_SHAPE(1, 2, D));
    struct wf_mha_parts parts = wf_mha_project(&m, x, .memory = x);
    ck_assert(wf_is_poison(parts.k) && wf_is_poison(parts.v));
    ck_poison(parts.q, "attention: .memory and .memory_kv require cross-attention (.cross)");
    x = wf_zeros(r.tape, WF_SHAPE(1, 2, D));
    parts = wf_mha_project(&m, x, .causal = true);
    parts.k = x;
    parts.v = NULL;
    ck_poison(wf_mha_attend(&m, parts, .causal = true), "operand 3 is NULL");
    rig_close(&r);
}
END_TEST

WF_TEST_MAIN("attention", rope, rope_far, rope_positions, mha_rope, mha_rope_packed_alone, mha_rope_ids, mha_window, mha_scale, mha_softcap,
             mha_qk_norm, with_bias, mha_bias, mha_apart, mha_halves, options_refused, calls_refused)
