/* SPDX-License-Identifier: MIT */
/* Keys, their ranges, and conditions between keys. */
#include <locale.h>
#include <math.h>

#include "models_test.h"
#include <weft/internal/family.h>
#include <weft/internal/optimizers.h>
#include <weft/internal/text.h>
#include <weft/optimizer_rule.h>
#include <weft/tokenizer.h>

/* All keys. preset: a model that uses the key; NULL: the defaults of "bert". */
static const struct {
    const char *preset, *key, *good[6], *bad[8];
} rows[] = {
    {"char-rms", "d_model", {"1", "384", "65536"}, {"0", "-4", "65537", "1e9", "1.5", "", "12x", "99999999999999999999"}},
    {"char-rms", "heads", {"1", "8", "1024"}, {"0", "1025", "x", " 4"}},
    {"char-rms", "kv_heads", {"0", "2", "1024"}, {"-1", "1025", "nan"}},
    {"char-rms", "d_ff", {"1", "262144"}, {"0", "262145"}},
    {"char-rms", "layers", {"1", "1024"}, {"0", "1025", "6 "}},
    {"smollm2-135m", "d_key", {"0", "64", "65536"}, {"-1", "65537", "x"}},
    {"smollm2-135m", "window", {"0", "4096", "1048576"}, {"-1", "1048577"}},
    {"smollm2-135m", "rope_base", {"1e4", "500000"}, {"0", "-1", "1e13"}},
    {"smollm2-135m", "rope_scaling", {"none", "linear", "ntk", "llama3"}, {"yarn", "", "default"}},
    {"smollm2-135m", "rope_factor", {"1", "8"}, {"0", "-1", "1e7"}},
    {"smollm2-135m", "rope_low", {"1", "0.5"}, {"0", "1e7"}},
    {"smollm2-135m", "rope_high", {"4", "8"}, {"0", "1e7"}},
    {"smollm2-135m", "rope_context", {"1", "8192"}, {"0", "1e10"}},
    {"smollm2-135m", "qkv_bias", {"true", "false"}, {"q"}},
    {"smollm2-135m", "out_bias", {"true", "false"}, {"q"}},
    {"smollm2-135m", "ffn_bias", {"false", "true"}, {"q"}},
    {"smollm2-135m", "window_from", {"0", "2", "1024"}, {"-1", "1025"}},
    {"smollm2-135m", "qk_norm", {"true", "false"}, {"2"}},
    {"gemma3-270m", "full_every", {"0", "6", "1024"}, {"-1", "1025", "x"}},
    {"gemma3-270m", "score_divisor", {"0", "256", "144.5"}, {"-1", "1e13", "nan"}},
    {"gemma3-270m", "score_softcap", {"0", "50"}, {"-1", "inf"}},
    {"gemma3-270m", "logit_softcap", {"0", "30"}, {"-1", "inf"}},
    {"gemma3-270m", "window_rope_base", {"1e4", "5000"}, {"0", "-1", "1e13"}},
    {"phi3-mini", "embedding_dropout", {"0", "0.1", "0.999"}, {"1", "-0.1", "nan"}},
    {"multi30k", "encoder_layers", {"1", "6", "1024"}, {"0", "1025", "six"}},
    {"multi30k", "decoder_layers", {"1", "7", "1024"}, {"0", "1025", "-6"}},
    {"char-rms", "context", {"1", "1048576"}, {"0", "1048577"}},
    {"multi30k", "max_length", {"2", "1048576"}, {"0", "1", "1048577"}},
    {"multi30k", "positions", {"0", "5000"}, {"-1", "1048577"}},
    {"char-rms", "vocab_size", {"0", "50257", "16777216"}, {"-1", "16777217"}},
    {NULL, "segments", {"1", "2", "1024"}, {"0", "-1", "1025", "two"}},
    {NULL, "attention_dropout", {"0", "0.1", "0.999"}, {"1", "-0.1", "nan"}},
    {NULL, "masked_head", {"true", "false"}, {"maybe", "", "2"}},
    {NULL, "norm_eps", {"1e-5", "1e-12", "1"}, {"0", "-1", "1.1", "nan"}},
    {"multi30k", "source_vocab_size", {"0", "41"}, {"-1", "16777217"}},
    {"char-rms", "dropout", {"0", "0.2", "0.999", "1e-3"}, {"1", "1.5", "-0.1", "nan", "inf", "0,1", "0x1p-2", ""}},
    {"multi30k", "inner_dropout", {"false", "true"}, {"0.1"}},
    {"char-rms", "activation", {"relu", "gelu_tanh", "swiglu", "geglu_tanh"}, {"GELU", "tanh", "", "0"}},
    {"multi30k", "norm", {"pre", "post"}, {"Pre", "", "1", "middle"}},
    {"multi30k", "final_norm", {"true", "false"}, {"maybe"}},
    {"multi30k", "shared", {"true", "false"}, {"maybe"}},
    {"char-rms", "tied", {"true", "false", "yes", "1"}, {"maybe", "", "2", "True"}},
    {"char-rms", "bias", {"true", "no", "0", "false"}, {"on!", ""}},
    {"multi30k", "scale_embeddings", {"true", "false"}, {"2"}},
    {"multi30k", "xavier", {"true", "false"}, {"glorot"}},
    {"multi30k", "source_bos", {"false", "true"}, {""}},
    {"multi30k", "source_eos", {"true", "false"}, {""}},
    {"multi30k", "tokenizer", {"bpe", "byte-bpe", "word", "char"}, {"BPE", "chars", "", "2", "wordpiece"}},
    {"multi30k", "min_frequency", {"0", "2"}, {"-1", "1.5"}},
    {"encoder-attention", "crop", {"0", "16", "128"}, {"-1", "1048577", "1.5", "all"}},
    {"encoder-attention", "frame", {"true", "false"}, {"maybe", "", "2"}},
    {"encoder-attention", "mask_rate", {"0.15", "0.5", "1e-3"}, {"0", "1", "-0.1", "nan", "15%"}},
    {"char-rms", "steps", {"1", "5000", "1000000000000"}, {"0", "-1", "1000000000001", "ten"}},
    {"char-rms", "precision", {"f32", "bf16"}, {"f16", "BF16", "", "1"}},
    {"char-rms", "checkpoint", {"true", "false"}, {"maybe", "", "2"}},
    {"char-rms", "ema", {"0", "0.999"}, {"1", "-0.1", "nan"}},
    {"char-rms", "epochs", {"0", "3", "0.5"}, {"-1", "nan", "1e10"}},
    {"multi30k", "epochs", {"12"}, {"all"}},
    {"char-rms", "log_every", {"1", "100"}, {"0", "-1", "x"}},
    {"char-rms", "batch", {"1", "64"}, {"0", "1048577"}},
    {"multi30k", "batch_tokens", {"0", "24000"}, {"-1", "1e12"}},
    {"multi30k", "batch_tolerance", {"0", "512"}, {"-1", "1e12"}},
    {"multi30k", "batch_cost", {"both", "side"}, {"sides", "", "0"}},
    {"multi30k", "batch_window", {"0", "4096"}, {"-1"}},
    {"multi30k", "max_ratio", {"0", "1", "1.5", "9"}, {"-1", "nan", "inf", "x"}},
    {"multi30k", "deduplicate", {"true", "false"}, {"maybe", "", "2"}},
    {"char-rms", "accumulate", {"1", "40"}, {"0", "1048577"}},
    {"char-rms", "leaves", {"0", "1", "8"}, {"-1", "1048577"}},
    {"char-rms", "lr", {"1e-3", "0.5", "10"}, {"0", "-1", "inf", "1e", "1e999", "0.1.2"}},
    {"char-rms", "min_lr", {"0", "1e-4"}, {"-1e-9", "nan"}},
    {"char-rms", "warmup", {"0", "100"}, {"-1", "1e13"}},
    {"char-rms", "schedule", {"constant", "cosine", "inverse_sqrt", "linear", "wsd", "one_cycle"}, {"stairs", "", "Cosine"}},
    {"char-rms", "decay", {"0", "200"}, {"-1", "1e13"}},
    {"char-rms", "start_lr", {"0", "1e-4"}, {"-1e-9", "nan", "inf"}},
    {"char-rms", "curve", {"default", "linear", "cosine", "sqrt"}, {"", "Linear"}},
    {"char-rms", "weight_decay", {"0", "0.1", "2"}, {"-0.1", "x"}},
    {"char-rms", "beta1", {"0.9", "0.001"}, {"0", "1", "1.1", "-0.9"}},
    {"char-rms", "beta2", {"0.99", "0.999"}, {"0", "1", "2"}},
    {"char-rms", "eps", {"1e-8", "1"}, {"0", "-1e-8", "1.01"}},
    {"char-rms", "optimizer", {"adamw", "sgd", "lion", "adafactor", "muon"}, {"adam", "", "SGD", "1"}},
    {"char-rms", "sgd.momentum", {"0", "0.9"}, {"1", "-0.1", "nan"}},
    {"char-rms", "sgd.nesterov", {"false", "true"}, {"2", ""}},
    {"char-rms", "lion.beta1", {"0.9", "0.95"}, {"1", "-0.1", "nan"}},
    {"char-rms", "lion.beta2", {"0.99", "0"}, {"1", "-0.1", "nan"}},
    {"char-rms", "adafactor.beta2_decay", {"-0.8", "-0.5"}, {"0.1", "nan", "-11"}},
    {"char-rms", "adafactor.eps1", {"0", "1e-30"}, {"-1", "2", "nan"}},
    {"char-rms", "adafactor.eps2", {"0", "1e-4"}, {"-1", "2", "nan"}},
    {"char-rms", "adafactor.threshold", {"1", "2"}, {"0.9", "nan"}},
    {"char-rms", "muon.momentum", {"0.95", "0"}, {"1", "-0.1", "nan"}},
    {"char-rms", "muon.nesterov", {"true", "false"}, {"2", ""}},
    {"char-rms", "muon.iterations", {"5", "3", "99"}, {"-1", "100", "2.5"}},
    {"char-rms", "muon.adjust", {"match_rms_adamw", "original", "none"}, {"", "Original"}},
    {"char-rms", "muon.beta1", {"0.9", "0.8"}, {"1", "-0.1", "nan"}},
    {"char-rms", "muon.beta2", {"0.999", "0.95"}, {"1", "-0.1", "nan"}},
    {"char-rms", "muon.eps", {"1e-8", "1e-6"}, {"0", "1.1", "nan"}},
    {"char-rms", "muon.adam_lr_scale", {"1", "0.1"}, {"-1", "nan"}},
    {"char-rms", "clip_value", {"0", "0.5"}, {"-1", "inf", "nan"}},
    {"char-rms", "clip", {"0", "1.0", "100"}, {"-1", "inf"}},
    {"char-rms", "label_smoothing", {"0", "0.1", "0.99"}, {"1", "-0.1"}},
    {"char-rms", "save_every", {"0", "250"}, {"-1", "0.5"}},
    {"char-rms", "valid_every", {"0", "250"}, {"-1", "x"}},
    {"char-rms", "valid_tokens", {"-1", "0", "5000"}, {"-2", "x"}},
    {"char-rms", "keep", {"0", "10"}, {"-1", "1000001"}},
    {"multi30k", "keep_every", {"0", "10000"}, {"-1", "x"}},
    {"char-rms", "patience", {"0", "5"}, {"-1"}},
    {"multi30k", "best_by", {"loss", "bleu", "chrf"}, {"ppl", "", "0"}},
    {"multi30k", "valid_scores", {"true", "false"}, {"2", ""}},
    {"char-rms", "temperature", {"0.8", "1000", "0"}, {"-1", "1001", "nan"}},
    {"char-rms", "top_k", {"0", "200"}, {"-1", "1.5"}},
    {"char-rms", "top_p", {"0.9", "1"}, {"0", "1.1", "-1"}},
    {"char-rms", "min_p", {"0", "0.05", "1"}, {"-0.1", "1.1"}},
    {"char-rms", "repetition_penalty", {"1", "1.1", "0.9"}, {"0", "-1", "1001"}},
    {"char-rms", "max_tokens", {"1", "1e3"}, {"0", "-5"}},
    {"multi30k", "beam", {"1", "5", "1024"}, {"0", "-1", "1025", "1.5"}},
    {"multi30k", "length_penalty", {"0", "0.6", "2"}, {"-0.1", "nan", "inf"}},
    {"multi30k", "extra_tokens", {"0", "50"}, {"-1"}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static struct wf_config with_key(const char *name)
{
    struct wf_config c;
    if (name)
        return preset(name);
    ck_ok(wf_config_defaults(&c, "bert", error));
    return c;
}

/* The optimiser that has the key; NULL: none. */
static const char *owner_of(const char *key)
{
    for (int i = 0; wf_optimizer_name_at(i); i++) {
        const size_t length = strlen(wf_optimizer_name_at(i));
        if (strncmp(key, wf_optimizer_name_at(i), length) == 0 && key[length] == '.')
            return wf_optimizer_name_at(i);
    }
    return NULL;
}

static struct wf_config with_row(int row)
{
    struct wf_config c = with_key(rows[row].preset);
    const char *owner = owner_of(rows[row].key);
    if (owner)
        set_value(&c, "optimizer", owner);
    return c;
}

/* Every key of every section has a row above. */
START_TEST(all_keys_are_tested)
{
    const char *section;
    struct wf_config_key key;
    int sections = 0;
    for (; (section = wf_config_section_at(sections)); sections++)
        for (int k = 0; wf_config_section_key(section, k, &key); k++) {
            int at = 0;
            while (at < ROWS && strcmp(rows[at].key, key.name) != 0)
                at++;
            ck_assert_msg(at < ROWS, "%s: %s", section, key.name);
            ck_assert_str_eq(key.section, section);
        }
    ck_assert_int_ge(sections, 4);
    ck_assert_ptr_null(wf_config_section_at(-1));
    ck_assert(!wf_config_section_key("gpt", -1, &key) && !wf_config_section_key("no such", 0, &key));
}
END_TEST

static void ck_broken(const struct wf_family *family, const char *says)
{
    ck_fails(wf_family_check(family, error), WF_ERR_ARGUMENT, says);
}

START_TEST(families_are_checked)
{
    const struct wf_family *family;
    for (int i = 0; (family = wf_family_at(i)); i++)
        ck_ok(wf_family_check(family, error));
    const struct wf_family *gpt = wf_family_find("gpt", NULL);
    struct wf_family f = *gpt;
    f.abi -= 8;
    ck_broken(&f, "another version of Weft");
    f = *gpt, f.forward = NULL;
    ck_broken(&f, "family gpt has no function forward");
    f = *gpt, f.config_size = 8;
    ck_broken(&f, "family gpt: the offset of key heads is outside its struct or misaligned");
    struct wf_key keys[2] = {gpt->keys.key[0], gpt->keys.key[0]};
    f = *gpt, f.keys.key = keys, f.keys.count = 2;
    ck_broken(&f, "family gpt: two keys are named d_model");
    f.keys.count = 1;
    ck_broken(&f, "family gpt has no key for the vocabulary size");
    struct wf_key all[32];
    for (int i = 0; i < gpt->keys.count; i++) {
        memcpy(all, gpt->keys.key, (size_t)gpt->keys.count * sizeof *all);
        enum wf_key_role role = all[i].role;
        all[i].role = WF_KEY_PLAIN;
        f.keys = (struct wf_keys){all, gpt->keys.count};
        bool needed = role == WF_KEY_VOCAB || role == WF_KEY_CONTEXT || role == WF_KEY_WIDTH;
        ck_assert_msg((wf_family_check(&f, &(wf_error){0}) == WF_OK) == !needed, "without the role of %s", all[i].name);
    }
    f.keys = (struct wf_keys){keys, 1};
    keys[0].value = "0";
    ck_broken(&f, "family gpt: default of: d_model: 0 is out of range");
    keys[0].name = "lr";
    ck_broken(&f, "family gpt: the section training already has a key lr");
}
END_TEST

START_TEST(every_key_takes_good_values_and_refuses_bad_ones)
{
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < 6 && rows[i].good[j]; j++) {
            struct wf_config c = with_row(i), again = c;
            char text[64], twice[64];
            wf_error problem = {0};
            ck_assert_msg(wf_config_set(&c, rows[i].key, rows[i].good[j], &problem) == WF_OK, "%s", problem.message);
            ck_assert(wf_config_get(&c, rows[i].key, text, sizeof text));
            set_value(&again, rows[i].key, text); /* set accepts the text of get */
            ck_assert(wf_config_get(&again, rows[i].key, twice, sizeof twice));
            ck_assert_str_eq(text, twice);
            ck_assert_int_eq(memcmp(&c, &again, sizeof c), 0);
        }
        for (int j = 0; j < 8 && rows[i].bad[j]; j++) {
            struct wf_config c = with_row(i), before = c;
            set_value_fails(&c, rows[i].key, rows[i].bad[j], rows[i].key);
            ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
        }
    }
}
END_TEST

/* Each key sets the member of its name, and no other one. */
START_TEST(keys_reach_their_fields)
{
    struct wf_config c = preset("char-rms"), p = preset("multi30k"), e = preset("encoder-attention"), l = preset("smollm2-135m"),
                     phi3 = preset("phi3-mini"), gemma = preset("gemma3-270m"), read = with_key(NULL);
    for (int i = 0; i < ROWS; i++) {
        struct wf_config *to = !rows[i].preset                                    ? &read
                               : strcmp(rows[i].preset, "multi30k") == 0          ? &p
                               : strcmp(rows[i].preset, "encoder-attention") == 0 ? &e
                               : strcmp(rows[i].preset, "smollm2-135m") == 0      ? &l
                               : strcmp(rows[i].preset, "phi3-mini") == 0         ? &phi3
                               : strcmp(rows[i].preset, "gemma3-270m") == 0       ? &gemma
                                                                                  : &c;
        if (owner_of(rows[i].key) && strcmp(owner_of(rows[i].key), "sgd") != 0)
            continue;
        set_value(to, rows[i].key, rows[i].good[1] ? rows[i].good[1] : rows[i].good[0]);
    }
    ck_keys(&read, "segments=2 norm_eps=1e-12 attention_dropout=0.1");
    ck_keys(&c, "d_model=384 heads=8 kv_heads=2 d_ff=262144 layers=1024 context=1048576 vocab_size=50257 dropout=0.2 activation=gelu_tanh "
                "tied=false bias=false sgd.momentum=0.9 sgd.nesterov=true");
    ck_keys(&p, "encoder_layers=6 decoder_layers=7 max_length=1048576 positions=5000 source_vocab_size=41 inner_dropout=true norm=post "
                "final_norm=false shared=false scale_embeddings=false xavier=false source_bos=true source_eos=false");
    ck_keys(&l, "d_key=64 window=4096 rope_base=500000.0 rope_scaling=linear rope_factor=8.0 rope_low=0.5 rope_high=8.0 "
                "rope_context=8192.0 qkv_bias=false qk_norm=false out_bias=false ffn_bias=true window_from=2");
    ck_keys(&gemma,
            "full_every=6 score_divisor=256.0 score_softcap=50.0 logit_softcap=30.0 window_rope_base=5000.0 window=512 qk_norm=true "
            "rope_base=1000000.0");
    ck_keys(&phi3, "embedding_dropout=0.1 attention_dropout=0.0 dropout=0.0");
    ck_assert_str_eq(c.model, "char-rms");
    ck_assert_str_eq(wf_config_family(&c), "rms");
    ck_assert(c.optimizer.kind == WF_OPTIMIZER_SGD && e.training.mask_rate == 0.5 && c.training.steps == 5000);
    ck_assert(c.training.batch == 64 && c.training.accumulate == 40 && c.training.lr == 0.5 && c.training.min_lr == 1e-4 &&
              c.training.warmup == 100 && c.training.schedule == WF_SCHEDULE_COSINE);
    ck_assert(c.training.weight_decay == 0.1 && c.training.beta1 == 0.001 && c.training.beta2 == 0.999 && c.training.eps == 1 &&
              c.training.clip == 1 && c.training.label_smoothing == 0.1);
    ck_assert(c.training.save_every == 250 && c.training.valid_every == 250 && c.training.keep == 10 && c.training.patience == 5 &&
              c.generation.temperature == 1000 && c.generation.top_k == 200);
    ck_assert(c.generation.top_p == 1 && c.generation.max_tokens == 1000);
    ck_assert(p.tokenizer.kind == WF_TOKENIZER_BYTE_BPE && p.tokenizer.min_frequency == 2 && p.training.batch_tokens == 24000);
    ck_assert(p.training.batch_cost == WF_BATCH_SIDE && p.training.batch_window == 4096 && p.training.keep_every == 10000 &&
              p.generation.beam == 5 && p.generation.length_penalty == 0.6);
    ck_assert(p.generation.extra_tokens == 50);
}
END_TEST

/* Keys that a family does not use: an error that names the key to use instead, if there is one; nothing is set. */
START_TEST(keys_of_other_families)
{
    static const struct {
        const char *preset, *key, *value, *says;
    } bad[] = {
        {"multi30k", "layers", "4", "layers: multi30k, an encoder-decoder, does not use it: set encoder_layers and decoder_layers"},
        {"multi30k", "kv_heads", "2", "kv_heads: multi30k, an encoder-decoder, does not use it"},
        {"multi30k", "context", "64", "set max_length"},
        {"multi30k", "batch", "64", "set batch_tokens"},
        {"transformer-base", "temperature", "0.8", "set beam"},
        {"nanogpt-char", "encoder_layers", "6", "encoder_layers: nanogpt-char, a language model, does not use it: set layers"},
        {"nanogpt-char", "max_length", "64", "set context"},
        {"char-rms", "batch_tokens", "4096", "set batch"},
        {"char-rms", "norm", "pre", "norm: char-rms, a language model, does not use it"},
        {"char-rms", "beam", "4", "set top_k"},
        {"char-rms", "mask_rate", "0.2", "mask_rate: char-rms, a language model, does not use it"},
        {"multi30k", "segments", "2", "segments: multi30k, an encoder-decoder, does not use it"},
        {"encoder-attention", "encoder_layers", "4", "encoder_layers: encoder-attention, an encoder, does not use it: set layers"},
        {"encoder-attention", "max_length", "64", "set context"},
        {"encoder-attention", "batch_tokens", "4096", "set batch"},
        {"encoder-attention", "inner_dropout", "true", "set dropout"},
        {"encoder-attention", "kv_heads", "2", "kv_heads: encoder-attention, an encoder, does not use it"},
        {"encoder-attention", "max_tokens", "20", "max_tokens: encoder-attention, an encoder, does not use it"},
        {"encoder-attention", "temperature", "0.8", "temperature: encoder-attention, an encoder, does not use it"},
        {"encoder-attention", "norm_eps", "1e-12", "norm_eps: encoder-attention, an encoder, does not use it"},
    };
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        struct wf_config c = preset(bad[i].preset), before = c;
        char text[64];
        set_value_fails(&c, bad[i].key, bad[i].value, bad[i].says);
        ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
        ck_assert(!wf_config_get(&c, bad[i].key, text, sizeof text));
    }
    /* the key of the advice exists */
    for (int m = 0; wf_preset_at(m); m++)
        for (int i = 0; i < ROWS; i++) {
            struct wf_config c = preset(wf_preset_at(m)->name);
            wf_error problem = {0};
            char text[64];
            if (wf_config_get(&c, rows[i].key, text, sizeof text))
                continue;
            ck_assert_int_eq(wf_config_set(&c, rows[i].key, "1", &problem), WF_ERR_ARGUMENT);
            const char *advice = strstr(problem.message, ": set ");
            if (advice && !strchr(advice + 6, ' '))
                ck_assert_msg(wf_config_get(&c, advice + 6, text, sizeof text), "%s", problem.message);
        }
    struct wf_config lm = preset("char-rms"), e = preset("bert");
    lm.generation.beam = 3;
    ck_conflict(&lm, "beam: char-rms");
    ck_assert(e.training.crop == 128 && key_of(&e, "context") == 512 && key_of(&e, "masked_head") && e.training.lr == 5e-5);
    set_value(&e, "context", "64"); /* the preset's crop is for its context */
    ck_assert(e.training.crop == 64);
}
END_TEST

START_TEST(words_are_those_of_nn_and_optim)
{
    static const char *const activations[] = {[WF_RELU] = "relu", [WF_GELU] = "gelu",     [WF_GELU_TANH] = "gelu_tanh",
                                              [WF_SILU] = "silu", [WF_SWIGLU] = "swiglu", [WF_GEGLU_TANH] = "geglu_tanh"};
    static const char *const schedules[] = {
        [WF_SCHEDULE_CONSTANT] = "constant", [WF_SCHEDULE_COSINE] = "cosine", [WF_SCHEDULE_INVERSE_SQRT] = "inverse_sqrt",
        [WF_SCHEDULE_LINEAR] = "linear",     [WF_SCHEDULE_WSD] = "wsd",       [WF_SCHEDULE_ONE_CYCLE] = "one_cycle"};
    static const char *const curves[] = {
        [WF_CURVE_DEFAULT] = "default", [WF_CURVE_LINEAR] = "linear", [WF_CURVE_COSINE] = "cosine", [WF_CURVE_SQRT] = "sqrt"};
    struct wf_config c = preset("char-rms");
    char text[64];
    for (int i = WF_RELU; i <= WF_GEGLU_TANH; i++) {
        set_value(&c, "activation", activations[i]);
        ck_assert_int_eq(key_of(&c, "activation"), i);
        ck_assert(wf_config_get(&c, "activation", text, sizeof text));
        ck_assert_str_eq(text, activations[i]);
    }
    c = preset("multi30k");
    for (int i = WF_TOKENIZER_CHAR; i < WF_TOKENIZER_WORDPIECE; i++) {
        set_value(&c, "tokenizer", wf_tokenizer_kind_name((wf_tokenizer_kind)i));
        ck_assert_int_eq(c.tokenizer.kind, i);
    }
    c = preset("char-rms");
    for (int i = WF_SCHEDULE_CONSTANT; i <= WF_SCHEDULE_ONE_CYCLE; i++) {
        set_value(&c, "schedule", schedules[i]);
        ck_assert_int_eq(c.training.schedule, i);
        ck_assert(wf_config_get(&c, "schedule", text, sizeof text));
        ck_assert_str_eq(text, schedules[i]);
    }
    for (int i = WF_CURVE_DEFAULT; i <= WF_CURVE_SQRT; i++) {
        set_value(&c, "curve", curves[i]);
        ck_assert_int_eq(c.training.curve, i);
    }
}
END_TEST

/* The settings of an optimiser reach it, with the role that each parameter of the model has. */
START_TEST(optimizers_have_their_settings)
{
    static const struct {
        const char *settings, *rule;
    } optimizers[] = {
        {"optimizer=lion lion.beta1=0.8 lion.beta2=0.7", "lion"},
        {"optimizer=adafactor adafactor.beta2_decay=-0.5 adafactor.eps1=0.1 adafactor.eps2=0.2 adafactor.threshold=3", "adafactor"},
        {"optimizer=muon muon.momentum=0.8 muon.nesterov=no muon.iterations=3 muon.adjust=original muon.beta1=0.7 muon.beta2=0.6 "
         "muon.eps=0.5 muon.adam_lr_scale=0.4",
         "muon"}};
    for (int i = 0; i < 3; i++) {
        struct wf_config c = preset("char-rms");
        struct wf_optimizer opt;
        void *ctx;
        set_value(&c, "vocab_size", "20");
        ck_ok(wf_config_set_all(&c, optimizers[i].settings, error));
        ck_ok(wf_config_set_all(&c, "lr=0.25 weight_decay=0.125", error));
        wf_model *model = wf_model_new(&c, &(wf_error){0});
        wf_registry *registry = wf_model_registry(model);
        ck_ok(wf_registry_build(registry, 1, error));
        ck_ok(wf_config_optimizer_init(&c, registry, &opt, error));
        ck_assert(wf_config_optimizer_rule(&c, &ctx) == opt.rule && ctx == NULL);
        ck_assert_str_eq(opt.rule->name, optimizers[i].rule);
        ck_assert(opt.lr == 0.25 && opt.weight_decay == 0.125);
        if (i == 0)
            ck_assert(opt.lion.beta1 == 0.8 && opt.lion.beta2 == 0.7);
        if (i == 1)
            ck_assert(opt.adafactor.beta2_decay == -0.5 && opt.adafactor.eps1 == 0.1 && opt.adafactor.eps2 == 0.2 &&
                      opt.adafactor.threshold == 3);
        if (i == 2)
            ck_assert(opt.muon.momentum == 0.8 && !opt.muon.nesterov && opt.muon.iterations == 3 && opt.muon.adjust == WF_MUON_ORIGINAL &&
                      opt.muon.beta1 == 0.7 && opt.muon.beta2 == 0.6 && opt.muon.adam_eps == 0.5 && opt.muon.adam_lr_scale == 0.4);
        for (int k = 0; k < wf_registry_count(registry); k++) {
            const wf_tensor *p = wf_registry_at(registry, k);
            const char *name = wf_name_of(p);
            const bool matrix = wf_ndim(p) == 2 && strncmp(name, "embed.", 6) != 0 && strncmp(name, "head.", 5) != 0;
            ck_assert_msg(opt.part[0].parameter[k].whole == (i == 1 || (i == 2 && matrix)), "%s", name);
        }
        wf_optimizer_free(&opt);
        wf_model_free(model);
    }
}
END_TEST

START_TEST(unknown_keys_and_bad_values_are_named)
{
    static const struct {
        const char *preset, *key, *value, *says;
    } bad[] = {
        {"char-rms", "droput", "0.1", "unknown key \"droput\": did you mean dropout?"},
        {"char-rms", "d-model", "64", "did you mean d_model?"},
        {"char-rms", "warm_up", "64", "did you mean warmup?"},
        {"char-rms", "momentum", "0.9", "unknown key \"momentum\""},
        {"char-rms", "family", "gpt", "unknown key \"family\""},
        {"char-rms", "", "1", "unknown key"},
        {"multi30k", "layer", "4", "unknown key \"layer\""},
        {"multi30k", "encoder-layers", "4", "did you mean encoder_layers?"},
        {"char-rms", "dropout", "1.5", "dropout: 1.5 is out of range: at least 0 and below 1"},
        {"char-rms", "steps", "0", "steps: 0 is out of range: at least 1"},
        {"char-rms", "d_model", "1e9", "d_model: 1000000000 is out of range: 1 to 65536"},
        {"char-rms", "d_model", "99999999999999999999", "d_model: 1e+20 is out of range: 1 to 65536"},
        {"char-rms", "d_model", "1e999", "d_model: \"1e999\" is out of range: 1 to 65536"},
        {"char-rms", "lr", "1.5e999", "lr: \"1.5e999\" is out of range: the number is too large"},
        {"char-rms", "lr", "1.5e99.9", "is not a number"},
        {"char-rms", "lr", "0", "lr: 0 is out of range: above 0"},
        {"char-rms", "schedule", "line", "\"line\" is not one of constant, cosine, inverse_sqrt, linear, wsd or one_cycle"},
        {"char-rms", "layers", "two", "layers: \"two\" is not an integer"},
        {"char-rms", "max_tokens", "0", "max_tokens: 0 is out of range: at least 1"},
        {"multi30k", "max_tokens", "-1", "max_tokens: -1 is out of range: at least 0"}, /* 0: up to max_length */
    };
    char text[64];
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        struct wf_config c = preset(bad[i].preset);
        set_value_fails(&c, bad[i].key, bad[i].value, bad[i].says);
        ck_assert(!strstr(bad[i].says, "unknown key") || !wf_config_get(&c, bad[i].key, text, sizeof text));
    }
}
END_TEST

START_TEST(keys_say_what_they_mean)
{
    static const struct {
        const char *key, *values;
    } some[] = {{"dropout", "at least 0 and below 1"},
                {"heads", "1 to 1024"},
                {"patience", "at least 0"},
                {"norm", "post or pre"},
                {"tied", "true or false"},
                {"max_tokens", "at least 0"},
                {"clip", "at least 0"},
                {"batch_cost", "both or side"},
                {"tokenizer", "char, word, bpe or byte-bpe"}};
    struct wf_config c = preset("multi30k"), language = preset("char-rms");
    struct wf_config_key key;
    char text[64];
    int count = 0, found = 0, of_batches = 0, of_validation = 0;
    for (; wf_config_key_at(&c, count, &key); count++) {
        const bool cuts = strncmp(key.name, "batch_", 6) == 0 || strcmp(key.name, "max_ratio") == 0 || strcmp(key.name, "deduplicate") == 0;
        ck_assert_msg(key.of_batches == cuts && (!cuts || key.resumable), "%s", key.name);
        ck_assert_msg(key.of_validation == (strcmp(key.name, "valid_tokens") == 0), "%s", key.name);
        of_batches += key.of_batches;
        ck_assert_msg(strlen(key.meaning) > 5 && strlen(key.meaning) < 120 && !strchr(key.meaning, '\n'), "%s", key.name);
        ck_assert_msg(strlen(key.values) > 3 && key.section[0], "%s", key.name);
        ck_assert(wf_config_get(&c, key.name, text, sizeof text));
        for (int i = 0; i < (int)(sizeof some / sizeof *some); i++)
            if (strcmp(some[i].key, key.name) == 0) {
                ck_assert_str_eq(key.values, some[i].values);
                found++;
            }
    }
    ck_assert_int_eq(found, sizeof some / sizeof *some);
    ck_assert_int_ge(count, 40);
    ck_assert_int_eq(of_batches, 6);
    struct wf_config encoder = preset("encoder-attention");
    for (int i = 0; wf_config_key_at(&encoder, i, &key); i++)
        of_validation += key.of_validation; /* valid_tokens, mask_rate, crop and frame */
    ck_assert_int_eq(of_validation, 4);
    ck_assert(!wf_config_key_at(&c, -1, &key));
    for (count = 0; wf_config_key_at(&language, count, &key); count++)
        if (strcmp(key.name, "max_tokens") == 0)
            ck_assert_str_eq(key.values, "at least 1");
}
END_TEST

START_TEST(conditions_between_keys)
{
    static const struct {
        const char *preset, *settings, *says; /* NULL: nothing is wrong */
    } cases[] = {
        {"nanogpt-char", "heads=5", "d_model (384) must be a multiple of heads (5)"},
        {"nanogpt-char", "kv_heads=4", "heads (6) must be a multiple of kv_heads (4)"},
        {"nanogpt-char", "kv_heads=2", NULL},
        {"nanogpt-char", "d_model=65536 heads=64 d_ff=262144 layers=1024", "2^40"},
        {"nanogpt-char", "d_model=65536 heads=64 vocab_size=16777216", "2^40"},
        {"nanogpt-char", "min_lr=2e-3", "min_lr"},
        {"nanogpt-char", "accumulate=65", "accumulate"},
        {"nanogpt-char", "steps=50", NULL}, /* shorter than the warm-up: a preset can be tried */
        {"encoder-attention", "accumulate=33", "batch (32) must be at least accumulate (33)"},
        {"smollm2-135m", "out_bias=true", "out_bias=true needs qkv_bias=true"},
        {"smollm2-135m", "out_bias=true qkv_bias=true ffn_bias=true window=8 window_from=4", NULL},
        {"gemma3-270m", "d_key=5", "heads of even width"},
        {"gemma3-270m", "kv_heads=3", "heads (4) must be a multiple of kv_heads (3)"},
        {"gemma2-2b", "full_every=0 score_softcap=0 logit_softcap=0", NULL},
        {"phi3-mini", "d_model=96", "heads of even width"},
        {"bert", "context=64 crop=65", "crop (65) must be at most context (64)"},
        {"bert", "context=64 crop=2", "rows of 2 have no room for text"},
        {"multi30k", "source_vocab_size=5000", "source_vocab_size"},
        {"multi30k", "source_vocab_size=10000", NULL},
        {"multi30k", "shared=false source_vocab_size=5000", NULL},
        {"multi30k", "positions=100", "max_length (512) must be at most positions (100)"},
        {"multi30k", "max_ratio=0.5", "max_ratio = 0.5 would leave no pair: set 1 or more, or 0 for no limit"},
        {"multi30k", "heads=5", "d_model (128) must be a multiple of heads (5)"},
        {"multi30k", "d_model=65536 d_ff=262144 encoder_layers=1024", "2^40"},
        {"multi30k", "accumulate=1000", NULL}, /* a micro-batch may be empty */
        {"multi30k", "max_tokens=0", NULL},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        struct wf_config c = preset(cases[i].preset);
        set_keys(&c, cases[i].settings);
        if (cases[i].says)
            ck_conflict(&c, cases[i].says);
        else
            ck_ok(wf_config_check(&c, error));
    }
}
END_TEST

/* min_lr and accumulate of a preset follow lr and batch; leaves of a run follow accumulate. */
START_TEST(keys_follow_others)
{
    struct wf_config c = preset("nanogpt-char");
    set_value(&c, "lr", "1e-6");
    set_value(&c, "batch", "2");
    ck_assert(c.training.min_lr == 1e-6 && c.training.accumulate <= 2);
    c = preset("gpt2");
    set_value(&c, "batch", "2");
    ck_assert_int_eq(c.training.accumulate, 2);
    ck_ok(wf_config_check(&c, error));
    set_value(&c, "leaves", "2");
    ck_ok(wf_config_check(&c, error));
    set_value(&c, "accumulate", "1");
    ck_assert_int_eq(c.training.leaves, 0);
    set_value(&c, "leaves", "2");
    ck_conflict(&c, "leaves = 2 is not a power of two that divides accumulate = 1");
    set_value(&c, "accumulate", "3");
    ck_conflict(&c, "batch (2) must be at least accumulate (3)");
}
END_TEST

/* Values that a program sets itself must be in their ranges too. */
START_TEST(configurations_set_by_hand)
{
    struct wf_config good = preset("nanogpt-char"), c = good;
    c.family = NULL;
    ck_conflict(&c, "no model family");
    ck_fails(wf_config_set(&c, "lr", "1", error), WF_ERR_STATE, "no model family");
    ck_fails(wf_config_defaults(&c, "gtp", error), WF_ERR_ARGUMENT, "did you mean gpt");
    ck_fails(wf_config_defaults(&c, "mamba", error), WF_ERR_ARGUMENT, "choose one of rms, ");
    c = good, c.training.schedule = -1;
    ck_conflict(&c, "schedule");
    c = good, c.training.clip = INFINITY;
    ck_conflict(&c, "clip");
    good = c = preset("multi30k"), c.generation.beam = 0;
    ck_conflict(&c, "beam: 0 is out of range");
    c = good, c.tokenizer.kind = WF_TOKENIZER_WORDPIECE; /* can't be trained, but given */
    ck_ok(wf_config_check(&c, error));
    c.tokenizer.kind++;
    ck_conflict(&c, "tokenizer");
}
END_TEST

START_TEST(numbers_are_the_same_in_every_locale)
{
    struct wf_config c = preset("char-rms");
    char text[64];
    use_comma_locale();
    set_value(&c, "dropout", "0.125");
    ck_assert(real_key(&c, "dropout") == 0.125);
    ck_assert(wf_config_get(&c, "dropout", text, sizeof text));
    ck_assert_str_eq(text, "0.125");
    set_value_fails(&c, "dropout", "0,25", "not a number");
    setlocale(LC_ALL, "C");
}
END_TEST

WF_TEST_MAIN("models/config", all_keys_are_tested, families_are_checked, every_key_takes_good_values_and_refuses_bad_ones,
             keys_reach_their_fields, words_are_those_of_nn_and_optim, optimizers_have_their_settings,
             unknown_keys_and_bad_values_are_named, keys_say_what_they_mean, conditions_between_keys, keys_follow_others,
             configurations_set_by_hand, keys_of_other_families, numbers_are_the_same_in_every_locale)
