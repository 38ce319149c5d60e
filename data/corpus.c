/* SPDX-License-Identifier: MIT */
/* Opens texts as ids, from the cache or by encoding them, and divides a training text into training and validation text. */
#include <inttypes.h>
#include <string.h>

#include <weft/corpus.h>
#include <weft/internal/hash.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "sources.h"

/* The byte offset of character number `character`, from 0, of file `i`. It is the file's size if `character` equals the file's number of
 * characters. */
static wf_status offset_of(const struct sources *s, int64_t i, int64_t character, int64_t *offset, wf_error *error)
{
    const struct text_scan *scan = s->scan + i;
    const struct text_part *part = s->part + i;
    int64_t piece = 0;
    while (piece + 1 < scan->pieces && scan->points[piece + 1] <= character)
        piece++;
    int64_t begin = piece == 0 ? part->begin : piece * TEXT_PIECE, bytes = piece * TEXT_PIECE + text_piece_bytes(part->file, piece) - begin;
    char *text = wf_alloc((size_t)bytes + 1);
    if (!text)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to read it", part->file->path);
    wf_status status = text_file_read(part->file, begin, bytes, text, error);
    int64_t at = -1, n = scan->points[piece] - 1;
    while (status == WF_OK && n < character && ++at < bytes)
        n += (text[at] & 0xC0) != 0x80;
    *offset = begin + at;
    wf_free(text);
    return status;
}

/* --- ids --- */

/* The token between documents: the tokenizer's end token (</s> and similar names), or GPT-2's <|endoftext|>; -1 if there is neither. */
static int32_t separator_of(const wf_tokenizer *tokenizer)
{
    static const char text_end[] = "<|endoftext|>";
    int32_t id = wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS);
    return id >= 0 ? id : wf_tokenizer_id(tokenizer, text_end, sizeof text_end - 1);
}

static uint64_t key_of(const struct text_part *part, int64_t parts, const wf_tokenizer *tokenizer, int32_t separator)
{
    const uint64_t with[] = {wf_tokenizer_hash(tokenizer), cache_encoder(), (uint64_t)wf_tokenizer_vocab_size(tokenizer),
                             (uint64_t)(parts > 1 ? separator : -1)};
    uint64_t key = wf_hash(with, sizeof with, (uint64_t)parts);
    for (int64_t i = 0; i < parts; i++) {
        const uint64_t text[] = {part[i].content, (uint64_t)part[i].file->bytes, (uint64_t)part[i].begin, (uint64_t)part[i].end};
        key = wf_hash(text, sizeof text, key);
    }
    return key;
}

/* Encodes into the file `path`, or into memory if `path` is NULL. *written: false if the file could not be written. */
static wf_status encode_to(const char *path, uint64_t key, const struct text_part *part, int64_t parts,
                           const struct wf_corpus_options *options, struct text_progress *progress, struct wf_text_ids *out, bool *written,
                           wf_error *error)
{
    struct ids_writer writer;
    wf_status status = ids_writer_begin(&writer, path, key, wf_tokenizer_vocab_size(options->tokenizer), error);
    if (status != WF_OK)
        return status;
    out->unknown = 0;
    status = text_encode(options->tokenizer, part, parts, separator_of(options->tokenizer), progress, &writer, &out->unknown, error);
    for (int64_t i = 0; i < parts && status == WF_OK; i++)
        status = text_file_verify(part[i].file, part[i].content, error);
    if (status == WF_OK)
        return ids_writer_end(&writer, out, written, error);
    ids_writer_abort(&writer);
    return status;
}

static wf_status ids_of(const struct text_part *part, int64_t parts, int64_t characters, const struct wf_corpus_options *options,
                        struct text_progress *progress, struct wf_text_ids *out, wf_error *error)
{
    int64_t bytes = 0, before = progress->done;
    for (int64_t i = 0; i < parts; i++)
        bytes += part[i].end - part[i].begin;
    *out = (struct wf_text_ids){.characters = characters};
    if (bytes == 0)
        return WF_OK;
    uint64_t key = key_of(part, parts, options->tokenizer, separator_of(options->tokenizer));
    char *path = options->cache ? cache_path(options->cache, CACHE_IDS, key, error) : NULL;
    if (options->cache && !path)
        return WF_ERR_MEMORY;
    wf_status status = WF_OK;
    if (ids_store_find(path, key, wf_tokenizer_vocab_size(options->tokenizer), out)) {
        status = text_progress(progress, bytes, error);
    } else {
        bool kept = path && cache_make_room(options->cache, 2 * bytes), written = false;
        if (kept)
            status = encode_to(path, key, part, parts, options, progress, out, &written, error);
        progress->done = written ? progress->done : before;
        if (status == WF_OK && !written)
            status = encode_to(NULL, key, part, parts, options, progress, out, &written, error);
        if (kept) /* 2 * bytes was an estimate, so the cache may exceed its limit now; the new file is mapped and therefore stays */
            cache_make_room(options->cache, 0);
    }
    wf_free(path);
    if (status != WF_OK)
        wf_text_ids_close(out);
    return status;
}

wf_status wf_text_ids_open(const char *const *paths, int64_t files, const struct wf_corpus_options *options, struct wf_text_ids *out,
                           wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_text_ids){0};
    if (wf_needs(error, "paths, options", wf_some(paths, files), options))
        return WF_ERR_ARGUMENT;
    struct sources s;
    wf_status status = sources_open(&s, paths, files, true, error);
    struct text_progress progress = {options->progress, options->ctx, 0, s.bytes, "encoding the text"};
    if (status == WF_OK)
        status = sources_scan(&s, options->scans, &progress, error);
    if (status == WF_OK)
        status = ids_of(s.part, s.files, s.characters, options, &progress, out, error);
    sources_close(&s);
    return status;
}

static wf_status check_length(const char *part, const struct wf_text_ids *ids, int64_t context, bool held_out, wf_error *error)
{
    if (ids->ids.count > context)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "the %s part has %" PRId64 " token%s, and a context of %" PRId64 " needs at least %" PRId64
                        "; use a longer text or a smaller context%s",
                        part, ids->ids.count, ids->ids.count == 1 ? "" : "s", context, context + 1,
                        held_out ? ", or give a validation file instead of holding out the last tenth" : "");
}

/* Divides the training text after its first `kept` characters. These become the first *train_parts entries of s->part. The rest of the text
 * becomes the first *valid_parts entries of `valid`. */
static wf_status hold_out(const struct sources *s, int64_t kept, struct text_part *valid, int64_t *train_parts, int64_t *valid_parts,
                          wf_error *error)
{
    int64_t i = 0, cut = 0;
    for (int64_t count; kept > (count = s->scan[i].points[s->scan[i].pieces]); i++)
        kept -= count;
    wf_status status = offset_of(s, i, kept, &cut, error);
    struct text_part *last = s->part + i;
    *train_parts = i + (cut > last->begin);
    *valid_parts = 0;
    for (int64_t k = i; k < s->files; k++) {
        struct text_part rest = s->part[k];
        rest.begin = k == i ? cut : rest.begin;
        if (rest.begin < rest.end)
            valid[(*valid_parts)++] = rest;
    }
    last->end = cut;
    return status;
}

static wf_status build(struct sources *train, struct sources *valid, struct text_part *held, const struct wf_corpus_options *options,
                       struct wf_corpus *out, wf_error *error)
{
    struct text_progress progress = {options->progress, options->ctx, 0, train->bytes + valid->bytes, "encoding the text"};
    wf_status status = sources_scan(train, options->scans, &progress, error);
    if (status == WF_OK)
        status = sources_scan(valid, options->scans, &progress, error);
    if (status != WF_OK)
        return status;
    /* n - ceil(n / 10) equals floor(0.9 n) and needs no product that could overflow. */
    int64_t n = train->characters, kept = held ? n - (n + 9) / 10 : n, train_parts = train->files, valid_parts = valid->files;
    if (held)
        status = hold_out(train, kept, held, &train_parts, &valid_parts, error);
    if (status == WF_OK)
        status = ids_of(train->part, train_parts, kept, options, &progress, &out->train, error);
    if (status == WF_OK)
        status =
            ids_of(held ? held : valid->part, valid_parts, held ? n - kept : valid->characters, options, &progress, &out->valid, error);
    return status;
}

wf_status wf_corpus_open(const char *const *train, int64_t train_files, const char *const *valid, int64_t valid_files, int64_t context,
                         const struct wf_corpus_options *options, struct wf_corpus *out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_corpus){0};
    if (wf_needs(error, "train, options", wf_some(train, train_files), options))
        return WF_ERR_ARGUMENT;
    struct sources s[2] = {0};
    struct text_part *held = NULL;
    if (context < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a context of %" PRId64 " tokens; it must be at least 1", context);
    wf_status status = sources_open(&s[0], train, train_files, true, error);
    if (status == WF_OK && valid_files > 0)
        status = sources_open(&s[1], valid, valid_files, true, error);
    else if (status == WF_OK && !(held = wf_alloc((size_t)train_files * sizeof *held)))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " files", train_files);
    if (status == WF_OK)
        status = build(&s[0], &s[1], held, options, out, error);
    if (status == WF_OK)
        status = check_length("training", &out->train, context, held, error);
    if (status == WF_OK)
        status = check_length("validation", &out->valid, context, held, error);
    wf_free(held);
    sources_close(&s[0]);
    sources_close(&s[1]);
    if (status != WF_OK)
        wf_corpus_close(out);
    return status;
}

void wf_corpus_close(struct wf_corpus *corpus)
{
    if (!corpus)
        return;
    wf_text_ids_close(&corpus->train);
    wf_text_ids_close(&corpus->valid);
}
