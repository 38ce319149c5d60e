/* SPDX-License-Identifier: MIT */
/* Each variant of the encoder-decoder against PyTorch in float64, on pairs of unequal lengths, which stand packed here and padded
 * there: logits, losses and every gradient; against torch.nn.Transformer too where that is the same model; and 20 updates by
 * Adam with clipping and the inverse square root. tests/golden/make_seq2seq.py wrote the file. */
#include <weft/optim.h>
#include <weft/seq2seq.h>

#include "golden_model.h"

enum { D = 12, HEADS = 3, FF = 20, PAIRS = 5, STEPS = 20, LONGEST = 8 };

/* As CASES, TRAINED and WATCHED in make_seq2seq.py. */
static const struct subject_case {
    const char *name;
    enum wf_norm_place norm;
    bool final_norm, apart, tied, scale, no_bias;
    enum wf_activation activation;
    int encoder_layers, decoder_layers, source_vocab;
    double smoothing;
    bool module;
    double lr;
    int warmup, watched; /* watched: the pair whose attention weights the file has; 0: none */
} cases[] = {
    {"post", WF_NORM_POST, false, false, false, false, false, WF_RELU, 2, 2, 11, 0, false, 0, 0, 0},
    {"pre", WF_NORM_PRE, true, true, false, false, false, WF_RELU, 2, 2, 7, 0.1, true, 0, 0, 1},
    {"base", WF_NORM_POST, true, false, true, true, false, WF_RELU, 2, 2, 11, 0.1, true, 2e-2, 8, 3},
    {"pre_tied", WF_NORM_PRE, true, false, true, true, false, WF_GELU, 2, 2, 11, 0.1, true, 1e-2, 30, 0},
    {"no_bias", WF_NORM_PRE, false, false, false, false, true, WF_SWIGLU, 1, 2, 11, 0, false, 0, 0, 0},
    {"target_tied", WF_NORM_POST, true, true, true, false, false, WF_GELU, 2, 1, 7, 0.3, true, 0, 0, 0},
};
enum { CASES = sizeof cases / sizeof *cases, VOCAB = 11 };

struct subject {
    const struct subject_case *c;
    wf_safetensors *file;
    wf_model *model;
    wf_registry *registry;
    wf_tape *tape;
    struct wf_pairs pairs;
    int32_t source[PAIRS * LONGEST], input[PAIRS * LONGEST], target[PAIRS * LONGEST], source_offsets[PAIRS + 1], target_offsets[PAIRS + 1];
};

static struct wf_config config_of(const struct subject_case *c)
{
    struct wf_config g;
    ck_ok(wf_config_defaults(&g, "seq2seq", error));
    strcpy(g.model, "golden");
    set_keys(&g, "dropout=0 inner_dropout=false steps=1 lr=1 beta2=0.98 eps=1e-9");
    set_key(&g, "d_model", D), set_key(&g, "heads", HEADS), set_key(&g, "d_ff", FF);
    set_key(&g, "encoder_layers", (double)c->encoder_layers), set_key(&g, "decoder_layers", (double)c->decoder_layers);
    set_key(&g, "max_length", LONGEST), set_key(&g, "vocab_size", VOCAB);
    set_key(&g, "source_vocab_size", c->apart ? (double)c->source_vocab : 0);
    set_key(&g, "norm", c->norm), set_key(&g, "final_norm", c->final_norm), set_key(&g, "shared", !c->apart);
    set_key(&g, "tied", c->tied), set_key(&g, "scale_embeddings", c->scale), set_key(&g, "bias", !c->no_bias);
    set_key(&g, "activation", c->activation);
    return g;
}

static void make(struct subject *s, const struct subject_case *c)
{
    struct wf_config config = config_of(c);
    *s = (struct subject){.c = c, .file = golden_open("seq2seq")};
    golden_model(&config, c->name, &s->model, &s->registry, &s->tape);
}

static void drop(struct subject *s)
{
    wf_safetensors_close(s->file);
    wf_tape_free(s->tape);
    wf_model_free(s->model);
}

static int32_t drawn(const struct subject *s, const char *what, int64_t i, int32_t n)
{
    char key[64];
    snprintf(key, sizeof key, "%s/%s", s->c->name, what);
    return formula_id(formula_name(key, NULL), i, n);
}

/* As batch() in make_seq2seq.py, without the padding. */
static void batch(struct subject *s, int step)
{
    for (int i = 0; i < PAIRS; i++) {
        int64_t first = 64 * ((int64_t)step * PAIRS + i);
        int32_t *so = s->source_offsets + i, *to = s->target_offsets + i;
        so[1] = so[0] + 1 + drawn(s, "source_length", step * PAIRS + i, 7);
        to[1] = to[0] + 1 + drawn(s, "target_length", step * PAIRS + i, 6);
        for (int32_t k = 0; k < so[1] - so[0]; k++)
            s->source[so[0] + k] = drawn(s, "source", first + k, s->c->source_vocab);
        for (int32_t k = 0; k < to[1] - to[0]; k++) {
            s->input[to[0] + k] = drawn(s, "input", first + k, VOCAB);
            s->target[to[0] + k] = (3 * s->input[to[0] + k] + s->source[so[0]]) % VOCAB;
        }
    }
    s->pairs = (struct wf_pairs){.count = PAIRS,
                                 .source = s->source,
                                 .source_offsets = s->source_offsets,
                                 .input = s->input,
                                 .target = s->target,
                                 .target_offsets = s->target_offsets};
}

static double read_one(const struct subject *s, const char *what)
{
    char key[128];
    snprintf(key, sizeof key, "%s/%s", s->c->name, what);
    double *x = golden_read(s->file, key, 1), value = *x;
    free(x);
    return value;
}

static const double tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-5;

static void compare_logits(struct subject *s, const char *what)
{
    char key[128];
    wf_array view;
    snprintf(key, sizeof key, "%s/%s", s->c->name, what);
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
        wf_tape_reset(s->tape, (wf_mode)mode);
        view = view_of(wf_pairs_logits(s->model, s->tape, &s->pairs, NULL));
        ck_assert(view.ndim == 2 && view.dim[0] == s->target_offsets[PAIRS] && view.dim[1] == VOCAB);
        golden_near(s->file, key, &view, tolerance);
    }
}

/* |gradient - reference| <= tolerance x the larger of the reference's norm and a thousandth of that of all. Returns how many. */
static int compare_gradients(struct subject *s)
{
    double *want[256], *have[256], whole = 0;
    int64_t n[256];
    int count = 0;
    const char *name[256];
    for (int i = 0; i < wf_registry_count(s->registry); i++) {
        char key[256];
        wf_array view;
        if (wf_registry_is_buffer(s->registry, i))
            continue;
        name[count] = wf_parameter_info(wf_registry_at(s->registry, i))->name;
        snprintf(key, sizeof key, "%s/d.%s", s->c->name, name[count]);
        ck_assert_int_eq(wf_grad(wf_registry_at(s->registry, i), &view), WF_OK);
        n[count] = wf_array_count(&view);
        have[count] = golden_elements(&view);
        want[count] = golden_read(s->file, key, n[count]);
        double norm = golden_norm(want[count], NULL, n[count]);
        whole += norm * norm;
        count++;
    }
    whole = sqrt(whole);
    for (int i = 0; i < count; i++) {
        double allowed = tolerance * fmax(golden_norm(want[i], NULL, n[i]), 1e-3 * whole), apart = golden_norm(have[i], want[i], n[i]);
        ck_assert_msg(apart <= allowed, "%s: the gradient of %s differs by %g, allowed %g", s->c->name, name[i], apart, allowed);
        free(have[i]);
        free(want[i]);
    }
    return count;
}

START_TEST(variants)
{
    const double loss_tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-6;
    int tensors = 0;
    for (int i = 0; i < CASES; i++) {
        struct subject s;
        double value, plain_value;
        wf_tensor *plain;
        make(&s, &cases[i]);
        batch(&s, 0);
        compare_logits(&s, "logits");
        if (s.c->module)
            compare_logits(&s, "module/logits");
        wf_tape_reset(s.tape, WF_TRAIN);
        wf_tensor *loss = wf_pairs_loss(s.model, s.tape, &s.pairs, .label_smoothing = s.c->smoothing, .plain = &plain);
        value = backward(loss);
        plain_value = item_of(plain);
        ck_assert(fabs(value - read_one(&s, "loss")) <= loss_tolerance * value);
        ck_assert(fabs(plain_value - read_one(&s, "plain")) <= loss_tolerance * plain_value);
        if (s.c->module)
            ck_assert(fabs(value - read_one(&s, "module/loss")) <= loss_tolerance * value);
        tensors += compare_gradients(&s) + 3 + 2 * s.c->module + (s.c->lr > 0) + 6 * (s.c->watched > 0);
        if (i == CASES - 1) /* nothing in the file was left out */
            ck_assert_int_eq(wf_safetensors_count(s.file), tensors);
        drop(&s);
    }
}
END_TEST

/* Attention weights of every layer of one pair. */
START_TEST(weights)
{
    for (int i = 0; i < CASES; i++) {
        struct subject s;
        if (!cases[i].watched)
            continue;
        make(&s, &cases[i]);
        batch(&s, 0);
        const int32_t *so = s.source_offsets + s.c->watched, *to = s.target_offsets + s.c->watched;
        const int32_t source_offsets[2] = {0, so[1] - so[0]}, target_offsets[2] = {0, to[1] - to[0]};
        const struct wf_pairs one = {.count = 1,
                                     .source = s.source + so[0],
                                     .source_offsets = source_offsets,
                                     .input = s.input + to[0],
                                     .target = s.target + to[0],
                                     .target_offsets = target_offsets};
        wf_tensor *encoder[2], *decoder[2], *cross[2], **kinds[] = {encoder, decoder, cross};
        static const char *const names[] = {"encoder.%d.attn", "decoder.%d.self", "decoder.%d.cross"};
        wf_tape_reset(s.tape, WF_INFER);
        ck_assert(!wf_is_poison(wf_pairs_logits(s.model, s.tape, &one, &(struct wf_seq2seq_weights){encoder, decoder, cross})));
        for (int k = 0; k < 3; k++)
            for (int layer = 0; layer < 2; layer++) {
                char name[32], key[64];
                wf_array view;
                snprintf(name, sizeof name, names[k], layer);
                snprintf(key, sizeof key, "%s/weights.%s", s.c->name, name);
                view = view_of(kinds[k][layer]);
                golden_near(s.file, key, &view, tolerance);
            }
        drop(&s);
    }
}
END_TEST

START_TEST(schedule_and_adam)
{
    for (int i = 0; i < CASES; i++) {
        if (cases[i].lr == 0)
            continue;
        struct subject s;
        struct wf_optimizer opt;
        char key[64];
        const struct wf_schedule schedule = {WF_SCHEDULE_INVERSE_SQRT, cases[i].lr, 0, cases[i].warmup, STEPS};
        make(&s, &cases[i]);
        snprintf(key, sizeof key, "%s/losses", s.c->name);
        double *want = golden_read(s.file, key, STEPS), far = sizeof(wf_real) == 8 ? 1e-9 : 1e-4;
        ck_ok(wf_adam_init(&opt, s.registry, error, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9));
        for (int t = 0; t < STEPS; t++) {
            double value;
            batch(&s, t);
            wf_tape_reset(s.tape, WF_TRAIN);
            wf_tensor *loss = wf_pairs_loss(s.model, s.tape, &s.pairs, .label_smoothing = s.c->smoothing);
            value = backward(loss);
            ck_assert_msg(fabs(value - want[t]) <= far * want[t], "%s: the loss of step %d is %.12g, not %.12g", s.c->name, t, value,
                          want[t]);
            opt.lr = wf_schedule_lr(&schedule, t);
            ck_ok(wf_clip_norm(wf_registry_grads(s.registry), 1.0, NULL, error));
            ck_ok(wf_adam_step(&opt, error));
        }
        wf_optimizer_free(&opt);
        free(want);
        drop(&s);
    }
}
END_TEST

WF_TEST_MAIN("seq2seq_golden", variants, weights, schedule_and_adam)
