/* SPDX-License-Identifier: MIT */
/* Writes the files of a Hugging Face folder that belong to its model besides config.json and the weights: copies those that a folder has,
 * and makes the settings of generation and of the tokenizer for a run that lacks them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/memory.h>

#include <weft/internal/family.h>
#include <weft/internal/run_folder.h>

enum { LIMIT = 1 << 20 /* maximum bytes of a JSON file of settings */ };
#define COPY_LIMIT (INT64_C(1) << 30)
#define GENERATION "generation_config.json"
#define TOKENIZER "tokenizer_config.json"

const char *const hf_kept[] = {GENERATION,
                               TOKENIZER,
                               "special_tokens_map.json",
                               "added_tokens.json",
                               "chat_template.jinja",
                               "chat_template.json",
                               "LICENSE",
                               "LICENSE.txt",
                               "NOTICE",
                               NULL};

wf_status hf_copy(const char *from, const char *to, const char *name, wf_error *error)
{
    char *source = wf_run_path(from, name, error), *copy = wf_run_path(to, name, error);
    wf_status status = source && copy ? WF_OK : WF_ERR_MEMORY;
    if (status == WF_OK && wf_file_exists(source)) {
        int64_t bytes = 0;
        char *text = wf_file_load(source, COPY_LIMIT, &bytes, error);
        status = text ? wf_file_save(copy, text, bytes, error) : error->code;
        wf_free(text);
    }
    wf_free(source);
    wf_free(copy);
    return status;
}

/* Reads a JSON object; a missing file is an empty one. NULL: failure. The caller releases the object. */
static json_t *load_object(const char *folder, const char *name, wf_error *error)
{
    char *path = wf_run_path(folder, name, error);
    wf_json_init();
    json_t *object = !path ? NULL : wf_file_exists(path) ? wf_json_load(path, LIMIT, error) : json_object();
    if (object && !json_is_object(object)) {
        wf_error_set(error, WF_ERR_FORMAT, "%s: not a JSON object", path);
        json_decref(object);
        object = NULL;
    } else if (path && !object && !error->code) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for %s", path);
    }
    wf_free(path);
    return object;
}

static wf_status save_object(const char *folder, const char *name, const json_t *object, wf_error *error)
{
    char *path = wf_run_path(folder, name, error);
    wf_status status = path ? wf_json_save(path, object, 2, error) : WF_ERR_MEMORY;
    wf_free(path);
    return status;
}

/* --- generation_config.json ---------------------------------------------------------------------------------------- */

static const json_t *ends_of(const json_t *object)
{
    const json_t *ends = json_object_get(object, "eos_token_id");
    return json_is_null(ends) ? NULL : ends;
}

/* Copies generation_config.json, with the end tokens of config.json if it has none. */
static wf_status keep_generation(const char *from, const char *to, wf_error *error)
{
    json_t *config = load_object(from, "config.json", error), *generation = config ? load_object(from, GENERATION, error) : NULL;
    wf_status status = generation ? WF_OK : error->code;
    if (status == WF_OK && !ends_of(generation) && ends_of(config)) {
        status = wf_json_set_new(generation, "eos_token_id", json_deep_copy(ends_of(config)), error);
        if (status == WF_OK)
            status = save_object(to, GENERATION, generation, error);
    } else if (status == WF_OK) {
        status = hf_copy(from, to, GENERATION, error);
    }
    json_decref(config);
    json_decref(generation);
    return status;
}

wf_status hf_keep(const char *from, const char *to, wf_error *error)
{
    wf_status status = keep_generation(from, to, error);
    for (int i = 0; status == WF_OK && hf_kept[i]; i++)
        if (strcmp(hf_kept[i], GENERATION) != 0)
            status = hf_copy(from, to, hf_kept[i], error);
    return status;
}

static json_t *special(const wf_tokenizer *tokenizer, enum wf_special special)
{
    const int32_t id = wf_tokenizer_special(tokenizer, special);
    return id >= 0 ? json_integer(id) : json_null();
}

/* The tokens at which wf_generate_text ends a text of the run. */
static json_t *ends_of_run(const struct wf_run *run)
{
    if (run->ends <= 1)
        return run->ends == 1 ? json_integer(run->end[0]) : special(run->tokenizer, WF_SPECIAL_EOS);
    json_t *ends = json_array();
    for (int i = 0; i < run->ends; i++)
        (void)!json_array_append_new(ends, json_integer(run->end[i]));
    return ends;
}

/* Takes over `other`, for files without an id of their own. */
static wf_status put_id(json_t *object, const char *key, const json_t *known, json_t *other, wf_error *error)
{
    const json_t *id = json_object_get(known, key);
    if (!id || json_is_null(id))
        return wf_json_set_new(object, key, other, error);
    json_decref(other);
    return wf_json_set_new(object, key, json_deep_copy(id), error);
}

/* Sets the ids that `known`, a generation_config.json, has, or else those of the run's tokenizer. */
static wf_status put_ids(json_t *object, const json_t *known, const struct wf_run *run, wf_error *error)
{
    wf_status status = WF_OK;
    if (wf_config_kind(&run->config) == WF_MODEL_LANGUAGE) {
        status = put_id(object, "bos_token_id", known, special(run->tokenizer, WF_SPECIAL_BOS), error);
        if (status == WF_OK)
            status = put_id(object, "eos_token_id", known, ends_of_run(run), error);
    }
    return status == WF_OK ? put_id(object, "pad_token_id", known, special(run->tokenizer, WF_SPECIAL_PAD), error) : status;
}

wf_status hf_put_ids(json_t *object, const char *folder, const struct wf_run *run, wf_error *error)
{
    json_t *known = load_object(folder, GENERATION, error);
    const wf_status status = known ? put_ids(object, known, run, error) : error->code;
    json_decref(known);
    return status;
}

static bool same_sampling(const struct wf_generation *a, const struct wf_generation *b)
{
    return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p && a->min_p == b->min_p &&
           a->repetition_penalty == b->repetition_penalty;
}

/* The sampling of transformers needs a temperature above 0; a temperature of 0 is no sampling. */
static wf_status put_sampling(json_t *object, const struct wf_generation *g, wf_error *error)
{
    wf_status status = wf_json_set_bool(object, "do_sample", g->temperature > 0, error);
    if (status == WF_OK && g->temperature > 0)
        status = wf_json_set_double(object, "temperature", g->temperature, error);
    else
        (void)!json_object_del(object, "temperature");
    if (status == WF_OK)
        status = wf_json_set_int(object, "top_k", g->top_k, error);
    if (status == WF_OK)
        status = wf_json_set_double(object, "top_p", g->top_p, error);
    if (status == WF_OK && (g->min_p > 0 || json_object_get(object, "min_p")))
        status = wf_json_set_double(object, "min_p", g->min_p, error);
    if (status == WF_OK && (g->repetition_penalty != 1 || json_object_get(object, "repetition_penalty")))
        status = wf_json_set_double(object, "repetition_penalty", g->repetition_penalty, error);
    return status;
}

static wf_status save_generation(const char *folder, const struct wf_run *run, wf_error *error)
{
    struct wf_config file;
    const bool there = wf_run_has(folder, GENERATION);
    wf_status status = wf_config_defaults(&file, run->config.family->name, error);
    if (status == WF_OK && there) /* the folder has no config.json of a run yet, so the file is read */
        status = hf_sampling_load(folder, &file, error);
    json_t *object = status == WF_OK ? load_object(folder, GENERATION, error) : NULL;
    status = object ? WF_OK : error->code;
    /* transformers reads no end tokens from config.json if there is a generation_config.json */
    const bool ends = ends_of(object), sampling = there && same_sampling(&file.generation, &run->config.generation);
    if (status == WF_OK && !ends)
        status = put_ids(object, object, run, error);
    if (status == WF_OK && !sampling)
        status = put_sampling(object, &run->config.generation, error);
    if (status == WF_OK && !(ends && sampling))
        status = save_object(folder, GENERATION, object, error);
    json_decref(object);
    return status;
}

/* --- tokenizer_config.json ----------------------------------------------------------------------------------------- */

static wf_status save_tokenizer(const char *folder, const struct wf_run *run, wf_error *error)
{
    const bool encoder = wf_config_kind(&run->config) == WF_MODEL_ENCODER;
    const struct {
        enum wf_special special;
        const char *key;
    } specials[] = {{WF_SPECIAL_BOS, encoder ? "cls_token" : "bos_token"},
                    {WF_SPECIAL_EOS, encoder ? "sep_token" : "eos_token"},
                    {WF_SPECIAL_PAD, "pad_token"},
                    {WF_SPECIAL_UNKNOWN, "unk_token"},
                    {WF_SPECIAL_MASK, "mask_token"}};
    json_t *object = load_object(folder, TOKENIZER, error);
    wf_status status = object ? wf_json_set_string(object, "tokenizer_class", "PreTrainedTokenizerFast", error) : error->code;
    if (status == WF_OK)
        status = wf_json_set_int(object, "model_max_length", wf_config_shape(&run->config).context, error);
    if (status == WF_OK)
        status = wf_json_set_bool(object, "clean_up_tokenization_spaces", false, error);
    for (size_t i = 0; status == WF_OK && i < sizeof specials / sizeof *specials; i++) {
        int64_t length = 0;
        const int32_t id = wf_tokenizer_special(run->tokenizer, specials[i].special);
        const char *token = id >= 0 ? wf_tokenizer_token(run->tokenizer, id, &length) : NULL;
        if (token)
            status = wf_json_set_new(object, specials[i].key, json_stringn(token, (size_t)length), error);
    }
    if (status == WF_OK)
        status = save_object(folder, TOKENIZER, object, error);
    json_decref(object);
    return status;
}

wf_status hf_prompt_tokenizer(const char *folder, const struct wf_run *run, wf_error *error)
{
    if (wf_config_kind(&run->config) != WF_MODEL_LANGUAGE || !wf_run_has(folder, "tokenizer.json"))
        return WF_OK;
    char *path = wf_run_path(folder, "tokenizer.json", error);
    json_t *object = path ? wf_json_load(path, COPY_LIMIT, error) : NULL;
    const json_t *single = json_object_get(json_object_get(object, "post_processor"), "single");
    wf_status status = object ? WF_OK : error->code;
    if (status == WF_OK && json_object_get(json_array_get(single, json_array_size(single) - 1), "SpecialToken")) {
        status = wf_json_set_new(object, "post_processor", json_null(), error);
        if (status == WF_OK)
            status = wf_json_save(path, object, 2, error);
    }
    json_decref(object);
    wf_free(path);
    return status;
}

wf_status hf_settings_save(const char *folder, const struct wf_run *run, wf_error *error)
{
    wf_status status = WF_OK;
    if (wf_config_kind(&run->config) == WF_MODEL_LANGUAGE)
        status = save_generation(folder, run, error);
    return status == WF_OK && !wf_run_has(folder, TOKENIZER) ? save_tokenizer(folder, run, error) : status;
}
