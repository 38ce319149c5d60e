/* SPDX-License-Identifier: MIT */
/* The names and metadata of a run's files, and opening a run to use its model. */
#include <weft/internal/needs.h>
#include <weft/run.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/files.h>
#include <weft/internal/run_folder.h>
#include <weft/internal/runtime.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

char *wf_run_path(const char *folder, const char *name, wf_error *error)
{
    size_t length = strlen(folder);
    char *path = wf_format("%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    if (!path)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a path in %s", folder);
    return path;
}

bool wf_run_has(const char *folder, const char *name)
{
    char *path = wf_run_path(folder, name, NULL);
    bool there = path && wf_file_exists(path);
    wf_free(path);
    return there;
}

wf_status wf_run_check(const char *folder, wf_error *error)
{
    static const char *const names[] = {"model.safetensors", "state.safetensors"};
    wf_status status = WF_OK;
    for (int i = 0; i < 2 && status == WF_OK && !wf_run_has(folder, "config.json"); i++) {
        char *path = wf_run_path(folder, names[i], NULL), quoted[WF_QUOTE_SIZE];
        wf_safetensors *file = path && wf_file_exists(path) ? wf_safetensors_open(path, NULL) : NULL;
        const char *task = file ? wf_safetensors_metadata(file, "task") : NULL;
        if (task)
            status = wf_error_set(error, WF_ERR_FORMAT,
                                  "%s was written by a program with wf_fit, as its training %s, and has no config.json: use that program",
                                  folder, wf_text_quote(task, quoted));
        wf_safetensors_close(file);
        wf_free(path);
    }
    return status;
}

/* Files of weights store the hash of their tokenizer, so that another tokenizer with the same vocabulary size is detected. */
const char *wf_tokenizer_content(const wf_tokenizer *tokenizer, char text[32])
{
    snprintf(text, 32, "%016" PRIx64, wf_tokenizer_hash(tokenizer));
    return text;
}

void wf_weights_describe(wf_safetensors_writer *w, const wf_tokenizer *tokenizer, const wf_tokenizer *source)
{
    char hash[32];
    wf_safetensors_put_metadata(w, "format", "pt"); /* other programs that read safetensors expect this entry */
    wf_safetensors_put_metadata(w, "tokenizer_content", wf_tokenizer_content(tokenizer, hash));
    if (source)
        wf_safetensors_put_metadata(w, "source_tokenizer_content", wf_tokenizer_content(source, hash));
}

char *wf_checkpoint_name(int64_t step, char name[WF_CHECKPOINT_NAME])
{
    snprintf(name, WF_CHECKPOINT_NAME, "checkpoints/step-%08" PRId64 ".safetensors", step);
    return name;
}

/* Returns the step in the file name of a checkpoint. Returns -1 for any other file, so that it is never removed as a checkpoint. */
static int64_t step_of(const char *name)
{
    long long step;
    char again[WF_CHECKPOINT_NAME];
    if (sscanf(name, "step-%lld.safetensors", &step) != 1)
        return -1;
    return strcmp(strchr(wf_checkpoint_name(step, again), '/') + 1, name) == 0 ? step : -1;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

wf_status wf_checkpoint_steps(const char *folder, int64_t **steps, int64_t *count, wf_error *error)
{
    struct wf_names names = {0};
    *steps = NULL;
    *count = 0;
    char *path = wf_run_path(folder, "checkpoints", error);
    wf_status status = !path ? WF_ERR_MEMORY : wf_folder_exists(path) ? wf_folder_list(path, "step-", &names, error) : WF_OK;
    if (status == WF_OK && !(*steps = wf_alloc((size_t)(names.count + 1) * sizeof **steps)))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a list of checkpoints");
    for (int64_t i = 0; status == WF_OK && i < names.count; i++) {
        int64_t step = step_of(names.name[i]);
        if (step >= 0)
            (*steps)[(*count)++] = step;
    }
    if (status == WF_OK)
        qsort(*steps, (size_t)*count, sizeof **steps, ascending); /* by name "step-100000000" would come before "step-99999999" */
    wf_names_free(&names);
    wf_free(path);
    return status;
}

wf_status wf_tokenizers_check(const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source, const char *name,
                              wf_error *error)
{
    struct wf_model_shape shape = wf_config_shape(config);
    const struct {
        bool needed;
        const char *side;
        const wf_tokenizer *tokenizer;
        enum wf_special special;
        const char *what;
    } need[] = {{true, "target", tokenizer, WF_SPECIAL_BOS, "start of a sentence (<s>, <bos>, [CLS])"},
                {true, "target", tokenizer, WF_SPECIAL_EOS, "end of a sentence (</s>, <eos>, [SEP])"},
                {shape.source_bos, "source", source, WF_SPECIAL_BOS, "start of a sentence (<s>, <bos>, [CLS])"},
                {shape.source_eos, "source", source, WF_SPECIAL_EOS, "end of a sentence (</s>, <eos>, [SEP])"}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].needed && wf_tokenizer_special(need[i].tokenizer, need[i].special) < 0)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s: the %s's tokenizer has no token for the %s, which translation requires: the command "
                                "`tokenizer train` makes one with it",
                                name, need[i].side, need[i].what);
    return WF_OK;
}

/* True for a translation model with separate tokenizers for source and target, which do not share embeddings. */
static bool two_files(const struct wf_config *config)
{
    return wf_config_kind(config) == WF_MODEL_PAIRS && !wf_config_shape(config).shared_tokenizer;
}

static wf_status save_one(const char *folder, const char *name, const wf_tokenizer *tokenizer, wf_error *error)
{
    char *path = wf_run_path(folder, name, error);
    wf_status status = path ? wf_tokenizer_save(tokenizer, path, error) : WF_ERR_MEMORY;
    wf_free(path);
    return status;
}

wf_status wf_tokenizers_save(const char *folder, const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source,
                             wf_error *error)
{
    if (!two_files(config))
        return save_one(folder, "tokenizer.json", tokenizer, error);
    wf_status status = save_one(folder, "tokenizer.source.json", source, error);
    return status == WF_OK ? save_one(folder, "tokenizer.target.json", tokenizer, error) : status;
}

static wf_status load_one(const char *folder, const char *name, int64_t types, wf_tokenizer **out, wf_error *error)
{
    char *path = wf_run_path(folder, name, error);
    wf_status status = path ? wf_tokenizer_load(path, out, error) : WF_ERR_MEMORY;
    if (status == WF_OK && wf_tokenizer_vocab_size(*out) != types)
        status = wf_error_set(error, WF_ERR_FORMAT, "vocabulary size mismatch: %s has %lld tokens, the model in %s %lld", path,
                              (long long)wf_tokenizer_vocab_size(*out), folder, (long long)types);
    wf_free(path);
    return status;
}

/* Loads the tokenizers. Language models and encoders have no source tokenizer. In a translation model source and target may share a
 * tokenizer. */
static wf_status load_tokenizers(struct wf_run *run, const char *folder, wf_error *error)
{
    const struct wf_config *c = &run->config;
    bool two = two_files(c), pairs = wf_config_kind(c) == WF_MODEL_PAIRS;
    struct wf_model_shape shape = wf_config_shape(c);
    if (c->family->model_type)
        return hf_tokenizer_load(folder, c, &run->tokenizer, error);
    if (load_one(folder, two ? "tokenizer.target.json" : "tokenizer.json", shape.vocab_size, &run->tokenizer, error) ||
        (two && load_one(folder, "tokenizer.source.json", shape.source_vocab_size, &run->source_tokenizer, error)))
        return error->code;
    if (pairs && !two)
        run->source_tokenizer = run->tokenizer;
    return pairs ? wf_tokenizers_check(c, run->tokenizer, run->source_tokenizer, folder, error) : WF_OK;
}

/* --- opening ------------------------------------------------------------------------------------------------------- */

/* Checks that the weights in `file` were trained with this tokenizer. `side` is "", "source " or "target ". If `named` is set, the user
 * has named the file, which may be of another run. */
static wf_status same_tokenizer(const wf_safetensors *file, const char *path, const char *key, const wf_tokenizer *tokenizer,
                                const char *side, bool named, wf_error *error)
{
    const char *was = wf_safetensors_metadata(file, key);
    char now[32];
    if (!was || !tokenizer || strcmp(was, wf_tokenizer_content(tokenizer, now)) == 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_FORMAT, "%s was trained with another tokenizer than the run's %stokenizer: %s", path, side,
                        named ? "give weights of this run, or restore that tokenizer" : "restore that tokenizer");
}

/* Opens a file, mapped if `map` is set and there is address space for it. */
static wf_safetensors *open_mapped(const char *path, bool map, wf_error *error)
{
    wf_safetensors *file = map ? wf_safetensors_open(path, NULL, .map = true) : NULL;
    return file ? file : wf_safetensors_open(path, error);
}

/* Opens the file of weights, and checks that it belongs to the run's tokenizers. */
static wf_safetensors *open_weights(const struct wf_run *run, const char *folder, const char *weights, bool map, wf_error *error)
{
    const bool best = weights && strcmp(weights, "best") == 0, mean = weights && strcmp(weights, "ema") == 0;
    const bool named = weights && !best && !mean, two = two_files(&run->config);
    const char *own = best ? "best.safetensors" : "ema.safetensors";
    char *path = named ? wf_strdup(weights) : weights ? wf_run_path(folder, own, error) : hf_weights_path(folder, error);
    if (!path) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
        return NULL;
    }
    wf_safetensors *file = NULL;
    if (named && wf_folder_exists(path))
        wf_error_set(error, WF_ERR_IO, "%s is a folder: give a safetensors file, such as %s/model.safetensors", path, path);
    else if (!weights && !wf_file_exists(path))
        (void)hf_weights_missing(folder, path, error);
    else if (!wf_file_exists(path))
        wf_error_set(error, WF_ERR_IO, "%s is missing: %s", path,
                     named  ? "give a safetensors file"
                     : best ? "the run has not been validated, or not yet"
                            : "the run was trained without ema=..., or has not been saved yet");
    else if ((file = open_mapped(path, map, error)) &&
             (same_tokenizer(file, path, "tokenizer_content", run->tokenizer, two ? "target " : "", named, error) != WF_OK ||
              same_tokenizer(file, path, "source_tokenizer_content", run->source_tokenizer, two ? "source " : "", named, error) != WF_OK)) {
        wf_safetensors_close(file);
        file = NULL;
    }
    wf_free(path);
    return file;
}

wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error)
{
    if (run)
        *run = (struct wf_run){0};
    if (wf_needs(error, "run, folder", run, folder))
        return WF_ERR_ARGUMENT;
    return wf_run_open_with(run, folder, &(struct wf_run_options){.weights = weights}, error);
}

static wf_status open_files(struct wf_run *run, const char *folder, const char *weights, bool map, wf_safetensors **file, wf_error *error)
{
    const char *foreign = wf_file_foreign(folder);
    if (foreign)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", folder, foreign);
    if (!wf_folder_exists(folder))
        return wf_error_set(error, WF_ERR_IO, "%s is not a run folder: give the --out of a training, or a Hugging Face folder", folder);
    char *config = wf_run_path(folder, "config.json", error);
    if (config && !wf_run_check(folder, error) && !wf_config_load(&run->config, config, error) && !load_tokenizers(run, folder, error) &&
        !hf_embed_options(folder, &run->config, &run->embed, error) && !hf_generation_load(folder, run, error) &&
        (run->model = wf_model_new(&run->config, error)))
        *file = open_weights(run, folder, weights, map, error);
    wf_free(config);
    return error->code;
}

wf_status wf_run_open_files(struct wf_run *run, const char *folder, const char *weights, bool map, wf_safetensors **file, wf_error *error)
{
    wf_error failure = {0}; /* `error` may be NULL or hold an older error */
    *run = (struct wf_run){0};
    *file = NULL;
    if (open_files(run, folder, weights, map, file, &failure) == WF_OK)
        return WF_OK;
    wf_run_close(run);
    return wf_error_set(error, failure.code, "%s", failure.message);
}

static bool is_large(const wf_safetensors *file)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++)
        bytes += wf_safetensors_at(file, i)->bytes;
    return bytes > wf_memory_free("") / 4;
}

wf_status wf_run_open_with(struct wf_run *run, const char *folder, const struct wf_run_options *options, wf_error *error)
{
    options = options ? options : &(struct wf_run_options){0};
    if (wf_needs(error, "run", run))
        return WF_ERR_ARGUMENT;
    *run = (struct wf_run){0};
    if (wf_needs(error, "folder", folder))
        return WF_ERR_ARGUMENT;
    if ((unsigned)options->map > WF_RUN_MAP)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_run_open_with: .map is unknown: give WF_RUN_READ, WF_RUN_MAP_LARGE or WF_RUN_MAP");
    wf_safetensors *file;
    wf_error failure = {0};
    const wf_status opened = wf_run_open_files(run, folder, options->weights, options->map != WF_RUN_READ, &file, error);
    if (opened != WF_OK)
        return opened;
    const bool map = options->map == WF_RUN_MAP || (options->map == WF_RUN_MAP_LARGE && is_large(file));
    if (wf_model_load_with(run->model, file, &(struct wf_load_options){.stored = options->stored, .map = map}, &failure) != WF_OK) {
        wf_error_set(error, failure.code, "%s: %s", wf_safetensors_path(file), failure.message);
        wf_run_close(run);
    }
    wf_safetensors_close(file);
    return failure.code;
}

void wf_run_close(struct wf_run *run)
{
    if (!run)
        return;
    wf_model_free(run->model);
    if (run->source_tokenizer != run->tokenizer)
        wf_tokenizer_free(run->source_tokenizer);
    wf_tokenizer_free(run->tokenizer);
    *run = (struct wf_run){0};
}

wf_status wf_run_bitext(const struct wf_run *run, const char *source, const char *target, const char *cache, wf_bitext **out,
                        wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "run, source, target", run, source, target))
        return WF_ERR_ARGUMENT;
    if (wf_config_kind(&run->config) != WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s does not translate: it takes a text, not pairs of sentences", run->config.model);
    struct wf_model_shape shape = wf_config_shape(&run->config);
    struct wf_bitext_options o = {.source = run->source_tokenizer,
                                  .target = run->tokenizer,
                                  .source_bos = shape.source_bos,
                                  .source_eos = shape.source_eos,
                                  .max_length = shape.context,
                                  .cache = cache};
    return wf_bitext_open(source, target, &o, out, error);
}
