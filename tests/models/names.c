/* SPDX-License-Identifier: MIT */
/* Names of settings in other programs: the error gives Weft's name. */
#include "models_test.h"

#include <weft/internal/setting_names.h>

static const struct {
    const char *preset, *name, *says;
} rows[] = {
    /* nanoGPT */
    {"nanogpt-char", "learning_rate", "no setting learning_rate; use lr"},
    {"nanogpt-char", "n_layer", "no setting n_layer; use layers"},
    {"nanogpt-char", "n_head", "use heads"},
    {"nanogpt-char", "n_embd", "use d_model"},
    {"nanogpt-char", "block_size", "use context"},
    {"nanogpt-char", "batch_size", "no setting batch_size; use batch"},
    {"nanogpt-char", "max_iters", "no setting max_iters; use steps"},
    {"nanogpt-char", "warmup_iters", "use warmup"},
    {"nanogpt-char", "grad_clip", "use clip"},
    {"nanogpt-char", "eval_interval", "use valid_every"},
    {"nanogpt-char", "eval_iters", "use valid_tokens"},
    {"nanogpt-char", "decay_lr", "use schedule"},
    {"nanogpt-char", "gradient_accumulation_steps", "use accumulate"},
    /* transformers: config.json */
    {"gpt2", "hidden_size", "use d_model"},
    {"gpt2", "num_hidden_layers", "use layers"},
    {"gpt2", "num_attention_heads", "use heads"},
    {"gpt2", "num_key_value_heads", "use kv_heads"},
    {"gpt2", "intermediate_size", "use d_ff"},
    {"gpt2", "max_position_embeddings", "use context"},
    {"gpt2", "hidden_act", "use activation"},
    {"gpt2", "resid_pdrop", "use dropout"},
    {"gpt2", "tie_word_embeddings", "use tied"},
    {"gpt2", "attention_bias", "use bias"},
    {"bert", "type_vocab_size", "use segments"},
    {"bert", "layer_norm_eps", "use norm_eps"},
    {"bert", "attention_probs_dropout_prob", "use attention_dropout"},
    {"bert", "hidden_dropout_prob", "no setting hidden_dropout_prob; use dropout"},
    {"multi30k", "num_hidden_layers", "no setting num_hidden_layers; use encoder_layers and decoder_layers"},
    {"multi30k", "num_encoder_layers", "no setting num_encoder_layers; use encoder_layers"},
    {"multi30k", "encoder_ffn_dim", "use d_ff"},
    {"encoder-attention", "num_encoder_layers", "use layers"},
    {"encoder-attention", "mlm_probability", "use mask_rate"},
    /* transformers: TrainingArguments, GenerationConfig */
    {"char-rms", "per_device_train_batch_size", "use batch"},
    {"char-rms", "gradient_checkpointing", "use checkpoint"},
    {"char-rms", "torch_dtype", "use precision"},
    {"char-rms", "bf16", "use precision"},
    {"multi30k", "per_device_train_batch_size", "use batch_tokens"},
    {"char-rms", "warmup_steps", "use warmup"},
    {"char-rms", "max_steps", "use steps"},
    {"char-rms", "lr_scheduler_type", "use schedule"},
    {"char-rms", "adam_beta1", "use beta1"},
    {"char-rms", "adam_epsilon", "use eps"},
    {"char-rms", "max_grad_norm", "use clip"},
    {"char-rms", "save_steps", "use save_every"},
    {"char-rms", "eval_steps", "use valid_every"},
    {"char-rms", "save_total_limit", "use keep"},
    {"char-rms", "early_stopping_patience", "use patience"},
    {"char-rms", "label_smoothing_factor", "use label_smoothing"},
    {"char-rms", "max_new_tokens", "use max_tokens"},
    {"multi30k", "metric_for_best_model", "use best_by"},
    {"multi30k", "predict_with_generate", "use valid_scores"},
    {"multi30k", "num_beams", "use beam"},
    /* PyTorch */
    {"char-rms", "betas", "no setting betas; use beta1 and beta2"},
    {"multi30k", "dim_feedforward", "use d_ff"},
    {"multi30k", "nhead", "use heads"},
    {"multi30k", "norm_first", "use norm"},
    /* fairseq: with - */
    {"multi30k", "max-update", "no setting max-update; use steps"},
    {"multi30k", "clip-norm", "use clip"},
    {"multi30k", "update-freq", "use accumulate"},
    {"multi30k", "warmup-updates", "use warmup"},
    {"multi30k", "encoder-embed-dim", "use d_model"},
    {"multi30k", "decoder-ffn-embed-dim", "use d_ff"},
    {"multi30k", "encoder-attention-heads", "use heads"},
    {"multi30k", "attention-dropout", "no setting attention-dropout; use inner_dropout"},
    {"multi30k", "share-all-embeddings", "use shared"},
    {"multi30k", "share-decoder-input-output-embed", "use tied"},
    {"multi30k", "max-source-positions", "use max_length"},
    {"multi30k", "save-interval-updates", "use save_every"},
    {"multi30k", "lenpen", "use length_penalty"},
    {"multi30k", "encoder-normalize-before", "use norm"},
    /* transformers' Phi-3 */
    {"phi3-mini", "resid_pdrop", "use dropout"},
    {"phi3-mini", "embd_pdrop", "use embedding_dropout"},
    {"phi3-mini", "sliding_window", "use window"},
    /* Llama, Qwen 2 */
    {"smollm2-135m", "attention_bias", "use qkv_bias"},
    {"smollm2-135m", "mlp_bias", "use ffn_bias"},
    {"smollm2-135m", "max_window_layers", "use window_from"},
    /* and Gemma */
    {"gemma3-270m", "query_pre_attn_scalar", "use score_divisor"},
    {"gemma3-270m", "attn_logit_softcapping", "use score_softcap"},
    {"gemma3-270m", "final_logit_softcapping", "use logit_softcap"},
    {"gemma3-270m", "sliding_window_pattern", "use full_every"},
    {"gemma3-270m", "rope_local_base_freq", "use window_rope_base"},
    /* llama.cpp */
    {"char-rms", "embedding_length", "use d_model"},
    {"char-rms", "block_count", "use layers"},
    {"char-rms", "head_count_kv", "use kv_heads"},
    {"char-rms", "feed_forward_length", "use d_ff"},
    {"char-rms", "n_ctx", "use context"},
    {"char-rms", "n_predict", "use max_tokens"},
    {"char-rms", "temp", "use temperature"},
    /* another name of a key that this kind of model does not use */
    {"gpt2", "num_beams", "beam: gpt2, a language model, does not use it: set top_k"},
    {"multi30k", "mlm_probability", "mask_rate: multi30k, an encoder-decoder, does not use it"},
    {"multi30k", "num_key_value_heads", "kv_heads: multi30k, an encoder-decoder, does not use it"},
    /* Weft's name with - for _ */
    {"char-rms", "weight-decay", "unknown key \"weight-decay\": did you mean weight_decay?"},
};

START_TEST(the_message_says_ours)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct wf_config c = preset(rows[i].preset), before = c;
        wf_error e = {0};
        ck_assert_int_eq(wf_config_set(&c, rows[i].name, "1", &e), WF_ERR_ARGUMENT);
        const char *found = strstr(e.message, rows[i].says);
        ck_assert_msg(found && !found[strlen(rows[i].says)], "%s of %s: %s", rows[i].name, rows[i].preset, e.message);
        ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
    }
}
END_TEST

/* The advice for any model is one of its keys. */
START_TEST(advice_is_a_key)
{
    for (int m = 0; wf_preset_at(m); m++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct wf_config c = preset(wf_preset_at(m)->name);
            wf_error e = {0};
            char text[64], advice[128];
            if (wf_config_set(&c, rows[i].name, "1", &e) == WF_OK)
                continue;
            const char *at = strstr(e.message, "; use ");
            snprintf(advice, sizeof advice, "%s", at ? at + 6 : "");
            for (char *key = strtok(advice, " "); key; key = strtok(NULL, " "))
                ck_assert_msg(strcmp(key, "and") == 0 || wf_config_get(&c, key, text, sizeof text), "%s: %s", c.model, e.message);
        }
}
END_TEST

START_TEST(a_key_of_any_family)
{
    static const char *const names[][2] = {
        {"lr", "lr"},           {"learning-rate", "lr"}, {"n_layer", "layers"},   {"weight-decay", "weight_decay"}, {"num_beams", "beam"},
        {"dropout", "dropout"}, {"d-model", "d_model"},  {"max_update", "steps"}, {"kv_heads", "kv_heads"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_str_eq(wf_setting_called(names[i][0]), names[i][1]);
    ck_assert_ptr_null(wf_setting_called("momentum"));
    ck_assert_ptr_null(wf_setting_called(""));
    ck_assert_ptr_null(wf_setting_called("learning"));
    ck_assert(wf_name_in("a b_c d", "b-c") && !wf_name_in("a b_c d", "b") && !wf_name_in("a b_c d", "") && !wf_name_in(NULL, "a"));
}
END_TEST

WF_TEST_MAIN("names", the_message_says_ours, advice_is_a_key, a_key_of_any_family)
