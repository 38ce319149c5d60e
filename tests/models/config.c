/* SPDX-License-Identifier: MIT */
/* Presets, keys and their ranges, what holds between keys, the nearest name. */
#include <locale.h>
#include <math.h>

#include "models_test.h"

START_TEST(presets_are_zoo_rows)
{
    ck_assert_int_ge(wf_preset_count(), 3);
    for (int i = 0; i < wf_preset_count(); i++) {
        const struct wf_preset *p = wf_preset_at(i);
        struct wf_config c = preset(p->name);
        ck_assert_int_eq(memcmp(&c, &p->config, sizeof c), 0);
        ck_assert_str_eq(c.model, p->name);
        ck_assert_str_eq(c.family, p->family);
        ck_assert(p->purpose[0] && !strchr(p->purpose, '\n'));
        ck_ok(wf_config_check(&c, error));
    }
    ck_assert_ptr_null(wf_preset_at(-1));
    ck_assert_ptr_null(wf_preset_at(wf_preset_count()));

    struct wf_config c = preset("nanogpt-char");
    ck_assert(c.layers == 6 && c.heads == 6 && c.d_model == 384 && c.d_ff == 1536 && c.context == 256 && c.batch == 64 && c.steps == 5000);
    ck_assert(c.dropout == 0.2 && c.tied && !c.bias && c.activation == WF_GELU && c.lr == 1e-3 && c.min_lr == 1e-4 && c.warmup == 100);
    ck_assert(c.schedule == WF_SCHEDULE_COSINE && c.beta1 == 0.9 && c.beta2 == 0.99 && c.weight_decay == 0.1 && c.clip == 1.0);
    c = preset("nanogpt-char-small");
    ck_assert(c.layers == 4 && c.heads == 4 && c.d_model == 128 && c.d_ff == 512 && c.context == 64 && c.batch == 12 && c.steps == 2000);
    ck_assert(c.dropout == 0 && c.tied && !c.bias && c.activation == WF_GELU && c.lr == 1e-3 && c.min_lr == 1e-4 && c.warmup == 100);
    c = preset("char-rms");
    ck_assert(c.layers == 1 && c.heads == 4 && c.d_model == 64 && c.d_ff == 256 && c.context == 256 && c.batch == 16 && c.steps == 1000);
    ck_assert(c.dropout == 0 && !c.tied && c.bias && c.activation == WF_RELU && c.lr == 1e-3 && c.schedule == WF_SCHEDULE_CONSTANT);
    ck_assert(c.weight_decay == 0 && c.beta2 == 0.999 && c.clip == 1.0 && c.top_k == 4 && c.max_tokens == 100);
}
END_TEST

START_TEST(an_unknown_model_names_the_nearest)
{
    struct wf_config c, before;
    memset(&c, 0x5a, sizeof c);
    before = c;
    ck_refused(wf_config_preset(&c, "nanogpt-chr", error), WF_ERR_ARGUMENT,
               "there is no model \"nanogpt-chr\": did you mean nanogpt-char?");
    ck_refused(wf_config_preset(&c, "nanogpt", error), WF_ERR_ARGUMENT, "did you mean nanogpt-char?");
    ck_refused(wf_config_preset(&c, "NanoGPT-Char-Smal", error), WF_ERR_ARGUMENT, "did you mean nanogpt-char-small?");
    ck_refused(wf_config_preset(&c, "char_rms", error), WF_ERR_ARGUMENT, "did you mean char-rms?");
    ck_refused(wf_config_preset(&c, "resnet", error), WF_ERR_ARGUMENT, "weft models");
    ck_refused(wf_config_preset(&c, "", error), WF_ERR_ARGUMENT, "weft models");
    ck_refused(wf_config_preset(&c, "a\nb", error), WF_ERR_ARGUMENT, "there is no model");
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

static const struct {
    const char *key, *good[4], *bad[8];
} rows[] = {
    {"d_model", {"1", "384", "65536"}, {"0", "-4", "65537", "1e9", "1.5", "", "12x", "99999999999999999999"}},
    {"heads", {"1", "8", "1024"}, {"0", "1025", "x", " 4"}},
    {"kv_heads", {"0", "2", "1024"}, {"-1", "1025", "nan"}},
    {"d_ff", {"1", "262144"}, {"0", "262145"}},
    {"layers", {"1", "1024"}, {"0", "1025", "6 "}},
    {"context", {"1", "1048576"}, {"0", "1048577"}},
    {"vocab_size", {"0", "50257", "16777216"}, {"-1", "16777217"}},
    {"dropout", {"0", "0.2", "0.999", "1e-3"}, {"1", "1.5", "-0.1", "nan", "inf", "0,1", "0x1p-2", ""}},
    {"activation", {"relu", "gelu", "gelu_tanh", "swiglu"}, {"GELU", "tanh", "", "0"}},
    {"tied", {"true", "false", "yes", "1"}, {"maybe", "", "2", "True"}},
    {"bias", {"true", "no", "0", "false"}, {"on!", ""}},
    {"steps", {"1", "5000", "1000000000000"}, {"0", "-1", "1000000000001", "ten"}},
    {"batch", {"1", "64"}, {"0", "1048577"}},
    {"accumulate", {"1", "40"}, {"0", "1048577"}},
    {"lr", {"1e-3", "0.5", "10"}, {"0", "-1", "inf", "1e", "1e999", "0.1.2"}},
    {"min_lr", {"0", "1e-4"}, {"-1e-9", "nan"}},
    {"warmup", {"0", "100"}, {"-1", "1e13"}},
    {"schedule", {"constant", "cosine", "inverse_sqrt"}, {"linear", "", "Cosine"}},
    {"weight_decay", {"0", "0.1", "2"}, {"-0.1", "x"}},
    {"beta1", {"0.9", "0.001"}, {"0", "1", "1.1", "-0.9"}},
    {"beta2", {"0.99", "0.999"}, {"0", "1", "2"}},
    {"eps", {"1e-8", "1"}, {"0", "-1e-8", "1.01"}},
    {"clip", {"0", "1.0", "100"}, {"-1", "inf"}},
    {"label_smoothing", {"0", "0.1", "0.99"}, {"1", "-0.1"}},
    {"save_every", {"0", "250"}, {"-1", "0.5"}},
    {"valid_every", {"0", "250"}, {"-1", "x"}},
    {"keep", {"0", "10"}, {"-1", "1000001"}},
    {"patience", {"0", "5"}, {"-1"}},
    {"temperature", {"0.8", "1000"}, {"0", "-1", "1001", "nan"}},
    {"top_k", {"0", "200"}, {"-1", "1.5"}},
    {"top_p", {"0.9", "1"}, {"0", "1.1", "-1"}},
    {"max_tokens", {"1", "1e3"}, {"0", "-5"}},
};
enum { ROWS = sizeof rows / sizeof *rows };

START_TEST(every_key_takes_good_values_and_refuses_bad_ones)
{
    ck_assert_int_eq(wf_config_key_count(), ROWS);
    for (int i = 0; i < ROWS; i++) {
        ck_assert_str_eq(wf_config_key_at(i), rows[i].key);
        for (int j = 0; j < 4 && rows[i].good[j]; j++) {
            struct wf_config c = preset("char-rms"), again = c;
            char text[64], twice[64];
            wf_error problem = {0};
            ck_assert_msg(wf_config_set(&c, rows[i].key, rows[i].good[j], &problem) == WF_OK, "%s", problem.message);
            ck_assert(wf_config_get(&c, rows[i].key, text, sizeof text));
            ck_ok(wf_config_set(&again, rows[i].key, text, error)); /* what get says, set takes */
            ck_assert(wf_config_get(&again, rows[i].key, twice, sizeof twice));
            ck_assert_str_eq(text, twice);
            ck_assert_int_eq(memcmp(&c, &again, sizeof c), 0);
        }
        for (int j = 0; j < 8 && rows[i].bad[j]; j++) {
            struct wf_config c = preset("char-rms"), before = c;
            ck_refused(wf_config_set(&c, rows[i].key, rows[i].bad[j], error), WF_ERR_ARGUMENT, rows[i].key);
            ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
        }
    }
    ck_assert_ptr_null(wf_config_key_at(-1));
    ck_assert_ptr_null(wf_config_key_at(ROWS));
}
END_TEST

/* Each key has a place of its own in the struct, and the place is the one of its name. */
START_TEST(keys_reach_their_fields)
{
    struct wf_config c = preset("char-rms");
    for (int i = 0; i < ROWS; i++)
        ck_ok(wf_config_set(&c, rows[i].key, rows[i].good[1] ? rows[i].good[1] : rows[i].good[0], error));
    ck_assert(c.d_model == 384 && c.heads == 8 && c.kv_heads == 2 && c.d_ff == 262144 && c.layers == 1024 && c.context == 1048576);
    ck_assert(c.vocab_size == 50257 && c.dropout == 0.2 && c.activation == WF_GELU && !c.tied && !c.bias && c.steps == 5000);
    ck_assert(c.batch == 64 && c.accumulate == 40 && c.lr == 0.5 && c.min_lr == 1e-4 && c.warmup == 100 &&
              c.schedule == WF_SCHEDULE_COSINE);
    ck_assert(c.weight_decay == 0.1 && c.beta1 == 0.001 && c.beta2 == 0.999 && c.eps == 1 && c.clip == 1 && c.label_smoothing == 0.1);
    ck_assert(c.save_every == 250 && c.valid_every == 250 && c.keep == 10 && c.patience == 5 && c.temperature == 1000 && c.top_k == 200);
    ck_assert(c.top_p == 1 && c.max_tokens == 1000);
    ck_assert_str_eq(c.model, "char-rms");
    ck_assert_str_eq(c.family, "rms");
}
END_TEST

START_TEST(words_are_those_of_nn_and_optim)
{
    struct wf_config c = preset("char-rms");
    char text[64];
    for (int i = WF_RELU; i <= WF_SWIGLU; i++) {
        ck_ok(wf_config_set(&c, "activation", wf_activation_name((enum wf_activation)i), error));
        ck_assert_int_eq(c.activation, i);
        ck_assert(wf_config_get(&c, "activation", text, sizeof text));
        ck_assert_str_eq(text, wf_activation_name((enum wf_activation)i));
    }
    for (int i = WF_SCHEDULE_CONSTANT; i <= WF_SCHEDULE_INVERSE_SQRT; i++) {
        ck_ok(wf_config_set(&c, "schedule", wf_schedule_name((enum wf_schedule_kind)i), error));
        ck_assert_int_eq(c.schedule, i);
        ck_assert(wf_config_get(&c, "schedule", text, sizeof text));
        ck_assert_str_eq(text, wf_schedule_name((enum wf_schedule_kind)i));
    }
}
END_TEST

START_TEST(unknown_keys_name_the_nearest)
{
    struct wf_config c = preset("char-rms");
    char text[64];
    ck_refused(wf_config_set(&c, "droput", "0.1", error), WF_ERR_ARGUMENT, "there is no key \"droput\": did you mean dropout?");
    ck_refused(wf_config_set(&c, "d-model", "64", error), WF_ERR_ARGUMENT, "did you mean d_model?");
    ck_refused(wf_config_set(&c, "warm_up", "64", error), WF_ERR_ARGUMENT, "did you mean warmup?");
    ck_refused(wf_config_set(&c, "momentum", "0.9", error), WF_ERR_ARGUMENT, "there is no key \"momentum\"");
    ck_refused(wf_config_set(&c, "family", "gpt", error), WF_ERR_ARGUMENT, "there is no key \"family\"");
    ck_refused(wf_config_set(&c, "", "1", error), WF_ERR_ARGUMENT, "there is no key");
    ck_assert(!wf_config_get(&c, "momentum", text, sizeof text));
    ck_refused(wf_config_set(&c, "dropout", "1.5", error), WF_ERR_ARGUMENT, "dropout: 1.5 is out of range: at least 0 and below 1");
    ck_refused(wf_config_set(&c, "steps", "0", error), WF_ERR_ARGUMENT, "steps: 0 is out of range: 1 to 1000000000000");
    ck_refused(wf_config_set(&c, "d_model", "1e9", error), WF_ERR_ARGUMENT, "d_model: 1000000000 is out of range: 1 to 65536");
    ck_refused(wf_config_set(&c, "lr", "0", error), WF_ERR_ARGUMENT, "lr: 0.0 is out of range: above 0");
    ck_refused(wf_config_set(&c, "schedule", "linear", error), WF_ERR_ARGUMENT, "\"linear\" is none of constant, cosine or inverse_sqrt");
    ck_refused(wf_config_set(&c, "layers", "two", error), WF_ERR_ARGUMENT, "layers: \"two\" is no whole number");
}
END_TEST

START_TEST(what_holds_between_keys)
{
    struct wf_config good = preset("nanogpt-char"), c = good;
    c.heads = 5;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "heads: 5 don't divide d_model 384");
    c = good, c.kv_heads = 4;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "kv_heads: 4 don't divide heads 6");
    c = good, c.kv_heads = 2;
    ck_ok(wf_config_check(&c, error));
    c = good, c.d_model = 65536, c.heads = 64, c.d_ff = 262144, c.layers = 1024;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "2^40");
    c = good, c.d_model = 65536, c.heads = 64, c.vocab_size = 16777216;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "2^40");
    c = good, c.min_lr = 2e-3;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "min_lr");
    c = good, c.accumulate = 65;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "accumulate");
    c = good, c.steps = 50; /* shorter than the warm-up: a preset can be tried */
    ck_ok(wf_config_check(&c, error));
    c = good, strcpy(c.family, "gtp");
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "did you mean gpt");
    c = good, strcpy(c.family, "llama");
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "gpt or rms");
    /* Fields that were set by hand are held to their ranges too. */
    c = good, c.dropout = NAN;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "dropout");
    c = good, c.layers = 0;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "layers");
    c = good, c.activation = (enum wf_activation)9;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "activation");
    c = good, c.schedule = -1;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "schedule");
    c = good, c.clip = INFINITY;
    ck_refused(wf_config_check(&c, error), WF_ERR_ARGUMENT, "clip");
}
END_TEST

START_TEST(numbers_are_the_same_in_every_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
    struct wf_config c = preset("char-rms");
    char text[64];
    bool comma = false;
    for (int i = 0; i < 4 && !comma; i++)
        comma = setlocale(LC_ALL, names[i]) && localeconv()->decimal_point[0] == ',';
    if (!comma)
        fprintf(stderr, "no locale with a decimal comma is installed: only the C locale is tested\n");
    ck_ok(wf_config_set(&c, "dropout", "0.125", error));
    ck_assert(c.dropout == 0.125);
    ck_assert(wf_config_get(&c, "dropout", text, sizeof text));
    ck_assert_str_eq(text, "0.125");
    ck_refused(wf_config_set(&c, "dropout", "0,25", error), WF_ERR_ARGUMENT, "no number");
    setlocale(LC_ALL, "C");
}
END_TEST

WF_TEST_MAIN("models/config", presets_are_zoo_rows, an_unknown_model_names_the_nearest, nearest_names,
             every_key_takes_good_values_and_refuses_bad_ones, keys_reach_their_fields, words_are_those_of_nn_and_optim,
             unknown_keys_name_the_nearest, what_holds_between_keys, numbers_are_the_same_in_every_locale)
