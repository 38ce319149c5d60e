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
    return strcmp(type, "gpt2") == 0 ? "gpt" : strcmp(type, "phi3") == 0 ? "phi3" : strncmp(type, "gemma", 5) == 0 ? "gemma" : "llama";
}

#define THETA "\"rope_theta\": 5000"

#define KV ", \"num_key_value_heads\": 2"
#define WINDOW "\"sliding_window\": 8"
#define GEMMA2 WINDOW ", " THETA
#define GEMMA3 GEMMA2 ", \"rope_local_base_freq\": 3"

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
        {"llama", THETA ", \"attention_bias\": true", "qkv_bias=true out_bias=true ffn_bias=false"},
        {"llama", THETA ", \"mlp_bias\": true", "qkv_bias=false out_bias=false ffn_bias=true"},
        {"qwen3", THETA ", \"attention_bias\": true", "qkv_bias=true out_bias=true ffn_bias=false qk_norm=true"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"sliding_window\": 8, \"max_window_layers\": 1",
         "window=8 window_from=1 out_bias=false"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"sliding_window\": 8, \"max_window_layers\": 2", "window=0 window_from=0"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"sliding_window\": null, \"max_window_layers\": 0", "window=0 window_from=0"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"max_window_layers\": 0", "window=4096 window_from=0"},
        {"qwen3",
         THETA ", \"use_sliding_window\": true, \"sliding_window\": 8, \"max_window_layers\": 2, \"layer_types\": [\"full_attention\", "
               "\"sliding_attention\"]",
         "window=8 window_from=1"},
        {"mistral", THETA ", \"sliding_window\": 8, \"layer_types\": [\"sliding_attention\", \"sliding_attention\"]",
         "window=8 window_from=0"},
        {"qwen3", THETA ", \"head_dim\": 4", "d_key=4 qkv_bias=false qk_norm=true"},
        {"phi3", THETA,
         "d_model=12 heads=6 kv_heads=0 d_ff=20 layers=2 context=64 vocab_size=30 norm_eps=1e-05 rope_base=5000.0 tied=false window=0 "
         "dropout=0.0 embedding_dropout=0.0 attention_dropout=0.0"},
        {"phi3",
         "\"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"default\", \"partial_rotary_factor\": 1.0}, \"sliding_window\": 9, "
         "\"resid_pdrop\": 0.1, \"embd_pdrop\": 0.2, \"attention_dropout\": 0.3, \"num_key_value_heads\": 3, \"rms_norm_eps\": 1e-6, "
         "\"tie_word_embeddings\": true",
         "rope_base=7.0 window=9 dropout=0.1 embedding_dropout=0.2 attention_dropout=0.3 kv_heads=3 norm_eps=1e-06 tied=true"},
        {"gemma2", GEMMA2 ", \"num_key_value_heads\": 3",
         "d_model=12 heads=6 kv_heads=3 d_key=256 d_ff=20 layers=2 context=64 vocab_size=30 window=8 full_every=2 dropout=0.0 "
         "norm_eps=1e-06 "
         "score_divisor=256.0 score_softcap=50.0 logit_softcap=30.0 rope_base=5000.0 window_rope_base=5000.0 rope_factor=1.0 tied=true "
         "qk_norm=false"},
        {"gemma2",
         WINDOW KV ", \"rope_parameters\": {\"rope_theta\": 7, \"rope_type\": \"default\"}, \"attn_logit_softcapping\": null, "
                   "\"final_logit_softcapping\": null, \"query_pre_attn_scalar\": 144, \"head_dim\": 4, "
                   "\"attention_dropout\": 0.1, \"use_bidirectional_attention\": null, "
                   "\"layer_types\": [\"full_attention\", \"full_attention\"]",
         "rope_base=7.0 window_rope_base=7.0 score_softcap=0.0 logit_softcap=0.0 score_divisor=144.0 d_key=4 kv_heads=2 dropout=0.1 "
         "full_every=1"},
        {"gemma3_text", GEMMA3 KV,
         "window=8 full_every=0 qk_norm=true score_softcap=0.0 logit_softcap=0.0 rope_base=5000.0 window_rope_base=3.0 rope_factor=1.0"},
        {"gemma3_text", GEMMA3 KV ", \"sliding_window_pattern\": 2, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0}",
         "full_every=2 rope_factor=8.0"},
        {"gemma3_text", GEMMA3 KV ", \"_sliding_window_pattern\": 6, \"layer_types\": [\"sliding_attention\", \"full_attention\"]",
         "full_every=2"},
        {"gemma3_text", GEMMA3 KV ", \"layer_types\": [\"sliding_attention\", \"sliding_attention\"], \"final_logit_softcapping\": 4",
         "full_every=0 logit_softcap=4.0"},
        {"gemma3_text",
         WINDOW KV ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 7, \"rope_type\": \"linear\", \"factor\": 4}, "
                   "\"sliding_attention\": {\"rope_theta\": 5, \"rope_type\": \"default\"}}",
         "rope_base=7.0 rope_factor=4.0 window_rope_base=5.0"},
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
        {"llama", THETA ", \"hidden_act\": \"gelu\"", "key \"hidden_act\": only silu"},
        {"llama", THETA ", \"hidden_act\": \"xielu\"", "key \"hidden_act\": \"xielu\" is not supported"},
        {"llama", THETA ", \"quantization_config\": {\"bits\": 4}", "key \"quantization_config\": quantised weights"},
        {"llama", THETA ", \"head_dim\": 3", "heads of even width"},
        {"llama", THETA ", \"num_key_value_heads\": 4", "heads (6) must be a multiple of kv_heads (4)"},
        {"mistral", THETA ", \"attention_bias\": true", "key \"attention_bias\": in this architecture the biases of attention are fixed"},
        {"qwen2", THETA ", \"attention_bias\": true", "key \"attention_bias\""},
        {"qwen3", THETA ", \"mlp_bias\": true", "key \"mlp_bias\": this architecture has no biases"},
        {"qwen3", THETA ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]", "\"sliding_attention\" is not supported"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"layer_types\": [\"sliding_attention\", \"full_attention\"]",
         "no layer with full attention may come after one with sliding attention"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\", \"linear_attention\"]",
         "\"linear_attention\" is not supported"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"layer_types\": [\"full_attention\"]", "its length is not num_hidden_layers"},
        {"qwen2", THETA ", \"use_sliding_window\": true, \"max_window_layers\": -1", "\"max_window_layers\""},
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
        {"gemma2", WINDOW, "key \"rope_theta\": the base of rotary positions is missing"},
        {"gemma2", THETA, "the key \"sliding_window\" is missing"},
        {"gemma2", GEMMA2 ", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", "key \"rope_scaling\": this architecture has only"},
        {"gemma2", GEMMA2 ", \"hidden_activation\": \"gelu\"", "key \"hidden_activation\": only gelu_pytorch_tanh"},
        {"gemma2", GEMMA2 ", \"attention_bias\": true", "key \"attention_bias\": biases of attention are not supported"},
        {"gemma2", GEMMA2 ", \"use_bidirectional_attention\": true", "key \"use_bidirectional_attention\": attention to later tokens"},
        {"gemma2", GEMMA2 ", \"quantization_config\": {\"bits\": 4}", "key \"quantization_config\": quantised weights"},
        {"gemma2", GEMMA2 ", \"attn_logit_softcapping\": -1", "\"attn_logit_softcapping\""},
        {"gemma2", GEMMA2 KV ", \"head_dim\": 3", "heads of even width"},
        {"gemma2", GEMMA2 ", \"num_key_value_heads\": 4", "heads (6) must be a multiple of kv_heads (4)"},
        {"gemma2", GEMMA2 ", \"layer_types\": [\"full_attention\", \"chunked_attention\"]", "\"chunked_attention\" is not supported"},
        {"gemma2", GEMMA2 ", \"layer_types\": [\"full_attention\", \"sliding_attention\"]",
         "layers with full attention must be at equal distances"},
        {"gemma2", GEMMA2 ", \"layer_types\": [\"sliding_attention\"]", "key \"layer_types\": its length is not num_hidden_layers"},
        {"gemma3_text", GEMMA2, "the key \"rope_local_base_freq\" is missing"},
        {"gemma3_text", WINDOW ", \"rope_local_base_freq\": 3", "key \"rope_theta\": the base of rotary positions is missing"},
        {"gemma3_text", WINDOW ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 7}}",
         "\"rope_theta\", the base of rotary positions, is missing for \"sliding_attention\""},
        {"gemma3_text", WINDOW ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 7}, \"sliding_attention\": {}}",
         "is missing for \"sliding_attention\""},
        {"gemma3_text",
         WINDOW ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 7, \"rope_type\": \"yarn\", \"factor\": 2}, "
                "\"sliding_attention\": {\"rope_theta\": 5}}",
         "key \"rope_parameters\": \"yarn\" is not supported"},
        {"gemma3_text",
         WINDOW ", \"rope_parameters\": {\"sliding_attention\": {\"rope_theta\": 7, \"rope_type\": \"linear\", \"factor\": 2}, "
                "\"full_attention\": {\"rope_theta\": 5}}",
         "key \"rope_parameters\": this architecture has only"},
        {"gemma3_text",
         WINDOW ", \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 7, \"partial_rotary_factor\": 0.5}, "
                "\"sliding_attention\": {\"rope_theta\": 5}}",
         "key \"partial_rotary_factor\""},
        {"gemma3_text", GEMMA3 ", \"attn_logit_softcapping\": 50", "key \"attn_logit_softcapping\": Gemma 3 does not bound"},
        {"gemma3", THETA,
         "models of the type \"gemma3\" are not supported; these types are: gpt2, llama, mistral, qwen2, qwen3, phi3, gemma2, gemma3_text, "
         "bert"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wf_config c;
        write_config(bad[i].type, bad[i].more);
        ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, bad[i].message);
    }
}
END_TEST

WF_TEST_MAIN("models/config_decoders", values_and_defaults, refused)
