/* SPDX-License-Identifier: MIT */
/* Reads how a folder of Hugging Face generates: the tokens that end a text, and the settings of sampling. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/minmax.h>
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

/* The settings of generation of a folder that another library wrote. */
struct settings {
    bool foreign; /* false: a run, which has its settings in config.json, where users change them */
    struct wf_sampler sampler;
    int64_t max_tokens;                /* 0: not said */
    char refused[WF_RUN_REFUSED_SIZE]; /* a key that changes a text and is not supported; "": none */
};

/* Finds a key of generation_config.json that changes a text and is not supported. */
static void find_refused(const json_t *object, struct settings *s)
{
    static const struct {
        const char *key;
        double none; /* the value that changes nothing */
    } keys[] = {{"num_beams", 1},
                {"num_beam_groups", 1},
                {"no_repeat_ngram_size", 0},
                {"encoder_no_repeat_ngram_size", 0},
                {"penalty_alpha", 0},
                {"typical_p", 1},
                {"epsilon_cutoff", 0},
                {"eta_cutoff", 0},
                {"min_length", 0},
                {"min_new_tokens", 0},
                {"encoder_repetition_penalty", 1},
                {"guidance_scale", 1}};
    static const char *const lists[] = {"bad_words_ids", "force_words_ids",     "suppress_tokens",     "begin_suppress_tokens",
                                        "sequence_bias", "forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty",
                                        "stop_strings"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !s->refused[0]; i++) {
        const json_t *value = json_object_get(object, keys[i].key);
        if (json_is_number(value) && json_number_value(value) != keys[i].none)
            snprintf(s->refused, sizeof s->refused, "%s", keys[i].key);
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !s->refused[0]; i++) {
        const json_t *value = json_object_get(object, lists[i]);
        if (value && !json_is_null(value))
            snprintf(s->refused, sizeof s->refused, "%s", lists[i]);
    }
}

/* Reads the settings from config.json and generation_config.json. As in transformers, the likeliest token is taken if the second does not
 * say "do_sample": true, or if it is missing. */
static void read_settings(const struct hf_file *config, struct wf_json_reader *r, struct settings *s)
{
    bool sample = false;
    *s = (struct settings){.foreign = !json_object_get(config->json, "weft_version"),
                           .sampler = {.temperature = 1, .top_k = 50, .top_p = 1, .repetition_penalty = 1}}; /* transformers' defaults */
    find_refused(r->object, s); /* a run keeps the file of its folder */
    if (!s->foreign)
        return;
    wf_json_read_bool(r, "do_sample", WF_JSON_OPTIONAL, &sample);
    wf_json_read_double(r, "temperature", WF_JSON_OPTIONAL, 0, 1000, &s->sampler.temperature);
    wf_json_read_double(r, "top_p", WF_JSON_OPTIONAL, 1e-9, 1, &s->sampler.top_p);
    wf_json_read_int(r, "top_k", WF_JSON_OPTIONAL, 0, INT32_MAX, &s->sampler.top_k);
    wf_json_read_double(r, "min_p", WF_JSON_OPTIONAL, 0, 1, &s->sampler.min_p);
    wf_json_read_double(r, "repetition_penalty", WF_JSON_OPTIONAL, 1e-6, 1e6, &s->sampler.repetition_penalty);
    wf_json_read_int(r, "max_new_tokens", WF_JSON_OPTIONAL, 1, INT32_MAX, &s->max_tokens);
    s->sampler.greedy = !sample || s->sampler.temperature == 0;
}

/* Reads both files: the settings, and if run is not NULL its end tokens. */
static wf_status load_settings(const char *folder, struct settings *s, struct wf_run *run, wf_error *error)
{
    struct hf_file generation = hf_open(folder, "generation_config.json", error);
    if (run)
        read_ends(&generation.r, run);
    if (generation.r.status != WF_OK)
        return hf_close(&generation);
    struct hf_file config = hf_open(folder, "config.json", error);
    if (run && run->ends == 0)
        read_ends(&config.r, run);
    if (config.r.status == WF_OK)
        read_settings(&config, &generation.r, s);
    const wf_status status = hf_close(&config), other = hf_close(&generation);
    return status != WF_OK ? status : other;
}

/* Puts the settings into a configuration. A temperature of 0 stands for the likeliest token. */
static void set_generation(struct wf_generation *g, const struct settings *s)
{
    g->temperature = s->sampler.greedy ? 0 : s->sampler.temperature;
    g->top_k = s->sampler.top_k;
    g->top_p = s->sampler.top_p;
    g->min_p = s->sampler.min_p;
    g->repetition_penalty = s->sampler.repetition_penalty;
    if (s->max_tokens > 0)
        g->max_tokens = s->max_tokens;
}

/* Finds the tokens that the template puts before a text, if it puts none behind it. */
static void find_begin(struct wf_run *run)
{
    static const char *const texts[] = {"a", "e", " ", "\n", "1"};
    const wf_tokenizer *t = run->tokenizer;
    int64_t begins = 0;
    bool known = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !known; i++) {
        int64_t unknown = 0;
        struct wf_tokens bare = {0}, all = {0};
        const struct wf_encode_options o[2] = {{.whole = true, .unknown = &unknown},
                                               {.whole = true, .specials = true, .unknown = &unknown}};
        known = wf_tokenizer_encode_with(t, texts[i], 1, &o[0], &bare, NULL) == WF_OK &&
                wf_tokenizer_encode_with(t, texts[i], 1, &o[1], &all, NULL) == WF_OK && unknown == 0 && bare.count > 0;
        if (known && all.count > bare.count &&
            memcmp(all.id + all.count - bare.count, bare.id, (size_t)bare.count * sizeof *bare.id) == 0) {
            begins = all.count - bare.count;
            memcpy(run->begin, all.id, (size_t)WF_MIN(begins, WF_RUN_BEGINS) * sizeof *run->begin);
        }
        wf_tokens_free(&bare);
        wf_tokens_free(&all);
    }
    run->begins = (int)begins;
    run->needs_begin = begins > 0 && run->config.family->needs_begin;
}

wf_status hf_sampling_load(const char *folder, struct wf_config *config, wf_error *error)
{
    struct settings s;
    if (!config->family->model_type || wf_config_kind(config) != WF_MODEL_LANGUAGE)
        return WF_OK;
    wf_status status = load_settings(folder, &s, NULL, error);
    if (status == WF_OK && s.foreign)
        set_generation(&config->generation, &s);
    return status;
}

wf_status hf_generation_load(const char *folder, struct wf_run *run, wf_error *error)
{
    const struct wf_generation *c = &run->config.generation;
    struct settings s;
    if (wf_config_kind(&run->config) != WF_MODEL_LANGUAGE)
        return WF_OK;
    find_begin(run);
    run->sampler = (struct wf_sampler){.temperature = c->temperature,
                                       .top_k = c->top_k,
                                       .top_p = c->top_p,
                                       .min_p = c->min_p,
                                       .repetition_penalty = c->repetition_penalty,
                                       .greedy = c->temperature == 0};
    if (!run->config.family->model_type)
        return WF_OK;
    wf_status status = load_settings(folder, &s, run, error);
    if (status == WF_OK)
        memcpy(run->refused, s.refused, sizeof run->refused);
    if (status == WF_OK && s.foreign) {
        run->sampler = s.sampler;
        set_generation(&run->config.generation, &s); /* for who writes the configuration */
    }
    return status;
}
