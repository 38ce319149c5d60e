/* SPDX-License-Identifier: MIT */
/* The encoder against PyTorch in float64 on rows of unequal lengths: vectors and the weights of every layer and head, under each kind
 * of mask; logits, the loss of chosen tokens with every gradient, and updates by AdamW; the worked example of a sentence; and attention
 * with one head. tests/golden/make_encoder.py wrote the file. */
#include <weft/encoder.h>
#include <weft/optim.h>

#include "golden_model.h"

enum { ROWS = 3, TOKENS = 7, N = ROWS * TOKENS, STEPS = 6, VOCAB = 11, LAYERS = 2 };
static const int32_t lengths[ROWS] = {7, 2, 5};

/* As CASES and EXAMPLE in make_encoder.py, over the settings of the preset encoder-attention. */
static const struct subject_case {
    const char *name, *settings;
} cases[] = {{"document", "vocab_size=11 d_model=8 heads=2 d_ff=32 layers=2 context=9"},
             {"pre", "vocab_size=11 d_model=8 heads=2 d_ff=20 layers=2 context=9 norm=pre tied=true bias=false activation=gelu"},
             {"bare", "vocab_size=11 d_model=8 heads=2 d_ff=20 layers=1 context=9 final_norm=false tied=true scale_embeddings=false "
                      "activation=swiglu"}},
  example = {"example", "vocab_size=50 d_model=32 heads=4 d_ff=128 layers=2 context=512"};
enum { CASES = sizeof cases / sizeof *cases };

struct subject {
    const struct subject_case *c;
    wf_safetensors *file;
    wf_model *model;
    wf_registry *registry;
    wf_tape *tape;
    int32_t ids[N], places[N], targets[N];
    int64_t chosen;
};

static void make(struct subject *s, const struct subject_case *c)
{
    struct wf_config config;
    ck_ok(wf_config_preset(&config, "encoder-attention", error));
    set_keys(&config, "dropout=0");
    set_keys(&config, c->settings);
    *s = (struct subject){.c = c, .file = golden_open("encoder")};
    golden_model(&config, c->name, &s->model, &s->registry, &s->tape);
}

static void drop(struct subject *s)
{
    wf_safetensors_close(s->file);
    wf_tape_free(s->tape);
    wf_model_free(s->model);
}

/* Ids, and as chosen() in make_encoder.py every third token that is no padding, the first of them twice. */
static void batch(struct subject *s, int step)
{
    char key[64];
    snprintf(key, sizeof key, "%s/ids", s->c->name);
    for (int i = 0; i < N; i++)
        s->ids[i] = formula_id(formula_name(key, NULL), step * N + i, VOCAB);
    s->chosen = 0;
    for (int i = 0, inside = 0; i < N; i++)
        if (i % TOKENS < lengths[i / TOKENS] && inside++ % 3 == step % 3)
            s->places[s->chosen++] = i;
    s->places[s->chosen++] = s->places[0];
    for (int64_t i = 0; i < s->chosen; i++)
        s->targets[i] = (3 * s->ids[s->places[i]] + s->places[i]) % VOCAB;
}

static const double tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-5;

static void near(struct subject *s, const char *what, const wf_tensor *x)
{
    golden_close(s->file, s->c->name, what, x, tolerance);
}

static void near_all(struct subject *s, const char *what, const wf_tensor *output, wf_tensor **weights)
{
    char key[64];
    snprintf(key, sizeof key, "%s/output", what);
    near(s, key, output);
    for (int64_t i = 0; i < key_of(wf_model_config(s->model), "layers"); i++) {
        snprintf(key, sizeof key, "%s/weights.%d", what, (int)i);
        near(s, key, weights[i]);
    }
}

/* As masks() in make_encoder.py: random, but a token sees itself. */
static wf_tensor *free_mask(struct subject *s)
{
    int64_t H = key_of(wf_model_config(s->model), "heads");
    bool may[N * 8 * TOKENS];
    char key[64];
    snprintf(key, sizeof key, "%s/mask", s->c->name);
    for (int64_t i = 0; i < N * H * TOKENS; i++)
        may[i] = formula_id(formula_name(key, NULL), i, 2) || i / TOKENS % TOKENS == i % TOKENS;
    return wf_bools(s->tape, may, WF_SHAPE(ROWS, H, TOKENS, TOKENS));
}

/* Vectors and weights, with and without gradients, and vectors without weights. */
static int compare_forwards(struct subject *s)
{
    bool all = s->c == &cases[0];
    wf_tensor *w[LAYERS];
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        wf_tape_reset(s->tape, (wf_mode)mode);
        wf_tensor *ids = wf_ids(s->tape, s->ids, ROWS, TOKENS);
        near_all(s, "lengths", wf_encoder_forward(s->model, ids, .lengths = lengths, .weights = w), w);
        near(s, "lengths/output", wf_encoder_forward(s->model, ids, .lengths = lengths));
        near(s, "logits", wf_encoder_logits(s->model, ids, .lengths = lengths));
        if (!all)
            continue;
        near_all(s, "whole", wf_encoder_forward(s->model, ids, .weights = w), w);
        near(s, "whole/output", wf_encoder_forward_with(s->model, ids, NULL));
        near_all(s, "causal", wf_encoder_forward(s->model, ids, .lengths = lengths, .causal = true, .weights = w), w);
        near_all(s, "mask", wf_encoder_forward(s->model, ids, .mask = free_mask(s), .weights = w), w);
        near(s, "mask/output", wf_encoder_forward(s->model, ids, .mask = free_mask(s)));
    }
    return (int)(all ? 4 : 1) * (int)(1 + key_of(wf_model_config(s->model), "layers")) + 1;
}

static wf_tensor *loss_of(struct subject *s, wf_mode mode)
{
    wf_tape_reset(s->tape, mode);
    return wf_encoder_loss(s->model, wf_ids(s->tape, s->ids, ROWS, TOKENS), (&(struct wf_encoder_call){.lengths = lengths}), s->places,
                           s->targets, s->chosen);
}

static void compare_loss(struct subject *s, const wf_tensor *loss, const char *what, int place, int count)
{
    char key[64];
    double value;
    snprintf(key, sizeof key, "%s/%s", s->c->name, what);
    double *want = golden_read(s->file, key, count);
    value = item_of(loss);
    ck_assert_msg(fabs(value - want[place]) <= tolerance * want[place], "%s[%d] is %.12g, not %.12g", key, place, value, want[place]);
    free(want);
}

START_TEST(variants)
{
    int tensors = 0;
    for (int i = 0; i < CASES; i++) {
        struct subject s;
        make(&s, &cases[i]);
        batch(&s, 0);
        tensors += compare_forwards(&s);
        wf_tensor *loss = loss_of(&s, WF_TRAIN);
        backward(loss);
        compare_loss(&s, loss, "loss", 0, 1);
        tensors += golden_gradients(s.file, s.c->name, s.registry, tolerance) + 2;
        if (i == CASES - 1) /* 3 tensors of the example, 5 of one head, 3 of each language model: nothing in the file was left out */
            ck_assert_int_eq(wf_safetensors_count(s.file), tensors + 3 + 5 + 2 * 3);
        drop(&s);
    }
}
END_TEST

START_TEST(updates)
{
    for (int i = 0; i < CASES; i++) {
        struct subject s;
        struct wf_optimizer opt;
        make(&s, &cases[i]);
        ck_ok(wf_adamw_init(&opt, s.registry, error, .lr = 1e-2, .weight_decay = 0.01));
        wf_optimizer_decay_matrices_only(&opt);
        for (int step = 0; step < STEPS; step++) {
            batch(&s, step);
            wf_tensor *loss = loss_of(&s, WF_TRAIN);
            backward(loss);
            compare_loss(&s, loss, "losses", step, STEPS);
            ck_ok(wf_adam_step(&opt, error));
        }
        wf_optimizer_free(&opt);
        drop(&s);
    }
}
END_TEST

/* "The cat sat on the mat". */
START_TEST(worked_example)
{
    struct subject s;
    wf_tensor *w[LAYERS];
    make(&s, &example);
    wf_tape_reset(s.tape, WF_INFER);
    wf_tensor *y = wf_encoder_forward(s.model, wf_ids(s.tape, (int32_t[]){1, 5, 8, 12, 1, 15}, 1, 6), .weights = w);
    near(&s, "output", y);
    near(&s, "weights.0", w[0]);
    near(&s, "weights.1", w[1]);
    drop(&s);
}
END_TEST

/* Keys of another width, values as wide as the model, no output projection, weights returned. */
START_TEST(single_head)
{
    struct rig r = rig_open("encoder", "single");
    struct wf_mha m;
    wf_tensor *weights;
    wf_mha_init(wf_root(r.registry), &m, 8, 1, .d_key = 5, .d_value = 8, .no_output = true);
    rig_start(&r, WF_TRAIN, 0.5);
    wf_tensor *y = wf_mha_forward(&m, rig_input(&r, "x", WF_SHAPE(2, 4, 8), 1), .weights = &weights);
    rig_compare(&r, "weights", weights, false);
    rig_check(&r, y);
}
END_TEST

WF_TEST_MAIN("encoder_golden", variants, updates, worked_example, single_head)
