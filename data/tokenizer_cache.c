/* SPDX-License-Identifier: MIT */
/* Keeps trained tokenizers on the disk, so that a second training on the same texts only loads the result. A file has a head and the
 * tokenizer as JSON. */
#include <string.h>

#include <weft/corpus.h>
#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "sources.h"

struct head {
    char magic[8];  /* "wefttok" and a version, which changes with this format and with the training algorithms */
    uint64_t key;   /* hash of everything that the tokenizer depends on */
    uint64_t check; /* hash of the JSON and the key */
    int64_t bytes;  /* length of the JSON */
};
enum { LIMIT = 1 << 28 }; /* maximum bytes of a cached file */

/* --- the key --- */

static uint64_t key_of_options(const struct wf_tokenizer_options *o)
{
    const int64_t numbers[] = {(int64_t)o->kind, o->vocab_size, o->min_frequency, o->specials ? o->special_count : -1,
                               o->other_pre_tokenizer ? (int64_t)o->pre_tokenizer : -1};
    uint64_t key = wf_hash(numbers, sizeof numbers, cache_encoder());
    for (int64_t i = 0; o->specials && i < o->special_count; i++)
        key = wf_hash(o->specials[i], (int64_t)strlen(o->specials[i]) + 1, key);
    return key;
}

static bool scanning(void *ctx, int64_t done, int64_t total)
{
    const struct wf_tokenizer_options *o = ctx;
    return !o->progress || o->progress(o->ctx, &(struct wf_tokenizer_progress){"reading", done, total});
}

/* Adds the content of the texts to *key. Returns false if a text cannot be read, or is a pipe, which can be read only once: then the
 * tokenizer is trained without the cache, and the training reports a text that cannot be read. Sets *error only for a cancellation or a
 * lack of memory, after which nothing is trained. */
static bool add_texts(struct sources *s, const char *const *paths, int64_t count, const struct wf_tokenizer_options *o, wf_scans *scans,
                      uint64_t *key, wf_error *error)
{
    wf_error failure = {0};
    wf_status status = sources_open(s, paths, count, false, &failure);
    struct text_progress progress = {scanning, (void *)(uintptr_t)o, 0, s->bytes, "the training of the tokenizer"};
    if (status == WF_OK)
        status = sources_scan(s, scans, &progress, &failure);
    if (status == WF_ERR_CANCELLED || status == WF_ERR_MEMORY)
        wf_error_set(error, status, "%s", failure.message);
    for (int64_t i = 0; i < count && status == WF_OK; i++)
        *key = wf_hash((uint64_t[]){s->scan[i].content, (uint64_t)s->file[i].bytes}, 2 * sizeof(uint64_t), *key);
    return status == WF_OK;
}

/* --- the file --- */

static uint64_t check_of(const struct head *head, const char *json)
{
    return wf_hash(json, head->bytes, head->key);
}

static wf_tokenizer *find(const char *path, uint64_t key)
{
    int64_t bytes = 0;
    wf_tokenizer *found = NULL;
    char *data = cache_there(path) ? wf_file_load(path, LIMIT, &bytes, NULL) : NULL;
    struct head head;
    if (data && bytes > (int64_t)sizeof head) {
        memcpy(&head, data, sizeof head);
        const char *json = data + sizeof head;
        if (!memcmp(head.magic, "wefttok\2", 8) && head.key == key && head.bytes == bytes - (int64_t)sizeof head &&
            head.check == check_of(&head, json) && wf_tokenizer_parse(json, head.bytes, path, &found, NULL) == WF_OK)
            cache_touch(path);
    }
    wf_free(data);
    return found;
}

/* Writes the tokenizer to the cache. Errors are ignored, because without the file the tokenizer is only trained again. */
static void keep(const char *folder, const char *path, uint64_t key, const wf_tokenizer *tokenizer)
{
    struct wf_string json = {0};
    struct head head = {.magic = "wefttok\2", .key = key};
    if (wf_tokenizer_json(tokenizer, &json, NULL) == WF_OK) {
        head.bytes = json.length;
        head.check = check_of(&head, json.data);
        if (json.length < LIMIT - (int64_t)sizeof head && cache_make_room(folder, json.length + (int64_t)sizeof head)) {
            wf_file_writer *writer = wf_file_begin(path, NULL);
            wf_file_append(writer, &head, sizeof head);
            wf_file_append(writer, json.data, json.length);
            (void)!wf_file_commit(writer, NULL);
        }
    }
    wf_string_free(&json);
}

wf_status wf_tokenizer_train_cached(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options, const char *folder,
                                    wf_scans *scans, wf_tokenizer **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "paths", wf_some(paths, count)))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_tokenizer_options){0};
    wf_error failure = {0};
    /* A character tokenizer is not cached: collecting its characters takes as long as hashing the text. */
    if (!folder || count < 1 || options->kind == WF_TOKENIZER_CHAR)
        return wf_tokenizer_train_files_with(paths, count, options, out, error);
    struct sources s;
    uint64_t key = key_of_options(options);
    bool known = add_texts(&s, paths, count, options, scans, &key, &failure);
    char *path = known ? cache_path(folder, CACHE_TOKENIZER, key, &failure) : NULL;
    if (path)
        *out = find(path, key);
    if (failure.code == WF_OK && !*out && wf_tokenizer_train_files_with(paths, count, options, out, &failure) == WF_OK && path) {
        for (int64_t i = 0; i < count && known; i++)
            known = text_file_verify(s.file + i, s.scan[i].content, NULL) == WF_OK;
        if (known)
            keep(folder, path, key, *out);
    }
    sources_close(&s);
    wf_free(path);
    return failure.code == WF_OK ? WF_OK : wf_error_set(error, failure.code, "%s", failure.message);
}
