/* SPDX-License-Identifier: MIT */
/* Presets, and names that are nearly one. */
#include "models_test.h"
#include <weft/internal/text.h>

static const struct {
    const char *preset, *settings;
} rows[] = {
    {"nanogpt-char", "layers=6 heads=6 d_model=384 d_ff=1536 context=256 batch=64 steps=5000 dropout=0.2 tied=true bias=false "
                     "activation=gelu lr=0.001 min_lr=0.0001 warmup=100 schedule=cosine beta1=0.9 beta2=0.99 weight_decay=0.1 clip=1.0"},
    {"nanogpt-char-small", "layers=4 heads=4 d_model=128 d_ff=512 context=64 batch=12 steps=2000 dropout=0.0 tied=true bias=false "
                           "activation=gelu lr=0.001 min_lr=0.0001 warmup=100"},
    {"nanogpt-char-small-muon", "layers=4 heads=4 d_model=128 d_ff=512 context=64 batch=12 steps=1000 dropout=0.0 tied=true bias=false "
                                "activation=gelu optimizer=muon lr=0.006 min_lr=0.0006 warmup=100"},
    {"char-rms", "layers=1 heads=4 d_model=64 d_ff=256 context=256 batch=16 steps=1000 dropout=0.0 tied=false bias=true activation=relu "
                 "lr=0.001 schedule=constant weight_decay=0.0 beta2=0.999 clip=1.0 top_k=4 max_tokens=100"},
    {"seq2seq-tiny", "norm=pre final_norm=true d_model=32 heads=4 d_ff=128 encoder_layers=2 dropout=0.1 inner_dropout=true shared=false "
                     "tied=false bias=true scale_embeddings=false positions=5000 tokenizer=word source_bos=false source_eos=false "
                     "lr=0.001 steps=200 batch_tokens=0 beam=1 max_tokens=20 label_smoothing=0.0 clip=0.0 beta2=0.999 eps=1e-08"},
    {"seq2seq-postnorm", "norm=post final_norm=false d_model=128 heads=8 d_ff=512 decoder_layers=2 dropout=0.0 shared=true tied=false "
                         "scale_embeddings=false vocab_size=1000 lr=0.0001"},
    {"transformer-base",
     "norm=post final_norm=true d_model=512 heads=8 d_ff=2048 encoder_layers=6 dropout=0.1 inner_dropout=true shared=true tied=true "
     "scale_embeddings=true xavier=true max_length=512 warmup=4000 schedule=inverse_sqrt eps=1e-09 batch_tolerance=512 "
     "batch_tokens=24000 batch_cost=both batch_window=4096 beta2=0.98 clip=1.0 source_bos=true source_eos=true min_frequency=2 "
     "label_smoothing=0.1 beam=4 length_penalty=0.6 steps=100000 save_every=100 valid_every=200 keep_every=10000 extra_tokens=50"},
    {"transformer-big", "d_model=1024 heads=16 d_ff=4096 dropout=0.3 steps=300000 keep_every=100000"},
    {"encoder-attention", "norm=post final_norm=true d_model=64 heads=8 d_ff=256 layers=6 context=128 vocab_size=1000 dropout=0.1 "
                          "tied=false bias=true scale_embeddings=true activation=relu tokenizer=word mask_rate=0.15 lr=0.001 batch=32 "
                          "weight_decay=0.01 beta1=0.9 beta2=0.999 eps=1e-08"},
    {"multi30k", "norm=pre final_norm=true d_model=128 heads=4 d_ff=256 decoder_layers=4 dropout=0.2 inner_dropout=false shared=true "
                 "tied=true scale_embeddings=true xavier=true lr=0.002 warmup=400 batch_tokens=4096 batch_cost=side batch_window=0 "
                 "batch_tolerance=0 vocab_size=10000 source_bos=false source_eos=true keep=10 save_every=100 beam=5 "
                 "length_penalty=0.6"},
};

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

    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        struct wf_config c = preset(rows[i].preset);
        ck_keys(&c, rows[i].settings);
    }
    ck_assert_double_eq_tol(preset("transformer-base").training.lr, 1 / sqrt(512.0 * 4000), 1e-9);
    ck_assert_double_eq_tol(preset("transformer-big").training.lr, 1 / sqrt(1024.0 * 4000), 1e-9);
}
END_TEST

START_TEST(an_unknown_model_names_the_nearest)
{
    static const char *const bad[][2] = {{"nanogpt-chr", "unknown model \"nanogpt-chr\": did you mean nanogpt-char?"},
                                         {"nanogpt", "did you mean nanogpt-char?"},
                                         {"NanoGPT-Char-Smal", "did you mean nanogpt-char-small?"},
                                         {"char_rms", "did you mean char-rms?"},
                                         {"resnet", "unknown model \"resnet\": the command `models` lists them"},
                                         {"", "the command `models` lists them"},
                                         {"brt", "unknown model \"brt\": did you mean bert?"},
                                         {"a\nb", "unknown model"}};
    struct wf_config c, before;
    memset(&c, 0x5a, sizeof c);
    before = c;
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++)
        ck_fails(wf_config_preset(&c, bad[i][0], error), WF_ERR_ARGUMENT, bad[i][1]);
    ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
}
END_TEST

START_TEST(nearest_names)
{
    static const char *const names[] = {"dropout", "d_model", "d_ff", "lr", "min_lr", "top_k", "top_p"};
    static const char *const good[][2] = {
        {"droput", "dropout"}, {"d-model", "d_model"}, {"DMODEL", "d_model"}, {"rl", "lr"}, /* two letters swapped are one mistake */
        {"topk", "top_k"},     {"top_q", "top_k"},                                          /* of two equally near names the first */
        {"drop", "dropout"},
    };
    char longer[500] = "";
    memset(longer, 'x', sizeof longer - 1);
    for (int i = 0; i < (int)(sizeof good / sizeof *good); i++)
        ck_assert_str_eq(wf_nearest(good[i][0], names, 7), good[i][1]);
    ck_assert_ptr_null(wf_nearest("momentum", names, 7));
    ck_assert_ptr_null(wf_nearest("", names, 7));
    ck_assert_ptr_null(wf_nearest(longer, names, 7));
    ck_assert_ptr_null(wf_nearest("lr", names, 0));
}
END_TEST

WF_TEST_MAIN("config_presets", presets_are_zoo_rows, an_unknown_model_names_the_nearest, nearest_names)
