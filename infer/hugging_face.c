/* SPDX-License-Identifier: MIT */
/* Reads files of a Hugging Face or sentence-transformers folder: the tokenizer, from tokenizer.json or vocab.txt, and the settings for
 * sentence vectors, which hf_embed_save also writes. Keys
 * that change neither ids nor vectors are ignored. Settings that would change them and are not supported are refused, and the message names
 * the key. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include <weft/internal/family.h>
#include <weft/internal/run_folder.h>

#include "hugging_face.h"

enum { LIMIT = 1 << 20 }; /* maximum bytes of a JSON file */

struct hf_file hf_open(const char *folder, const char *name, wf_error *error)
{
    struct hf_file f = {.path = wf_run_path(folder, name, error)};
    wf_json_init();
    if (f.path)
        f.json = wf_file_exists(f.path) ? wf_json_load(f.path, LIMIT, error) : json_object();
    if (!f.json)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for %s", name);
    f.r = (struct wf_json_reader){.object = f.json, .where = f.path, .error = error, .status = error->code};
    return f;
}

wf_status hf_close(struct hf_file *f)
{
    json_decref(f->json);
    wf_free(f->path);
    return f->r.status;
}

void hf_refuse(struct wf_json_reader *r, const char *key, const char *what)
{
    wf_json_read_status(r, wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"%s\": %s", r->where, key, what));
}

/* --- the tokenizer ------------------------------------------------------------------------------------------------- */

/* Reads a special token, which is a string, or an object with the string as "content". */
static void read_token(struct wf_json_reader *r, const char *key, const char **out)
{
    struct wf_json_reader within = *r;
    within.object = json_object_get(r->object, key);
    if (json_is_object(within.object))
        wf_json_read_string(&within, "content", WF_JSON_REQUIRED, out);
    else
        wf_json_read_string(r, key, WF_JSON_OPTIONAL, out);
    wf_json_read_status(r, within.status);
}

static void read_vocab_options(struct wf_json_reader *r, struct wf_vocab_options *o)
{
    bool lower = true, ideographs = true, basic = true, accents = false;
    wf_json_read_bool(r, "do_lower_case", WF_JSON_OPTIONAL, &lower);
    wf_json_read_bool(r, "tokenize_chinese_chars", WF_JSON_OPTIONAL, &ideographs);
    wf_json_read_bool(r, "do_basic_tokenize", WF_JSON_OPTIONAL, &basic);
    wf_json_read_bool(r, "strip_accents", WF_JSON_OPTIONAL, &accents);
    read_token(r, "unk_token", &o->unknown);
    read_token(r, "cls_token", &o->begin);
    read_token(r, "sep_token", &o->end);
    read_token(r, "pad_token", &o->pad);
    read_token(r, "mask_token", &o->mask);
    if (!basic)
        hf_refuse(r, "do_basic_tokenize", "false is not supported");
    if (json_array_size(json_object_get(r->object, "never_split")) > 0)
        hf_refuse(r, "never_split", "words that are never split are not supported");
    o->cased = !lower;
    o->whole_scripts = !ideographs;
    if (json_is_boolean(json_object_get(r->object, "strip_accents")))
        o->accents = accents ? WF_ACCENTS_STRIP : WF_ACCENTS_KEEP;
}

static wf_status load_vocab(const char *folder, const char *vocab, wf_tokenizer **out, wf_error *error)
{
    struct wf_vocab_options o = {0};
    struct hf_file f = hf_open(folder, "tokenizer_config.json", error);
    read_vocab_options(&f.r, &o);
    if (f.r.status == WF_OK)
        f.r.status = wf_tokenizer_load_vocab_with(vocab, &o, out, error);
    return hf_close(&f);
}

wf_status hf_tokenizer_load(const char *folder, const struct wf_config *config, wf_tokenizer **out, wf_error *error)
{
    bool json = wf_run_has(folder, "tokenizer.json");
    if (!json && !wf_run_has(folder, "vocab.txt"))
        return wf_error_set(error, WF_ERR_IO, "%s has no tokenizer: tokenizer.json and vocab.txt are both missing", folder);
    char *path = wf_run_path(folder, json ? "tokenizer.json" : "vocab.txt", error);
    wf_status status = !path ? WF_ERR_MEMORY : json ? wf_tokenizer_load(path, out, error) : load_vocab(folder, path, out, error);
    if (status == WF_OK && !wf_config_takes(config, wf_tokenizer_vocab_size(*out)))
        status = wf_error_set(error, WF_ERR_FORMAT, "vocabulary size mismatch: %s has %" PRId64 " tokens, the model in %s %" PRId64, path,
                              wf_tokenizer_vocab_size(*out), folder, wf_config_shape(config).vocab_size);
    wf_free(path);
    return status;
}

/* --- sentence vectors ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *mode, *key;
} modes[] = {{"cls", "pooling_mode_cls_token"},
             {"mean", "pooling_mode_mean_tokens"},
             {"max", "pooling_mode_max_tokens"},
             {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
             {"weightedmean", "pooling_mode_weightedmean_tokens"},
             {"lasttoken", "pooling_mode_lasttoken"}};

/* Reads the kind of pooling. New files have "pooling_mode": "mean". Older files have one boolean for each kind, of which only one may be
 * true. */
static void read_pooling(struct wf_json_reader *r, const struct wf_config *config, struct wf_embedder_options *o)
{
    static const char several[] = "several kinds of pooling at once are not supported";
    char quoted[WF_QUOTE_SIZE];
    const char *mode = NULL;
    int64_t model_width = wf_config_shape(config).width, width = model_width;
    const json_t *list = json_object_get(r->object, "pooling_mode");
    if (json_is_array(list) && json_array_size(list) == 1)
        mode = json_string_value(json_array_get(list, 0));
    else if (json_is_array(list))
        hf_refuse(r, "pooling_mode", several);
    else
        wf_json_read_string(r, "pooling_mode", WF_JSON_OPTIONAL, &mode);
    for (size_t i = 0; !list && i < sizeof modes / sizeof *modes; i++) {
        bool on = false;
        wf_json_read_bool(r, modes[i].key, WF_JSON_OPTIONAL, &on);
        if (on && mode)
            hf_refuse(r, modes[i].key, several);
        mode = on ? modes[i].mode : mode;
    }
    mode = mode ? mode : "mean";
    o->pooling = strcmp(mode, "cls") == 0 ? WF_POOL_CLS : WF_POOL_MEAN;
    if (o->pooling == WF_POOL_MEAN && strcmp(mode, "mean") != 0)
        wf_json_read_status(r, wf_error_set(r->error, WF_ERR_FORMAT, "%s: pooling by %s is not supported, only mean and cls", r->where,
                                            wf_text_quote(mode, quoted)));
    bool now = json_object_get(r->object, "embedding_dimension");
    wf_json_read_int(r, now ? "embedding_dimension" : "word_embedding_dimension", WF_JSON_OPTIONAL, 1, INT32_MAX, &width);
    if (width != model_width)
        wf_json_read_status(r,
                            wf_error_set(r->error, WF_ERR_FORMAT, "%s: it pools vectors of %" PRId64 " numbers, the model's have %" PRId64,
                                         r->where, width, model_width));
}

static wf_status load_pooling(const char *folder, const char *module, const struct wf_config *config, struct wf_embedder_options *o,
                              wf_error *error)
{
    char *within = wf_run_path(folder, module, error);
    if (!within)
        return WF_ERR_MEMORY;
    struct hf_file f = hf_open(within, "config.json", error);
    if (!wf_run_has(within, "config.json"))
        wf_json_read_status(
            &f.r, wf_error_set(error, WF_ERR_IO, "%s is missing: it defines the pooling (modules.json names its folder)", f.path));
    read_pooling(&f.r, config, o);
    wf_free(within);
    return hf_close(&f);
}

/* Reads the module with index `place`. Module 0 must be the model, module 1 the pooling, and module 2 the normalisation. */
static wf_status take_module(const char *folder, const json_t *module, size_t place, const char *path, const struct wf_config *config,
                             struct wf_embedder_options *o, wf_error *error)
{
    static const char *const expected[] = {"Transformer", "Pooling", "Normalize"};
    const char *type, *within = "";
    char quoted[WF_QUOTE_SIZE];
    struct wf_json_reader r = {.object = module, .where = path, .error = error};
    wf_json_read_string(&r, "type", WF_JSON_REQUIRED, &type);
    wf_json_read_string(&r, "path", WF_JSON_OPTIONAL, &within);
    if (r.status != WF_OK)
        return r.status;
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

static wf_status load_modules(const char *folder, const struct wf_config *config, struct wf_embedder_options *o, wf_error *error)
{
    struct hf_file f = hf_open(folder, "modules.json", error);
    if (f.json && json_array_size(f.json) < 2)
        f.r.status =
            wf_error_set(error, WF_ERR_FORMAT, "%s: this is not a list of modules: Transformer, Pooling and perhaps Normalize", f.path);
    for (size_t i = 0; f.r.status == WF_OK && i < json_array_size(f.json); i++)
        f.r.status = take_module(folder, json_array_get(f.json, i), i, f.path, config, o, error);
    return hf_close(&f);
}

/* Reads the maximum number of ids of a sentence from the settings of sentence-transformers. Refuses a default prompt, which would be put
 * before each text. */
static wf_status load_settings(const char *folder, const struct wf_config *config, struct wf_embedder_options *o, wf_error *error)
{
    bool lower = false;
    const char *prompt = NULL;
    int64_t context = wf_config_shape(config).context;
    struct hf_file f = hf_open(folder, "sentence_bert_config.json", error);
    wf_json_read_int(&f.r, "max_seq_length", WF_JSON_OPTIONAL, 1, INT32_MAX, &o->max_length);
    wf_json_read_bool(&f.r, "do_lower_case", WF_JSON_OPTIONAL, &lower);
    if (lower)
        hf_refuse(&f.r, "do_lower_case", "true is not supported, only the tokenizer's lower case");
    /* without max_seq_length take the context, because a max_length of 0 means that these files were not used */
    o->max_length = o->max_length > 0 && o->max_length < context ? o->max_length : context;
    if (hf_close(&f) != WF_OK)
        return error->code;
    f = hf_open(folder, "config_sentence_transformers.json", error);
    wf_json_read_string(&f.r, "default_prompt_name", WF_JSON_OPTIONAL, &prompt);
    if (prompt)
        hf_refuse(&f.r, "default_prompt_name", "prompts are not supported");
    return hf_close(&f);
}

wf_status hf_embed_options(const char *folder, const struct wf_config *config, struct wf_embedder_options *out, wf_error *error)
{
    *out = (struct wf_embedder_options){.pooling = WF_POOL_MEAN};
    /* a run of one of Weft's own families does not use such files, even if they are in its folder */
    if (!config->family->model_type || !wf_run_has(folder, "modules.json"))
        return WF_OK;
    return load_modules(folder, config, out, error) != WF_OK ? error->code : load_settings(folder, config, out, error);
}

/* Writes a JSON file, and frees the object. */
static wf_status save_json(const char *folder, const char *name, json_t *object, wf_error *error)
{
    char *path = wf_run_path(folder, name, error);
    if (!object || !path)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for %s", name);
    else
        (void)!wf_json_save(path, object, 2, error);
    json_decref(object);
    wf_free(path);
    return error->code;
}

/* An entry of modules.json. */
#define MODULE(index, path, name)                                                                                                          \
    json_pack("{s:i, s:s, s:s, s:s}", "idx", index, "name", #index, "path", path, "type", "sentence_transformers.models." name)
#define POOLING "weft_pooling" /* folder of the pooling: no other program uses this name, so saving replaces no other program's file */

wf_status hf_embed_save(const char *folder, const struct wf_embedder_options *o, wf_error *error)
{
    wf_error failure = {0};
    wf_json_init();
    char *within = wf_run_path(folder, POOLING, &failure);
    if (within && wf_folder_make(within, &failure) == WF_OK &&
        !save_json(within, "config.json", json_pack("{s:s}", "pooling_mode", o->pooling == WF_POOL_CLS ? "cls" : "mean"), &failure) &&
        !save_json(folder, "sentence_bert_config.json", json_pack("{s:I}", "max_seq_length", (json_int_t)o->max_length), &failure)) {
        json_t *modules = json_pack("[o, o]", MODULE(0, "", "Transformer"), MODULE(1, POOLING, "Pooling"));
        if (modules && o->normalize && json_array_append_new(modules, MODULE(2, "2_Normalize", "Normalize")) != 0) {
            json_decref(modules);
            modules = NULL;
        }
        (void)!save_json(folder, "modules.json", modules, &failure);
    }
    wf_free(within);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
