/* SPDX-License-Identifier: MIT */
/* What a folder of Hugging Face's and of sentence-transformers has beside the weights: the tokenizer in either form, and how sentence
 * vectors are made. Keys that say nothing about the numbers may be there; what would change them and is not done is refused by name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "hugging_face.h"
#include <weft/internal/run_folder.h>

enum { LIMIT = 1 << 20 };

/* Reads folder/name into *out; NULL where there is no such file. *path is its name for messages. Both are the caller's. */
static wf_status load_json(const char *folder, const char *name, json_t **out, char **path, wf_error *error)
{
    wf_error local = {0};
    *out = NULL;
    if (!(*path = wf_run_path(folder, name, error)))
        return WF_ERR_MEMORY;
    if (!wf_file_exists(*path))
        return WF_OK;
    *out = wf_json_load(*path, LIMIT, &local);
    return *out ? WF_OK : wf_error_set(error, local.code, "%s", local.message);
}

static wf_status want_object(const json_t *value, const char *path, wf_error *error)
{
    return !value || json_is_object(value) ? WF_OK : wf_error_set(error, WF_ERR_FORMAT, "%s: this is not an object of keys", path);
}

/* --- the tokenizer ------------------------------------------------------------------------------------------------- */

/* A special token: its text, or an object with the text as "content". */
static wf_status take_token(const json_t *object, const char *path, const char *key, const char **out, wf_error *error)
{
    const json_t *value = json_object_get(object, key);
    return json_is_object(value) ? wf_json_get_string(value, path, "content", WF_JSON_REQUIRED, out, error)
                                 : wf_json_get_string(object, path, key, WF_JSON_OPTIONAL, out, error);
}

static wf_status take_vocab_options(const json_t *object, const char *path, struct wf_vocab_options *o, wf_error *error)
{
    bool lower = true, ideographs = true, basic = true, accents = false;
    wf_status status = wf_json_get_bool(object, path, "do_lower_case", WF_JSON_OPTIONAL, &lower, error);
    if (status == WF_OK)
        status = wf_json_get_bool(object, path, "tokenize_chinese_chars", WF_JSON_OPTIONAL, &ideographs, error);
    if (status == WF_OK)
        status = wf_json_get_bool(object, path, "do_basic_tokenize", WF_JSON_OPTIONAL, &basic, error);
    if (status == WF_OK)
        status = wf_json_get_bool(object, path, "strip_accents", WF_JSON_OPTIONAL, &accents, error);
    if (status == WF_OK)
        status = take_token(object, path, "unk_token", &o->unknown, error);
    if (status == WF_OK)
        status = take_token(object, path, "cls_token", &o->begin, error);
    if (status == WF_OK)
        status = take_token(object, path, "sep_token", &o->end, error);
    if (status == WF_OK)
        status = take_token(object, path, "pad_token", &o->pad, error);
    if (status == WF_OK)
        status = take_token(object, path, "mask_token", &o->mask, error);
    if (status != WF_OK)
        return status;
    if (!basic)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"do_basic_tokenize\": false is not supported", path);
    if (json_array_size(json_object_get(object, "never_split")) > 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"never_split\": words that are never split are not supported", path);
    o->cased = !lower;
    o->whole_scripts = !ideographs;
    if (json_is_boolean(json_object_get(object, "strip_accents")))
        o->accents = accents ? WF_ACCENTS_STRIP : WF_ACCENTS_KEEP;
    return WF_OK;
}

static wf_status load_vocab(const char *folder, const char *vocab, wf_tokenizer **out, wf_error *error)
{
    struct wf_vocab_options o = {0};
    json_t *object = NULL;
    char *path = NULL;
    wf_status status = load_json(folder, "tokenizer_config.json", &object, &path, error);
    if (status == WF_OK)
        status = want_object(object, path, error);
    if (status == WF_OK && object)
        status = take_vocab_options(object, path, &o, error);
    if (status == WF_OK)
        status = wf_tokenizer_load_vocab_with(vocab, &o, out, error);
    json_decref(object);
    wf_free(path);
    return status;
}

/* Embeddings are often padded to a multiple of 8 to 128 rows: a tokenizer may have a few types less. */
static bool fits(int64_t types, int64_t rows)
{
    return types == rows || (types < rows && rows - types < 128 && rows % 8 == 0);
}

wf_status hf_tokenizer_load(const char *folder, const struct wf_config *config, wf_tokenizer **out, wf_error *error)
{
    char *json = wf_run_path(folder, "tokenizer.json", error), *vocab = wf_run_path(folder, "vocab.txt", error);
    wf_status status = json && vocab ? WF_OK : WF_ERR_MEMORY;
    bool has_json = status == WF_OK && wf_file_exists(json);
    *out = NULL;
    if (status == WF_OK && has_json)
        status = wf_tokenizer_load(json, out, error);
    else if (status == WF_OK && wf_file_exists(vocab))
        status = load_vocab(folder, vocab, out, error);
    else if (status == WF_OK)
        status = wf_error_set(error, WF_ERR_IO, "%s has no tokenizer: tokenizer.json and vocab.txt are both missing", folder);
    if (status == WF_OK && !fits(wf_tokenizer_vocab_size(*out), wf_config_shape(config).vocab_size))
        status = wf_error_set(error, WF_ERR_FORMAT, "vocabulary size mismatch: %s has %" PRId64 " tokens, the model in %s %" PRId64,
                              has_json ? json : vocab, wf_tokenizer_vocab_size(*out), folder, wf_config_shape(config).vocab_size);
    wf_free(json);
    wf_free(vocab);
    return status;
}

/* --- weights ------------------------------------------------------------------------------------------------------- */

const char *hf_other_weights(const char *folder)
{
    static const struct {
        const char *name, *what;
    } others[] = {{"model.safetensors.index.json", "weights in several files are not supported: save them as one file"},
                  {"pytorch_model.bin", "pytorch_model.bin is not supported: save the model as safetensors "
                                        "(save_pretrained of transformers does)"},
                  {"tf_model.h5", "tf_model.h5 is not supported: save the model as safetensors"},
                  {"flax_model.msgpack", "flax_model.msgpack is not supported: save the model as safetensors"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char *path = wf_run_path(folder, others[i].name, NULL);
        bool there = path && wf_file_exists(path);
        wf_free(path);
        if (there)
            return others[i].what;
    }
    return NULL;
}

/* --- sentence vectors ---------------------------------------------------------------------------------------------- */

static const char *const modes[] = {"cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"};
static const char *const mode_keys[] = {"pooling_mode_cls_token",           "pooling_mode_mean_tokens",
                                        "pooling_mode_max_tokens",          "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"};
enum { MODES = sizeof modes / sizeof *modes };

/* "pooling_mode": "mean", as it is written now; or a truth for each way, of which several would stand side by side. */
static wf_status take_pooling(const json_t *object, const char *path, const struct wf_config *config, struct wf_embedder_options *o,
                              wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    const char *mode = NULL;
    int64_t width = wf_config_shape(config).width;
    const json_t *list = json_object_get(object, "pooling_mode");
    wf_status status = WF_OK;
    if (json_is_array(list) && json_array_size(list) == 1)
        mode = json_string_value(json_array_get(list, 0));
    else if (json_is_array(list))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"pooling_mode\": several kinds of pooling at once are not supported", path);
    else
        status = wf_json_get_string(object, path, "pooling_mode", WF_JSON_OPTIONAL, &mode, error);
    for (int i = 0; status == WF_OK && !list && i < MODES; i++) {
        bool on = false;
        status = wf_json_get_bool(object, path, mode_keys[i], WF_JSON_OPTIONAL, &on, error);
        if (status == WF_OK && on && mode)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: key \"%s\": several kinds of pooling at once are not supported", path,
                                mode_keys[i]);
        mode = on ? modes[i] : mode;
    }
    mode = mode ? mode : "mean";
    if (status == WF_OK && strcmp(mode, "mean") != 0 && strcmp(mode, "cls") != 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: pooling by %s is not supported, only mean and cls", path,
                            wf_text_quote(mode, quoted));
    o->pooling = strcmp(mode, "cls") == 0 ? WF_POOL_CLS : WF_POOL_MEAN;
    if (status == WF_OK)
        status = wf_json_get_int(object, path,
                                 json_object_get(object, "embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension",
                                 WF_JSON_OPTIONAL, 1, INT32_MAX, &width, error);
    if (status == WF_OK && width != wf_config_shape(config).width)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: it pools vectors of %" PRId64 " numbers, the model's have %" PRId64, path, width,
                            wf_config_shape(config).width);
    return status;
}

static wf_status load_pooling(const char *folder, const char *module, const struct wf_config *config, struct wf_embedder_options *o,
                              wf_error *error)
{
    json_t *object = NULL;
    char *path = NULL, *within = wf_run_path(folder, module, error);
    wf_status status = within ? load_json(within, "config.json", &object, &path, error) : WF_ERR_MEMORY;
    if (status == WF_OK && !object)
        status = wf_error_set(error, WF_ERR_IO, "%s is not there: it says how tokens are pooled (modules.json names its folder)", path);
    if (status == WF_OK)
        status = want_object(object, path, error);
    if (status == WF_OK)
        status = take_pooling(object, path, config, o, error);
    json_decref(object);
    wf_free(path);
    wf_free(within);
    return status;
}

/* One module, which must be the one that is expected at its place: 0 the model, 1 pooling, 2 the normalisation. */
static wf_status take_module(const char *folder, const json_t *module, size_t place, const char *path, const struct wf_config *config,
                             struct wf_embedder_options *o, wf_error *error)
{
    static const char *const expected[] = {"Transformer", "Pooling", "Normalize"};
    const char *type, *within = "";
    char quoted[WF_QUOTE_SIZE];
    wf_status status = json_is_object(module) ? wf_json_get_string(module, path, "type", WF_JSON_REQUIRED, &type, error)
                                              : wf_error_set(error, WF_ERR_FORMAT, "%s: a module is not an object of keys", path);
    if (status == WF_OK)
        status = wf_json_get_string(module, path, "path", WF_JSON_OPTIONAL, &within, error);
    if (status != WF_OK)
        return status;
    const char *last = strrchr(type, '.');
    if (place >= 3 || strcmp(last ? last + 1 : type, expected[place]) != 0)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "%s: the module %s is not supported, only Transformer, Pooling and Normalize, in this order", path,
                            wf_text_quote(type, quoted));
    if (within[0] == '/' || strstr(within, ".."))
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the path %s of a module leads out of the folder", path,
                            wf_text_quote(within, quoted));
    if (place == 0 && within[0])
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the model is that in %s: move its files into %s", path,
                            wf_text_quote(within, quoted), folder);
    o->normalize = place == 2;
    return place == 1 ? load_pooling(folder, within, config, o, error) : WF_OK;
}

static wf_status load_modules(const char *folder, const struct wf_config *config, struct wf_embedder_options *o, bool *found,
                              wf_error *error)
{
    json_t *list = NULL;
    char *path = NULL;
    wf_status status = load_json(folder, "modules.json", &list, &path, error);
    *found = list != NULL;
    if (status == WF_OK && list && (!json_is_array(list) || json_array_size(list) < 2))
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: this is not a list of modules: Transformer, Pooling and perhaps Normalize", path);
    for (size_t i = 0; status == WF_OK && i < json_array_size(list); i++)
        status = take_module(folder, json_array_get(list, i), i, path, config, o, error);
    json_decref(list);
    wf_free(path);
    return status;
}

/* What the files of sentence-transformers say besides: the most ids of a sentence; words before each text, which are not done. */
static wf_status load_settings(const char *folder, const struct wf_config *config, struct wf_embedder_options *o, wf_error *error)
{
    json_t *object = NULL, *general = NULL;
    char *path = NULL, *general_path = NULL;
    bool lower = false;
    const char *prompt = NULL;
    wf_status status = load_json(folder, "sentence_bert_config.json", &object, &path, error);
    if (status == WF_OK)
        status = want_object(object, path, error);
    if (status == WF_OK && object)
        status = wf_json_get_int(object, path, "max_seq_length", WF_JSON_OPTIONAL, 1, INT32_MAX, &o->max_length, error);
    if (status == WF_OK && object)
        status = wf_json_get_bool(object, path, "do_lower_case", WF_JSON_OPTIONAL, &lower, error);
    if (status == WF_OK && lower)
        status =
            wf_error_set(error, WF_ERR_FORMAT, "%s: key \"do_lower_case\": true is not supported, only the tokenizer's lower case", path);
    if (status == WF_OK)
        status = load_json(folder, "config_sentence_transformers.json", &general, &general_path, error);
    if (status == WF_OK)
        status = want_object(general, general_path, error);
    if (status == WF_OK && general)
        status = wf_json_get_string(general, general_path, "default_prompt_name", WF_JSON_OPTIONAL, &prompt, error);
    if (status == WF_OK && prompt)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: key \"default_prompt_name\": prompts are not supported", general_path);
    if (o->max_length > wf_config_shape(config).context)
        o->max_length = wf_config_shape(config).context;
    json_decref(object);
    json_decref(general);
    wf_free(path);
    wf_free(general_path);
    return status;
}

wf_status hf_embed_options(const char *folder, const struct wf_config *config, struct wf_embedder_options *out, wf_error *error)
{
    bool found = false;
    *out = (struct wf_embedder_options){.pooling = WF_POOL_MEAN};
    if (!wf_config_read_only(config)) /* a run that was made in such a folder has nothing of it */
        return WF_OK;
    wf_status status = load_modules(folder, config, out, &found, error);
    return status == WF_OK && found ? load_settings(folder, config, out, error) : status;
}
