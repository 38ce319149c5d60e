/* SPDX-License-Identifier: MIT */
/* The memory of a pass: with WF_INFER that of one block, for any number of blocks; in training the tensors that backwards read. */
#include <weft/encoder.h>

#include "pairs_test.h"

enum { MOST_T = 256, VOCAB = 29 };
static int32_t ids[MOST_T];
static struct some_pairs pairs;

static struct wf_config config_of(const char *name, int64_t layers)
{
    struct wf_config c = preset(name);
    make_narrow(&c, layers);
    return c;
}

static size_t peak_of_inference(const char *name, int64_t layers)
{
    enum { T = 64 };
    struct wf_config c = config_of(name, layers);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *y;
    if (wf_config_kind(&c) == WF_MODEL_PAIRS)
        y = wf_pairs_loss(m, tape, &pairs.pairs, 0);
    else if (wf_config_kind(&c) == WF_MODEL_ENCODER)
        y = wf_encoder_forward(m, wf_ids(tape, ids, 1, T), 0);
    else
        y = wf_model_loss(m, wf_ids(tape, ids, 1, T), wf_ids(tape, ids, 1, T));
    ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(tape)->message);
    size_t peak = wf_tape_stats(tape).peak;
    wf_tape_free(tape);
    wf_model_free(m);
    return peak;
}

START_TEST(inference_takes_the_memory_of_a_block)
{
    static const char *const names[] = {"nanogpt-char", "gpt2", "char-rms", "encoder-attention", "multi30k", "transformer-base"};
    random_ids(ids, MOST_T, VOCAB, 1);
    random_pairs(&pairs, 6, 20, VOCAB, VOCAB, 3);
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        size_t few = peak_of_inference(names[i], 2), many = peak_of_inference(names[i], 8);
        ck_assert_msg(many <= few, "%s: %zu bytes with 8 layers, %zu with 2", names[i], many, few);
    }
}
END_TEST

/* A pass that returns attention weights keeps all tensors. */
START_TEST(values_are_those_of_a_pass_that_keeps_all)
{
    enum { LAYERS = 3, B = 3, T = 21 };
    static wf_real have[B * T * VOCAB], want[B * T * VOCAB], last[B * VOCAB];
    wf_tensor *weights[LAYERS];
    static const char *const names[] = {"nanogpt-char", "char-rms"};
    random_ids(ids, B * T, VOCAB, 2);
    for (int i = 0; i < 2; i++) {
        struct wf_config c = config_of(names[i], LAYERS);
        wf_model *m = model_of(&c, 1);
        wf_tape *tape = new_tape();
        wf_tape_reset(tape, WF_INFER);
        read_values(wf_model_attention(m, wf_ids(tape, ids, B, T), weights), want, B * T * VOCAB);
        for (int pass = 0; pass < 2; pass++) { /* also after other results on the tape, which are kept */
            wf_tensor *x = wf_ids(tape, ids, B, T), *logits = wf_model_logits(m, x, NULL), *next = wf_model_next(m, x, NULL);
            read_values(logits, have, B * T * VOCAB);
            read_values(next, last, B * VOCAB);
            ck_assert_mem_eq(have, want, sizeof have);
            for (int b = 0; b < B; b++)
                ck_assert_mem_eq(last + b * VOCAB, want + (b * T + T - 1) * VOCAB, VOCAB * sizeof *last);
        }
        wf_tape_free(tape);
        wf_model_free(m);
    }
    struct wf_config c = config_of("encoder-attention", LAYERS);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    for (int i = 0; i < 2; i++)
        read_values(wf_encoder_logits(m, wf_ids(tape, ids, B, T), .weights = i ? weights : NULL), i ? want : have, B * T * VOCAB);
    ck_assert_mem_eq(have, want, sizeof have);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

static wf_model *gpt_of(int64_t layers, int64_t d, int64_t T, int64_t vocab)
{
    struct wf_config c = preset("gpt2");
    set_keys(&c, "heads=4 dropout=0");
    set_key(&c, "d_model", d);
    set_key(&c, "d_ff", 4 * d);
    set_key(&c, "layers", layers);
    set_key(&c, "context", T);
    set_key(&c, "vocab_size", vocab);
    return model_of(&c, 1);
}

/* In the feed-forward x, its norm, 4 before and 4 after the activation, the result and its sum with x: 12 tensors [T,D]. Logits of one
 * row take less, those of all rows would take more. */
START_TEST(a_prompt)
{
    enum { LAYERS = 6, D = 64, T = 128, V = 4099 };
    const size_t real = sizeof(wf_real), most = 12 * T * D * real + 16 * 1024;
    random_ids(ids, T, V, 3);
    wf_model *m = gpt_of(LAYERS, D, T, V);
    wf_tape *tape = new_tape();
    int32_t out;
    int64_t count;
    const struct wf_generate_options o = {.sampler = {.greedy = true}, .max_tokens = 1};
    ck_ok(wf_generate_with(m, tape, ids, T, &o, &out, &count, error));
    size_t peak = wf_tape_stats(tape).peak;
    ck_assert_msg(peak <= most && most < T * V * real, "%zu bytes, not %zu", peak, most);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

static size_t peak_of_training(int64_t layers, int64_t d, int64_t T)
{
    wf_model *m = gpt_of(layers, d, T, VOCAB);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_TRAIN);
    backward(wf_model_loss(m, wf_ids(tape, ids, 1, T), wf_ids(tape, ids, 1, T)));
    size_t peak = wf_tape_stats(tape).peak;
    wf_tape_free(tape);
    wf_model_free(m);
    return peak;
}

/* x, norm, q k v, attention, x, norm, 4 before and 4 after the activation: 16 of [T,D], and the statistics of norms and rows. */
START_TEST(a_layer_in_training)
{
    enum { FEW = 2, MANY = 5, D = 256, T = MOST_T };
    random_ids(ids, T, VOCAB, 4);
    double grown =
        (double)(peak_of_training(MANY, D, T) - peak_of_training(FEW, D, T)) / (MANY - FEW) / ((double)(T * D) * sizeof(wf_real));
    ck_assert_msg(grown <= 16.2, "a layer takes %g x [B,T,D]", grown);
}
END_TEST

WF_TEST_MAIN("memory", inference_takes_the_memory_of_a_block, values_are_those_of_a_pass_that_keeps_all, a_prompt, a_layer_in_training)
