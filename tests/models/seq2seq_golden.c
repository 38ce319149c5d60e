/* SPDX-License-Identifier: MIT */
/* Each variant of the encoder-decoder against PyTorch in float64, on pairs of unequal lengths, packed here and padded there: logits,
 * losses and every gradient; also against torch.nn.Transformer if that is the same model; and 20 updates by Adam with clipping and the
 * inverse square root. tests/golden/make_seq2seq.py wrote the file. */
#include <weft/optim.h>
#include <weft/seq2seq.h>

#include "golden_model.h"

enum { PAIRS = 5, STEPS = 20, LONGEST = 8 };

/* As CASES, TRAINED and WATCHED in make_seq2seq.py. */
static const struct subject_case {
    const char *name, *settings; /* over the settings of config_of */
    double smoothing;
    bool module;
    double lr;
    int warmup, watched; /* watched: the pair whose attention weights the file has; 0: none */
} cases[] = {
    {"post", "", 0, false, 0, 0, 0},
    {"pre", "norm=pre final_norm=true shared=false source_vocab_size=7", 0.1, true, 0, 0, 1},
    {"base", "final_norm=true tied=true scale_embeddings=true", 0.1, true, 2e-2, 8, 3},
    {"pre_tied", "norm=pre final_norm=true tied=true scale_embeddings=true activation=gelu", 0.1, true, 1e-2, 30, 0},
    {"no_bias", "norm=pre bias=false activation=swiglu encoder_layers=1", 0, false, 0, 0, 0},
    {"target_tied", "final_norm=true shared=false source_vocab_size=7 tied=true activation=gelu decoder_layers=1", 0.3, true, 0, 0, 0},
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
    set_keys(&g, "dropout=0 inner_dropout=false steps=1 lr=1 beta2=0.98 eps=1e-9 d_model=12 heads=3 d_ff=20 max_length=8 vocab_size=11 "
                 "source_vocab_size=0 encoder_layers=2 decoder_layers=2 norm=post final_norm=false shared=true tied=false "
                 "scale_embeddings=false bias=true activation=relu");
    set_keys(&g, c->settings);
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
    const int32_t source_vocab = (int32_t)wf_config_shape(wf_model_config(s->model)).source_vocab_size;
    for (int i = 0; i < PAIRS; i++) {
        int64_t first = 64 * ((int64_t)step * PAIRS + i);
        int32_t *so = s->source_offsets + i, *to = s->target_offsets + i;
        so[1] = so[0] + 1 + drawn(s, "source_length", step * PAIRS + i, 7);
        to[1] = to[0] + 1 + drawn(s, "target_length", step * PAIRS + i, 6);
        for (int32_t k = 0; k < so[1] - so[0]; k++)
            s->source[so[0] + k] = drawn(s, "source", first + k, source_vocab);
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
        ck_assert(fabs(value - golden_number(s.file, s.c->name, "loss")) <= loss_tolerance * value);
        ck_assert(fabs(plain_value - golden_number(s.file, s.c->name, "plain")) <= loss_tolerance * plain_value);
        if (s.c->module)
            ck_assert(fabs(value - golden_number(s.file, s.c->name, "module/loss")) <= loss_tolerance * value);
        tensors +=
            golden_gradients(s.file, s.c->name, s.registry, tolerance) + 3 + 2 * s.c->module + (s.c->lr > 0) + 6 * (s.c->watched > 0);
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
