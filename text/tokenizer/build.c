/* SPDX-License-Identifier: MIT */
/* Tokenizers that are trained here: the trainer makes the table, this makes the tokenizer of it. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "pipeline.h"
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/text.h>

void tokenizer_table_free(struct tokenizer_table *table)
{
    wf_string_free(&table->bytes);
    wf_free(table->start);
    wf_free(table->merge);
    *table = (struct tokenizer_table){0};
}

static wf_status add_pieces(wf_tokenizer *t, const struct tokenizer_table *table, wf_error *error)
{
    if (!vocab_reserve(&t->vocab, table->count, table->bytes.length))
        return part_no_memory("training", error);
    for (int64_t i = 0; i < table->count; i++)
        if (!vocab_add(&t->vocab, table->bytes.data + table->start[i], table->start[i + 1] - table->start[i]))
            return wf_error_set(error, WF_ERR_ARGUMENT, "a piece of the trained vocabulary is there twice");
    t->model_size = table->count;
    return WF_OK;
}

static wf_status add_merges(wf_tokenizer *t, const struct tokenizer_table *table, wf_error *error)
{
    struct wf_string join = {0};
    wf_status status = WF_OK;
    t->model.merge = tokenizer_keep(t, table->merges, sizeof *t->model.merge);
    if (!t->model.merge)
        status = part_no_memory("training", error);
    for (int64_t i = 0; status == WF_OK && i < table->merges; i++) {
        const struct tokenizer_merge *merge = table->merge + i;
        int64_t left, right;
        const char *a = vocab_piece(&t->vocab, merge->left, &left), *b = vocab_piece(&t->vocab, merge->right, &right);
        join.length = 0;
        if (!wf_string_add(&join, a, left) || !wf_string_add(&join, b, right))
            status = part_no_memory("training", error);
        else
            t->model.merge[t->model.merges++] = (struct merge){merge->left, merge->right, vocab_find(&t->vocab, join.data, join.length)};
    }
    wf_string_free(&join);
    return status;
}

static wf_status add_specials(wf_tokenizer *t, int64_t count, wf_error *error)
{
    t->added = tokenizer_keep(t, count, sizeof *t->added);
    if (!t->added)
        return part_no_memory("training", error);
    for (int32_t id = 0; id < count; id++) {
        struct added_token *token = t->added + t->added_count++;
        *token = (struct added_token){.id = id, .special = true};
        token->content = vocab_piece(&t->vocab, id, &token->length);
        bool unknown = !strcmp(token->content, "<unk>") || !strcmp(token->content, "[UNK]");
        if (unknown && t->kind != WF_TOKENIZER_BYTE_BPE) /* bytes are never unknown */
            t->model.unknown = token->content;
    }
    return WF_OK;
}

static wf_status assemble(wf_tokenizer *t, const struct wf_tokenizer_options *options, const struct tokenizer_table *table, wf_error *error)
{
    bool bpe = options->kind != WF_TOKENIZER_WORD;
    t->kind = options->kind;
    t->model.type = bpe ? MODEL_BPE : MODEL_WORD_LEVEL;
    t->model.unknown = bpe ? NULL : "<unk>"; /* WordLevel must name one, there or not */
    wf_status status = add_pieces(t, table, error);
    if (status == WF_OK && bpe)
        status = add_merges(t, table, error);
    if (status == WF_OK)
        status = add_specials(t, table->specials, error);
    if (status == WF_OK)
        status = model_index(t, "training", error);
    if (status == WF_OK)
        status = added_tokens_index(t, "training", error);
    if (status != WF_OK)
        return status;
    int32_t bos = wf_tokenizer_special(t, WF_SPECIAL_BOS), eos = wf_tokenizer_special(t, WF_SPECIAL_EOS);
    bos = bos < table->specials ? bos : -1;
    eos = eos < table->specials ? eos : -1;
    t->pre_tokenizer = pre_tokenizer_of(t, options);
    status = t->pre_tokenizer && decoder_of(t, options, &t->decoder) ? WF_OK : part_no_memory("training", error);
    if (status == WF_OK && (bos >= 0 || eos >= 0) && !(t->template = template_of(t, bos, eos)))
        status = part_no_memory("training", error);
    return status;
}

wf_status tokenizer_of_table(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_tokenizer **out, wf_error *error)
{
    wf_tokenizer *t = wf_alloc_zero(1, sizeof *t);
    wf_status status = t ? assemble(t, options, table, error) : part_no_memory("training", error);
    tokenizer_table_free(table);
    if (status != WF_OK) {
        wf_tokenizer_free(t);
        t = NULL;
    }
    *out = t;
    return status;
}

static wf_status check_options(const struct wf_tokenizer_options *options, wf_error *error)
{
    bool choice = options->kind == WF_TOKENIZER_WORD || options->kind == WF_TOKENIZER_BPE;
    if (options->kind == WF_TOKENIZER_WORDPIECE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: wordpiece is read from files, not trained; train bpe instead");
    if ((unsigned)options->kind > WF_TOKENIZER_WORDPIECE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: kind %d is unknown; there are char, word, bpe and byte-bpe",
                            (int)options->kind);
    if (options->other_pre_tokenizer && !choice)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: %s has its own way to cut text; a pre-tokenizer is for word and bpe",
                            wf_tokenizer_kind_name(options->kind));
    if (options->other_pre_tokenizer && (unsigned)options->pre_tokenizer > WF_RUNNING_TEXT)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: pre-tokenizer %d is unknown", (int)options->pre_tokenizer);
    if (options->kind == WF_TOKENIZER_CHAR && options->special_count > 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "tokenizer: char has no special tokens; use word or bpe");
    return WF_OK;
}

static wf_status train(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                       wf_error *error)
{
    struct tokenizer_table table = {0};
    wf_status status = options->kind == WF_TOKENIZER_WORD ? tokenizer_train_word(source, options, &table, error)
                                                          : tokenizer_train_bpe(source, options, &table, error);
    if (status == WF_OK)
        return tokenizer_of_table(options, &table, out, error);
    tokenizer_table_free(&table);
    return status;
}

wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                  wf_error *error)
{
    *out = NULL;
    wf_status status = check_options(options, error);
    if (status != WF_OK)
        return status;
    if (options->kind == WF_TOKENIZER_CHAR)
        return char_train(text, length, out, error);
    if (length < 1)
        return wf_error_set(error, WF_ERR_FORMAT, "a tokenizer needs text to be made from, and this one is empty");
    return train(&(struct tokenizer_source){.text = text, .length = length}, options, out, error);
}

wf_status wf_tokenizer_train_files_with(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                        wf_tokenizer **out, wf_error *error)
{
    *out = NULL;
    wf_status status = check_options(options, error);
    if (status != WF_OK)
        return status;
    if (count < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text file given; name at least one");
    if (options->kind != WF_TOKENIZER_CHAR)
        return train(&(struct tokenizer_source){.path = paths, .count = count}, options, out, error);
    struct wf_text text;
    status = wf_text_read(paths, count, &text, error);
    if (status != WF_OK)
        return status;
    status = char_train(text.data, text.length, out, error);
    wf_text_free(&text);
    return status;
}
