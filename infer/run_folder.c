/* SPDX-License-Identifier: MIT */
/* What lies in a run's folder beside the weights: names, checkpoints, tokenizers. */
#include <weft/internal/run_folder.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "hugging_face.h"

char *wf_run_path(const char *folder, const char *name, wf_error *error)
{
    size_t length = strlen(folder);
    char *path = wf_format("%s%s%s", folder, length > 0 && folder[length - 1] == '/' ? "" : "/", name);
    if (!path)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a path in %s", folder);
    return path;
}

void wf_weights_describe(wf_safetensors_writer *w, const wf_tokenizer *tokenizer, const wf_tokenizer *source)
{
    char hash[32];
    wf_safetensors_put_metadata(w, "format", "pt"); /* what other readers of the format look for */
    snprintf(hash, sizeof hash, "%016" PRIx64, wf_tokenizer_hash(tokenizer));
    wf_safetensors_put_metadata(w, "tokenizer_content", hash);
    if (!source)
        return;
    snprintf(hash, sizeof hash, "%016" PRIx64, wf_tokenizer_hash(source));
    wf_safetensors_put_metadata(w, "source_tokenizer_content", hash);
}

/* The step of a checkpoint's name, step-00000100.safetensors; -1 for any other file, which is not ours to remove. */
static int64_t step_of(const char *name)
{
    long long step;
    char again[64];
    if (sscanf(name, "step-%lld.safetensors", &step) != 1)
        return -1;
    snprintf(again, sizeof again, "step-%08lld.safetensors", step);
    return strcmp(again, name) == 0 ? step : -1;
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
        qsort(*steps, (size_t)*count, sizeof **steps, ascending); /* by number: names of more than eight digits sort otherwise */
    wf_names_free(&names);
    wf_free(path);
    return status;
}

static wf_status no_mark(const char *name, const char *side, const char *mark, wf_error *error)
{
    return wf_error_set(error, WF_ERR_FORMAT,
                        "%s: the %s's tokenizer has no token for the %s, which translation needs: weft tokenizer train "
                        "makes one that has it",
                        name, side, mark);
}

wf_status wf_tokenizers_check(const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source, const char *name,
                              wf_error *error)
{
    struct wf_model_shape shape = wf_config_shape(config);
    static const char begin[] = "start of a sentence (<s>, <bos>, [CLS])", end[] = "end of a sentence (</s>, <eos>, [SEP])";
    if (wf_tokenizer_special(tokenizer, WF_SPECIAL_BOS) < 0)
        return no_mark(name, "target", begin, error);
    if (wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS) < 0)
        return no_mark(name, "target", end, error);
    if (shape.source_bos && wf_tokenizer_special(source, WF_SPECIAL_BOS) < 0)
        return no_mark(name, "source", begin, error);
    if (shape.source_eos && wf_tokenizer_special(source, WF_SPECIAL_EOS) < 0)
        return no_mark(name, "source", end, error);
    return WF_OK;
}

/* One name, or two where source and target do not share embeddings. */
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

wf_status wf_tokenizers_load(const char *folder, const struct wf_config *config, wf_tokenizer **tokenizer, wf_tokenizer **source,
                             wf_error *error)
{
    bool two = two_files(config);
    struct wf_model_shape shape = wf_config_shape(config);
    *tokenizer = *source = NULL;
    if (wf_config_read_only(config))
        return hf_tokenizer_load(folder, config, tokenizer, error);
    wf_status status = load_one(folder, two ? "tokenizer.target.json" : "tokenizer.json", shape.vocab_size, tokenizer, error);
    if (status == WF_OK && two)
        status = load_one(folder, "tokenizer.source.json", shape.source_vocab_size, source, error);
    else if (status == WF_OK && wf_config_kind(config) == WF_MODEL_PAIRS)
        *source = *tokenizer;
    return status == WF_OK && wf_config_kind(config) == WF_MODEL_PAIRS ? wf_tokenizers_check(config, *tokenizer, *source, folder, error)
                                                                       : status;
}
