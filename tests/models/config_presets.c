/* SPDX-License-Identifier: MIT */
/* Presets, and names that are nearly one. */
#include "models_test.h"
#include <weft/internal/text.h>

START_TEST(presets_are_zoo_rows)
{
    int count = 0;
    for (const struct wf_preset *p; (p = wf_preset_at(count)); count++) {
        struct wf_config c = preset(p->name);
        ck_assert_str_eq(c.model, p->name);
        ck_assert(wf_config_family(&c)[0] != 0);
        ck_assert(p->purpose[0] && !strchr(p->purpose, '\n'));
        ck_ok(wf_config_check(&c, error));
    }
    ck_assert_ptr_null(wf_preset_at(-1));
    ck_assert_int_ge(count, 10);

    struct wf_config c = preset("nanogpt-char");
    ck_assert(key_of(&c, "layers") == 6 && key_of(&c, "heads") == 6 && key_of(&c, "d_model") == 384 && key_of(&c, "d_ff") == 1536 &&
              key_of(&c, "context") == 256 && c.training.batch == 64 && c.training.steps == 5000);
    ck_assert(real_key(&c, "dropout") == 0.2 && key_of(&c, "tied") && !key_of(&c, "bias") && key_is(&c, "activation", "gelu") &&
              c.training.lr == 1e-3 && c.training.min_lr == 1e-4 && c.training.warmup == 100);
    ck_assert(c.training.schedule == WF_SCHEDULE_COSINE && c.training.beta1 == 0.9 && c.training.beta2 == 0.99 &&
              c.training.weight_decay == 0.1 && c.training.clip == 1.0);
    c = preset("nanogpt-char-small");
    ck_assert(key_of(&c, "layers") == 4 && key_of(&c, "heads") == 4 && key_of(&c, "d_model") == 128 && key_of(&c, "d_ff") == 512 &&
              key_of(&c, "context") == 64 && c.training.batch == 12 && c.training.steps == 2000);
    ck_assert(real_key(&c, "dropout") == 0 && key_of(&c, "tied") && !key_of(&c, "bias") && key_is(&c, "activation", "gelu") &&
              c.training.lr == 1e-3 && c.training.min_lr == 1e-4 && c.training.warmup == 100);
    c = preset("char-rms");
    ck_assert(key_of(&c, "layers") == 1 && key_of(&c, "heads") == 4 && key_of(&c, "d_model") == 64 && key_of(&c, "d_ff") == 256 &&
              key_of(&c, "context") == 256 && c.training.batch == 16 && c.training.steps == 1000);
    ck_assert(real_key(&c, "dropout") == 0 && !key_of(&c, "tied") && key_of(&c, "bias") && key_is(&c, "activation", "relu") &&
              c.training.lr == 1e-3 && c.training.schedule == WF_SCHEDULE_CONSTANT);
    ck_assert(c.training.weight_decay == 0 && c.training.beta2 == 0.999 && c.training.clip == 1.0 && c.generation.top_k == 4 &&
              c.generation.max_tokens == 100);

    c = preset("seq2seq-tiny");
    ck_assert(key_is(&c, "norm", "pre") && key_of(&c, "final_norm") && key_of(&c, "d_model") == 32 && key_of(&c, "heads") == 4 &&
              key_of(&c, "d_ff") == 128 && key_of(&c, "encoder_layers") == 2);
    ck_assert(real_key(&c, "dropout") == 0.1 && key_of(&c, "inner_dropout") && !key_of(&c, "shared") && !key_of(&c, "tied") &&
              key_of(&c, "bias") && !key_of(&c, "scale_embeddings") && key_of(&c, "positions") == 5000);
    ck_assert(c.tokenizer.kind == WF_TOKENIZER_WORD && !key_of(&c, "source_bos") && !key_of(&c, "source_eos") && c.training.lr == 1e-3 &&
              c.training.steps == 200 && c.training.batch_tokens == 0);
    ck_assert(c.generation.beam == 1 && c.generation.max_tokens == 20 && c.training.label_smoothing == 0 && c.training.clip == 0 &&
              c.training.beta2 == 0.999 && c.training.eps == 1e-8);
    c = preset("seq2seq-postnorm");
    ck_assert(key_is(&c, "norm", "post") && !key_of(&c, "final_norm") && key_of(&c, "d_model") == 128 && key_of(&c, "heads") == 8 &&
              key_of(&c, "d_ff") == 512 && key_of(&c, "decoder_layers") == 2);
    ck_assert(real_key(&c, "dropout") == 0 && key_of(&c, "shared") && !key_of(&c, "tied") && !key_of(&c, "scale_embeddings") &&
              key_of(&c, "vocab_size") == 1000 && c.training.lr == 1e-4);
    c = preset("transformer-base");
    ck_assert(key_is(&c, "norm", "post") && key_of(&c, "final_norm") && key_of(&c, "d_model") == 512 && key_of(&c, "heads") == 8 &&
              key_of(&c, "d_ff") == 2048 && key_of(&c, "encoder_layers") == 6);
    ck_assert(real_key(&c, "dropout") == 0.1 && key_of(&c, "inner_dropout") && key_of(&c, "shared") && key_of(&c, "tied") &&
              key_of(&c, "scale_embeddings") && key_of(&c, "xavier") && key_of(&c, "max_length") == 512);
    ck_assert(fabs(c.training.lr - 1 / sqrt(512.0 * 4000)) < 1e-9 && c.training.warmup == 4000 &&
              c.training.schedule == WF_SCHEDULE_INVERSE_SQRT && c.training.eps == 1e-9);
    ck_assert(c.training.batch_tolerance == 512);
    ck_assert(c.training.batch_tokens == 24000 && c.training.batch_cost == WF_BATCH_BOTH && c.training.batch_window == 4096 &&
              c.training.beta2 == 0.98 && c.training.clip == 1);
    ck_assert(key_of(&c, "source_bos") && key_of(&c, "source_eos") && c.tokenizer.min_frequency == 2 && c.training.label_smoothing == 0.1 &&
              c.generation.beam == 4 && c.generation.length_penalty == 0.6);
    ck_assert(c.training.steps == 100000 && c.training.save_every == 100 && c.training.valid_every == 200 &&
              c.training.keep_every == 10000 && c.generation.extra_tokens == 50);
    c = preset("transformer-big");
    ck_assert(key_of(&c, "d_model") == 1024 && key_of(&c, "heads") == 16 && key_of(&c, "d_ff") == 4096 && real_key(&c, "dropout") == 0.3 &&
              c.training.steps == 300000 && c.training.keep_every == 100000);
    ck_assert(fabs(c.training.lr - 1 / sqrt(1024.0 * 4000)) < 1e-9);
    c = preset("encoder-attention");
    ck_assert(key_is(&c, "norm", "post") && key_of(&c, "final_norm") && key_of(&c, "d_model") == 64 && key_of(&c, "heads") == 8 &&
              key_of(&c, "d_ff") == 256 && key_of(&c, "layers") == 6);
    ck_assert(key_of(&c, "context") == 128 && key_of(&c, "vocab_size") == 1000 && real_key(&c, "dropout") == 0.1 && !key_of(&c, "tied") &&
              key_of(&c, "bias") && key_of(&c, "scale_embeddings"));
    ck_assert(key_is(&c, "activation", "relu") && c.tokenizer.kind == WF_TOKENIZER_WORD && c.training.mask_rate == 0.15 &&
              c.training.lr == 1e-3 && c.training.batch == 32);
    ck_assert(c.training.weight_decay == 0.01 && c.training.beta1 == 0.9 && c.training.beta2 == 0.999 && c.training.eps == 1e-8);
    c = preset("multi30k");
    ck_assert(key_is(&c, "norm", "pre") && key_of(&c, "final_norm") && key_of(&c, "d_model") == 128 && key_of(&c, "heads") == 4 &&
              key_of(&c, "d_ff") == 256 && key_of(&c, "decoder_layers") == 4);
    ck_assert(real_key(&c, "dropout") == 0.2 && !key_of(&c, "inner_dropout") && key_of(&c, "shared") && key_of(&c, "tied") &&
              key_of(&c, "scale_embeddings") && key_of(&c, "xavier") && c.training.lr == 2e-3);
    ck_assert(c.training.warmup == 400 && c.training.batch_tokens == 4096 && c.training.batch_cost == WF_BATCH_SIDE &&
              c.training.batch_window == 0 && c.training.batch_tolerance == 0 && key_of(&c, "vocab_size") == 10000);
    ck_assert(!key_of(&c, "source_bos") && key_of(&c, "source_eos") && c.training.keep == 10 && c.training.save_every == 100 &&
              c.generation.beam == 5 && c.generation.length_penalty == 0.6);
}
END_TEST

START_TEST(an_unknown_model_names_the_nearest)
{
    struct wf_config c, before;
    memset(&c, 0x5a, sizeof c);
    before = c;
    ck_fails(wf_config_preset(&c, "nanogpt-chr", error), WF_ERR_ARGUMENT, "unknown model \"nanogpt-chr\": did you mean nanogpt-char?");
    ck_fails(wf_config_preset(&c, "nanogpt", error), WF_ERR_ARGUMENT, "did you mean nanogpt-char?");
    ck_fails(wf_config_preset(&c, "NanoGPT-Char-Smal", error), WF_ERR_ARGUMENT, "did you mean nanogpt-char-small?");
    ck_fails(wf_config_preset(&c, "char_rms", error), WF_ERR_ARGUMENT, "did you mean char-rms?");
    ck_fails(wf_config_preset(&c, "resnet", error), WF_ERR_ARGUMENT, "unknown model \"resnet\": the command `models` lists them");
    ck_fails(wf_config_preset(&c, "", error), WF_ERR_ARGUMENT, "the command `models` lists them");
    ck_fails(wf_config_preset(&c, "brt", error), WF_ERR_ARGUMENT, "unknown model \"brt\": did you mean bert?");
    ck_fails(wf_config_preset(&c, "a\nb", error), WF_ERR_ARGUMENT, "unknown model");
    ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
}
END_TEST

START_TEST(nearest_names)
{
    static const char *const names[] = {"dropout", "d_model", "d_ff", "lr", "min_lr", "top_k", "top_p"};
    char longer[500];
    memset(longer, 'x', sizeof longer);
    longer[499] = 0;
    ck_assert_str_eq(wf_nearest("droput", names, 7), "dropout");
    ck_assert_str_eq(wf_nearest("d-model", names, 7), "d_model");
    ck_assert_str_eq(wf_nearest("DMODEL", names, 7), "d_model");
    ck_assert_str_eq(wf_nearest("rl", names, 7), "lr"); /* two letters swapped are one mistake */
    ck_assert_str_eq(wf_nearest("topk", names, 7), "top_k");
    ck_assert_str_eq(wf_nearest("top_q", names, 7), "top_k"); /* of two that are as near, the first */
    ck_assert_str_eq(wf_nearest("drop", names, 7), "dropout");
    ck_assert_ptr_null(wf_nearest("momentum", names, 7));
    ck_assert_ptr_null(wf_nearest("", names, 7));
    ck_assert_ptr_null(wf_nearest(longer, names, 7));
    ck_assert_ptr_null(wf_nearest("lr", names, 0));
}
END_TEST

WF_TEST_MAIN("config_presets", presets_are_zoo_rows, an_unknown_model_names_the_nearest, nearest_names)
