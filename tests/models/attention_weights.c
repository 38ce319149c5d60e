/* SPDX-License-Identifier: MIT */
/* wf_model_attention: the weights of language models against PyTorch (tests/golden/make_encoder.py), and properties of all weights. For
 * encoder-decoders see seq2seq_golden.c and pairs.c, for encoders encoder_golden.c and encoder.c. */
#include "golden_model.h"
#include "models_test.h"

enum { B = 2, T = 6, VOCAB = 11, LAYERS = 2 };

/* As LANGUAGE in make_encoder.py. */
static wf_model *language_model(const char *family, const char *name)
{
    struct wf_config c = preset(name);
    set_keys(&c, "d_model=12 heads=4 kv_heads=2 d_ff=20 layers=2 context=9 vocab_size=11 bias=true activation=relu dropout=0");
    wf_model *m = model_of(&c, 1);
    golden_fill(wf_model_registry(m), family);
    return m;
}

static void near(const wf_safetensors *file, const char *family, const char *what, const wf_tensor *x)
{
    golden_close(file, family, what, x, sizeof(wf_real) == 8 ? 1e-9 : 1e-5);
}

static const char *const families[2][2] = {{"gpt", "nanogpt-char"}, {"rms", "char-rms"}};

START_TEST(weights_are_those_of_torch)
{
    for (int f = 0; f < 2; f++) {
        wf_safetensors *file = golden_open("encoder");
        wf_model *m = language_model(families[f][0], families[f][1]);
        wf_tape *tape = new_tape();
        wf_tensor *w[LAYERS];
        int32_t ids[B * T];
        char key[32];
        snprintf(key, sizeof key, "%s/ids", families[f][0]);
        for (int i = 0; i < B * T; i++)
            ids[i] = formula_id(formula_name(key, NULL), i, VOCAB);
        for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
            wf_tape_reset(tape, (wf_mode)mode);
            near(file, families[f][0], "logits", wf_model_attention(m, wf_ids(tape, ids, B, T), w));
            near(file, families[f][0], "weights.0", w[0]);
            near(file, families[f][0], "weights.1", w[1]);
        }
        wf_safetensors_close(file);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* Rows sum to 1, weights of later tokens are exactly 0, and returning the weights does not change the logits. */
START_TEST(weights_are_shares_of_the_past)
{
    for (int f = 0; f < 2; f++) {
        struct wf_config c = small_config(families[f][1], 40, 13);
        wf_model *m = model_of(&c, 1);
        wf_tape *tape = new_tape();
        wf_tensor *w[LAYERS];
        int32_t ids[2 * 40];
        static wf_real weights[2 * 4 * 40 * 40], looked[2 * 40 * 13], plain[2 * 40 * 13];
        random_ids(ids, 80, 13, 1);
        wf_tape_reset(tape, WF_INFER);
        read_values(wf_model_attention(m, wf_ids(tape, ids, 2, 40), w), looked, 2 * 40 * 13);
        read_values(wf_model_logits(m, wf_ids(tape, ids, 2, 40), NULL), plain, 2 * 40 * 13);
        for (int i = 0; i < 2 * 40 * 13; i++)
            ck_assert_double_eq_tol(looked[i], plain[i], sizeof(wf_real) == 8 ? 1e-13 : 1e-5);
        for (int layer = 0; layer < LAYERS; layer++) {
            read_values(w[layer], weights, 2 * 4 * 40 * 40);
            for (int row = 0; row < 2 * 4 * 40; row++) {
                double sum = 0;
                for (int s = 0; s < 40; s++) {
                    sum += weights[row * 40 + s];
                    ck_assert(weights[row * 40 + s] >= 0 && (s <= row % 40 || weights[row * 40 + s] == 0));
                }
                ck_assert_double_eq_tol(sum, 1, sizeof(wf_real) == 8 ? 1e-14 : 1e-6);
            }
        }
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

WF_TEST_MAIN("attention_weights", weights_are_those_of_torch, weights_are_shares_of_the_past)
