/* SPDX-License-Identifier: MIT */
/* Converts a model between a run folder and a folder of Hugging Face. */
#include <weft/convert.h>
#include <weft/internal/needs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/files.h>
#include <weft/internal/json.h>
#include <weft/memory.h>

#include <weft/internal/run_folder.h>

#include "convert_tensors.h"

enum { LIMIT = 1 << 20 /* maximum bytes of a config.json */ };
#define HF_SHARD INT64_C(5000000000)

struct conversion {
    const char *from;
    struct wf_run run;
    wf_safetensors *file;
    json_t *config;       /* config.json of `from` */
    bool foreign;         /* config.json is of the other library */
    bool foreign_names;   /* the names of the tensors are */
    bool to_hf;           /* the new folder is of the other library */
    struct wf_config new; /* configuration of the new model */
    json_t *new_config;   /* config.json of a folder of the other library */
    wf_model *model;      /* the new model, declared only */
    struct tensors tensors;
    struct wf_converted result;
};

/* --- what is converted --------------------------------------------------------------------------------------------- */

static wf_status load_config(struct conversion *c, wf_error *error)
{
    char *path = wf_run_path(c->from, "config.json", error);
    c->config = path ? wf_json_load(path, LIMIT, error) : NULL;
    wf_free(path);
    c->foreign = c->config && !json_object_get(c->config, "weft_version");
    return c->config ? WF_OK : error->code;
}

/* Finds the tensors of the file. A folder of an encoder may have the output layer, which its config.json does not say: a run keeps it. */
static wf_status find_tensors(struct conversion *c, wf_error *error)
{
    wf_error unlike = {0};
    struct wf_config with_head = c->run.config;
    if (!c->foreign_names || c->to_hf || !wf_config_set_head(&with_head))
        return tensors_from(&c->tensors, c->run.model, error);
    wf_model *model = wf_model_new(&with_head, error);
    if (!model)
        return error->code;
    if (tensors_from(&c->tensors, model, &unlike) == WF_OK) {
        c->new = with_head;
        wf_model_free(model);
        return WF_OK;
    }
    wf_model_free(model);
    return c->tensors.sources > 0 ? wf_error_set(error, unlike.code, "%s", unlike.message) : tensors_from(&c->tensors, c->run.model, error);
}

/* Whether the new folder has the tensors of the old file, under the same names. */
static bool stays(const struct conversion *c)
{
    return c->to_hf ? c->foreign && c->foreign_names : !c->foreign_names;
}

static wf_status plan(struct conversion *c, wf_error *error)
{
    c->new = c->run.config;
    if (c->foreign && !c->new.family->counterpart)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: folders of the family %s are read, and not converted", c->from,
                            wf_config_family(&c->new));
    c->foreign_names = wf_model_is_foreign(c->run.model, c->file);
    if (c->to_hf && !stays(c)) { /* a model without a counterpart is refused before anything is read */
        wf_json_init();
        c->new_config = json_object();
        if (wf_config_counterpart(&c->new, c->new_config, error) != WF_OK)
            return error->code;
    }
    if (find_tensors(c, error) != WF_OK)
        return error->code;
    if (stays(c))
        return tensors_as_they_are(&c->tensors, error);
    c->model = wf_model_new(&c->new, error);
    return c->model ? tensors_to(&c->tensors, c->model, c->to_hf, error) : error->code;
}

/* --- files --------------------------------------------------------------------------------------------------------- */

static const char *torch_name(wf_dtype dtype)
{
    return dtype == WF_F16 ? "float16" : dtype == WF_BF16 ? "bfloat16" : dtype == WF_F64 ? "float64" : "float32";
}

static wf_status save_hf_config(const struct conversion *c, const char *folder, const char *path, wf_error *error)
{
    static const char *const keys[] = {"dtype", "torch_dtype"}; /* of transformers 5 and 4 */
    json_t *config = c->new_config ? json_incref(c->new_config) : json_deep_copy(c->config);
    wf_status status = config ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a configuration", path);
    if (status == WF_OK && c->new_config)
        status = hf_put_ids(config, folder, &c->run, error);
    for (int i = 0; i < 2; i++)
        if (status == WF_OK && (c->new_config || (c->tensors.options->cast && (i == 0 || json_object_get(config, keys[i])))))
            status = wf_json_set_string(config, keys[i], torch_name(c->result.dtype), error);
    if (status == WF_OK)
        status = wf_json_save(path, config, 2, error);
    json_decref(config);
    return status;
}

/* The config.json of a run is copied, because it also names the texts of the training. */
static wf_status save_config(const struct conversion *c, const char *folder, wf_error *error)
{
    char *path = wf_run_path(folder, "config.json", error);
    wf_status status = !path        ? WF_ERR_MEMORY
                       : c->to_hf   ? save_hf_config(c, folder, path, error)
                       : c->foreign ? wf_config_save(&c->new, path, error)
                                    : hf_copy(c->from, folder, "config.json", error);
    wf_free(path);
    return status;
}

static wf_status save_tokenizers(const struct conversion *c, const char *folder, wf_error *error)
{
    static const char *const ours[] = {"tokenizer.json", "tokenizer.source.json", "tokenizer.target.json"};
    static const char *const theirs[] = {"vocab.txt", "vocab.json", "merges.txt", "tokenizer.model"};
    bool any = false;
    wf_status status = WF_OK;
    for (size_t i = 0; status == WF_OK && i < sizeof ours / sizeof *ours; i++) {
        any |= wf_run_has(c->from, ours[i]);
        status = hf_copy(c->from, folder, ours[i], error);
    }
    for (size_t i = 0; status == WF_OK && c->to_hf && i < sizeof theirs / sizeof *theirs; i++) {
        any |= wf_run_has(c->from, theirs[i]);
        status = hf_copy(c->from, folder, theirs[i], error);
    }
    if (status == WF_OK && c->new_config && !wf_run_has(c->from, "tokenizer_config.json"))
        status = hf_prompt_tokenizer(folder, &c->run, error);
    if (status == WF_OK && !any) /* made from vocab.txt */
        status = wf_tokenizers_save(folder, &c->run.config, c->run.tokenizer, c->run.source_tokenizer, error);
    return status;
}

static void describe(void *ctx, wf_safetensors_writer *w)
{
    const struct conversion *c = ctx;
    if (c->to_hf)
        wf_safetensors_put_metadata(w, "format", "pt");
    else
        wf_weights_describe(w, c->run.tokenizer, c->run.source_tokenizer);
}

static wf_status read_tensor(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error)
{
    return tensors_read(&((struct conversion *)ctx)->tensors, key, at, count, out, error);
}

static wf_status save_all(struct conversion *c, const char *folder, wf_error *error)
{
    const int64_t shard = c->tensors.options->shard;
    const struct wf_safetensors_set set = {.tensor = c->tensors.tensor,
                                           .count = c->tensors.count,
                                           .read = read_tensor,
                                           .ctx = c,
                                           .describe = describe,
                                           .shard = shard > 0  ? shard
                                                    : c->to_hf ? HF_SHARD
                                                               : 0};
    struct wf_set_size size;
    const bool known = c->run.config.family->model_type != NULL;
    wf_status status = known ? hf_keep(c->from, folder, error) : WF_OK;
    if (status == WF_OK && c->new_config)
        status = hf_settings_save(folder, &c->run, error);
    if (status == WF_OK)
        status = save_config(c, folder, error);
    if (status == WF_OK)
        status = save_tokenizers(c, folder, error);
    if (status == WF_OK && known && c->run.embed.max_length > 0)
        status = hf_embed_save(folder, &c->run.embed, error);
    if (status == WF_OK)
        status = wf_safetensors_save_set(folder, &set, &size, error);
    if (status == WF_OK) {
        c->result.files = size.files;
        c->result.bytes = size.bytes;
    }
    return status;
}

/* --- the new folder ------------------------------------------------------------------------------------------------ */

/* The names of a conversion's folders: `to` without slashes at its end and links, and names beside it. */
struct place {
    char *to, *parent, *part, *lock;
};

static void place_free(struct place *p)
{
    wf_free(p->to);
    wf_free(p->parent);
    wf_free(p->part);
    wf_free(p->lock);
}

static wf_status place_find(struct place *p, const char *to, wf_error *error)
{
    char *whole = realpath(to, NULL); /* NULL: `to` is missing */
    p->to = wf_strdup(whole ? whole : to);
    free(whole);
    for (size_t n = p->to ? strlen(p->to) : 0; n > 1 && p->to[n - 1] == '/'; n--)
        p->to[n - 1] = 0;
    const char *slash = p->to ? strrchr(p->to, '/') : NULL, *name = slash ? slash + 1 : p->to;
    p->parent = !p->to ? NULL : !slash ? wf_strdup(".") : wf_format("%.*s", slash > p->to ? (int)(slash - p->to) : 1, p->to);
    p->part = p->parent ? wf_format("%s/.%s.weft-part", p->parent, name) : NULL;
    p->lock = p->part ? wf_format("%s/.%s.weft-lock", p->parent, name) : NULL;
    if (!p->lock)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a path beside %s", to);
    if (!*name)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the name of the new folder is empty");
    if (wf_file_exists(p->to) || (wf_folder_exists(p->to) && !wf_folder_empty(p->to)))
        return wf_error_set(error, WF_ERR_EXISTS, "%s exists%s: choose another folder", to,
                            wf_file_exists(p->to) ? "" : " and is not empty");
    return WF_OK;
}

/* Writes everything into a folder beside `to`, and gives it the name at the end. The lock keeps others away from that folder; without a
 * holder the folder is of a conversion that was killed. */
static wf_status save(struct conversion *c, const struct place *p, wf_error *error)
{
    wf_status status = wf_folder_make(p->parent, error);
    wf_lock *lock = status == WF_OK ? wf_lock_take(p->lock, error) : NULL;
    if (!lock)
        return error->code;
    status = wf_folder_remove(p->part, error);
    if (status == WF_OK)
        status = wf_folder_make(p->part, error);
    if (status == WF_OK)
        status = save_all(c, p->part, error);
    if (status == WF_OK)
        status = wf_folder_rename(p->part, p->to, error);
    if (status != WF_OK)
        (void)!wf_folder_remove(p->part, NULL); /* the first failure is reported */
    wf_lock_release(lock);
    return status;
}

static void describe_result(struct conversion *c)
{
    int64_t bytes[WF_DTYPE_COUNT] = {0};
    struct wf_converted *r = &c->result;
    r->to = c->to_hf ? WF_CONVERT_HF : WF_CONVERT_WEFT;
    r->tensors = c->tensors.count;
    r->left_out = wf_safetensors_count(c->file) - c->tensors.used;
    for (int64_t i = 0; i < c->tensors.count; i++) {
        const wf_array *a = &c->tensors.tensor[i].array;
        bytes[a->dtype] += wf_array_count(a) * (int64_t)wf_dtype_size(a->dtype);
        r->several_dtypes |= a->dtype != c->tensors.tensor[0].array.dtype;
    }
    for (int i = 0; i < WF_DTYPE_COUNT; i++)
        if (bytes[i] > bytes[r->dtype])
            r->dtype = (wf_dtype)i;
}

static wf_status check_options(const struct wf_convert_options *o, wf_error *error)
{
    if ((unsigned)o->to > WF_CONVERT_WEFT)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_run_convert: .to is %d, none of enum wf_convert_to", (int)o->to);
    if (o->shard < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_run_convert: .shard is %lld bytes: give at least 0", (long long)o->shard);
    if (o->cast && o->dtype != WF_F32 && o->dtype != WF_BF16 && o->dtype != WF_F16)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_run_convert: .dtype is none of WF_F32, WF_BF16 and WF_F16");
    return WF_OK;
}

wf_status wf_run_convert(const char *from, const char *to, const struct wf_convert_options *options, struct wf_converted *converted,
                         wf_error *error)
{
    static const struct wf_convert_options none = {0};
    if (wf_needs(error, "from, to", from, to))
        return WF_ERR_ARGUMENT;
    options = options ? options : &none;
    wf_error failure = {0};
    struct conversion c = {.from = from, .tensors.options = options};
    struct place p = {0};
    if (check_options(options, &failure) == WF_OK && place_find(&p, to, &failure) == WF_OK &&
        wf_run_open_files(&c.run, from, options->weights, false, &c.file, &failure) == WF_OK && load_config(&c, &failure) == WF_OK) {
        c.tensors.file = c.file;
        c.to_hf = options->to == WF_CONVERT_OTHER ? !c.foreign : options->to == WF_CONVERT_HF;
        if (plan(&c, &failure) == WF_OK) {
            describe_result(&c);
            (void)!save(&c, &p, &failure);
        }
    }
    if (!failure.code && converted)
        *converted = c.result;
    tensors_free(&c.tensors);
    wf_model_free(c.model);
    json_decref(c.config);
    json_decref(c.new_config);
    wf_safetensors_close(c.file);
    wf_run_close(&c.run);
    place_free(&p);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : WF_OK;
}
