/* SPDX-License-Identifier: MIT */
/* Hugging Face's config.json of a BERT: keys that are used, ignored, and refused by name. */
#include "../data/data_test.h"
#include "../golden/bert.h"
#include "models_test.h"

static const char *path;

static void write_text(const char *text)
{
    path = test_file("config.json", text, strlen(text));
}

/* The keys that must be there, and `more`. */
static void write_config(const char *more)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, "
             "\"intermediate_size\": 20%s%s}",
             more[0] ? ", " : "", more);
    write_text(text);
}

START_TEST(values_and_defaults)
{
    struct wf_config c = bert_config(), least;
    ck_assert_str_eq(wf_config_family(&c), "bert");
    ck_assert_str_eq(c.model, "bert");
    ck_keys(&c, "vocab_size=42 d_model=12 layers=2 heads=3 d_ff=20 context=24 segments=2 norm_eps=1e-12 activation=gelu dropout=0.1 "
                "attention_dropout=0.2");
    ck_assert_int_eq(wf_config_kind(&c), WF_MODEL_ENCODER);
    ck_ok(wf_config_check(&c, error));
    write_config(""); /* absent keys have that library's defaults */
    ck_ok(wf_config_load(&least, path, error));
    ck_keys(&least, "context=512 segments=2 norm_eps=1e-12 activation=gelu dropout=0.1 attention_dropout=0.1");
    write_config("\"use_cache\": true, \"is_decoder\": false, \"position_embedding_type\": \"absolute\", \"pruned_heads\": {}, "
                 "\"quantization_config\": null, \"torch_dtype\": \"float16\", \"id2label\": {\"0\": \"a\"}, \"anything\": [1, 2]");
    ck_ok(wf_config_load(&c, path, error));
    ck_assert(!key_of(&c, "masked_head") && key_of(&c, "tied")); /* vectors need no output layer */
    ck_assert(c.training.lr == 5e-5 && c.training.crop == 128);  /* as the preset trains */
    /* saved as a file of Weft, and loaded */
    struct wf_config back;
    ck_ok(wf_config_save(&c, path, error));
    ck_ok(wf_config_load(&back, path, error));
    ck_assert_int_eq(memcmp(&c, &back, sizeof c), 0);
    write_config("\"tie_word_embeddings\": false, \"max_position_embeddings\": 24");
    ck_ok(wf_config_load(&c, path, error));
    ck_assert(!key_of(&c, "tied") && c.training.crop == 24);
}
END_TEST

START_TEST(activations)
{
    static const struct {
        const char *name;
        enum wf_activation activation;
    } names[] = {{"gelu", WF_GELU},           {"gelu_python", WF_GELU}, {"gelu_new", WF_GELU_TANH}, {"gelu_pytorch_tanh", WF_GELU_TANH},
                 {"gelu_fast", WF_GELU_TANH}, {"relu", WF_RELU},        {"silu", WF_SILU},          {"swish", WF_SILU}};
    for (int i = 0; i < 8; i++) {
        struct wf_config c;
        char more[64];
        snprintf(more, sizeof more, "\"hidden_act\": \"%s\"", names[i].name);
        write_config(more);
        ck_ok(wf_config_load(&c, path, error));
        ck_assert_int_eq(key_of(&c, "activation"), names[i].activation);
    }
}
END_TEST

START_TEST(unsupported_settings_are_refused)
{
    static const struct {
        const char *more, *message;
    } bad[] = {
        {"\"position_embedding_type\": \"relative_key\"", "key \"position_embedding_type\": \"relative_key\" is not supported"},
        {"\"is_decoder\": true", "key \"is_decoder\": only a BERT encoder is supported"},
        {"\"add_cross_attention\": true", "key \"add_cross_attention\""},
        {"\"is_encoder_decoder\": true", "key \"is_encoder_decoder\""},
        {"\"is_decoder\": 1", "key \"is_decoder\""},
        {"\"hidden_act\": \"gelu_10\"", "key \"hidden_act\": \"gelu_10\" is not supported"},
        {"\"hidden_act\": 3", "key \"hidden_act\""},
        {"\"pruned_heads\": {\"0\": [1]}", "key \"pruned_heads\""},
        {"\"quantization_config\": {\"bits\": 8}", "key \"quantization_config\""},
        {"\"layer_norm_eps\": 0", "key \"layer_norm_eps\""},
        {"\"layer_norm_eps\": -1", "key \"layer_norm_eps\""},
        {"\"hidden_dropout_prob\": 1", "key \"hidden_dropout_prob\""},
        {"\"attention_probs_dropout_prob\": \"x\"", "key \"attention_probs_dropout_prob\""},
        {"\"max_position_embeddings\": 0", "key \"max_position_embeddings\": 0 is out of range"},
        {"\"type_vocab_size\": 0", "key \"type_vocab_size\": 0 is out of range"},
    };
    struct wf_config c = {.model = "kept"};
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        write_config(bad[i].more);
        ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, path);
        ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, bad[i].message);
    }
    ck_assert_str_eq(c.model, "kept");
}
END_TEST

START_TEST(sizes_must_be_there_and_fit)
{
    static const char *const bad[][2] = {
        {"{\"model_type\": \"bert\"}", "key \"vocab_size\""},
        {"{\"model_type\": \"bert\", \"vocab_size\": 0}", "key \"vocab_size\": 0 is out of range"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 12, \"num_hidden_layers\": 1e3}", "key \"num_hidden_layers\""},
        {"{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 5, "
         "\"intermediate_size\": 20}",
         "hidden_size 12 is not a multiple of num_attention_heads 5"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 16777216, \"hidden_size\": 65536, \"num_hidden_layers\": 1024, "
         "\"num_attention_heads\": 4, \"intermediate_size\": 262144}",
         "more than 2^40"},
        {"{\"model_type\": \"roberta\", \"vocab_size\": 30}", "models of the type \"roberta\" are not supported"},
        {"{\"model_type\": \"weft-bert\", \"family\": \"bert\", \"heads\": 7}", "d_model (768) must be a multiple of heads (7)"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 30, \"hidden_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 3, "
         "\"intermediate_size\": 20, \"tie_word_embeddings\": 1}",
         "key \"tie_word_embeddings\""},
        {"{\"hidden_size\": 12}", "the key \"model\" is missing"},
        {"{\"model_type\": \"weft-encoder\", \"model\": \"mine\"}", "unknown model \"mine\""},
        {"[]", "not a JSON object"},
    };
    struct wf_config c;
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        write_text(bad[i][0]);
        ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, bad[i][1]);
    }
}
END_TEST

WF_TEST_MAIN("models/config_bert", values_and_defaults, activations, unsupported_settings_are_refused, sizes_must_be_there_and_fit)
