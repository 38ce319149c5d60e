/* SPDX-License-Identifier: MIT */
/* Makes a tokenizer from the vocabulary and merges that a trainer has found. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "pattern.h"
#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

void tokenizer_table_free(struct tokenizer_table *table)
{
    vocab_free(&table->pieces);
    wf_free(table->merge);
    *table = (struct tokenizer_table){0};
}

bool build_running_text(const struct wf_tokenizer_options *options)
{
    return options->other_pre_tokenizer && options->pre_tokenizer == WF_RUNNING_TEXT;
}

static json_t *metaspace(const struct wf_tokenizer_options *options)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement", "\u2581", "prepend_scheme",
                     build_running_text(options) ? "never" : "always", "split", 1);
}

static json_t *byte_level(bool add_prefix_space)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", add_prefix_space, "trim_offsets", 1, "use_regex", 1);
}

/* A pre-tokenizer that makes every match of a pattern a word. */
static json_t *isolate(const char *pattern_type, const char *pattern)
{
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", pattern_type, pattern, "behavior", "Isolated", "invert", 0);
}

static enum wf_pre_tokenizer pre_tokenizer_of(const struct wf_tokenizer_options *options)
{
    return options->other_pre_tokenizer ? options->pre_tokenizer : options->kind == WF_TOKENIZER_WORD ? WF_WHITESPACE : WF_METASPACE;
}

static json_t *pre_tokenizer(const struct wf_tokenizer_options *options)
{
    enum wf_pre_tokenizer wanted = pre_tokenizer_of(options);
    if (options->kind == WF_TOKENIZER_BYTE_BPE)
        return byte_level(false);
    if (options->kind == WF_TOKENIZER_CHAR)
        return isolate("Regex", EVERY_CHARACTER);
    if (wanted == WF_WHITESPACE)
        return json_pack("{s:s}", "type", "Whitespace");
    if (wanted == WF_METASPACE_ALONE)
        return metaspace(options);
    return json_pack("{s:s, s:[o*, o, {s:s, s:s}]}", "type", "Sequence", "pretokenizers",
                     wanted == WF_RUNNING_TEXT ? isolate("String", "\n") : NULL, metaspace(options), "type", "Punctuation", "behavior",
                     "Isolated");
}

wf_tokenizer *build_cutter(const struct wf_tokenizer_options *options, const struct part **out, wf_error *error)
{
    wf_json_init();
    wf_json_memory_clear();
    wf_error failure = {0};
    json_t *value = pre_tokenizer(options);
    struct reader r = {.t = wf_alloc_zero(1, sizeof *r.t), .where = "training", .error = &failure};
    if (r.t && value && !wf_json_memory_failed())
        *out = part_read(&r, PART_PRE_TOKENIZER, value);
    else
        reader_no_memory(&r);
    json_decref(value);
    if (!reader_failed(&r))
        return r.t;
    wf_tokenizer_free(r.t);
    wf_error_set(error, failure.code, "%s", failure.message);
    return NULL;
}

/* The decoder for these options. Without a decoder (null), pieces are joined by spaces. */
static json_t *decoder(const struct wf_tokenizer_options *options)
{
    if (options->kind == WF_TOKENIZER_BYTE_BPE)
        return byte_level(true);
    if (options->kind == WF_TOKENIZER_CHAR)
        return json_pack("{s:s}", "type", "Fuse");
    return pre_tokenizer_of(options) == WF_WHITESPACE ? json_null() : metaspace(options);
}

/* The JSON of a template's item: {"SpecialToken": {"id": "<s>", "type_id": 0}}. NULL if `id` is NULL. */
static json_t *item(const char *kind, const char *id, int type)
{
    return id ? json_pack("{s:{s:s, s:i}}", kind, "id", id, "type_id", type) : NULL;
}

/* A template that puts BOS before a text and EOS after it. For a pair of texts, the second text and another EOS follow. */
static json_t *post_processor(const struct tokenizer_table *table)
{
    const char *bos = special_name(&table->pieces, table->specials, WF_SPECIAL_BOS);
    const char *eos = special_name(&table->pieces, table->specials, WF_SPECIAL_EOS);
    if (!bos && !eos)
        return json_null();
    json_t *specials = json_object();
    for (const char *token = bos ? bos : eos; token; token = token == bos ? eos : NULL)
        json_object_set_new(specials, token,
                            json_pack("{s:s, s:[i], s:[s]}", "id", token, "ids",
                                      (int)vocab_find(&table->pieces, token, (int64_t)strlen(token)), "tokens", token));
    return json_pack("{s:s, s:[o*, o, o*], s:[o*, o, o*, o, o*], s:o}", "type", "TemplateProcessing", "single",
                     item("SpecialToken", bos, 0), item("Sequence", "A", 0), item("SpecialToken", eos, 0), "pair",
                     item("SpecialToken", bos, 0), item("Sequence", "A", 0), item("SpecialToken", eos, 0), item("Sequence", "B", 1),
                     item("SpecialToken", eos, 1), "special_tokens", specials);
}

json_t *build_added_token(const char *content, int64_t id)
{
    return json_pack("{s:I, s:s, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id, "content", content, "single_word", 0, "lstrip", 0,
                     "rstrip", 0, "normalized", 0, "special", 1);
}

wf_status build_tokenizer(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error)
{
    wf_status status;
    if (wf_json_memory_failed() || !root) {
        json_decref(root);
        *out = NULL;
        status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the tokenizer", where);
    } else {
        status = tokenizer_of(root, table, where, out, error);
    }
    tokenizer_table_free(table);
    return status;
}

/* Makes the tokenizer as if from the file that `tokenizers` would write, so that the same code reads and checks it. */
static wf_status tokenizer_of_table(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_tokenizer **out,
                                    wf_error *error)
{
    bool bpe = options->kind == WF_TOKENIZER_BPE || options->kind == WF_TOKENIZER_BYTE_BPE;
    const char *unknown = bpe ? NULL : "<unk>"; /* a WordLevel model must name an unknown token, even one that is not in the vocabulary */
    wf_json_init();
    wf_json_memory_clear();
    json_t *added = json_array();
    for (int32_t id = 0; id < table->specials; id++) {
        const char *token = vocab_piece(&table->pieces, id, &(int64_t){0});
        if ((!strcmp(token, "<unk>") || !strcmp(token, "[UNK]")) &&
            options->kind != WF_TOKENIZER_BYTE_BPE) /* in a byte-level tokenizer no character is unknown */
            unknown = token;
        json_array_append_new(added, build_added_token(token, id));
    }
    json_t *root = json_pack("{s:s, s:{s:s, s:s?}, s:o, s:o, s:o, s:o}", "version", "1.0", "model", "type", bpe ? "BPE" : "WordLevel",
                             "unk_token", unknown, "added_tokens", added, "pre_tokenizer", pre_tokenizer(options), "post_processor",
                             post_processor(table), "decoder", decoder(options));
    return build_tokenizer(root, table, "the trained tokenizer", out, error);
}

static wf_status check_options(const struct wf_tokenizer_options *options, wf_error *error)
{
    bool choice = options->kind == WF_TOKENIZER_WORD || options->kind == WF_TOKENIZER_BPE;
    if (options->kind == WF_TOKENIZER_WORDPIECE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: wordpiece is read from files, not trained; train bpe instead");
    if ((unsigned)options->kind > WF_TOKENIZER_WORDPIECE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: kind %d is unknown; use char, word, bpe or byte-bpe", (int)options->kind);
    if (options->other_pre_tokenizer && !choice)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: a pre-tokenizer can be chosen for word and bpe, not for %s",
                            wf_tokenizer_kind_name(options->kind));
    if (options->other_pre_tokenizer && (unsigned)options->pre_tokenizer > WF_RUNNING_TEXT)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: pre-tokenizer %d is unknown", (int)options->pre_tokenizer);
    if (options->special_count > 0 && !options->specials)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: special_count is %" PRId64 ", and specials is NULL",
                            options->special_count);
    return WF_OK;
}

static wf_status train(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                       wf_error *error)
{
    static wf_status (*const trainer[])(const struct tokenizer_source *, const struct wf_tokenizer_options *, struct tokenizer_table *,
                                        wf_error *) = {[WF_TOKENIZER_CHAR] = char_train,
                                                       [WF_TOKENIZER_WORD] = tokenizer_train_word,
                                                       [WF_TOKENIZER_BPE] = tokenizer_train_bpe,
                                                       [WF_TOKENIZER_BYTE_BPE] = tokenizer_train_bpe};
    struct tokenizer_table table = {0};
    *out = NULL;
    wf_status status = check_options(options, error);
    if (status == WF_OK && source->text && source->length < 1)
        status = wf_error_set(error, WF_ERR_FORMAT, "a tokenizer cannot be trained on empty text");
    if (status == WF_OK && !source->text && source->count < 1)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "no text file given; name at least one");
    if (status == WF_OK)
        status = trainer[options->kind](source, options, &table, error);
    if (status == WF_OK)
        status = tokenizer_of_table(options, &table, out, error);
    tokenizer_table_free(&table);
    return status;
}

wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                  wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "text", wf_some(text, length)))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_tokenizer_options){0};
    return train(&(struct tokenizer_source){.text = text ? text : "", .length = length}, options, out, error);
}

wf_status wf_tokenizer_train_files_with(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                        wf_tokenizer **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "paths", wf_some(paths, count)))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_tokenizer_options){0};
    return train(&(struct tokenizer_source){.path = paths, .count = count}, options, out, error);
}
