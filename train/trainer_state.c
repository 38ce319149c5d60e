/* SPDX-License-Identifier: MIT */
/* Stores the configuration, texts and tokenizers of wf_train in the state, and compares them in a resume. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/needs.h>
#include <weft/internal/several.h>
#include <weft/internal/string.h>

#include "trainer.h"

static void put_tokenizer(struct trainer *t, wf_safetensors_writer *w, const char *key, const wf_tokenizer *tokenizer)
{
    struct wf_string json = {0};
    if (wf_tokenizer_json(tokenizer, &json, t->error) == WF_OK)
        wf_safetensors_put_metadata(w, key, json.data);
    wf_string_free(&json);
}

void zoo_put(struct fit *f, wf_safetensors_writer *w)
{
    struct trainer *t = f->o.ctx;
    wf_safetensors_put_metadata(w, "model", t->config.model);
    wf_safetensors_put_metadata(w, "family", wf_config_family(&t->config));
    state_put_number(w, "valid_limit", t->valid_limit);
    state_put_number(w, "train_hash", (int64_t)t->train_hash);
    state_put_number(w, "valid_hash", (int64_t)t->valid_hash);
    struct wf_config_key setting;
    for (int i = 0; wf_config_key_at(&t->config, i, &setting); i++) {
        char key[96], value[96];
        snprintf(key, sizeof key, "config.%s", setting.name);
        if (wf_config_get(&t->config, setting.name, value, sizeof value))
            wf_safetensors_put_metadata(w, key, value);
    }
    texts_put(t, w);
    put_tokenizer(t, w, "tokenizer", t->tokenizer);
    if (t->source_tokenizer && t->source_tokenizer != t->tokenizer)
        put_tokenizer(t, w, "source_tokenizer", t->source_tokenizer);
}

void zoo_identify(const struct fit *f, struct wf_string *text)
{
    const struct trainer *t = f->o.ctx;
    const uint64_t tokenizer = t->tokenizer ? wf_tokenizer_hash(t->tokenizer) : 0,
                   source = t->source_tokenizer ? wf_tokenizer_hash(t->source_tokenizer) : 0;
    /* The message names the first difference, so causes come before effects: a difference in the texts changes a trained tokenizer, and the
     * tokenizer changes the vocabulary sizes in the final config. */
    wf_config_words(&t->options->config, text);
    /* `3 * source`: without the factor, the hashes of two equal tokenizers would cancel each other. */
    if (t->options->tokenizer)
        wf_string_format(text, "#tokenizer=%016" PRIx64 " ", tokenizer ^ 3 * source);
    wf_string_format(text, "#training-text=%016" PRIx64 " #validation-text=%016" PRIx64 " #tokenizer=%016" PRIx64 " ", t->train_hash,
                     t->valid_hash, tokenizer ^ 3 * source);
    wf_config_words(&t->config, text);
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* Reads the configuration. A setting that the state lacks is newer than the state, and gets its default. */
static wf_status read_config(const struct state *s, struct wf_config *config, wf_error *error)
{
    const char *model = wf_safetensors_metadata(s->file, "model"), *family = wf_safetensors_metadata(s->file, "family");
    struct wf_config_key setting;
    if (!model || !family)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the state has no model: it is not the state of a Weft run", s->path);
    if (wf_config_defaults(config, family, error) != WF_OK)
        return error->code;
    snprintf(config->model, sizeof config->model, "%s", model);
    for (int i = 0; wf_config_key_at(config, i, &setting); i++) {
        char key[96];
        snprintf(key, sizeof key, "config.%s", setting.name);
        const char *value = wf_safetensors_metadata(s->file, key);
        if (value && wf_config_set_as(config, setting.name, value, true, error) != WF_OK)
            return error->code;
    }
    return WF_OK;
}

wf_status wf_train_config(const char *folder, struct wf_config *config, uint64_t *seed, wf_error *error)
{
    if (wf_needs(error, "folder, config", folder, config))
        return WF_ERR_ARGUMENT;
    struct state s;
    wf_error failure = {0};
    int64_t value = 0;
    *config = (struct wf_config){0};
    if (!state_open(&s, folder, &failure) && !read_config(&s, config, &failure) && seed &&
        !state_get_number(s.file, s.path, "seed", &value, &failure))
        *seed = (uint64_t)value;
    state_close(&s);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}

/* Keeps the state's valid_limit if valid_tokens is unchanged, so that losses stay comparable. Without this, choose_validation could choose
 * another limit, because the limit depends on the size of the batches and the number of updates. */
static void keep_validation(struct trainer *t, const struct state *s)
{
    char now[96] = "";
    const char *was = wf_safetensors_metadata(s->file, "config.valid_tokens");
    wf_config_get(&t->config, "valid_tokens", now, sizeof now);
    if (strcmp(was ? was : "-1", now) == 0 && state_get_number(s->file, s->path, "valid_limit", &t->kept_limit, NULL) != WF_OK)
        t->kept_limit = 0; /* an old state holds no limit, and validated on the whole text */
}

wf_status state_tokenizers(struct trainer *t)
{
    struct state s;
    if (state_open(&s, t->options->out, t->error) == WF_OK) {
        keep_validation(t, &s);
        const char *json = wf_safetensors_metadata(s.file, "tokenizer"), *source = wf_safetensors_metadata(s.file, "source_tokenizer");
        if (!json)
            wf_error_set(t->error, WF_ERR_FORMAT, "%s: the state has no tokenizer: it is not the state of a Weft run", s.path);
        else if (wf_tokenizer_parse(json, (int64_t)strlen(json), s.path, &t->tokenizer, t->error) == WF_OK && source)
            (void)!wf_tokenizer_parse(source, (int64_t)strlen(source), s.path, &t->source_tokenizer, t->error);
    }
    state_close(&s);
    return t->error->code;
}

wf_status state_parts(struct trainer *t)
{
    struct wf_training *o = &t->config.training;
    struct wf_config was;
    struct state s;
    int64_t asked = 0;
    if (state_open(&s, t->options->out, t->error) == WF_OK && wf_safetensors_metadata(s.file, "accumulate_asked") &&
        state_get_number(s.file, s.path, "accumulate_asked", &asked, t->error) == WF_OK && read_config(&s, &was, t->error) == WF_OK &&
        (o->accumulate == asked || o->accumulate == was.training.accumulate)) {
        o->accumulate = t->fit.o.accumulate = was.training.accumulate;
        o->leaves = t->fit.o.leaves = o->leaves > 0 ? o->leaves : was.training.leaves;
        t->fit.given = asked;
    }
    state_close(&s);
    return t->error->code;
}

static wf_status compare_config(struct trainer *t, const struct state *s)
{
    struct wf_config was;
    if (read_config(s, &was, t->error))
        return t->error->code;
    if (strcmp(was.model, t->config.model) != 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a run of %s, not of %s: resume it with that model, or choose another --out",
                            s->path, was.model, t->config.model);
    struct wf_training *o = &t->config.training;
    was.training.leaves = wf_leaves_again(was.training.leaves, 0, 1); /* 0, in the states of old versions, means 1 */
    o->leaves = t->fit.o.leaves = wf_leaves_again(o->leaves, was.training.leaves, o->accumulate);
    struct wf_config_key setting;
    for (int i = 0; wf_config_key_at(&t->config, i, &setting); i++) {
        const char *name = setting.name;
        char before[96], now[96];
        if (!wf_config_get(&was, name, before, sizeof before) || !wf_config_get(&t->config, name, now, sizeof now) ||
            strcmp(before, now) == 0)
            continue;
        /* With a given tokenizer the settings of the section "tokenizer" have no effect; tokenizers_open compares the tokenizers. */
        if (t->options->tokenizer && strcmp(setting.section, "tokenizer") == 0)
            continue;
        if (!setting.resumable)
            return wf_error_set(t->error, WF_ERR_ARGUMENT,
                                "%s was trained with %s = %s: a resume cannot change it to %s; leave it out, or choose another --out",
                                s->path, name, before, now);
        t->fit.new_validation |= setting.of_validation;
        t->new_batches |= setting.of_batches;
        wf_string_format(&t->fit.change, "%s %s %s instead of %s", t->fit.change.length ? "," : "resuming with", name, now, before);
    }
    return t->fit.change.failed ? wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a message") : WF_OK;
}

static wf_status same_data(const struct trainer *t, const struct state *s)
{
    int64_t seed = 0, train = 0, valid = 0;
    if (state_get_number(s->file, s->path, "seed", &seed, t->error) || state_get_number(s->file, s->path, "train_hash", &train, t->error) ||
        state_get_number(s->file, s->path, "valid_hash", &valid, t->error))
        return t->error->code;
    if ((uint64_t)seed != t->options->seed)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained with seed %" PRIu64 ", the resume asks for %" PRIu64, s->path,
                            (uint64_t)seed, t->options->seed);
    /* t->train is set only in a resume without --train, which reads the texts that the state names. The hash can differ for two reasons:
     * the text has changed; or the run validated on the last tenth of it, and the resume has a validation text of its own and so trains on
     * this tenth too. */
    if ((uint64_t)train != t->train_hash && t->train)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s %s", t->train[0],
                            t->options->valid_files > 0 && t->texts.valid_files == 0
                                ? "was trained on but for its last tenth, which was validated on: leave --valid out"
                                : "has changed since the run was trained on it: give the text of then with --train");
    const char *problem = (uint64_t)train != t->train_hash   ? "trained on another text: give the same --train files"
                          : valid != 0 && !t->validates      ? "validated on a text: give the same --valid files"
                          : valid == 0 && t->validates       ? "trained without validation: leave --valid out"
                          : (uint64_t)valid != t->valid_hash ? "validated on another text: give the same --valid files"
                                                             : NULL;
    return problem ? wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was %s", s->path, problem) : WF_OK;
}

wf_status zoo_get(struct fit *f, const wf_safetensors *file, const char *path)
{
    struct trainer *t = f->o.ctx;
    const struct state s = {.path = (char *)path, .file = (wf_safetensors *)file};
    return compare_config(t, &s) ? t->error->code : same_data(t, &s);
}
