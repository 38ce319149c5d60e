/* SPDX-License-Identifier: MIT */
/* Stores in the state and in config.json which files a run was trained on (absolute paths and sizes), so that a resume finds them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "trainer.h"

static const char key[] = "trained_on";

/* --- writing ------------------------------------------------------------------------------------------------------- */

static wf_status absolute(const char *path, struct wf_string *out, wf_error *error)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    wf_string_format(out, "%s%s%s", here ? here : "", here && strcmp(here, "/") != 0 ? "/" : "", path);
    free(here); /* memory of getcwd */
    return out->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a path") : WF_OK;
}

/* Adds `path` to the object as an absolute path. Leaves out a path that is NULL, or that is not UTF-8, because JSON cannot hold it. */
static wf_status set_path(json_t *object, const char *name, const char *path, wf_error *error)
{
    struct wf_string text = {0};
    wf_status status = path ? absolute(path, &text, error) : WF_OK;
    if (status == WF_OK && path && wf_utf8_check(text.data, text.length) < 0)
        status = wf_json_set_string(object, name, text.data, error);
    wf_string_free(&text);
    return status;
}

/* Makes [{"file": "/...", "bytes": 123}, ...]. If a path cannot be written in JSON, the array is empty, and a resume must be given its
 * texts. */
static json_t *array_of(const char *const *path, int64_t count, wf_error *error)
{
    json_t *array = json_array();
    for (int64_t i = 0; array && i < count && !error->code; i++) {
        struct stat info;
        json_t *file = json_object();
        if (!set_path(file, "file", path[i], error) && stat(path[i], &info) == 0)
            (void)!wf_json_set_int(file, "bytes", (int64_t)info.st_size, error);
        if (!error->code && json_object_size(file) == 2 && json_array_append(array, file) != 0)
            wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of texts");
        json_decref(file);
    }
    if (!error->code && (int64_t)json_array_size(array) < count)
        json_array_clear(array);
    return array;
}

static wf_status set_hash(json_t *object, const char *name, uint64_t hash, wf_error *error)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return hash ? wf_json_set_string(object, name, text, error) : WF_OK;
}

json_t *texts_json(const struct trainer *t, wf_error *error)
{
    const struct wf_train_options *o = t->options;
    const bool resumes = t->fit.resumes;
    wf_json_init();
    json_t *object = json_object();
    if (wf_json_set_new(object, "train", array_of(o->train, o->train_files, error), error) ||
        wf_json_set_new(object, "valid", array_of(o->valid, o->valid_files, error), error) ||
        set_hash(object, "train_hash", t->train_hash, error) || set_hash(object, "valid_hash", t->valid_hash, error) ||
        set_path(object, "from", resumes ? t->texts.from : o->from, error) ||
        set_path(object, "new_tokens", resumes ? t->texts.new_tokens : o->new_tokens, error) ||
        set_path(object, "tokenizer", resumes ? t->texts.tokenizer : o->tokenizer, error) ||
        set_path(object, "source_tokenizer", resumes ? t->texts.source_tokenizer : o->source_tokenizer, error) ||
        (o->seed <= INT64_MAX && wf_json_set_int(object, "seed", (int64_t)o->seed, error))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

void texts_put(struct trainer *t, wf_safetensors_writer *w)
{
    json_t *object = texts_json(t, t->error);
    char *text = object ? wf_json_text(object, 0, NULL, t->error) : NULL;
    if (text)
        wf_safetensors_put_metadata(w, key, text);
    wf_free(text);
    json_decref(object);
}

json_t *texts_of_state(const struct state *s, wf_error *error)
{
    const char *text = wf_safetensors_metadata(s->file, key);
    return text ? wf_json_parse(text, (int64_t)strlen(text), s->path, error) : NULL;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

static wf_status read_files(const json_t *object, const char *where, const char *name, struct wf_train_text **out, int64_t *count,
                            wf_error *error)
{
    json_t *array = NULL, *file;
    size_t i;
    if (wf_json_get_array(object, where, name, WF_JSON_OPTIONAL, &array, error))
        return error->code;
    if (!(*out = wf_alloc_zero(json_array_size(array) + 1, sizeof **out)))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of texts");
    json_array_foreach(array, i, file)
    {
        const char *path = NULL;
        struct wf_train_text *text = &(*out)[i];
        if (wf_json_get_string(file, where, "file", WF_JSON_REQUIRED, &path, error) ||
            wf_json_get_int(file, where, "bytes", WF_JSON_REQUIRED, 0, INT64_MAX, &text->bytes, error))
            return error->code;
        if (!(text->path = wf_strdup(path)))
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of texts");
        (*count)++;
    }
    return WF_OK;
}

static wf_status read_path(const json_t *object, const char *where, const char *name, char **out, wf_error *error)
{
    const char *text = NULL;
    if (wf_json_get_string(object, where, name, WF_JSON_OPTIONAL, &text, error))
        return error->code;
    return !text || (*out = wf_strdup(text)) ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of files");
}

static wf_status read_hash(const json_t *object, const char *where, const char *name, uint64_t *out, wf_error *error)
{
    const char *text = NULL;
    if (wf_json_get_string(object, where, name, WF_JSON_OPTIONAL, &text, error))
        return error->code;
    *out = text ? strtoull(text, NULL, 16) : 0;
    return WF_OK;
}

static wf_status read_texts(const json_t *object, const char *path, struct wf_train_texts *out, wf_error *error)
{
    int64_t seed = -1;
    char where[512];
    snprintf(where, sizeof where, "%s: %s", path, key);
    if (read_files(object, where, "train", &out->train, &out->train_files, error) ||
        read_files(object, where, "valid", &out->valid, &out->valid_files, error) ||
        read_hash(object, where, "train_hash", &out->train_hash, error) ||
        read_hash(object, where, "valid_hash", &out->valid_hash, error) || read_path(object, where, "from", &out->from, error) ||
        read_path(object, where, "new_tokens", &out->new_tokens, error) || read_path(object, where, "tokenizer", &out->tokenizer, error) ||
        read_path(object, where, "source_tokenizer", &out->source_tokenizer, error) ||
        wf_json_get_int(object, where, "seed", WF_JSON_OPTIONAL, 0, INT64_MAX, &seed, error))
        return error->code;
    out->has_seed = seed >= 0;
    out->seed = seed >= 0 ? (uint64_t)seed : 0;
    return WF_OK;
}

static wf_status read_config(const char *path, struct wf_train_texts *out, wf_error *error)
{
    enum { LIMIT = 1 << 20 };
    json_t *config = wf_json_load(path, LIMIT, error), *object = NULL;
    wf_status status = config ? WF_OK : error->code;
    if (status == WF_OK && json_is_object(config)) /* the function that reads the settings reports any other type */
        status = wf_json_get_object(config, path, key, WF_JSON_OPTIONAL, &object, error);
    if (status == WF_OK && object)
        status = read_texts(object, path, out, error);
    json_decref(config);
    return status;
}

static wf_status read_state(const char *folder, struct wf_train_texts *out, wf_error *error)
{
    struct state s;
    json_t *object = NULL;
    if (state_open(&s, folder, error) == WF_OK && (object = texts_of_state(&s, error)))
        read_texts(object, s.path, out, error);
    json_decref(object);
    state_close(&s);
    return error->code;
}

wf_status wf_train_texts_load(const char *path, struct wf_train_texts *out, wf_error *error)
{
    struct stat info;
    wf_error failure = {0};
    if (wf_needs(error, "path, out", path, out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_train_texts){0};
    const bool there = stat(path, &info) == 0;
    if (there && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) /* `path` is a pipe, from which the settings have been read already */
        return WF_OK;
    wf_status status = there && S_ISDIR(info.st_mode) ? read_state(path, out, &failure) : read_config(path, out, &failure);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}

static void free_files(struct wf_train_text *file, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        wf_free(file[i].path);
    wf_free(file);
}

void wf_train_texts_free(struct wf_train_texts *texts)
{
    if (!texts)
        return;
    free_files(texts->train, texts->train_files);
    free_files(texts->valid, texts->valid_files);
    wf_free(texts->from);
    wf_free(texts->new_tokens);
    wf_free(texts->tokenizer);
    wf_free(texts->source_tokenizer);
    *texts = (struct wf_train_texts){0};
}

static wf_status check_files(const struct wf_train_text *file, int64_t count, const char *of, const char *option, wf_error *error)
{
    struct stat info;
    char then[WF_NUMBER_SIZE], now[WF_NUMBER_SIZE];
    for (int64_t i = 0; i < count; i++)
        if (stat(file[i].path, &info) != 0)
            return wf_error_set(error, WF_ERR_IO, "%s, which %s was trained on, is gone: give its new place with %s", file[i].path, of,
                                option);
        else if (!S_ISREG(info.st_mode))
            return wf_error_set(error, WF_ERR_IO, "%s, which %s was trained on, is no file any more: give its new place with %s",
                                file[i].path, of, option);
        else if ((int64_t)info.st_size != file[i].bytes)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "%s has changed since %s was trained on it: %s bytes then, %s now; give the text of then with %s",
                                file[i].path, of, wf_text_count(file[i].bytes, then), wf_text_count(info.st_size, now), option);
    return WF_OK;
}

wf_status wf_train_texts_check(const struct wf_train_texts *texts, const char *of, bool train, bool valid, wf_error *error)
{
    if (wf_needs(error, "texts, of", texts, of))
        return WF_ERR_ARGUMENT;
    const wf_status status = train ? check_files(texts->train, texts->train_files, of, "--train", error) : WF_OK;
    return status == WF_OK && valid ? check_files(texts->valid, texts->valid_files, of, "--valid", error) : status;
}

/* --- a resume without texts ---------------------------------------------------------------------------------------- */

static wf_status names_of(const struct wf_train_text *file, int64_t count, const char ***out, wf_error *error)
{
    *out = wf_alloc_zero((size_t)count + 1, sizeof **out);
    for (int64_t i = 0; *out && i < count; i++)
        (*out)[i] = file[i].path;
    return *out ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for the names of texts");
}

wf_status texts_recall(struct trainer *t)
{
    struct wf_train_options *o = &t->own;
    const bool train = o->train_files == 0, valid = o->valid_files == 0;
    if (!o->resume || !o->out || !o->out[0] || !wf_run_has(o->out, STATE_FILE))
        return WF_OK;
    if (wf_train_texts_load(o->out, &t->texts, t->error))
        return t->error->code;
    if (train && t->texts.train_files == 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s does not say what it was trained on, as runs of older versions: give --train",
                            o->out);
    if (wf_train_texts_check(&t->texts, o->out, train, valid, t->error) ||
        (train && names_of(t->texts.train, t->texts.train_files, &t->train, t->error)) ||
        (valid && names_of(t->texts.valid, t->texts.valid_files, &t->valid, t->error)))
        return t->error->code;
    if (train) {
        o->train = t->train;
        o->train_files = t->texts.train_files;
    }
    if (valid) {
        o->valid = t->valid;
        o->valid_files = t->texts.valid_files;
    }
    return WF_OK;
}

wf_status texts_tell(struct trainer *t)
{
    const struct wf_train_texts *was = t->options->repeats;
    if (!was || t->fit.resumes ||
        ((!was->train_hash || was->train_hash == t->train_hash) && (!was->valid_hash || was->valid_hash == t->valid_hash)))
        return WF_OK;
    return report(&t->fit, WF_EVENT_WARNING,
                  "the texts, as the tokenizer reads them, are not those of the run that is repeated: the weights will be others");
}
