/* SPDX-License-Identifier: MIT */
/* Reads how a folder of Hugging Face generates: the tokens that end a text, and the settings of sampling. */
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/run_folder.h>

#include "hugging_face.h"

static wf_status take_end(struct wf_json_reader *r, const json_t *value, struct wf_run *run)
{
    const int64_t id = json_integer_value(value), types = wf_config_shape(&run->config).vocab_size;
    if (!json_is_integer(value) || id < 0 || id >= types)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"eos_token_id\": an id is not a number from 0 to %lld", r->where,
                            (long long)types - 1);
    if (run->ends == WF_RUN_ENDS)
        return wf_error_set(r->error, WF_ERR_FORMAT, "%s: key \"eos_token_id\": more than %d ids", r->where, WF_RUN_ENDS);
    run->end[run->ends++] = (int32_t)id;
    return WF_OK;
}

/* An id, a list of ids, or null. */
static void read_ends(struct wf_json_reader *r, struct wf_run *run)
{
    const json_t *value = json_object_get(r->object, "eos_token_id");
    if (r->status != WF_OK || !value || json_is_null(value))
        return;
    if (!json_is_array(value))
        r->status = take_end(r, value, run);
    for (size_t i = 0; r->status == WF_OK && i < json_array_size(value); i++)
        r->status = take_end(r, json_array_get(value, i), run);
}

/* Keys of generation_config.json that change a text and are not supported, with the value that changes nothing. */
static void refuse_search(struct wf_json_reader *r)
{
    static const struct {
        const char *key;
        double none;
    } keys[] = {{"num_beams", 1},
                {"num_beam_groups", 1},
                {"no_repeat_ngram_size", 0},
                {"encoder_no_repeat_ngram_size", 0},
                {"penalty_alpha", 0},
                {"typical_p", 1},
                {"epsilon_cutoff", 0},
                {"eta_cutoff", 0},
                {"min_length", 0},
                {"encoder_repetition_penalty", 1},
                {"guidance_scale", 1}};
    static const char *const lists[] = {"bad_words_ids", "force_words_ids",     "suppress_tokens",     "begin_suppress_tokens",
                                        "sequence_bias", "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
                                        "stop_strings"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(r->object, keys[i].key);
        if (json_is_number(value) && json_number_value(value) != keys[i].none)
            hf_refuse(r, keys[i].key, "this setting of generation is not supported: remove the key, or set it to its default");
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_t *value = json_object_get(r->object, lists[i]);
        if (value && !json_is_null(value))
            hf_refuse(r, lists[i], "this setting of generation is not supported: remove the key");
    }
}

/* Reads the settings of sampling. transformers samples only if the file says so. */
static void read_sampling(struct wf_json_reader *r, struct wf_sampler *s)
{
    bool sample = false;
    wf_json_read_bool(r, "do_sample", WF_JSON_OPTIONAL, &sample);
    wf_json_read_double(r, "temperature", WF_JSON_OPTIONAL, 0, 1000, &s->temperature);
    wf_json_read_double(r, "top_p", WF_JSON_OPTIONAL, 1e-9, 1, &s->top_p);
    wf_json_read_int(r, "top_k", WF_JSON_OPTIONAL, 0, INT32_MAX, &s->top_k);
    wf_json_read_double(r, "min_p", WF_JSON_OPTIONAL, 0, 1, &s->min_p);
    wf_json_read_double(r, "repetition_penalty", WF_JSON_OPTIONAL, 1e-6, 1e6, &s->repetition_penalty);
    s->greedy = !sample || s->temperature == 0;
    refuse_search(r);
}

/* Reads the sampler of a folder that another library wrote, if it has a generation_config.json. A run has its settings in config.json,
 * where users change them. */
static wf_status load_sampler(const char *folder, struct wf_sampler *s, bool *found, wf_error *error)
{
    struct hf_file f = hf_open(folder, "config.json", error);
    const bool own = json_object_get(f.r.object, "weft_version");
    *found = false;
    if (hf_close(&f) != WF_OK || own)
        return f.r.status;
    f = hf_open(folder, "generation_config.json", error);
    *found = json_object_size(f.json) > 0;
    if (*found)
        read_sampling(&f.r, s);
    return hf_close(&f);
}

wf_status hf_sampling_load(const char *folder, struct wf_config *config, wf_error *error)
{
    struct wf_generation *g = &config->generation;
    struct wf_sampler s = {.temperature = 1, .top_k = 50, .top_p = 1}; /* transformers' defaults */
    bool found;
    if (!config->family->model_type || wf_config_kind(config) != WF_MODEL_LANGUAGE)
        return WF_OK;
    wf_status status = load_sampler(folder, &s, &found, error);
    if (status == WF_OK && found) {
        g->temperature = s.greedy ? 0 : s.temperature;
        g->top_k = s.top_k;
        g->top_p = s.top_p;
    }
    return status;
}

wf_status hf_generation_load(const char *folder, struct wf_run *run, wf_error *error)
{
    const struct wf_generation *c = &run->config.generation;
    struct wf_sampler s = {.temperature = 1, .top_k = 50, .top_p = 1};
    bool found;
    if (wf_config_kind(&run->config) != WF_MODEL_LANGUAGE)
        return WF_OK;
    run->sampler = (struct wf_sampler){.temperature = c->temperature, .top_k = c->top_k, .top_p = c->top_p, .greedy = c->temperature == 0};
    if (!run->config.family->model_type)
        return WF_OK;
    struct hf_file f = hf_open(folder, "generation_config.json", error);
    read_ends(&f.r, run);
    wf_status status = hf_close(&f);
    if (status == WF_OK && run->ends == 0) {
        f = hf_open(folder, "config.json", error);
        read_ends(&f.r, run);
        status = hf_close(&f);
    }
    if (status == WF_OK && (status = load_sampler(folder, &s, &found, error)) == WF_OK && found)
        run->sampler = s;
    return status == WF_OK ? hf_sampling_load(folder, &run->config, error) : status; /* for who writes the configuration */
}
