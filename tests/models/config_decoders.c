/* SPDX-License-Identifier: MIT */
/* Hugging Face's config.json of decoders: both layouts, what is used, and what is refused by key. */
#include "../data/data_test.h"
#include "models_test.h"

static const char *path;

/* A file with the keys that must be there, and `more`. */
static void write_config(const char *type, const char *more)
{
    char text[2048];
    if (strcmp(type, "gpt2") == 0)
        snprintf(text, sizeof text,
                 "{\"model_type\": \"gpt2\", \"vocab_size\": 30, \"n_embd\": 12, \"n_layer\": 2, \"n_head\": 3, \"n_positions\": 16%s%s}",
                 more[0] ? ", " : "", more);
    else
        snprintf(text, sizeof text,
                 "{\"model_type\": \"%s\", \"vocab_size\": 30, \"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 6, "
                 "\"intermediate_size\": 20, \"max_position_embeddings\": 64%s%s}",
                 type, more[0] ? ", " : "", more);
    path = test_file("config.json", text, strlen(text));
}

static const char *family_of(const char *type)
{
    return strcmp(type, "gpt2") == 0 ? "gpt" : strcmp(type, "phi3") == 0 ? "phi3" : "llama";
}

#define THETA "\"rope_theta\": 5000"

START_TEST(values_and_defaults)
{
    static const struct {
        const char *type, *more, *keys;
    } good[] = {
        {"llama", THETA,
         "d_model=12 heads=6 kv_heads=0 d_key=0 d_ff=20 layers=2 context=64 vocab_size=30 norm_eps=1e-06 rope_base=5000.0 "
         "rope_scaling=none tied=false qkv_bias=false qk_norm=false window=0 dropout=0.0"},
        {"llama", THETA ", \"rope_scaling\": null, \"head_dim\": null, \"num_key_value_heads\": 2, \"tie_word_embeddings\": true",
         "kv_heads=2 d_key=0 tied=true"},
        {"llama", THETA ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}", "rope_scaling=linear rope_factor=2.5"},
        {"llama",
         THETA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 32, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
               "\"original_max_position_embeddings\": 8192}",
         "rope_scaling=llama3 rope_factor=32.0 rope_low=1.0 rope_high=4.0 rope_context=8192.0"},
        {"llama", "\"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"default\"}", "rope_base=7.0 rope_scaling=none"},
        {"llama", "\"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"linear\", \"factor\": 3}",
         "rope_base=7.0 rope_scaling=linear rope_factor=3.0"},
        {"mistral", THETA ", \"sliding_window\": 8", "window=8"},
        {"mistral", THETA ", \"sliding_window\": null", "window=0"},
        {"qwen2", THETA ", \"use_sliding_window\": false, \"sliding_window\": 8, \"max_window_layers\": 2",
         "window=0 qkv_bias=true qk_norm=false"},
        {"qwen3", THETA ", \"head_dim\": 4", "d_key=4 qkv_bias=false qk_norm=true"},
        {"phi3", THETA,
         "d_model=12 heads=6 kv_heads=0 d_ff=20 layers=2 context=64 vocab_size=30 norm_eps=1e-05 rope_base=5000.0 tied=false window=0 "
         "dropout=0.0 embedding_dropout=0.0 attention_dropout=0.0"},
        {"phi3",
         "\"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"default\", \"partial_rotary_factor\": 1.0}, \"sliding_window\": 9, "
         "\"resid_pdrop\": 0.1, \"embd_pdrop\": 0.2, \"attention_dropout\": 0.3, \"num_key_value_heads\": 3, \"rms_norm_eps\": 1e-6, "
         "\"tie_word_embeddings\": true",
         "rope_base=7.0 window=9 dropout=0.1 embedding_dropout=0.2 attention_dropout=0.3 kv_heads=3 norm_eps=1e-06 tied=true"},
        {"gpt2", "", "d_model=12 heads=3 d_ff=48 layers=2 context=16 vocab_size=30 activation=gelu_tanh tied=true bias=true dropout=0.1"},
        {"gpt2", "\"n_inner\": 20, \"activation_function\": \"relu\", \"resid_pdrop\": 0, \"embd_pdrop\": 0, \"attn_pdrop\": 0",
         "d_ff=20 activation=relu dropout=0.0"},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct wf_config c, back;
        write_config(good[i].type, good[i].more);
        ck_ok(wf_config_load(&c, path, error));
        ck_assert_str_eq(wf_config_family(&c), family_of(good[i].type));
        ck_keys(&c, good[i].keys);
        ck_ok(wf_config_check(&c, error));
        ck_ok(wf_config_save(&c, path, error)); /* as a file of Weft */
        ck_ok(wf_config_load(&back, path, error));
        ck_assert_int_eq(memcmp(&c, &back, sizeof c), 0);
    }
}
END_TEST

START_TEST(refused)
{
    static const struct {
        const char *type, *more, *message;
    } bad[] = {
        {"llama", "", "key \"rope_theta\": the base of rotary positions is missing"},
        {"llama", "\"rope_parameters\": {}", "key \"rope_parameters\": \"rope_theta\", the base of rotary positions, is missing in it"},
        {"llama", THETA ", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}", "key \"rope_scaling\": \"yarn\" is not supported"},
        {"llama", THETA ", \"rope_scaling\": {\"type\": \"linear\"}", "the key \"factor\" is missing"},
        {"llama", THETA ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 2}", "the key \"low_freq_factor\" is missing"},
        {"llama", "\"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"dynamic\", \"factor\": 3}", "\"dynamic\" is not supported"},
        {"llama", THETA ", \"partial_rotary_factor\": 0.5", "heads that are rotated in part"},
        {"llama", THETA ", \"attention_bias\": true", "key \"attention_bias\": biases of attention are not supported"},
        {"llama", THETA ", \"mlp_bias\": true", "key \"mlp_bias\""},
        {"llama", THETA ", \"hidden_act\": \"gelu\"", "key \"hidden_act\": only silu"},
        {"llama", THETA ", \"hidden_act\": \"xielu\"", "key \"hidden_act\": \"xielu\" is not supported"},
        {"llama", THETA ", \"quantization_config\": {\"bits\": 4}", "key \"quantization_config\": quantised weights"},
        {"llama", THETA ", \"head_dim\": 3", "heads of even width"},
        {"llama", THETA ", \"num_key_value_heads\": 4", "heads (6) must be a multiple of kv_heads (4)"},
        {"qwen2", THETA ", \"use_sliding_window\": true", "key \"use_sliding_window\""},
        {"qwen3", THETA ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]", "\"sliding_attention\" is not supported"},
        {"phi3", "", "key \"rope_theta\": the base of rotary positions is missing"},
        {"phi3", THETA ", \"rope_scaling\": {\"type\": \"longrope\", \"short_factor\": [1], \"long_factor\": [1]}",
         "key \"rope_scaling\": \"longrope\" is not supported: only the rope types default, linear and llama3"},
        {"phi3", THETA ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", "key \"rope_scaling\": only the rope type default"},
        {"phi3", THETA ", \"partial_rotary_factor\": 0.75", "key \"partial_rotary_factor\""},
        {"phi3", "\"rope_parameters\": {\"rope_theta\": 7, \"partial_rotary_factor\": 0.75}", "key \"partial_rotary_factor\""},
        {"phi3", THETA ", \"hidden_act\": \"gelu\"", "key \"hidden_act\": only silu"},
        {"phi3", THETA ", \"quantization_config\": {\"bits\": 4}", "key \"quantization_config\": quantised weights"},
        {"phi3", THETA ", \"num_key_value_heads\": 4", "heads (6) must be a multiple of kv_heads (4)"},
        {"gpt2", "\"layer_norm_epsilon\": 1e-6", "key \"layer_norm_epsilon\": only 1e-5"},
        {"gpt2", "\"attn_pdrop\": 0.2", "it must equal embd_pdrop and attn_pdrop"},
        {"gpt2", "\"scale_attn_weights\": false", "key \"scale_attn_weights\""},
        {"gpt2", "\"scale_attn_by_inverse_layer_idx\": true", "key \"scale_attn_by_inverse_layer_idx\""},
        {"gpt2", "\"add_cross_attention\": true", "key \"add_cross_attention\""},
        {"gemma2", THETA,
         "models of the type \"gemma2\" are not supported; these types are: gpt2, llama, mistral, qwen2, qwen3, phi3, bert"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_config c;
        write_config(bad[i].type, bad[i].more);
        ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, bad[i].message);
    }
}
END_TEST

WF_TEST_MAIN("models/config_decoders", values_and_defaults, refused)
