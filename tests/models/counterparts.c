/* SPDX-License-Identifier: MIT */
/* config.json as it is written for transformers: which architecture a configuration becomes, what is refused, and that the file is read as
 * the same model. */
#include <jansson.h>

#include <weft/internal/counterpart.h>
#include <weft/internal/json.h>

#include "../data/data_test.h"
#include "models_test.h"

static struct wf_config with(const char *family, const char *settings)
{
    struct wf_config c;
    ck_ok(wf_config_defaults(&c, family, error));
    ck_ok(wf_config_set_all(&c, settings, error));
    wf_config_set_vocab(&c, 30, 0);
    return c;
}

/* Writes the file, and reads it again; *object becomes what was written. */
static wf_status there_and_back(const struct wf_config *from, json_t **object, struct wf_config *back, wf_error *failure)
{
    struct wf_config changed = *from;
    *object = json_object();
    if (wf_config_counterpart(&changed, *object, failure) != WF_OK)
        return failure->code;
    char *text = json_dumps(*object, 0);
    ck_ok(wf_config_load(back, test_file("config.json", text, strlen(text)), error));
    free(text);
    ck_ok(wf_config_check(back, error));
    return WF_OK;
}

START_TEST(architectures)
{
    static const struct {
        const char *family, *settings, *becomes; /* a model_type, or what the message says */
    } row[] = {
        {"llama", "", "llama"},
        {"llama", "window_from=2", "llama"},
        {"llama", "window=8 window_from=4", "llama"},
        {"llama", "qkv_bias=true out_bias=true", "llama"},
        {"llama", "ffn_bias=true", "llama"},
        {"llama", "qkv_bias=true out_bias=true ffn_bias=true", "llama"},
        {"llama", "heads=3 d_key=8", "heads=3: Llama of transformers needs a divisor of d_model"},
        {"llama", "heads=3 d_key=8 qk_norm=true", "qwen3"},
        {"llama", "window=8", "mistral"},
        {"llama", "window=8 heads=3 d_key=8", "mistral"},
        {"llama", "window=8 window_from=1", "together: window=8 window_from=1"},
        {"llama", "window=8 ffn_bias=true", "together: window=8 window_from=0 ffn_bias=true"},
        {"llama", "window=8 qkv_bias=true out_bias=true", "together: window=8 window_from=0 qkv_bias=true out_bias=true"},
        {"llama", "qkv_bias=true", "qwen2"},
        {"llama", "qkv_bias=true window=8", "qwen2"},
        {"llama", "qkv_bias=true window=8 window_from=3", "qwen2"},
        {"llama", "qkv_bias=true ffn_bias=true", "together: qkv_bias=true out_bias=false ffn_bias=true"},
        {"llama", "qk_norm=true", "qwen3"},
        {"llama", "qk_norm=true window=8 window_from=1", "qwen3"},
        {"llama", "qk_norm=true qkv_bias=true out_bias=true", "qwen3"},
        {"llama", "qk_norm=true qkv_bias=true", "together: qkv_bias=true out_bias=false qk_norm=true"},
        {"llama", "qk_norm=true ffn_bias=true", "together: ffn_bias=true qk_norm=true"},
        {"llama", "rope_scaling=ntk rope_factor=2", "rope_scaling=ntk has no counterpart"},
        {"gemma", "", "gemma2"},
        {"gemma", "window=8 full_every=2 score_softcap=50 logit_softcap=30", "gemma2"},
        {"gemma", "window=8 full_every=2 rope_base=5", "window_rope_base=10000 rope_base=5: in transformers only Gemma 3 has two bases"},
        {"gemma", "window=8 full_every=1 rope_base=5", "gemma2"},
        {"gemma", "window=8 full_every=5 rope_base=5", "gemma2"},
        {"gemma", "window=8 full_every=2 rope_factor=4", "rope_factor=4: in transformers only Gemma 3 has it"},
        {"gemma", "window=8 full_every=5 rope_factor=4", "gemma2"},
        {"gemma", "window=8 full_every=2 rope_base=5 rope_factor=4 logit_softcap=30 qk_norm=true", "gemma3_text"},
        {"gemma", "score_softcap=50 qk_norm=true", "score_softcap=50 qk_norm=true: no architecture of transformers has both"},
        {"gemma", "score_divisor=10.5", "score_divisor=10.5: transformers has only whole numbers"},
        {"gemma", "score_divisor=1e12", "gemma2"},
        {"gemma", "score_divisor=0.25", "score_divisor=0.25: transformers has only whole numbers"},
        {"gemma", "heads=3 d_key=8", "heads=3: Gemma of transformers needs a divisor of d_model"},
        {"phi3", "", "phi3"},
        {"phi3", "window=8 tied=true dropout=0.1", "phi3"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct wf_config c = with(row[i].family, row[i].settings), back;
        wf_error failure = {0};
        json_t *object;
        ck_ok(wf_config_check(&c, error));
        if (there_and_back(&c, &object, &back, &failure) == WF_OK)
            ck_assert_msg(strcmp(json_string_value(json_object_get(object, "model_type")), row[i].becomes) == 0, "%s: %s, not %s",
                          row[i].settings, json_string_value(json_object_get(object, "model_type")), row[i].becomes);
        else
            ck_assert_msg(failure.code == WF_ERR_ARGUMENT && strstr(failure.message, row[i].becomes), "%s: %s", row[i].settings,
                          failure.message);
        json_decref(object);
    }
}
END_TEST

static double number(const struct wf_config *c, const char *key)
{
    char text[96];
    ck_assert_msg(wf_config_get(c, key, text, sizeof text), "%s", key);
    return strcmp(text, "true") == 0 ? 1 : strcmp(text, "false") == 0 ? 0 : strtod(text, NULL);
}

/* The window of block i; a window of the whole context is none. */
static double window_of(const struct wf_config *c, int64_t i)
{
    const bool gemma = strcmp(wf_config_family(c), "gemma") == 0, phi3 = strcmp(wf_config_family(c), "phi3") == 0;
    const double window = number(c, "window"), every = gemma ? number(c, "full_every") : 0;
    const bool all = gemma ? every > 0 && (i + 1) % (int64_t)every == 0 : !phi3 && (double)i < number(c, "window_from");
    return all || window == 0 || window >= number(c, "context") ? 0 : window;
}

static double base_of(const struct wf_config *c, int64_t i)
{
    const double every = number(c, "full_every");
    return every > 0 && (i + 1) % (int64_t)every == 0 ? number(c, "rope_base") / number(c, "rope_factor") : number(c, "window_rope_base");
}

static void ck_same_model(const struct wf_config *a, const struct wf_config *b, const char *settings)
{
    static const char *const keys[] = {
        "d_model",    "heads",       "d_ff",          "layers",        "context",           "tied",
        "dropout",    "norm_eps",    "qkv_bias",      "out_bias",      "ffn_bias",          "qk_norm",
        "rope_low",   "rope_high",   "score_softcap", "logit_softcap", "embedding_dropout", "attention_dropout",
        "vocab_size", "rope_scaling"};
    const bool gemma = strcmp(wf_config_family(a), "gemma") == 0;
    ck_assert_str_eq(wf_config_family(a), wf_config_family(b));
    ck_assert_int_eq(wf_config_shape(a).kv_width, wf_config_shape(b).kv_width);
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        char x[96], y[96];
        if (wf_config_get(a, keys[k], x, sizeof x) && wf_config_get(b, keys[k], y, sizeof y))
            ck_assert_msg(strcmp(x, y) == 0, "%s: %s is %s", settings, keys[k], y);
    }
    for (int64_t i = 0; i < wf_config_shape(a).layers; i++) {
        ck_assert_msg(window_of(a, i) == window_of(b, i), "%s: window of block %d", settings, (int)i);
        ck_assert_msg(!gemma || base_of(a, i) == base_of(b, i), "%s: base of block %d", settings, (int)i);
    }
    if (gemma) {
        const double x = number(a, "score_divisor"), y = number(b, "score_divisor");
        ck_assert_double_eq(x > 0 ? x : number(a, "d_model") / number(a, "heads"), y);
    }
}

/* Every choice of one value of each key: the file is refused, or it is read as the same model. Returns how many are not refused. */
static int choices(const char *family, const char *const (*value)[6], int keys, char *settings, size_t at)
{
    if (keys > 0) {
        int written = 0;
        for (int i = 0; i < 6 && value[0][i]; i++) {
            const int length = snprintf(settings + at, 256 - at, "%s%s", *value[0][i] ? " " : "", value[0][i]);
            written += choices(family, value + 1, keys - 1, settings, at + (size_t)length);
        }
        settings[at] = 0;
        return written;
    }
    struct wf_config c = with(family, settings), back;
    wf_error failure = {0};
    json_t *object;
    if (wf_config_check(&c, &failure) != WF_OK)
        return 0;
    const bool written = there_and_back(&c, &object, &back, &failure) == WF_OK;
    if (written)
        ck_same_model(&c, &back, settings);
    else
        ck_assert_int_eq(failure.code, WF_ERR_ARGUMENT);
    json_decref(object);
    return written;
}

START_TEST(the_same_model)
{
    static const char *const llama[][6] = {{"", "qkv_bias=true", "qkv_bias=true out_bias=true"},
                                           {"", "ffn_bias=true"},
                                           {"", "qk_norm=true"},
                                           {"", "window=8"},
                                           {"", "window_from=1", "window_from=3", "window_from=4", "window_from=9"}},
                             *const gemma[][6] = {{"", "qk_norm=true"},
                                                  {"", "window=8"},
                                                  {"", "full_every=1", "full_every=2", "full_every=3", "full_every=5"},
                                                  {"", "score_softcap=50", "logit_softcap=30"},
                                                  {"", "rope_base=5", "window_rope_base=5"},
                                                  {"", "rope_factor=8"},
                                                  {"", "score_divisor=20", "kv_heads=2 tied=false"}},
                             *const phi3[][6] = {{"", "window=8"},
                                                 {"", "kv_heads=1", "kv_heads=2"},
                                                 {"", "tied=true"},
                                                 {"", "dropout=0.1", "embedding_dropout=0.2", "attention_dropout=0.3"}};
    char settings[256] = "";
    ck_assert_int_eq(choices("llama", llama, 5, settings, 0), 59);
    ck_assert_int_eq(choices("gemma", gemma, 7, settings, 0), 666);
    ck_assert_int_eq(choices("phi3", phi3, 4, settings, 0), 48);
}
END_TEST

/* Keys for transformers 4 beside those for 5. */
START_TEST(both_layouts)
{
    struct wf_config c = with("gemma", "window=8 full_every=3 rope_base=7 rope_factor=4 window_rope_base=5 qk_norm=true"), back;
    json_t *object;
    ck_ok(there_and_back(&c, &object, &back, error));
    (void)!json_object_del(object, "rope_parameters");
    (void)!json_object_del(object, "layer_types");
    char *text = json_dumps(object, 0);
    ck_ok(wf_config_load(&back, test_file("config.json", text, strlen(text)), error));
    ck_same_model(&c, &back, "gemma3_text of transformers 4");
    free(text);
    json_decref(object);
    c = with("llama", "qk_norm=true window=8 window_from=1");
    ck_ok(there_and_back(&c, &object, &back, error));
    (void)!json_object_del(object, "rope_parameters");
    (void)!json_object_del(object, "layer_types");
    text = json_dumps(object, 0);
    ck_ok(wf_config_load(&back, test_file("config.json", text, strlen(text)), error));
    ck_same_model(&c, &back, "qwen3 of transformers 4");
    free(text);
    json_decref(object);
}
END_TEST

WF_TEST_MAIN("models/counterparts", architectures, the_same_model, both_layouts)
